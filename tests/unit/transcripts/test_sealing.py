import io
import subprocess
from pathlib import Path
from random import Random
from shutil import which

import pytest

from transcripts import TornTailWarning, TranscriptError, read_records, write_step
from transcripts.codec import without_tokens
from transcripts.files import FRAME, SealedFile, sealed_name, write_sealed
from transcripts.store import ShardWriter, seal_before, seal_shard

LINES = [bytes([97 + n % 26]) * (n * 997 % 70_000) + b"\n" for n in range(40)] + [
    b"z" * 3 * FRAME + b"\n",
    b"\n",
]


def sealed(lines: list[bytes]) -> bytes:
    out = io.BytesIO()
    write_sealed(iter(lines), out)
    return out.getvalue()


def test_lines_are_found_from_any_place():
    file = SealedFile(Path("x"), io.BytesIO(sealed(LINES)))
    assert file.size == sum(map(len, LINES))
    places = [sum(map(len, LINES[:n])) for n in range(len(LINES))]
    assert list(file.lines()) == list(zip(places, LINES, strict=True))
    for n in Random(0).sample(range(len(LINES)), 20):
        assert file.line(places[n]) == LINES[n]
    assert file.line(places[3] + 5) == LINES[3][5:]
    assert file.line(file.size) == file.line(10**12) == b""


@pytest.mark.skipif(which("zstd") is None, reason="no zstd here")
def test_zstd_itself_unpacks_it(tmp_path):
    (tmp_path / "a.zst").write_bytes(sealed(LINES))
    done = subprocess.run(["zstd", "-dc", tmp_path / "a.zst"], capture_output=True, check=True)
    assert done.stdout == b"".join(LINES)


def test_damage_anywhere_is_told_or_harmless():
    rng, whole, text = Random(1), sealed(LINES[:12]), b"".join(LINES[:12])
    for _ in range(300):
        bad = bytearray(whole)
        if rng.random() < 0.5:
            bad = bad[: rng.randrange(len(bad))]
        else:
            bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        try:
            found = b"".join(line for _, line in SealedFile(Path("x"), io.BytesIO(bytes(bad))).lines())
        except TranscriptError as error:
            assert str(error).startswith("x: damaged: ")  # noqa: PT017
        else:
            assert found == text


def test_a_sealed_step_is_read_as_it_was_written(tmp_path, step_records):
    path = write_step(tmp_path, 0, step_records(0), seal=True)
    assert path == tmp_path / "step_000000.jsonl.zst"
    names = ["step_000000.jsonl.zst", "tokens", "tokens/step_000000.jsonl.zst"]
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")) == names
    for place in (path, tmp_path, tmp_path / "step_000000.jsonl"):
        assert list(read_records(place)) == step_records(0)
    assert list(read_records(path, tokens=False)) == [without_tokens(one) for one in step_records(0)]
    assert seal_shard(path) == path
    with pytest.raises(TranscriptError, match=r"step_000000.jsonl.zst: is sealed; nothing can be added"):
        ShardWriter(tmp_path, 0)


def test_a_torn_tail_is_cut_when_it_is_sealed(tmp_path, step_records):
    path = write_step(tmp_path, 0, step_records(0))
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.warns(TornTailWarning):
        assert list(read_records(path)) == step_records(0)[:-1]
    seal_shard(path)
    assert list(read_records(path)) == step_records(0)[:-1]


def test_sealing_that_was_cut_off_anywhere_is_taken_up_again(tmp_path, step_records):
    path = write_step(tmp_path, 0, step_records(0))
    plain = path.read_bytes()
    later = write_step(tmp_path, 1, step_records(1))
    (tmp_path / ".step_000000.jsonl.zst.new").write_bytes(b"half")
    seal_shard(path)
    path.write_bytes(plain)  # killed between the renaming and the removal: both are there
    assert list(read_records(tmp_path)) == [*step_records(0), *step_records(1)]
    (tmp_path / "tokens/.step_000007.jsonl.zst.new").write_bytes(b"half")
    assert seal_before(tmp_path, 1) == [sealed_name(path)]
    assert not path.exists()
    assert later.exists()
    assert not list(tmp_path.rglob(".*"))
    assert list(read_records(tmp_path)) == [*step_records(0), *step_records(1)]
    assert seal_before(tmp_path / "nowhere", 1) == []
