"""A stored debate is checked once, so that the views can rely on its turns, votes and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from debate.types import TurnId
from transcripts import Record, RunStore, TranscriptError


def open_debate(store: RunStore, id: str, *, tokens: bool = False) -> Record:
    """Return a debate of a run that every view can show; TranscriptError names what is wrong with it."""
    record = store.debate(id, tokens=tokens)
    try:
        check_record(record)
    except ValueError as error:
        raise TranscriptError(f"{store.run}: debate {id}: {error}") from error
    return record


def check_record(record: Record) -> None:
    """Raise ValueError, with field and value, where turns, votes or tables do not fit the protocol."""
    for problem in _problems(record):
        raise ValueError(problem)


def _problems(record: Record) -> Iterator[str]:
    debate = record.debate
    agents, rounds = debate.protocol.num_agents, debate.protocol.num_rounds
    if len(debate.personas) != agents:
        yield f"debate.personas: {len(debate.personas)} of them, but the protocol has {agents} agents"
    yield from _turn_problems(record)
    known = {turn.id for turn in debate.turns}
    for index, vote in enumerate(debate.votes):
        for name, turn in (("judge", vote.judge), ("left", vote.left), ("right", vote.right)):
            if turn not in known:
                yield f"debate.votes[{index}].{name}: there is no turn {named(turn)}"
    if record.correct is not None:
        yield from _table_problems("correct", record.correct, agents, rounds)
    if record.rewards is not None:
        widths = {"peer": rounds, "truth": rounds, "judge": rounds + 1, "format": rounds + 1}
        for name, width in widths.items():
            yield from _table_problems(f"rewards.{name}", getattr(record.rewards, name), agents, width)


def _turn_problems(record: Record) -> Iterator[str]:
    protocol, seen = record.debate.protocol, set[TurnId]()
    for index, turn in enumerate(record.debate.turns):
        agent, round_ = turn.id.agent, turn.id.round
        if not (0 <= agent < protocol.num_agents and 0 <= round_ <= protocol.num_rounds):
            size = f"{protocol.num_agents} agents and {protocol.num_rounds} rounds"
            yield f"debate.turns[{index}].id: {named(turn.id)} is not a turn of a debate of {size}"
        if turn.ballot != (round_ >= protocol.num_rounds):
            yield f"debate.turns[{index}].ballot: {turn.ballot}, but {named(turn.id)} is of round {round_}"
        if turn.id in seen:
            yield f"debate.turns[{index}].id: {named(turn.id)} is there twice"
        seen.add(turn.id)


def _table_problems(name: str, table: Sequence[Sequence[object]], agents: int, width: int) -> Iterator[str]:
    if len(table) != agents:
        yield f"{name}: {len(table)} rows, but the debate has {agents} agents"
    for agent, row in enumerate(table):
        if len(row) != width:
            yield f"{name}[{agent}]: {len(row)} values, expected {width}"


def named(turn: TurnId) -> str:
    """Return a turn as it is written everywhere: agent and round, both from 0.

    >>> named(TurnId(2, 1))
    '2.1'
    """
    return f"{turn.agent}.{turn.round}"
