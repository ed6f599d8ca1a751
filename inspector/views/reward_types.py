"""The parts of "Why this reward?": numbers with where they come from, from the votes to the advantage."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from debate.types import TurnId
from transcripts import Correct

_FIGURE = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")
Result: TypeAlias = Literal["won", "lost", "tie"]


@dataclass(frozen=True, slots=True)
class Number:
    """One number of the chain.

    ``value``: as recomputed, None without signal or where nothing can be recomputed. ``formula``: arithmetic
    with its figures in full, whose value it is; "" where there is none to show. ``stored``: what the
    transcript has. ``matches``: stored and recomputed are the same but for rounding; None where nothing is
    stored, or nothing recomputed. ``source``: where it comes from, or why there is none.
    """

    value: float | None = None
    formula: str = ""
    stored: float | None = None
    matches: bool | None = None
    source: str = ""

    @property
    def told(self) -> str:
        """The formula with rounded figures, and what it gives.

        >>> Number(1 / 3, "(2.0 - 1.0) / (2 + 1 + 0)").told
        '(2 - 1) / (2 + 1 + 0) = 0.3333'
        >>> Number(-1.0, "(-1.0)").told, Number(None).told
        ('-1', 'none')
        """
        shown = figure(self.value if self.value is not None else self.stored)
        formula = rounded(self.formula)
        return f"{formula} = {shown}" if formula.strip("()") not in ("", shown) else shown


def figure(value: float | None) -> str:
    """Return a number to four digits, "none" for None.

    >>> figure(0.25), figure(-1 / 3), figure(1.0), figure(None)
    ('0.25', '-0.3333', '1', 'none')
    """
    return "none" if value is None else f"{value:.4g}"


def rounded(formula: str) -> str:
    """Return a formula with each of its figures to four digits.

    >>> rounded("(1.0 - 0.3333333333333333) / (0.4714045207910317 + 0.0001)")
    '(1 - 0.3333) / (0.4714 + 0.0001)'
    """
    return _FIGURE.sub(lambda found: f"{float(found[0]):.4g}", formula)


@dataclass(frozen=True, slots=True)
class NamingVote:
    """A vote that named the turn. ``line``: the judge's words, as the model wrote them.

    ``counts`` is whether the reward rules take it; ``why_not`` the reason otherwise, as in the metrics
    (own, not_shown, same_handle, duplicate, contradictory).
    """

    judge: TurnId
    persona: str
    other: TurnId
    result: Result
    line: str
    counts: bool
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Opponent:
    """Another turn that the peer rule set this one against.

    ``won``, ``lost``, ``ties``: this turn's, over the votes that count on the two. ``sign`` is that of won
    less lost, as Copeland counts; ``score`` the other's own score, and ``beats`` the Bradley-Terry
    probability that this turn is preferred; None under other rules. Opponents that share no vote with the
    turn are there under Bradley-Terry only, where all of a connected part are fitted together.
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
    """The peer reward: the votes on the turn, what they come to, and the rule's formula."""

    rule: str
    votes: tuple[NamingVote, ...]
    won: int
    lost: int
    ties: int
    opponents: tuple[Opponent, ...]
    reward: Number


@dataclass(frozen=True, slots=True)
class TruthWhy:
    """The truth reward: the answer as written, its grade, and the setting that pays the grade."""

    answer: str | None
    gold: str | None
    grade: Correct
    setting: str
    reward: Number


@dataclass(frozen=True, slots=True)
class GivenVote:
    """A vote that the turn gave.

    ``truth``: +1, -1, or 0 for a tie, where exactly one side is right; ``others``: the net votes of the other
    judges for the left side, and ``consensus`` +1 with them, -1 against them; None where there is none, or
    where it has no weight. ``value`` is what the vote is worth, None for nothing.
    """

    left: TurnId
    right: TurnId
    outcome: str
    line: str
    counts: bool
    why_not: str
    left_right: tuple[Correct, Correct]
    truth: int | None
    others: int | None
    consensus: int | None
    value: Number


@dataclass(frozen=True, slots=True)
class JudgeWhy:
    """The judge reward: the mean value of the votes given; ``truth_weight`` is the share of truth in each."""

    truth_weight: float | None
    votes: tuple[GivenVote, ...]
    reward: Number


@dataclass(frozen=True, slots=True)
class FormatWhy:
    """The fine: whether comparisons were due, how many votes count, and what could not be read."""

    due: bool
    comparable: tuple[TurnId, ...]
    counted: int
    failures: tuple[tuple[str, str], ...]
    reward: Number


@dataclass(frozen=True, slots=True)
class Member:
    """A turn of a baseline group: open it as debate ``id``, turn ``turn``. ``this``: the one explained."""

    id: str
    turn: TurnId
    persona: str
    value: float
    this: bool = False


@dataclass(frozen=True, slots=True)
class StreamWhy:
    """One stream's advantage before its weights.

    ``members``: the turns that matter for each other, those without a value left out. ``centre`` is taken off
    (a mean, the mean of the others, the running mean), ``spread`` what divides; None where nothing does.
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


@dataclass(frozen=True, slots=True)
class Why:
    """Why a turn was paid what it was paid: votes, rewards, streams, advantages.

    ``peer`` and ``truth`` are None for a final ballot, which has no solution. ``streams`` is empty without
    a configuration, and ``notes`` say what is not shown and why. ``matches``: every number that can be
    compared is as stored; None where there is none to compare.
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
    notes: tuple[str, ...] = ()
    matches: bool | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the explanation, for faces that show it as an outline.

    ``depth``: 0 for a heading. ``text`` and ``quote`` may hold a model's words: escape them. ``matches`` is
    the badge of the line's number. ``opens``: a debate and a turn to go to.
    """

    depth: int
    text: str
    quote: str = ""
    matches: bool | None = None
    opens: tuple[str, TurnId] | None = None
