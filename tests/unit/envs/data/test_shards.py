"""A path that means several files: order, splits by file name, and errors that name the folder."""

import os

import pytest

from envs import DataError, load_problems
from envs.data.records import files_of, split_named


@pytest.fixture
def shard(write_rows):
    """Return shard(name, first, count=2, **more) -> the path of a file of sums from this number on."""

    def write(name, first, count=2, **more):
        numbers = range(first, first + count)
        rows = ({"question": f"What is {n}?", "answer": str(n)} | more for n in numbers)
        return write_rows(*rows, name=name)

    return write


@pytest.fixture
def snapshot(tmp_path, shard):
    """A snapshot of the hub: two shards of train, written last first, one of test, and what stands beside."""
    shard("data/train-00001-of-00002.jsonl", 20)
    shard("data/train-00000-of-00002.jsonl", 10)
    shard("data/test-00000-of-00001.jsonl", 30)
    (tmp_path / "README.md").write_text("about")
    (tmp_path / "dataset_infos.json").write_text("{}")
    return tmp_path


def answers(path, split):
    return [problem.answer for problem in load_problems("file", path=path, split=split)]


def test_shards_are_read_in_order_and_counted_through(snapshot):
    assert answers(snapshot, "train") == ["10", "11", "20", "21"]
    assert [p.id for p in load_problems("file", path=snapshot)] == [f"train-{n}" for n in range(4)]
    assert answers(snapshot / "data", "test") == ["30", "31"]
    assert answers(snapshot / "data", "all") == ["30", "31", "10", "11", "20", "21"]
    assert answers(str(snapshot / "data" / "train-*"), "train") == ["10", "11", "20", "21"]
    assert answers(str(snapshot / "**" / "test-*.jsonl"), "test") == ["30", "31"]


def test_a_single_file_is_read_whatever_its_name_and_a_folder_of_one_is_not(tmp_path, shard):
    file = shard("test.jsonl", 1)
    assert answers(file, "train") == ["1", "2"]
    with pytest.raises(DataError, match=r": no file of split 'train'; use test or 'all'$"):
        answers(tmp_path, "train")


def test_rows_that_name_their_split_are_kept_apart_within_the_files(tmp_path, shard):
    shard("a.jsonl", 1, split="train")
    shard("b.jsonl", 5, split="test")
    assert answers(tmp_path, "test") == ["5", "6"]


def test_a_data_sets_own_name_of_a_split_finds_its_files(tmp_path, shard):
    shard("train-00000-of-00001.jsonl", 7, 1, problem="What?")
    assert [p.answer for p in load_problems("aime24", path=tmp_path, split="test")] == ["7"]  # its "train"


def test_parquet_shards(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for n in range(2):
        table = pa.table({"question": [f"What is {n}?"], "answer": [str(n)]})
        parquet.write_table(table, tmp_path / f"train-0000{n}-of-00002.parquet")
    assert answers(tmp_path, "train") == ["0", "1"]
    (tmp_path / "bad.parquet").write_bytes(b"no parquet")
    with pytest.raises(DataError, match="not a readable Parquet"):
        answers(tmp_path / "bad.parquet", "train")


def test_errors_name_the_folder(tmp_path, shard):
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"empty: no JSONL, JSON or Parquet file in this folder"):
        files_of(tmp_path / "empty")
    with pytest.raises(DataError, match=r"gone-\*: no file matches"):
        files_of(str(tmp_path / "gone-*"))
    shard("a.jsonl", 1)
    (tmp_path / "b.parquet").write_bytes(b"")
    with pytest.raises(DataError, match=r"several kinds \(a\.jsonl, b\.parquet\); .* as in .*\*\.jsonl$"):
        files_of(tmp_path)
    (tmp_path / "b.parquet").unlink()
    (tmp_path / "b.jsonl").write_text("{")
    with pytest.raises(DataError, match=r"b\.jsonl, line 1: is not valid JSON"):
        load_problems("file", path=tmp_path)


def test_a_file_whose_name_looks_like_a_glob_is_itself(tmp_path, shard):
    file = shard("own[1].jsonl", 1)
    assert files_of(str(file)) == (file,)


def test_a_glob_goes_through_no_link_to_a_folder_and_reads_a_file_once(tmp_path, shard):
    file = shard("deep/er/a.jsonl", 1)
    for place in (tmp_path, tmp_path / "deep"):
        (place / "self").symlink_to(".")
        (place / "up").symlink_to("..")
    (tmp_path / "other.jsonl").symlink_to(file)
    (tmp_path / "test.jsonl").symlink_to(file)  # the hub's cache has one blob under the names of two splits
    (tmp_path / ".hidden").mkdir()
    shard(".hidden/b.jsonl", 9)
    wanted = (file, tmp_path / "test.jsonl")
    for pattern in ("**/*.jsonl", "**", "**/**/*", "**/**"):
        assert files_of(str(tmp_path / pattern)) == wanted, pattern
    assert files_of(str(tmp_path / "**" / "er" / "*")) == (file,)
    linked = tmp_path / "self" / "deep" / "er" / "a.jsonl"
    assert files_of(str(tmp_path / "self" / "deep" / "*" / "[a]*")) == (linked,)
    assert files_of(str(tmp_path / ".h*" / "*.jsonl")) == (tmp_path / ".hidden" / "b.jsonl",)


@pytest.mark.parametrize("path", ["*.jsonl", "y.jsonl", "."])
def test_a_pipe_is_not_waited_for(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("y.jsonl")
    with pytest.raises(DataError, match=r"^y\.jsonl: is no plain file; give path= a JSONL"):
        load_problems("file", path=path)


def test_the_split_in_a_name(tmp_path):
    names = {"validation-00003-of-00010-0123abcdef.parquet": "validation", "dev.jsonl": "dev"}
    names |= {"test_sft-00000-of-00001.parquet": "test_sft", "part-3.jsonl": None, "gsm8k_train.jsonl": None}
    assert {name: split_named(tmp_path / name) for name in names} == names


@pytest.mark.parametrize(
    ("name", "size", "told"),
    [
        ("a.jsonl", 1 << 40, "has 1,024 GiB, more than 16 GiB"),
        ("a.jsonl", 1 << 30, "a line is longer than 16 MiB"),
        ("a.json", 1 << 31, "has 2 GiB, more than 1 GiB"),
        ("a.parquet", 1 << 40, "has 1,024 GiB, more than 16 GiB"),
    ],
)
def test_a_sparse_file_is_refused_by_its_size(tmp_path, name, size, told):
    with (tmp_path / name).open("wb") as file:
        file.truncate(size)
    with pytest.raises(DataError, match=rf"{name}: cannot be read \({told}\)"):
        load_problems("file", path=tmp_path / name)
