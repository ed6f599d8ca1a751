"""What the figures are made of: compact tables of rows, filled from one debate after another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from debate_rl.metrics.intervals import Codes, Numbered
from debate_rl.reports.figures import rows
from debate_rl.reports.figures.judged_debate import JudgedDebate
from debate_rl.reports.figures.rows import Columns
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

    ``problems``, ``personas``, ``levels``, ``sources`` and ``faults`` have the texts behind the numbers in
    the tables, ``ids`` the id of each debate in its run.

    About 20 bytes for a vote and 100 for a debate: a hundred thousand debates need some tens of megabytes.
    """

    def __init__(self) -> None:
        self.problems, self.personas, self.levels, self.sources = (Numbered() for _ in range(4))
        self.faults, self.ids = Numbered(), list[str]()
        self.debates = Columns({"problem": "i", "step": "i", "level": "i", "source": "i", "final": "b"})
        self.pairs = Columns(rows.PAIRS)
        self.swaps = Columns(rows.SWAPS)
        self.winners = Columns(rows.WINNERS)
        self.flips = Columns(rows.FLIP_COUNTS)
        self.adoptions = Columns(rows.ADOPTIONS)
        self.graphs = Columns(rows.GRAPHS)
        self.rounds = Columns(rows.ROUNDS)
        self.talk = Columns(rows.TALK)
        self._rounds: set[int] = set()

    def add(self, record: Record, id: str = "") -> JudgedDebate:
        """Add a record, and return it as the measures see it."""
        judged = self._judged(record)
        self.ids.append(id)
        rows.add_pairs(self.pairs, judged, self.faults)
        rows.add_swaps(self.swaps, judged)
        rows.add_winner(self.winners, judged)
        rows.add_flips(self.flips, judged)
        rows.add_adoptions(self.adoptions, judged)
        rows.add_graph(self.graphs, judged)
        rows.add_rounds(self.rounds, judged)
        rows.add_talk(self.talk, judged)
        return judged

    def _judged(self, record: Record) -> JudgedDebate:
        debate, problem = record.debate, record.debate.problem
        personas = tuple(self.personas[persona.name] for persona in debate.personas)
        judged = JudgedDebate(record, len(self.debates), personas)
        self._rounds.add(judged.rounds)
        self.debates.add(
            self.problems[problem.id],
            record.step,
            self.levels[problem.level],
            self.sources[problem.source],
            judged.winner is not None and judged.winner.round == judged.rounds - 1,
        )
        return judged

    @property
    def num_rounds(self) -> int | None:
        """How many rounds each debate has; None where they have not all as many."""
        return min(self._rounds) if len(self._rounds) == 1 else None

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
