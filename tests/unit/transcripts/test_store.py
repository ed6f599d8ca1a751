import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from debate.config import DebateConfig
from debate.personas import PERSONAS
from debate.types import Ballot, Completion, Debate, ParsedTurn, Problem, Span, Turn, TurnId, Vote
from rewards import Rewards
from transcripts import (
    SCHEMA_VERSION,
    Record,
    RunStore,
    ShardWriter,
    Timing,
    TranscriptError,
    TurnAdvantages,
    read_records,
    write_step,
)
from transcripts.append import LineFile
from transcripts.codec import to_line, token_line
from transcripts.errors import TranscriptWriteError
from transcripts.files import shard_paths
from transcripts.store import set_aside_from


def turn(agent: int, round_: int, text: str = "<solution>\\boxed{4}</solution>") -> Turn:
    completion = Completion((1, 2), (3, 4), (-0.1, -2.5e-7), text, "stop", 3, (0, 9), (1,))
    parsed = ParsedTurn(Span(10, 18), answer="4", ballots=(Ballot("K7", "Q2", "left", Span(0, 3)),))
    return Turn(TurnId(agent, round_), "K7", (TurnId(1, 0),), completion, parsed, (TurnId(1, 0),))


@pytest.fixture
def record() -> Record:
    config = DebateConfig(num_agents=2, num_rounds=1)
    vote = Vote(TurnId(0, 1), TurnId(0, 0), TurnId(1, 0), "tie", Span(1, 4))
    turns = (turn(0, 0), turn(1, 0, "\ufffd cut \0 off ×"), turn(0, 1))
    debate = Debate(Problem("p1", "2+2?", "4"), PERSONAS[:2], turns, (vote,), 2**62, 3, config)
    rewards = Rewards(((1.0,), (None,)), ((0.1,), (0.3,)), ((None, 1.0),) * 2, ((0.0, -0.5),) * 2)
    advantages = (TurnAdvantages(TurnId(0, 0), generator=1 / 3, format=-0.5),)
    return Record(debate, 12, "p1", ((True,), ("missing",)), rewards, advantages)


def test_a_step_is_read_back_exactly(tmp_path: Path, record: Record):
    path = write_step(tmp_path / "transcripts", 12, [record, record])
    assert path.name == "step_000012.jsonl"
    assert path.read_bytes().isascii()
    assert list(read_records(path)) == [record, record]
    assert list(read_records(tmp_path)) == [record, record]  # the run folder does as well


def damaged(path: Path, change) -> Path:
    """Change the second of three records, as JSON."""
    lines = path.read_text().splitlines()
    data = json.loads(lines[1])
    change(data)
    path.write_text("\n".join([lines[0], json.dumps(data), lines[2]]) + "\n")
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("group"), ":2: group: missing"),
        (lambda d: d.update(step="12"), ":2: step: expected int, got str"),
        (lambda d: d.update(step=-1), ":2: step: expected int >= 0"),
        (
            lambda d: d["debate"]["turns"][2]["completion"].pop("text"),
            r"debate.turns\[2\].completion.text: missing",
        ),
        (lambda d: d["debate"]["votes"][0].update(outcome="up"), r"votes\[0\].outcome: invalid enum"),
        (lambda d: d["debate"]["protocol"].update(nmu_agents=0), "unknown key 'nmu_agents'; did you mean"),
        (lambda d: d["debate"]["turns"][0].update(handle=[1]), r"turns\[0\].handle: expected str, got array"),
    ],
)
def test_a_damaged_line_is_refused_with_file_line_and_field(
    tmp_path: Path, record: Record, change, message: str
):
    path = damaged(write_step(tmp_path, 12, [record] * 3), change)
    reader = read_records(path)
    assert next(reader) == record
    with pytest.raises(TranscriptError, match=f"step_000012.jsonl.*{message}"):
        next(reader)


def test_unknown_fields_are_refused_at_any_depth(tmp_path: Path, record: Record):
    path = write_step(tmp_path, 12, [replace(record, timing=Timing(1.0, 2.0))] * 3)
    lines = path.read_bytes().splitlines()
    places = [match.end() for match in re.finditer(rb'\{(?=")', lines[1])]
    assert len(places) == 24
    for place in places:
        spoiled = lines[1][:place] + b'"colour":1,' + lines[1][place:]
        path.write_bytes(b"\n".join([lines[0], spoiled, b""]))
        with pytest.raises(TranscriptError, match=r"step_000012.jsonl:2: .*colour"):
            list(read_records(path))


def test_steps_that_are_run_again_are_set_aside_not_deleted(tmp_path: Path, record: Record):
    for _ in range(2):
        for step in (11, 12, 13):
            write_step(tmp_path, step, [replace(record, step=step)])
        set_aside_from(tmp_path, 12)
    assert [path.name for path in shard_paths(tmp_path)] == ["step_000011.jsonl"]
    assert sorted(path.name for path in (tmp_path / "superseded").iterdir()) == [
        "step_000012.2.jsonl",
        "step_000012.jsonl",
        "step_000013.2.jsonl",
        "step_000013.jsonl",
        "tokens",
    ]
    for path in (tmp_path / "superseded").glob("*.jsonl"):  # their token arrays went with them
        assert next(read_records(path)).debate == record.debate
    assert set_aside_from(tmp_path / "none", 0) == []


def test_each_record_reaches_the_file_in_one_write_before_close(tmp_path: Path, record: Record, monkeypatch):
    sizes: list[int] = []
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: sizes.append(len(data)) or real(fd, data))
    writer = ShardWriter(tmp_path, 12)
    writer.write(record)
    assert list(read_records(writer.path)) == [record]
    arrays = tmp_path / "tokens" / writer.path.name
    assert sizes == [arrays.stat().st_size, writer.path.stat().st_size]
    writer.close()
    writer.close()


def test_nothing_is_written_through_a_link_or_into_a_pipe(tmp_path: Path):
    mine = tmp_path / "mine"
    mine.write_text("kept\n")
    (tmp_path / "link").symlink_to(mine)
    (tmp_path / "dangling").symlink_to(tmp_path / "new")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "dangling", "pipe"):
        with pytest.raises(TranscriptWriteError, match=f"{name}: not a plain file"):
            LineFile(tmp_path / name)
    assert mine.read_text() == "kept\n"
    assert not (tmp_path / "new").exists()


GOLDEN = Path(__file__).parents[2] / "data/transcripts"
LINE = GOLDEN / f"schema_{SCHEMA_VERSION}.jsonl"


def test_the_line_is_written_as_it_was():
    [record] = read_records(LINE)
    assert json.loads(to_line(record, 0)) == json.loads(LINE.read_bytes())
    arrays = token_line(record.debate)
    assert arrays is not None
    assert arrays + b"\n" == (GOLDEN / "tokens" / LINE.name).read_bytes()


def test_an_index_holds_the_debate(tmp_path):
    shutil.copy(LINE, tmp_path / "step_000000.jsonl")
    with RunStore.open(tmp_path) as store:
        assert store.damage == []
        [row] = store.debates("winner:right text:solution tokens:>0")
        completion = store.debate(row.id).debate.turns[0].completion
    assert (completion.prompt_count, completion.token_count) == (3, 4)
    assert row.facts.votes == 6
