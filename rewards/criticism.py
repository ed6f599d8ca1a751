"""Rewards of criticism: persuasion for the critic, and a bonus for a revision that the others score higher.

The score of a solution is its win rate, (W + T / 2) / (W + L + T) in [0, 1], in the votes on its round.

    persuasion = beta * sum over the targets of max(0, score of the solution - score of its revision)
    help = beta * sum over the targets of (score of the revision - score of the solution)

The critic's own votes do not count in a score that rewards it. Otherwise it would earn by ranking a target
high first and low at the end. Persuasion rewards a falling score and never penalizes. This rule comes from a
public recipe for critics with four phases, in which the critic's votes counted. Help rewards a revision that
scores higher and penalizes one that scores lower [CoNL, arXiv 2601.21464]. ``rewards.critic`` chooses between
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from debate.prompting.shown import holds_criticism
from debate.ramps import number
from debate.types import Debate, TurnId, Vote
from rewards.config import RewardConfig
from rewards.truth import is_right
from rewards.types import Correct
from rewards.votes import FOR_LEFT


class Criticised(NamedTuple):
    """A solution that a critic named as a target, and its scores in the votes of the others.

    ``before``: the score of the solution. ``after``: the score of its revision. None without votes.
    """

    critic: TurnId
    solution: TurnId
    before: float | None
    after: float | None

    @property
    def revision(self) -> TurnId:
        """The turn in which the target revised the solution."""
        return TurnId(self.solution.agent, self.critic.round + 1)

    @property
    def drop(self) -> float | None:
        """How far the score fell, negative if it rose. None unless both scores exist."""
        return None if self.before is None or self.after is None else self.before - self.after

    def worth(self, rule: Literal["persuasion", "help"]) -> float | None:
        """Return the unweighted reward of a criticism under a rule. None unless both scores exist.

        >>> fell = Criticised(TurnId(0, 1), TurnId(1, 0), 0.75, 0.25)
        >>> fell.worth("persuasion"), fell.worth("help")
        (0.5, -0.5)
        """
        if self.before is None or self.after is None:
            return None
        rise = self.after - self.before
        return rise if rule == "help" else max(0.0, -rise)


def score_by_others(votes: Sequence[Vote], solution: TurnId, agent: int) -> float | None:
    """Return the win rate of a solution in the votes of all judges except one agent. None without votes.

    >>> judges, a, b = (TurnId(2, 1), TurnId(3, 1)), TurnId(0, 0), TurnId(1, 0)
    >>> votes = [Vote(judges[0], a, b, "left"), Vote(judges[1], b, a, "tie")]
    >>> [score_by_others(votes, solution, agent) for solution, agent in ((a, 1), (a, 3), (b, 3))]
    [0.75, 1.0, 0.0]
    """
    results = [
        FOR_LEFT[vote.outcome] * (1 if vote.left == solution else -1)
        for vote in votes
        if solution in (vote.left, vote.right) and vote.judge.agent != agent
    ]
    return (sum(results) / len(results) + 1) / 2 if results else None


def criticised(debate: Debate, votes: Sequence[Vote]) -> list[Criticised]:
    """Return every solution named as a target, once for each critic. ``votes``: the valid votes."""
    agents = {turn.handle: turn.id.agent for turn in debate.turns}
    found: list[Criticised] = []
    for turn in debate.turns:
        for handle in turn.parsed.targets or ():
            solution = TurnId(agents.get(handle, -1), turn.id.round - 1)
            if solution not in turn.shown or solution.agent == turn.id.agent:
                continue
            revision = TurnId(solution.agent, turn.id.round + 1)
            before, after = (score_by_others(votes, one, turn.id.agent) for one in (solution, revision))
            found.append(Criticised(turn.id, solution, before, after))
    return found


def persuasions(named: Sequence[Criticised], correct: Correct, config: RewardConfig) -> dict[TurnId, float]:
    """Return the reward of each critic's turn. A turn has no entry if none of its targets has both scores.

    With ``persuasion_targets = "wrong"`` only graded targets count, and criticism of a right solution earns
    0.
    """
    earned: dict[TurnId, float] = {}
    for one in named:
        worth, right = one.worth(config.critic), is_right(one.solution, correct)
        if worth is None or (config.persuasion_targets == "wrong" and right is None):
            continue
        misled = config.persuasion_targets == "wrong" and right
        value = 0.0 if misled else number(config.persuasion_beta) * worth
        earned[one.critic] = earned.get(one.critic, 0.0) + value
    return earned


def corrected_turns(debate: Debate, votes: Sequence[Vote]) -> set[TurnId]:
    """Return the revisions that the other agents score higher than the solution they revise."""
    protocol = debate.protocol
    revisions = [turn.id for turn in debate.turns if holds_criticism(protocol, turn.id.round - 1)]
    corrected: set[TurnId] = set()
    for turn in revisions:
        solution = TurnId(turn.agent, turn.round - 2)
        before, after = (score_by_others(votes, one, turn.agent) for one in (solution, turn))
        if before is not None and after is not None and after > before:
            corrected.add(turn)
    return corrected
