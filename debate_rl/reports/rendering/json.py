"""A report as JSON: everything that the page shows, and every figure in full."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from debate_rl.formatting import json_number, printable
from debate_rl.reports.cells import Judged, combined_filter
from debate_rl.reports.document import Answer, Cell, Chart, Document, Paragraph, Part
from debate_rl.reports.figures.figure import Figure

SCHEMA = 1
MARK = "debate report"
"""Stands in the first line of every file that a report writes: those it may replace."""


def as_json(document: Document, runs: Sequence[Judged] = ()) -> str:
    """Return the report: ``made_by``, ``schema``, ``title``, ``lead``, ``answers``, ``findings``, ``figures``
    of all runs, ``sections``.

    Infinite bounds and missing values are null. Texts are as they were, control characters escaped.
    """
    facts = {
        "made_by": MARK,
        "schema": SCHEMA,
        "title": document.title,
        "lead": [_part(part) for part in document.lead],
        "answers": {answer.name: _answer(answer) for answer in document.answers},
        "findings": [_plain(finding) for finding in document.findings],
        "figures": [row for judged in runs for row in _figures(judged, judged.figures)],
        "sections": [
            {
                "name": section.name,
                "title": section.title,
                "about": section.about,
                "parts": [_part(part) for part in section.parts],
            }
            for section in document.sections
        ],
    }
    return json.dumps(facts, indent=1, allow_nan=False) + "\n"


def _figures(judged: Judged, figures: Iterable[Figure]) -> Iterable[Mapping[str, object]]:
    for figure in figures:
        estimate = figure.estimate
        yield {
            "run": judged.run,
            "name": figure.name,
            "estimate": json_number(estimate.value) if estimate else None,
            "low": json_number(estimate.low) if estimate else None,
            "high": json_number(estimate.high) if estimate else None,
            "p": json_number(estimate.p) if estimate else None,
            "n": estimate.n if estimate else 0,
            "problems": estimate.clusters if estimate else 0,
            "filter": combined_filter(judged.filter, figure.filter),
            "why": figure.why,
            "flag": figure.flag,
            "meaning": figure.meaning.text,
            "source": figure.meaning.source,
        }


def _answer(answer: Answer) -> dict[str, object]:
    """Return the answer in a word and in sentences, with the commands to type and the picture."""
    facts = {
        "question": answer.question,
        "word": answer.word,
        "tone": answer.tone,
        "text": [part.text for part in answer.text],
        "commands": [part.command for part in answer.text if part.command],
        "picture": None,
    }
    return _plain(facts) | {"picture": _part(answer.picture) if answer.picture else None}


def _part(part: Part) -> dict[str, object]:
    kind = type(part).__name__.lower()
    if isinstance(part, Paragraph | Chart):
        return {"type": kind, **_plain(asdict(part))}
    rows = [[_cell(cell) for cell in row] for row in part.rows]
    about = {"name": part.name, "title": part.title, "columns": list(part.columns), "note": part.note}
    return {"type": kind, **about, "rows": rows}


def _cell(cell: Cell) -> dict[str, object]:
    """Return a cell without what it has not."""
    parts = _plain(asdict(cell)).items()
    return {name: value for name, value in parts if value not in (None, "") or name == "text"}


def _plain(value: Any) -> Any:
    """Return a value as JSON has it, all the way down."""
    if isinstance(value, dict):
        return {printable(str(name)): _plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return json_number(value)
