"""What one command evaluated: figures by data set and weights, what failed, and which checkpoint is best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from debate_rl.evaluation.scores import Scores
from debate_rl.metrics.intervals import Estimate

IN_TRAINING = "in training"
"""The head of what a data set shares with the problems that were trained on."""
TEST_TIME = "test-time learning"
"""The head of whether a run is declared to train on the problems of a data set."""
CHOSEN_BY = ("debate/winner/accuracy", "direct/accuracy")
"""The figure that decides which checkpoint is best: the first of these that there is."""


@dataclass(frozen=True, slots=True)
class Best:
    """The weights of a run with the highest figure on a data set, ``of`` so many that were evaluated."""

    data: str
    run: str
    evaluation: str
    figure: str
    estimate: Estimate
    of: int


@dataclass(slots=True)
class Results:
    """Figures by data set and evaluation, in the order of the tables.

    ``roles``: what each data set is there for. ``facts`` and ``failures`` belong to a data set and an
    evaluation: what else a table says of it, by head, and why there are no figures.
    """

    scores: dict[str, dict[str, Scores]] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    facts: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    failures: dict[tuple[str, str], Exception] = field(default_factory=dict)

    def add(self, data: str, evaluation: str, scores: Scores) -> None:
        """Put figures beside the others of the data set."""
        self.scores.setdefault(data, {})[evaluation] = scores

    def sort(self, order: Sequence[tuple[str, str]]) -> None:
        """Bring data sets and evaluations into this order; others stay in front."""
        rank = {pair: number for number, pair in enumerate(order)}
        data = {name: number for number, name in reversed([*enumerate(dict.fromkeys(d for d, _ in order))])}
        self.scores = {
            name: dict(sorted(by_name.items(), key=lambda item: rank.get((name, item[0]), -1)))
            for name, by_name in sorted(self.scores.items(), key=lambda item: data.get(item[0], -1))
        }

    def forget(self, evaluation: str) -> None:
        """Take out what is known of an evaluation."""
        for by_name in self.scores.values():
            by_name.pop(evaluation, None)
        self.failures = {pair: error for pair, error in self.failures.items() if pair[1] != evaluation}

    def best(self) -> Iterator[Best]:
        """Yield the best checkpoint of each run on each data set, where several were evaluated."""
        for data, by_name in self.scores.items():
            runs = dict.fromkeys(name.rpartition("@")[0] for name in by_name if "@" in name)
            for run in runs:
                names = [name for name in by_name if name.rpartition("@")[0] == run]
                if sum(not name.endswith("@start") for name in names) > 1:
                    yield from _best(data, run, {name: by_name[name] for name in names})


def _best(data: str, run: str, by_name: dict[str, Scores]) -> Iterator[Best]:
    for figure in CHOSEN_BY:
        known = {name: found for name, each in by_name.items() if (found := each.estimate(figure))}
        if known:
            first = max(known, key=lambda name: known[name].value)
            yield Best(data, run, first, figure, known[first], len(known))
            return
