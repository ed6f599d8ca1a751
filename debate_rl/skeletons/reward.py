"""A rule that scores solutions by votes: PYTHONPATH=. debate train RECIPE rewards.peer=skeleton:skeleton"""

from collections import Counter


def skeleton(votes, *, alpha):
    """Return the share of its comparisons that each solution won, in [0, 1]. A tie is not a win.

    ``votes``: valid votes, at most one for each judge and pair. ``alpha``: rewards.bradley_terry_alpha.
    """
    seen, won = Counter(), Counter()
    for vote in votes:
        seen.update((vote.left, vote.right))
        if vote.outcome != "tie":
            won[vote.left if vote.outcome == "left" else vote.right] += 1
    return {turn: won[turn] / seen[turn] for turn in seen}
