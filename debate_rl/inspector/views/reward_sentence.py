"""Why this reward, in one sentence: what the tokens get as a sum whose figures add up as they are shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from debate_rl.formatting import counted, figure
from debate_rl.inspector.views.debate import grade_name
from debate_rl.inspector.views.reward_types import (
    FormatWhy,
    JudgeWhy,
    Number,
    PeerWhy,
    StreamWhy,
    TotalWhy,
    TruthWhy,
)
from learner.advantages.turns import BESIDE

FEWEST_DIGITS, MOST_DIGITS = 2, 6
NOTHING = 1e-12
"""What is smaller is rounding of floats."""
_BESIDE = {
    "shaping": "shaping: new, copied or long",
    "likelihood": "what the reasoning alone says of the gold answer",
}


class Term(NamedTuple):
    """A part of a sum, and what it is for."""

    value: float
    about: str


def sentence(
    peer: PeerWhy | None,
    truth: TruthWhy | None,
    judge: JudgeWhy,
    format: FormatWhy,
    streams: Sequence[StreamWhy],
    total: TotalWhy,
) -> str:
    """Return what the solution's tokens get and why, then what those of the votes get.

    A sum that rounding leaves open names what is left.
    """
    by_name = {stream.name: stream for stream in streams}
    form = [Term(value, _formed(format)) for value in _values(total.format) if abs(value) > NOTHING]
    parts: list[str] = []
    if peer is not None and truth is not None:
        terms = list(_generator_terms(peer, truth, by_name, total))
        earned = _sum(terms, sum(_values(total.generator)))
        parts.append(earned + _silent(by_name, ("peer", "truth", "mixed")))
    if total.critic is not None:
        terms = [Term(value, "fallen scores of its targets") for value in _values(total.critic)]
        parts.append("its criticism: " + _sum(terms, sum(_values(total.critic))))
    if peer is None or judge.votes or form or list(_values(total.judge)):
        terms = [*(Term(value, _judged(judge)) for value in _values(total.judge)), *form]
        earned = _sum(terms, sum(_values(total.judge, total.format)), none=_no_judge_signal(judge))
        parts.append(("" if peer is None else "its votes: ") + earned + _silent(by_name, ("judge",)))
    return "; ".join(parts)


def _values(*numbers: Number) -> Iterator[float]:
    """Yield what numbers are, as recomputed or else as stored, where they are anything."""
    for number in numbers:
        value = number.stored if number.value is None else number.value
        if value is not None:
            yield value


def _generator_terms(
    peer: PeerWhy, truth: TruthWhy, streams: dict[str, StreamWhy], total: TotalWhy
) -> Iterator[Term]:
    """Yield the parts of the generator's advantage; one where they were mixed before, or are not stored."""
    numbers = {_BESIDE[name]: getattr(total, name) for name in BESIDE}
    beside = [Term(number.value, why) for why, number in numbers.items() if number and number.value]
    yield from beside
    votes, grade = _received(peer), _graded(truth, streams.get("truth") or streams.get("mixed"))
    parts = [*_values(total.peer), *_values(total.truth)]
    if not parts:
        mixed = "peer and truth together"
        rest = (value - sum(term.value for term in beside) for value in _values(total.generator))
        yield from (Term(value, f"{mixed}: {votes}; {grade}") for value in rest if value or not beside)
        return
    yield from (Term(value, votes + _baseline(streams.get("peer"))) for value in _values(total.peer))
    yield from (Term(value, grade) for value in _values(total.truth))


def _received(peer: PeerWhy) -> str:
    """Return how the valid votes on a turn went."""
    judges = len({vote.judge for vote in peer.votes if vote.counts})
    valid = peer.won + peer.lost + peer.ties
    if not valid:
        return "no valid vote names it"
    everybody = {1: "its one judge", 2: "both judges"}.get(judges, f"all {judges} judges")
    if peer.won == valid:
        return f"{everybody} preferred it"
    if peer.lost == valid:
        return f"{everybody} preferred another"
    ties = f", {counted(peer.ties, 'tie')}" if peer.ties else ""
    return f"{peer.won} of {counted(valid, 'vote')} preferred it{ties}"


def _baseline(stream: StreamWhy | None) -> str:
    """Return the baseline where the part has another sign than the reward, or else there would be none."""
    centre = None if stream is None or stream.centre is None else stream.centre.value
    if stream is None or centre is None:
        return ""
    reward, advantage = stream.reward.value or 0.0, stream.advantage.value or 0.0
    turned = abs(advantage) > NOTHING and reward * advantage <= 0
    return f"; its baseline is {figure(centre)}" if turned else ""


def _graded(truth: TruthWhy, stream: StreamWhy | None) -> str:
    """Return the grade, and how many of the group were right, or the baseline of another kind."""
    words = {"missing": "no answer", "ungraded": "not graded"}
    grade = words.get(grade_name(truth.grade), grade_name(truth.grade))
    if truth.by:
        grade = truth.by if truth.grade is None else f"{grade} by {truth.by}"
    members = stream.members if stream else ()
    if truth.verdict and grade == words["ungraded"]:
        return truth.verdict + _baseline(stream)
    if members:
        return f"{grade}; {sum(member.right for member in members)} of {len(members)} in its group were right"
    return grade + _baseline(stream)


def _judged(judge: JudgeWhy) -> str:
    """Return how right the votes were that a turn gave."""
    counting = [vote for vote in judge.votes if vote.counts]
    differ = [vote for vote in counting if (vote.left_right[0] is True) != (vote.left_right[1] is True)]
    decidable = [vote.truth for vote in differ if vote.truth is not None]
    if decidable:
        return f"{decidable.count(1)} of {counted(len(decidable), 'decidable vote')} right"
    agreeing = [vote.consensus for vote in counting if vote.consensus is not None]
    if agreeing:
        return f"{agreeing.count(1)} of {counted(len(agreeing), 'vote')} as the other judges"
    return counted(len(counting), "valid vote")


def _no_judge_signal(judge: JudgeWhy) -> str:
    """Return why votes earn nothing, where nothing was compared yet."""
    if not any(vote.counts for vote in judge.votes):
        return "no valid vote"
    valued = any(vote.value.value is not None for vote in judge.votes)
    return "no signal" if valued else "none of its votes has a value"


def _formed(format: FormatWhy) -> str:
    return "a valid vote, as was due" if format.counted else "no valid vote, and one was due"


def _silent(streams: dict[str, StreamWhy], names: Sequence[str]) -> str:
    """Return which streams had a value that became no signal, and why."""
    silent = [streams[name] for name in names if name in streams]
    told = [
        f"; nothing from {stream.name}: {stream.advantage.source.removeprefix('no signal: ')}"
        for stream in silent
        if stream.reward.value is not None and stream.advantage.value is None and not stream.advantage.stored
    ]
    return "".join(told)


def _sum(terms: Sequence[Term], total: float, *, none: str = "no signal") -> str:
    """Return the sum of the terms, "+0.28 = +0.50 (why) - 0.22 (why)", adding up as it is written.

    >>> _sum([Term(0.5, "a"), Term(-0.25, "b")], 0.25), _sum([Term(0.5, "a")], 0.5), _sum([], 0.0)
    ('+0.25 = +0.50 (a) - 0.25 (b)', '+0.50 (a)', '0 (no signal)')
    >>> _sum([Term(1 / 3, "a"), Term(1 / 3, "b")], 2 / 3)
    '+0.67 = +0.33 (a) + 0.33 (b) + 0.01 (rounding)'
    """
    if not terms:
        return f"0 ({none})"
    digits = _digits([total, *(term.value for term in terms)])
    values = [round(term.value * 10**digits) for term in terms]
    whole = round(total * 10**digits)
    left = whole - sum(values)
    parts = list(zip(values, (term.about for term in terms), strict=True))
    if left:
        parts.append((left, "rounding" if abs(left) <= len(terms) else "what is stored does not explain it"))
    if len(parts) == 1:
        return f"{_written(whole, digits, '+')} ({terms[0].about})"
    first, *more = (f"{_written(value, digits, sign)} ({about})" for value, about, sign in _with_signs(parts))
    return f"{_written(whole, digits, '+')} = {' '.join([first, *more])}"


def _with_signs(parts: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str, str]]:
    """Yield the parts with what stands before a positive one: the first has its sign close to it."""
    for index, (value, about) in enumerate(parts):
        yield value, about, "+ " if index else "+"


def _digits(values: Sequence[float]) -> int:
    """Return how many digits behind the point tell every value from zero, 2 to 6.

    >>> _digits([0.5, 0.0]), _digits([0.5, 0.0008]), _digits([1e-9])
    (2, 3, 6)
    """
    least = min((abs(value) for value in values if abs(value) > NOTHING), default=1.0)
    enough = (digits for digits in range(FEWEST_DIGITS, MOST_DIGITS) if least * 10**digits >= 0.5)
    return next(enough, MOST_DIGITS)


def _written(value: int, digits: int, plus: str) -> str:
    """Return a number of units of its last digit as it is written, zero as positive.

    >>> _written(-22, 2, "+ "), _written(50, 2, "+"), _written(-1234, 3, "+")
    ('- 0.22', '+0.50', '-1.234')
    """
    sign = plus.replace("+", "-") if value < 0 else plus
    whole, rest = divmod(abs(value), 10**digits)
    return f"{sign}{whole}.{rest:0{digits}d}"
