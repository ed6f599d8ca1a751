"""Files of rows, as published data sets and users have them."""

import json

import pytest

from envs import load_problems


@pytest.fixture
def load(tmp_path):
    """Return the problems of rows, which are written into a file."""

    def read(name, *rows, split="train", **options):
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return load_problems(name, split=split, path=path, **options)

    return read
