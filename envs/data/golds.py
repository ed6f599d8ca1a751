r"""Read gold answers: one function for each place where data sets keep them, from a row to the answer's text.

Each raises the row's error if there is none, or one that no reply could ever equal: a bad gold is reported
when it is loaded, not when a reply is rewarded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from envs.answers.notation import clean, spelling
from envs.answers.numbers import parse_number
from envs.data.options import choice
from envs.data.records import Record
from envs.extraction.boxes import last_box
from envs.grading.limits import refusal

Gold: TypeAlias = Callable[[Record, tuple[str, ...]], str]

# MATH problems whose published solution ends in an empty box. Both solutions prove that no number in the list
# is prime, so the number of primes is 0, and 0 is among the choices the problem prints.
EMPTY_BOXES = {
    "For any integer $n>1$, the number of prime numbers greater than $n!+1$": "0",
    "You are given a sequence of $58$ terms; each term has the form $P+n$": "0",
}

NO_VALUES = frozenset(("nan", "inf", "+inf", "-inf"))
"""Values that are not numbers, written as text."""

# One published box of Minerva leaves mathematics and comes back.
_INNER_DOLLARS = re.compile(r"(?<=\S)\$\s+\$(?=\S)")
# One published interval was "t in (0, 4]".
_LOST_MEMBER = re.compile(r"^[a-z](?=[(\[][^()\[\]]+[)\]]$)")
_BARE_POINT = re.compile(r"(?<=\d)\.(?=/)")
_BRACE = re.compile(r"\\\\|\\[{}]|[{}]")
_AFTER_HASHES = re.compile(r"####\s*(.+?)\s*$")


def plain(row: Record, choices: tuple[str, ...]) -> str:
    """The answer field as it is; a choice as its letter."""
    names = ("answer", "expected_answer", "target")
    text = row.text("answer", *names)
    return choice(row, choices) if choices else usable(row, row.field("answer", *names), text)


def usable(row: Record, field: str, answer: str) -> str:
    """Return the answer; raise the row's error if nothing could ever equal it."""
    if fault := fault_of(answer):
        raise row.error(field, fault, answer)
    return answer


def fault_of(answer: str) -> str | None:
    r"""Return what makes a gold answer unusable, as the end of a sentence; None if it is sound.

    >>> [fault_of(gold) for gold in (r"\frac{1}{2}", "[0, 1)", "nan", r"\boxed{}", "$$")]
    [None, None, 'is not a finite number', 'is an empty box', 'holds no answer']
    >>> fault_of(r"\frac{1}{2"), fault_of("9^9^9^9")
    ('does not parse: its braces are not balanced', "does not parse: it breaks the grader's bound on tower")
    """
    box = last_box(answer)
    if answer.strip().lower() in NO_VALUES:
        return "is not a finite number"
    if box and not box.of(answer).strip():
        return "is an empty box"
    if not spelling(clean(answer)):
        return "holds no answer"
    meant = box.of(answer) if box else answer
    if bound := refusal(meant):
        return f"does not parse: it breaks the grader's bound on {bound}"
    return None if _balanced(meant) else "does not parse: its braces are not balanced"


def _balanced(answer: str) -> bool:
    depth = 0
    for brace in _BRACE.findall(answer):
        depth += {"{": 1, "}": -1}.get(brace, 0)
        if depth < 0:
            return False
    return depth == 0


def gsm8k(row: Record, choices: tuple[str, ...]) -> str:
    """The number after the last ``####``, without commas; a bare number serves as well."""
    text = row.text("answer", "answer")
    match = _AFTER_HASHES.search(text)
    answer = (match[1] if match else text).replace(",", "")
    if parse_number(answer) is None:
        raise row.error(
            row.field("answer", "answer"), "has no number after '####'; is it of another data set?", text
        )
    return answer


def math(row: Record, choices: tuple[str, ...]) -> str:
    """The last box of the solution, as published; the answer field where there is none, or where you name it.

    Copies of MATH have an answer field that was stripped for comparing strings: of matrices it keeps no rows.
    """
    solution = row.find("solution", "solution")
    text = solution[1] if solution and isinstance(solution[1], str) else ""
    box = last_box(text)
    answer = box.of(text).strip() if box else ""
    if answer and fault_of(answer) is None and "answer" not in row.renamed:
        return answer
    given = row.find("answer", "answer")
    if given is None or given[1] is None or not str(given[1]).strip():
        return boxed(row, choices)
    return usable(row, given[0], row.text("answer", "answer"))


def minerva(row: Record, choices: tuple[str, ...]) -> str:
    """The last box of the solution, Python in it as LaTeX; without a solution, the answer field."""
    if row.find("solution", "solution") is None:
        return plain(row, ())
    answer = _INNER_DOLLARS.sub(" ", boxed(row, choices))
    return _BARE_POINT.sub("", answer.replace("np.arcsin", r"\arcsin"))


def expected(row: Record, choices: tuple[str, ...]) -> str:
    """The expected, or final, answer; "n/a" means that nobody found one."""
    names = ("expected_answer", "final_answer")
    text, field = row.text("answer", *names), row.field("answer", *names)
    if text.lower() == "n/a":
        raise row.error(field, "says that there is no answer", text)
    return usable(row, field, text)


def boxed(row: Record, choices: tuple[str, ...]) -> str:
    """The inside of the solution's last box."""
    solution = row.text("solution", "solution", "answer")
    box = last_box(solution)
    answer = box.of(solution).strip() if box else ""
    if not answer:
        question = row.text("question", "problem", "question")
        answer = next((gold for start, gold in EMPTY_BOXES.items() if question.startswith(start)), "")
    if not answer:
        raise row.error("answer", "is empty, and so is the box of the solution", solution[-60:])
    return usable(row, row.field("solution", "solution", "answer"), answer)


def aime(row: Record, choices: tuple[str, ...]) -> str:
    """An integer in 0..999 without leading zeros; one answer of 2025 is published with a degree sign."""
    text = row.text("answer", "answer", "expected_answer")
    digits = re.fullmatch(r"\$?(\d{1,3})(?:\^\{?\\circ\}?|°)?\$?", text, re.ASCII)
    if digits is None:
        field = row.field("answer", "answer", "expected_answer")
        raise row.error(field, "is not an AIME answer, an integer in 0..999", text)
    return str(int(digits[1]))


def number(row: Record, choices: tuple[str, ...]) -> str:
    """A plain number."""
    text = row.text("answer", "answer", "Answer")
    if parse_number(text) is None:
        raise row.error(row.field("answer", "answer", "Answer"), "is not a number", text)
    return text


def olympiad(row: Record, choices: tuple[str, ...]) -> str:
    """The final answers, joined by commas, without dollar signs."""
    value = row.value("answer", "final_answer")
    parts = [part.strip() for part in value if isinstance(part, str)] if isinstance(value, Sequence) else []
    answer = ", ".join(part.replace("$", "") for part in parts if part)
    if row.values.get("answer_type") == "Interval":
        answer = _LOST_MEMBER.sub("", answer)
    if not answer:
        raise row.error(row.field("answer", "final_answer"), "is empty", value)
    return usable(row, row.field("answer", "final_answer"), answer)
