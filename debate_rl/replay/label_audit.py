"""What a scheme's labels are worth on stored debates, by the gold answers that it may not see: an audit."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import fmean

from debate_rl.formatting import counted, percent
from debate_rl.metrics.features import LabelCounts, label_counts
from debate_rl.preflight.start import every_problem_is_labelled
from debate_rl.replay.scheme import Scheme, ScoredStep, measure_votes
from rewards import ballot_box, valid_votes
from rewards.judging import JudgeCounts, judge_counts
from rewards.labels import hides_any
from rewards.measured import measured, vote_weight
from rewards.votes import due_pairs


@dataclass(slots=True)
class LabelAudit:
    """Counts over the steps ``first`` to the last that a replay goes through.

    ``new``: whether the scheme is another than the run's; then ValueError, with the first step, for labels
    that no problem has, or that stand for none. ``weights``: of votes in each step, where they are measured.
    """

    scheme: Scheme
    first: int = 0
    new: bool = True
    labels: LabelCounts = field(default_factory=LabelCounts)
    votes: JudgeCounts = field(default_factory=JudgeCounts)
    weights: list[float] = field(default_factory=list)
    _begun: bool = False
    _state: dict[str, float] = field(default_factory=dict)

    @property
    def wanted(self) -> bool:
        """Whether the scheme has anything to audit."""
        return hides_any(self.scheme.rewards)

    def look(self, scored: ScoredStep) -> None:
        """Count a step."""
        if self.scheme.rewards.peer_weight == "measured":
            self._weigh(scored)
        if not self.wanted or scored.step < self.first:
            return
        self._refuse(scored)
        correct = [record.correct for record in scored.records]
        self.labels = self.labels.plus(
            label_counts(scored.credits, correct, [record.group for record in scored.records])
        )
        for record in scored.records:
            box = ballot_box(record.debate, judge_own=self.scheme.rewards.judge_own)
            self.votes = self.votes.plus(judge_counts(due_pairs(box, valid_votes(box)), record.correct))

    def _weigh(self, scored: ScoredStep) -> None:
        """Note the weight of a step's votes, by the steps before it; those before the first count, too."""
        if scored.step >= self.first:
            self.weights.append(vote_weight(measured(self._state)))
        measure_votes(scored, self._state)

    def _refuse(self, scored: ScoredStep) -> None:
        """Refuse at once what the first step shows to be in vain."""
        if self._begun or not self.new:
            return
        self._begun, rewards = True, self.scheme.rewards
        known = [record.correct is not None for record in scored.records]
        if rewards.labels < 1 and not any(known):
            raise ValueError(f"rewards.labels = {rewards.labels:g}: the stored problems have no gold answers")
        if rewards.labels == 1 and rewards.label_levels is None and all(known):
            raise ValueError(every_problem_is_labelled(rewards.pseudo))

    def lines(self) -> list[str]:
        """Return what is printed: labels, pseudo-labels and votes, and how many of them are right."""
        if not self.wanted or not self.labels.problems:
            return []
        one, rewards = self.labels, self.scheme.rewards
        lines = [f"labels: used for {one.labelled} of {counted(one.problems, 'problem')} of these steps"]
        if one.rounds:
            right = f", {percent(one.right / one.graded)} of {one.graded} right" if one.graded else ""
            rounds = counted(one.rounds, "round")
            of = f"{one.pseudo} of {rounds} of unlabelled problems have one"
            lines.append(f"pseudo-labels ({rewards.pseudo}): {of}{right}")
        if self.votes.accuracy is not None:
            right = f"{percent(self.votes.accuracy)} of {self.votes.votes} right"
            lines.append(f"votes on decidable pairs: {right}")
        lines.append("right: by the gold answers of all problems; an audit that rewards nothing")
        return [*lines, *self._weight_lines()]

    def _weight_lines(self) -> list[str]:
        if not self.weights:
            return []
        steps = counted(len(self.weights), "step")
        mean, last = fmean(self.weights), self.weights[-1]
        return [f"measured weight of votes: {mean:.2f} in the mean of {steps}, {last:.2f} in the last"]

    def facts(self) -> dict[str, object]:
        """Return the counts as plain values; nothing where there is nothing to audit."""
        if not self.wanted:
            return {}
        weights = {"vote_weights": self.weights} if self.weights else {}
        return {"labels": self.labels._asdict(), "votes": self.votes._asdict(), **weights}
