r"""Pick the two listed numbers that sum to the target: checking takes one addition, solving takes a search.

``Target 19. Numbers 3 8 5 11 2 9.`` has exactly one pair, 8 and 11. Grading needs no gold answer: an answer
is right if it is two different listed numbers with the right sum, in either order.

| level | numbers | from  | sums up to | pairs to search |
|-------|---------|-------|------------|-----------------|
| 1     | 6       | 1..12 | 23         | 15              |
| 2     | 8       | 1..18 | 35         | 28              |
| 3     | 10      | 1..24 | 47         | 45              |

Every number follows one space, so that a tokenizer can have one token per number, such as ``" 7"``.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import ClassVar, TypeAlias

from debate.types import Kind, Problem
from envs.families.synthetic import SyntheticFamily, matched

LEVELS = {"1": (6, 12), "2": (8, 18), "3": (10, 24)}  # level: (number of numbers, largest number)

Pair: TypeAlias = tuple[int, int]

_QUESTION = re.compile(r"Target (\d+)\. Numbers((?: \d+)+)\.\Z", re.ASCII)
_PAIR = re.compile(r"[\s({\\\[]*(\d{1,4})(?:\s*(?:[,+&]|and)\s*|\s+)(\d{1,4})[\s)}\\\].]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class PairSum(SyntheticFamily):
    """The family as an environment, with some of its levels; an attempt is a pair of numbers."""

    levels: tuple[str, ...] = tuple(LEVELS)
    name: str = "pair_sum"
    kind: ClassVar[Kind] = "expression"

    def draw(self, rng: random.Random, level: str) -> tuple[str, str, str]:
        """Return the canonical form (the target and the sorted numbers), the question and the answer."""
        count, largest = LEVELS[level]
        while True:
            numbers = rng.sample(range(1, largest + 1), count)
            target = sum(rng.sample(numbers, 2))
            if sum(a + b == target for a, b in combinations(numbers, 2)) == 1:
                break
        answer = next(pair for pair in combinations(sorted(numbers), 2) if sum(pair) == target)
        question = f"Target {target}. Numbers {' '.join(map(str, numbers))}."
        return f"{target}:{','.join(map(str, sorted(numbers)))}", question, f"{answer[0]} {answer[1]}"

    def read_answer(self, answer: str) -> Pair | None:
        r"""Return the two numbers of an answer in the order written; None for any other answer.

        >>> [PairSum().read_answer(answer) for answer in (" 11 8", r"\{8, 11\}", "8 + 11", "8 11 3", "19")]
        [(11, 8), (8, 11), (8, 11), None, None]
        """
        match = _PAIR.fullmatch(answer) if len(answer) <= 64 else None
        return (int(match[1]), int(match[2])) if match else None

    def is_right(self, problem: Problem, answer: str) -> bool:
        """Return whether the answer is two different listed numbers that sum to the target."""
        pair = self.read_answer(answer)
        return pair is not None and _has_the_sum(problem, pair)

    def spelled(self, said: Pair) -> str:
        """Return the pair in ascending order, because the order of an answer does not matter."""
        return f"{min(said)} {max(said)}"

    def check(self, problem: Problem, said: Pair, *, lured: bool) -> tuple[str, bool]:
        """Return the sum as text, and whether the pair is right (``lured``: is the first two numbers)."""
        lure = set(read_question(problem.question)[1][:2])
        holds = set(said) == lure if lured else _has_the_sum(problem, said)
        return f" {said[0]} + {said[1]} = {sum(said)}", holds

    def fault(self, problem: Problem, answer: str) -> str | None:
        """Return what is wrong with a pair; None for the right one and for an answer that is not a pair."""
        pair, (target, numbers) = self.read_answer(answer), read_question(problem.question)
        if pair is None:
            return None
        if pair[0] == pair[1] or not set(pair) <= set(numbers):
            return "a number that is not listed"
        return None if sum(pair) == target else "a sum that misses the target"

    def attempt(self, problem: Problem, rng: random.Random, *, right: float = 1.0, lure: float = 0.0) -> Pair:
        """Return a pair, the number listed later first: right, or as a lure the first two, or any pair."""
        target, numbers = read_question(problem.question)
        draw = rng.random()
        if draw < right:
            pair = next(pair for pair in combinations(numbers, 2) if sum(pair) == target)
        elif draw < right + lure:
            pair = numbers[:2]
        else:
            pair = rng.choice(list(combinations(numbers, 2)))
        return pair[1], pair[0]

    def write_solution(self, problem: Problem, attempt: Pair) -> str:
        """Return the solution text of a pair."""
        return f" {attempt[0]} + {attempt[1]} = {sum(attempt)}. \\boxed{{ {attempt[0]} {attempt[1]}}}"

    def invent(self, problem: Problem, rng: random.Random) -> Pair | None:
        """Return a pair with the right sum in which one number is not listed; None if no such pair exists.

        >>> sorted(PairSum().invent(Problem("p", "Target 7. Numbers 3 9 8."), random.Random(0)))
        [3, 4]
        """
        target, numbers = read_question(problem.question)
        partners = [n for n in numbers if 0 < target - n <= max(numbers) and target - n not in numbers]
        if not partners:
            return None
        listed = rng.choice(partners)
        return (listed, target - listed) if rng.random() < 0.5 else (target - listed, listed)

    def write_lie(self, problem: Problem, attempt: Pair) -> str:
        """Return a solution text that falsely states that the pair sums to the target."""
        target = read_question(problem.question)[0]
        return f" {attempt[0]} + {attempt[1]} = {target}. \\boxed{{ {attempt[0]} {attempt[1]}}}"

    def vocabulary(self) -> tuple[str, ...]:
        """Return every token; the numbers end at the largest sum and one more: at level 1 at " 24"."""
        largest = max(LEVELS[level][1] for level in self.levels)
        pieces = ("Target", " Numbers", ".", " ", " +", " =", " right", " wrong", " none")
        pieces += ("\\boxed{", " \\boxed{", "}")
        return (*pieces, *(f" {n}" for n in range(2 * largest + 1)))


@lru_cache(maxsize=4096)
def read_question(question: str) -> tuple[int, tuple[int, ...]]:
    """Return the target and the numbers in the order of the question.

    >>> read_question("Target 19. Numbers 3 8 5 11 2 9.")
    (19, (3, 8, 5, 11, 2, 9))
    """
    match = matched(_QUESTION, question, "a pair-sum problem ('Target 19. Numbers 3 8 5.')")
    return int(match[1]), tuple(map(int, match[2].split()))


def _has_the_sum(problem: Problem, pair: Pair) -> bool:
    target, numbers = read_question(problem.question)
    return pair[0] != pair[1] and set(pair) <= set(numbers) and sum(pair) == target


FAMILY = PairSum()
