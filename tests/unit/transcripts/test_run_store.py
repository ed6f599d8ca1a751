"""The store of a run: what it finds, how it follows a run that goes on, what it does with bad folders."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from debate.types import TurnId
from transcripts import RunStore, ShardWriter, TranscriptError, files, write_step
from transcripts.codec import without_tokens
from transcripts.index import build
from transcripts.index.database import FULL_TEXT, INDEX, cache_folder
from transcripts.store import seal_shard, set_aside_from


def ids(store: RunStore, filter: str = "", **options) -> list[str]:
    return [row.id for row in store.debates(filter, **options)]


def said(record) -> str:
    return record.debate.turns[0].completion.text


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def states(folder: Path) -> dict[Path, tuple[int, ...]]:
    found = {path: path.lstat() for path in folder.rglob("*")}
    return {path: (state.st_mode, state.st_size, state.st_mtime_ns) for path, state in found.items()}


def changed(run: Path, change) -> Path:
    """Change the second line of the run's first shard, as a stranger would."""
    [shard] = (run / "transcripts").glob("step_000000.jsonl")
    lines = [json.loads(line) for line in shard.read_text().splitlines()]
    change(lines[1])
    shard.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    return run


def with_facts(line):
    line["facts"] = [1, [7] * 29]


def of_seven_agents(line):
    line["debate"]["protocol"]["num_agents"] = 7


def without_seed(line):
    line["debate"]["seed"] = None


def with_a_seed_beyond_sqlite(line):
    line["debate"]["seed"] = 2**70


def with_a_billion_rounds_saved(line):
    line["debate"]["rounds_saved"] = 10**9


def with_a_row_too_few(line):
    line["correct"] = [[True]]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (with_facts, "facts: no such field"),
        (of_seven_agents, r"debate\.personas: 3 of them, but the protocol has 7 agents"),
        (without_seed, r"debate\.seed: expected int, got null"),
        (with_a_seed_beyond_sqlite, "int"),
        (with_a_billion_rounds_saved, r"debate\.rounds_saved: 1000000000, but a debate that stopped after"),
        (with_a_row_too_few, "correct: 1 rows, but the debate has 3 agents"),
    ],
)
def test_one_line_of_others_making_is_damage_and_the_rest_is_there(tmp_path, step_records, change, said):
    """What an index holds is computed from the debate, which must be one that its protocol can have."""
    write_step(tmp_path / "run" / "transcripts", 0, step_records(0))
    with RunStore.open(changed(tmp_path / "run", change)) as store:
        [damage] = store.damage
        assert re.fullmatch(rf"step 0, line 2: .*{said}.*", damage)
        assert ids(store) == ["0.0", "0.2", "0.3", "0.4", "0.5"] == [id for id, _ in store.records()]
        with pytest.raises(TranscriptError, match=r"debate 0\.1 cannot be read: line 2: "):
            store.debate("0.1")


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


@pytest.mark.parametrize(
    ("id", "message"),
    [
        ("7.0", "no debate 7.0; there are steps 0 to 2"),
        ("1.6", "no debate 1.6; step 1 has debates 0 to 5"),
        ("x", "'x' is no debate: write STEP.INDEX, counted from 0, as in 12.3"),
        ("1", "'1' is no debate"),
        ("1.99999999", "'1.99999999' is no debate"),
        ("²." + "1", "is no debate"),
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


def test_a_line_that_is_being_written_waits(run, step_records):
    path = run / "transcripts/step_000002.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-50])
    with RunStore.open(run) as store:
        assert (store.count("step:2"), store.damage) == (5, [])
        path.write_bytes(whole)
        assert store.refresh() == 1
        assert store.debate("2.5", tokens=True) == step_records(2)[5]


def test_words_are_found_in_the_question_and_no_phrase_spans_it_and_a_reply(run, step_records):
    record = step_records(7)[0]
    debate = replace(
        record.debate, problem=replace(record.debate.problem, question="Target 17 of six numbers")
    )
    write_step(run / "transcripts", 3, [replace(record, step=3, debate=debate)])
    with RunStore.open(run) as store:
        assert ids(store, "Target 17") == ["3.0"]
        assert ids(store, 'text:"numbers solution"') == []


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


def as_a_pipe(path: Path) -> None:
    os.mkfifo(path)


def as_ours_with_edited_rows(path: Path) -> None:
    with RunStore.open(path.parent) as store:
        shutil.copy(store.folder / INDEX, path)
    with sqlite3.connect(path) as other:
        other.execute("UPDATE debates SET winner = 3")
    other.close()


@pytest.mark.parametrize("make", [as_a_pipe, as_ours_with_edited_rows])
@pytest.mark.parametrize("name", [INDEX, FULL_TEXT])
def test_no_database_in_a_run_is_opened_or_changed(run, name, make):
    make(run / name)
    before = states(run)
    with RunStore.open(run) as store:
        assert store.count("winner:ungraded") == 0
        assert store.count("text:solution") == store.count() == 18
    assert states(run) == before


def test_without_any_place_for_it_the_index_passes_with_the_store(run, tmp_path, monkeypatch):
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with RunStore.open(run) as store:
        assert store.count("winner:right") > 0
        folder = store.folder
    assert not folder.exists()


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


def test_an_index_whose_run_is_gone_goes_when_another_is_made(run, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    other = shutil.copytree(run, tmp_path / "other")
    third = shutil.copytree(run, tmp_path / "third")
    foreign = cache_folder(run).parent / "notes"
    with RunStore.open(run) as first, RunStore.open(other) as second:
        folders = first.folder, second.folder
    foreign.mkdir()
    shutil.rmtree(run)
    with RunStore.open(third):
        assert [folder.exists() for folder in (*folders, foreign)] == [False, True, True]


def as_file(folder: Path) -> None:
    folder.rmdir()
    folder.write_text("x")


def newer(folder: Path) -> None:
    (folder / "step_000000.jsonl").write_text(json.dumps({"schema": 99, "debate": {}}) + "\n")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: None, r"not the folder of a run \(no transcripts in it\)"),
        (Path.rmdir, "bad: there is no such folder"),
        (as_file, "bad: not a folder"),
        (lambda f: (f / "step_000000.jsonl").write_text("hello\n"), "step_000000.jsonl:1: not a whole line"),
        (lambda f: (f / "step_000000.jsonl").write_text("{}\n"), "1: schema: not a debate transcript"),
        (newer, "1: schema: version 99; this version of debate-rl reads 1 alone"),
        (lambda f: (f / "step_000000.jsonl.zst").write_bytes(b"zst" * 99), "damaged: it has no seek table"),
        (lambda f: (f / "step_000000.jsonl.zst").write_bytes(b""), "damaged: it is cut off"),
        (lambda f: os.mkfifo(f / "step_000000.jsonl"), "step_000000.jsonl: not a plain file"),
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
        with pytest.raises(TranscriptError, match=r"no debate 0\.0; it holds none yet"):
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


def test_a_shard_that_breaks_off_keeps_what_came_before(run, monkeypatch, step_records):
    (run / "transcripts/step_000001.jsonl.zst").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(files, "FRAME", 1)
        path = write_step(run / "transcripts", 1, step_records(1), seal=True)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] + b"\0" * 20 + whole[len(whole) // 2 + 20 :])
    for _ in range(2):
        with RunStore.open(run) as store:
            assert 0 < store.count("step:1") < 6
            assert [("frame" in text) for text in store.damage] == [True]
            store.refresh()
    path.write_bytes(whole)
    with RunStore.open(run) as store:
        assert (store.count("step:1"), store.damage) == (6, [])


@pytest.mark.parametrize(
    ("block", "noted", "told"),
    [
        (b"\n" * files.FRAME, build.MOST_DAMAGED + 1, r"damaged: 1,001 lines \(1,001 bytes\) are no debates"),
        (b"x" * 99_999 + b"\n", 11, r"damaged: 11 lines \(1,100,000 bytes\) are no debates; what follows"),
    ],
)
def test_of_lines_without_end_that_are_no_debates_the_first_are_noted(run, monkeypatch, block, noted, told):
    monkeypatch.setattr(build, "LARGEST", 1 << 20)
    first = (run / "transcripts/step_000002.jsonl").read_bytes()
    lines = [line + b"\n" for line in (first + block * 30).split(b"\n")[:-1]]
    with (run / "transcripts/step_000003.jsonl.zst").open("wb") as file:
        files.write_sealed(lines, file)
    with RunStore.open(run) as store:
        assert store.count("text:solution") == store.count() == 24
        assert len(store.damage) == noted + 1
        assert re.search(told, store.damage[0])
        assert store.refresh() == 0


def test_a_run_is_shown_while_some_shard_of_it_is_readable(run):
    for name in ("step_000000.jsonl.zst", "step_000004.jsonl.zst"):
        (run / "transcripts" / name).write_bytes(b"rubbish" * 9)
    (run / "transcripts/step_000003.jsonl").write_text(json.dumps({"schema": 99}) + "\n")
    with RunStore.open(run) as store:
        assert store.count() == 12
        assert len(store.damage) == 3


def test_a_step_whose_shard_goes_while_it_is_read_is_told(run):
    with RunStore.open(run) as store:
        shutil.rmtree(run / "transcripts")
        with pytest.raises(TranscriptError, match=r"debate 1.0: No such file"):
            store.debate("1.0")


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


def test_the_full_text_is_built_in_pieces(run):
    with RunStore.open(run) as store:
        done, told = False, []
        for _ in range(100):
            if done := store.index_text(seconds=0.0, tell=lambda *parts: told.append(parts)):
                break
        assert not done  # no time at all is never enough
        assert store.index_text(tell=lambda *parts: told.append(parts))
        read, whole = store.text_read()
        assert read == whole == told[-1][1]
        assert store.count("text:solution") == 18


def test_many_threads_may_ask_one_store(run):
    with RunStore.open(run) as store, ThreadPoolExecutor(8) as threads:
        filters = ["winner:right", "text:solution", 'text:"<solution>"', "step:1"] * 10
        found = list(threads.map(lambda f: (f, store.count(f), len(store.debates(f))), filters))
        assert len(set(found)) == 4
        assert all(count == listed for _, count, listed in found)


def test_while_another_writes_the_index_what_there_is_is_shown(run, step_records):
    with RunStore.open(run) as store:
        write_step(run / "transcripts", 3, step_records(3))
        other = sqlite3.connect(store.folder / INDEX, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert store.refresh() == 0
        assert store.count() == 18
        other.close()
        assert store.refresh() == 6
