"""How well each kind of seat solves and judges, where not all of them learn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from debate.types import Debate
from debate_rl.metrics.means import mean_of
from rewards import Correct, ballot_box, valid_votes
from rewards.judging import decidable_votes
from rewards.truth import is_right
from rewards.votes import due_pairs


def seat_metrics(debates: Sequence[Debate], correct: Sequence[Correct]) -> dict[str, float]:
    """Return the accuracy of each kind of seat, of solutions and of votes; nothing where all learn."""
    values: dict[str, list[bool]] = defaultdict(list)
    for debate, table in zip(debates, correct, strict=True):
        for name, right in seat_figures(debate, table):
            values[name].append(right)
    return {name: mean for key, found in sorted(values.items()) for name, mean in mean_of(key, found).items()}


def seat_figures(debate: Debate, correct: Correct) -> Iterator[tuple[str, bool]]:
    """Yield whether each graded solution of the last round is right, and each vote on a decidable pair."""
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
