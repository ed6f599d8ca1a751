"""One file of numbers, options, texts and instructions: played, trained on and evaluated, each row graded."""

import json
import re

import pytest
from msgspec import UNSET

from debate_rl.evaluation.grading import grade_debate
from debate_rl.metrics.step_log import read_metrics
from envs import load_environment
from transcripts import read_records

from .conftest import merged, model_that_says, write_recipe

GOLD = '{"instruction_id_list": ["punctuation:no_comma", "startend:quotation"], "kwargs": [{}, {}]}'
REPLIES = ("\\boxed{4}", "\\boxed{Paris}", "\\boxed{A}", '"Fine."', '"Fine, thanks."', "Fine.")
RECIPE = {
    "env": {"kind": "file", "path": "mixed.jsonl"},
    "held_out": {"limit": 4, "every": 0},
    "debate": {"num_rounds": 1, "max_tokens": 4, "prompts": "tiny"},
    "rewards": {"truth_weight": 1.0},
    "run": {"dir": "run"},
    "logging": {"progress": "none"},
    "model": merged(
        model_that_says([f"<solution>{reply}</solution>" for reply in REPLIES]),
        {"tiny": {"context_tokens": 4096, "fallback": "bytes"}},
    ),
    "learner": {"warmup_steps": 1},
    "train": {"steps": 2, "batch_size": 8, "group_size": 2},
}


def rows():
    """Numbers and choices, which are sums, and texts and instructions, which are words."""
    accepted = ["Lutetia", "paris"]
    for n in range(4):
        of = {"subject": "sums"}
        yield {"id": f"n{n}", "question": f"{n} + {4 - n}?", "answer": 4, "kind": "number"} | of
        yield {"id": f"c{n}", "question": f"Which {n}?", "answer": "A", "choices": ["x", "y"]} | of
        of = {"subject": "words"}
        yield {"id": f"t{n}", "question": f"Capital {n}?", "answer": accepted, "kind": "text"} | of
        yield {"id": f"i{n}", "question": f"Write {n}.", **json.loads(GOLD)} | of


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A working directory with the file and its recipe."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mixed.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows()))
    return write_recipe(tmp_path / "mixed.toml", RECIPE).parent


@pytest.mark.slow
def test_a_mixed_file_is_trained_on_evaluated_and_played(home, debate_command):
    code, _, err = debate_command("train", "mixed.toml")
    assert code == 0, err
    environment = load_environment("file", path="mixed.jsonl")
    records = list(read_records(home / "run" / "transcripts"))
    assert {record.debate.problem.kind for record in records} == {"number", "choice", "text", "instructions"}
    for record in records:
        assert (record.debate, record.correct) == grade_debate(environment, record.debate)
    verdicts = {(record.debate.problem.kind, seat[0]) for record in records for seat in record.correct}
    assert ("instructions", True) in verdicts or ("instructions", False) in verdicts
    assert ("text", "missing") in verdicts
    told = [record for record in records if record.debate.problem.kind == "instructions"]
    scores = {turn.score for record in told for turn in record.debate.turns} - {UNSET}
    assert scores <= {0.0, 0.5, 1.0}
    assert scores
    steps = read_metrics(home / "run" / "metrics.jsonl")
    assert {"share/source/sums", "share/source/words", "score"} <= {name for row in steps for name in row}
    for row in steps:
        assert row["share/source/sums"] + row["share/source/words"] == 1

    numbers = {step: [r for r in records if r.step == step] for step in (0, 1)}
    place, turn = next(
        ((step, number), turn.id)
        for step, of_step in numbers.items()
        for number, record in enumerate(of_step)
        for turn in record.debate.turns
        if turn.score == 0.5
    )
    code, out, err = debate_command(
        *("inspect", "run", "why", f"{place[0]}.{place[1]}", "--turn", f"{turn.agent}.{turn.round}")
    )
    assert (code, err) == (0, "")
    assert out.count("not followed: ") == 1  # one of two, which is a score of a half
    assert out.count("followed: ") == 2
    assert re.search(r"score: 0?\.50?\b", out)

    code, _, err = debate_command("eval", "run", "--json", "figures.json")
    assert code == 0, err
    figures = {row["name"]: row for row in json.loads((home / "figures.json").read_text())}
    named = {"direct/accuracy", "direct/instructions", "debate/instructions", "direct/score", "debate/score"}
    assert named <= set(figures)
    assert 0 <= figures["direct/instructions"]["value"] <= 1

    code, out, err = debate_command("solve play", "run", "Write.", "--kind", "instructions", "--answer", GOLD)
    assert (code, err.splitlines()[0]) == (0, "loading the model, then 6 turns of 3 agents")
    assert any(mark in out for mark in ("✓", "✗", "∅"))
