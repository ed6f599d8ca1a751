"""The JSON of the command line at addresses of the browser: ``/run/NAME/ACTION.json``, ``/runs.json``.

``/run/NAME/show.json?id=12.3`` answers with what ``debate inspect RUN show 12.3 --json`` prints. The query
has the action's arguments by name, in lower case, and its options.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from starlette.responses import Response

from debate_rl.inspector.actions import READING, LineOptions
from debate_rl.inspector.plain import Printer, print_runs, search_filter
from debate_rl.inspector.runs import overviews
from debate_rl.inspector.web.page import PageRequest
from debate_rl.inspector.web.site import NotFound
from transcripts import FilterError, TranscriptError

TYPE = "application/jsonl"
FLAGS = ("newest", "prompts")
"""Options without a value; the query has ``=1``."""


class Mistake(ValueError):
    """The query of an address does not fit its action."""


def runs_json(request: PageRequest) -> Response:
    """Return the runs, one line of JSON for each."""
    stream = io.StringIO()
    print_runs(overviews(request.site.runs()), Printer(stream, as_json=True))
    return Response(stream.getvalue(), media_type=TYPE)


def action_json(request: PageRequest) -> Response:
    """Return the lines of JSON of an action. NotFound without such an action; Mistake for a wrong query."""
    name = request.action
    if name not in READING:
        raise NotFound(f"there is no {name}.json; there are {', '.join(f'{one}.json' for one in READING)}")
    arguments = arguments_of(name)
    options = [one for one in READING[name].options if one != "raw"]
    for key, value in request.items:
        if key not in (*arguments, *options):
            raise Mistake(
                f"{name}.json: unknown key {key}; known: {', '.join((*arguments, *options)) or 'none'}"
            )
        if key == "limit" and not request.whole_number(key):
            raise Mistake(f"{name}.json: {key}={value!r} must be a whole number of 1 or more")
        if key in FLAGS and value != "1":
            raise Mistake(f"{name}.json: {key}={value!r} must be 1")
    words = [value for one in arguments for key, value in request.items if key == one]
    given = {key: value for key, value in request.query.items() if key in options}
    values: dict[str, Any] = {key: key in FLAGS or value for key, value in given.items()}
    if "limit" in values:
        values["limit"] = request.whole_number("limit")
    if name == "replays" and any(Path(word).name != word for word in words):
        raise NotFound(f"there is no replay {words[0]!r}")
    filter = request.query.get("filter", "")
    searched = search_filter(words[0], filter) if name == "grep" and words else filter
    stream = io.StringIO()
    try:
        store = request.site.searchable(request.name, searched)
        READING[name].do(words, LineOptions(request.name, **values), store, Printer(stream, as_json=True))
    except (FilterError, TranscriptError):
        raise
    except ValueError as error:
        raise Mistake(str(error)) from error
    return Response(stream.getvalue(), media_type=TYPE)


def arguments_of(name: str) -> Sequence[str]:
    """Return the keys of a query that stand for the arguments of an action, in order.

    >>> arguments_of("same"), arguments_of("grep"), arguments_of("pairs")
    (['problem', 'id'], ['words'], ['n'])
    """
    found = dict.fromkeys(re.findall("[A-Z]+", READING[name].arguments))
    return [one.lower() for one in found if one != "FILTER"]
