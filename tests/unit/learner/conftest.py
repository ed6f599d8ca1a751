"""Rows for learners to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from debate.types import TurnId
from learner import LearnerConfig, Row

VOCABULARY = 24


def config_of(**changes) -> LearnerConfig:
    return LearnerConfig.model_validate({"lr": 1e-3, "warmup_steps": 0, "max_tokens": 16, **changes})


def row_of(prompt: Sequence[int], completion: Sequence[int], advantages: Sequence[float], **changes) -> Row:
    length = len(prompt) + len(completion)
    mask = np.arange(length) >= len(prompt)
    row = Row(
        input_ids=np.array([*prompt, *completion], np.int64),
        action_mask=mask,
        sampling_logprobs=np.where(mask, -3.0, 0.0).astype(np.float32),
        advantages=np.array([0.0] * len(prompt) + list(advantages), np.float32),
        stream=mask.astype(np.int8),
        group_id="p",
        policy_version=0,
        turn=TurnId(0, 0),
    )
    return replace(row, **changes)


def random_rows(count: int = 12, *, seed: int = 0) -> list[Row]:
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        prompt, completion = rng.integers(2, 8), rng.integers(1, 12)
        tokens = rng.integers(0, VOCABULARY, prompt + completion)
        advantages = rng.standard_normal(completion)
        row = row_of(tokens[:prompt].tolist(), tokens[prompt:].tolist(), advantages.tolist())
        stream = np.where(row.action_mask, rng.integers(1, 3, len(tokens)), 0).astype(np.int8)
        rows.append(replace(row, stream=stream, temperature=float(rng.choice([0.6, 1.0]))))
    return rows


@pytest.fixture(scope="session")
def debate_rows():
    """Return make(debates=2, rounds=2, agents=3, seed=0) -> rows as debates leave them."""
    return make_rows


def make_rows(*, debates: int = 2, rounds: int = 2, agents: int = 3, seed: int = 0) -> list[Row]:
    """Rows as debates leave them: rules, a problem, what was shown, who one is, and a reply."""
    rng = np.random.default_rng(seed)

    def text(size):
        return rng.integers(0, VOCABULARY, size)

    rules, problem, rows = text(40), text(36), []
    for debate in range(debates):
        for round_ in range(rounds):
            shown = text(34 * round_)
            for agent in range(agents):
                prompt = np.concatenate([rules, problem, shown, text(3)])
                ids = np.concatenate([prompt, text(rng.integers(1, 12))])
                mask = np.arange(len(ids)) >= len(prompt)
                rows.append(
                    Row(
                        input_ids=ids,
                        action_mask=mask,
                        sampling_logprobs=np.where(mask, -3.0, 0.0).astype(np.float32),
                        advantages=np.where(mask, rng.standard_normal(len(ids)), 0.0).astype(np.float32),
                        stream=np.where(mask, rng.integers(1, 3, len(ids)), 0).astype(np.int8),
                        group_id="p",
                        policy_version=0,
                        turn=TurnId(agent, round_),
                        temperature=float(rng.choice([0.6, 1.0])),
                        debate=debate,
                    )
                )
    return rows
