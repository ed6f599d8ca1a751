"""What a verifier model said, and how far it agrees with truth where there is truth.

Nothing here is a share of right answers: a reply passes where its score is at the threshold or above.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np

from debate.types import Debate
from debate_rl.metrics.intervals import Estimate, Numbered, interval, mean
from envs.rubrics.verdicts import FAULTS
from rewards import Correct, Rewards
from rewards.truth import is_right
from rewards.types import Verdicts, known_values


class Compared(NamedTuple):
    """A verdict beside the truth on the same solution."""

    passed: bool
    right: bool


def compared(debate: Debate, correct: Correct, verdicts: Verdicts | None) -> Iterator[Compared]:
    """Yield the verdicts on solutions that were also graded; a solution without an answer is not right."""
    for turn in debate.turns if verdicts is not None else ():
        passed, right = verdicts.passes(turn.id) if verdicts else None, is_right(turn.id, correct)
        if passed is not None and right is not None:
            yield Compared(passed, right)


def agreement(pairs: Sequence[Compared], clusters: Sequence[Hashable]) -> dict[str, Estimate]:
    """Return how far verdicts agree with truth, with 95% intervals clustered by problem.

    ``agreement``: the share of equal verdicts; ``kappa``: Cohen's, the agreement beyond chance [Cohen 1960];
    ``false_positive_rate``: passed / not right; ``false_negative_rate``: not passed / right. What has no
    value is left out.

    >>> pairs = [Compared(True, True), Compared(True, False), Compared(False, False), Compared(False, False)]
    >>> {name: round(one.value, 2) for name, one in agreement(pairs, "abcd").items()}
    {'agreement': 0.75, 'kappa': 0.5, 'false_positive_rate': 0.33, 'false_negative_rate': 0.0}
    """
    if not pairs:
        return {}
    codes = np.array([*map(Numbered().__getitem__, clusters)])
    passed, right = np.array(pairs, dtype=float).T
    figures = {
        "agreement": mean(passed == right, codes),
        "kappa": _kappa(passed, right, codes),
        "false_positive_rate": mean(passed[right == 0], codes[right == 0]),
        "false_negative_rate": mean(1 - passed[right == 1], codes[right == 1]),
    }
    return {name: figure for name, figure in figures.items() if figure is not None}


def _kappa(passed: np.ndarray, right: np.ndarray, codes: np.ndarray) -> Estimate | None:
    """Return Cohen's kappa, (po - pe) / (1 - pe), with an interval by its influence function.

    None where both always say the same thing: there is no agreement beyond chance to speak of.
    """
    same = (passed == right).astype(float)
    po, p, q = same.mean(), passed.mean(), right.mean()
    pe = p * q + (1 - p) * (1 - q)
    if pe >= 1:
        return None
    shift = (2 * q - 1) * (passed - p) + (2 * p - 1) * (right - q)
    influence = ((same - po) / (1 - pe) + (po - 1) / (1 - pe) ** 2 * shift) / len(same)
    return interval(float((po - pe) / (1 - pe)), influence, codes, len(same), signed=True)


def verdict_metrics(
    debates: Sequence[Debate],
    correct: Sequence[Correct],
    rewards: Sequence[Rewards],
    verdicts: Sequence[Verdicts | None],
    tally: Mapping[str, int],
) -> dict[str, float]:
    """Return what a verifier model said of a step and what that cost; nothing where there is none.

    ``tally`` is that of ``VerifierModel.take_tally``.
    """
    if not any(verdicts):
        return {}
    given = [one for one in verdicts if one is not None]
    scored = [(score, one.threshold) for one in given for row in one.scores for score in row]
    scores = [(score, least) for score, least in scored if isinstance(score, float)]
    figures = {"verifier/verdicts": float(len(scores))}
    if scores:
        figures["verifier/score"] = float(np.mean([score for score, _ in scores]))
        figures["verifier/passed"] = float(np.mean([score >= least for score, least in scores]))
    if requests := tally.get("requests", 0):
        figures["verifier/request_seconds"] = tally.get("milliseconds", 0) / 1000 / requests
    figures |= verdict_costs(tally)
    pairs = [
        (pair, debate.problem.id)
        for debate, table, one in zip(debates, correct, verdicts, strict=True)
        for pair in compared(debate, table, one)
    ]
    figures |= {"verifier/compared": float(len(pairs))} if pairs else {}
    for name, estimate in agreement([pair for pair, _ in pairs], [problem for _, problem in pairs]).items():
        figures[f"verifier/{name}"] = estimate.value
        if isfinite(estimate.low) and isfinite(estimate.high):
            figures |= {f"verifier/{name}/low": estimate.low, f"verifier/{name}/high": estimate.high}
    values = [  # verdicts reward in the truth stream, and are no truth
        value
        for table, reward, one in zip(correct, rewards, verdicts, strict=True)
        if table is None and one is not None
        for value in known_values(reward.truth)
    ]
    if values:
        figures["reward/verdict/mean"] = float(np.mean(values))
        figures["reward/verdict/std"] = float(np.std(values))
        figures["reward/verdict/n"] = float(len(values))
    return figures


def verdict_costs(tally: Mapping[str, int]) -> dict[str, float]:
    """Return what a verifier model was asked, what that cost, and how often it gave no verdict.

    >>> verdict_costs({"requests": 2, "tokens": 500, "several": 1})["verifier/tokens/generated"]
    500.0
    """
    figures = {f"verifier/without/{fault}": float(tally.get(fault, 0)) for fault in FAULTS}
    figures |= {f"verifier/{name}": float(tally.get(name, 0)) for name in ("requests", "cached")}
    figures["verifier/tokens/prompt"] = float(tally.get("prompt_tokens", 0))
    figures["verifier/tokens/generated"] = float(tally.get("tokens", 0))
    return figures


def scores_of(verdicts: Verdicts, round_: int) -> list[float]:
    """Return the scores of one round's solutions, those that have one."""
    column = (verdicts.scores[agent][round_] for agent in range(len(verdicts.scores)))
    return [score for score in column if isinstance(score, float)]
