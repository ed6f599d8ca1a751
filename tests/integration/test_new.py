"""``debate new``: what it writes works as it is."""

import subprocess
import sys
from pathlib import Path

HOME = Path(__file__).parents[2]


def test_skeletons_pass_their_tests_and_train(debate_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    commands = {}
    for what in ("env", "reward", "recipe"):
        code, out, err = debate_command("new", what, f"my_{what}")
        assert (code, err) == (0, "")
        assert f"test_my_{what}.py" in out
        commands[what] = out.splitlines()[-1].partition("debate ")[2].partition("  #")[0].split()
    call = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    paths = f"{tmp_path}:{HOME}"
    done = subprocess.run(call, capture_output=True, text=True, env={"PYTHONPATH": paths}, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "5 passed" in done.stdout
    assert commands["reward"] == ["train", "quickstart", "rewards.peer=my_reward:my_reward"]
    code, _, err = debate_command(*commands["env"], "run.dir=run", "logging.progress=none")
    assert code == 0, err


def test_nothing_is_overwritten_and_names_are_checked(debate_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("test_mine.py").write_text("kept")
    assert debate_command("new env mine")[0] == 2
    assert "test_mine.py: exists already" in debate_command("new env mine")[2]
    assert "must be a name of lower-case letters" in debate_command("new env My-Task")[2]
    assert [path.name for path in Path().iterdir()] == ["test_mine.py"]
