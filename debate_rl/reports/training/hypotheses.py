"""The five hypotheses of the debate training analysis on why training stalls, ranked by a run's signs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from debate_rl.alarms.settings import DEBATE
from debate_rl.formatting import short
from debate_rl.reports.training.loading import Run
from debate_rl.reports.training.measures import change, judge_figures
from debate_rl.reports.training.questions import UNKNOWN

Evidence = tuple[str, float | None, bool]
"""What was looked at, its value, and whether it speaks for the hypothesis."""


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One hypothesis, what would show it, and the fix that the source proposes."""

    name: str
    source: str
    evidence: Callable[[Run], list[Evidence]]
    fix: str
    filter: str


HYPOTHESES: list[Hypothesis] = []
"""In the order of the analysis."""
Collect = Callable[[Run], list[Evidence]]


def hypothesis(*, source: str, fix: str, filter: str) -> Callable[[Collect], Collect]:
    """Return a decorator that adds a function to the hypotheses; its docstring names the hypothesis."""

    def add(evidence: Collect) -> Collect:
        name = (evidence.__doc__ or "").removesuffix(".")
        HYPOTHESES.append(Hypothesis(name, source, evidence, fix, filter))
        return evidence

    return add


@dataclass(frozen=True, slots=True)
class Ranked:
    """A hypothesis with its evidence: ``crossed`` of ``known`` signs are there."""

    hypothesis: Hypothesis
    evidence: Sequence[Evidence]

    @property
    def known(self) -> int:
        """Signs whose value is known."""
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
        return ", ".join(parts) or UNKNOWN


def ranked(run: Run) -> list[Ranked]:
    """Return the hypotheses, those with the largest share of their signs first."""
    every = [Ranked(hypothesis, hypothesis.evidence(run)) for hypothesis in HYPOTHESES]
    return sorted(every, key=lambda ranked: -ranked.crossed / max(1, ranked.known))


def _sign(name: str, value: float | None, below: float | None = None, above: float | None = None) -> Evidence:
    low = value is not None and below is not None and value < below
    high = value is not None and above is not None and value > above
    return name, value, low or high


@hypothesis(
    source=f"{DEBATE}, 3.1",
    fix="easier problems first (env.levels, a curriculum), or a supervised warm start",
    filter="accuracy:0",
)
def _too_hard(run: Run) -> list[Evidence]:
    """The task is too hard for the model."""
    return [
        _sign("accuracy, round 0 (below .05)", run.curves.beginning("accuracy/round_0"), below=0.05),
        _sign("accuracy all wrong (above .5)", run.curves.beginning("accuracy/all_wrong"), above=0.5),
    ]


@hypothesis(
    source=f"{DEBATE}, 3.2",
    fix="mix in truth: rewards.truth_weight = 0.5 or more; more debates of a problem",
    filter="winner:wrong accuracy.last_round:>0",
)
def _weak_signal(run: Run) -> list[Evidence]:
    """The reward signal is weak."""
    judges = judge_figures(run)
    return [
        _sign("correlation of winner and right (below .3)", judges.correlation, below=0.3),
        _sign("judge accuracy (below .55)", judges.accuracy, below=0.55),
        _sign(
            "groups without variance in truth (above .6)",
            run.curves.median("advantage/zero_variance_share/truth"),
            above=0.6,
        ),
        _sign("peer reward std (below .1)", run.curves.median("reward/peer/std"), below=0.1),
    ]


@hypothesis(
    source=f"{DEBATE}, 3.3",
    fix="higher temperatures for some personas, more agents, fewer rounds",
    filter="agreement:1",
)
def _low_exploration(run: Run) -> list[Evidence]:
    """There is too little exploration."""
    cast, tied = run.curves.late("votes/valid"), run.curves.late("votes/ties")
    signs = [
        _sign(
            "distinct completions, last third (below .3)", run.curves.late("completions/distinct"), below=0.3
        ),
        _sign("agreement, last third (above .9)", run.curves.late("agreement"), above=0.9),
        _sign(
            "ties among votes, last third (above .5)",
            tied / cast if cast and tied is not None else None,
            above=0.5,
        ),
    ]
    return [(name, value, speaks and not run.curves.solved) for name, value, speaks in signs]


@hypothesis(
    source=f"{DEBATE}, 3.4",
    fix="a smaller rewards.format_penalty, more weight of the generator, a bonus for right answers",
    filter="malformed:0 accuracy:0",
)
def _format_dominates(run: Run) -> list[Evidence]:
    """The form is learnt in place of the content."""
    form, right = change(run.curves.of("format/valid")[1]), change(run.curves.of("accuracy")[1])
    rose = form is not None and form.direction == "up" and form.value > 0.05
    flat = right is not None and right.direction in ("flat", "down")
    return [
        ("gain in format valid (above .05, accuracy flat)", form.value if form else None, rose and flat),
        ("gain in accuracy (flat, format rising)", right.value if right else None, rose and flat),
    ]


@hypothesis(
    source=f"{DEBATE}, 3.5",
    fix='debate.order = "per_viewer"',
    filter="flip:CW",
)
def _cascades(run: Run) -> list[Evidence]:
    """Judgments are copied."""
    judges = judge_figures(run)
    return [("excess adoption of the agent shown first (interval above 0)", judges.followed, judges.follows)]
