"""Plain RLVR of a base-like model: the recipes of configs/rlvr start, and the tiny one climbs."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pytest

import debate_rl
from debate.prompting.rebuilding import held_debate
from debate.prompting.rendering import raw_prompt
from debate_rl.config import Config
from debate_rl.config.recipes import load_config
from debate_rl.tracking.step_lines import read_metrics
from debate_rl.training.train import train
from transcripts import read_records

RECIPES = Path(debate_rl.__file__).parents[1] / "configs/rlvr"


def tiny(folder: Path, *overrides: str) -> Config:
    common = (f"run.dir={folder}", "logging.progress=none")
    return load_config(Config, RECIPES / "tiny.toml", [*common, *overrides])


SHORT = ("train.steps=1", "train.problems_per_step=2", "train.debates_per_problem=4", "held_out.limit=4")
TAUGHT = (
    "warm_start.solve_steps=40",
    "warm_start.debate_steps=0",
    "warm_start.ramble=1",
    "warm_start.boxed=0",
)


def test_replies_without_tags_are_sent_read_and_graded_as_the_family_has_it(tmp_path):
    session = train(tiny(tmp_path, *SHORT, *TAUGHT))
    records = list(read_records(tmp_path / "transcripts/step_000000.jsonl"))
    assert all(record.mode == "lenient" for record in records)
    for record in records:
        [turn] = record.debate.turns
        messages = held_debate(record.debate).prompt(turn.id).messages
        assert raw_prompt(messages, "qa") == f"Question: {record.debate.problem.question}\nAnswer:"
        assert session.policy.encode(messages) == turn.completion.prompt_tokens
    read = [turn for record in records for turn in record.debate.turns if not turn.parsed.failures]
    assert read
    assert all(turn.parsed.untagged is True and turn.parsed.solution for turn in read)
    assert any(turn.completion.text.endswith("Question:") for turn in read)
    assert not any("Question:" in turn.parsed.solution.of(turn.completion.text) for turn in read)
    assert any(turn.parsed.answer for turn in read)
    names = {name for row in read_metrics(session.folder.metrics) for name in row}
    assert {"accuracy [boxed]", "missing [boxed]"} <= names


@pytest.mark.slow
@pytest.mark.parametrize("seed", [5])
def test_the_share_of_right_first_answers_climbs(seed, tmp_path):
    session = train(tiny(tmp_path, f"seed={seed}", "held_out.every=0"))
    right = [row["accuracy/round_0"] for row in read_metrics(session.folder.metrics)]
    third = len(right) // 3
    assert fmean(right[-third:]) - fmean(right[:third]) >= 0.10
