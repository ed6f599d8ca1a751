"""Turn the votes received into scores. The best score wins the debate.

A peer rule is a function ``rule(votes, *, alpha)`` that returns ``{turn: score}``. ``alpha`` is the strength
of the regularisation, for rules that have one. To use your own rule, name it in the configuration as
"module:function".
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from numbers import Real
from typing import Protocol, cast

from debate.settings import load_function, require_call
from debate.types import TurnId, Vote
from rewards.bradley_terry import bradley_terry
from rewards.graph import results_by_opponent, total
from rewards.types import Stream, stream_of
from rewards.votes import sign


class PeerRule(Protocol):
    """Scores turns by the votes they received. A turn without votes has no entry in the result."""

    def __call__(self, votes: Sequence[Vote], *, alpha: float) -> Mapping[TurnId, float]:
        """Return the scores. ``votes`` has at most one vote for each judge turn and unordered pair."""
        ...


def margin(votes: Sequence[Vote], *, alpha: float = 0.0) -> dict[TurnId, float]:
    """Return (W - L) / (W + L + T) in [-1, 1] for each turn that received votes. ``alpha`` is not used.

    This is the soft vote ratio of debate RL, and the default.

    >>> a, b, c = (TurnId(agent, 0) for agent in range(3))
    >>> judge = TurnId(3, 1)
    >>> scores = margin([Vote(judge, a, b, "left"), Vote(judge, b, c, "tie")])
    >>> scores[a], scores[b], scores[c]
    (1.0, -0.5, 0.0)
    """
    totals = {turn: total(row) for turn, row in results_by_opponent(votes).items()}
    return {turn: results.net / sum(results) for turn, results in totals.items()}


def copeland(votes: Sequence[Vote], *, alpha: float = 0.0) -> dict[TurnId, float]:
    """Return the mean sign of a turn's pairwise margins, in [-1, 1], over the opponents it was compared with.

    Each pair counts once, however many judges voted on it. A pair whose votes balance, or are all ties, gives
    both sides 0 [Copeland 1951]. ``alpha`` is not used.

    >>> a, b, c = (TurnId(agent, 0) for agent in range(3))
    >>> scores = copeland([Vote(TurnId(3, 1), a, b, "left"), Vote(TurnId(4, 1), a, c, "tie")])
    >>> scores[a], scores[b], scores[c]
    (0.5, -1.0, 0.0)
    """
    table = results_by_opponent(votes)
    return {turn: sum(sign(cell.net) for cell in row.values()) / len(row) for turn, row in table.items()}


def win_rate(votes: Sequence[Vote], *, alpha: float = 0.0) -> dict[TurnId, float]:
    """Return (W + T / 2) / (W + L + T) in [0, 1] for each turn that received votes. ``alpha`` is not used.

    This is the fraction of wins, with a tie as half a win [Borda's count, over the pairs that were judged].
    It equals half the margin plus one half. Its mean is about 1/2 instead of 0, so it needs a baseline.

    >>> a, b, c = (TurnId(agent, 0) for agent in range(3))
    >>> judge = TurnId(3, 1)
    >>> scores = win_rate([Vote(judge, a, b, "left"), Vote(judge, b, c, "tie")])
    >>> scores[a], scores[b], scores[c]
    (1.0, 0.25, 0.5)
    """
    return {turn: (score + 1) / 2 for turn, score in margin(votes).items()}


def net_wins(votes: Sequence[Vote], *, alpha: float = 0.0) -> dict[TurnId, float]:
    """Return W - L for each turn that received votes, in [-V, V] for V votes. ``alpha`` is not used.

    This is the raw count of debate RL, not divided by the number of votes. So a turn judged more often has
    more weight, and the size of the update grows with the number of agents.

    >>> a, b = TurnId(0, 0), TurnId(1, 0)
    >>> net_wins([Vote(TurnId(2, 1), a, b, "left"), Vote(TurnId(3, 1), a, b, "left")])[b]
    -2.0
    """
    return {turn: float(total(row).net) for turn, row in results_by_opponent(votes).items()}


PEER_RULES: dict[str, PeerRule] = {
    "margin": margin,
    "copeland": copeland,
    "bradley_terry": bradley_terry,
    "win_rate": win_rate,
    "net_wins": net_wins,
}


def peer_rule(name: str) -> PeerRule:
    """Return the rule with this name, or the function at a "module:function" path.

    >>> peer_rule("margin") is margin
    True
    """
    if name in PEER_RULES:
        return PEER_RULES[name]
    if ":" not in name:
        raise ValueError(f'unknown peer rule {name!r}; valid: {", ".join(PEER_RULES)}, or "module:function"')
    rule = load_function(name, key="rewards.peer")
    require_call(rule, f"rewards.peer: {name!r}", (), alpha=0.0)
    return cast(PeerRule, rule)


def peer_scores(name: str, votes: Sequence[Vote], *, alpha: float) -> Mapping[TurnId, float]:
    """Return a score for each turn that valid votes name, by the rule with this name.

    ValueError if a custom rule returns anything else. A score may be infinite or NaN.
    """
    scores = peer_rule(name)(votes, alpha=alpha)
    if name not in PEER_RULES:
        _check_scores(
            f"rewards.peer: {name!r}", scores, {turn for vote in votes for turn in (vote.left, vote.right)}
        )
    return scores


def _check_scores(rule: str, scores: object, turns: Container[object]) -> None:
    if not isinstance(scores, Mapping):
        raise ValueError(f"{rule} returned a {type(scores).__name__}, not a dict of scores by turn")
    for turn, score in cast("Mapping[object, object]", scores).items():
        if turn not in turns:
            raise ValueError(f"{rule} gave a score to {turn!r}, which no valid vote names")
        if isinstance(score, bool) or not isinstance(score, Real):
            raise ValueError(f"{rule} gave {turn!r} the score {score!r}, which is not a number")


def margins(votes: Sequence[Vote], num_agents: int, num_rounds: int) -> Stream:
    """Return the margins (N, R), which replace the peer stream of a debate that was not scored."""
    return stream_of(margin(votes), num_agents, num_rounds)
