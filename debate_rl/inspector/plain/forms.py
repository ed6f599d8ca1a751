"""The JSON of the plain screen; docs/inspector.md names the fields, which stay."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from debate.types import Span, TurnId
from debate_rl.formatting import json_number
from debate_rl.inspector.views import DebateView, adoption_view, parse_forensics, vote_graphs
from debate_rl.inspector.views.prompts import DebatePrompts
from transcripts import DebateRow, Record, StepRow

if TYPE_CHECKING:
    from debate_rl.inspector.overview import Overview

FLIPS = ("flip_cc", "flip_cw", "flip_wc", "flip_ww")


def row_json(row: DebateRow) -> dict[str, object]:
    """Return a debate of a list; the fields are those of filters, with "_" for a dot."""
    facts = row.facts._asdict()
    flips = {name.removeprefix("flip_").upper(): facts.pop(name) for name in FLIPS}
    facts["winner"], facts["cycle"] = row.winner, bool(row.facts.cycle)
    facts["condorcet"] = None if row.facts.condorcet is None else bool(row.facts.condorcet)
    problem = row.problem._asdict()
    problem["problem"] = problem.pop("id")
    figures = {name: json_number(value) for name, value in facts.items()}
    return {"id": row.id, "step": row.step, **problem, "personas": row.personas, **figures, "flip": flips}


def run_json(one: Overview) -> dict[str, object]:
    """Return a run of a list."""
    figures = as_json(one)
    return figures.pop("run") | figures | {"path": str(one.run.path)}


def step_json(row: StepRow) -> dict[str, object]:
    """Return the figures of a step, or of all."""
    return {field.name: json_number(getattr(row, field.name)) for field in fields(row)}


def debate_json(view: DebateView, record: Record, prompts: DebatePrompts | None = None) -> dict[str, object]:
    """Return all that is shown of a debate, and perhaps its prompts; turns stand in the debate's order."""
    body = as_json(view)
    body["turns"] = [as_json(turn) for turn in view.spoken()]
    if prompts is not None:
        _add_prompts(body, view, prompts)
    adoption = adoption_view(record)
    cells = [cell for row in adoption.cells for cell in row if cell is not None]
    return {
        "schema": 1,
        **body,
        "graphs": as_json(vote_graphs(record)),
        "answers": as_json(cells),
        "copies": as_json(adoption.copies),
        "failures": as_json(parse_forensics(record)),
    }


def _add_prompts(body: dict[str, Any], view: DebateView, prompts: DebatePrompts) -> None:
    """Give each turn and each summary its prompt, and the debate the note on all of them."""
    body["prompts_note"] = prompts.note
    read = [prompts.of(turn.id) for turn in view.spoken()]
    summed = [prompts.of_summary(summary.round) for summary in view.summaries]
    for part, prompt in zip([*body["turns"], *body["summaries"]], [*read, *summed], strict=True):
        part["prompt"], part["prompt_unknown"] = as_json(prompt.messages), prompt.why
        part["prompt_text"], part["prompt_tokens"] = prompt.text, prompt.tokens


def as_json(value: Any) -> Any:
    """Return a value of the views as JSON has it: turns as [agent, round], spans as [start, end].

    >>> as_json({"a": (TurnId(0, 1), Span(2, 3), None)})
    {'a': [[0, 1], [2, 3], None]}
    """
    if isinstance(value, TurnId):
        return [value.agent, value.round]
    if isinstance(value, Span):
        return [value.start, value.end]
    if is_dataclass(value):
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
        return {name: as_json(part) for name, part in parts.items() if part is not UNSET}
    if isinstance(value, dict):
        return {name: as_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    return value
