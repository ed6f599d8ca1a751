"""Weights of solutions from log-probabilities, by hand."""

from __future__ import annotations

from math import exp, log

import pytest

from debate import Completion, DebateConfig, Problem
from debate.concurrency import run_async
from debate_rl.strategies.confidence import mean_probability, sampled_logprobs, tail_probability
from debate_rl.strategies.logprob_vote import logprob_vote
from debate_rl.strategies.tail_vote import tail_vote
from debate_rl.strategies.types import Asked, Share
from envs import load_environment


class Sure:
    """Says each answer with these log-probabilities of its tokens."""

    version = 0

    def __init__(self, *said):
        self.said = said

    async def sample(self, request):
        answer, logprobs = self.said[request.turn.agent]
        text = f"<solution>\\boxed{{{answer}}}</solution>"
        return Completion((), tuple(range(len(logprobs))), tuple(logprobs), text, "stop", 0)

    async def update(self, weights, version):
        raise NotImplementedError


def answered(strategy, *said):
    asked = Asked(
        Problem("p", "?", answer="4"),
        Sure(*said),
        DebateConfig(),
        load_environment("gsm8k"),
        samples=len(said),
    )
    return run_async(strategy(asked))


def test_one_sure_solution_outweighs_two_unsure_ones():
    half, tenth = log(0.5), log(0.1)
    found = answered(logprob_vote, ("4", [half, half]), ("5", [tenth, tenth]), ("5", [tenth] * 9))
    assert found.answer == "4"
    assert found.shares == (Share("4", pytest.approx(0.5 / 0.7)), Share("5", pytest.approx(0.2 / 0.7)))


def test_the_tail_is_the_last_quarter():
    sure, unsure = log(0.9), log(0.1)
    found = answered(tail_vote, ("4", [unsure] * 6 + [sure] * 2), ("5", [sure] * 6 + [unsure] * 2))
    assert found.answer == "4"
    assert found.shares[0].share == pytest.approx(0.9)


def test_tokens_written_by_force_do_not_count():
    completion = Completion((), (1, 2, 3), (-1.0, 0.0, -3.0), "x", "stop", 0, forced=(1,))
    assert sampled_logprobs(completion) == [-1.0, -3.0]


def test_a_server_without_logprobs_is_one_clear_line():
    for strategy in (logprob_vote, tail_vote):
        with pytest.raises(ValueError, match="log-probabilities of their tokens, and the server gives none"):
            answered(strategy, ("4", []))


def test_weights_are_probabilities():
    class One:
        completion = Completion((), (1, 2), (-1.0, -2.0), "x", "stop", 0)

    assert mean_probability(One) == pytest.approx(exp(-1.5))
    assert tail_probability(One) == pytest.approx(exp(-2.0))
