"""What a list of debates shows of each, read from the index alone."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any

from transcripts.codec import convert, decode
from transcripts.errors import FieldError
from transcripts.index.facts import WINNERS, Facts, ProblemFacts
from transcripts.index.schema import PLACES, id_of

COLUMNS = ", ".join(
    [
        "d.key",
        *(f"problems.{name}" for name in ProblemFacts._fields),
        "casts.names",
        *(f"d.{name}" for name in Facts._fields),
    ]
)
JOINS = "JOIN problems ON problems.key = d.problem_key JOIN casts ON casts.key = d.cast_key"


@dataclass(frozen=True, slots=True)
class DebateRow:
    """One debate of a list: ``id`` names it, ``facts`` are its numbers, ``problem`` what it was about."""

    id: str
    step: int
    number: int
    problem: ProblemFacts
    personas: tuple[str, ...]
    facts: Facts

    @property
    def winner(self) -> str:
        """What the voted winner was: right, wrong, ungraded, or none."""
        return WINNERS[self.facts.winner]


def row_of(values: tuple[Any, ...]) -> DebateRow:
    """Return the row of the columns ``COLUMNS``; sqlite3.DatabaseError for one that we did not write."""
    width = len(ProblemFacts._fields)
    key, problem, names, facts = values[0], values[1 : width + 1], values[width + 1], values[width + 2 :]
    try:
        personas = decode(names, tuple[str, ...])
        about, numbers = convert(problem, ProblemFacts), convert(facts, Facts)
    except (TypeError, FieldError) as error:
        raise sqlite3.DatabaseError(f"debate {id_of(key)}: not as we write it: {error}") from error
    return DebateRow(id_of(key), key // PLACES, key % PLACES, about, personas, numbers)
