"""The explanation of a reward as an outline: one line for each number, from the votes to the advantages."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.views.checked import named
from inspector.views.reward_types import (
    FormatWhy,
    JudgeWhy,
    Line,
    Number,
    PeerWhy,
    StreamWhy,
    TotalWhy,
    TruthWhy,
    Why,
    figure,
)
from transcripts import Correct

GRADES: dict[Correct, str] = {True: "right", False: "wrong", "missing": "missing", None: "ungraded"}
"""What a grade is called."""
LONGEST = 160
"""Characters of a formula in full; of longer ones the outline has the value alone."""


def outline(found: Why) -> tuple[Line, ...]:
    """Return the explanation as lines; ids and turns count from 0, as in filters."""
    return tuple(_lines(found))


def _lines(found: Why) -> Iterator[Line]:
    for note in found.notes:
        yield Line(0, f"note: {note}")
    if found.peer is not None:
        yield from _peer(found.id, found.peer)
    if found.truth is not None:
        yield from _truth(found.truth)
    yield from _judge(found.id, found.judge)
    yield from _format(found.format)
    for stream in found.streams:
        yield from _stream(found.id, stream)
    yield from _total(found.total)


def _number(depth: int, name: str, number: Number) -> Line:
    source = f"  ({number.source})" if number.source else ""
    told = number.told if len(number.formula) <= LONGEST else figure(number.value)
    stored = f"; stored: {figure(number.stored)}" if number.matches is False else ""
    return Line(depth, f"{name}: {told}{stored}{source}", matches=number.matches)


def _peer(id: str, peer: PeerWhy) -> Iterator[Line]:
    rule = f", rewards.peer = {peer.rule}" if peer.rule else ""
    yield Line(0, f"peer: {peer.won} won, {peer.lost} lost, {peer.ties} ties{rule}")
    for vote in peer.votes:
        against = (
            f"{vote.result} against {named(vote.other)}"
            if vote.result != "tie"
            else (f"tie with {named(vote.other)}")
        )
        dropped = "" if vote.counts else f"; does not count: {vote.why_not}"
        text = f"judge {named(vote.judge)} ({vote.persona}): {against}{dropped}"
        yield Line(1, text, quote=vote.line, opens=(id, vote.judge))
    for other in peer.opponents:
        score = "" if other.score is None else f", its score {figure(other.score)}"
        beats = "" if other.beats is None else f", preferred to it with p = {figure(other.beats)}"
        counts = f"{other.won} won, {other.lost} lost, {other.ties} ties"
        yield Line(1, f"against {named(other.turn)}: {counts}{score}{beats}", opens=(id, other.turn))
    yield _number(1, "peer reward", peer.reward)


def _truth(truth: TruthWhy) -> Iterator[Line]:
    gold = "" if truth.gold is None else " against gold"
    yield Line(0, f"truth: {GRADES[truth.grade]}{gold}")
    if truth.answer is not None:
        yield Line(1, "answer", quote=truth.answer)
    if truth.gold is not None:
        yield Line(1, "gold", quote=truth.gold)
    yield _number(1, "truth reward", truth.reward)


def _judge(id: str, judge: JudgeWhy) -> Iterator[Line]:
    share = "" if judge.truth_weight is None else f", truth weighs {figure(judge.truth_weight)}"
    yield Line(0, f"judge: {_count(len(judge.votes), 'vote')} given{share}")
    for vote in judge.votes:
        sign = {"left": ">", "right": "<", "tie": "="}.get(vote.outcome, "?")
        left, right = (GRADES[grade] for grade in vote.left_right)
        sides = f"{named(vote.left)} ({left}) {sign} {named(vote.right)} ({right})"
        yield Line(1, sides, quote=vote.line, opens=(id, vote.left))
        if vote.truth is not None:
            yield Line(2, f"truth value: {vote.truth:+d}")
        if vote.others is not None:
            told = "none" if vote.consensus is None else f"{vote.consensus:+d}"
            yield Line(
                2, f"the other judges' net vote for the first: {vote.others:+d}; consensus value: {told}"
            )
        yield _number(2, "value of the vote", vote.value)
    yield _number(1, "judge reward", judge.reward)


def _count(number: int, thing: str) -> str:
    """Return a number of things.

    >>> _count(1, "vote"), _count(2, "vote")
    ('1 vote', '2 votes')
    """
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _format(found: FormatWhy) -> Iterator[Line]:
    due = f"due on {len(found.comparable)} solutions" if found.due else "not due"
    yield Line(0, f"format: comparisons {due}, votes that count: {found.counted}")
    for reason, detail in found.failures:
        yield Line(1, f"could not be read: {reason}", quote=detail)
    yield _number(1, "fine", found.reward)


def _stream(id: str, stream: StreamWhy) -> Iterator[Line]:
    how = f"baseline {stream.baseline}, scale {stream.scale}, group by {stream.key}"
    yield Line(0, f"advantage of {stream.name}: {how}")
    yield _number(1, "value", stream.reward)
    for member in stream.members:
        mark = ", this turn" if member.this else ""
        text = f"{member.id} turn {named(member.turn)} ({member.persona}): {figure(member.value)}{mark}"
        yield Line(2, text, opens=(member.id, member.turn))
    if stream.centre is not None:
        yield _number(1, "baseline", stream.centre)
    if stream.spread is not None:
        yield _number(1, "spread", stream.spread)
    yield _number(1, f"A_{stream.name}", stream.advantage)


def _total(total: TotalWhy) -> Iterator[Line]:
    yield Line(0, "what the tokens get")
    for name in ("generator", "peer", "truth", "judge", "format"):
        depth = 2 if name in ("peer", "truth") else 1
        yield _number(depth, f"part of {name}" if depth == 2 else name, getattr(total, name))
