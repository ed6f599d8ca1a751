"""The tables of a run as rows for pandas: debates, turns, votes and metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from debate.settings import install_hint
from rewards import ballot_box
from rewards.judge_rewards import better_side
from rewards.truth import GRADES, grade_of
from rewards.votes import drop_reasons
from transcripts.errors import TranscriptError
from transcripts.record import Record, turn_rows

if TYPE_CHECKING:
    from pandas import DataFrame  # pyright: ignore[reportMissingTypeStubs]

    from transcripts.run_store import RunStore

Table: TypeAlias = Literal["debates", "turns", "votes", "metrics"]
Row: TypeAlias = dict[str, Any]


def frame_of(store: RunStore, table: Table, filter: str) -> DataFrame:
    """Return a table of a run. ValueError for an unknown table, or for metrics with a filter."""
    try:
        from pandas import DataFrame  # pyright: ignore[reportMissingTypeStubs]
    except ImportError as error:
        raise ValueError(f"pandas is not installed; {install_hint('train')}") from error
    if table == "metrics" and filter:
        raise ValueError(f"filter {filter!r}: metrics are of whole steps and cannot be filtered")
    if table not in TABLES:
        raise ValueError(f"{table!r} is no table of a run; the tables are {', '.join(TABLES)}")
    return DataFrame(list(TABLES[table](store, filter)))


def _debates(store: RunStore, filter: str) -> Iterator[Row]:
    for row in store.debates(filter, limit=store.count(filter)):
        own = {"debate": row.id, "step": row.step, "question": row.problem.question, "gold": row.problem.gold}
        of = {"problem": row.problem.id, "source": row.problem.source, "level": row.problem.level}
        yield {**own, **of, "personas": row.personas, **row.facts._asdict(), "winner": row.winner}


def _turns(store: RunStore, filter: str) -> Iterator[Row]:
    for id, record in store.records(filter):
        yield from turn_rows(id, record)


def _votes(store: RunStore, filter: str) -> Iterator[Row]:
    for id, record in store.records(filter):
        yield from vote_rows(id, record)


def vote_rows(id: str, record: Record) -> Iterator[Row]:
    """Yield a flat row for each vote of a debate, as it was cast.

    ``dropped``: why the vote does not count, or "". ``is_right``: whether it prefers the right one of a right
    and a wrong solution; a tie does not. None if the vote does not count, or if the pair is not decidable.
    """
    debate, names = record.debate, [persona.name for persona in record.debate.personas]
    for vote, dropped in zip(debate.votes, drop_reasons(ballot_box(debate)), strict=True):
        better = 0 if dropped else better_side(vote.left, vote.right, record.correct)
        yield {
            "debate": id,
            "judge": vote.judge.agent,
            "round": vote.judge.round,
            "persona": names[vote.judge.agent],
            **{
                f"{side}_{name}": value
                for side, turn in (("left", vote.left), ("right", vote.right))
                for name, value in (
                    ("agent", turn.agent),
                    ("round", turn.round),
                    ("grade", GRADES[grade_of(turn, record.correct)]),
                )
            },
            "outcome": vote.outcome,
            "dropped": dropped,
            "is_right": vote.outcome == ("left" if better > 0 else "right") if better else None,
        }


def _metrics(store: RunStore, _: str) -> Iterator[Row]:
    path = store.run / "metrics.jsonl"
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise TranscriptError(f"{path}: {error.strerror}") from error
    for number, line in enumerate(lines, start=1):
        try:
            yield msgspec.json.decode(line, type=dict[str, Any])
        except msgspec.MsgspecError as error:
            if number < len(lines):  # the last line may be unfinished
                raise TranscriptError(f"{path}: line {number}: {error}") from error


TABLES: Mapping[Table, Callable[[RunStore, str], Iterator[Row]]] = {
    "debates": _debates,
    "turns": _turns,
    "votes": _votes,
    "metrics": _metrics,
}
