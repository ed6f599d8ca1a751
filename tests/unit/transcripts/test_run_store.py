import json
import os
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from debate.types import TurnId
from transcripts import RunStore, ShardWriter, TranscriptError, write_step
from transcripts.codec import without_tokens
from transcripts.filters.presets import PRESETS
from transcripts.index.database import FULL_TEXT, INDEX, cache_folder
from transcripts.store import seal_shard, set_aside_from


def ids(store: RunStore, filter: str = "", **options) -> list[str]:
    return [row.id for row in store.debates(filter, **options)]


def said(record) -> str:
    return record.debate.turns[0].completion.text


def test_debates_are_listed_and_read_by_id(run, step_records):
    with RunStore.open(run) as store:
        assert ids(store, limit=3) == ["0.0", "0.1", "0.2"]
        assert ids(store, newest=True, limit=2) == ["2.5", "2.4"]
        assert ids(store, after="1.4", limit=3) == ["1.5", "2.0", "2.1"]
        assert ids(store, newest=True, after="1.0", limit=9) == ["0.5", "0.4", "0.3", "0.2", "0.1", "0.0"]
        assert store.count() == 18
        [row] = store.debates("id:1.3")
        assert (row.step, row.index, row.problem.id, row.problem.question) == (
            1,
            3,
            "sum/3",
            "What is 3 + 1?",
        )
        record = step_records(1)[3]
        assert row.personas == tuple(persona.name for persona in record.debate.personas)
        assert store.debate("1.3", tokens=True) == record
        assert store.debate("1.3") == without_tokens(record)
        completion = record.debate.turn(TurnId(2, 1)).completion
        assert store.tokens("1.3")[TurnId(2, 1)] == completion
        assert [place for place, _ in store.records("step:1")] == [f"1.{n}" for n in range(6)]
        read = dict(store.records("winner:right", tokens=True))
        assert list(read) == ids(store, "winner:right")
        assert all(read[i] == store.debate(i, tokens=True) for i in read)
    with RunStore.open(run / "transcripts") as store:  # the folder of the shards does as well
        assert store.run == run
        assert store.refresh() == 0


def test_presets_are_counted_in_one_pass(run):
    filters = [preset.filter for preset in PRESETS.values()]
    with RunStore.open(run) as store:
        for within in ("", "step:1", "winner:wrong", "text:solution winner:right"):
            both = [f"{filter} ({within})" if within else filter for filter in filters]
            assert store.counts(filters, within) == [store.count(one) for one in both]
        assert store.counts(["winner:right", "winner:wrong", "winner:none"]) == [
            store.count(f"winner:{word}") for word in ("right", "wrong", "none")
        ]
        assert store.personas() == sorted(store.debates(limit=1)[0].personas)
        with pytest.raises(ValueError, match="words"):
            store.counts(["text:solution"])


@pytest.mark.parametrize(
    ("id", "message"),
    [
        ("7.0", "no debate 7.0; there are steps 0 to 2"),
        ("1.6", "no debate 1.6; step 1 has debates 0 to 5"),
        ("x", "'x' is not a debate: write STEP.INDEX, counted from 0, as in 12.3"),
        ("1", "'1' is not a debate"),
        ("1.99999999", "'1.99999999' is not a debate"),
        ("²." + "1", "is not a debate"),
    ],
)
def test_an_id_that_is_none_is_refused(run, id, message):
    with RunStore.open(run) as store, pytest.raises(TranscriptError, match=message):
        store.debate(id)


def test_a_store_follows_a_run_that_goes_on(run, step_records):
    with RunStore.open(run) as store, ShardWriter(run / "transcripts", 3) as writer:
        for count, record in enumerate(step_records(3)):
            writer.write(record)
            assert store.refresh() == 1
            assert store.count("step:3") == count + 1
        seal_shard(writer.path)
        assert store.refresh() == 0
        assert store.debate("3.5", tokens=True) == step_records(3)[5]


def test_a_step_that_is_done_again_takes_the_place_of_the_old_one(run, step_records):
    with RunStore.open(run) as store:
        assert store.debates('text:"solution"')
        set_aside_from(run / "transcripts", 1)
        write_step(run / "transcripts", 1, [replace(r, step=1) for r in step_records(7)][:4])
        assert store.refresh() == 4
        assert ids(store, "step:>0") == ["1.0", "1.1", "1.2", "1.3"]
        assert said(store.debate("1.2")) == said(step_records(7)[2])
        words = (
            '"' + step_records(7)[2].debate.turns[1].completion.text.split(">")[1].split("<")[0][:30] + '"'
        )
        assert "1.2" in ids(store, f"text:{words}")
        assert store.count("text:solution") == 10


def other_version(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()


@pytest.mark.parametrize(
    "damage",
    [
        Path.unlink,
        other_version,
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"hello" * 1000),
        lambda path: path.write_bytes(path.read_bytes()[:5000]),
        lambda path: path.write_bytes(path.read_bytes()[:4096] + b"\xff" * 60000),
    ],
)
@pytest.mark.parametrize("name", [INDEX, FULL_TEXT])
def test_an_index_that_is_missing_or_damaged_is_built_again(run, name, damage):
    with RunStore.open(run) as store:
        expected, folder = ids(store, "text:solution winner:right"), store.folder
    damage(folder / name)
    with RunStore.open(run) as store:
        assert store.folder == folder == cache_folder(run)
        assert ids(store, "text:solution winner:right") == expected
        assert store.count() == 18


def test_a_cache_that_is_cleared_meanwhile_is_filled_again(run, step_records):
    with RunStore.open(run) as store:
        shutil.rmtree(store.folder)
        assert store.count("text:solution") == 18
        shutil.rmtree(store.folder)
        write_step(run / "transcripts", 3, step_records(3))
        assert store.refresh() == 24  # built again, with all there is
        assert store.count() == store.count("text:solution") == 24


def test_a_run_made_anew_at_the_same_place_is_read_anew(run, step_records):
    """Also where sizes, times and the last lines are as before."""
    with RunStore.open(run) as store:
        assert store.count("text:solution") == 18
    shard = run / "transcripts/step_000002.jsonl"
    lines, state = shard.read_bytes().splitlines(keepends=True), shard.stat()
    seed = json.loads(lines[0])["debate"]["seed"]
    lines[0] = (
        lines[0].replace(b"solution>", b"solutiom>").replace(b'"seed":%d' % seed, b'"seed":%d' % (seed ^ 1))
    )
    kept = {path.name: path.read_bytes() for path in shard.parent.glob("*.zst")}
    shutil.rmtree(run)
    shard.parent.mkdir(parents=True)
    shard.write_bytes(b"".join(lines))
    for name, data in kept.items():
        (shard.parent / name).write_bytes(data)
    os.utime(shard, ns=(state.st_atime_ns, state.st_mtime_ns))
    with RunStore.open(run) as store:
        assert store.count("text:solution") == 17
        assert ids(store, "text:solutiom") == ["2.0"]
        assert store.debates(f"id:2.0 seed:{seed ^ 1}")


def as_file(folder: Path) -> None:
    folder.rmdir()
    folder.write_text("x")


def newer(folder: Path) -> None:
    (folder / "step_000000.jsonl").write_text(json.dumps({"schema": 99, "debate": {}}) + "\n")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: None, r"not the folder of a run \(no transcripts in it\)"),
        (as_file, "bad: not a folder"),
        (lambda f: (f / "step_000000.jsonl").write_text("{}\n"), "1: schema: not a debate transcript"),
        (newer, "1: schema: version 99; this version of debate-rl only reads 1"),
        (lambda f: (f / "step_000000.jsonl.zst").write_bytes(b""), "damaged: it is cut off"),
        (lambda f: (f / "step_000000.jsonl").mkdir(), "step_000000.jsonl: (not a plain file|cannot be read)"),
    ],
)
def test_what_is_no_run_is_refused_and_left_as_it_is(tmp_path, make, message):
    folder = tmp_path / "bad"
    folder.mkdir()
    make(folder)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(TranscriptError, match=message):
        RunStore.open(folder)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_run_that_has_not_begun_is_empty(tmp_path):
    (tmp_path / "config.toml").touch()
    with RunStore.open(tmp_path) as store:
        assert (store.debates(), store.count("text:x")) == ([], 0)
        with pytest.raises(TranscriptError, match=r"no debate 0\.0; the run has none yet"):
            store.debate("0.0")


def test_what_cannot_be_read_is_told_and_the_rest_is_there(run, tmp_path, step_records):
    path = run / "transcripts/step_000002.jsonl"
    kept = path.read_bytes().splitlines(keepends=True)
    huge = json.loads(kept[2]) | {"facts": None}
    huge["debate"]["seed"] = 2**70
    bad = [b"rubbish\n", kept[1], json.dumps(huge).encode() + b"\n", b"[" * 100_000 + b"\n", b"\xff\n"]
    path.write_bytes(b"".join([kept[0], *bad, kept[5]]))
    (run / "transcripts/step_000001.jsonl.zst").write_bytes(b"\0" * 100)
    with RunStore.open(run) as store:
        assert ids(store, "step:>0") == ["2.0", "2.2", "2.6"]
        assert [text.split(":")[0] for text in store.damage[1:]] == [
            f"step 2, line {n}" for n in (2, 4, 5, 6)
        ]
        assert "step_000001.jsonl.zst: damaged" in store.damage[0]
        assert store.count("text:solution") == 9
        assert said(store.debate("2.6")) == said(step_records(2)[5])
        assert store.refresh() == 0
        seal_shard(write_step(tmp_path, 1, step_records(1)))
        shutil.copy(tmp_path / "step_000001.jsonl.zst", run / "transcripts")
        assert store.refresh() == 6
        assert "step_000001" not in str(store.damage)


def test_words_follow_each_other_in_one_message(tmp_path, step_records):
    record = step_records(0)[0]
    texts = ("So x = 1.\n\\boxed{42} Über", "alles. The derivative", "of x", "boxed 42", "x+1 = 2", "y")
    places = []
    for place, text in enumerate(texts):
        first, second, *rest = record.debate.turns
        turns = [
            replace(first, completion=replace(first.completion, text=text)),
            replace(second, completion=replace(second.completion, text="next message \ufffd")),
            *(replace(one, completion=replace(one.completion, text="z")) for one in rest),
        ]
        places.append(replace(record, debate=replace(record.debate, turns=tuple(turns)), step=place))
        write_step(tmp_path, place, places[-1:])
    wanted = {
        "text:boxed": [0, 3],
        r'text:"\boxed"': [0],
        r'text:"\boxed{42}"': [0],
        r'text:"\boxed{4}"': [],
        'text:"boxed 42"': [0, 3],
        'text:"uber"': [0],
        'text:"42 über"': [0],
        'text:"über next"': [],
        "text:deriv*": [1],
        "text:deriv": [],
        'text:"x + 1"': [],
        'text:"x+1"': [4],
        "text:boxed text:so": [0],
        "text:boxed OR text:deriv*": [0, 1, 3],
        "text:boxed -text:so": [3],
        "NOT text:next": [],
        'text:"X = 1. \\Boxed"': [0],
        'text:"say ""x"""': [],
    }
    with RunStore.open(tmp_path) as store:
        found = {text: [int(row.step) for row in store.debates(text)] for text in wanted}
        assert found == wanted
        assert {text: store.count(text) for text in wanted} == {t: len(steps) for t, steps in wanted.items()}


def test_the_version_changes_when_other_debates_replace_a_step_and_with_annotations(tmp_path, step_records):
    other = [replace(record, step=0) for record in step_records(1)]
    write_step(tmp_path, 0, step_records(0))
    with RunStore.open(tmp_path) as store:
        versions = [store.version(), store.version()]
        set_aside_from(tmp_path, 0)
        write_step(tmp_path, 0, other)
        store.refresh()
        versions.append(store.version())
        store.annotate("star", "0.1", "yes")
        versions.append(store.version())
    assert versions[0] == versions[1]
    assert len(set(versions)) == 3
