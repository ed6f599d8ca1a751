"""Held-out figures: what one agent answers, what a debate does, and what its tokens buy without debate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from debate import DebateConfig, Policy, Problem
from envs import DataError, Environment
from envs.sameness import key_of
from learner.evaluation.play import Examination, play
from learner.evaluation.scores import Scores, difference, scores
from learner.metrics.statistics import Estimate


@dataclass(frozen=True, slots=True)
class Tokens:
    """Mean tokens spent on one problem, and the share of replies that the token limit cut off."""

    generated: float
    prompt: float
    truncated: float


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Figures on held-out problems; intervals are clustered by problem.

    ``rounds`` (R,): accuracy of all agents by round. ``winner``: accuracy of the voted winner of the last
    judged round. ``self_consistency``: majority of ``samples`` first-round answers, which spend the tokens a
    debate generates. Differences are paired by problem; with one round ``round2_minus_round1`` is 0.
    ``valid_xml``: share of the ``turns`` that are well-formed XML and in which every due section was read,
    nothing else was wrong, and due comparisons gave a vote. ``ungraded``: problems left out of all accuracies
    because the grader gave no verdict (time-out, crash) on an answer: that is never "wrong".
    """

    rounds: tuple[Estimate, ...]
    winner: Estimate
    self_consistency: Estimate
    winner_minus_self_consistency: Estimate
    winner_minus_round1: Estimate
    round2_minus_round1: Estimate
    valid_xml: float
    turns: int
    samples: int
    debate_tokens: Tokens
    self_consistency_tokens: Tokens
    ungraded: int = 0

    def metrics(self) -> dict[str, float]:
        """Return the figures under the names of metrics.jsonl, with the bounds of their 95% intervals."""
        estimates = {f"debate/round_{r}": figure for r, figure in enumerate(self.rounds)} | {
            "debate/winner": self.winner,
            "direct/self_consistency": self.self_consistency,
            "debate/winner_minus_self_consistency": self.winner_minus_self_consistency,
        }
        figures: dict[str, float] = {}
        for name, estimate in estimates.items():
            figures[f"eval/{name}"] = estimate.value
            figures |= {f"eval/{name}/low": estimate.low, f"eval/{name}/high": estimate.high}
        return figures | {
            "eval/debate/valid_xml": self.valid_xml,
            "eval/debate/truncated": self.debate_tokens.truncated,
            "eval/direct/truncated": self.self_consistency_tokens.truncated,
            "eval/problems": float(self.winner.clusters),
            "eval/ungraded": float(self.ungraded),
        }


def evaluate(
    policy: Policy, environment: Environment, problems: Sequence[Problem], *, config: DebateConfig, seed: int
) -> Evaluation:
    """Return the figures of one debate per problem and of self-consistency at equal generated tokens.

    The policy must report tokens. Problems without an answer are refused. DataError when the grader gave no
    verdict on any problem.
    """
    found = scores(play(Examination(problems, environment, config, (seed,)), policy), key_of(environment))
    if not found.problems:
        raise DataError(f"held_out: the grader gave no verdict on any of {len(problems)} problems")
    second = f"debate/round_{min(1, config.num_rounds - 1)}"
    valid = _known(found.estimate("debate/valid_xml"))
    return Evaluation(
        rounds=tuple(_known(found.estimate(f"debate/round_{r}")) for r in range(config.num_rounds)),
        winner=_known(found.estimate("debate/winner")),
        self_consistency=_known(found.estimate("direct/self_consistency")),
        winner_minus_self_consistency=_gap(found, "debate/winner", "direct/self_consistency"),
        winner_minus_round1=_gap(found, "debate/winner", "debate/round_0"),
        round2_minus_round1=_gap(found, second, "debate/round_0"),
        valid_xml=valid.value,
        turns=valid.n,
        samples=found.samples,
        debate_tokens=_tokens(found, "debate"),
        self_consistency_tokens=_tokens(found, "direct"),
        ungraded=found.ungraded,
    )


def _gap(found: Scores, name: str, minus: str) -> Estimate:
    return _known(difference(found, name, found, minus))


def _known(estimate: Estimate | None) -> Estimate:
    assert estimate is not None  # every problem that was graded has a value of it
    return estimate


def _tokens(found: Scores, mode: str) -> Tokens:
    figures = ("generated_tokens", "prompt_tokens", "truncated")
    return Tokens(*(_known(found.estimate(f"{mode}/{figure}")).value for figure in figures))
