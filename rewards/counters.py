"""What was counted on the way: every name in every debate, so that columns never appear and vanish."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from debate.types import Vote
from rewards.format import fined_turns
from rewards.poll import Poll
from rewards.types import Correct, Truth
from rewards.votes import DROPPED

_GRADES: dict[Truth, str] = {True: "correct", False: "wrong", "missing": "missing", None: "ungraded"}


def count_all(
    poll: Poll, votes: Sequence[Vote], dropped: Mapping[str, int], *, correct: Correct, judged: int
) -> tuple[tuple[str, int], ...]:
    """Return the sorted counters of one debate.

    ``votes/cast`` = ``votes/valid`` + every dropped reason, in lines; ``votes/tie`` are among the valid.
    ``judge/due`` turns owed comparisons; ``judge/signal`` have a judge reward, ``format/fined`` a fine.
    ``truth/*`` count solution turns by grade; all 0 for an open problem.
    """
    ties = sum(vote.outcome == "tie" for vote in votes)
    counts = {f"votes/{reason}": dropped.get(reason, 0) for reason in DROPPED}
    counts |= {"votes/cast": len(votes) + sum(counts.values()), "votes/valid": len(votes), "votes/tie": ties}
    counts |= {"judge/due": len(poll.due()), "judge/signal": judged}
    counts |= {"format/fined": len(fined_turns(poll, votes))} | _grades(poll, correct)
    return tuple(sorted(counts.items()))


def _grades(poll: Poll, correct: Correct) -> dict[str, int]:
    seen: Counter[str] = Counter()
    if correct is not None:
        seen.update(_GRADES[correct[turn.agent][turn.round]] for turn in poll.solutions())
    return {f"truth/{name}": seen[name] for name in _GRADES.values()}
