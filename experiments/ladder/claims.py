"""The claims that people make of debate, and which of them hold here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, log2
from typing import Literal, TypeAlias

from scipy.stats import norm

from debate_rl.evaluation.report import plain_estimate
from debate_rl.formatting import counted, percent
from debate_rl.metrics.intervals import Estimate, clustered_mean, holm
from debate_rl.strategies.equal_cost import BUDGETS, Budget, Comparison, Measured, Values
from experiments.ladder.rounds import Rounds

Outcome: TypeAlias = Literal["holds", "not shown", "fails", "not tested"]
LEVEL = 0.05
"""A claim holds, or fails by the sign, where a p below this says that there is a difference, counting all
claims; else it is not shown."""
SILENT = 0.5
"""Where more of the newest solutions of a rung give no answer, or of its comparisons no vote, it tests
nothing."""
MANY = 100_000
"""Nobody has so many problems."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim and the result of it.

    ``difference``: of shares, with its 95% interval; None if it was not tested. ``p``: adjusted for the
    number of claims tested [Holm 1979]. ``why``: what was seen, or why nothing was; ``change``: what would
    change it.
    """

    claim: str
    outcome: Outcome
    difference: Estimate | None
    p: float | None
    why: str
    change: str


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean difference over problems, and how many of them differ at all."""

    estimate: Estimate
    differ: int


Steps: TypeAlias = Mapping[str, Mapping[str, Rounds]]
"""Steps of agents, by rung and problem."""
Test: TypeAlias = Callable[[Comparison, Steps], Difference | str]
"""Returns the difference that a claim says is above 0, or why it is not tested."""


def _over(rung: str, budget: Budget) -> Test:
    """Test a rung against self-consistency at the same cost."""

    def test(ladder: Comparison, steps: Steps) -> Difference | str:
        if why := _untested(ladder, rung) or _unanswered("self-consistency", ladder.missing):
            return why
        one = ladder.measured[rung]
        return difference(_less(one.right, one.equal[budget].right))

    return test


def _than(rung: str, other: str) -> Test:
    """Test a rung against another one."""

    def test(ladder: Comparison, steps: Steps) -> Difference | str:
        why = _untested(ladder, rung) or _untested(ladder, other)
        return why or difference(_less(ladder.measured[rung].right, ladder.measured[other].right))

    return test


def _corrected(rung: str) -> Test:
    """Test whether agents of a rung are corrected from round to round more often than misled."""

    def test(ladder: Comparison, steps: Steps) -> Difference | str:
        if why := _untested(ladder, rung):
            return why
        rounds = {id: each.flips for id, each in steps[rung].items() if sum(each.flips.values())}
        if not rounds:
            return f"{rung}: nobody writes a second solution"
        return difference({id: (each["wc"] - each["cw"]) / sum(each.values()) for id, each in rounds.items()})

    return test


def _less(one: Values, other: Values) -> Values:
    """Return the difference of each problem with a value in both."""
    return {id: one[id] - other[id] for id in one if id in other}


def _untested(ladder: Comparison, rung: str) -> str | None:
    """Return why a rung tests nothing, None if it does."""
    if rung not in ladder.measured:
        return f"{rung}: {ladder.refused.get(rung, 'it was not asked for')}"
    one = ladder.measured[rung]
    return _unanswered(rung, one.missing) or _unjudged(one)


def _unanswered(name: str, missing: float) -> str | None:
    return f"{name}: {percent(missing, 0)} of its solutions give no answer" if missing > SILENT else None


def _unjudged(one: Measured) -> str | None:
    """Return why nobody was heard on which solution is best; None if somebody was, or none was to be."""
    if not one.comparisons:
        return f"{one.name}: nobody votes" if one.name == "debate_winner" else None
    unread = one.unread / one.comparisons
    return f"{one.name}: {percent(unread, 0)} of its comparisons give no vote" if unread > SILENT else None


def difference(values: Values) -> Difference | str:
    """Return the mean of differences by problem, or why these are too few.

    Its p is that of Student's t, and no less than what an exact test of signs [Fisher 1935] can say of the d
    problems that differ, 2 / 2^d: a few that happen to be alike have a narrow interval.

    >>> difference({"a": 0.5, "b": 0.5, "c": 0.51}).estimate.p
    0.25
    """
    if len(values) < 2:
        return "it needs two problems or more"
    estimate = clustered_mean(list(values.values()), list(values), signed=True)
    differ = sum(value != 0 for value in values.values())
    p = max(1.0 if estimate.p is None else estimate.p, min(1.0, 2.0 ** (1 - differ)))
    return Difference(replace(estimate, p=p), differ)


CLAIMS: Sequence[tuple[str, Test]] = (
    *(
        (f"debate beats self-consistency at equal {words}", _over("debate_winner", budget))
        for budget, words in BUDGETS.items()
    ),
    ("the others' work helps beyond a second try", _than("debate_majority", "self_correction")),
    ("work on this problem helps beyond any text", _than("debate_majority", "noise_debate")),
    ("agents are corrected more often than misled", _corrected("debate_majority")),
    (
        "the final ballot selects better than counting the last answers",
        _than("debate_winner", "debate_majority"),
    ),
    ("personas help beyond temperature", _than("debate_majority", "one_persona")),
    ("the judge selects better than counting, from the same solutions", _than("swiss", "majority")),
    *(
        (f"a Swiss tournament beats self-consistency at equal {words}", _over("swiss", budget))
        for budget, words in BUDGETS.items()
    ),
    (
        "best of n by the own judge beats self-consistency at equal generated tokens",
        _over("best_of_n", "generated"),
    ),
    (
        "selection from a list beats self-consistency at equal generated tokens",
        _over("genselect", "generated"),
    ),
)
"""What each claim says is above 0, in the order of the card."""


def claims_of(ladder: Comparison, steps: Steps) -> list[Claim]:
    """Return the result of every claim; chances are adjusted for the number that was tested."""
    found = {claim: test(ladder, steps) for claim, test in CLAIMS}
    tested = {claim: one for claim, one in found.items() if isinstance(one, Difference)}
    chances = holm([one.estimate.p or 0.0 for one in tested.values()])
    judged = {
        claim: _judged(claim, one, p, len(tested))
        for (claim, one), p in zip(tested.items(), chances, strict=True)
    }
    return [
        Claim(claim, "not tested", None, None, one, "a test of it") if isinstance(one, str) else judged[claim]
        for claim, one in found.items()
    ]


def _judged(claim: str, found: Difference, p: float, claims: int) -> Claim:
    one = found.estimate
    if p < LEVEL:
        nearer = one.low if one.value > 0 else -one.high
        problems = max(1, ceil(nearer * one.clusters))
        change = f"{counted(problems, 'problem')} of {one.clusters:,} more for the other side"
        if one.value > 0:
            return Claim(claim, "holds", one, p, "the difference is above 0", change)
        return Claim(claim, "fails", one, p, "the difference is below 0", change)
    needed = problems_needed(one, found.differ, claims)
    many = "a larger difference" if needed > MANY else f"about {counted(needed, 'problem')} like these"
    return Claim(claim, "not shown", one, p, "no clear difference", many)


def problems_needed(one: Estimate, differ: int, claims: int = 1) -> int:
    """Return how many problems would make the same difference clear, as the first of that many claims.

    Intervals shrink with the square root of the problems; of those ``differ`` have a difference at all. More
    than there are, since these do not tell.

    >>> problems_needed(Estimate(0.05, -0.05, 0.15, 100, 100), 50)  # half its width is twice the difference
    400
    >>> problems_needed(Estimate(0.5, 0.4, 0.6, 4, 4), 4)  # six that differ: 2 / 2^6 is below .05
    6
    """
    reach = (one.high - one.low) / 2
    if not one.value or not reach < 2:
        return MANY + 1
    level = LEVEL / claims
    wider = float(norm.ppf(1 - level / 2) / norm.ppf(1 - LEVEL / 2))
    by_interval = one.clusters * (wider * reach / abs(one.value)) ** 2
    by_signs = one.clusters * ceil(1 - log2(level)) / differ
    return min(MANY + 1, max(one.clusters + 1, ceil(max(by_interval, by_signs))))


def plain_claim(claim: Claim) -> dict[str, object]:
    """Return a claim for a JSON file."""
    return {
        "claim": claim.claim,
        "outcome": claim.outcome,
        "difference": claim.difference and plain_estimate(claim.difference),
        "p_holm": claim.p,
        "why": claim.why,
        "change": claim.change,
    }
