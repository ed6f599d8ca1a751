import pytest

from rewards import ballot_box, valid_votes
from rewards.judge_rewards import judge_counts
from rewards.votes import due_pairs
from transcripts import RunStore, TranscriptError

pytest.importorskip("pandas")


def test_debates_and_turns_are_tables_by_filter(run):
    with RunStore.open(run) as store:
        debates = store.frame("debates", "step:1")
        assert list(debates.debate) == [f"1.{n}" for n in range(6)]
        assert set(debates.columns) >= {"question", "gold", "winner", "accuracy_round_0", "judge_accuracy"}
        turns = store.frame("turns", "id:1.3")
        assert len(turns) == len(store.debate("1.3").debate.turns)
        assert set(turns.columns) >= {"agent", "round", "persona", "answer", "grade", "advantage_generator"}
        assert store.frame("turns", "id:9.9").empty


@pytest.mark.parametrize("table", ["debates", "turns", "votes", "annotations"])
def test_a_table_without_rows_has_the_same_columns(run, table):
    with RunStore.open(run) as store:
        store.annotate("star", "0.1", "yes")
        full, empty = store.frame(table), store.frame(table, "id:9.9")
    assert len(full)
    assert not len(empty)
    assert list(empty.columns) == list(full.columns)


def test_votes_that_count_are_right_as_often_as_the_rewards_say(run):
    with RunStore.open(run) as store:
        votes = store.frame("votes")
        records = dict(store.records())
    assert set(votes.dropped) >= {""}
    for id, own in votes.groupby("debate"):
        record = records[id]
        box = ballot_box(record.debate)
        counts = judge_counts(due_pairs(box, valid_votes(box)), record.correct)
        told = own.is_right.dropna()
        assert (int(told.sum()), len(told)) == (counts.right, counts.votes)
        assert len(own) == len(record.debate.votes)
        assert len(valid_votes(box)) == (own.dropped == "").sum()


def test_metrics_are_a_table_without_an_unfinished_last_line(run):
    path = run / "metrics.jsonl"
    with RunStore.open(run) as store:
        path.write_text('{"step":0,"loss":0.5}\n{"step":1,"lo')
        assert store.frame("metrics").to_dict("records") == [{"step": 0, "loss": 0.5}]
        path.write_text('{"step":0,"lo\n{"step":1}\n')
        with pytest.raises(TranscriptError, match=r"metrics\.jsonl:1: is not a line of metrics: "):
            store.frame("metrics")
        with pytest.raises(
            ValueError, match="'vote' is no table of a run; the tables are debates, turns, votes"
        ):
            store.frame("vote")
        with pytest.raises(ValueError, match="metrics are of whole steps"):
            store.frame("metrics", "step:1")
