"""Plain RLVR of a base-like model: the recipes of configs/rlvr start, and the tiny one climbs."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from statistics import fmean

import pytest

import debate_rl
from debate.prompting.rebuilding import held_debate
from debate.prompting.rendering import raw_prompt
from debate_rl.config import Config
from debate_rl.config.recipes import load_config
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


GSM8K = [{"question": f"{n} + 1?", "answer": f"It is {n + 1}.\n#### {n + 1}"} for n in range(12)]
MATH = [
    {
        "problem": f"Find ${n} + 1$.",
        "solution": f"$\\boxed{{{n + 1}}}$",
        "level": f"Level {4 + n % 2}",
        "type": "Algebra",
    }
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
    "gsm8k": (GSM8K[:8], GSM8K[8:]),
    "overfit": (GSM8K[:8], GSM8K[8:]),
    "math": (MATH[:8], MATH[8:]),
    "instructions": (INSTRUCTIONS, IFEVAL),
    "mixed": (MIXED, GSM8K),
}
TINY = "{hidden_size = 32, layers = 1, intermediate_size = 48, fallback = 'ascii', context_tokens = 2048}"
SMALL = (
    *(
        "model.name_or_path=none",
        f"model.tiny={TINY}",
        "model.policy=none",
        "model.vllm=none",
        "model.lora_rank=0",
    ),
    *("model.device=cpu", "model.dtype=auto", "debate.max_tokens=8", "debate.context_tokens=2048"),
    *("train.steps=1", "train.batch_size=2", "train.group_size=2", "held_out.limit=2"),
)


def recipes() -> list[str]:
    return sorted(
        path.stem for path in RECIPES.glob("*.toml") if "tiny" not in path.stem and path.stem != "gpu"
    )


@pytest.mark.slow
def test_replies_of_every_shipped_suite_fit_the_context_of_a_recipe():
    for name, one in product(recipes(), (*read_suite("rlvr"), *read_suite("math"))):
        debate = load_config(Config, f"rlvr/{name}", one.before).debate
        assert debate.context_tokens - debate.max_tokens >= 2048  # for the problem and four examples


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:learner.loss=dr_grpo")
@pytest.mark.parametrize("name", recipes())
def test_each_recipe_starts(name, tmp_path):
    files = [tmp_path / "train.jsonl", tmp_path / "held_out.jsonl"]
    for file, rows in zip(files, ROWS[name.partition("_")[0]], strict=True):
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    paths = (f"env.path={files[0]}", f"held_out.path={files[1]}", f"run.dir={tmp_path / 'run'}")
    own = ("learner.max_tokens=8",) if "dr_grpo" in name else ()
    config = load_config(Config, f"rlvr/{name}", [*SMALL, *paths, *own, "logging.progress=none"])
    session = train(config)
    [line] = read_metrics(session.folder.metrics)
    assert 0 <= line["accuracy/round_0"] <= 1
    assert "eval/direct/accuracy" in line


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
