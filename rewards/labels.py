"""Choose the source of a debate's rewards: its grades, grades by a pseudo-label, or nothing.

Whether a problem is labelled depends on a hash of the run's seed and the problem's id. So the labelled
problems of a smaller fraction are a subset of those of a larger one, and a replay uses the same labels as
training. Grades of unlabelled problems are not used for rewards.
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
"""The source of grades: the gold answer, a coin (``train.control``), a pseudo-label, or "none"."""
_ALL = 2**63
"""All seeds are below this number."""


class Credit(Value, frozen=True):
    """The sources of a debate's truth rewards and judge rewards.

    The arguments ``correct`` are the true grades. ``labels``: the pseudo-label of each round, as an answer
    key; None without one. ``grades`` (N, R): the grades by these labels or by coins.
    """

    truth: Source
    judge: Source
    labels: tuple[str | None, ...] = ()
    grades: tuple[tuple[Truth, ...], ...] = ()

    def grades_of_truth(self, correct: Correct) -> Correct:
        """Return the grades for the truth stream, or None if it has no source."""
        return self._grades(self.truth, correct)

    def grades_of_judges(self, correct: Correct) -> Correct:
        """Return the grades by which judges are rewarded, or None if they have no source."""
        return self._grades(self.judge, correct)

    def _grades(self, source: Source, correct: Correct) -> Correct:
        return correct if source == "truth" else None if source == "none" else self.grades


OF_TRUTH = Credit("truth", "truth")
"""The credit of a labelled problem, and of one without a gold answer if no pseudo-labels are used."""


def is_labelled(problem: Problem, config: RewardConfig, seed: int) -> bool:
    """Return whether a problem's gold answer may be used, by its id and level. ``seed``: the run's seed.

    >>> one = Problem("p3", "1 + 1?", level="2")
    >>> [is_labelled(one, RewardConfig(labels=share), 0) for share in (0.0, 0.3, 0.6, 1.0)]
    [False, False, True, True]
    >>> [is_labelled(one, RewardConfig(label_levels=levels), 0) for levels in ([1], [1, 2])]
    [False, True]
    """
    if config.label_levels is not None and problem.level not in map(str, config.label_levels):
        return False
    return derive_seed(seed, "label", problem.id) < config.labels * _ALL


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
    """Return the credit of each debate.

    Entry i of each argument belongs to debate i; the debates of a group are adjacent. ``seed``: the run's
    seed. ``coins``: whether a coin for each solution replaces its grade in the truth stream.
    """
    if not config.hides_any_label and not coins:
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
    """Return the answers and votes of a group's debates."""
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
    """Return the turns that contain a solution."""
    return [turn.id for turn in debate.turns if holds_solutions(debate.protocol, turn.id.round)]


def _by_labels(
    debates: Sequence[Debate],
    verdicts: Sequence[Verdicts | None],
    config: RewardConfig,
    key: AnswerKey,
    seed: int,
) -> list[Credit]:
    """Return the credits of a group's debates by the pseudo-labels of their rounds.

    Ties are broken by lot.
    """
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
    """Return the credit with a fair coin, drawn from the debate's seed, as the grade of each solution."""
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
