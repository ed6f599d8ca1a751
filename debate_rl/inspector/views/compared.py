"""Two debates of one problem side by side: texts word by word, answers, grades, votes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal, TypeAlias

from debate.types import Debate, Turn, TurnId
from rewards import Truth
from rewards.truth import grade_of
from rewards.votes import Pair, ballot_box, pair_of, valid_votes, verdict
from transcripts import Record
from transcripts.record import check_record, named

MOST_CHARACTERS, MOST_WORDS = 40_000, 4000
"""Of a text no more is compared, beyond what both have in common at their ends."""
_WORD = re.compile(r"\S+\s*|\s+")
Mark: TypeAlias = Literal[" ", "-", "+"]
_SIDES = {1: "first", -1: "second", 0: "tie"}


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Words that both texts have (" "), that only the first has ("-") or only the second ("+")."""

    mark: Mark
    text: str


@dataclass(frozen=True, slots=True)
class TurnDifference:
    """One turn in both debates. ``pieces``: the texts word by word, put together they are the texts.

    ``cut``: the middle was too long to be compared, and stands as all different. ``alike``: the share of
    words in common, from 0 to 1. ``answers`` and ``grades`` are before and after; what one debate lacks is
    None there.
    """

    turn: TurnId
    personas: tuple[str | None, str | None]
    pieces: tuple[TextPiece, ...]
    cut: bool
    alike: float
    answers: tuple[str | None, str | None]
    grades: tuple[Truth, Truth]


@dataclass(frozen=True, slots=True)
class VoteDifference:
    """A pair on which a judge's votes differ; an outcome is "first", "second", "tie", or None for no vote."""

    judge: TurnId
    first: TurnId
    second: TurnId
    before: str | None
    after: str | None

    @property
    def kind(self) -> str:
        """Whether the vote is new, gone, reversed, or changed to or from a tie."""
        if None in (self.before, self.after):
            return "new" if self.before is None else "gone"
        return "changed" if "tie" in (self.before, self.after) else "reversed"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two debates, turn by turn in order, and the votes that differ; ``notes`` say what may mislead."""

    before: str
    after: str
    turns: tuple[TurnDifference, ...]
    votes: tuple[VoteDifference, ...]
    same_votes: int
    notes: tuple[str, ...] = ()
    rounds: int | None = None

    def persona(self, agent: int) -> str:
        """Return the persona of an agent, both where it is another in each debate."""
        names = next((turn.personas for turn in self.turns if turn.turn.agent == agent), ())
        return " → ".join(dict.fromkeys(name or "no turn" for name in names)) or f"agent {agent}"

    def spelled(self, turn: TurnId) -> str:
        """Return a turn by persona and round, with its address where another agent has the same persona."""
        agents = {difference.turn.agent for difference in self.turns}
        name = self.persona(turn.agent)
        address = f" (turn {named(turn)})" if sum(self.persona(agent) == name for agent in agents) > 1 else ""
        is_ballot = self.rounds is not None and turn.round >= self.rounds
        return f"{name}, {'final ballot' if is_ballot else f'round {turn.round}'}{address}"

    def vote(self, vote: VoteDifference) -> str:
        """Return a vote that differs, in words."""
        first, second, judge = (self.spelled(turn) for turn in (vote.first, vote.second, vote.judge))
        outcomes = {None: "no vote", "tie": "a tie", "first": f"{first} won", "second": f"{second} won"}
        change = f"{outcomes[vote.before]}, then {outcomes[vote.after]}"
        return f"judge {judge} on {first} and {second}: {change} ({vote.kind})"


def compare(before: Record, after: Record, names: tuple[str, str] = ("before", "after")) -> Comparison:
    """Return what differs between two debates, agent by agent; only valid votes are compared.

    ValueError for a record that is not a debate (``check_record``).
    """
    check_record(before)
    check_record(after)
    turns = {turn.id for record in (before, after) for turn in record.debate.turns}
    old, new = _outcomes(before), _outcomes(after)
    keys = sorted({*old, *new}, key=lambda key: (key[0].round, key))
    votes = [VoteDifference(key[0], *key[1], old.get(key), new.get(key)) for key in keys]
    differ = tuple(vote for vote in votes if vote.before != vote.after)
    return Comparison(
        before=names[0],
        after=names[1],
        turns=tuple(
            _turn(before, after, turn) for turn in sorted(turns, key=lambda turn: (turn.round, turn.agent))
        ),
        votes=differ,
        same_votes=len(votes) - len(differ),
        notes=tuple(_notes(before.debate, after.debate)),
        rounds=max(record.debate.protocol.num_rounds for record in (before, after)),
    )


def _outcomes(record: Record) -> dict[tuple[TurnId, Pair], str]:
    votes = valid_votes(ballot_box(record.debate))
    return {(vote.judge, pair_of(vote)): _SIDES[verdict(vote)] for vote in votes}


def _notes(before: Debate, after: Debate) -> Iterator[str]:
    if before.problem.id != after.problem.id:
        yield "the debates are of different problems"
    elif before.problem != after.problem:
        yield "the problem is not the same in both: question, gold answer or kind was changed"
    if before.protocol != after.protocol:
        yield "the debates have different protocols"
    pairs = zip(before.personas, after.personas, strict=False)
    other = [f"{agent}: {a.name}, then {b.name}" for agent, (a, b) in enumerate(pairs) if a.name != b.name]
    if other:
        yield f"agents have other personas ({'; '.join(other)})"


def _turn(before: Record, after: Record, turn: TurnId) -> TurnDifference:
    a, b = (
        next((other for other in record.debate.turns if other.id == turn), None) for record in (before, after)
    )
    pieces, cut = differing(a.completion.text if a else "", b.completion.text if b else "")
    counts = dict.fromkeys(" -+", 0)
    for piece in pieces:
        counts[piece.mark] += len(_WORD.findall(piece.text))
    both = 2 * counts[" "]

    def persona(record: Record, held: Turn | None) -> str | None:
        return record.debate.personas[turn.agent].name if held else None

    return TurnDifference(
        turn=turn,
        personas=(persona(before, a), persona(after, b)),
        pieces=pieces,
        cut=cut,
        alike=both / (both + counts["-"] + counts["+"]) if pieces else 1.0,
        answers=(a.parsed.answer if a else None, b.parsed.answer if b else None),
        grades=(grade_of(turn, before.correct), grade_of(turn, after.correct)),
    )


def differing(before: str, after: str) -> tuple[tuple[TextPiece, ...], bool]:
    """Return two texts as pieces, and whether the middle was too long to compare.

    >>> [(piece.mark, piece.text) for piece in differing("so it is 4", "so it was 4")[0]]
    [(' ', 'so it '), ('-', 'is '), ('+', 'was '), (' ', '4')]
    """
    a, b = _WORD.findall(before), _WORD.findall(after)
    start = _common(a, b)
    end = _common(a[start:][::-1], b[start:][::-1])
    middle = a[start : len(a) - end], b[start : len(b) - end]
    cut = any(len(words) > MOST_WORDS or sum(map(len, words)) > MOST_CHARACTERS for words in middle)
    changes: list[tuple[Mark, list[str]]] = [(" ", a[:start])]
    if cut:
        changes.append(("-", middle[0]))
        changes.append(("+", middle[1]))
    else:
        for kind, i, j, k, m in SequenceMatcher(None, *middle).get_opcodes():
            if kind == "equal":
                changes.append((" ", middle[0][i:j]))
            else:
                changes.append(("-", middle[0][i:j]))
                changes.append(("+", middle[1][k:m]))
    changes.append((" ", a[len(a) - end :]))
    joined: list[TextPiece] = []
    for mark, group in groupby((one for one in changes if one[1]), key=lambda change: change[0]):
        joined.append(TextPiece(mark, "".join("".join(words) for _, words in group)))  # type: ignore[arg-type]
    return tuple(joined), cut


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    """Return how many words at the beginning are the same."""
    pairs = enumerate(zip(a, b, strict=False))
    return next((index for index, (word, other) in pairs if word != other), min(len(a), len(b)))
