from __future__ import annotations

import pytest

from transcripts import RunStore, export_parquet

pq = pytest.importorskip("pyarrow.parquet")


def test_debates_turns_and_votes_are_tables(run, tmp_path, step_records):
    with RunStore.open(run) as store:
        paths = export_parquet(store, tmp_path / "out", "step:1")
        export_parquet(store, tmp_path / "out", "step:1")
        rows = {row.id: row for row in store.debates("step:1")}
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "debates.parquet",
        "turns.parquet",
        "votes.parquet",
    ]
    tables = {name: pq.read_table(path).to_pylist() for name, path in paths.items()}
    records = step_records(1)
    assert [row["id"] for row in tables["debates"]] == list(rows)
    for row in tables["debates"]:
        assert (row["winner"], row["accuracy_last_round"]) == (
            rows[row["id"]].winner,
            rows[row["id"]].facts.accuracy_last_round,
        )
    turns = [(f"1.{n}", turn) for n, record in enumerate(records) for turn in record.debate.turns]
    assert [(t["debate"], t["agent"], t["round"], t["text"], t["tokens"]) for t in tables["turns"]] == [
        (id, t.id.agent, t.id.round, t.completion.text, len(t.completion.tokens)) for id, t in turns
    ]
    peer = [t["reward_peer"] for t in tables["turns"] if t["debate"] == "1.2" and t["round"] < 2]
    assert peer == [records[2].rewards.peer[agent][round_] for round_ in range(2) for agent in range(3)]
    votes = [vote for record in records for vote in record.debate.votes]
    assert [(v["judge"], v["left"], v["outcome"], v["start"]) for v in tables["votes"]] == [
        (v.judge.agent, v.left.agent, v.outcome, v.span.start) for v in votes
    ]


def test_nothing_found_is_three_empty_tables(run, tmp_path):
    with RunStore.open(run) as store:
        paths = export_parquet(store, tmp_path, "step:99")
    assert [pq.read_table(path).num_rows for path in paths.values()] == [0, 0, 0]
