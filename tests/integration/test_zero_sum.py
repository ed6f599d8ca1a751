"""A run of the game of opposite rewards: learnt from, resumed, evaluated, explained; and of a consultancy."""

from __future__ import annotations

import json

import pytest

from debate.prompting.rebuilding import held_debate
from debate_rl.config import Config
from debate_rl.metrics.step_log import read_metrics
from debate_rl.training.loop import train

from .conftest import model_that_says, records, straight_and_resumed, votes_for

HANDLES = ("K7", "Q2", "M4")
PIECES = [
    *(f"<solution>\\boxed{{{a} {b}}}</solution>" for a, b in ((1, 2), (3, 4))),
    *votes_for(HANDLES, "yes", "no", "so"),
]
BASE = {
    "seed": 3,
    "env": {"kind": "pair_sum", "levels": [1], "limit": 16},
    "held_out": {"limit": 2, "every": 1},
    "debate": {
        "protocol": "zero_sum",
        "num_rounds": 1,
        "max_tokens": 12,
        "prompts": "tiny",
        "handles": HANDLES,
        "seats": ["learning", "learning", "frozen"],
    },
    "rewards": {"truth_weight": 0.0},
    "advantages": {"peer": {"baseline": "group"}},
    "model": model_that_says(PIECES),
    "learner": {"lr": 0.01},
    "train": {"steps": 2, "batch_size": 4, "group_size": 8, "save_every": 1},
    "logging": {"progress": "none"},
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A run, and one that was stopped after a step and resumed."""
    return straight_and_resumed(tmp_path_factory.mktemp("game"), BASE)


@pytest.mark.slow
def test_a_resumed_run_is_the_straight_one(home):
    straight, resumed = (records(home / name) for name in ("straight", "resumed"))
    assert straight == resumed
    lines = [read_metrics(home / name / "metrics.jsonl") for name in ("straight", "resumed")]
    losses = [[line.get("loss") for line in rows] for rows in lines]
    assert losses[0] == losses[1]
    assert any(losses[0])
    assert lines[0][-1]["winner/n"] > 0
    for record in straight.values():
        assert {part.turn.agent for part in record.advantages} <= {0, 1}  # the judge is frozen
        (proposer,), (critic,), (judge,) = record.rewards.peer
        assert judge is None
        assert proposer is None or proposer == -critic


@pytest.mark.slow
def test_other_commands_work_on_it(home, debate_command):
    run = str(home / "straight")
    for words in (
        ("eval", run),
        ("report", run),
        ("replay", run),
        ("inspect", run),
        ("doctor", run, "--problems", "4"),
    ):
        code, out, err = debate_command(*words)
        assert code in ((0, 1) if words[0] == "doctor" else (0,)), (words, err)
        if words[0] == "replay":
            assert "all of 64 debates" in out


@pytest.mark.slow
def test_pages_show_who_spoke_and_every_prompt(home, debate_command):
    run = str(home / "straight")
    id, turn = next(
        (id, part.turn)
        for id, record in records(run).items()
        for part in record.advantages
        if part.turn.agent == 1 and part.peer
    )
    code, out, err = debate_command("inspect", run, "show", id, "--json", "--prompts")
    assert code == 0, err
    shown = json.loads(out)
    assert [turn["id"] for turn in shown["turns"]] == [[0, 0], [1, 0], [2, 1]]
    assert all(one["prompt_unknown"] == "" for one in shown["turns"])
    code, out, err = debate_command("inspect", run, "why", id, "--turn", f"{turn.agent}.{turn.round}")
    assert code == 0, err
    assert "stored:" not in out  # every number is as stored
    code, out, err = debate_command("solve play", run, "What is 1 + 2?")
    assert code == 0, err


@pytest.mark.slow
def test_a_consultancy_is_learnt_from_and_evaluated_beside_the_game(tmp_path, debate_command):
    folder = tmp_path / "consultancy"
    debate = BASE["debate"] | {"protocol": "consultancy"}
    steps = BASE["train"] | {"steps": 1}
    own = {"run": {"dir": str(folder)}, "debate": debate, "train": steps}
    train(Config.model_validate(BASE | own))
    held = records(folder)
    assert any(part.peer for record in held.values() for part in record.advantages)
    for record in list(held.values())[:8]:
        debate = held_debate(record.debate)
        silent = 1 - debate.seating.consultant
        for turn in (one for one in record.debate.turns if one.ballot):
            read = debate.prompt(turn.id).messages[-1].content
            assert f"{debate.seating.handles[silent]}: \\boxed{{" in read or "?" in read
    code, out, err = debate_command("replay", str(folder))
    assert (code, "all of 32 debates" in out) == (0, True), err
    for protocol in ("consultancy", "zero_sum"):
        code, _, err = debate_command("eval", str(folder), f"debate.protocol={protocol}")
        assert code == 0, err
