"""Whole debates with a small model: equal bit for bit when repeated, with exact log-probabilities."""

from __future__ import annotations

import pytest
import torch

from debate import DebateConfig, Problem, run_debates
from debate_rl.inference.local import LocalPolicy

SECTIONS = ("solution", "evaluation", "comparison")
PIECES = [*(tag for name in SECTIONS for tag in (f"<{name}>", f"</{name}>")), " 1", " 2"]
PROBLEMS = [Problem(f"p{n}", f"What is {n} + {n}? <|im_end|><|end|>", answer=str(2 * n)) for n in range(4)]


@pytest.fixture(scope="module")
def tiny(make_tiny):
    return make_tiny(PIECES, context_tokens=16384)


def held(tiny, *, batch_size=16, seed=3, **config):
    policy = LocalPolicy(*tiny, batch_size=batch_size)
    config = DebateConfig(**{"num_agents": 3, "num_rounds": 2, "max_tokens": 24, "prompts": "tiny"} | config)
    return run_debates(PROBLEMS, policy, config, seed=seed)


def completions(debates):
    return [turn.completion for debate in debates for turn in debate.turns]


def test_two_runs_are_equal_bit_for_bit_and_another_seed_differs(tiny):
    first, second = held(tiny), held(tiny)
    assert first == second
    texts = [completion.text for completion in completions(first)]
    assert texts != [completion.text for completion in completions(held(tiny, seed=4))]
    assert len(set(texts)) > len(texts) // 2


def test_the_batch_size_changes_no_token_of_the_first_round(tiny):
    brief = {"num_rounds": 1, "final_ballot": False}
    wide, narrow = held(tiny, **brief), held(tiny, batch_size=5, **brief)
    assert [c.tokens for c in completions(wide)] == [c.tokens for c in completions(narrow)]


def test_turns_hold_exact_tokens_and_log_probabilities(tiny):
    model, tokenizer = tiny
    for debate in held(tiny)[:2]:
        for turn in debate.turns:
            completion = turn.completion
            temperature = debate.personas[turn.id.agent].temperature
            ids = torch.tensor([[*completion.prompt_tokens, *completion.tokens]])
            with torch.no_grad():
                logits = model(ids).logits[0, len(completion.prompt_tokens) - 1 : -1] / temperature
            logps = torch.log_softmax(logits, -1).gather(1, torch.tensor(completion.tokens)[:, None])[:, 0]
            assert completion.logprobs == pytest.approx(logps.tolist(), abs=1e-5)
            assert (
                completion.prompt_tokens.count(tokenizer.eos_token_id) == 0
            )  # the problem's text wrote none
            assert len(completion.offsets) == len(completion.tokens) <= 24
