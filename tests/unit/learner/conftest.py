"""Tiny models and rows for learners to read."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Qwen3Config, Qwen3ForCausalLM

from debate.personas import PERSONAS
from debate.types import Completion, ParsedTurn, Turn, TurnId
from learner import LearnerConfig, Row, Transition

VOCABULARY = 24


def config_of(**changes) -> LearnerConfig:
    return LearnerConfig.model_validate({"lr": 1e-3, "warmup_steps": 0, "max_tokens": 16, **changes})


def qwen3(seed: int = 0, **changes) -> Qwen3ForCausalLM:
    torch.manual_seed(seed)
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
    sizes = {"vocab_size": VOCABULARY, "intermediate_size": 48, "head_dim": 16, "initializer_range": 0.3}
    return Qwen3ForCausalLM(Qwen3Config(**(shape | sizes | {"tie_word_embeddings": True} | changes))).eval()


def gpt2(seed: int = 0, dropout: float = 0.0) -> GPT2LMHeadModel:
    """A model that really computes in float64 (Qwen3 rounds to float32 in its norms)."""
    torch.manual_seed(seed)
    shape = {"vocab_size": VOCABULARY, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 256}
    off = {"resid_pdrop": dropout, "embd_pdrop": dropout, "attn_pdrop": dropout}
    return GPT2LMHeadModel(GPT2Config(**shape, **off, initializer_range=0.2)).double().eval()


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


def transition_of(
    agent: int = 0, round_: int = 0, *, debate: int = 0, stop_reason: str = "stop", **rewards: float | None
) -> Transition:
    """The turn of one token of an agent at temperature 1, with these rewards."""
    said = Completion((1,), (2,), (-1.0,), "x", stop_reason, 0, (0,))
    turn = Turn(TurnId(agent, round_), "K7", (), said, ParsedTurn())
    return Transition(turn, replace(PERSONAS[agent % 5], temperature=1.0), "p", 0, debate, **rewards)


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
                prompt, reply = [*rules, *problem, *shown, *text(3)], text(rng.integers(1, 12))
                row = row_of(prompt, reply, rng.standard_normal(len(reply)), turn=TurnId(agent, round_))
                stream = np.where(row.action_mask, rng.integers(1, 3, len(row.input_ids)), 0).astype(np.int8)
                temperature = float(rng.choice([0.6, 1.0]))
                rows.append(replace(row, stream=stream, temperature=temperature, debate=debate))
    return rows
