"""Made-up problems with right and wrong solutions, from a seed: what the example is of."""

from __future__ import annotations

from random import Random

from debate.seeds import derive_seed
from debate.types import Problem
from reports.simulation.solutions import Solved

SOLUTIONS = 6
RIGHT = (0.8, 0.5, 0.3)
"""The chance of a right solution, by level."""
LARGEST = (9, 30, 90)
ASIDES = (
    "Let me take it in two steps.",
    "First the bracket, then the product, as the order of operations wants.",
    "I check each step by doing it backwards before I go on.",
)


def made_solutions(problems: int, *, seed: int) -> list[Solved]:
    """Return problems of three levels with six solutions each.

    >>> [one.problem.question for one in made_solutions(2, seed=0)]
    ['What is (4 + 9) * 6?', 'What is (15 + 10) * 11?']
    """
    return [_made(number, Random(derive_seed(seed, "made", number))) for number in range(problems)]


def _made(number: int, rng: Random) -> Solved:
    level = number % len(RIGHT)
    a, b, c = (rng.randint(2, LARGEST[level]) for _ in range(3))
    problem = Problem(
        f"made/{number}",
        f"What is ({a} + {b}) * {c}?",
        str((a + b) * c),
        "made/arithmetic",
        f"Level {level + 1}",
        "number",
    )
    right = [rng.random() < RIGHT[level] for _ in range(SOLUTIONS)]
    texts = tuple(_solution(a, b, c, one, rng) for one in right)
    return Solved(problem, texts, tuple(right))


def _solution(a: int, b: int, c: int, right: bool, rng: Random) -> str:
    """Return two steps with, unless ``right``, a slip in one of them, and up to three asides."""
    slip = 0 if right else rng.choice((-10, -2, -1, 1, 2, 10))
    early = rng.random() < 0.5
    total = a + b + (slip if early else 0)
    product = total * c + (0 if early else slip)
    steps = f"{a} + {b} = {total}. {total} * {c} = {product}. So it is \\boxed{{{product}}}."
    return " ".join((*rng.sample(ASIDES, rng.randint(0, 2)), steps))
