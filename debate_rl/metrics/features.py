"""Metrics of single features: critiques, kinds of seats, programs, labels, likelihood, verifier models."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from math import isfinite
from statistics import fmean
from typing import NamedTuple

import numpy as np
from msgspec import UNSET

from debate.prompting.shown import holds_criticism, holds_solutions
from debate.ramps import number
from debate.types import Call, Debate, FailureReason, Turn, TurnId
from debate_rl.metrics.answers import mean_of
from debate_rl.metrics.intervals import Estimate, Numbered, interval, mean
from envs.types import FAULTS
from learner.advantages import AdvantageConfig
from rewards import Correct, Credit, RewardConfig, Rewards, ballot_box, valid_votes
from rewards.criticism import Criticised, corrected_turns, criticised
from rewards.judge_rewards import decidable_votes
from rewards.pseudo import PSEUDO
from rewards.truth import grade_of, is_right
from rewards.types import Likelihoods, Verdicts, known_values, stream_named, value_of
from rewards.votes import due_pairs

OUTCOMES = ("mended", "broken")


def criticism_metrics(debates: Sequence[Debate], correct: Sequence[Correct]) -> dict[str, float]:
    """Return the metrics of the criticism in a batch, or {} if no turn can contain criticism.

    In ``wrong_share``, ``score_drop`` and ``persuasive_share``, a solution counts once for each of its
    critics. ``mended_share`` is the fraction of wrong solutions whose revision is right, ``broken_share`` the
    fraction of right solutions whose revision is wrong. Both are over criticised solutions;
    ``mended_alone_share`` and ``broken_alone_share`` are over solutions that nobody criticised.
    """
    turns = [turn for debate in debates for turn in debate.turns if turn.parsed.criticisms is not UNSET]
    if not turns:
        return {}
    named: list[Criticised] = []
    wrong, better = list[bool](), list[bool]()
    outcomes: dict[str, list[bool]] = {f"{name}{end}": [] for end in ("", "_alone") for name in OUTCOMES}
    for debate, table in zip(debates, correct, strict=True):
        votes = valid_votes(ballot_box(debate))
        found = criticised(debate, votes)
        corrected = corrected_turns(debate, votes)
        revisions = [t.id for t in debate.turns if holds_criticism(debate.protocol, t.id.round - 1)]
        named += found
        wrong += [not right for one in found if (right := is_right(one.solution, table)) is not None]
        better += [revision in corrected for revision in revisions]
        targets = {one.solution for one in found}
        for revision in revisions:
            solution = TurnId(revision.agent, revision.round - 2)
            before, after = is_right(solution, table), is_right(revision, table)
            if revision.round < debate.protocol.num_rounds and before is not None and after is not None:
                alone = "" if solution in targets else "_alone"
                name, changed = ("broken", not after) if before else ("mended", after)
                outcomes[f"{name}{alone}"].append(changed)
    drops = [drop for one in named if (drop := one.drop) is not None]
    counts = [len(turn.parsed.targets or ()) for turn in turns]
    reasons = [failure.reason for turn in turns for failure in turn.parsed.failures]
    invalid = reasons.count(FailureReason.NOT_A_CRITICISM)
    valid = sum(len(turn.parsed.criticisms or ()) for turn in turns)
    result = mean_of("criticism/targets", counts) | mean_of("criticism/turns_share", map(bool, counts))
    result |= {"criticism/valid_share": valid / (valid + invalid)} if valid + invalid else {}
    shares = {"wrong_share": wrong, "score_drop": drops, "persuasive_share": [drop > 0 for drop in drops]}
    shares |= {"self_corrected_share": better} | {f"{name}_share": of for name, of in outcomes.items()}
    for name, values in shares.items():
        result |= mean_of(f"criticism/{name}", values)
    return result


class Segment(NamedTuple):
    """One phase of a critique, and one of the streams that reward its tokens.

    ``weight``: the weight of the stream's advantage. ``turns``: the number of turns with a reward.
    ``reward``: the mean of these rewards, or None without any.
    """

    name: str
    stream: str
    weight: float
    reward: float | None
    turns: int


def segments(
    debate: Debate, rewards: Rewards, scheme: RewardConfig, advantages: AdvantageConfig
) -> list[Segment]:
    """Return the segments of a critique, ordered by phase. Ramped settings have their value at step 0."""

    def phases(round_: int) -> tuple[str, ...]:
        if holds_criticism(debate.protocol, round_):
            return "criticism", "ranking"
        if holds_solutions(debate.protocol, round_):
            return ("revision" if round_ else "proposal",)
        return ("verdict",)

    scheme, advantages = scheme.at_step(0), advantages.at_step(0)
    generator, (peer, truth) = number(advantages.lambda_gen), scheme.stream_weights
    solved = [("peer", generator * peer), ("truth", generator * truth)]
    judged = [("judge", number(advantages.lambda_judge))]
    parts = {
        "proposal": solved,
        "criticism": [("persuasion", number(advantages.lambda_critic))],
        "ranking": judged,
        "revision": [*solved, *([("shaping", generator)] if scheme.shapes else [])],
        "verdict": judged,
    }
    found: list[Segment] = []
    for name, streams in parts.items():
        turns = [turn.id for turn in debate.turns if name in phases(turn.id.round)]
        for stream, weight in streams:
            given = (value_of(stream_named(rewards, stream), turn) for turn in turns)
            values = [value for value in given if value is not None]
            found.append(Segment(name, stream, weight, fmean(values) if values else None, len(values)))
    return found


def seat_metrics(debates: Sequence[Debate], correct: Sequence[Correct]) -> dict[str, float]:
    """Return the accuracy of solutions and of votes for each kind of seat, or {} if all seats learn."""
    values: dict[str, list[bool]] = defaultdict(list)
    for debate, table in zip(debates, correct, strict=True):
        for name, right in seat_figures(debate, table):
            values[name].append(right)
    return {name: fmean(values[name]) for name in sorted(values)}


def seat_figures(debate: Debate, correct: Correct) -> Iterator[tuple[str, bool]]:
    """Yield (metric, is right) for each graded solution of the last round and vote on a decidable pair."""
    protocol = debate.protocol
    if not protocol.seats or correct is None:
        return
    for turn in debate.turns:
        right = is_right(turn.id, correct) if turn.id.round == protocol.num_rounds - 1 else None
        if right is not None:
            yield f"seat/{protocol.seat(turn.id.agent)}/accuracy", right
    box = ballot_box(debate)
    pairs = due_pairs(box, valid_votes(box))
    for seat in dict.fromkeys(protocol.seats):
        own = [pair for pair in pairs if protocol.seat(pair.judge.agent) == seat]
        for right in decidable_votes(own, correct):
            if right is not None:
                yield f"seat/{seat}/judge/accuracy", right


def tool_metrics(debates: Sequence[Debate], correct: Sequence[Correct]) -> dict[str, float]:
    """Return the metrics of the programs in a batch, or {} if no turn could run programs."""
    problems: dict[str, list[tuple[Turn, bool | None]]] = defaultdict(list)
    for debate, table in zip(debates, correct, strict=True):
        problems[debate.problem.id] += [(turn, is_right(turn.id, table)) for turn in debate.turns]
    values: dict[str, list[float]] = {}
    for turns in problems.values():
        for name, found in tool_figures(turns).items():
            values.setdefault(name, []).extend(found)
    return {name: mean for key in values for name, mean in mean_of(f"tools/{key}", values[key]).items()}


def tool_figures(turns: Iterable[tuple[Turn, bool | None]]) -> dict[str, list[float]]:
    """Return the values of each figure over the turns of one problem.

    ``turns`` holds pairs of a turn and whether its answer is right (None: ungraded). ``calls``: for each
    turn, the number of its programs. ``failed``, ``timeouts``: for each program, whether it failed or timed
    out. ``share``: for each graded answer, whether its turn ran a program. ``only_with_code``: for the
    problem, whether at least one answer is right and every right answer is from a turn that ran a program. A
    refused program counts as not run.
    """
    could = [(turn, right) for turn, right in turns if turn.completion.calls is not UNSET]
    if not could:
        return {}
    ran: list[list[Call]] = [
        [call for call in turn.completion.calls or () if call.status != "refused"] for turn, _ in could
    ]
    programs = [call for calls in ran for call in calls]
    answers = [
        (bool(calls), right)
        for (turn, right), calls in zip(could, ran, strict=True)
        if right is not None and not turn.ballot
    ]
    right = {used for used, is_so in answers if is_so}
    return {
        "calls": [float(len(calls)) for calls in ran],
        "failed": [float(call.status != "ok") for call in programs],
        "timeouts": [float(call.status == "timeout") for call in programs],
        "share": [float(used) for used, _ in answers],
        "only_with_code": [float(right == {True})] if answers else [],
    }


class LabelCounts(NamedTuple):
    """Counts of labelled problems, and of pseudo-labels of the others.

    ``problems``: all problems. ``labelled``: problems whose solutions are rewarded by truth. ``rounds``:
    rounds of unlabelled problems. ``pseudo``: those rounds that have a pseudo-label. ``graded``:
    pseudo-labels that can be compared with a gold answer. ``right``: pseudo-labels that agree with it.
    """

    problems: int = 0
    labelled: int = 0
    rounds: int = 0
    pseudo: int = 0
    graded: int = 0
    right: int = 0

    def plus(self, other: LabelCounts) -> LabelCounts:
        """Return the sum of both counts, field by field."""
        return LabelCounts(*(a + b for a, b in zip(self, other, strict=True)))

    def metrics(self) -> dict[str, float]:
        """Return the counts as fractions. A fraction whose denominator is 0 is left out.

        >>> LabelCounts(4, 1, rounds=6, pseudo=3, graded=2, right=1).metrics()
        {'labels/share': 0.25, 'labels/pseudo': 0.5, 'audit/pseudo_right': 0.5}
        """
        parts = {
            "labels/share": (self.labelled, self.problems),
            "labels/pseudo": (self.pseudo, self.rounds),
            "audit/pseudo_right": (self.right, self.graded),
        }
        return {name: part / whole for name, (part, whole) in parts.items() if whole}


def label_counts(
    credits: Sequence[Credit], correct: Sequence[Correct], groups: Sequence[Hashable]
) -> LabelCounts:
    """Return the counts of a step. Entry i of each argument is about debate i.

    A pseudo-label is right if most of the solutions with its answer are right.
    """
    of_group: dict[Hashable, list[tuple[Credit, Correct]]] = {}
    for credit, table, group in zip(credits, correct, groups, strict=True):
        of_group.setdefault(group, []).append((credit, table))
    counts: list[LabelCounts] = []
    for members in of_group.values():
        first = members[0][0]
        counts.append(LabelCounts(1, int(first.judge == "truth" or first.truth == "truth")))
        if first.truth in PSEUDO:
            counts += [_round_labels(members, round_) for round_ in range(len(first.labels))]
    return reduce(LabelCounts.plus, counts, LabelCounts())


def _round_labels(members: Sequence[tuple[Credit, Correct]], round_: int) -> LabelCounts:
    """Return the counts of one round of a group.

    The grade of the pseudo-label comes from all solutions of the group with the same answer.
    """
    labels = members[0][0].labels
    if labels[round_] is None:
        return LabelCounts(rounds=1)
    grades = [
        table[agent][other] is True
        for credit, table in members
        if table is not None
        for agent, row in enumerate(credit.grades)
        for other, same in enumerate(row)
        if same is True and labels[other] == labels[round_] and table[agent][other] is not None
    ]
    return LabelCounts(rounds=1, pseudo=1, graded=bool(grades), right=sum(grades) > len(grades) / 2)


def likelihood_metrics(
    debates: Sequence[Debate], correct: Sequence[Correct], likelihoods: Sequence[Likelihoods]
) -> dict[str, float]:
    """Return the mean log-probability of the gold answer after solutions and after baselines, and the AUC.

    The mean after solutions is over all, over right and over wrong solutions. ``likelihood/auc``: for a right
    and a wrong solution of the same problem and round, the chance that the gold answer is more likely after
    the right solution; ties count half. A mean over no values is left out.
    """
    graded = [
        (debate.problem.id, turn.id.round, grade_of(turn.id, table), value)
        for debate, table, read in zip(debates, correct, likelihoods or (), strict=bool(likelihoods))
        for turn in debate.turns
        if (value := value_of(read.logprobs, turn.id)) is not None
    ]
    groups: dict[tuple[str, int], tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for problem, round_, grade, value in graded:
        if grade is not None:
            groups[problem, round_][grade is True].append(value)
    figures = {
        "logprob": [value for read in likelihoods for value in known_values(read.logprobs)],
        "right": [value for *_, grade, value in graded if grade is True],
        "wrong": [value for *_, grade, value in graded if grade in (False, "missing")],
        "baseline": [read.baseline for read in likelihoods if read.baseline is not None],
        "auc": [
            fmean((right > wrong) + (right == wrong) / 2 for right in rights for wrong in wrongs)
            for wrongs, rights in groups.values()
            if rights and wrongs
        ],
    }
    return {f"likelihood/{name}": fmean(values) for name, values in figures.items() if values}


class Compared(NamedTuple):
    """Whether a solution passed by a verdict, and whether it is right."""

    passed: bool
    right: bool


def compared(debate: Debate, correct: Correct, verdicts: Verdicts | None) -> Iterator[Compared]:
    """Yield each solution that has both a verdict and a grade. A solution without an answer is not right."""
    for turn in debate.turns if verdicts is not None else ():
        passed, right = verdicts.passes(turn.id) if verdicts else None, is_right(turn.id, correct)
        if passed is not None and right is not None:
            yield Compared(passed, right)


def agreement(pairs: Sequence[Compared], clusters: Sequence[Hashable]) -> dict[str, Estimate]:
    """Return how well verdicts agree with the truth, with 95% intervals clustered by problem.

    ``agreement`` is the fraction of verdicts that equal the truth. ``kappa`` is Cohen's kappa, the agreement
    beyond chance [Cohen 1960]. ``false_positive_rate`` is the fraction of solutions that are not right but
    passed; ``false_negative_rate`` is the fraction of right solutions that did not pass. A figure without a
    value is left out.

    >>> pairs = [Compared(True, True), Compared(True, False), Compared(False, False), Compared(False, False)]
    >>> {name: round(one.value, 2) for name, one in agreement(pairs, "abcd").items()}
    {'agreement': 0.75, 'kappa': 0.5, 'false_positive_rate': 0.33, 'false_negative_rate': 0.0}
    """
    if not pairs:
        return {}
    codes = np.array([*map(Numbered().__getitem__, clusters)])
    passed, right = np.array(pairs, dtype=float).T
    same = (passed == right).astype(float)
    po, p, q = same.mean(), passed.mean(), right.mean()
    pe = p * q + (1 - p) * (1 - q)
    kappa = None  # undefined if all verdicts and all grades are equal
    if pe < 1:
        shift = (2 * q - 1) * (passed - p) + (2 * p - 1) * (right - q)
        influence = ((same - po) / (1 - pe) + (po - 1) / (1 - pe) ** 2 * shift) / len(same)
        kappa = interval(float((po - pe) / (1 - pe)), influence, codes, len(same), signed=True)
    figures = {
        "agreement": mean(passed == right, codes),
        "kappa": kappa,
        "false_positive_rate": mean(passed[right == 0], codes[right == 0]),
        "false_negative_rate": mean(1 - passed[right == 1], codes[right == 1]),
    }
    return {name: figure for name, figure in figures.items() if figure is not None}


def verdict_metrics(
    debates: Sequence[Debate],
    correct: Sequence[Correct],
    rewards: Sequence[Rewards],
    verdicts: Sequence[Verdicts | None],
    tally: Mapping[str, int],
) -> dict[str, float]:
    """Return the figures and the cost of a verifier model's verdicts in a step, or {} without verdicts.

    ``tally`` is the tally from ``VerifierModel.take_tally``.
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
    pairs, problems = list[Compared](), list[str]()
    for debate, table, one in zip(debates, correct, verdicts, strict=True):
        pairs += compared(debate, table, one)
        problems += [debate.problem.id] * (len(pairs) - len(problems))
    figures |= {"verifier/compared": float(len(pairs))} if pairs else {}
    for name, estimate in agreement(pairs, problems).items():
        figures[f"verifier/{name}"] = estimate.value
        if isfinite(estimate.low) and isfinite(estimate.high):
            figures |= {f"verifier/{name}/low": estimate.low, f"verifier/{name}/high": estimate.high}
    values = [  # rewards from verdicts are stored in the truth stream
        value
        for table, reward, one in zip(correct, rewards, verdicts, strict=True)
        if table is None and one is not None
        for value in known_values(reward.truth)
    ]
    if values:
        figures |= {
            "reward/verdict/mean": float(np.mean(values)),
            "reward/verdict/std": float(np.std(values)),
        }
        figures["reward/verdict/n"] = float(len(values))
    return figures


def verdict_costs(tally: Mapping[str, int]) -> dict[str, float]:
    """Return the number of a verifier model's requests, their token cost, and how often it gave no verdict.

    >>> verdict_costs({"requests": 2, "tokens": 500, "several": 1})["verifier/tokens/generated"]
    500.0
    """
    names = {f"without/{fault}": fault for fault in FAULTS} | {"requests": "requests", "cached": "cached"}
    names |= {"tokens/prompt": "prompt_tokens", "tokens/generated": "tokens"}
    return {f"verifier/{name}": float(tally.get(key, 0)) for name, key in names.items()}


def scores_of(verdicts: Verdicts, round_: int) -> list[float]:
    """Return the scores of one round's solutions, leaving out solutions without a score."""
    column = (verdicts.scores[agent][round_] for agent in range(len(verdicts.scores)))
    return [score for score in column if isinstance(score, float)]
