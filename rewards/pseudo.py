"""Pseudo-labels for problems without a label, from the answers and votes of a group's debates.

A rule scores the answers of a group (the K debates of one problem) for each round of solutions. The label of
a round is the answer with the highest score; without scores there is no label. The rules never read a grade.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias, get_args

from debate.types import TurnId, Vote
from rewards.bradley_terry import strengths
from rewards.types import Verdicts
from rewards.votes import FOR_LEFT

Pseudo: TypeAlias = Literal["none", "majority", "last_majority", "voted", "verified", "anchored"]
PSEUDO: tuple[Pseudo, ...] = get_args(Pseudo)[1:]
Scores: TypeAlias = Mapping[str, float]
"""Scores by answer key."""
SAME = 1e-6
"""Scores closer than this count as equal: fitted strengths are accurate to about 1e-8."""


class Answered(NamedTuple):
    """A group of K debates: the answer keys of solutions, the valid votes and the verdicts of each debate.

    ``solutions``: the turns that hold a solution. A solution without an answer has no entry in ``keys``.
    ``alpha``: the regularisation of fitted strengths.
    """

    solutions: Sequence[Sequence[TurnId]]
    keys: Sequence[Mapping[TurnId, str]]
    votes: Sequence[Sequence[Vote]]
    verdicts: Sequence[Verdicts | None] = ()
    alpha: float = 0.1

    @property
    def rounds(self) -> range:
        """The rounds of the group's solutions."""
        return range(1 + max((turn.round for turns in self.solutions for turn in turns), default=-1))


def majority(group: Answered) -> list[Scores]:
    """Return how often each answer was given in each round [TTRL, arXiv 2504.16084]."""
    return [
        Counter(key for keys in group.keys for turn, key in keys.items() if turn.round == round_)
        for round_ in group.rounds
    ]


def last_majority(group: Answered) -> list[Scores]:
    """Return each answer's count in the last rounds of debates [MACA, arXiv 2509.15172; DTE, 2505.15734].

    These scores label all rounds: the outcome of a debate teaches its earlier rounds.
    """
    last = [max((turn.round for turn in turns), default=0) for turns in group.solutions]
    said = Counter(
        key
        for keys, round_ in zip(group.keys, last, strict=True)
        for turn, key in keys.items()
        if turn.round == round_
    )
    return [said for _ in group.rounds]


def voted(group: Answered) -> list[Scores]:
    """Return each answer's wins minus losses in the votes of all debates and rounds, to label all rounds.

    Votes between equal answers carry no information about answers and are ignored. Only sums above 0 count;
    without one there is no label. The sum is not divided by the number of comparisons. A rate, like
    Copeland's score, would pick rare wrong answers: of those compared only once, with another wrong answer,
    half have won every vote. The sum has its own drawback: a common answer with many wins over wrong ones
    outweighs a rare right answer that beat it. Both effects were measured
    (``experiments/results/label_free.md``). Votes on answers follow SERL [arXiv 2511.07922].
    """
    net: Counter[str] = Counter()
    for left, right, outcome in _decided(group):
        for key, points in ((left, outcome), (right, -outcome)):
            if key is not None:
                net[key] += points
    favoured = {key: float(points) for key, points in net.items() if points > 0}
    return [favoured for _ in group.rounds]


def verified(group: Answered) -> list[Scores]:
    """Return the majority answer if most verdicts on its solutions pass [CoVerRL, arXiv 2603.17775].

    In the paper, the policy itself gives the verdicts and is trained to give them. Here a verifier model
    gives them (``verifier``). Without a verdict there is no label.
    """
    return [
        {key: score for key, score in best(scores).items() if _passes(group, key, round_)}
        for round_, scores in enumerate(majority(group))
    ]


def anchored(group: Answered) -> list[Scores]:
    """Return Bradley-Terry strengths of answers, with all debates in one graph, to label all rounds.

    This follows Reasoning Arena [arXiv 2606.09380], which compares each reply only with a pool of anchors
    (earlier replies) and fits the sparse graph. Here equal answers are one node, and answers that occur in
    several debates are the anchors that connect the debates' votes. The paper rewards the strength; here the
    strongest answer is the label. Only the regularisation connects parts of the graph that share no answer.
    """
    wins: defaultdict[tuple[str, str], float] = defaultdict(float)
    for left, right, outcome in _decided(group):
        if left is not None and right is not None:
            wins[left, right] += (1 + outcome) / 2
            wins[right, left] += (1 - outcome) / 2
    keys = sorted({key for pair in wins for key in pair})
    table = tuple(tuple(wins[a, b] for b in keys) for a in keys)
    fitted = zip(keys, strengths(table, group.alpha) if keys else (), strict=True)
    strong = {key: strength for key, strength in fitted if strength > SAME}
    return [strong for _ in group.rounds]


RULES: dict[Pseudo, Callable[[Answered], list[Scores]]] = {
    "majority": majority,
    "last_majority": last_majority,
    "voted": voted,
    "verified": verified,
    "anchored": anchored,
}


def best(scores: Scores) -> Scores:
    """Return the answers with the highest score. There are several if their scores are equal.

    >>> best({"4": 2, "5": 2, "6": 1})
    {'4': 2, '5': 2}
    """
    return {key: score for key, score in scores.items() if score >= max(scores.values()) - SAME}


def _decided(group: Answered) -> list[tuple[str | None, str | None, int]]:
    """Return (left, right, outcome) for each vote between different answers.

    The outcome is +1, -1 or 0 for the left side.
    """
    sides = (
        (keys.get(vote.left), keys.get(vote.right), FOR_LEFT[vote.outcome])
        for keys, votes in zip(group.keys, group.votes, strict=True)
        for vote in votes
    )
    return [(left, right, outcome) for left, right, outcome in sides if left != right]


def _passes(group: Answered, key: str, round_: int) -> bool:
    """Return whether more than half of the verdicts on a round's solutions with this answer pass."""
    said = [
        verdicts.passes(turn)
        for keys, verdicts in zip(group.keys, group.verdicts, strict=True)
        if verdicts is not None
        for turn, own in keys.items()
        if turn.round == round_ and own == key
    ]
    known = [one for one in said if one is not None]
    return sum(known) > len(known) / 2
