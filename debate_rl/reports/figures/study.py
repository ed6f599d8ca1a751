"""What the figures are made of: compact tables of rows, filled from one debate after another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from debate_rl.reports.figures import rows
from debate_rl.reports.figures.rows import Columns
from debate_rl.reports.figures.view import View
from debate_rl.statistics import Codes, Numbered
from transcripts import Record


class Rows(NamedTuple):
    """The rows (n,) of a figure that is a plain mean: values, which of them count, and their problems."""

    values: NDArray[Any]
    counted: NDArray[np.bool_]
    clusters: Codes

    def of(self, inside: NDArray[np.bool_]) -> Rows:
        """Return some of the rows."""
        return Rows(self.values[inside], self.counted[inside], self.clusters[inside])


class Study:
    """The rows of all debates added so far; each table has a column ``debate``, an index into ``debates``.

    ``problems``, ``personas``, ``levels`` and ``sources`` have the texts behind the numbers in the tables.

    About 20 bytes for a vote and 100 for a debate: a hundred thousand debates need some tens of megabytes.
    """

    def __init__(self) -> None:
        self.problems, self.personas, self.levels, self.sources = (Numbered() for _ in range(4))
        self.debates = Columns({"problem": "i", "step": "i", "level": "i", "source": "i", "final": "b"})
        self.pairs = Columns(rows.PAIRS)
        self.swaps = Columns(rows.SWAPS)
        self.winners = Columns(rows.WINNERS)
        self.flips = Columns(rows.FLIP_COUNTS)
        self.adoptions = Columns(rows.ADOPTIONS)
        self.graphs = Columns(rows.GRAPHS)
        self.rounds = Columns(rows.ROUNDS)
        self.talk = Columns(rows.TALK)

    def add(self, record: Record) -> View:
        """Add a record, and return it as the measures see it."""
        view = self._view(record)
        rows.add_pairs(self.pairs, view)
        rows.add_swaps(self.swaps, view)
        rows.add_winner(self.winners, view)
        rows.add_flips(self.flips, view)
        rows.add_adoptions(self.adoptions, view)
        rows.add_graph(self.graphs, view)
        rows.add_rounds(self.rounds, view)
        rows.add_talk(self.talk, view)
        return view

    def _view(self, record: Record) -> View:
        debate, problem = record.debate, record.debate.problem
        personas = tuple(self.personas[persona.name] for persona in debate.personas)
        view = View(record, len(self.debates), personas)
        self.debates.add(
            self.problems[problem.id],
            record.step,
            self.levels[problem.level],
            self.sources[problem.source],
            view.winner is not None and view.winner.round == view.rounds - 1,
        )
        return view

    def clusters(self, table: Columns) -> Codes:
        """Return the problem of each row of a table."""
        return self.of_debate("problem", table).astype(np.int64)

    def of_debate(self, name: str, table: Columns) -> NDArray[Any]:
        """Return a column of ``debates`` for each row of a table."""
        return self.debates[name][table["debate"]]


def gather(records: Iterable[Record]) -> Study:
    """Return the rows of the records, read once; problems without answers serve where no truth is needed."""
    result = Study()
    for record in records:
        result.add(record)
    return result
