from itertools import product
from pathlib import Path
from statistics import fmean

import pytest

import debate_rl
from debate.prompting.rebuilding import held_debate
from debate.prompting.rendering import raw_prompt
from debate_rl.config import Config
from debate_rl.config.recipes import load_config, shipped_recipes
from debate_rl.evaluation.suite import read_suite
from debate_rl.metrics.step_log import read_metrics
from debate_rl.training.loop import train
from transcripts import read_records

RECIPES = Path(debate_rl.__file__).parents[1] / "configs/rlvr"


def tiny(folder: Path, *overrides: str) -> Config:
    common = (f"run.dir={folder}", "logging.progress=none")
    return load_config(Config, RECIPES / "tiny.toml", [*common, *overrides])


SHORT = ("train.steps=1", "train.batch_size=2", "train.group_size=4", "held_out.limit=4")
TAUGHT = (
    "warm_start.solve_steps=40",
    "warm_start.debate_steps=0",
    "warm_start.ramble=1",
    "warm_start.boxed=0",
)


@pytest.mark.slow
def test_replies_without_tags_are_sent_read_and_graded_as_the_family_has_it(tmp_path, debate_command):
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
    code, out, err = debate_command("report", str(tmp_path))
    assert code == 0, err
    assert not any(word in out for word in ("judge/accuracy", "winner:wrong"))  # nobody votes


@pytest.mark.slow
def test_replies_of_every_shipped_suite_fit_the_context_of_a_recipe():
    left = ("rlvr/gpu", "rlvr/tiny", "rlvr/overfit_tiny")
    recipes = [one for one in shipped_recipes() if one.startswith("rlvr/") and one not in left]
    for name, one in product(recipes, (*read_suite("rlvr"), *read_suite("math"))):
        debate = load_config(Config, name, one.before).debate
        assert debate.context_tokens - debate.max_tokens >= 2048  # for the problem and four examples


@pytest.mark.slow
def test_ten_problems_are_learnt_by_heart(tmp_path):
    config = load_config(Config, "rlvr/overfit_tiny", [f"run.dir={tmp_path}", "logging.progress=none"])
    right = [row["accuracy/round_0"] for row in read_metrics(train(config).folder.metrics)]
    assert fmean(right[-3:]) - fmean(right[:3]) >= 0.3


@pytest.mark.slow
def test_the_share_of_right_first_answers_climbs(tmp_path):
    session = train(tiny(tmp_path, "seed=5", "held_out.every=0", "train.steps=30"))
    right = [row["accuracy/round_0"] for row in read_metrics(session.folder.metrics)]
    third = len(right) // 3
    assert fmean(right[-third:]) - fmean(right[:third]) >= 0.10
