"""Each recipe of configs/rlvr and configs/seeds trains: its own switches, a tiny model, one step."""

import json

import pytest

from debate_rl.config import Config
from debate_rl.config.recipes import load_config, shipped_recipes
from debate_rl.metrics.step_log import read_metrics
from debate_rl.sft.session import REPLIES, open_replies
from debate_rl.training.loop import train, train_steps

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
