"""Which votes count. Everything that scores votes reads the same valid ones.

A vote is valid when the judge was shown both sides and neither is its own; a judge has one vote for each
unordered pair: identical repeats collapse, contradictions void both. What is dropped is counted by reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

from debate.types import TurnId, Vote
from rewards.poll import Poll

Pair: TypeAlias = tuple[TurnId, TurnId]

DROPPED = ("own", "not_shown", "same_handle", "duplicate", "contradictory", "unknown_handle", "malformed")
"""Why a comparison line does not count. The last two never became votes: nobody knows what they name."""


def valid_votes(poll: Poll) -> tuple[tuple[Vote, ...], Counter[str]]:
    """Return the votes that count, one for each (judge turn, unordered pair), and the dropped by reason."""
    reasons = drop_reasons(poll)
    dropped = Counter(poll.unread)
    dropped.update(reason for reason in reasons if reason)
    return tuple(vote for vote, reason in zip(poll.votes, reasons, strict=True) if not reason), dropped


def drop_reasons(poll: Poll) -> list[str]:
    """Return for each vote as cast why it does not count, one of ``DROPPED``; "" where it does.

    >>> a, b, judge = TurnId(0, 0), TurnId(1, 0), TurnId(2, 1)
    >>> votes = (Vote(judge, a, b, "left"), Vote(judge, b, a, "right"), Vote(judge, a, a, "tie"))
    >>> drop_reasons(Poll(3, 1, False, {judge: (a, b)}, votes, {}))
    ['', 'duplicate', 'same_handle']
    """
    reasons = [_refusal(vote, poll) for vote in poll.votes]
    boxes: dict[tuple[TurnId, Pair], list[int]] = {}
    for place, vote in enumerate(poll.votes):
        if not reasons[place]:
            boxes.setdefault((vote.judge, pair_of(vote)), []).append(place)
    for box in boxes.values():
        if len(box) > 1:
            alike = len({verdict(poll.votes[place]) for place in box}) == 1
            for place in box[1:] if alike else box:
                reasons[place] = "duplicate" if alike else "contradictory"
    return reasons


def _refusal(vote: Vote, poll: Poll) -> str:
    """Return why the vote does not count, or "". Own work is named first: it is never in ``comparable``."""
    if vote.left == vote.right:
        return "same_handle"
    if not poll.judge_own and vote.judge.agent in (vote.left.agent, vote.right.agent):
        return "own"
    seen = poll.comparable.get(vote.judge, ())
    return "" if vote.left in seen and vote.right in seen else "not_shown"


def pair_of(vote: Vote) -> Pair:
    """Return the two sides in the order of their ids, however the line was written."""
    return (vote.left, vote.right) if vote.left < vote.right else (vote.right, vote.left)


def verdict(vote: Vote) -> int:
    """Return +1 when the first side of ``pair_of`` won, -1 when the second did, 0 for a tie.

    >>> a, b, judge = TurnId(0, 0), TurnId(1, 0), TurnId(2, 1)
    >>> verdict(Vote(judge, a, b, "left")), verdict(Vote(judge, b, a, "left"))
    (1, -1)
    """
    if vote.outcome == "tie":
        return 0
    return 1 if (vote.outcome == "left") == (vote.left < vote.right) else -1


def net_votes(votes: Sequence[Vote]) -> dict[Pair, int]:
    """Return for each pair the votes for its first side minus those for its second; ties count 0.

    >>> a, b = TurnId(0, 0), TurnId(1, 0)
    >>> net_votes([Vote(TurnId(2, 1), a, b, "left"), Vote(TurnId(3, 1), b, a, "tie")]) == {(a, b): 1}
    True
    """
    net: dict[Pair, int] = {}
    for vote in votes:
        pair = pair_of(vote)
        net[pair] = net.get(pair, 0) + verdict(vote)
    return net


def sign(number: int) -> int:
    """Return -1, 0 or 1.

    >>> [sign(number) for number in (-3, 0, 2)]
    [-1, 0, 1]
    """
    return (number > 0) - (number < 0)
