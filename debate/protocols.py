"""What the protocols with roles, and ballots by Swiss pairing, require of a debate's other settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from debate.config import DebateConfig


GAMES = ("zero_sum", "consultancy")
"""Protocols with a proposer and a critic, who argue, and judges."""


class Need(NamedTuple):
    """A requirement: a setting's key, its value, whether the value is possible, and what is needed."""

    key: str
    value: object
    met: bool
    needed: str


def refuse_impossible(config: DebateConfig) -> None:
    """Raise ValueError for the first setting that does not fit the protocol of a debate or its ballot."""
    asked = (f'protocol = "{config.protocol}"', _needs), ('ballot = "swiss"', _needs_of_pairs)
    for what, needs in asked:
        for need in needs(config):
            if not need.met:
                raise ValueError(f"{need.key}: {need.value}, but debate.{what} needs {need.needed}")


def _needs(config: DebateConfig) -> Iterator[Need]:
    if config.protocol == "debate":
        return
    game, agents, rounds = config.protocol in GAMES, config.num_agents, config.num_rounds
    if game:
        yield Need("num_agents", agents, agents >= 3, "3 or more: a proposer, a critic, and judges")
        yield Need("num_rounds", rounds, rounds == 1, "1: the critic reads the proposal within it")
        yield Need("judge_own", config.judge_own, not config.judge_own, "false: arguing agents do not judge")
        long = config.compress.over
        yield Need("compress.over", long, long is None, "none: solutions are shown in full")
    else:
        turns = "3, 5, ...: solutions, then criticism and revisions alternately"
        yield Need("num_agents", agents, agents >= 2, "2 or more: nobody else can criticise")
        yield Need("num_rounds", rounds, rounds >= 3 and rounds % 2 == 1, turns)
    yield Need("final_ballot", config.final_ballot, config.final_ballot, "true: it decides the outcome")
    shown, summed = config.history_rounds, config.summary.enabled
    yield Need("history_rounds", shown, shown != 0, "1 or more, or -1: critics read solutions")
    yield Need("conversation", config.conversation, not config.conversation, "false")
    why = "false: agents read the solutions and criticism themselves"
    yield Need("summary.enabled", summed, not summed, why)


def _needs_of_pairs(config: DebateConfig) -> Iterator[Need]:
    if config.ballot != "swiss" or not config.final_ballot:
        return
    shown, summed = config.history_rounds, config.summary.enabled
    yield Need("protocol", config.protocol, config.protocol not in GAMES, "another: a game has one pair")
    yield Need("num_agents", config.num_agents, config.num_agents >= 3, "3 or more: a pair and its judge")
    yield Need("judge_own", config.judge_own, not config.judge_own, "false: judges get pairs of others")
    yield Need("history_rounds", shown, shown != 0, "1 or more, or -1: judges read solutions")
    yield Need("conversation", config.conversation, not config.conversation, "false: judges read one pair")
    yield Need("summary.enabled", summed, not summed, "false: judges read the pair itself")
