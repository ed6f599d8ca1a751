import os
import tracemalloc

import pytest

from debate.files import DEEPEST, LARGEST, NESTED, read_json, read_plain, read_toml


def test_a_plain_file_is_read_whole(tmp_path):
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("a")
    assert read_plain(tmp_path / "link", most=5) == b"12345"
    with pytest.raises(OSError, match="has 5 bytes, more than 4 bytes") as error:
        read_plain(tmp_path / "a", most=4)
    assert error.value.filename == str(tmp_path / "a")


@pytest.mark.parametrize("read", [read_plain, read_json, read_toml])
def test_what_has_no_end_is_not_read(read, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "zero", "folder"):
        with pytest.raises(OSError, match="not a plain file"):
            read(tmp_path / name)
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    tracemalloc.start()
    with pytest.raises(OSError, match=r"has 1,024 GiB, more than 16? MiB"):
        read(tmp_path / "sparse")
    assert tracemalloc.get_traced_memory()[1] < 3 * LARGEST
    tracemalloc.stop()
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none")


def toml(tmp_path, text):
    (tmp_path / "x.toml").write_text(text)
    return read_toml(tmp_path / "x.toml")


@pytest.mark.parametrize("part", ["a", '"a b"', "'.'", '""', "a-1", r'"\""', r'"\\"'])
@pytest.mark.parametrize("dot", [".", " . ", "\t."])
@pytest.mark.parametrize("form", ["{} = 1", "[{}]", "x = {{ {} = 1 }}", 'y = "=" \n[[ {} ]]'])
def test_a_key_of_thousands_of_parts_is_refused(part, dot, form, tmp_path):
    key = dot.join([part] * 20_000)
    if len(key) < 1 << 20:
        with pytest.raises(ValueError, match=f"a key has more than {DEEPEST} parts"):
            toml(tmp_path, form.format(key))
    assert toml(tmp_path, form.format(dot.join([part] * DEEPEST)))


def forms_of_nesting(depth):
    inner = "[" * depth + "]" * depth
    tables = "{a = " * depth + "1" + "}" * depth
    objects = '{"a": ' * depth + "1" + "}" * depth
    return {"x.toml": [f"x = {inner}", f"x = {tables}"], "x.json": [inner, objects]}


@pytest.mark.parametrize("depth", [NESTED + 1, 300, 1000, 100_000])
@pytest.mark.parametrize("name", ["x.toml", "x.json"])
def test_what_is_nested_too_deeply_is_no_value(name, depth, tmp_path):
    read = {"x.toml": read_toml, "x.json": read_json}[name]
    for text in forms_of_nesting(depth)[name]:
        (tmp_path / name).write_text(text)
        with pytest.raises(ValueError, match=f"it is nested more than {NESTED} deep"):
            read(tmp_path / name)
    for text in forms_of_nesting(NESTED - 2)[name]:
        (tmp_path / name).write_text(text)
        assert read(tmp_path / name)
