r"""Word problems in English: ``Mia has 12 shells. Mia loses 3. How many shells does Mia have now?``

A story is a sequence of arithmetic steps over one quantity, as many as its level (1 to 3): a number or
groups of equal size, gains and losses, then possibly a division into equal shares or a price. The wording of
each step is drawn from tables for one of several themes. The last wording in each table never occurs in
training: every story of the split "test" has at least one such sentence. Names and things vary freely.

The planted mistake for demonstrations is to add where the story takes away, and the reverse.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from debate.types import Kind, Problem
from envs.errors import DataError
from envs.families.synthetic import SyntheticFamily, read_integer, split_of

LEVELS = ("1", "2", "3")
LARGEST = 60
NAMES = ("Mia", "Tom", "Ella", "Omar", "Lena", "Raj", "Sofia", "Ben", "Yuki", "Carlos", "Nora", "Ivan")

Op: TypeAlias = Literal["+", "-", "*", "/"]
Part: TypeAlias = Literal["start", "groups", "more", "less", "share", "price", "ask"]


class Theme(NamedTuple):
    """The wordings of one theme, from stories.toml: N is the name, T the things, and # a number."""

    things: tuple[str, ...]
    start: tuple[str, ...]
    groups: tuple[str, ...]
    more: tuple[str, ...]
    less: tuple[str, ...]
    share: tuple[str, ...]
    price: tuple[str, ...]
    ask: tuple[str, ...]


_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["themes"]
THEMES = tuple(Theme(**{part: tuple(wordings) for part, wordings in theme.items()}) for theme in _TABLES)
STEPS: Mapping[Part, Op] = {"groups": "*", "more": "+", "less": "-", "share": "/", "price": "*"}
"""The arithmetic step of each part of a story; ``start`` and ``ask`` have none."""
OTHER: Mapping[Op, Op] = {"+": "-", "-": "+", "*": "+", "/": "-"}
"""The operation that the planted mistake uses instead."""
_NUMBER = re.compile(r"\d+", re.ASCII)
_NAME = re.compile(rf"\b(?:{'|'.join(NAMES)})\b")
_THING = re.compile(rf"\b(?:{'|'.join(thing for theme in THEMES for thing in theme.things)})\b")
_SENTENCE = re.compile(r"[^.?]+[.?]")
_INTEGER = re.compile(r"\s*\$?\s*(-?\d{1,6})(?:\.0*)?\s*(?:[a-z]+)?\s*\.?\s*", re.ASCII)


class Step(NamedTuple):
    """One written step of arithmetic; ``result`` may be wrong."""

    left: int
    op: Op
    right: int
    result: int

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right} = {self.result}"


Attempt: TypeAlias = tuple[Step, ...]


def blank(text: str) -> str:
    """Return a text with # for numbers, N for names and T for things."""
    return _NUMBER.sub("#", _NAME.sub("N", _THING.sub("T", text)))


def _wordings() -> Iterator[tuple[str, Op | None, bool]]:
    """Yield each sentence of the tables with its step, and whether it is held out from training."""
    for theme in THEMES:
        for part in theme._fields[1:]:
            table: tuple[str, ...] = getattr(theme, part)
            for wording in table:
                for index, sentence in enumerate(_SENTENCE.findall(wording)):
                    op = STEPS.get(part) if index == 0 else None  # type: ignore[call-overload]
                    yield blank(sentence).strip(), op, wording == table[-1]


OPS: Mapping[str, Op | None] = {sentence: op for sentence, op, _ in _wordings()}
HELD_OUT = frozenset(sentence for sentence, _, held_out in _wordings() if held_out)


@dataclass(frozen=True, slots=True)
class Stories(SyntheticFamily):
    """The family as an environment, with some of its levels; an attempt is a list of written steps."""

    levels: tuple[str, ...] = LEVELS
    name: str = "stories"
    kind: ClassVar[Kind] = "number"

    def draw(self, rng: random.Random, level: str) -> tuple[str, str, str]:
        """Return the canonical form (the wording without numbers, names and things), question and answer."""
        while True:
            theme = rng.choice(THEMES)
            parts = _parts(rng, int(level))
            name, thing = rng.choice(NAMES), rng.choice(theme.things)
            told = [_told(rng, rng.choice(getattr(theme, part)), part, name, thing) for part in parts]
            question = " ".join(told)
            steps = read_story(question)
            if all(0 < step.result <= LARGEST for step in steps) and _divides(steps):
                return blank(question), question, str(steps[-1].result)

    def split_of(self, canonical: str) -> str:
        """Return "test" for a story with a held-out wording, else "train" or "validation" by its hash."""
        if any(sentence.strip() in HELD_OUT for sentence in _SENTENCE.findall(canonical)):
            return "test"
        return "validation" if split_of(canonical) == "validation" else "train"

    def read_answer(self, answer: str) -> int | None:
        """Return the integer that an answer states, with or without a unit; None if there is none."""
        return read_integer(_INTEGER, answer)

    def expected(self, problem: Problem, *, lured: bool = False) -> int:
        """Return the final number; with ``lured``, the final number of the planted mistake."""
        steps = read_story(problem.question)
        return (_lured(steps) if lured else steps)[-1].result

    def fault(self, problem: Problem, answer: str) -> str | None:
        """Return the name of the planted mistake if the answer has it; None for any other answer."""
        lured = self.read_answer(answer) == self.expected(problem, lured=True)
        return "a wrong operation" if lured else None

    def attempt(
        self, problem: Problem, rng: random.Random, *, right: float = 1.0, lure: float = 0.0
    ) -> Attempt:
        """Return written steps: right, or with a wrong operation, or with a slip of arithmetic."""
        steps = read_story(problem.question)
        draw = rng.random()
        if draw < right:
            return steps
        if draw < right + lure:
            return _lured(steps)
        at = rng.randrange(len(steps))
        off = rng.choice((-10, -2, -1, 1, 2, 10))
        slip = steps[at]._replace(result=abs(steps[at].result + off))
        return (*steps[:at], slip, *_after(slip.result, steps[at + 1 :]))

    def write_solution(self, problem: Problem, attempt: Attempt) -> str:
        """Return the solution text of an attempt, step by step."""
        steps = " ".join(f"{step}." for step in attempt)
        return f"{steps} The answer is \\boxed{{{attempt[-1].result}}}."

    def check(self, problem: Problem, said: int, *, lured: bool) -> tuple[str, bool]:
        """Return the steps of a check with the answer, and whether the check accepts the answer."""
        steps = read_story(problem.question)
        steps = _lured(steps) if lured else steps
        return f" {', '.join(map(str, steps))}, so {said} is", said == steps[-1].result

    def vocabulary(self) -> tuple[str, ...]:
        """Return every token that the texts need; joined tokens spell each text exactly."""
        tables = (text for theme in THEMES for table in theme for text in table)
        texts = (*tables, *NAMES, "The answer is so right wrong none , -")
        words = {piece for text in texts for piece in re.findall(r"[A-Za-z]+|[^\w\s#]", text)}
        signs = (" ", " +", " *", " /", " =", " \\boxed{", "}.")
        numbers = (f"{space}{n}" for space in ("", " ") for n in range(LARGEST + 1))
        return (*sorted(words), *sorted(f" {word}" for word in words), *signs, *numbers)


def _parts(rng: random.Random, steps: int) -> list[Part]:
    """Return the parts of a story with this number of steps."""
    groups = rng.random() < 0.35
    left = steps - groups
    ending: Part | None = rng.choice(("share", "price")) if left and rng.random() < 0.35 else None
    middle: list[Part] = [rng.choice(("more", "less")) for _ in range(left - (ending is not None))]
    return ["groups" if groups else "start", *middle, ending or "ask"]


def _told(rng: random.Random, wording: str, part: Part, name: str, thing: str) -> str:
    """Return a wording with its name, thing and numbers."""
    low, high = {"start": (3, 12), "more": (2, 9), "less": (2, 9)}.get(part, (2, 5))
    text = re.sub(r"\bT\b", thing, re.sub(r"\bN\b", name, wording))
    return re.sub("#", lambda _: str(rng.randint(low, high)), text)


@lru_cache(maxsize=4096)
def read_story(question: str) -> Attempt:
    """Return the right steps of a story; DataError for a question of another family.

    >>> read_story("Mia has 3 boxes with 4 shells in each. Mia loses 2. How many shells does Mia have now?")
    (Step(left=3, op='*', right=4, result=12), Step(left=12, op='-', right=2, result=10))
    """
    sentences = [sentence.strip() for sentence in _SENTENCE.findall(question)]
    numbers = [int(n) for n in _NUMBER.findall(question)]
    forms = [blank(sentence) for sentence in sentences]
    if not numbers or not all(form in OPS for form in forms):
        raise DataError(f"question: {question!r} is not a story of this family")
    ops: list[Op] = [op for form in forms if (op := OPS[form]) is not None]
    if len(ops) != len(numbers) - 1:
        raise DataError(f"question: {question!r} has {len(numbers)} numbers for {len(ops)} steps")
    first, *others = numbers
    return _after(first, [Step(0, op, right, 0) for op, right in zip(ops, others, strict=True)])


def _after(total: int, steps: Sequence[Step]) -> Attempt:
    """Return the steps computed from a total; a division is rounded down."""
    done: list[Step] = []
    for _, op, right, _ in steps:
        result = _computed(total, op, right)
        done.append(Step(total, op, right, result))
        total = result
    return tuple(done)


def _computed(left: int, op: Op, right: int) -> int:
    match op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return left // right


def _divides(steps: Attempt) -> bool:
    return all(step.left % step.right == 0 for step in steps if step.op == "/")


def _lured(steps: Attempt) -> Attempt:
    """Return the steps with another operation in the first step that adds or takes away, or in the first."""
    at = next((index for index, step in enumerate(steps) if step.op in "+-"), 0)
    changed = steps[at]._replace(op=OTHER[steps[at].op])
    return (*steps[:at], *_after(steps[at].left, (changed, *steps[at + 1 :])))


FAMILY = Stories()
