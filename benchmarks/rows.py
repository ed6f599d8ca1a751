"""Rows as training has them, made of random tokens: those of debates, and some that share nothing.

Rows of debates have the lengths that the shipped prompts give them: rules of 455 tokens, a problem of 150, a
task of 100, solutions of 1,000 (log-normal, .4), reviews of 300, comparisons of 200; two debates of one
problem, with a final ballot. The agents of a round read the same up to their task. In the case of long
completions 1,500 tokens of thinking, which nobody is shown, come before each reply. The plain rows share
nothing: problems of 300 tokens and solutions of 1,000, both log-normal. ``shrink`` divides all lengths.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from debate.types import TurnId
from learner.types import Row

VOCABULARY, TEMPERATURE = 32_768, 0.9


@dataclass(frozen=True, slots=True)
class Shape:
    """Debates of one problem; ``shrink`` divides every length."""

    agents: int = 3
    rounds: int = 3
    debates: int = 2
    thinking: int = 0
    shrink: int = 8


SHAPES = {
    "debate": Shape(),
    "debate_n5": Shape(agents=5),
    "debate_long_completion": Shape(thinking=1500),
}


def rows_of(name: str, shrink: int) -> list[Row]:
    """Return the rows of a case."""
    return plain_rows(24, shrink) if name == "plain" else debate_rows(replace(SHAPES[name], shrink=shrink))


def plain_rows(count: int, shrink: int) -> list[Row]:
    """Return rows that share nothing."""
    rng = np.random.default_rng(0)
    sizes = (rng.lognormal(np.log([300, 1000]), 0.4, (count, 2)) / shrink).astype(int)
    return [row(rng, text(rng, a), int(b), TurnId(0, 0), index) for index, (a, b) in enumerate(sizes)]


def debate_rows(shape: Shape) -> list[Row]:
    """Return a row for each turn of each debate."""
    rng = np.random.default_rng(0)
    begin = text(rng, 605 // shape.shrink)  # rules and problem
    return [one for number in range(shape.debates) for one in one_debate(rng, shape, begin, number)]


def one_debate(rng: np.random.Generator, shape: Shape, begin: NDArray[np.int64], number: int) -> list[Row]:
    """Return the rows of a debate: its rounds, of which each shows the one before, and a ballot."""
    rows: list[Row] = []
    shown = text(rng, 0)
    for round_ in range(shape.rounds + 1):
        review = 300 if round_ else 0
        solutions = rng.lognormal(np.log(1000), 0.4, shape.agents) * (round_ < shape.rounds)
        for agent, solution in enumerate(solutions):
            prompt = np.concatenate([begin, shown, text(rng, 100 // shape.shrink)])
            reply = solution + review + (200 if round_ else 0) + shape.thinking
            rows.append(row(rng, prompt, int(reply / shape.shrink), TurnId(agent, round_), number))
        shown = text(rng, int((solutions + review + 20).sum() / shape.shrink))
    return rows


def text(rng: np.random.Generator, tokens: int) -> NDArray[np.int64]:
    return rng.integers(0, VOCABULARY, tokens)


def row(rng: np.random.Generator, prompt: NDArray[np.int64], reply: int, turn: TurnId, debate: int) -> Row:
    """Return a row with one advantage for all its tokens."""
    ids = np.concatenate([prompt, text(rng, reply)])
    mask = np.arange(len(ids)) >= len(prompt)
    return Row(
        input_ids=ids,
        action_mask=mask,
        sampling_logprobs=np.zeros(len(ids), np.float32),
        advantages=(mask * rng.normal()).astype(np.float32),
        stream=mask.astype(np.int8),
        group_id="one",
        policy_version=0,
        turn=turn,
        temperature=TEMPERATURE,
        debate=debate,
    )
