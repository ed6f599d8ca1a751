"""Debates, turns and votes as Parquet tables, for notebooks: three files, a row each, read with any tool.

``pyarrow`` is needed for this alone (the extra [train] has it) and imported when something is exported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from debate.policy import token_counts
from rewards import STREAMS
from rewards.truth import GRADES, grade_of, of_truth_alone, score_of
from rewards.types import NO_REWARDS, value_of
from transcripts.index.facts import REALS, WINNERS, Facts, facts_of
from transcripts.record import PARTS, Record, TurnAdvantages

if TYPE_CHECKING:
    from transcripts.run_store import RunStore

ROWS = 2_000
"""Debates that are held in memory before they are written."""
DEBATE: dict[str, str] = {
    **dict.fromkeys(("id", "problem", "source", "level", "kind", "question", "gold"), "string"),
    **dict.fromkeys(("step", "index"), "int64"),
    **{name: "double" if name in REALS else "int64" for name in Facts._fields},
    **{"winner": "string", "cycle": "bool", "condorcet": "bool"},
}
TURN: dict[str, str] = {
    **dict.fromkeys(("debate", "persona", "handle", "text", "answer", "grade", "stop_reason"), "string"),
    **dict.fromkeys(("agent", "round", "prompt_tokens", "tokens", "malformed", "cut"), "int64"),
    "ballot": "bool",
    "score": "double",
    "verdict": "double",
    **dict.fromkeys((f"reward_{stream}" for stream in STREAMS), "double"),
    **dict.fromkeys((f"advantage_{part}" for part in PARTS), "double"),
}
VOTE: dict[str, str] = {
    "debate": "string",
    **dict.fromkeys(
        ("judge", "judge_round", "left", "left_round", "right", "right_round", "start", "end"), "int64"
    ),
    "outcome": "string",
}
TABLES = {"debates": DEBATE, "turns": TURN, "votes": VOTE}


def export_parquet(store: RunStore, folder: Path | str, filter: str = "") -> dict[str, Path]:
    """Write debates.parquet, turns.parquet and votes.parquet of a filter's debates; return their paths.

    Columns are named as the fields of the filter language where they are the same (with "_" for "."), agents
    and rounds count from 0. Existing files are replaced once the new ones are whole.
    """
    pa: Any = import_module("pyarrow")
    pq: Any = import_module("pyarrow.parquet")
    home = Path(folder)
    home.mkdir(parents=True, exist_ok=True)
    fresh = {name: home / f".{name}.parquet.new" for name in TABLES}
    schemas = {name: _schema(pa, columns) for name, columns in TABLES.items()}
    with ExitStack() as stack:
        writers = {
            name: stack.enter_context(pq.ParquetWriter(fresh[name], schemas[name], compression="zstd"))
            for name in TABLES
        }
        for batch in _batches(store, filter):
            for name, rows in batch.items():
                writers[name].write_table(pa.Table.from_pylist(rows, schema=schemas[name]))
    return {name: fresh[name].replace(home / f"{name}.parquet") for name in TABLES}


def _schema(pa: Any, columns: Mapping[str, str]) -> Any:
    return pa.schema([(column, pa.type_for_alias(kind)) for column, kind in columns.items()])


def _batches(store: RunStore, filter: str) -> Iterator[dict[str, list[dict[str, Any]]]]:
    batch: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    for id, record in store.records(filter):
        batch["debates"].append(_debate_row(id, record))
        batch["turns"] += turn_rows(id, record)
        batch["votes"] += _vote_rows(id, record)
        if len(batch["debates"]) >= ROWS:
            yield batch
            batch = {name: [] for name in TABLES}
    yield batch


def _debate_row(id: str, record: Record) -> dict[str, Any]:
    """Return the row of a debate: its facts, under the names of the filter language."""
    entry = facts_of(record)
    facts, problem = entry.facts, entry.problem
    row = facts._asdict()
    row |= {name: None if row[name] is None else bool(row[name]) for name in ("cycle", "condorcet")}
    row |= {"id": id, "step": record.step, "index": int(id.partition(".")[2])}
    row |= {"problem": problem.id, "source": problem.source, "level": problem.level, "kind": problem.kind}
    row["winner"] = WINNERS[facts.winner]
    return row | {"question": record.debate.problem.question, "gold": problem.gold}


def turn_rows(id: str, record: Record) -> Iterator[dict[str, Any]]:
    """Yield a flat row for each turn of a debate, by the columns ``TURN``."""
    advantages = {part.turn: part for part in record.advantages}
    names = [persona.name for persona in record.debate.personas]
    for turn in record.debate.turns:
        agent, round_ = turn.id.agent, turn.id.round
        prompt, generated = token_counts(turn.completion)
        part = advantages.get(turn.id, TurnAdvantages(turn.id))
        rewards = of_truth_alone(record.rewards or NO_REWARDS, record.correct, record.verdicts or None)
        yield {
            "debate": id,
            "agent": agent,
            "round": round_,
            "persona": names[agent] if agent < len(names) else None,
            "handle": turn.handle,
            "text": turn.completion.text,
            "answer": turn.parsed.answer,
            "grade": None if turn.ballot else GRADES[grade_of(turn.id, record.correct)],
            "stop_reason": turn.completion.stop_reason,
            "prompt_tokens": prompt,
            "tokens": generated,
            "malformed": len(turn.parsed.failures),
            "cut": turn.cut,
            "ballot": turn.ballot,
            "score": score_of(turn),
            "verdict": record.verdicts.score(turn.id) if record.verdicts else None,
            **{f"reward_{name}": value_of(getattr(rewards, name), turn.id) for name in STREAMS},
            **{f"advantage_{name}": getattr(part, name) for name in PARTS},
        }


def _vote_rows(id: str, record: Record) -> Iterator[dict[str, Any]]:
    for vote in record.debate.votes:
        yield {
            "debate": id,
            "judge": vote.judge.agent,
            "judge_round": vote.judge.round,
            "left": vote.left.agent,
            "left_round": vote.left.round,
            "right": vote.right.agent,
            "right_round": vote.right.round,
            "outcome": vote.outcome,
            "start": vote.span.start if vote.span else None,
            "end": vote.span.end if vote.span else None,
        }
