"""Rows of the shapes that data sets have, each with the problem it becomes or the error that names it."""

import json
from pathlib import Path

import pytest

from envs import DataError

TABLE = Path(__file__).parents[3] / "data" / "data_set_rows.jsonl"
CASES = [json.loads(line) for line in TABLE.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("case", CASES, ids=[f"{case['set']}-{n}" for n, case in enumerate(CASES)])
def test_a_row_becomes_a_problem_or_is_named(load, case):
    name, rows, options = case["set"], case["rows"], case.get("options", {})
    if error := case.get("error"):
        with pytest.raises(DataError, match=rf"rows\.jsonl, .*{error}") as caught:
            load(name, *rows, split=case["split"], **options)
        assert str(caught.value).isprintable()
        return
    problems, wanted = load(name, *rows, split=case["split"], **options), case["problems"]
    found = [{key: getattr(one, key) for key in keys} for one, keys in zip(problems, wanted, strict=True)]
    assert json.loads(json.dumps(found)) == wanted
