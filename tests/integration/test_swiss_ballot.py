"""A run whose final ballots are by Swiss pairing: learnt from, resumed, controlled, evaluated, explained."""

from __future__ import annotations

import json

import pytest

from debate_rl.rollouts.controls import flip_votes, shuffle_votes
from rewards import ballot_box, valid_votes

from .conftest import model_that_says, records, straight_and_resumed, votes_for

HANDLES = ("K7", "Q2", "M4", "X9", "C3")
PIECES = [
    *(f"<solution>\\boxed{{{a} {b}}}</solution>" for a, b in ((1, 2), (3, 4))),
    *votes_for(HANDLES, "."),
]
BASE = {
    "seed": 3,
    "env": {"kind": "pair_sum", "levels": [1], "limit": 16},
    "held_out": {"limit": 2, "every": 1},
    "debate": {
        "num_agents": 5,
        "num_rounds": 1,
        "ballot": "swiss",
        "ask_swapped": True,
        "max_tokens": 12,
        "prompts": "tiny",
        "handles": HANDLES,
        "seats": ["learning", "learning", "learning", "learning", "frozen"],
    },
    "rewards": {"truth_weight": 0.5, "swap_weight": 0.1},
    "model": model_that_says(PIECES),
    "learner": {"lr": 0.01},
    "train": {"steps": 2, "batch_size": 2, "group_size": 4, "save_every": 1},
    "logging": {"progress": "none"},
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A run, and one that was stopped after a step and resumed."""
    return straight_and_resumed(tmp_path_factory.mktemp("swiss"), BASE)


@pytest.mark.slow
def test_a_resumed_run_is_the_straight_one(home):
    straight, resumed = (records(home / name) for name in ("straight", "resumed"))
    assert straight == resumed
    for record in straight.values():
        ballots = [turn for turn in record.debate.turns if turn.ballot]
        assert [turn.id.agent for turn in ballots] == [0, 1, 2, 3, 4]
        assert all(len(turn.compared) == 2 for turn in ballots)
        assert all(turn.id.agent not in {one.agent for one in turn.compared} for turn in ballots)
        compared = {one.turn: one.compared[::-1] for one in record.debate.swapped}
        assert compared == {turn.id: turn.compared for turn in ballots}


@pytest.mark.slow
def test_controls_leave_who_compared_what(home):
    debates = [record.debate for record in records(home / "straight").values()]
    for controlled in (
        [flip_votes(debate, seed=1, share=1.0) for debate in debates],
        shuffle_votes(debates, seed=1),
    ):
        for before, after in zip(debates, controlled, strict=True):
            assert [turn.compared for turn in after.turns] == [turn.compared for turn in before.turns]
            assert len(valid_votes(ballot_box(after))) == len(valid_votes(ballot_box(before)))


@pytest.mark.slow
def test_other_commands_work_on_it(home, debate_command):
    run = str(home / "straight")
    for words in (
        ("eval", run),
        ("report", run),
        ("replay", run),
        ("eval", "regrade", run),
        ("inspect", run),
        ("solve", "play", run, "Target 7. Numbers 3 4 1."),
        ("solve", run, "Target 7. Numbers 3 4 1.", "--strategy", "swiss", "--samples", "3"),
    ):
        code, out, err = debate_command(*words)
        assert code == 0, (words, err)
        if words[0] == "replay":
            assert "all of 16 debates" in out


@pytest.mark.slow
def test_pages_show_every_prompt_and_number_as_stored(home, debate_command):
    run = str(home / "straight")
    id = next(iter(records(run)))
    code, out, err = debate_command("inspect", run, "show", id, "--json", "--prompts")
    assert code == 0, err
    assert all(one["prompt_unknown"] == "" for one in json.loads(out)["turns"])
    for turn in ("0.0", "0.1", "3.1"):
        code, out, err = debate_command("inspect", run, "why", id, "--turn", turn)
        assert code == 0, err
        assert "stored:" not in out
