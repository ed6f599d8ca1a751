"""Would training without labels gain? A forecast of the sign from a few labelled problems, before a run.

Votes move answers the way that they point, pseudo-labels by majority the way that the majority points. So
votes gain where they are right more often than not (p_v over 1/2), majorities where they are right on more
problems than not (p_m over 1/2), and votes gain more than majorities where p_v is over p_m. This is rule E
of ``experiments/frontier``, which was tested on three starts of its own: ``TESTED`` says what that shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from debate import Debate
from debate_rl.doctor.check import Check, of_estimate
from debate_rl.doctor.votes import RoundVotes
from debate_rl.metrics.intervals import Estimate
from rewards import Correct

LEAST_PROBLEMS = 50
"""Labelled problems below which no sign is forecast: the intervals would hold both."""
EVEN = 0.5


TESTED = "a rule tested on three starts, which called no known sign wrongly there (experiments/frontier)"
"""What ``experiments.frontier.preregistered --check`` found, of gains whose interval does not hold 0."""


def labelled(debates: Sequence[Debate], correct: Sequence[Correct | None]) -> int:
    """Return on how many problems some solution was graded."""
    return len(
        {
            debate.problem.id
            for debate, table in zip(debates, correct, strict=True)
            if table is not None and any(grade is not None for row in table for grade in row)
        }
    )


def forecast_checks(problems: int, rounds: Sequence[RoundVotes]) -> Iterator[Check]:
    """Yield the forecast signs of training without labels, of the first round that has votes.

    ``problems``: how many were graded; with fewer than 50 one check says that there is no forecast.
    """
    if problems < LEAST_PROBLEMS or not rounds:
        why = (
            f"needs votes on {LEAST_PROBLEMS} problems with gold answers (--problems), and has "
            f"{problems} of them"
            if problems < LEAST_PROBLEMS
            else "no vote is on a decidable pair"
        )
        yield Check("forecast", "not measured", None, why)
        return
    first = rounds[0]
    margins = {
        "votes": ("p_v - 1/2", _less_even(first.votes)),
        "majority": ("p_m - 1/2", _less_even(first.majority)),
        "votes over majority": ("p_v - p_m", first.over_majority),
    }
    for name, (margin_of, margin) in margins.items():
        yield _check(name, f"{margin_of} in round {first.round}", margin)


def sign_of(margin: Estimate) -> int:
    """Return the forecast sign: 1 where the margin's interval is above 0, -1 below, 0 where it holds 0."""
    if margin.clusters < 2:
        return 0
    return 1 if margin.low > 0 else -1 if margin.high < 0 else 0


WORDS: Mapping[str, tuple[str, str, str]] = {
    "votes": ("training on votes alone", "gains", "loses"),
    "majority": ("training on majorities as pseudo-labels", "gains", "loses"),
    "votes over majority": (
        "training on votes",
        "gains more than on majorities",
        "gains less than on majorities",
    ),
}
"""What each forecast is about, and its words for a sign above and below 0."""


def _check(name: str, margin_of: str, margin: Estimate) -> Check:
    sign = sign_of(margin)
    about, gains, loses = WORDS[name]
    said = f"{about} {gains if sign > 0 else loses}" if sign else "no sign, since the interval holds 0"
    why = f"{margin_of}; without labels: {said}; {TESTED}"
    verdict = "warn" if sign < 0 and name == "votes" else "ok"
    return of_estimate(f"forecast, {name}", verdict, margin, why, "rewards.truth_weight=1.0")


def _less_even(rate: Estimate) -> Estimate:
    """Return how far a rate is above one half."""
    ends = (rate.value - EVEN, rate.low - EVEN, rate.high - EVEN)
    return Estimate(*ends, rate.n, rate.clusters, 1.0)
