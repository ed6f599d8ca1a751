"""The seed's five hypotheses why training stalls, ranked by how much of their evidence a run shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from debate_rl.formatting import short
from debate_rl.reports.training.answers import SOURCE, early, late, median, solved
from debate_rl.reports.training.loading import Run
from debate_rl.reports.training.measures import change, judge_figures

Evidence = tuple[str, float | None, bool]
"""What was looked at, its value, and whether it speaks for the hypothesis."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One hypothesis, what would show it, and the fix that the seed proposes."""

    name: str
    source: str
    evidence: Callable[[Run], list[Evidence]]
    fix: str
    filter: str


@dataclass(frozen=True, slots=True)
class Ranked:
    """A hypothesis with its evidence: ``crossed`` of ``known`` signs are there."""

    hypothesis: Hypothesis
    evidence: Sequence[Evidence]

    @property
    def known(self) -> int:
        """Signs that the run tells of."""
        return sum(value is not None for _, value, _ in self.evidence)

    @property
    def crossed(self) -> int:
        """Signs that speak for it."""
        return sum(speaks for _, _, speaks in self.evidence)

    @property
    def text(self) -> str:
        """The known signs with their numbers, those that speak for it with an exclamation mark."""
        parts = [
            f"{name} {short(value)}{' (!)' if speaks else ''}"
            for name, value, speaks in self.evidence
            if value is not None
        ]
        return ", ".join(parts) or "the run does not say"


def ranked(run: Run) -> list[Ranked]:
    """Return the hypotheses, those with the largest share of their signs first; ties in the seed's order."""
    found = [Ranked(one, one.evidence(run)) for one in HYPOTHESES]
    return sorted(found, key=lambda one: -one.crossed / max(1, one.known))


def _sign(name: str, value: float | None, below: float | None = None, above: float | None = None) -> Evidence:
    low = value is not None and below is not None and value < below
    high = value is not None and above is not None and value > above
    return name, value, low or high


def _too_hard(run: Run) -> list[Evidence]:
    return [
        _sign("accuracy, round 0 (below .05)", early(run, "accuracy/round_0"), below=0.05),
        _sign("accuracy all wrong (above .5)", early(run, "accuracy/all_wrong"), above=0.5),
    ]


def _weak_signal(run: Run) -> list[Evidence]:
    found = judge_figures(run)
    return [
        _sign("correlation of winner and right (below .3)", found.correlation, below=0.3),
        _sign("judge accuracy (below .55)", found.accuracy, below=0.55),
        _sign(
            "groups without variance in truth (above .6)",
            median(run, "advantage/zero_variance_share/truth"),
            above=0.6,
        ),
        _sign("peer reward std (below .1)", median(run, "reward/peer/std"), below=0.1),
    ]


def _low_exploration(run: Run) -> list[Evidence]:
    cast, tied = late(run, "votes/valid"), late(run, "votes/ties")
    found = [
        _sign("distinct completions (below .3)", late(run, "completions/distinct"), below=0.3),
        _sign("agreement (above .9)", late(run, "agreement"), above=0.9),
        _sign("ties among votes (above .5)", tied / cast if cast and tied is not None else None, above=0.5),
    ]
    return [(name, value, speaks and not solved(run)) for name, value, speaks in found]


def _format_dominates(run: Run) -> list[Evidence]:
    form, right = change(run.curves.of("format/valid")[1]), change(run.curves.of("accuracy")[1])
    rose = form is not None and form.direction == "up" and form.value > 0.05
    flat = right is not None and right.direction in ("flat", "down")
    return [
        ("gain in format valid (above .05, accuracy flat)", form.value if form else None, rose and flat),
        ("gain in accuracy (flat, format rising)", right.value if right else None, rose and flat),
    ]


def _cascades(run: Run) -> list[Evidence]:
    found = judge_figures(run)
    return [("excess adoption of the agent shown first (interval above 0)", found.followed, found.follows)]


HYPOTHESES = (
    Hypothesis(
        "The task is too hard for the model",
        f"{SOURCE}, 3.1",
        _too_hard,
        "easier problems first (env.levels, a curriculum), or a supervised warm start",
        "accuracy:0",
    ),
    Hypothesis(
        "The reward signal is weak",
        f"{SOURCE}, 3.2",
        _weak_signal,
        "mix in truth: rewards.truth_weight = 0.5; more debates of a problem",
        "winner:wrong accuracy.last_round:>0",
    ),
    Hypothesis(
        "There is too little exploration",
        f"{SOURCE}, 3.3",
        _low_exploration,
        "higher temperatures for some personas, more agents, fewer rounds",
        "agreement:1",
    ),
    Hypothesis(
        "The form is learnt in place of the content",
        f"{SOURCE}, 3.4",
        _format_dominates,
        "a smaller rewards.format_penalty, more weight of the generator, a bonus for right answers",
        "malformed:0 accuracy:0",
    ),
    Hypothesis(
        "Judgments are copied",
        f"{SOURCE}, 3.5",
        _cascades,
        'blind review (votes are never shown, as here), debate.order = "per_viewer"',
        "flip:CW",
    ),
)
"""In the seed's order."""
