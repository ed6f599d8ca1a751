"""Sealed shards: the same records from the same places; damage is told; a cut-off sealing costs nothing."""

from __future__ import annotations

import io
import struct
import subprocess
from pathlib import Path
from random import Random
from shutil import which

import pytest

from transcripts import TornTailWarning, TranscriptError, read_records, store, write_step
from transcripts.append import LineFile
from transcripts.codec import to_line, without_tokens
from transcripts.errors import TranscriptWriteError
from transcripts.files import FOOTER, FRAME, HEAD, SEEKABLE, SKIPPABLE, SealedFile, write_sealed, zstd
from transcripts.names import sealed_name
from transcripts.store import ShardWriter, seal_before, seal_shard

LINES = [bytes([97 + n % 26]) * (n * 997 % 70_000) + b"\n" for n in range(40)] + [
    b"z" * 3 * FRAME + b"\n",
    b"\n",
]


def sealed(lines: list[bytes]) -> bytes:
    out = io.BytesIO()
    write_sealed(iter(lines), out)
    return out.getvalue()


def framed(blocks: list[bytes]) -> bytes:
    """Pack blocks as frames, whatever is in them."""
    frames = [zstd.compress(block) for block in blocks]
    table = [size for frame, block in zip(frames, blocks, strict=True) for size in (len(frame), len(block))]
    packed = struct.pack(f"<{len(table)}I", *table)
    head, foot = HEAD.pack(SKIPPABLE, len(packed) + FOOTER.size), FOOTER.pack(len(frames), 0, SEEKABLE)
    return b"".join([*frames, head, packed, foot])


@pytest.fixture
def unpacked(monkeypatch):
    """The bytes of each unpacking."""
    sizes = []

    class Counting:
        def __init__(self):
            self.real = real()

        def decompress(self, *given):
            sizes.append(len(data := self.real.decompress(*given)))
            return data

        @property
        def eof(self):
            return self.real.eof

    real = zstd.ZstdDecompressor
    monkeypatch.setattr(zstd, "ZstdDecompressor", Counting)
    return sizes


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


def test_a_frame_that_claims_gigabytes_is_refused():
    whole = bytearray(sealed([b"a\n"]))
    whole[-13:-9] = (2**32 - 1).to_bytes(4, "little")
    with pytest.raises(TranscriptError, match="a frame claims more than 64 MiB"):
        SealedFile(Path("x"), io.BytesIO(bytes(whole)))


def test_a_long_frame_is_one_line_and_nothing_behind_another_is_unpacked(monkeypatch, unpacked):
    """A few bytes may unpack to gigabytes, in frame after frame."""
    zeros = b"\0" * (1 << 20)
    file = SealedFile(Path("x"), io.BytesIO(framed([b"a\n", zeros, *[zeros] * 50, b"b\n"])))
    lines = file.lines()
    assert next(lines) == (0, b"a\n")
    with pytest.raises(TranscriptError, match="damaged: frame 1 has 1,048,576 bytes and is not one line"):
        next(lines)
    assert sum(unpacked) == 2 + len(zeros)


def test_a_frame_is_unpacked_no_further_than_it_claims(unpacked):
    whole = bytearray(framed([b"\0" * (1 << 24)]))
    whole[-13:-9] = (1000).to_bytes(4, "little")
    with pytest.raises(TranscriptError, match="does not have the size that the seek table has"):
        list(SealedFile(Path("x"), io.BytesIO(bytes(whole))).lines())
    assert unpacked == [1001]


def test_what_could_not_be_read_back_is_not_written(tmp_path, monkeypatch, step_records):
    [record, *_] = step_records(0)
    size = len(to_line(record))
    monkeypatch.setattr(store, "LARGEST", size)
    with (
        pytest.raises(
            TranscriptError, match=rf"cannot store problem .*: it has {size:,} bytes, and a line at"
        ),
        pytest.warns(UserWarning, match="the token arrays of problem .* are left out"),
    ):
        write_step(tmp_path, 0, [record])
    monkeypatch.setattr(store, "LARGEST", size + 1)
    with pytest.warns(UserWarning, match="are left out"):
        write_step(tmp_path / "more", 0, [record])
    assert list(read_records(tmp_path / "more")) == [without_tokens(record)]


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


def test_without_the_file_of_token_arrays_debates_are_read_without(tmp_path, step_records):
    path = write_step(tmp_path, 0, step_records(0), seal=True)
    (tmp_path / "tokens" / path.name).unlink()
    assert list(read_records(path)) == [without_tokens(one) for one in step_records(0)]


def test_arrays_of_another_debate_are_refused(tmp_path, step_records):
    path = write_step(tmp_path, 0, step_records(0))
    arrays = tmp_path / "tokens" / path.name
    lines = arrays.read_bytes().splitlines(keepends=True)
    arrays.write_bytes(lines[1] + lines[0] + b"".join(lines[2:]))
    with pytest.raises(TranscriptError, match=r"step_000000.jsonl:1: tokens: are those of another debate"):
        list(read_records(path))


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


def test_a_disk_that_is_full_leaves_the_plain_file(tmp_path, step_records, monkeypatch):
    path = write_step(tmp_path, 0, step_records(0))

    def full(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(TranscriptWriteError, match=r"jsonl.zst: No space left on device; what was written"):
        seal_shard(path)
    assert list(read_records(path)) == step_records(0)
    assert not list(tmp_path.rglob(".*"))


def test_an_array_line_without_its_debate_is_harmless(tmp_path, step_records):
    first, second, *_ = step_records(0)
    with ShardWriter(tmp_path, 0) as writer:
        writer.write(first)
    with LineFile(tmp_path / "tokens/step_000000.jsonl") as orphan:
        orphan.write(b'{"seed":1,"completions":[]}')
    with ShardWriter(tmp_path, 0) as writer:
        writer.write(second)
    assert list(read_records(tmp_path)) == [first, second]
    assert (tmp_path / "tokens/step_000000.jsonl").read_bytes().count(b"\n") == 3
