"""Files of rows, as published data sets and users have them, and a hub of tables."""

import json
import random
import sys
import types

import pytest

from envs import load_problems


@pytest.fixture
def write_rows(tmp_path):
    """Return write(*rows, name="rows.jsonl") -> the path of a file of these rows."""

    def write(*rows, name="rows.jsonl"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return write


@pytest.fixture
def load(write_rows):
    """Return load(name, *rows, split="train", **options) -> the problems of a file of these rows."""

    def read(name, *rows, split="train", **options):
        return load_problems(name, split=split, path=write_rows(*rows), **options)

    return read


class Stream(list):
    """What the hub's client returns when asked to stream: rows that can be shuffled, counted as they go."""

    read = 0

    def shuffle(self, *, seed, buffer_size):
        assert buffer_size == 10_000
        mixed = Stream(self)
        random.Random(seed).shuffle(mixed)
        return mixed

    def __iter__(self):
        for row in super().__iter__():
            Stream.read += 1
            yield row


@pytest.fixture
def hub(monkeypatch):
    """Tables by (hub id, configuration, split), instead of the hub."""
    tables = {}

    def load_dataset(hub_id, config, *, split, streaming=False):
        rows = tables[hub_id, config, split]
        return Stream(rows) if streaming else rows

    client = types.SimpleNamespace(load_dataset=load_dataset, Stream=Stream)
    monkeypatch.setitem(sys.modules, "datasets", client)
    Stream.read = 0
    return tables
