"""Accuracy of answers: pass@k, avg@k and cons@k over the K * N answers to a problem in one round.

If a run trains on several sources of problems, the metrics are also computed for each source.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import comb
from statistics import fmean
from typing import NamedTuple

from debate import Problem
from debate.early_stop import solutions_saved
from debate.types import WHOLE_RESPONSE, Debate
from envs.answers.keys import AnswerKey, plain_key
from envs.data.loading import plain_subject
from rewards import Correct, Rewards, voted_winner
from rewards.truth import grade_of, is_right, round_accuracy, score_of
from rewards.types import known_values

MOST = 16
"""Maximum number of sources. If there are more, no metrics are computed for each source."""
LONGEST = 60
"""Maximum number of characters of a source's name in metrics."""
_NO_NAME = re.compile(r"[^\w.-]+", re.ASCII)


class Answer(NamedTuple):
    """One graded answer. Equal answers have equal ``key``; it is None if no answer was found.

    ``free``: True if the answer is a whole response. Two right whole responses count as different answers.
    """

    key: str | None
    right: bool
    free: bool = False


def mean_of(name: str, values: Iterable[float]) -> dict[str, float]:
    """Return {name: mean}, or {} if there is nothing to average.

    >>> mean_of("a", [1, 2]), mean_of("a", [])
    ({'a': 1.5}, {})
    """
    numbers = [float(value) for value in values]
    return {name: fmean(numbers)} if numbers else {}


def pass_at_k(n: int, right: int, k: int) -> float:
    """Return the chance that k of n answers, drawn without replacement, include a right answer.

    1 - C(n - right, k) / C(n, k): unbiased, with n >= k [Chen et al. 2021, arXiv 2107.03374, eq. 1].

    >>> pass_at_k(4, 1, 2), pass_at_k(4, 0, 4), pass_at_k(4, 3, 2)
    (0.5, 0.0, 1.0)
    """
    if not 1 <= k <= n:
        raise ValueError(f"pass@k needs 1 <= k <= n, got k={k}, n={n}")
    return 1.0 - comb(n - right, k) / comb(n, k)


def best_of_k(scores: Sequence[float], k: int) -> float:
    """Return the expected maximum of k scores drawn without replacement; for scores of 0 or 1 this is pass@k.

    It is the sum over i of s_(i) C(i - 1, k - 1) / C(n, k), with scores in ascending order.

    >>> best_of_k([0.0, 0.5, 1.0], 2) == (0.5 + 1.0 + 1.0) / 3
    True
    >>> best_of_k([0.0, 0.0, 1.0, 0.0], 2) == pass_at_k(4, 1, 2)
    True
    """
    if not 1 <= k <= len(scores):
        raise ValueError(f"best of k needs 1 <= k <= n, got k={k}, n={len(scores)}")
    ways = (score * comb(index, k - 1) for index, score in enumerate(sorted(scores)))
    return sum(ways) / comb(len(scores), k)


def powers_to(most: int) -> list[int]:
    """Return the powers of 2 below ``most``, then ``most`` itself: the values of k for pass@k.

    >>> powers_to(1), powers_to(4), powers_to(17)
    ([1], [1, 2, 4], [1, 2, 4, 8, 16, 17])
    """
    return sorted({2**i for i in range(most.bit_length()) if 2**i < most} | {most})


def consensus(answers: Sequence[Answer]) -> float:
    """Return the chance that the most frequent answer is right, or 0.0 without any answer.

    Ties are broken uniformly at random. Right answers count as one answer however they are written, unless
    they are free responses. Wrong answers are counted by their key. Missing answers have no vote.

    >>> consensus([Answer("4", True), Answer("4.0", True), Answer("5", False)])
    1.0
    >>> consensus([Answer("4", True), Answer("5", False), Answer(None, False)])
    0.5
    >>> consensus([Answer("A poem.", True, free=True), Answer("A song.", True, free=True), Answer("", False)])
    0.6666666666666666
    """
    same = ((a.right, None if a.right and not a.free else a.key) for a in answers if a.key is not None)
    counts = Counter(same)
    most = max(counts.values(), default=0)
    leaders = [right for (right, _), count in counts.items() if count == most]
    return leaders.count(True) / len(leaders) if leaders else 0.0


def graded_answers(
    debate: Debate, correct: Correct, key: AnswerKey = plain_key
) -> Iterator[tuple[int, Answer]]:
    """Yield (round, answer) for every graded solution turn."""
    for turn in debate.turns:
        grade, text = grade_of(turn.id, correct), turn.parsed.answer
        if grade is not None:
            same = None if grade == "missing" or text is None else key(debate.problem, text)
            yield turn.id.round, Answer(same, grade is True, free=debate.problem.kind in WHOLE_RESPONSE)


def answers_by_round(debate: Debate, correct: Correct, key: AnswerKey = plain_key) -> dict[int, list[Answer]]:
    """Return the graded answers of each round. Rounds skipped by early stopping repeat the last answers."""
    by_round: dict[int, list[Answer]] = defaultdict(list)
    for round_, answer in graded_answers(debate, correct, key):
        by_round[round_].append(answer)
    last = debate.protocol.num_rounds - 1
    saved = solutions_saved(debate) if last in by_round else ()
    return dict(by_round) | dict.fromkeys(saved, by_round[last])


def answer_metrics(
    debates: Sequence[Debate], correct: Sequence[Correct], *, key: AnswerKey = plain_key
) -> dict[str, float]:
    """Return the accuracy by round, and pass@k, avg@k and cons@k over the last round of each problem.

    ``accuracy`` is the mean over all graded answers of every round, and ``accuracy/round_r`` over those of
    round r. A missing answer counts as wrong; an ungraded answer is left out. ``accuracy/n`` counts the
    graded answers without those repeated for skipped rounds. k is the smallest number of graded answers to a
    problem; ``pass@k`` is also reported for the powers of 2 below k. pass@k, avg@k and cons@k are means over
    problems. ``key`` decides which wrong answers ``cons@k`` counts as the same. A debate that stopped early
    repeats its last answers in the skipped rounds: otherwise, agreement on right answers would lower
    accuracy.
    """
    by_round: dict[int, dict[str, list[Answer]]] = defaultdict(lambda: defaultdict(list))
    given, ends = 0, dict[str, int]()
    for debate, table in zip(debates, correct, strict=True):
        held = debate.protocol.num_rounds
        ends[debate.problem.id] = held + (debate.rounds_saved or 0) - 1
        for round_, answers in answers_by_round(debate, table, key).items():
            by_round[round_][debate.problem.id] += answers
            given += len(answers) if round_ < held else 0
    cells = {r: [a for answers in by_round[r].values() for a in answers] for r in sorted(by_round)}
    if not cells:
        return {}
    groups = [answers for problems in by_round.values() for answers in problems.values()]
    every = [answer for answers in cells.values() for answer in answers]
    result = {"accuracy": _rate(every), "accuracy/n": float(given)}
    result |= {f"accuracy/round_{r}": _rate(answers) for r, answers in cells.items()}
    result["accuracy/all_right"] = fmean(all(a.right for a in g) for g in groups)
    result["accuracy/all_wrong"] = fmean(not any(a.right for a in g) for g in groups)
    last = [by_round[end][problem] for problem, end in ends.items() if problem in by_round[end]]
    most = min(map(len, last), default=0)
    for k in powers_to(most) if last else ():
        result[f"pass@{k}"] = fmean(pass_at_k(len(p), sum(a.right for a in p), k) for p in last)
    if last:
        result |= {f"avg@{most}": fmean(map(_rate, last)), f"cons@{most}": fmean(map(consensus, last))}
    return result


def _rate(answers: Sequence[Answer]) -> float:
    return fmean(answer.right for answer in answers)


def winner_metrics(
    debates: Sequence[Debate], correct: Sequence[Correct], rewards: Sequence[Rewards]
) -> dict[str, float]:
    """Return the accuracy of winners, and its lead over the accuracy of the round that they were chosen from.

    Winners are chosen from the last judged round. Both figures are means over the debates with a graded
    winner; ``winner/n`` is the number of these debates.
    """
    right: list[float] = []
    lift: list[float] = []
    for debate, table, reward in zip(debates, correct, rewards, strict=True):
        winner = voted_winner(reward.peer, seed=debate.seed)
        correct_winner = None if winner is None else is_right(winner, table)
        accuracy = None if winner is None else round_accuracy(table, winner.round)
        if correct_winner is not None and accuracy is not None:
            right.append(float(correct_winner))
            lift.append(right[-1] - accuracy)
    return {"winner/n": float(len(right))} | mean_of("winner/accuracy", right) | mean_of("winner/lift", lift)


def sources_of(problems: Iterable[Problem]) -> dict[str, str]:
    """Return the name of each source in metrics, or {} if there is only one or there are more than ``MOST``.

    The name comes from ``Problem.source``, without the data set if all sources belong to the same data set.

    >>> sources_of([Problem(name, "?", source=f"rlvr_mixed/{name}") for name in ("gsm8k", "MATH")])
    {'rlvr_mixed/gsm8k': 'gsm8k', 'rlvr_mixed/MATH': 'math'}
    """
    sources = list(dict.fromkeys(problem.source for problem in problems))
    if not 1 < len(sources) <= MOST:
        return {}
    alike = len({source.partition("/")[0] for source in sources}) == 1
    names = {source: (source.partition("/")[2] if alike else "") or source for source in sources}
    return {
        source: _NO_NAME.sub("_", plain_subject(name))[:LONGEST] or "none" for source, name in names.items()
    }


def source_metrics(
    debates: Sequence[Debate],
    correct: Sequence[Correct],
    rewards: Sequence[Rewards],
    sources: Mapping[str, str],
) -> dict[str, float]:
    """Return share, accuracy, pass@k, score and truth reward of each source in the batch (``sources_of``).

    The share is the fraction of the batch's debates. Accuracy and score are means over the solutions of every
    round. pass@k is a mean over problems, and k is the smallest number of graded solutions to a problem.
    """
    of_source: dict[str, list[int]] = defaultdict(list)
    for index, debate in enumerate(debates):
        if debate.problem.source in sources:
            of_source[sources[debate.problem.source]].append(index)
    result: dict[str, float] = {}
    for name, members in sorted(of_source.items()):
        own, tables = [debates[index] for index in members], [correct[index] for index in members]
        truth = [value for index in members for value in known_values(rewards[index].truth)]
        by_problem: dict[str, list[bool]] = defaultdict(list)
        for debate, table in zip(own, tables, strict=True):
            grades = (grade_of(turn.id, table) for turn in debate.turns if not turn.ballot)
            by_problem[debate.problem.id] += [grade is True for grade in grades if grade is not None]
        problems = [right for right in by_problem.values() if right]
        figures = {"share": len(members) / len(debates)}
        if problems:
            most = min(map(len, problems))
            figures["accuracy"] = fmean(one for right in problems for one in right)
            figures[f"pass@{most}"] = fmean(pass_at_k(len(right), sum(right), most) for right in problems)
        figures |= score_metrics(own, tables) | mean_of("reward/truth", truth)
        result |= {f"{figure}/source/{name}": value for figure, value in figures.items()}
    return result


def score_metrics(debates: Iterable[Debate], correct: Iterable[Correct]) -> dict[str, float]:
    """Return the mean score of graded solutions, or {} if scores are not measured.

    A score is the fraction of instructions that are followed, or the F1 of an overlap. A missing score is 0.
    """
    scores: list[float] = []
    for debate, table in zip(debates, correct, strict=True):
        own = [score_of(turn) for turn in debate.turns if grade_of(turn.id, table) is not None]
        if debate.problem.kind in WHOLE_RESPONSE or any(score is not None for score in own):
            scores += [score or 0.0 for score in own]
    return mean_of("score", scores)
