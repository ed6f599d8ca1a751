"""The rewards of a debate's turns: streams that stay separate until the advantages.

Plain data is checked on entry. A ValueError states in one line the field, what was expected and what was
found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias, TypeGuard, TypeVar, cast, get_args

from msgspec import UNSET, UnsetType

from debate.types import Outcome, TurnId, Vote
from debate.values import Value

T = TypeVar("T")
Truth: TypeAlias = bool | Literal["missing"] | None
"""True or False as graded, "missing" without an answer, None if it was not graded or the grader failed."""

Correct: TypeAlias = Sequence[Sequence[Truth]] | None
"""``correct[agent][round]``, shape (N, R); None for a problem without an answer."""

Stream: TypeAlias = tuple[tuple[float | None, ...], ...]
"""``stream[agent][round]``. None means that the turn has no signal, which is not zero."""

Score: TypeAlias = float | Literal["missing"] | None
"""A verifier model's score in [0, 1], "missing" without an answer, None without a verdict."""


class Verdicts(Value, frozen=True):
    """A verifier model's verdicts on a debate's solutions. They are opinions, not ground truth.

    ``scores`` (N, R); a solution passes with a score of ``threshold`` or more.
    """

    verifier: str
    threshold: float
    scores: tuple[tuple[Score, ...], ...]

    def score(self, turn: TurnId) -> float | None:
        """Return the score of a solution, or None."""
        score = value_of(self.scores, turn)
        return None if score is None or isinstance(score, str) else score

    def passes(self, turn: TurnId) -> bool | None:
        """Return whether a solution passes, or None without a score.

        >>> Verdicts("m", 0.5, ((0.5, "missing"),)).passes(TurnId(0, 0))
        True
        """
        score = self.score(turn)
        return None if score is None else score >= self.threshold


STREAMS: Final = ("peer", "truth", "judge", "format")
"""The fields of ``Rewards`` that have a stream under every scheme."""
OPTIONAL_STREAMS: Final = ("shaping", "likelihood", "persuasion")
"""The fields that have a stream only under some schemes or protocols."""


class Rewards(Value, frozen=True):
    """Rewards by turn, indexed as ``[agent][round]``.

    ``peer`` (N, R): votes received, in [-1, 1] for margin and copeland; None without votes.

    ``truth`` (N, R): ground truth; None if the turn was not graded.

    ``judge`` (N, R + 1): votes given, in [-1, 1]; None if no vote had a value. Round R is the final ballot.

    ``format`` (N, R + 1): 0.0, or the penalty for missing votes; None without a turn.

    ``shaping`` (N, R): novelty, copying and length (rewards.shaping), only if the scheme rewards them.

    ``likelihood`` (N, R): how well the reasoning alone predicts the gold answer (``Likelihoods``), only if
    the scheme rewards it.

    ``persuasion`` (N, R): the rewards of criticism (rewards.criticism), only in a critique.

    ``counters``: sorted (name, count) pairs; every debate has every name.
    """

    peer: Stream
    truth: Stream
    judge: Stream
    format: Stream
    counters: tuple[tuple[str, int], ...] = ()
    shaping: Stream | UnsetType = UNSET
    likelihood: Stream | UnsetType = UNSET
    persuasion: Stream | UnsetType = UNSET

    def count(self, name: str) -> int:
        """Return the count with this name, such as "votes/valid". KeyError if there is none.

        >>> Rewards((), (), (), (), (("votes/valid", 9),)).count("votes/valid")
        9
        """
        return dict(self.counters)[name]


def stream_named(rewards: Rewards | None, name: str) -> Stream:
    """Return a stream by its name; () if the rewards or the stream do not exist.

    >>> stream_named(Rewards(((1.0,),), (), (), ()), "peer"), stream_named(NO_REWARDS, "shaping")
    (((1.0,),), ())
    """
    stream: Stream | UnsetType = getattr(rewards, name, ())
    return () if stream is UNSET else stream


class Likelihoods(Value, frozen=True):
    """The gold answer's mean log-probability per token under a frozen model, in nats, without the question.

    The question is hidden, so the reasoning must contain everything needed to predict the answer [Markovian
    training, arXiv 2404.18988]. The mean over tokens follows the source: a long answer is not less likely
    because of its length. ``debate_rl.likelihood`` measures the values where the model is loaded.

    ``logprobs`` (N, R): after the reasoning of each solution; None if it did not fit the context.
    ``baseline``: after the text that is the problem's baseline; None without one.
    """

    logprobs: Stream
    baseline: float | None = None


NO_REWARDS = Rewards((), (), (), ())
"""The rewards of a debate that was not scored."""


def stream_of(values: Mapping[TurnId, float | None], num_agents: int, num_rounds: int) -> Stream:
    """Return the values by turn as ``[agent][round]``, with None for turns without a value.

    >>> stream_of({TurnId(1, 0): 0.5}, 2, 1)
    ((None,), (0.5,))
    """
    rows: list[list[float | None]] = [[None] * num_rounds for _ in range(num_agents)]
    for turn, value in values.items():
        if 0 <= turn.agent < num_agents and 0 <= turn.round < num_rounds:
            rows[turn.agent][turn.round] = value
    return tuple(map(tuple, rows))


def known_values(stream: Sequence[Sequence[float | None]]) -> list[float]:
    """Return all values that are not None.

    >>> known_values(((0.5, None), (None, -1.0)))
    [0.5, -1.0]
    """
    return [value for row in stream for value in row if value is not None]


def value_of(table: Sequence[Sequence[T]], turn: TurnId) -> T | None:
    """Return ``table[agent][round]`` of a stream or of grades, or None out of range.

    >>> value_of(((0.5,),), TurnId(0, 0)), value_of(((0.5,),), TurnId(0, 1))
    (0.5, None)
    """
    row = table[turn.agent] if 0 <= turn.agent < len(table) else ()
    return row[turn.round] if 0 <= turn.round < len(row) else None


PlainVote: TypeAlias = tuple[int, int, int, int, Outcome]
"""A vote ``(judge, judge_round, left, right, outcome)`` on round ``judge_round - 1``: agents in [0, N),
rounds in [0, R].
"""

_FIELDS = ("judge", "judge_round", "left", "right", "outcome")


def check_size(num_agents: int, num_rounds: int) -> None:
    """Raise ValueError unless there is at least one agent and one round."""
    for name, value in (("num_agents", num_agents), ("num_rounds", num_rounds)):
        if value < 1:
            raise ValueError(f"{name}: must be 1 or more, got {value}")


def check_correct(correct: Correct, num_agents: int, num_rounds: int) -> None:
    """Raise ValueError unless ``correct`` is None or (N, R) of True, False, None and "missing"."""
    if correct is None:
        return
    _check_length("correct", correct, num_agents, "agents")
    for agent, row in enumerate(correct):
        _check_length(f"correct[{agent}]", row, num_rounds, "rounds")
        for round_, grade in enumerate(row):
            if not (grade is True or grade is False or grade is None or grade == "missing"):
                field = f"correct[{agent}][{round_}]"
                raise ValueError(f'{field}: expected True, False, None or "missing", got {grade!r}')


def _check_length(field: str, value: object, length: int, unit: str) -> None:
    if not _is_row(value):
        raise ValueError(f"{field}: expected a sequence of {length} {unit}, got {value!r}")
    if len(value) != length:
        raise ValueError(f"{field}: expected {length} {unit}, got {len(value)}")


def _is_row(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def read_vote(index: int, vote: object, *, num_agents: int, last_round: int) -> Vote:
    """Return a plain vote as a Vote about the round before its judge's.

    A ValueError names the invalid field.
    """
    if not _is_row(vote) or len(vote) != len(_FIELDS):
        raise ValueError(f"votes[{index}]: expected ({', '.join(_FIELDS)}), got {vote!r}")
    judge, round_, left, right, outcome = cast("PlainVote", vote)
    for name, agent in (("judge", judge), ("left", left), ("right", right)):
        _check_index(f"votes[{index}].{name}", agent, num_agents - 1)
    _check_index(f"votes[{index}].judge_round", round_, last_round)
    if outcome not in get_args(Outcome):
        raise ValueError(f'votes[{index}].outcome: expected "left", "right" or "tie", got {outcome!r}')
    return Vote(TurnId(judge, round_), TurnId(left, round_ - 1), TurnId(right, round_ - 1), outcome)


def _check_index(field: str, value: object, last: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= last:
        raise ValueError(f"{field}: expected a whole number from 0 to {last}, got {value!r}")
