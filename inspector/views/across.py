"""One problem across the steps of a run and its evaluated checkpoints, and two of its debates compared."""

from __future__ import annotations

from dataclasses import dataclass

from debate.types import TurnId
from transcripts import Correct, Record, RunStore


@dataclass(frozen=True, slots=True)
class Held:
    """One debate of the problem.

    ``ref`` opens it again (``read``): the id of a debate of the run, or EVALUATION:SEED.PLACE. ``where``:
    "training", or the evaluation's folder, whose name begins with the checkpoint's. ``version`` is the
    policy's. ``answers`` and ``grades`` are (N, R). ``winner``: the voted winner, None without votes.
    """

    ref: str
    where: str
    step: int
    version: int
    answers: tuple[tuple[str | None, ...], ...]
    grades: tuple[tuple[Correct, ...], ...] | None
    winner: int | None


@dataclass(frozen=True, slots=True)
class Across:
    """The debates of a problem, by policy version; ``total``: how many there are, shown or not.

    ``notes``: what could not be read.
    """

    problem: str
    question: str
    gold: str | None
    held: tuple[Held, ...]
    total: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Words that both texts have (" "), that only the first has ("-") or only the second ("+")."""

    mark: str
    text: str


@dataclass(frozen=True, slots=True)
class TurnDifference:
    """One turn in both debates. ``pieces``: the texts word by word; ``cut``: only their beginnings.

    ``answers`` and ``grades`` are before and after; a turn that one debate lacks has None there.
    """

    turn: TurnId
    personas: tuple[str | None, str | None]
    pieces: tuple[TextPiece, ...]
    cut: bool
    alike: float
    answers: tuple[str | None, str | None]
    grades: tuple[Correct, Correct]


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
        """Whether the vote is new, gone, reversed, or otherwise changed."""
        if self.before is None:
            return "new"
        if self.after is None:
            return "gone"
        return "changed" if "tie" in (self.before, self.after) else "reversed"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two debates of a problem, turn by turn, and the votes that differ; ``notes`` say what may mislead."""

    before: str
    after: str
    turns: tuple[TurnDifference, ...]
    votes: tuple[VoteDifference, ...]
    same_votes: int
    notes: tuple[str, ...] = ()


def across(
    store: RunStore, problem_id: str, *, steps: tuple[int, int | None] | None = None, limit: int = 50
) -> Across:
    """Return the debates of a problem in the order of policy versions, at most ``limit`` of the run's.

    ``steps``: the first and the last of training to look at. TranscriptError where there is no debate of it.
    """
    raise NotImplementedError


def read(store: RunStore, ref: str) -> Record:
    """Return the debate that a ``Held.ref`` names; TranscriptError where there is none."""
    raise NotImplementedError


def compare(before: Record, after: Record, names: tuple[str, str] = ("before", "after")) -> Comparison:
    """Return what differs between two debates."""
    raise NotImplementedError
