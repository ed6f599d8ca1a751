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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
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
    """The wordings of one theme. N is the name, T the things, and # a number.

    ``groups`` starts with two numbers to be multiplied. ``share`` and ``price`` contain the question; other
    stories end with ``ask``. An empty table means that the theme has no such step.
    """

    things: tuple[str, ...]
    start: tuple[str, ...]
    groups: tuple[str, ...]
    more: tuple[str, ...]
    less: tuple[str, ...]
    share: tuple[str, ...]
    price: tuple[str, ...]
    ask: tuple[str, ...]


THEMES = (
    Theme(
        things=("marbles", "stickers", "shells", "stamps", "cards", "buttons"),
        start=(
            "N has # T.",
            "There are # T in a box that belongs to N.",
            "N owns # T.",
            "In the collection of N there are # T.",
            "N begins the week with # T.",
        ),
        groups=(
            "N has # boxes with # T in each.",
            "N keeps T in # albums, and each album holds # of them.",
            "N gets # packs of # T.",
            "On # shelves, N has # T each.",
        ),
        more=(
            "N finds # more.",
            "A friend gives N # more.",
            "N buys # T at the market.",
            "N wins # T in a game.",
            "Then # T arrive by mail.",
            "N adds # to the collection.",
            "An aunt sends another #.",
        ),
        less=(
            "N loses #.",
            "N gives # of them away.",
            "N trades away # T.",
            "N leaves # T at school.",
            "Then # of them break.",
            "N sells # T.",
            "A little brother takes #.",
        ),
        share=(
            "N shares them equally among # friends. How many T does each friend get?",
            "N puts the same number into each of # bags. How many T are in one bag?",
            "They are split evenly between # children. How many T does every child get?",
        ),
        price=(
            "Each is worth # cents. How many cents are all of them worth?",
            "N sells them all for # cents each. How many cents does N get?",
            "One costs # cents. What do they all cost, in cents?",
        ),
        ask=(
            "How many T does N have now?",
            "How many T are there in the end?",
            "What is the number of T now?",
            "Count the T that N has at last.",
        ),
    ),
    Theme(
        things=("apples", "tomatoes", "carrots", "pumpkins", "lemons", "potatoes"),
        start=(
            "N picks # T in the garden.",
            "A basket holds # T.",
            "N harvests # T in the morning.",
            "There are # T on the kitchen table.",
            "On Monday N digs up # T.",
        ),
        groups=(
            "N plants # rows with # T in each row.",
            "There are # baskets, and every basket holds # T.",
            "N fills # crates with # T each.",
            "From each of # plants, N picks # T.",
        ),
        more=(
            "N picks # more.",
            "A neighbor brings # T.",
            "In the afternoon N gathers another #.",
            "N buys # T to have enough.",
            "Grandfather adds # T from his field.",
            "The next day # more are ripe.",
        ),
        less=(
            "N cooks # of them.",
            "Rabbits eat #.",
            "N throws away # bad T.",
            "N sells # T at a stand.",
            "The family eats # T for dinner.",
            "Then # T rot in the rain.",
        ),
        share=(
            "N divides them equally among # neighbors. How many T does each neighbor get?",
            "N packs them into # boxes of the same size. How many T go into each box?",
            "The rest is shared fairly by # cooks. How many T does one cook receive?",
        ),
        price=(
            "N sells each for # dollars. How many dollars does N earn?",
            "They cost # dollars each. How many dollars do they cost together?",
            "If one brings # dollars, how many dollars do all of them bring?",
        ),
        ask=(
            "How many T are there now?",
            "How many T does N have at the end of the day?",
            "What number of T is this in total?",
            "So N now has how many T?",
        ),
    ),
    Theme(
        things=("cookies", "muffins", "rolls", "pies", "pancakes", "waffles"),
        start=(
            "N bakes # T.",
            "A bakery has # T in the window.",
            "There are # T on a plate.",
            "For a party, N makes # T.",
            "N takes # T out of the oven.",
        ),
        groups=(
            "N bakes # trays of # T.",
            "On each of # plates there are # T.",
            "N opens # boxes that hold # T each.",
            "A baker makes # batches, each with # T.",
        ),
        more=(
            "Then N bakes # more.",
            "A guest brings # T.",
            "N buys # more T.",
            "The oven yields another #.",
            "Someone puts # T on top.",
            "A second baker adds #.",
        ),
        less=(
            "N eats #.",
            "The guests eat # T.",
            "N drops # T on the floor.",
            "The dog snatches # of them.",
            "A customer buys #.",
            "In the evening # T are thrown out.",
        ),
        share=(
            "They are shared equally by # guests. How many T does each guest get?",
            "N arranges them on # plates with the same number on each. How many T are on a plate?",
            "Each of # pupils gets the same number. How many T is that for one pupil?",
        ),
        price=(
            "Each one sells for # dollars. How many dollars do they bring?",
            "N needs # eggs for each. How many eggs does N need?",
            "Every one has # raisins. How many raisins are there altogether?",
        ),
        ask=(
            "How many T are left?",
            "How many T are there now?",
            "How many T does that make?",
            "Tell how many T remain at closing time.",
        ),
    ),
    Theme(
        things=("people", "passengers", "students", "tourists"),
        start=(
            "A bus leaves the station with # T.",
            "There are # T on a train.",
            "A boat carries # T.",
            "At noon # T sit in a tram.",
            "A ferry departs with # T on board.",
        ),
        groups=(
            "A train has # cars with # T in each.",
            "In each of # vans there are # T.",
            "A bus has # rows, and # T sit in every row.",
            "Each of # boats takes # T aboard.",
        ),
        more=(
            "At the next stop # get on.",
            "Then # more T board.",
            "At the bridge # T join.",
            "N and others, # in all, climb in.",
            "A school brings # more.",
            "In the village # T hop on.",
        ),
        less=(
            "At the market # get off.",
            "Then # T leave.",
            "At the museum # T step out.",
            "Because of the heat # go home.",
            "At the hospital # T exit.",
            "Near the park # T say goodbye.",
        ),
        share=(
            "At the end they form # groups of the same size. How many T are in each group?",
            "They then change into # taxis, with equally many in each. How many T ride in one taxi?",
            "A guide sorts them into # equal teams. How many T has one team?",
        ),
        price=(
            "Each ticket costs # dollars. How many dollars do all tickets cost?",
            "Everyone carries # bags. How many bags are there?",
            "For each there are # sandwiches. How many sandwiches is that?",
        ),
        ask=(
            "How many T are on board now?",
            "How many T are there then?",
            "What is the number of T at this point?",
            "Now the driver counts the T; how many are there?",
        ),
    ),
    Theme(
        things=("dollars", "coins", "euros"),
        start=(
            "N has # T.",
            "N has saved # T.",
            "There are # T in the wallet of N.",
            "N gets # T for a birthday.",
            "The piggy bank of N contains # T.",
        ),
        groups=(
            "N works # hours for # T an hour.",
            "N saves # weeks long, # T every week.",
            "From each of # uncles N gets # T.",
            "In # envelopes N finds # T each.",
        ),
        more=(
            "N earns # more by washing a car.",
            "Mother gives N # T.",
            "N finds # T in a coat.",
            "For a sold bicycle N receives # T.",
            "N is paid # T for a poem.",
            "A lottery ticket brings #.",
        ),
        less=(
            "N spends # on lunch.",
            "A book costs N # T.",
            "N pays # T for a ticket.",
            "N lends # T to a friend.",
            "N loses # through a hole in a pocket.",
            "A new ball takes # T out of the wallet.",
        ),
        share=(
            "N spreads the money evenly over # days. How many T is that for one day?",
            "N divides the money equally among # cousins. How many T does each cousin get?",
            "With it N buys # equal presents. How many T does one present cost?",
        ),
        price=(
            "A bank pays # points for each. How many points does N get?",
            "For each, N gets # tokens. How many tokens is that?",
            "A machine gives # balls for every one. How many balls does N receive?",
        ),
        ask=(
            "How many T does N have now?",
            "How many T does N own in the end?",
            "How much money is it now, in T?",
            "What sum of T is in the hands of N at night?",
        ),
    ),
    Theme(
        things=("books", "chairs", "lamps", "computers", "balls", "tables"),
        start=(
            "A school has # T.",
            "In a hall there are # T.",
            "A club starts with # T.",
            "The storeroom contains # T.",
            "N counts # T in the cellar.",
        ),
        groups=(
            "There are # rooms with # T in each.",
            "A hall has # rows of # T.",
            "Each of # classes has # T.",
            "On every one of # floors stand # T.",
        ),
        more=(
            "The mayor donates # T.",
            "N brings # more.",
            "A truck delivers # T.",
            "The club buys another #.",
            "From the attic come # T.",
            "A parent hands over # T.",
        ),
        less=(
            "N removes # of them.",
            "A thief steals #.",
            "The school lends out # T.",
            "N repairs none, and # T are thrown away.",
            "A fire destroys # T.",
            "To a hospital go # of the T.",
        ),
        share=(
            "They are distributed equally to # rooms. How many T does each room get?",
            "N stacks them in # equal piles. How many T are in a pile?",
            "Among # teachers they are split evenly. How many T has one teacher?",
        ),
        price=(
            "Each weighs # pounds. How many pounds do they weigh together?",
            "Cleaning one takes # minutes. How many minutes does it take for all?",
            "Each needs # screws. How many screws are needed?",
        ),
        ask=(
            "How many T are there now?",
            "How many T are in use in the end?",
            "What is the total number of T?",
            "N makes a list of the T; how many are on it?",
        ),
    ),
)

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
