"""What can be seen to be wrong: the rules of any problem first, then those of its family."""

from __future__ import annotations

import pytest

from debate import Problem
from envs.causes.faults import UNSEEN, fault_of
from envs.causes.rules import WrongReply

PAIR = Problem("p", "Target 19. Numbers 3 8 5 11 2 9.", "8 11", source="pair_sum")
STORY = Problem("w", "Tom has 8 apples. Tom loses 3. How many apples?", "5", source="words", kind="number")


@pytest.mark.parametrize(
    ("problem", "text", "answer", "kind"),
    [
        (PAIR, "12 + 7 = 19.", "12 7", "a number that is not listed"),
        (PAIR, "8 + 8 = 16.", "8 8", "a number that is not listed"),  # listed once
        (PAIR, "3 + 9 = 12.", "3 9", "a sum that misses the target"),
        (PAIR, "3 + 9 = 19.", "3 9", "a false equation"),
        (PAIR, "It is 19.", "19", UNSEEN),  # no pair
        (PAIR, "3 9", None, "no answer"),
        (STORY, "8 + 3 = 11.", "11", '"loses" read as "gets"'),
        (STORY, "8 - 4 = 4.", "4", UNSEEN),
        (Problem("x", "Two numbers?", "1 2", source="pair_sum"), "3 9", "3 9", UNSEEN),
        (Problem("y", "What is 2 + 2?", "4"), "2 + 2 = 5.", "5", "a false equation"),
        (Problem("y", "What is 2 + 2?", "4"), "so " * 400, "5", "incoherent"),
    ],
)
def test_the_first_kind_that_applies(problem, text, answer, kind):
    assert fault_of(WrongReply(problem, text, missing=False, cut=False), answer) == kind
