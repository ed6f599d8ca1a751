"""``debate inspect RUN why|same|replays`` on a trained run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import debate_rl
from transcripts import RunStore


@pytest.fixture
def inspect(folder, debate_command, monkeypatch):
    monkeypatch.chdir(folder)
    return lambda *arguments: debate_command("inspect", "run", *arguments)


def test_why_tells_every_number_of_a_turn_as_stored(inspect):
    code, out, err = inspect("why", "1.2", "--turn", "1.0")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert re.match(r"debate 1\.2, \w\d .+, turn 1\.0, problem ", lines[0])
    assert "all numbers are as stored" in lines
    assert "[not as stored]" not in out
    code, out, _ = inspect("why", "1.2", "--turn", "1.0", "--json")
    found = json.loads(out)
    assert (found["schema"], found["id"], found["turn"], found["matches"]) == (1, "1.2", [1, 0], True)
    assert found["total"]["generator"]["stored"] == found["total"]["generator"]["value"]


def test_every_turn_of_a_run_is_explained_as_it_was_stored(folder):
    from debate_rl.inspector.runs import config_of
    from debate_rl.inspector.views.why import why

    with RunStore.open(folder / "run") as store:
        config, _ = config_of(store.run)
        for id, record in store.records():
            for turn in record.debate.turns:
                assert why(store, config, id, turn.id).matches is True, (id, turn.id)


def test_the_prompts_shown_are_those_whose_tokens_were_read(folder):
    from debate_rl.engines import make_policy
    from debate_rl.inspector.runs import config_of
    from debate_rl.inspector.views.prompts import DebatePrompts

    config, _ = config_of(folder / "run")
    _, _, policy = make_policy(config)
    read = 0
    with RunStore.open(folder / "run") as store:
        for _, record in store.records(tokens=True):
            prompts = DebatePrompts(record.debate, store.run)
            assert prompts.note == ""
            for turn in record.debate.turns:
                shown = policy.encode(prompts.of(turn.id).messages)
                assert shown == turn.completion.prompt_tokens
                read += 1
    assert read >= 8 * 3


def test_why_without_a_configuration_shows_what_is_stored(
    inspect, folder, tmp_path, monkeypatch, debate_command
):
    (tmp_path / "bare" / "transcripts").mkdir(parents=True)
    for shard in (folder / "run" / "transcripts").glob("*.jsonl*"):
        (tmp_path / "bare" / "transcripts" / shard.name).write_bytes(shard.read_bytes())
    monkeypatch.chdir(tmp_path)
    code, out, _ = debate_command("inspect", "bare", "why", "0.0")
    assert code == 0
    assert "note: no configuration, so only what is stored is shown: bare: not the folder of a run" in out
    assert "nothing was recomputed that could be compared with what is stored" in out


def test_one_problem_and_two_of_its_debates(inspect, folder):
    with RunStore.open(folder / "run") as store:
        problem = store.debate("0.0").debate.problem.id
        [first, second, *_] = [row.id for row in store.debates(f'problem:"{problem}"')]
    code, out, err = inspect("same", problem)
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == f"problem {problem}"
    assert f"\n{first} " in out
    code, out, _ = inspect("same", problem, first, second)
    assert code == 0
    assert out.startswith(f"{first} -> {second}\n")
    found = json.loads(inspect("same", problem, first, second, "--json")[1])
    assert len(found["turns"]) == len({tuple(turn["turn"]) for turn in found["turns"]})


def test_replays_are_listed_and_read(inspect, debate_command, folder):
    assert inspect("replays")[1] == "no replays; debate replay RUN KEY=VALUE makes one\n"
    assert debate_command("replay", "run", "rewards.format_penalty=-2.0")[0] == 0
    [name] = [path.name for path in (folder / "run" / "replays").iterdir()]
    assert inspect("replays")[1].splitlines()[1].startswith(f"{name} ")
    code, out, _ = inspect("replays", name)
    assert code == 0
    assert "0 of 8 were not stored as the run's own scheme gives them" in out
    code, out, _ = inspect("replays", name, "1.0")
    assert out.startswith("debate 1.0 under both schemes: ")
    assert json.loads(inspect("replays", name, "1.0", "--json")[1])["id"] == "1.0"


def test_what_cannot_be_is_one_line(inspect):
    for arguments, said in (
        ("why", "why: name one debate"),
        ("why 0.0 --turn x", "--turn 'x'"),
        ("why 0.0 --turn 9.9", "no turn 9.9; there are 0.0, "),
        ("why 9.0", "no debate 9.0; there are steps 0 to 1"),
        ("same nothing", "'nothing'"),
        ("same p 0.0", "same: name a problem"),
        ("same p 0.0 0.1", "same: debate 0.0 is on problem "),
        ("replays nothing", "no replay 'nothing'"),
        ("ls --turn 0.0", "--turn: ls does not use"),
        ("why 0.0 --filter step:0", "--filter: why does not use"),
    ):
        code, out, err = inspect(*arguments.split())
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert said in err


def test_no_torch_is_loaded(folder):
    script = (
        "import sys\n"
        "import debate_rl.inspector.views.across\n"
        "import debate_rl.inspector.views.replays\n"
        "from debate.types import TurnId\n"
        "from debate_rl.inspector.runs import config_of\nfrom debate_rl.inspector.views.why import why\n"
        "from transcripts import RunStore\n"
        "with RunStore.open('run') as store:\n"
        "    assert why(store, config_of(store.run)[0], '0.0', TurnId(0, 0)).matches\n"
        "print([m for m in ('torch', 'transformers', 'peft', 'vllm', 'starlette') if m in sys.modules])"
    )
    home = Path(debate_rl.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={"PYTHONPATH": str(home)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines()[-1:] == ["[]"], done.stderr
