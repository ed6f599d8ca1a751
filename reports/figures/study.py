"""What the figures are made of: compact tables of rows, filled from one debate after another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from reports.figures import rows
from reports.figures.columns import Codes, Columns, Labels
from reports.figures.view import View
from transcripts import Record
from transcripts.index.facts import text
from transcripts.lines import record_json, without_tokens


@dataclass(frozen=True, slots=True)
class Names:
    """The texts behind the numbers in the tables."""

    problems: Labels
    personas: Labels
    levels: Labels
    sources: Labels


class Study:
    """The rows of all debates added so far; each table has a column ``debate``, a place in ``debates``.

    About 20 bytes for a vote and 100 for a debate: a hundred thousand debates need some tens of megabytes.
    """

    def __init__(self) -> None:
        self.names = Names(Labels(), Labels(), Labels(), Labels())
        self.debates = Columns({"problem": "i", "step": "i", "level": "i", "source": "i", "final": "b"})
        self.pairs = rows.pair_table()
        self.swaps = rows.swap_table()
        self.winners = rows.winner_table()
        self.flips = rows.flip_table()
        self.adoptions = rows.adoption_table()
        self.graphs = rows.graph_table()
        self.rounds = rows.round_table()
        self.talk = rows.talk_table()

    def add(self, debate: Record | Mapping[str, Any]) -> None:
        """Add a record, or the JSON of a line as ``RunStore.raw`` yields it."""
        record = cast("Mapping[str, Any]", _as_json(debate))
        view = self._view(record)
        rows.add_pairs(self.pairs, view)
        rows.add_swaps(self.swaps, view)
        rows.add_winner(self.winners, view)
        rows.add_flips(self.flips, view)
        rows.add_adoptions(self.adoptions, view)
        rows.add_graph(self.graphs, view)
        rows.add_rounds(self.rounds, view)
        rows.add_talk(self.talk, view)

    def _view(self, record: Mapping[str, Any]) -> View:
        body, names = record["debate"], self.names
        number = len(self.debates)
        personas = tuple(names.personas.code(text(p["name"]) or "") for p in body["personas"])
        view = View(record, number, personas)
        problem = body["problem"]
        self.debates.add(
            names.problems.code(text(problem["id"]) or ""),
            record["step"],
            names.levels.code(text(problem["level"]) or ""),
            names.sources.code(text(problem["source"]) or ""),
            view.winner is not None and view.winner.round == view.rounds - 1,
        )
        return view

    def clusters(self, table: Columns) -> Codes:
        """Return the problem of each row of a table."""
        return self.of_debate("problem", table).astype(np.int64)

    def of_debate(self, name: str, table: Columns) -> NDArray[Any]:
        """Return a column of ``debates`` for each row of a table."""
        return self.debates[name][table["debate"]]


def gather(debates: Iterable[Record | Mapping[str, Any]]) -> Study:
    """Return the rows of the debates, read once; problems without answers serve where no truth is needed."""
    result = Study()
    for debate in debates:
        result.add(debate)
    return result


def _as_json(debate: Record | Mapping[str, Any]) -> object:
    """Return a record as its line has it: tuples are lists there, and enumerations texts."""
    return record_json(without_tokens(debate)) if isinstance(debate, Record) else debate
