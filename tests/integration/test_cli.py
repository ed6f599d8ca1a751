"""The ``debate`` command as a user types it, and the Python of the tour as it is written."""

import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import debate_rl
from debate_rl.commands import main
from debate_rl.runs.checkpoint import latest_good

from .conftest import ENVIRONMENT, python, steps_of, wait_until

HOME = Path(debate_rl.__file__).parents[1]
HEAVY = ("torch", "transformers", "peft", "vllm", "datasets")
SNIPPETS = re.findall(r"```python\n(.*?)```", (HOME / "docs/quickstart.md").read_text("utf-8"), re.DOTALL)
RUN = "runs/quickstart-pair_sum-0"
"""The run folder that the documents speak of."""
LISTENING = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)
"""Becomes another Python that hears Ctrl-C: what a shell begins in the background ignores it."""
WARM = ["solve_steps=2", "debate_steps=2", "solve_batch=2", "batch=[2,2,2,2]"]


LOADED = """
import sys
from debate_rl.commands.main import run
for words in sys.argv[1:]:
    sys.argv = ["debate", *words.split()]
    try:
        run()
    except SystemExit as ended:
        assert not ended.code, words
    print(*{name.partition(".")[0] for name in sys.modules}, file=sys.stderr)
"""
OF_A_RUN = ("inspect run ls", "inspect run show 0.0 --json", "inspect run why 0.0", "replay run")
OF_A_RUN += ("eval regrade run --modes boxed",)


@pytest.mark.parametrize(
    ("commands", "light"),
    [
        (["--help"], ("numpy", "pydantic")),
        (OF_A_RUN, ("textual", "jinja2", "starlette")),
        pytest.param(["report run"], (), marks=pytest.mark.slow),
    ],
)
def test_commands_that_ask_no_model_load_no_heavy_package(commands, light, folder):
    """In one process, one after the other."""
    done = python("-c", LOADED, *commands, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert not {*HEAVY, *light} & {*done.stderr.split()}
    assert commands != ["--help"] or all(name in done.stdout for name in ("quickstart", "train", "play"))


@pytest.fixture(scope="module")
def trained(tiny_recipe, tmp_path_factory):
    """A folder in which the quick-start's run was trained, very briefly."""
    from debate_rl.config import Config
    from debate_rl.config.recipes import load_config
    from debate_rl.training.loop import train

    folder = tmp_path_factory.mktemp("work")
    overrides = [f"run.dir={folder / RUN}", "logging.progress=none", *(f"warm_start.{one}" for one in WARM)]
    train(load_config(Config, tiny_recipe, overrides))
    return folder


def test_a_trained_run_is_played_with_its_votes_and_rewards(trained, debate_command, monkeypatch):
    monkeypatch.chdir(trained)
    before = sorted(Path().rglob("*"))
    question = "Target 19. Numbers 3 8 5 11 10 9."
    code, out, err = debate_command("solve play", RUN, question, "--answer", "8 11")
    assert (code, out) == (2, "")
    assert err == "debate: --answer: problems of pair_sum are graded by their own rule; leave it out\n"
    code, out, err = debate_command("solve play", RUN, question)
    assert code == 0
    loading, begin, end = err.splitlines()
    assert (loading, begin) == ("loading the model, then 9 turns of 3 agents", "turns 0/9")
    assert end.startswith("turns 9/9 in ")
    assert question in out
    assert out.count("─ round ") == 6
    assert out.count("─ final ballot ") == 3
    assert all(persona in out for persona in ("Methodical Analyst", "Creative", "Devil's Advocate"))
    assert "winner: " in out
    assert len(re.findall(r"^│ (?:K7|Q2|M4) (?:round [01]|final ballot) ", out, re.MULTILINE)) == 9
    assert debate_command("solve play", RUN, question)[1] == out  # a seed repeats
    assert debate_command("solve play", RUN, question, "--seed", "1")[1] != out
    assert sorted(Path().rglob("*")) == before


def test_the_folder_of_a_run_goes_on_with_its_own_configuration(
    tiny_recipe, debate_command, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    grows = ("learner.schedule=constant", "debate.max_tokens=20")
    code, _, err = debate_command("train", tiny_recipe, "run.dir=first", "train.steps=1", *grows)
    assert code == 0, err
    (tmp_path / "first").rename(tmp_path / "moved to")
    code, out, err = debate_command("train", "moved to", "train.steps=2")
    assert code == 0, err
    assert out.splitlines()[0] == "done: 2 steps in moved to"
    assert "resuming after 1 of 2 steps" in err.splitlines()
    assert [path.name for path in tmp_path.iterdir()] == ["moved to"]
    code, _, err = debate_command("train", "moved to", "learner.lr=0.5")
    assert code == 2
    assert err.splitlines()[-1].startswith(
        "debate: run.dir=moved to contains a run with another configuration: "
    )
    code, out, _ = debate_command("train", "moved to", "run.dir=another", "train.steps=0")
    assert (code, out.splitlines()[0]) == (0, "done: 0 steps in another")


@pytest.mark.parametrize("words", ["quickstart", "inspect tokens run 0.0", "eval run", "replay run"])
def test_a_file_that_cannot_be_written_is_refused_before_any_work(words, debate_command, tmp_path):
    file = tmp_path / "nowhere" / "figures.json"
    code, out, err = debate_command(*words.split(), "--json", file)
    assert (code, out) == (2, "")
    assert err == f"debate: --json {file}: cannot be written; name a file in a folder that exists\n"


def test_json_of_train_export_play_and_keys(tiny_recipe, debate_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def said(*words):
        code, _, err = debate_command(*words, "--json", "said.json")
        assert code == 0, err
        return json.loads((tmp_path / "said.json").read_text())

    trained = said("train", tiny_recipe, "run.dir=runs/{seed}", "train.steps=1")
    assert (trained["run"], trained["steps"], trained["end"]["reason"]) == ("runs/0", 1, "steps")
    assert trained["wall_seconds"] > 0
    assert trained["metrics"]["step"] == 0
    assert said("export", "runs/0") == {
        "folder": "runs/0/export",
        "kind": "full",
        "checkpoint": "runs/0/checkpoints/step_000001",
    }
    played = said("solve play", tiny_recipe, "What is 3 + 4?", "--answer", "7")["debate"]
    assert (played["problem"]["question"], len(played["turns"])) == ("What is 3 + 4?", 9)
    [key] = said("keys", "train.hours")["keys"]
    assert (key["name"], key["default"], key["type"]) == ("train.hours", "none", "float or none")
    assert key["meaning"].startswith("Maximum wall time in hours")


@pytest.mark.slow
@pytest.mark.parametrize(("told", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_run_with_all_its_finished_steps_saved(tiny_recipe, tmp_path, told, code):
    command = [sys.executable, "-c", LISTENING, "-X", "faulthandler", "-m", "debate_rl", "train"]
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    command += [tiny_recipe, "train.steps=9999", "train.save_every=0"]
    with subprocess.Popen(command, cwd=tmp_path, env=ENVIRONMENT, **piped) as child:
        run = tmp_path / "runs/debate"
        wait_until(lambda: steps_of(run), child)
        os.killpg(child.pid, told)
        try:
            out, err = child.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGABRT)
            pytest.fail(f"hangs: {child.communicate()[1]}")  # with the stack of each thread
    assert (child.returncode, out) == (code, "")
    *steps, last = err.splitlines()
    done = len(steps_of(run))
    assert last == (
        f"debate: stopped by {told.name}; {done} of 9999 steps are saved in runs/debate/checkpoints; "
        "the same command resumes from there"
    )
    waiting = f"debate: {told.name}: the current step is finished and saved first"
    known = ("problems: ", "runs/debate: ", "an epoch ", "baselines ", "threads: ", "loading the model")
    known += ("step ", "nothing ", "estimate, ", "to watch it: ", "  ", waiting)
    assert [line for line in steps if not line.startswith(known)] == []
    assert latest_good(run / "checkpoints") == run / f"checkpoints/step_{done:06d}"


@pytest.mark.parametrize("code", SNIPPETS, ids=range(len(SNIPPETS)))
def test_the_examples_run_as_written(trained, monkeypatch, capsys, code):
    monkeypatch.chdir(trained)
    exec(compile(code, "quickstart.md", "exec"), {"__name__": "__main__"})
    said = capsys.readouterr().out
    assert said
    for shown in re.findall(r"^print\(.*\)  # ([^:\n]*)", code, re.MULTILINE):
        assert shown in said.splitlines()


LIGHT = [
    *("--help", "keys learner", "inspect RUN ls", "inspect RUN show 0.0 0.1", "inspect RUN stats"),
    "inspect nowhere",
]
OF_A_TRAINED_RUN = [
    *("inspect RUN why 0.0", "replay RUN rewards.truth_weight=0.3", "eval regrade RUN --clip e"),
    *("report RUN", "inspect tokens RUN 0.0", "eval RUN", "solve play RUN 1+1?"),
]
COMMANDS = [*LIGHT, *(pytest.param(one, marks=pytest.mark.slow) for one in OF_A_TRAINED_RUN)]


@pytest.fixture
def call(request, tmp_path, monkeypatch):
    """Return call(command, stream) -> the exit code of a command that prints to a stream."""

    def ended(command, stream):
        trained = command in OF_A_TRAINED_RUN
        run_of = request.getfixturevalue("folder") / "run" if trained else request.getfixturevalue("run")
        monkeypatch.chdir(tmp_path)
        words = [str(run_of) if word == "RUN" else word for word in command.split()]
        monkeypatch.setattr(sys, "argv", ["debate", *words])
        monkeypatch.setattr(sys, "stdout", stream)
        with pytest.raises(SystemExit) as end:
            main.run()
        return end.value.code

    return ended


@pytest.mark.parametrize("command", COMMANDS)
def test_what_an_encoding_lacks_is_written_as_its_escape(command, call, monkeypatch):
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="ascii") for _ in range(2))
    monkeypatch.setattr(sys, "stderr", err)
    assert call(command, out) == (2 if command == "inspect nowhere" else 0)
    out.seek(0)
    assert out.read() or command == "inspect nowhere"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_reader_that_went_away_ends_it_without_a_word(command, call, capsys):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", encoding="utf-8", buffering=1) as stream:
        assert call(command, stream) == (2 if command == "inspect nowhere" else 141)
    if command != "inspect nowhere":
        assert "rror" not in capsys.readouterr().err
