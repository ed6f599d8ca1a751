"""Why this reward? The chain votes, rewards, baselines, advantage of one turn, each number with its source.

Whatever is computed is computed by the package's own rewards and advantages, over the whole step; the
formulas only explain what these gave.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import UNSET

from debate.types import TurnId
from debate_rl.config.recipes import ConfigError, read_run_config
from debate_rl.formatting import counted, figure
from debate_rl.inspector.views.debate import grade_name, handles_of
from debate_rl.inspector.views.reward_arithmetic import streams_why, total_why
from debate_rl.inspector.views.reward_sentence import sentence
from debate_rl.inspector.views.reward_step import Numbers, Step, recompute
from debate_rl.inspector.views.reward_types import (
    FormatWhy,
    JudgeWhy,
    Number,
    OutlineLine,
    PeerWhy,
    StreamWhy,
    TotalWhy,
    TruthWhy,
    Why,
)
from debate_rl.inspector.views.reward_votes import (
    NO_LABEL,
    format_why,
    judge_why,
    peer_why,
    truth_why,
    votes_of,
)
from debate_rl.replay.scheme import scheme_of
from learner.advantages import AdvantageConfig, Author
from learner.advantages.turns import BESIDE, is_masked, owes
from transcripts import Record, RunStore, TranscriptError
from transcripts.record import named

if TYPE_CHECKING:
    from debate_rl.config import Config

LONGEST = 160
"""Characters of a formula in full; of longer ones the outline has the value alone."""


def config_of(run: Path) -> tuple[Config | None, str]:
    """Return a run's configuration; None, and why in one line, where there is none that can be read.

    Code that the run names is not loaded: ``read_run_config``.
    """
    try:
        return read_run_config(run), ""
    except ConfigError as error:
        return None, f"no configuration, so only what is stored is shown: {error}"


def evaluation_of(run: Path) -> Author:
    """Return whose an evaluation is in a run, ``advantages.evaluation``; its default where none is known."""
    config, _ = config_of(run)
    return (AdvantageConfig() if config is None else config.advantages).evaluation


def why(store: RunStore, config: Config | None, id: str, turn: TurnId, *, note: str = "") -> Why:
    """Return the explanation of a turn; without a configuration it has stored numbers alone.

    ``note``: why there is no configuration, if there is none. TranscriptError where there is no such debate
    or turn, or where its turns do not fit its protocol.
    """
    record = store.debate(id)
    id = _plain(id)
    _require(record, id, turn)
    step, problem = _step(store, record, config, id, turn)
    notes = [note or "no configuration: only what is stored is shown"] if note or config is None else []
    notes += [problem] if problem else []
    notes += _notes(store, record, config, step)
    if config is not None and is_masked(record.debate.turn(turn), config.rewards):
        notes.append(
            'rewards.overlong = "mask": the reply ended at its token limit, so nothing is learnt from it'
        )
    return _explained(id, Numbers(record, turn, step), notes)


def _plain(id: str) -> str:
    """Return an id as the run writes it.

    >>> _plain("012.03")
    '12.3'
    """
    step, _, index = id.partition(".")
    return f"{int(step)}.{int(index)}"


def _require(record: Record, id: str, turn: TurnId) -> None:
    known = [turn.id for turn in record.debate.turns]
    if turn not in known:
        ids = ", ".join(map(named, known)) or "none"
        raise TranscriptError(f"debate {id}: no turn {named(turn)}; there are {ids}")


def _step(
    store: RunStore, record: Record, config: Config | None, id: str, turn: TurnId
) -> tuple[Step | None, str]:
    """Return the step recomputed, or why it cannot be."""
    if not record.debate.protocol.learns(turn.agent):
        seat = record.debate.protocol.seat(turn.agent)
        return None, f"the seat is {seat}: nothing is learnt from this turn, so only what is stored is shown"
    if config is None:
        return None, ""
    try:
        return recompute(store, scheme_of(config), id, turn), ""
    except Exception as error:  # the user's own rule may raise anything, and so may other code
        reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        step = id.partition(".")[0]
        return None, f"step {step} cannot be recomputed, so only what is stored is shown: {reason}"


def _notes(store: RunStore, record: Record, config: Config | None, step: Step | None) -> Iterator[str]:
    if config is not None and config.train.control != "none":
        drawn = config.train.draws_rewards
        what = "a coin stands for truth" if drawn else "votes are not what the judges' lines say"
        yield f"train.control = {config.train.control}: {what}"
    if record.rewards is None:
        yield "no rewards are stored with this debate"
    damaged = [line for line in store.damage if line.startswith(f"step {record.step},")]
    if damaged and step is not None:
        yield f"{counted(len(damaged), 'damaged line')} of this step; baseline groups lack their debates"


def _explained(id: str, numbers: Numbers, notes: Sequence[str]) -> Why:
    record, turn, votes = numbers.record, numbers.turn, votes_of(numbers)
    ballot = record.debate.turn(turn).ballot
    peer = None if ballot else peer_why(numbers, votes)
    truth = None if ballot else truth_why(numbers)
    judge, format = judge_why(numbers, votes), format_why(numbers, votes)
    streams = tuple(stream for stream in streams_why(numbers) if _concerns(stream, record, turn))
    total = total_why(numbers)
    explanation = Why(
        id=id,
        turn=turn,
        persona=record.debate.personas[turn.agent].name,
        problem=record.debate.problem.id,
        ballot=ballot,
        peer=peer,
        truth=truth,
        judge=judge,
        format=format,
        streams=streams,
        total=total,
        sentence=sentence(peer, truth, judge, format, streams, total),
        notes=tuple(notes),
        handles=handles_of(record),
    )
    badges = [number.matches for number in numbers_in(explanation) if number.matches is not None]
    return replace(explanation, matches=all(badges) if badges else None)


def _concerns(stream: StreamWhy, record: Record, turn: TurnId) -> bool:
    """Return whether a stream can say anything of a turn: criticism, votes, or a solution."""
    of = record.debate.turn(turn)
    if stream.name == "persuasion":
        return of.parsed.criticisms is not UNSET
    if stream.name == "format":
        return owes(of)
    return stream.name == "judge" or not of.ballot


def numbers_in(part: object) -> Iterator[Number]:
    """Yield every number of an explanation, or of a part of one."""
    if isinstance(part, Number):
        yield part
    elif isinstance(part, (tuple, list)):
        for item in part:
            yield from numbers_in(item)
    elif is_dataclass(part):
        for field in fields(part):
            yield from numbers_in(getattr(part, field.name))


def outline(why: Why) -> tuple[OutlineLine, ...]:
    """Return the explanation as lines; turns of other debates are AGENT.ROUND, as in filters."""
    return tuple(_lines(why))


def _lines(why: Why) -> Iterator[OutlineLine]:
    yield OutlineLine(0, why.sentence)
    for note in why.notes:
        yield OutlineLine(0, f"note: {note}")
    if why.peer is not None:
        yield from _peer(why, why.peer)
    if why.truth is not None:
        yield from _truth(why.truth)
    yield from _judge(why, why.judge)
    yield from _format(why.format)
    for stream in why.streams:
        yield from _stream(stream)
    yield from _total(why.total)


def _number(depth: int, name: str, number: Number) -> OutlineLine:
    source = f"  ({number.source})" if number.source else ""
    text = number.text if len(number.formula) <= LONGEST else figure(number.value)
    stored = f"; stored: {figure(number.stored)}" if number.matches is False else ""
    return OutlineLine(depth, f"{name}: {text}{stored}{source}", matches=number.matches)


def _peer(why: Why, peer: PeerWhy) -> Iterator[OutlineLine]:
    rule = f", rewards.peer = {peer.rule}" if peer.rule else ""
    yield OutlineLine(0, f"peer: {peer.won} won, {peer.lost} lost, {peer.ties} ties{rule}")
    for vote in peer.votes:
        result = "tie with" if vote.result == "tie" else f"{vote.result} against"
        dropped = "" if vote.counts else f"; does not count: {vote.why_not.replace('_', ' ')}"
        text = f"{why.handle(vote.judge)} {vote.persona}: {result} {why.handle(vote.other)}{dropped}"
        yield OutlineLine(1, text, quote=vote.line)
    for other in peer.opponents:
        score = "" if other.score is None else f", its score {figure(other.score)}"
        beats = "" if other.beats is None else f", preferred to it with p = {figure(other.beats)}"
        counts = f"{other.won} won, {other.lost} lost, {other.ties} ties"
        text = f"against {why.handle(other.turn)}: {counts}{score}{beats}"
        yield OutlineLine(1, text)
    yield _number(1, "peer reward", peer.reward)


def _truth(truth: TruthWhy) -> Iterator[OutlineLine]:
    gold = "" if truth.gold is None else " against gold"
    by = gold if not truth.by else f": {NO_LABEL}" if truth.by == NO_LABEL else f" by {truth.by}"
    yield OutlineLine(0, f"truth: {grade_name(truth.grade)}{by}")
    if truth.by and truth.audit is not None:
        yield OutlineLine(1, f"{grade_name(truth.audit)}{gold}, an audit that rewards nothing")
    if truth.answer is not None:
        yield OutlineLine(1, "answer", quote=truth.answer)
    if truth.gold is not None:
        yield OutlineLine(1, "gold", quote=truth.gold)
    for name, followed in truth.parts:
        yield OutlineLine(1, f"{'followed' if followed else 'not followed'}: {name}")
    if truth.score is not None:
        yield OutlineLine(1, f"score: {figure(truth.score)}")
    if truth.verdict:
        yield OutlineLine(1, truth.verdict)
    yield _number(1, "truth reward", truth.reward)


def _judge(why: Why, judge: JudgeWhy) -> Iterator[OutlineLine]:
    share = "" if judge.truth_weight is None else f", weight of truth {figure(judge.truth_weight)}"
    yield OutlineLine(0, f"judge: {counted(len(judge.votes), 'vote')} given{share}")
    for vote in judge.votes:
        sign = {"left": ">", "right": "<", "tie": "="}.get(vote.outcome, "?")
        left, right = (grade_name(grade) for grade in vote.left_right)
        sides = f"{why.handle(vote.left)} ({left}) {sign} {why.handle(vote.right)} ({right})"
        yield OutlineLine(1, sides, quote=vote.line)
        if vote.truth is not None:
            yield OutlineLine(2, f"truth value: {vote.truth:+d}")
        if vote.others is not None:
            consensus = "none" if vote.consensus is None else f"{vote.consensus:+d}"
            net = f"the other judges' net vote for the first: {vote.others:+d}"
            yield OutlineLine(2, f"{net}; consensus value: {consensus}")
        if vote.verdict is not None:
            yield OutlineLine(2, f"a verifier model's preference (no ground truth): {vote.verdict:+d}")
        yield _number(2, "value of the vote", vote.value)
    yield _number(1, "judge reward", judge.reward)


def _format(format: FormatWhy) -> Iterator[OutlineLine]:
    due = f"due on {len(format.comparable)} solutions" if format.due else "not due"
    yield OutlineLine(0, f"format: comparisons {due}, valid votes: {format.counted}")
    for reason, detail in format.failures:
        yield OutlineLine(1, f"malformed: {reason.replace('_', ' ')}", quote=detail)
    yield _number(1, "format penalty", format.reward)


def _stream(stream: StreamWhy) -> Iterator[OutlineLine]:
    how = f"baseline {stream.baseline}, scale {stream.scale}, group by {stream.key}"
    yield OutlineLine(0, f"advantage of {stream.name}: {how}")
    yield _number(1, "value", stream.reward)
    for member in stream.members:
        mark = ", this turn" if member.this else ""
        text = f"{member.id} turn {named(member.turn)} ({member.persona}): {figure(member.value)}{mark}"
        yield OutlineLine(2, text)
    if stream.centre is not None:
        yield _number(1, "baseline", stream.centre)
    if stream.spread is not None:
        yield _number(1, "spread", stream.spread)
    yield _number(1, f"A_{stream.name}", stream.advantage)


def _total(total: TotalWhy) -> Iterator[OutlineLine]:
    yield OutlineLine(0, "what the tokens get")
    for name in ("generator", "peer", "truth", "judge", "format"):
        depth = 2 if name in ("peer", "truth") else 1
        yield _number(depth, f"part of {name}" if depth == 2 else name, getattr(total, name))
        for beside in BESIDE if name == "truth" else ():
            if (number := getattr(total, beside)) is not None:
                yield _number(2, f"part of {beside}", number)
    if total.critic is not None:
        yield _number(1, "critic", total.critic)
