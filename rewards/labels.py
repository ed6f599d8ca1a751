"""What rewards a debate instead of truth: its grades, a pseudo-label's, or nothing, seen by the group.

A problem is labelled by a hash of the run's seed and its id, so that the problems of a smaller share are
among those of a greater one, and a replay deals as training did. Grades of other problems reward nothing.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Mapping, Sequence
from itertools import groupby
from typing import Literal, TypeAlias

from debate.prompting.shown import holds_solutions
from debate.seeds import derive_seed
from debate.types import WHOLE_RESPONSE, Debate, Problem, TurnId
from debate.values import Value
from rewards.config import RewardConfig
from rewards.pseudo import RULES, Answered, Pseudo, best
from rewards.shaping import AnswerKey
from rewards.types import Correct, Truth, Verdicts
from rewards.votes import ballot_box, valid_votes

Source: TypeAlias = Literal["truth", "coin"] | Pseudo
"""Where grades come from: the gold answer, a coin (``train.control``), a pseudo-label, or "none"."""
_ALL = 2**63
"""Seeds are below it."""


class Credit(Value, frozen=True):
    """What a debate's truth stream, and its judges, are rewarded by; ``correct`` stays what is true.

    ``labels``: the pseudo-label of each round, by its key; None without one. ``grades`` (N, R): by them, or
    by coins.
    """

    truth: Source
    judge: Source
    labels: tuple[str | None, ...] = ()
    grades: tuple[tuple[Truth, ...], ...] = ()

    def grades_of_truth(self, correct: Correct) -> Correct:
        """Return the grades that the truth stream is made of; None for nothing."""
        return self._grades(self.truth, correct)

    def grades_of_judges(self, correct: Correct) -> Correct:
        """Return the grades that judges are rewarded by; None for nothing."""
        return self._grades(self.judge, correct)

    def _grades(self, source: Source, correct: Correct) -> Correct:
        return correct if source == "truth" else None if source == "none" else self.grades


OF_TRUTH = Credit("truth", "truth")
"""Of a problem with a label; of one without a gold answer too, where no pseudo-label is asked for."""


def is_labelled(problem: Problem, config: RewardConfig, seed: int) -> bool:
    """Return whether a problem's gold answer may be used, by its id and level; ``seed``: the run's.

    >>> one = Problem("p3", "1 + 1?", level="2")
    >>> [is_labelled(one, RewardConfig(labels=share), 0) for share in (0.0, 0.3, 0.6, 1.0)]
    [False, False, True, True]
    >>> [is_labelled(one, RewardConfig(label_levels=levels), 0) for levels in ([1], [1, 2])]
    [False, True]
    """
    if config.label_levels is not None and problem.level not in map(str, config.label_levels):
        return False
    return derive_seed(seed, "label", problem.id) < config.labels * _ALL


def hides_any(config: RewardConfig) -> bool:
    """Return whether a scheme can reward by anything but the gold answers of all problems."""
    return config.labels < 1 or config.label_levels is not None or config.pseudo != "none"


def credits_of(
    debates: Sequence[Debate],
    correct: Sequence[Correct],
    groups: Sequence[Hashable],
    config: RewardConfig,
    *,
    seed: int,
    key: AnswerKey,
    verdicts: Sequence[Verdicts | None] = (),
    coins: bool = False,
) -> list[Credit]:
    """Return what each debate is rewarded by.

    Entry i of each argument is about debate i; those of a group are adjacent. ``seed``: the run's.
    ``coins``: whether a coin for each solution stands for its grade, in the truth stream.
    """
    if not hides_any(config) and not coins:
        return [OF_TRUTH] * len(debates)
    said = verdicts or [None] * len(debates)
    credits: list[Credit] = []
    for _, members in groupby(range(len(debates)), key=lambda index: groups[index]):
        indices = list(members)
        of, known = [debates[i] for i in indices], all(correct[i] is not None for i in indices)
        if known and is_labelled(of[0].problem, config, seed):
            credits += [OF_TRUTH] * len(of)
        elif config.pseudo == "none" or of[0].problem.kind in WHOLE_RESPONSE:
            credits += [Credit("none", "none")] * len(of)
        else:
            credits += _by_labels(of, [said[i] for i in indices], config, key, seed)
    if coins:
        credits = [_by_coins(debate, one) for debate, one in zip(debates, credits, strict=True)]
    return credits


def answered(
    debates: Sequence[Debate], verdicts: Sequence[Verdicts | None], config: RewardConfig, key: AnswerKey
) -> Answered:
    """Return what the debates of a group answered and voted."""
    keys = [
        {
            turn.id: key(debate.problem, turn.parsed.answer)
            for turn in debate.turns
            if turn.parsed.answer is not None and holds_solutions(debate.protocol, turn.id.round)
        }
        for debate in debates
    ]
    votes = [valid_votes(ballot_box(debate, judge_own=config.judge_own)) for debate in debates]
    solutions = [solution_turns(debate) for debate in debates]
    return Answered(solutions, keys, votes, verdicts, config.bradley_terry_alpha)


def solution_turns(debate: Debate) -> list[TurnId]:
    """Return the turns that hold a solution."""
    return [turn.id for turn in debate.turns if holds_solutions(debate.protocol, turn.id.round)]


def _by_labels(
    debates: Sequence[Debate],
    verdicts: Sequence[Verdicts | None],
    config: RewardConfig,
    key: AnswerKey,
    seed: int,
) -> list[Credit]:
    """Return the credit of a group's debates by the pseudo-labels of their rounds; ties are drawn by lot."""
    group = answered(debates, verdicts, config, key)
    labels: list[str | None] = []
    for scores in RULES[config.pseudo](group):
        draw = random.Random(derive_seed(seed, "pseudo-label", debates[0].seed))
        labels.append(draw.choice(sorted(best(scores))) if scores else None)
    judge: Source = config.pseudo if config.judge_pseudo else "none"
    return [
        Credit(config.pseudo, judge, tuple(labels), _grades(debate, turns, keys, labels))
        for debate, turns, keys in zip(debates, group.solutions, group.keys, strict=True)
    ]


def _grades(
    debate: Debate, turns: Sequence[TurnId], keys: Mapping[TurnId, str], labels: Sequence[str | None]
) -> tuple[tuple[Truth, ...], ...]:
    grades: dict[TurnId, Truth] = {}
    for turn in turns:
        label = labels[turn.round]
        if label is not None:
            grades[turn] = keys[turn] == label if turn in keys else "missing"
    return _table(debate, grades)


def _by_coins(debate: Debate, credit: Credit) -> Credit:
    """Return the credit with a fair coin for each solution, drawn from the debate's seed, as its grade."""
    coins: dict[TurnId, Truth] = {
        turn: bool(derive_seed(debate.seed, "coin", turn.agent, turn.round) & 1)
        for turn in solution_turns(debate)
    }
    return Credit("coin", "truth" if credit.judge == "truth" else "none", (), _table(debate, coins))


def _table(debate: Debate, grades: Mapping[TurnId, Truth]) -> tuple[tuple[Truth, ...], ...]:
    rounds = range(debate.protocol.num_rounds)
    return tuple(
        tuple(grades.get(TurnId(agent, round_)) for round_ in rounds) for agent in range(len(debate.personas))
    )
