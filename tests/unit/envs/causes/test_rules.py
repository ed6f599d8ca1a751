"""Why a reply is wrong: each rule, their order, and where they say nothing."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from debate import Problem
from envs.causes.rules import CAUSES, UNSEEN, WrongReply, cause_of, fault_of, is_incoherent

SUM = Problem("p", "What is 12 * 4 + 17?", answer="65", kind="number")
DATA = Path(os.environ.get("DEBATE_TEST_DATA", "nowhere"))
CIRCLES = "Then we add 1 to it and see what comes of it in the end. " * 40


def cause(text, problem=SUM, *, missing=False, cut=False):
    return cause_of(WrongReply(problem, text, missing, cut)).name


@pytest.mark.parametrize(
    ("text", "missing", "cut", "name"),
    [
        ("It is 65. The answer is 65.", True, False, "extraction"),
        ("So it is 65", True, True, "extraction"),  # the last number, where nothing was found
        ("So it is 65", False, False, "not_known"),  # but not where another answer was found
        *(("#### 65\n\\boxed{64}", False, False, "extraction"), (CIRCLES, True, True, "incoherent")),
        *(("4" * 100, True, False, "incoherent"), ("First 12 * 4 =", True, True, "cut_off")),
        ("First 12 * 4 =", True, False, "not_known"),  # it ended by itself
        (r"It goes on. \boxed{55} and", False, True, "not_known"),  # it had answered
        (r"12 * 4 = 48 and 48 + 17 = 55: \boxed{55}", False, False, "arithmetic"),
        (r"12 + 4 + 17 = 33: \boxed{33}", False, False, "not_known"),  # misread: no rule can tell
        ("", True, False, "not_known"),
    ],
)
def test_each_rule_in_its_order(text, missing, cut, name):
    assert cause(text, missing=missing, cut=cut) == name


def test_the_false_equation_is_quoted():
    text = "As 3 + 4 = 8, it is 8."
    found = cause_of(WrongReply(SUM, text, missing=False, cut=False))
    assert found.where.of(text) == "3 + 4 = 8"


def test_kinds_without_modes_have_no_extraction():
    for kind, answer in (("text", "65"), ("open", None), ("instructions", "[]")):
        problem = Problem("p", "?", answer=answer, kind=kind)
        assert cause("The answer is 65.", problem, missing=True) == "not_known"


def test_a_family_says_itself_what_is_right():
    problem = Problem("p", "Target 17. Numbers 7 10 8 3 2 6.", "7 10", "pair_sum", "1", "expression")
    assert cause(r"\boxed{8 9}", problem) == "not_known"
    assert cause(r"The answer is 10 7", problem, missing=True) == "extraction"


def test_a_choice_is_stated_by_its_letter():
    problem = Problem("p", "Which?", answer="B", kind="choice", choices=("one", "two"))
    assert cause("The answer is (B).", problem, missing=True) == "extraction"
    assert cause("The answer is (A).", problem) == "not_known"


def test_solutions_that_list_cases_are_coherent_and_strange_characters_are_not():
    listed = "\n".join(f"- {n} / 7 = {n / 7:.3f}, so {n} is no multiple of 7." for n in range(1, 80))
    assert not is_incoherent(listed)
    assert is_incoherent("\ue000\x00\ufffd" * 9)
    assert not is_incoherent("日本語の解答は四です。" * 2)


@pytest.mark.skipif(not (DATA / "model_outputs_gsm8k.jsonl").exists(), reason="no real outputs")
@pytest.mark.parametrize("name", ["gsm8k", "math"])
def test_on_real_outputs_no_wrong_one_is_said_to_be_right_and_no_right_one_to_be_incoherent(name):
    """Of right solutions graded by a form they do not have, extraction is the cause; arithmetic is rare."""
    kind = "number" if name == "gsm8k" else "expression"
    found = {True: Counter(), False: Counter()}
    for line in (DATA / f"model_outputs_{name}.jsonl").read_text().splitlines()[::3]:
        row = json.loads(line)
        problem = Problem("p", row["question"], answer=row["gold"], kind=kind)
        found[row["expected"]][cause(row["output"], problem, missing=row["expected"])] += 1
    assert set(found[True]) | set(found[False]) <= set(CAUSES)
    assert found[True]["extraction"] >= 0.98 * found[True].total()
    assert found[False]["extraction"] <= 0.01 * found[False].total()
    assert not found[True]["incoherent"]


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
        *((PAIR, "3 9", None, "no answer"), (STORY, "8 + 3 = 11.", "11", '"loses" read as "gets"')),
        (STORY, "8 - 4 = 4.", "4", UNSEEN),
        (Problem("x", "Two numbers?", "1 2", source="pair_sum"), "3 9", "3 9", UNSEEN),
        (Problem("y", "What is 2 + 2?", "4"), "2 + 2 = 5.", "5", "a false equation"),
        (Problem("y", "What is 2 + 2?", "4"), "so " * 400, "5", "incoherent"),
    ],
)
def test_the_first_kind_that_applies(problem, text, answer, kind):
    assert fault_of(WrongReply(problem, text, missing=False, cut=False), answer) == kind
