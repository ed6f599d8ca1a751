"""One figure of the judgment report: its name, its estimate, the debates behind it, and what it means."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from debate_rl.metrics.intervals import Estimate


class Meaning(NamedTuple):
    """One line of docs/judging.md."""

    text: str
    source: str = "-"


MILLER = "Miller 2411.00640"
SHI = "Shi 2406.07791"
ZHENG = "Zheng 2306.05685"

_OF_PAIRS = {
    "accuracy": Meaning(
        "votes for the right side / valid votes on decidable pairs; a tie is not right", MILLER
    ),
    "strict_accuracy": Meaning("votes for the right side / decidable pairs due: no vote is wrong", MILLER),
    "coverage": Meaning("valid votes on decidable pairs / decidable pairs due", MILLER),
}

MEANINGS: dict[str, Meaning] = {
    **{f"judge/{name}": meaning for name, meaning in _OF_PAIRS.items()},
    **{
        f"judge/{name}/<group>/<label>": Meaning(f"`judge/{name}` of that group alone", MILLER)
        for name in _OF_PAIRS
    },
    "judge/ties": Meaning("ties / valid votes on decidable pairs"),
    "bias/position": Meaning(
        "share of decided votes for the solution shown first, both right or both wrong, less 1/2", SHI
    ),
    "bias/length": Meaning(
        "share of decided votes for the longer solution, both right or both wrong, less 1/2", ZHENG
    ),
    "bias/self_preference": Meaning(
        "votes for wrong work against right: share for one's own, less share for others' of judges who erred",
        "Panickssery 2404.13076",
    ),
    "swaps/consistency": Meaning("the same solution wins / two votes on one pair shown in both orders", SHI),
    "swaps/primacy": Meaning("both chose the one shown first / such two votes", SHI),
    "swaps/recency": Meaning("both chose the one shown second / such two votes", SHI),
    "regression/position": Meaning(
        "log-odds of the solution shown first, all else equal, of a judge of average persona",
        "Liang, Zeger 1986",
    ),
    "regression/correctness": Meaning(
        "log-odds added where only the first is right (taken away: only the second)", "Liang, Zeger 1986"
    ),
    "regression/own": Meaning(
        "log-odds added where the first is the judge's own; only with `judge_own`", "Liang, Zeger 1986"
    ),
    "regression/length": Meaning("log-odds added where the first is e times as long", "Liang, Zeger 1986"),
    "regression/persona/<label>": Meaning(
        "log-odds of the first that this persona adds to the average persona's", "Liang, Zeger 1986"
    ),
    "winner/accuracy": Meaning("right / graded winners of the last judged round"),
    "winner/lift": Meaning("winner right, less the accuracy of its debate and round"),
    "winner/mixed_accuracy": Meaning(
        "right winners of debates that had right and wrong answers in that round"
    ),
    "winner/oracle_gap": Meaning(
        "some answer of that round right, less winner right: what a perfect judge would add"
    ),
    "winner/minus_majority": Meaning(
        "winner right, less the chance that the most frequent answer of the round is", "Wang 2203.11171"
    ),
    "winner/drawn": Meaning("graded winners that were drawn by lot among equal scores"),
    "winner/auc": Meaning(
        "chance that a right solution has the higher peer score than a wrong one, by debate",
        "Hanley, McNeil 1982",
    ),
    "winner/tau_b": Meaning("Kendall's tau-b of peer score and truth, by debate", "Kendall 1945"),
    "winner/correlation": Meaning(
        "Pearson's r, over all answers, of being the winner and being right; below 0.3 it is flagged"
    ),
    **{
        f"flip/{name}": Meaning(f"{before} to {after} / steps of an agent from one round to the next")
        for name, before, after in (
            ("CC", "right", "right"),
            ("CW", "right", "wrong"),
            ("WC", "wrong", "right"),
            ("WW", "wrong", "wrong"),
        )
    },
    "cascade/vulnerability": Meaning("wrong in the next round / right in this one"),
    "cascade/recovery": Meaning("right in the next round / wrong in this one"),
    "cascade/first_listed": Meaning(
        "answers taken over from the first agent shown, less what a random other would give"
    ),
    "graph/cycles": Meaning(
        "debates whose strict majorities have a strongly connected component of 3 or more", "Condorcet 1785"
    ),
    "graph/condorcet": Meaning(
        "debates in which one solution of the last judged round beats every other", "Condorcet 1785"
    ),
    "graph/circular_triads": Meaning(
        "triples that beat each other in a circle / triples with three majorities", "Kendall, Smith 1940"
    ),
    "graph/zeta": Meaning(
        "Kendall's zeta, 1 an order, 0 most circular; rounds in which every pair is decided",
        "Kendall, Smith 1940",
    ),
    "graph/slater": Meaning(
        "fewest majorities to turn round until there is an order, mean over judged rounds; up to 8 agents",
        "Slater 1961",
    ),
    "collusion/peer_trend": Meaning("slope of the winner's peer reward, brought to [0, 1], over 100 steps"),
    "collusion/truth_trend": Meaning("slope of winner right over 100 steps"),
    "collusion/gap_trend": Meaning("the first slope less the second: praise that grows without truth"),
    "collusion/reciprocity": Meaning(
        "mean product of two agents' favours for each other, on pairs equal in truth; 0: independent votes"
    ),
    "collusion/entropy": Meaning("entropy of the answers of the last round / ln of their number"),
    "collusion/entropy_trend": Meaning(
        "its slope over 100 steps: falling without truth rising is agreement, not knowledge"
    ),
}
"""By name; `<group>` is one of ``debate_rl.reports.figures.figure.GROUPS``, `<label>` what it is of."""


GROUPS = ("persona", "fault", "round", "agent", "length", "step", "level", "subject")
"""What accuracy, strict accuracy and coverage are also grouped by, as in ``judge/accuracy/round/1``."""


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
    """Return a figure with a reason only where there is no estimate."""
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
