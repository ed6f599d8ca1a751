"""A line that an earlier version of this schema wrote is read as the same debate, and written alike."""

import json
import shutil
from pathlib import Path

from transcripts import SCHEMA_VERSION, RunStore, read_records
from transcripts.codec import to_line, token_line

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
