"""Decide which votes were possible and which count. All scores use the same valid votes.

A vote is valid if the judge was shown both sides and neither is its own. A judge has one vote for each
unordered pair: identical repeats collapse, and contradictory votes are all void. Dropped votes are counted by
reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from debate.prompting.shown import comparable, holds_criticism, holds_votes
from debate.types import Debate, FailureReason, Outcome, Turn, TurnId, Vote
from rewards.types import PlainVote, check_size, read_vote

Pair: TypeAlias = tuple[TurnId, TurnId]

DROPPED = (
    *("own_work", "not_shown", "same_handle", "duplicate", "contradictory", "unknown_handle"),
    "not_a_comparison",
)
"""The reasons why a comparison line does not count.

Lines with the last two reasons could not be parsed, so they never became votes.
"""

UNREAD: dict[FailureReason, str] = {
    FailureReason.OWN_WORK: "own_work",
    FailureReason.UNKNOWN_HANDLE: "unknown_handle",
    FailureReason.SAME_HANDLE: "same_handle",
    FailureReason.NOT_A_COMPARISON: "not_a_comparison",
    FailureReason.NOT_DUE: "not_shown",
}
"""The parse failures of comparison lines, and the reason under which each is counted."""


@dataclass(frozen=True, slots=True)
class BallotBox:
    """The votes of one debate, and which agents could cast them.

    ``comparable``: for every turn that took place, the turns that its author could be asked to compare, in
    the order shown. ``votes``: as cast, in order. ``unread``: counts of lines that never became votes, by
    reason. ``critics``: the turns of criticism, which have no solution.
    """

    num_agents: int
    num_rounds: int
    judge_own: bool
    comparable: Mapping[TurnId, tuple[TurnId, ...]]
    votes: tuple[Vote, ...]
    unread: Mapping[str, int]
    critics: frozenset[TurnId] = frozenset()

    def solutions(self) -> tuple[TurnId, ...]:
        """Return the turns of solutions that took place, without the final ballot and criticism."""
        return tuple(
            turn for turn in self.comparable if turn.round < self.num_rounds and turn not in self.critics
        )

    def due(self) -> tuple[TurnId, ...]:
        """Return the turns in which comparisons were due because they were shown at least one pair."""
        return tuple(turn for turn, shown in self.comparable.items() if len(shown) >= 2)


def ballot_box(debate: Debate, *, judge_own: bool = True) -> BallotBox:
    """Return the ballot box of a finished debate, from the provenance of its turns.

    Votes on own work count only if they were asked for (``debate.protocol``) and are accepted
    (``judge_own``). ValueError for a turn that the protocol does not have.
    """
    protocol = debate.protocol
    own, size = judge_own and protocol.judge_own, (protocol.num_agents, protocol.num_rounds)
    _check_turns(debate)
    return BallotBox(
        num_agents=protocol.num_agents,
        num_rounds=protocol.num_rounds,
        judge_own=own,
        comparable={
            turn.id: _comparable(turn.compared or turn.shown, turn.id, own, *size)
            if holds_votes(protocol, turn.id.round)
            else ()
            for turn in debate.turns
        },
        votes=debate.votes,
        unread=_unread(debate.turns),
        critics=frozenset(turn.id for turn in debate.turns if holds_criticism(protocol, turn.id.round)),
    )


def _check_turns(debate: Debate) -> None:
    agents, rounds = debate.protocol.num_agents, debate.protocol.num_rounds
    for turn in debate.turns:
        if not (0 <= turn.id.agent < agents and 0 <= turn.id.round <= rounds):
            raise ValueError(f"{turn.id}: no such turn in a debate of {agents} agents and {rounds} rounds")


@lru_cache(maxsize=65_536)
def _comparable(
    seen: tuple[TurnId, ...], turn: TurnId, own: bool, num_agents: int, num_rounds: int
) -> tuple[TurnId, ...]:
    """Return the turns that the author could compare.

    In untrusted transcripts, shown turns that are not of an earlier round are ignored.

    Cached because there are few different arguments, which soon repeat.
    """
    before = min(turn.round, num_rounds)
    held = tuple(target for target in seen if 0 <= target.round < before and 0 <= target.agent < num_agents)
    return comparable(held, turn.agent, judge_own=own)


def _unread(turns: Sequence[Turn]) -> Counter[str]:
    reasons = (failure.reason for turn in turns for failure in turn.parsed.failures)
    return Counter(UNREAD[reason] for reason in reasons if reason in UNREAD)


def ballot_box_of_votes(
    num_agents: int, num_rounds: int, votes: Sequence[PlainVote], *, judge_own: bool, final_ballot: bool
) -> BallotBox:
    """Return the ballot box of plain votes. Every agent was shown every solution of the round before."""
    check_size(num_agents, num_rounds)
    last = num_rounds if final_ballot else num_rounds - 1
    return BallotBox(
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
    table: dict[TurnId, tuple[TurnId, ...]] = {}
    for round_ in range(last + 1):
        for agent in range(num_agents):
            shown = tuple(TurnId(other, round_ - 1) for other in range(num_agents) if own or other != agent)
            table[TurnId(agent, round_)] = shown if round_ else ()
    # A final ballot is held only if there is a pair to judge.
    has_turn = {turn: shown for turn, shown in table.items() if turn.round < num_rounds or len(shown) >= 2}
    return MappingProxyType(has_turn)


def valid_votes(box: BallotBox) -> tuple[Vote, ...]:
    """Return the votes that count, one for each (judge turn, unordered pair)."""
    return split_votes(box)[0]


def split_votes(box: BallotBox) -> tuple[tuple[Vote, ...], Counter[str]]:
    """Return the votes that count, and the counts of dropped lines by reason."""
    reasons = drop_reasons(box)
    dropped = Counter(box.unread)
    dropped.update(reason for reason in reasons if reason)
    return tuple(vote for vote, reason in zip(box.votes, reasons, strict=True) if not reason), dropped


def drop_reasons(box: BallotBox) -> list[str]:
    """Return the reason why each cast vote does not count, one of ``DROPPED``, or "" if it counts.

    >>> a, b, judge = TurnId(0, 0), TurnId(1, 0), TurnId(2, 1)
    >>> votes = (Vote(judge, a, b, "left"), Vote(judge, b, a, "right"), Vote(judge, a, a, "tie"))
    >>> drop_reasons(BallotBox(3, 1, False, {judge: (a, b)}, votes, {}))
    ['', 'duplicate', 'same_handle']
    """
    reasons = [_refusal(vote, box) for vote in box.votes]
    by_pair: dict[tuple[TurnId, Pair], list[int]] = {}
    for index, vote in enumerate(box.votes):
        if not reasons[index]:
            by_pair.setdefault((vote.judge, pair_of(vote)), []).append(index)
    for indices in by_pair.values():
        if len(indices) > 1:
            alike = len({verdict(box.votes[index]) for index in indices}) == 1
            for index in indices[1:] if alike else indices:
                reasons[index] = "duplicate" if alike else "contradictory"
    return reasons


def _refusal(vote: Vote, box: BallotBox) -> str:
    """Return the reason why the vote is invalid, or "".

    Own work is checked first: it is never in ``comparable``.
    """
    if vote.left == vote.right:
        return "same_handle"
    if not box.judge_own and vote.judge.agent in (vote.left.agent, vote.right.agent):
        return "own_work"
    seen = box.comparable.get(vote.judge, ())
    return "" if vote.left in seen and vote.right in seen else "not_shown"


def pair_of(vote: Vote) -> Pair:
    """Return the two sides in the order of their ids, whatever their order in the line."""
    return (vote.left, vote.right) if vote.left < vote.right else (vote.right, vote.left)


FOR_LEFT: dict[Outcome, int] = {"left": 1, "right": -1, "tie": 0}
"""The value of an outcome for the left side of a vote."""


def verdict(vote: Vote) -> int:
    """Return +1 if the first side of ``pair_of`` won, -1 if the second did, and 0 for a tie.

    >>> a, b, judge = TurnId(0, 0), TurnId(1, 0), TurnId(2, 1)
    >>> verdict(Vote(judge, a, b, "left")), verdict(Vote(judge, b, a, "left"))
    (1, -1)
    """
    return FOR_LEFT[vote.outcome] if vote.left < vote.right else -FOR_LEFT[vote.outcome]


def sign(number: int) -> int:
    """Return the sign of a number: -1, 0 or 1.

    >>> [sign(number) for number in (-3, 0, 2)]
    [-1, 0, 1]
    """
    return (number > 0) - (number < 0)


class DuePair(NamedTuple):
    """A pair that a judge could compare, in the order shown.

    ``verdict``: +1 if the first won, -1 if the second did, 0 for a tie, None without a valid vote.
    """

    judge: TurnId
    first: TurnId
    second: TurnId
    verdict: int | None


def due_pairs(box: BallotBox, votes: Sequence[Vote]) -> list[DuePair]:
    """Return every pair that a judge could compare. ``votes``: the valid votes of the ballot box.

    >>> a, b, judge = TurnId(0, 0), TurnId(1, 0), TurnId(2, 1)
    >>> vote = Vote(judge, a, b, "left")
    >>> [pair] = due_pairs(BallotBox(3, 1, False, {judge: (b, a)}, (vote,), {}), [vote])
    >>> (pair.first, pair.second, pair.verdict) == (b, a, -1)
    True
    """
    cast = {(vote.judge, *pair_of(vote)): verdict(vote) for vote in votes}
    pairs: list[DuePair] = []
    for judge, shown in box.comparable.items():
        for first, second in combinations(shown, 2):
            swapped = second < first
            said = cast.get((judge, second, first) if swapped else (judge, first, second))
            pairs.append(DuePair(judge, first, second, said if said is None or not swapped else -said))
    return pairs
