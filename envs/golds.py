r"""Where each data set keeps its gold answer: functions from a row to the answer's text.

Each raises the row's error when there is none. ``checked`` golds are refused at load, not at reward time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from envs.boxes import last_box
from envs.choices import LETTERS, letter_of
from envs.notation import clean, spelling
from envs.numbers import parse_number
from envs.records import Record

Gold: TypeAlias = Callable[[Record, tuple[str, ...]], str]

# MATH problems whose published solution ends in an empty box. Both solutions prove that no number in the list
# is prime, so the number of primes is 0, and 0 is among the choices the problem prints.
EMPTY_BOXES = {
    "For any integer $n>1$, the number of prime numbers greater than $n!+1$": "0",
    "You are given a sequence of $58$ terms; each term has the form $P+n$": "0",
}

NO_VALUES = frozenset(("nan", "inf", "+inf", "-inf"))
"""What a number that is none leaves behind when it is written as text."""

_AFTER_HASHES = re.compile(r"####\s*(.+?)\s*$")
_OPTION = re.compile(r"(?:^|[,\s'\"\[])([a-j]) \)(?= )")


def plain(row: Record, choices: tuple[str, ...]) -> str:
    """The answer field as it is; a choice as its letter."""
    names = ("answer", "expected_answer", "target")
    text = row.text("answer", *names)
    return choice(row, choices) if choices else usable(row, row.field("answer", *names), text)


def usable(row: Record, field: str, answer: str) -> str:
    """Return the answer, or raise the row's error where nothing could ever be equal to it."""
    if answer.strip().lower() in NO_VALUES:
        raise row.error(field, "is no finite number", answer)
    box = last_box(answer)
    if box and not box.of(answer).strip():
        raise row.error(field, "is an empty box", answer)
    if not spelling(clean(answer)):
        raise row.error(field, "holds no answer", answer)
    return answer


def gsm8k(row: Record, choices: tuple[str, ...]) -> str:
    """The number after the last ``####``, without commas; a bare number serves as well."""
    text = row.text("answer", "answer")
    match = _AFTER_HASHES.search(text)
    answer = (match[1] if match else text).replace(",", "")
    if parse_number(answer) is None:
        raise row.error("answer", "has no number after '####'; is it of another data set?", text)
    return answer


def math(row: Record, choices: tuple[str, ...]) -> str:
    """The answer field, or where it is empty or absent the last box of the solution."""
    found = row.find("answer", "answer")
    text = found[1] if found else ""
    if isinstance(text, str) and text.strip():
        return usable(row, row.field("answer", "answer"), text.strip())
    return boxed(row, choices)


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
    """An integer in 0..999 without leading zeros."""
    text = row.text("answer", "answer", "expected_answer")
    if not re.fullmatch(r"\d{1,3}", text, re.ASCII):
        raise row.error("answer", "is no AIME answer, an integer in 0..999", text)
    return str(int(text))


def number(row: Record, choices: tuple[str, ...]) -> str:
    """A plain number."""
    text = row.text("answer", "answer", "Answer")
    if parse_number(text) is None:
        raise row.error("answer", "is not a number", text)
    return text


def olympiad(row: Record, choices: tuple[str, ...]) -> str:
    """The final answers, joined by commas, without dollar signs."""
    value = row.value("answer", "final_answer")
    parts = [part.strip() for part in value if isinstance(part, str)] if isinstance(value, Sequence) else []
    answer = ", ".join(part.replace("$", "") for part in parts if part)
    if not answer:
        raise row.error("final_answer", "is empty", value)
    return usable(row, "final_answer", answer)


def choice(row: Record, choices: tuple[str, ...]) -> str:
    """The letter of the right option, from a letter, an index from 0, or the option's text."""
    text = row.text("answer", "answer", "correct", "answerKey")
    if re.fullmatch(r"\d", text) and text not in choices and int(text) < len(choices):
        return LETTERS[int(text)]
    letter = letter_of(text, choices)
    if letter is None:
        raise row.error("answer", f"is none of the {len(choices)} choices", text)
    return letter


def choice_by_index(row: Record, choices: tuple[str, ...]) -> str:
    """The letter of the option whose index from 0 the row gives."""
    text = row.text("answer", "answer")
    if not re.fullmatch(r"\d", text) or int(text) >= len(choices):
        raise row.error("answer", f"is no index into the {len(choices)} choices", text)
    return LETTERS[int(text)]


def listed_choices(row: Record) -> tuple[str, ...]:
    """Options given as a list; a leading "A)" is taken off."""
    value = row.value("choices", "choices", "options")
    if isinstance(value, str):
        return spelled_choices(row)
    texts = (
        [re.sub(r"^\(?[A-J]\)\s*", "", str(part)).strip() for part in value]
        if isinstance(value, Sequence)
        else []
    )
    if len(texts) < 2:
        raise row.error("choices", "needs at least two options", value)
    return tuple(texts)


def spelled_choices(row: Record) -> tuple[str, ...]:
    """Options in one string: ``a ) 12 , b ) 16``, some of them with the letter twice."""
    value = row.text("choices", "options", "choices")
    pieces = _OPTION.split(" " + value.strip(" []'\""))[1:]
    options: dict[str, str] = {}
    for letter, text in zip(pieces[::2], pieces[1::2], strict=True):
        options[letter] = text.strip(" ,'\"]")
    if "".join(options) != LETTERS[: len(options)].lower() or not all(options.values()):
        raise row.error("choices", "cannot be split into options a, b, c, ...", value)
    return tuple(options.values())
