"""Debates as lines of text or JSON, for a terminal, a pipe or a file."""

from __future__ import annotations

import json
import os
import re
import shutil
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, TextIO

from msgspec import UNSET

from debate.types import Span as TextSpan
from debate.types import TurnId
from debate_rl.formatting import counted, json_number, safe
from debate_rl.inspector.blocks import Block, Layout, Line, Row, Span, lines_of
from debate_rl.inspector.lists import DEBATES, RUNS, STEPS, Column, fitting, padded_row, table_of
from debate_rl.inspector.views import adoption_view, debate_view, parse_forensics, vote_graphs
from debate_rl.inspector.views.debate_blocks import debate_blocks
from debate_rl.inspector.views.marks import Marker
from debate_rl.inspector.views.parsing import parsing_blocks
from debate_rl.inspector.views.prompts import DebatePrompts
from debate_rl.inspector.views.votes import votes_blocks
from transcripts import DebateRow, Record, RunStore, compile_filter
from transcripts.record import named

if TYPE_CHECKING:
    from debate_rl.inspector.runs import Overview

CODES = {
    **{"title": "1", "strong": "1", "label": "2", "faint": "2", "id": "2", "thinking": "2", "other": "2"},
    **{"right": "32", "new": "32", "wrong": "31", "gone": "31", "mark": "31", "found": "31"},
    **{"missing": "33", "doubt": "33", "won": "33", "address": "36", "comparison": "35", "judge": "35"},
}
"""Terminal codes of styles, used on terminals with colour."""


def _nothing(*_: object) -> None:
    return


@dataclass(frozen=True, slots=True)
class Printer:
    """Writes lines to ``stream``, or JSON. ``width``: the columns of a terminal, or None without a limit.

    ``note`` is called with remarks that are not part of the output. ``index`` is called with a store and a
    filter before the search.
    """

    stream: TextIO
    colour: bool = False
    width: int | None = None
    as_json: bool = False
    note: Callable[[str], None] = _nothing
    index: Callable[[RunStore, str], None] = _nothing

    def line(self, text: str = "") -> None:
        """Write one line unchanged."""
        self.stream.write(text + "\n")

    def json(self, value: object) -> None:
        """Write a value as one line of JSON, in ASCII."""
        self.line(json.dumps(value, allow_nan=False))

    def row(self, row: Row) -> None:
        """Write spans in their colours. Their texts must be safe to print."""
        spans = [span for span in row if span.text]
        while spans and not spans[-1].text.strip():
            spans.pop()
        *first, last = spans or [Span("")]
        self.line("".join(map(self._paint, [*first, last._replace(text=last.text.rstrip())])))

    def _paint(self, span: Span) -> str:
        code = CODES.get(span.style) if self.colour else None
        return f"\x1b[{code}m{span.text}\x1b[0m" if code and span.text.strip() else span.text

    def blocks(self, blocks: Iterable[Block], layout: Layout | None = None) -> None:
        """Write blocks."""
        for index, row in enumerate(lines_of(blocks, layout or Layout())):
            if row or index:  # no blank line at the top
                self.row(row)

    def list(self, columns: Sequence[Column[Any]], items: Sequence[Any], *, total: Any = None) -> None:
        """Write a list: in a terminal the columns that fit, in a pipe all columns without ``rest``."""
        every = [*items, *([] if total is None else [total])]
        if self.width is None:
            self.blocks([table_of([column for column in columns if not column.rest], every)])
            return
        fit = fitting(columns, self.width)
        for item in (None, *every):
            self.row(padded_row(fit, item))
        if more := len(columns) - len(fit):
            self.row((Span(f"{counted(more, 'column')} more in a wider terminal or with --json", "faint"),))


def printer_for(stream: TextIO) -> Printer:
    """Return the printer of a stream. Colours and a width need a terminal without NO_COLOR and TERM=dumb."""
    if not stream.isatty():
        return Printer(stream)
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") in ("dumb", "unknown", "")
    return Printer(stream, not plain, shutil.get_terminal_size().columns)


def json_of(value: Any) -> Any:
    """Return a value of the views for JSON: turns as [agent, round], spans as [start, end].

    >>> json_of({"a": (TurnId(0, 1), TextSpan(2, 3), None)})
    {'a': [[0, 1], [2, 3], None]}
    """
    if isinstance(value, TurnId):
        return [value.agent, value.round]
    if isinstance(value, TextSpan):
        return [value.start, value.end]
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): json_of(item) for name, item in value.items() if item is not UNSET}
    if isinstance(value, list | tuple):
        return [json_of(item) for item in value]
    return json_number(value)


def print_list(
    store: RunStore,
    printer: Printer,
    filter: str = "",
    *,
    limit: int = 50,
    after: str | None = None,
    newest: bool = False,
) -> tuple[int, str | None]:
    """Print a page of debates. Return the number of matches, and the id to continue after or None."""
    page = store.debates(filter, newest=newest, after=after, limit=limit + 1)
    rows, more = page[:limit], len(page) > limit
    if printer.as_json:
        for row in rows:
            printer.json(row_json(row))
    elif rows:
        printer.list(DEBATES, rows)
    return store.count(filter), rows[-1].id if more and rows else None


def row_json(row: DebateRow) -> dict[str, object]:
    """Return a row of a list of debates for JSON, with the fields of filters and "_" instead of dots."""
    facts = row.facts._asdict()
    flips = {name.upper(): facts.pop(f"flip_{name}") for name in ("cc", "cw", "wc", "ww")}
    facts["winner"], facts["cycle"] = row.winner, bool(row.facts.cycle)
    facts["condorcet"] = None if row.facts.condorcet is None else bool(row.facts.condorcet)
    problem = row.problem._asdict()
    problem["problem"] = problem.pop("id")
    figures = {name: json_number(value) for name, value in facts.items()}
    return {"id": row.id, "step": row.step, **problem, "personas": row.personas, **figures, "flip": flips}


def print_figures(store: RunStore, printer: Printer, filter: str = "") -> None:
    """Print a line for each step with matching debates, then a line for all steps."""
    steps, overall = store.steps(filter), store.overall(filter)
    if printer.as_json:
        printer.json({"schema": 1, "filter": filter, "overall": json_of(overall), "steps": json_of(steps)})
    else:
        printer.list(STEPS, steps, total=overall)


def print_runs(runs: Sequence[Overview], printer: Printer) -> None:
    """Print the runs of a folder. In a pipe, paths replace names."""
    if printer.as_json:
        for one in runs:
            figures = json_of(one)
            printer.json(figures.pop("run") | figures | {"path": str(one.run.path)})
    elif printer.width is None:
        path = replace(RUNS[0], name="path", rest=False, cell=lambda one: str(one.run.path))
        printer.list([path, *RUNS[1:]], runs)
    else:
        printer.list(RUNS, runs)


def print_debate(
    id: str,
    record: Record,
    printer: Printer,
    *,
    raw: bool = False,
    prompts: DebatePrompts | None = None,
    marks: Marker | None = None,
) -> None:
    """Print one debate, with its stars, labels and notes (``marks``).

    ``raw``: texts as written. ``prompts``: printed before their turns.
    """
    view = debate_view(id, record)
    if printer.as_json:
        printer.json(debate_json(id, record, prompts))
        return
    rounds = range(len(view.turns[0]) if view.turns else 0)
    blocks = debate_blocks(view, rounds, raw=raw, prompts=prompts, marks=marks)
    printer.blocks(blocks, Layout(unfold="--raw shows them"))
    votes = votes_blocks(view, vote_graphs(record), marks)
    printer.blocks([*votes, *parsing_blocks(view, record, again=False)])


def debate_json(id: str, record: Record, prompts: DebatePrompts | None = None) -> dict[str, object]:
    """Return a whole debate for JSON, optionally with prompts. Turns are in the order of the debate."""
    view, adoption = debate_view(id, record), adoption_view(record)
    body = json_of(view)
    body["turns"] = [json_of(turn) for turn in view.spoken()]
    if prompts is not None:
        body["prompts_note"] = prompts.note
        read = [prompts.of(turn.id) for turn in view.spoken()]
        read += [prompts.of_summary(summary.round) for summary in view.summaries]
        for part, prompt in zip([*body["turns"], *body["summaries"]], read, strict=True):
            part["prompt"], part["prompt_unknown"] = json_of(prompt.messages), prompt.why
            part["prompt_text"], part["prompt_tokens"] = prompt.text, prompt.tokens
    return {
        "schema": 1,
        **body,
        "graphs": json_of(vote_graphs(record)),
        "answers": [json_of(cell) for row in adoption.cells for cell in row if cell is not None],
        "copies": json_of(adoption.copies),
        "failures": json_of(parse_forensics(record)),
    }


def print_view(
    value: Any, printer: Printer, blocks: Callable[[], Iterable[Block]], *, title: str = ""
) -> None:
    """Print a value as JSON, or its title and blocks."""
    if printer.as_json:
        printer.json({"schema": 1, **json_of(value)})
    else:
        printer.blocks([*([Line(Span(title, "strong"))] if title else []), *blocks()])


AROUND = 50
"""Characters shown on each side of a match."""
_BLANKS = re.compile(r"[ \t\n]+")


def search_filter(words: str, filter: str = "") -> str:
    """Return the filter for debates that contain words and match another filter.

    >>> search_filter("two words", "winner:wrong OR step:3")
    'text:"two words" (winner:wrong OR step:3)'
    """
    text = 'text:"' + words.replace('"', '""') + '"'
    return f"{text} ({filter})" if filter.strip() else text


def print_matches(
    store: RunStore,
    printer: Printer,
    words: str,
    filter: str = "",
    *,
    limit: int | None = None,
) -> int:
    """Print a line for each match of ``text:`` in at most ``limit`` debates, and return their number."""
    compile_filter(filter)  # errors point into the filter as typed
    count = 0
    for id, record in islice(store.records(search_filter(words, filter)), limit):
        for turn in record.debate.turns:
            text = turn.completion.text
            for start, end in matches(words, text):
                count += 1
                parts = text[max(0, start - AROUND) : start], text[start:end], text[end : end + AROUND]
                if printer.as_json:
                    where = {"id": id, "turn": [*turn.id], "start": start, "end": end}
                    printer.json(where | dict(zip(("before", "match", "after"), parts, strict=True)))
                    continue
                before, found, after = (safe(_BLANKS.sub(" ", part)) for part in parts)
                address, rest = Span(f"{id} {named(turn.id)}", "address"), Span(f": {before.lstrip()}")
                printer.row((address, rest, Span(found, "found"), Span(after)))
    return count


def matches(words: str, text: str) -> Iterator[tuple[int, int]]:
    r"""Yield the start and end of words in a text, as ``text:`` matches them.

    >>> text = "The dérivative. Derive it!"
    >>> [text[start:end] for start, end in matches("deriv*", text)]
    ['dérivative', 'Derive']
    """
    folded, indices = _folded(text)
    for match in _pattern(words).finditer(folded):
        if match.end() > match.start():
            end = indices[match.end()] if match.end() < len(indices) else len(text)
            yield indices[match.start()], end


def _pattern(words: str) -> re.Pattern[str]:
    """Return the pattern of words in a folded text."""
    prefix = words.endswith("*")
    wanted = _folded(" ".join(words.removesuffix("*").split()))[0]
    blanks = r"[\W_]++" if wanted.replace(" ", "").isalnum() else r"\s++"
    body = blanks.join(map(re.escape, wanted.split()))
    start = r"(?<![^\W_])" if wanted[:1].isalnum() else ""
    end = r"(?![^\W_])" if wanted[-1:].isalnum() else ""
    return re.compile(start + body + (r"[^\W_]*+" if prefix and end else end))


def _folded(text: str) -> tuple[str, range | list[int]]:
    """Return the text without case and accents, and the original position of each of its characters."""
    if text.isascii():
        return text.lower(), range(len(text))
    folded: list[str] = []
    indices: list[int] = []
    for index, character in enumerate(text):
        base = unicodedata.normalize("NFD", character)[0]
        if not unicodedata.combining(base):
            lower = base.lower()
            folded.append(lower if len(lower) == 1 else base)
            indices.append(index)
    return "".join(folded), indices
