"""Each recipe of configs/seeds trains: its own switches, with a tiny model, small data and one step."""

from __future__ import annotations

import json

import pytest

from debate_rl.config import Config
from debate_rl.config.recipes import load_config, shipped_recipes
from debate_rl.metrics.step_log import read_metrics
from debate_rl.sft.session import REPLIES, open_replies
from debate_rl.training.loop import train, train_steps

TINY = "{hidden_size = 32, layers = 1, intermediate_size = 48, fallback = 'ascii', context_tokens = 4096}"
SMALL = (
    *("model.name_or_path=none", f"model.tiny={TINY}", "model.policy=none", "model.vllm=none"),
    *("model.lora_rank=0", "model.device=cpu", "model.dtype=auto", "debate.max_tokens=8"),
    *("debate.context_tokens=4096", "warm_start=none", "train.steps=1", "train.batch_size=2"),
    *("train.group_size=4", "held_out.limit=2", "logging.progress=none", "learner.lr=1e-3"),
)
KEPT = {
    "debate": ("num_agents", "num_rounds", "prompts", "stop", "temperature", "personas"),
    "learner": ("loss", "beta", "adam_eps", "schedule"),
    "rewards": ("truth_weight", "truth_wrong", "form_bonus", "novelty_bonus"),
    "grader": ("mode", "beside"),
}
"""What the small run has as the recipe says."""
RECIPES = sorted(name for name in shipped_recipes() if name.startswith("seeds/") and "tiny" not in name)


@pytest.fixture
def files(tmp_path):
    """Problems to train on and to hold out, measured pass rates of the former, and replies to learn."""
    rows = [
        {"id": f"p{n}", "question": f"{n} + 1?", "answer": str(n + 1), "level": 3 + n % 3} for n in range(20)
    ]
    names = ("train", "held_out", "more", "replies")
    paths = {name: tmp_path / f"{name}.jsonl" for name in names}
    replies = [{"question": row["question"], "reply": f"It is {row['answer']}."} for row in rows[12:]]
    for name, some in zip(names, (rows[:8], rows[8:10], rows[10:12], replies), strict=True):
        paths[name].write_text("".join(json.dumps(row) + "\n" for row in some))
    return paths


def small(name: str, files, folder) -> Config:
    whole = load_config(Config, name)
    data = ["env.kind=file", f"env.path={files['train']}", "env.levels=none", "env.difficulty=none"]
    data += ["env.mix=none", "env.limit=none", "env.decontaminate=none", "env.split=train"]
    data += ["held_out.kind=none", f"held_out.path={files['held_out']}", "held_out.more=none"]
    own = ["learner.max_tokens=8"] if whole.learner.loss == "dr_grpo" else []
    own += (
        [f"sft.data=['{files['replies']}']", "sft.epochs=1", "sft.batch_size=2", "sft.held_back=0"]
        if whole.sft.data
        else []
    )
    own += ["train.adaptive.chunk=2"] if whole.train.adaptive else []
    return load_config(Config, name, [*SMALL, *data, *own, f"run.dir={folder}"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:learner.loss=dr_grpo", "ignore:grader.mode", "ignore:learner.loss = .ppo")
@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_of_the_notes_trains_in_miniature(name, files, tmp_path):
    whole, config = load_config(Config, name), small(name, files, tmp_path / "run")
    for table, keys in KEPT.items():
        for key in keys:
            assert getattr(getattr(config, table), key) == getattr(getattr(whole, table), key)
    if config.sft.data:
        with open_replies(config) as session:
            train_steps(session, REPLIES)
        assert all("loss" in line for line in read_metrics(session.folder.metrics))
        return
    session = train(config)
    [line] = read_metrics(session.folder.metrics)
    assert 0 <= line["accuracy/round_0"] <= 1
    assert "eval/direct/accuracy" in line
    assert ("eval/debate/winner/accuracy" in line) == (config.debate.num_agents > 1)
