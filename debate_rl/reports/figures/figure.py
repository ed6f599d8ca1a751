"""One figure of the judgment report: its name, its estimate, the debates behind it, and what it means."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from debate_rl.reports.figures.meanings import MEANINGS, Meaning
from debate_rl.statistics import Estimate

GROUPS = ("persona", "round", "seat", "length", "step", "level", "subject")
"""What accuracy, strict accuracy and coverage are also told by, as in ``judge/accuracy/round/1``."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure; without an estimate ``why`` says what is missing.

    ``filter``: text that selects the debates behind it (docs/transcripts.md), "" for all of them; None where
    the language has no such words. ``flag``: what to be warned of.
    """

    name: str
    estimate: Estimate | None
    filter: str | None
    why: str = ""
    flag: str = ""

    @property
    def meaning(self) -> Meaning:
        """What it is, in a line, and where it is from."""
        return MEANINGS[pattern_of(self.name)]


def figure(name: str, estimate: Estimate | None, filter: str | None, why: str = "", flag: str = "") -> Figure:
    """Return a figure whose reason is told only where there is no estimate."""
    return Figure(name, estimate, filter, "" if estimate else why or "no such cases", flag)


def pattern_of(name: str) -> str:
    """Return the name that docs/judging.md has for a figure.

    >>> pattern_of("judge/accuracy/level/Level 5"), pattern_of("winner/lift")
    ('judge/accuracy/<group>/<label>', 'winner/lift')
    """
    name = re.sub(rf"^(judge/\w+)/({'|'.join(GROUPS)})/.*$", r"\1/<group>/<label>", name, flags=re.DOTALL)
    return re.sub(r"^(regression/persona)/.*$", r"\1/<label>", name, flags=re.DOTALL)


def quoted(text: str) -> str:
    """Return a text as the filter language quotes it.

    >>> quoted('the "old" one')
    '"the ""old"" one"'
    """
    return '"' + text.replace('"', '""') + '"'


def any_of(field: str, texts: Iterable[str]) -> str:
    """Return a filter that finds any of the texts.

    >>> any_of("source", ["MATH/algebra", "x/algebra"])
    '(source:"MATH/algebra" OR source:"x/algebra")'
    """
    terms = [f"{field}:{quoted(text)}" for text in texts]
    return terms[0] if len(terms) == 1 else f"({' OR '.join(terms)})"
