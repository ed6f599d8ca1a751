"""The tables of a run as rows for pandas: debates, turns, votes, annotations and metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from debate.settings import install_hint
from rewards import STREAMS, ballot_box
from rewards.judge_rewards import better_side
from rewards.truth import GRADES, grade_of
from rewards.votes import drop_reasons, pair_of, valid_votes, verdict
from transcripts.annotations import Annotation, Place, checksum
from transcripts.codec import decoded_lines
from transcripts.errors import TranscriptError
from transcripts.index.database import MOST_DEBATES
from transcripts.index.facts import Facts
from transcripts.record import PARTS, Record, turn_rows

if TYPE_CHECKING:
    from pandas import DataFrame  # pyright: ignore[reportMissingTypeStubs]

    from transcripts.run_store import RunStore

Table: TypeAlias = Literal["debates", "turns", "votes", "annotations", "metrics"]
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
    rows = list(TABLES[table](store, filter))
    return DataFrame(rows, columns=None if rows else COLUMNS.get(table))


def _debates(store: RunStore, filter: str) -> Iterator[Row]:
    for row in store.debates(filter, limit=store.count(filter)):
        own = {"debate": row.id, "step": row.step, "question": row.problem.question, "gold": row.problem.gold}
        of = {"problem": row.problem.id, "source": row.problem.source, "level": row.problem.level}
        yield {**own, **of, "personas": row.personas, **row.facts._asdict(), "winner": row.winner}


def _by_debate(rows: Callable[[str, Record], Iterator[Row]]) -> Callable[[RunStore, str], Iterator[Row]]:
    return lambda store, filter: (row for one in store.records(filter) for row in rows(*one))


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


def annotation_rows(store: RunStore, filter: str = "") -> Iterator[Row]:
    """Yield a flat row for each star, note and label on debates that match a filter, in the order of the run.

    ``gold``: the grade of a turn's solution, the right side of a pair ("left" or "right"), or None.
    ``left_votes``, ``tie_votes``, ``right_votes``: the numbers of valid votes on the pair. ``stale``: whether
    the debate is gone or has other replies now; then its problem, gold and votes are None.
    """
    any_of = "star:yes OR label:* OR note:*"
    wanted = f"({filter}) ({any_of})" if filter.strip() else ""
    shown = {row.id for row in store.debates(wanted, limit=MOST_DEBATES)} if wanted else None
    for id, given in store.annotations().by_debate().items():
        if shown is not None and id not in shown:
            continue
        try:
            record = store.debate(id)
        except TranscriptError:
            record = None
        sums = None if record is None else checksum(record)
        for one in given:
            fits = record is not None and one.replies == sums
            base = {"debate": id, "id": one.id, "kind": one.kind, "value": one.value, "stale": not fits}
            base |= {"time": one.time, "problem": None, "gold": None}
            yield base | dict.fromkeys(VOTES) | (_annotated(record, one) if record and fits else {})


VOTES = ("left_votes", "tie_votes", "right_votes")


def _annotated(record: Record, one: Annotation) -> Row:
    """Return the problem, the gold grade or right side, and the votes on a pair."""
    turns, problem = Place.of(one.id).turns, {"problem": record.debate.problem.id}
    if len(turns) < 2:
        return problem | {"gold": GRADES[grade_of(turns[0], record.correct)] if turns else None}
    better = better_side(turns[0], turns[1], record.correct)
    votes = Counter(
        verdict(vote) for vote in valid_votes(ballot_box(record.debate)) if pair_of(vote) == turns
    )
    return {
        **problem,
        "gold": {1: "left", -1: "right"}.get(better),
        **dict(zip(VOTES, (votes[1], votes[0], votes[-1]), strict=True)),
    }


def _metrics(store: RunStore, _: str) -> Iterator[Row]:
    path = store.run / "metrics.jsonl"
    if not path.exists():
        raise TranscriptError(f"{path}: there is no such file")
    return decoded_lines(path, Row, "a line of metrics")


TABLES: Mapping[Table, Callable[[RunStore, str], Iterator[Row]]] = {
    "debates": _debates,
    "turns": _by_debate(turn_rows),
    "votes": _by_debate(vote_rows),
    "annotations": annotation_rows,
    "metrics": _metrics,
}

COLUMNS: Mapping[Table, list[str]] = {
    "debates": [
        *("debate", "step", "question", "gold", "problem", "source", "level", "personas"),
        *Facts._fields,
    ],
    "turns": [
        *("debate", "agent", "round", "persona", "handle", "text", "answer", "grade", "stop_reason"),
        *("prompt_tokens", "tokens", "malformed", "cut", "ballot", "score", "verdict"),
        *(f"reward_{name}" for name in STREAMS),
        *(f"advantage_{name}" for name in PARTS),
    ],
    "votes": [
        *("debate", "judge", "round", "persona", "left_agent", "left_round", "left_grade"),
        *("right_agent", "right_round", "right_grade", "outcome", "dropped", "is_right"),
    ],
    "annotations": ["debate", "id", "kind", "value", "stale", "time", "problem", "gold", *VOTES],
}
"""The columns of a table, needed where it has no rows."""
