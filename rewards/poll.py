"""What the two doors reduce a debate to: who took part, what each could compare, and the votes as cast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from debate.config import DebateConfig
from debate.types import Debate, FailureReason, Turn, TurnId, Vote
from rewards.validate import PlainVote, check_size, read_vote

UNREAD: dict[FailureReason, str] = {
    FailureReason.OWN_WORK: "own",
    FailureReason.UNKNOWN_HANDLE: "unknown_handle",
    FailureReason.SAME_HANDLE: "same_handle",
    FailureReason.MALFORMED: "malformed",
    FailureReason.NOT_DUE: "not_shown",
}
"""Parse failures of comparison lines, by the reason they are counted under."""


@dataclass(frozen=True, slots=True)
class Poll:
    """One debate as the reward rules see it.

    ``comparable``: for every turn that took place, the turns its author could be asked to compare.
    ``votes``: as cast, in order. ``unread``: comparison lines that never became votes, by reason.
    """

    num_agents: int
    num_rounds: int
    judge_own: bool
    comparable: Mapping[TurnId, tuple[TurnId, ...]]
    votes: tuple[Vote, ...]
    unread: Mapping[str, int]

    def solutions(self) -> tuple[TurnId, ...]:
        """Return the turns that took place and hold a solution: all but the final ballot's."""
        return tuple(turn for turn in self.comparable if turn.round < self.num_rounds)

    def due(self) -> tuple[TurnId, ...]:
        """Return the turns in which comparisons were due: those that were shown at least one pair."""
        return tuple(turn for turn, shown in self.comparable.items() if len(shown) >= 2)


def poll_of_debate(debate: Debate, *, judge_own: bool) -> Poll:
    """Return the poll of a held debate, read from the provenance of its turns.

    Own work counts only where it was both asked for (``debate.protocol``) and is accepted (``judge_own``).
    """
    own = judge_own and debate.protocol.judge_own
    _check_turns(debate)
    return Poll(
        num_agents=debate.protocol.num_agents,
        num_rounds=debate.protocol.num_rounds,
        judge_own=own,
        comparable={turn.id: _comparable(turn, own, debate.protocol) for turn in debate.turns},
        votes=debate.votes,
        unread=_unread(debate.turns),
    )


def _check_turns(debate: Debate) -> None:
    """Raise ValueError for a turn that the protocol has no place for."""
    agents, rounds = debate.protocol.num_agents, debate.protocol.num_rounds
    for turn in debate.turns:
        if not (0 <= turn.id.agent < agents and 0 <= turn.id.round <= rounds):
            raise ValueError(f"{turn.id}: no such turn in a debate of {agents} agents and {rounds} rounds")


def _comparable(turn: Turn, own: bool, protocol: DebateConfig) -> tuple[TurnId, ...]:
    """Return the newest solution of each agent that the prompt showed, without own work unless ``own``.

    A transcript may come from elsewhere: what nobody said in an earlier round cannot have been shown.
    """
    newest: dict[int, TurnId] = {}
    for target in turn.compared or turn.shown:
        earlier = 0 <= target.round < min(turn.id.round, protocol.num_rounds)
        known = earlier and 0 <= target.agent < protocol.num_agents
        if known and (own or target.agent != turn.id.agent):
            newest[target.agent] = max(target, newest.get(target.agent, target))
    return tuple(newest.values())


def _unread(turns: Sequence[Turn]) -> Counter[str]:
    reasons = (failure.reason for turn in turns for failure in turn.parsed.failures)
    return Counter(UNREAD[reason] for reason in reasons if reason in UNREAD)


def poll_of_votes(
    num_agents: int, num_rounds: int, votes: Sequence[PlainVote], *, judge_own: bool, final_ballot: bool
) -> Poll:
    """Return the poll of plain votes: every agent was shown every solution of the round before."""
    check_size(num_agents, num_rounds)
    last = num_rounds if final_ballot else num_rounds - 1
    return Poll(
        num_agents=num_agents,
        num_rounds=num_rounds,
        judge_own=judge_own,
        comparable=_all_of_the_round_before(num_agents, num_rounds, last, judge_own),
        votes=tuple(
            read_vote(index, vote, num_agents=num_agents, last_round=last) for index, vote in enumerate(votes)
        ),
        unread={},
    )


@lru_cache(maxsize=256)
def _all_of_the_round_before(
    num_agents: int, num_rounds: int, last: int, own: bool
) -> Mapping[TurnId, tuple[TurnId, ...]]:
    comparable: dict[TurnId, tuple[TurnId, ...]] = {}
    for round_ in range(last + 1):
        for agent in range(num_agents):
            shown = tuple(TurnId(seat, round_ - 1) for seat in range(num_agents) if own or seat != agent)
            comparable[TurnId(agent, round_)] = shown if round_ else ()
    # A final ballot is held only where there is a pair to judge.
    has_turn = {
        turn: shown for turn, shown in comparable.items() if turn.round < num_rounds or len(shown) >= 2
    }
    return MappingProxyType(has_turn)
