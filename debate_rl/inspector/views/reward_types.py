"""What "Why this reward?" is made of: numbers with where they come from, from the votes to the advantage."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from debate.types import TurnId
from debate_rl.formatting import figure
from rewards import Truth

_FIGURE = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")
Result: TypeAlias = Literal["won", "lost", "tie"]


@dataclass(frozen=True, slots=True)
class Number:
    """One number of the chain.

    ``value``: as recomputed; None without signal, or where nothing was recomputed. ``formula``: arithmetic
    with its figures in full, whose value it is, or "". ``stored``: what the transcript has. ``matches``:
    both are the same but for rounding; None without both. ``source``: where it comes from, or why not.
    """

    value: float | None = None
    formula: str = ""
    stored: float | None = None
    matches: bool | None = None
    source: str = ""

    @property
    def text(self) -> str:
        """The formula with rounded figures, and what it gives.

        >>> Number(1 / 3, "(2.0 - 1.0) / (2 + 1 + 0)").text
        '(2 - 1) / (2 + 1 + 0) = 0.3333'
        >>> Number(-1.0, "(-1.0)").text, Number(None).text
        ('-1', 'none')
        """
        shown = figure(self.value if self.value is not None else self.stored)
        formula = rounded(self.formula)
        return f"{formula} = {shown}" if formula.strip("()") not in ("", shown) else shown


def written(value: float | None) -> str:
    """Return a number in full, in parentheses where it is negative; "" for None.

    >>> written(0.1), written(-1), written(None)
    ('0.1', '(-1)', '')
    """
    if value is None:
        return ""
    return repr(value) if value >= 0 else f"({value!r})"


def added(values: Sequence[float]) -> str:
    """Return a sum in full, "0" of nothing.

    >>> added([1, -1, 0.5])
    '1 + (-1) + 0.5'
    """
    return " + ".join(map(written, values)) or "0"


def rounded(formula: str) -> str:
    """Return a formula with each of its figures to four digits.

    >>> rounded("(1.0 - 0.3333333333333333) / (0.4714045207910317 + 0.0001)")
    '(1 - 0.3333) / (0.4714 + 0.0001)'
    """
    return _FIGURE.sub(lambda match: f"{float(match[0]):.4g}", formula)


@dataclass(frozen=True, slots=True)
class NamingVote:
    """A vote that named the turn, in the judge's words (``line``), and why it does not count."""

    judge: TurnId
    persona: str
    other: TurnId
    result: Result
    line: str
    counts: bool
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Opponent:
    """Another turn that the peer rule set this one against, and how the votes on the two went for this one.

    ``sign`` is that of won less lost; ``score`` the other's own. ``beats``: the Bradley-Terry probability
    that this turn is preferred; that rule alone has opponents that share no vote with the turn.
    """

    turn: TurnId
    won: int
    lost: int
    ties: int
    sign: int
    score: float | None = None
    beats: float | None = None


@dataclass(frozen=True, slots=True)
class PeerWhy:
    """The peer reward: the votes on the turn, what they come to, and the rule."""

    rule: str
    votes: tuple[NamingVote, ...]
    won: int
    lost: int
    ties: int
    opponents: tuple[Opponent, ...]
    reward: Number


@dataclass(frozen=True, slots=True)
class TruthWhy:
    """The truth reward: the answer as written, its grade, and the setting that rewards the grade.

    ``score``: how much of it is right, where that was measured; ``parts``: each instruction by its name, and
    whether it is followed. ``verdict``: what a verifier model says, rewarded where there is no truth. ``by``:
    what graded in the place of the gold answer; ``audit`` then is the grade by that, which rewards nothing.
    """

    answer: str | None
    gold: str | None
    grade: Truth
    setting: str
    reward: Number
    score: float | None = None
    parts: tuple[tuple[str, bool], ...] = ()
    verdict: str = ""
    by: str = ""
    audit: Truth = None


@dataclass(frozen=True, slots=True)
class GivenVote:
    """A vote that the turn gave, the grades of its sides, and what it is worth: see ``VoteValue``."""

    left: TurnId
    right: TurnId
    outcome: str
    line: str
    counts: bool
    why_not: str
    left_right: tuple[Truth, Truth]
    truth: int | None
    others: int | None
    consensus: int | None
    value: Number
    verdict: int | None = None


@dataclass(frozen=True, slots=True)
class JudgeWhy:
    """The judge reward: the mean value of the votes given; ``truth_weight`` is the share of truth in each."""

    truth_weight: float | None
    votes: tuple[GivenVote, ...]
    reward: Number


@dataclass(frozen=True, slots=True)
class FormatWhy:
    """The format penalty: whether comparisons were due, how many votes are valid, and what is malformed."""

    due: bool
    comparable: tuple[TurnId, ...]
    counted: int
    failures: tuple[tuple[str, str], ...]
    reward: Number


@dataclass(frozen=True, slots=True)
class Member:
    """A turn of a baseline group, of debate ``id``; ``right``: its answer; ``this``: the one explained."""

    id: str
    turn: TurnId
    persona: str
    value: float
    right: bool
    this: bool = False


@dataclass(frozen=True, slots=True)
class StreamWhy:
    """One stream's advantage before its weights.

    ``members``: the turns with a value that matter for each other. ``centre`` is taken off the value, and
    ``spread`` is the standard deviation that divides; None where nothing does.
    """

    name: str
    baseline: str
    scale: str
    key: str
    reward: Number
    members: tuple[Member, ...]
    centre: Number | None
    spread: Number | None
    advantage: Number


@dataclass(frozen=True, slots=True)
class TotalWhy:
    """What the turn's tokens get. ``peer`` and ``truth`` are the parts of ``generator``, weights included."""

    generator: Number
    judge: Number
    format: Number
    peer: Number
    truth: Number
    shaping: Number | None = None
    likelihood: Number | None = None
    critic: Number | None = None


@dataclass(frozen=True, slots=True)
class Why:
    """Why a turn was rewarded as it was.

    ``sentence`` says it in one: what the tokens get, as a sum. ``peer`` and ``truth`` are None for a final
    ballot, which has no solution; ``streams`` is empty where nothing was recomputed, and ``notes`` say why.
    ``matches``: every number that can be compared is as stored; None where there is none.
    """

    id: str
    turn: TurnId
    persona: str
    problem: str
    ballot: bool
    peer: PeerWhy | None
    truth: TruthWhy | None
    judge: JudgeWhy
    format: FormatWhy
    streams: tuple[StreamWhy, ...]
    total: TotalWhy
    sentence: str
    notes: tuple[str, ...] = ()
    matches: bool | None = None
    handles: tuple[str, ...] = ()

    def handle(self, turn: TurnId) -> str:
        """Return the handle of a turn's agent; its address where the agent never spoke."""
        known = self.handles[turn.agent] if turn.agent < len(self.handles) else ""
        return known or f"{turn.agent}.{turn.round}"


@dataclass(frozen=True, slots=True)
class OutlineLine:
    """A line of the explanation; ``text`` and ``quote`` may hold a model's words: escape them.

    ``depth``: 0 for a heading. ``matches``: the badge of its number.
    """

    depth: int
    text: str
    quote: str = ""
    matches: bool | None = None
