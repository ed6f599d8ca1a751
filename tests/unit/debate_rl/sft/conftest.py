"""Recipes of supervised training on files in a folder of their own."""

import json

import pytest

from debate_rl.config import Config

QA = {"num_agents": 1, "num_rounds": 1, "prompts": "qa", "max_tokens": 40}
TINY = {"hidden_size": 32, "layers": 1, "heads": 2, "intermediate_size": 48, "context_tokens": 256}
TINY |= {"fallback": "bytes", "pieces": [" right", " wrong"]}


@pytest.fixture
def rows_file(tmp_path):
    """Return write(rows, name="rows.jsonl") -> the path of a file of these rows."""

    def write(rows, name="rows.jsonl"):
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(path)

    return write


@pytest.fixture
def sft_config(tmp_path):
    """Return make(data, **tables) -> the configuration of a supervised run of a tiny model."""

    def make(*data, sft=None, debate=None, model=None, **tables):
        base = {
            "run": {"dir": str(tmp_path / "run")},
            "env": {"kind": "gsm8k"},
            "held_out": {"limit": 0},
            "debate": QA | (debate or {}),
            "model": {"device": "cpu", "chat": False, "tiny": TINY} | (model or {}),
            "sft": {"data": list(data), "batch_size": 2} | (sft or {}),
            "learner": {"lr": 1e-2, "warmup_steps": 0, "schedule": "linear"},
            "logging": {"progress": "none"},
        }
        return Config.model_validate(base | tables)

    return make
