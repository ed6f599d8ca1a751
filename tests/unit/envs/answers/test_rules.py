"""Each rule of grading on answers worked out by hand: what it returns for its arguments."""

import json
from pathlib import Path

import pytest

from envs import Grader, extract, grade
from envs.answers.formulas import parse_formula, same_value
from envs.answers.notation import clean
from envs.answers.structures import same_structure
from envs.answers.words import letter_of, same_time
from envs.grading.extraction import extract_text
from envs.grading.limits import refusal
from envs.grading.strictness import math_spelling, minerva_spelling

TOOLS = ("magnet", "thermometer", "ruler", "balance")
TABLE = Path(__file__).parents[3] / "data" / "answer_rules.jsonl"
ROWS = [json.loads(line) for line in TABLE.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def rules():
    with Grader(workers=1, limit_s=30.0) as grader:
        yield {
            "equal": lambda a, b: same_value(clean(a), clean(b)) and same_value(clean(b), clean(a)),
            "value": same_value,
            "formula": lambda text: parse_formula(text) is not None,
            "structure": same_structure,
            "time": same_time,
            "refusal": refusal,
            "hendrycks form": math_spelling,
            "minerva form": minerva_spelling,
            "verdict": lambda answer, gold, mode: grader.same_answer(answer, gold, mode=mode).status,
            "letter": lambda answer: letter_of(answer, TOOLS),
            "letter in a reply": lambda reply, gold: grade(reply, gold, choices=TOOLS).status,
            "text": lambda reply: extract_text(reply).answer,
            "extract": lambda reply, mode: extract(reply, mode=mode).answer,
        }


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_rule(rules, row):
    name, *arguments, wanted = row
    assert rules[name](*arguments) == wanted
    if name == "extract" and wanted is not None:
        span = extract(*arguments[:1], mode=arguments[1]).span
        assert span is not None
        assert span.of(arguments[0]) == wanted or not arguments[0].isascii()
