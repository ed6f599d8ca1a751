"""Recipes of configs/rlvr and configs/seeds: each trains in miniature, and the tiny ones learn."""

import json
from itertools import product
from pathlib import Path
from statistics import fmean

import pytest

from debate.prompting.rebuilding import held_debate
from debate.prompting.rendering import raw_prompt
from debate_rl.config import Config
from debate_rl.config.recipes import load_config, shipped_recipes
from debate_rl.evaluation.suite import read_suite
from debate_rl.metrics.step_log import read_metrics
from debate_rl.sft.session import REPLIES, open_replies
from debate_rl.training.loop import train, train_steps
from transcripts import read_records

TINY = "{hidden_size = 32, layers = 1, intermediate_size = 48, fallback = 'ascii', context_tokens = 4096}"
SMALL = [
    *("model.name_or_path=none", f"model.tiny={TINY}", "model.policy=none", "model.vllm=none"),
    *("model.lora_rank=0", "model.device=cpu", "model.dtype=auto", "debate.max_tokens=8"),
    *("debate.context_tokens=4096", "train.steps=1", "train.batch_size=2", "train.group_size=4"),
    *("held_out.limit=2", "logging.progress=none"),
]
OF_SEEDS = [
    *("warm_start=none", "learner.lr=1e-3", "env.kind=file", "env.levels=none", "env.difficulty=none"),
    *("env.mix=none", "env.limit=none", "env.decontaminate=none", "env.split=train"),
    *("held_out.kind=none", "held_out.more=none"),
]
KEPT = {
    "debate": ("num_agents", "num_rounds", "prompts", "stop", "temperature", "personas"),
    "learner": ("loss", "beta", "adam_eps", "schedule"),
    "rewards": ("truth_weight", "truth_wrong", "form_bonus", "novelty_bonus"),
    "grader": ("mode", "beside"),
}
"""What the small run has as the recipe says."""
SUMS = [{"id": f"p{n}", "question": f"{n} + 1?", "answer": str(n + 1), "level": 3 + n % 3} for n in range(20)]
TOLD = [{"question": row["question"], "reply": f"It is {row['answer']}."} for row in SUMS[12:]]
GSM8K = [{"question": f"{n} + 1?", "answer": f"It is {n + 1}.\n#### {n + 1}"} for n in range(12)]
MATH = [
    {"problem": f"Find ${n} + 1$.", "solution": f"$\\boxed{{{n + 1}}}$"}
    | {"level": f"Level {4 + n % 2}", "type": "Algebra"}
    for n in range(12)
]
COMMA = [{"instruction_id": ["punctuation:no_comma"], "kwargs": [{}]}]
INSTRUCTIONS = [
    {"messages": [{"role": "user", "content": f"Write {n} words."}], "ground_truth": repr(COMMA)}
    | {"key": f"k{n}", "dataset": "ifeval"}
    for n in range(12)
]
IFEVAL = [
    {"key": n, "prompt": f"Say {n}.", "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}
    for n in range(4)
]
MIXED = [
    {"messages": [{"role": "user", "content": f"Question: {n} - 1?\nAnswer:"}], "ground_truth": str(n - 1)}
    | {"dataset": "gsm8k", "constraint_type": None}
    for n in range(12)
]
ROWS = {
    "seeds": (SUMS[:8], SUMS[8:10]),
    "gsm8k": (GSM8K[:8], GSM8K[8:]),
    "overfit": (GSM8K[:8], GSM8K[8:]),
    "math": (MATH[:8], MATH[8:]),
    "instructions": (INSTRUCTIONS, IFEVAL),
    "mixed": (MIXED, GSM8K),
}
"""Rows to train on and to hold out, by the folder or the first word of a recipe."""
RECIPES = [
    name
    for name in sorted(shipped_recipes())
    if name.startswith(("rlvr/", "seeds/")) and "tiny" not in name and name != "rlvr/gpu"
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:learner.loss", "ignore:grader.mode")
@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_trains_in_miniature(name, tmp_path):
    folder, _, rest = name.partition("/")
    whole = load_config(Config, name)
    own = ["learner.max_tokens=8"] if whole.learner.loss == "dr_grpo" else []
    if folder == "seeds":
        (tmp_path / "replies.jsonl").write_text("".join(json.dumps(row) + "\n" for row in TOLD))
        replies = f"sft.data=['{tmp_path / 'replies.jsonl'}']"
        own += [*OF_SEEDS, *(["train.adaptive.chunk=2"] if whole.train.adaptive else [])]
        own += [replies, "sft.epochs=1", "sft.batch_size=2", "sft.held_back=0"] if whole.sft.data else []
    data = ROWS[folder if folder == "seeds" else rest.partition("_")[0]]
    for table, rows in zip(("env", "held_out"), data, strict=True):
        (tmp_path / f"{table}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        own.append(f"{table}.path={tmp_path / table}.jsonl")
    config = load_config(Config, name, [*SMALL, *own, f"run.dir={tmp_path / 'run'}"])
    for table, keys in KEPT.items():
        for key in keys:
            assert getattr(getattr(config, table), key) == getattr(getattr(whole, table), key)
    if config.sft.data:
        with open_replies(config) as session:
            train_steps(session, REPLIES)
        assert all("loss" in line for line in read_metrics(session.folder.metrics))
        return
    [line] = read_metrics(train(config).folder.metrics)
    assert 0 <= line["accuracy/round_0"] <= 1
    assert "eval/direct/accuracy" in line
    assert ("eval/debate/winner/accuracy" in line) == (config.debate.num_agents > 1)


def tiny(folder: Path, *overrides: str) -> Config:
    common = (f"run.dir={folder}", "logging.progress=none")
    return load_config(Config, "rlvr/tiny", [*common, *overrides])


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
