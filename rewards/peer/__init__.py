"""Peer rules: valid votes in, one score for each turn that received any.

A rule is a function ``rule(votes, *, alpha)`` returning ``{turn: score}``; ``alpha`` is the strength of the
regularisation, for those that have one. Your own is named in the configuration as "module:function".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Protocol, cast

from debate.settings import require_call
from debate.types import TurnId, Vote
from rewards.peer.bradley_terry import bradley_terry
from rewards.peer.copeland import copeland
from rewards.peer.margin import margin


class PeerRule(Protocol):
    """Scores turns by the votes they received; a turn without votes is not in the answer."""

    def __call__(self, votes: Sequence[Vote], *, alpha: float) -> Mapping[TurnId, float]:
        """Return the scores; ``votes`` hold at most one vote for each judge turn and unordered pair."""
        ...


PEER_RULES: dict[str, PeerRule] = {"margin": margin, "copeland": copeland, "bradley_terry": bradley_terry}


def peer_rule(name: str) -> PeerRule:
    """Return the rule of that name, or the function that a "module:function" path names.

    >>> peer_rule("margin") is margin
    True
    """
    if name in PEER_RULES:
        return PEER_RULES[name]
    module, colon, attribute = name.partition(":")
    if not colon:
        raise ValueError(f'unknown peer rule {name!r}; valid: {", ".join(PEER_RULES)}, or "module:function"')
    return _own_rule(module, attribute)


def _own_rule(module: str, attribute: str) -> PeerRule:
    place = f"peer rule '{module}:{attribute}'"
    try:
        rule: object = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"{place} cannot be imported: {error}") from error
    if not callable(rule):
        raise ValueError(f"{place} is not a function, but {type(rule).__name__}")
    require_call(rule, place, (), alpha=0.0)
    return cast(PeerRule, rule)


__all__ = ["PEER_RULES", "PeerRule", "bradley_terry", "copeland", "margin", "peer_rule"]
