"""Stars, notes and labels: what counts, what is refused, and that nobody's line is lost."""

import json
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace

import msgspec
import pytest

from transcripts import RunStore, TranscriptError
from transcripts.annotations import FILE, LABELS, Place, read_annotations
from transcripts.errors import FieldError


def lines_of(run):
    return (run / FILE).read_text().splitlines()


def test_the_last_line_counts_and_an_empty_value_removes(run):
    with RunStore.open(run) as store:
        assert store.annotations().given == {}
        for value in ("left", "tie"):
            store.annotate("label", "0.1/0.0-1.0", value)
        store.annotate("star", "0.1", "yes")
        store.annotate("note", "0.2/1.0", " two words ")
        place, record = Place.of("0.1/0.0-1.0"), store.debate("0.1")
        assert store.annotations().of(record, place) == {"label": "tie"}
        assert [one.value for one in store.annotations().by_debate()["0.2"]] == ["two words"]
        store.annotate("label", "0.1/0.0-1.0", "")
        assert store.annotations().of(record, place) == {}
    assert [json.loads(line)["value"] for line in lines_of(run)] == ["left", "tie", "yes", "two words", ""]


@pytest.mark.parametrize(
    ("kind", "id", "value", "words"),
    [
        ("label", "0.1", "free words", ""),
        ("label", "0.1/0.0", "left", "value: the label of a turn must be right or wrong; got 'left'"),
        ("label", "0.1/0.0-1.0", "right", ""),
        ("label", "0.1/1.0-0.0", "right", "id: got '0.1/1.0-0.0'; write 0.1/0.0-1.0"),
        ("label", "0.1/0.0-0.0", "tie", "id: got '0.1/0.0-0.0'; write 0.1/0.0"),
        ("label", "0.1/9.0", "right", "id: debate 0.1 has no turn 9.0"),
        ("label", "0.1/0.2", "right", "id: turn 0.2 of debate 0.1 has no solution"),
        ("star", "0.1/0.2", "yes", ""),
        ("star", "0.1", "no", "value: a star must be yes; got 'no'"),
        ("note", "0.1", "x" * 10_001, "value: must have at most 10000 characters"),
        ("note", "00.1", "x", "id: got '00.1'; write 0.1"),
        ("note", "run:0.1", "x", "id: expected a debate 12.3"),
    ],
)
def test_an_annotation_fits_its_debate(run, kind, id, value, words):
    with RunStore.open(run) as store:
        if not words:
            assert store.annotate(kind, id, value).value == value
            return
        with pytest.raises(FieldError) as error:
            store.annotate(kind, id, value)
        assert str(error.value).startswith(words)
    assert not (run / FILE).exists()


def test_no_debate_no_line(run):
    with RunStore.open(run) as store, pytest.raises(TranscriptError, match="no debate 7"):
        store.annotate("star", "7.1", "yes")
    assert not (run / FILE).exists()


def test_foreign_lines_are_named_and_a_torn_last_line_is_cut_off(run):
    with RunStore.open(run) as store:
        store.annotate("star", "0.1", "yes")
        with (run / FILE).open("a") as file:
            file.write('nonsense\n{"kind":"crown","id":"0.1","value":"","replies":"","time":""}\n{"kind":"st')
        found = store.annotations()
        assert [one.id for one in found.given.values()] == ["0.1"]
        assert [fault.partition(FILE)[2] for fault in found.faults] == [
            ":2: not a complete line of JSON: JSON is malformed: invalid character (byte 4)",
            ":3: kind: invalid enum value 'crown'",
        ]
        store.annotate("star", "0.2", "yes")
        assert len(lines_of(run)) == 4
        assert len(store.annotations().given) == 2


def test_a_link_in_an_untrusted_run_is_not_written_through(run, tmp_path):
    target = tmp_path / "precious"
    target.write_text("mine\n")
    (run / FILE).symlink_to(target)
    with RunStore.open(run) as store, pytest.raises(OSError, match="not a plain file"):
        store.annotate("star", "0.1", "yes")
    assert target.read_text() == "mine\n"


def star_many(run, debate):
    with RunStore.open(run) as store:
        for number in range(40):
            store.annotate("note", debate, f"{debate} {number} " + "x" * 3000)


def test_several_writers_lose_nothing(run):
    with RunStore.open(run):
        pass
    debates = [f"0.{n}" for n in range(4)]
    with ProcessPoolExecutor(2) as processes, ThreadPoolExecutor(2) as threads:
        jobs = [
            pool.submit(star_many, run, d) for d, pool in zip(debates, [processes, threads] * 2, strict=True)
        ]
        for job in jobs:
            job.result()
    notes = [json.loads(line)["value"][:6].rstrip(" x") for line in lines_of(run)]
    assert sorted(notes) == sorted(f"{d} {n}" for d in debates for n in range(40))
    assert read_annotations(run).faults == ()


def test_a_debate_held_again_keeps_no_label(run, step_records):
    with RunStore.open(run) as store:
        store.annotate("label", "1.2/0.0", "wrong")
        record = store.debate("1.2")
        [row] = store.frame("annotations").to_dict("records")
        assert (row["stale"], row["problem"]) == (False, record.debate.problem.id)
    turns = record.debate.turns
    other = replace(turns[0], completion=msgspec.structs.replace(turns[0].completion, text="held again"))
    again = replace(record, debate=msgspec.structs.replace(record.debate, turns=(other, *turns[1:])))
    place = Place.of("1.2/0.0")
    assert read_annotations(run).of(record, place) == {"label": "wrong"}
    assert read_annotations(run).of(again, place) == {}


def test_a_table_has_gold_and_votes_and_filters_find_them(run):
    pytest.importorskip("pandas")
    with RunStore.open(run) as store:
        votes = store.frame("votes", "id:0.1")
        counted = votes[votes.dropped == ""]
        vote = counted.iloc[0]
        sides = sorted([(vote.left_agent, vote.left_round), (vote.right_agent, vote.right_round)])
        pair = "0.1/" + "-".join(f"{agent}.{round_}" for agent, round_ in sides)
        store.annotate("label", pair, "left")
        store.annotate("star", "1.4", "yes")
        rows = {row["id"]: row for row in store.frame("annotations").to_dict("records")}
        assert sum(rows[pair][f"{side}_votes"] for side in ("left", "tie", "right")) >= 1
        grades = {(v.left_agent, v.left_round): v.left_grade for v in votes.itertuples()}
        grades |= {(v.right_agent, v.right_round): v.right_grade for v in votes.itertuples()}
        right = [grades[side] == "right" for side in sides]
        assert rows[pair]["gold"] == (None if right[0] == right[1] else "left" if right[0] else "right")
        assert [row.id for row in store.debates("star:yes")] == ["1.4"]
        assert [row.id for row in store.debates("label:left star:no")] == ["0.1"]
        assert list(store.frame("annotations", "step:1").id) == ["1.4"]


def test_a_pair_and_a_turn_have_labels_of_their_own():
    assert {Place.of(id).kind for id in ("0.0", "0.0/0.0", "0.0/0.0-1.0")} == set(LABELS)
