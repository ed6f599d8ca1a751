"""docs/inspector.md names every field of the JSON, and its Python runs."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

import debate_rl
from debate_rl.inspector.plain.forms import as_json, debate_json, row_json, step_json
from debate_rl.inspector.runs import FoundRun
from debate_rl.inspector.views import Arrow, FailureView, debate_view
from transcripts import RunStore, write_step

PAGE = (Path(debate_rl.__file__).parents[1] / "docs/inspector.md").read_text(encoding="utf-8")
JSON_PART = PAGE[PAGE.index("## JSON") : PAGE.index("## From Python")]
NAMES = set(re.findall(r"`(\w+)`", JSON_PART))


@pytest.fixture
def run(circle, tmp_path):
    write_step(tmp_path / "runs/quickstart-pair_sum-0/transcripts", 5, [circle])
    return tmp_path / "runs/quickstart-pair_sum-0"


def test_the_page_names_every_field(circle, run):
    body = debate_json(debate_view("5.0", circle), circle)
    with RunStore.open(run) as store:
        row, step = row_json(store.debates()[0]), step_json(store.overall())
    views = [{field.name for field in fields(kind)} for kind in (Arrow, FailureView, FoundRun)]
    graph, turn = body["graphs"][0], body["turns"][0]
    for found in (body, row, step, graph, turn, turn["pieces"][0], body["answers"][0], *views):
        assert set(found) <= NAMES, set(found) - NAMES


def test_a_value_of_json_is_of_json(circle):
    assert as_json(circle.debate.turns[0].id) == [0, 0]
    assert as_json({"span": circle.debate.votes[0].span})["span"][0] > 0


def test_its_python_runs(run, monkeypatch, capsys):
    monkeypatch.chdir(run.parents[1])
    [snippet] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(snippet, {})
    assert "TurnId(agent=2, round=0)" in capsys.readouterr().out
