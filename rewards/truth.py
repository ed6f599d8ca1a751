"""Grades of turns, their fractions, their changes between rounds, and their rewards."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from itertools import pairwise
from types import MappingProxyType

from msgspec import UNSET
from msgspec.structs import replace

from debate.parsing import last_boxed
from debate.prompting.shown import holds_solutions, speakers
from debate.protocols import GAMES
from debate.ramps import number
from debate.types import Debate, Turn, TurnId
from rewards.config import RewardConfig
from rewards.types import Correct, Rewards, Truth, Verdicts, value_of
from rewards.votes import BallotBox

FLIPS = ("cc", "cw", "wc", "ww")
"""An agent's grades in one round and the next: right ("c") or wrong ("w"); a missing answer is wrong."""
_FORMS: Mapping[str, Callable[[str], object]] = {
    "boxed": lambda text: last_boxed(text) is not None,
    "answer_is": re.compile(r"\bthe (?:final )?answer is\b", re.IGNORECASE).search,
    "hashes": re.compile(r"^####[ \t]*\S", re.MULTILINE).search,
}


def grade_of(turn: TurnId, correct: Correct) -> Truth:
    """Return the grade of a turn. None if it was not graded, like all turns of the final ballot.

    >>> grade_of(TurnId(0, 1), [[True, "missing"]]), grade_of(TurnId(0, 2), [[True, "missing"]])
    ('missing', None)
    """
    return None if correct is None else value_of(correct, turn)


def is_right(turn: TurnId, correct: Correct) -> bool | None:
    """Return whether the turn's answer is right. A missing answer is not right. None if it was not graded.

    >>> is_right(TurnId(0, 1), [[True, "missing"]])
    False
    """
    grade = grade_of(turn, correct)
    return grade if grade is None else grade is True


def right_share(grades: Iterable[Truth]) -> float | None:
    """Return the fraction of right answers among the graded ones. Missing is wrong; None if none is graded.

    >>> right_share([True, "missing", None]), right_share([None])
    (0.5, None)
    """
    graded = [grade is True for grade in grades if grade is not None]
    return sum(graded) / len(graded) if graded else None


def round_accuracy(correct: Correct, round_: int) -> float | None:
    """Return the fraction of right answers in a round (-1: the last). None if none of them was graded.

    >>> [round_accuracy([[True, False], ["missing", None]], round_) for round_ in (0, -1)]
    [0.5, 0.0]
    """
    return right_share(row[round_] for row in correct or () if row)


def flips(correct: Correct) -> dict[str, int]:
    """Return how often each of ``FLIPS`` occurs. Ungraded rounds are ignored.

    >>> flips([[True, False, None], ["missing", True, True]])
    {'cc': 1, 'cw': 1, 'wc': 1, 'ww': 0}
    """
    seen: Counter[str] = Counter()
    for row in correct or ():
        letters = [None if grade is None else "c" if grade is True else "w" for grade in row]
        seen.update(a + b for a, b in pairwise(letters) if a and b)
    return {name: seen[name] for name in FLIPS}


def grades_of_solutions(debate: Debate, correct: Correct) -> Correct:
    """Return the grades of the agents that solve, in the rounds of solutions, (up to N, up to R).

    Rounds of criticism and the judges of a game are left out.
    """
    protocol = debate.protocol
    if correct is None or protocol.protocol == "debate":
        return correct
    if protocol.protocol in GAMES:
        return [correct[agent] for agent in speakers(protocol, 0)]
    return [[g for round_, g in enumerate(row) if holds_solutions(protocol, round_)] for row in correct]


GRADES: dict[Truth, str] = {True: "right", False: "wrong", "missing": "missing", None: "ungraded"}
"""The name of each grade."""
TRUTH_SETTINGS: dict[Truth, str] = {
    True: "truth_correct",
    False: "truth_wrong",
    "missing": "truth_missing",
    None: "",
}
"""The setting with the reward of each grade; "" for a turn that was not graded."""


def truth_reward(grade: Truth, config: RewardConfig, score: float | None = None) -> float | None:
    """Return the reward of a grade. None if the turn was not graded, which is never "wrong".

    With ``truth_credit = "partial"``, ``score`` in [0, 1] is rewarded instead of a right or wrong grade.

    >>> [truth_reward(grade, RewardConfig()) for grade in (True, False, "missing", None)]
    [1.0, 0.0, 0.0, None]
    >>> [truth_reward(False, RewardConfig(truth_credit=credit), 0.75) for credit in ("whole", "partial")]
    [0.0, 0.75]
    """
    if counts_partly(grade, config, score) and score is not None:
        return _between(score, config)
    setting = TRUTH_SETTINGS[grade]
    return getattr(config, setting) if setting else None


def counts_partly(grade: Truth, config: RewardConfig, score: float | None) -> bool:
    """Return whether the score is rewarded instead of the grade."""
    return config.truth_credit == "partial" and score is not None and isinstance(grade, bool)


def score_of(turn: Turn) -> float | None:
    """Return how much of a turn's solution is right, in [0, 1]. None if only its grade is known."""
    return None if turn.score is UNSET else turn.score


def verdict_reward(verdicts: Verdicts, turn: TurnId, config: RewardConfig) -> float | None:
    """Return the reward of a verifier model's verdict. None without a verdict, which is never "wrong".

    >>> verdicts = Verdicts("m", 0.5, ((0.75, "missing", None),))
    >>> [verdict_reward(verdicts, TurnId(0, round_), RewardConfig()) for round_ in range(3)]
    [0.75, 0.0, None]
    >>> verdict_reward(verdicts, TurnId(0, 0), RewardConfig(truth_credit="whole"))
    1.0
    """
    score = value_of(verdicts.scores, turn)
    if score is None or isinstance(score, str):
        return truth_reward(score, config)
    if config.truth_credit == "whole":
        return truth_reward(score >= verdicts.threshold, config)
    return _between(score, config)


def of_truth_alone(rewards: Rewards, correct: Correct, verdicts: Verdicts | None) -> Rewards:
    """Return the rewards without their truth stream if it came from a verifier model's verdicts.

    >>> given, verdicts = Rewards((), ((0.75,),), (), ()), Verdicts("m", 0.5, ((0.75,),))
    >>> of_truth_alone(given, None, verdicts).truth, of_truth_alone(given, [[True]], verdicts).truth
    ((), ((0.75,),))
    """
    return replace(rewards, truth=()) if correct is None and verdicts is not None else rewards


def _between(score: float, config: RewardConfig) -> float:
    """Return the reward of a score in [0, 1]: from ``truth_wrong`` at 0 to ``truth_correct`` at 1."""
    return config.truth_wrong + score * (config.truth_correct - config.truth_wrong)


def truth_turns(box: BallotBox, config: RewardConfig) -> tuple[TurnId, ...]:
    """Return the solutions that truth rewards: all of them, or those of the last round."""
    solutions = box.solutions()
    if config.truth_rounds == "all":
        return solutions
    last = max((turn.round for turn in solutions), default=0)
    return tuple(turn for turn in solutions if turn.round == last)


def truth_rewards(
    box: BallotBox,
    correct: Correct,
    config: RewardConfig,
    formed: Set[TurnId] = frozenset(),
    scores: Mapping[TurnId, float | None] = MappingProxyType({}),
) -> dict[TurnId, float | None]:
    """Return the truth reward of every solution turn that took place. No entries for an open problem.

    ``formed``: the turns that get ``config.form_bonus`` if they were graded. ``scores``: the ``score_of`` of
    each turn.
    """
    if correct is None:
        return {}
    rewards = {
        turn: truth_reward(correct[turn.agent][turn.round], config, scores.get(turn))
        for turn in truth_turns(box, config)
    }
    return {
        turn: reward if reward is None or turn not in formed else reward + number(config.form_bonus)
        for turn, reward in rewards.items()
    }


def has_form(text: str, form: str) -> bool:
    r"""Return whether a solution gives its answer in the format ``form`` (see ``rewards.form``).

    >>> [has_form(r"So \boxed{4}.", form) for form in ("boxed", "answer_is", "hashes")]
    [True, False, False]
    """
    return bool(_FORMS[form](text))


def formed_turns(debate: Debate, form: str) -> set[TurnId]:
    """Return the turns whose solution gives its answer, right or wrong, in the format ``form``.

    The bonus is part of the truth reward and shares its baseline. So it teaches nothing if every solution has
    the format, and it still teaches the format if all answers to a problem are wrong.
    """
    spans = ((turn, turn.parsed.solution) for turn in debate.turns)
    return {turn.id for turn, span in spans if span and has_form(span.of(turn.completion.stated), form)}
