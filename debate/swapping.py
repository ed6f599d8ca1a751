"""Second ballots: every judge sees the last round's solutions again, in reverse order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from debate.compression import without_tokens
from debate.policy import speaker_at
from debate.prompting.fitting import context_budget
from debate.prompting.prompt import Past, Prompt, agent_prompt
from debate.prompting.seating import Seating
from debate.prompting.shown import asks_pairs
from debate.types import Policy, Swapped, Turn, TurnId, Vote


def turned_round(seating: Seating) -> Seating:
    """Return the seating of a debate with every viewer's order reversed."""
    return replace(seating, orders=tuple(order[::-1] for order in seating.orders))


def ballot_prompts(
    turned: Seating, past: Past, ballots: Sequence[Turn], policy: Policy
) -> dict[TurnId, Prompt]:
    """Return the prompts for a second ballot of each turn. ``past``: the entries of all rounds held."""
    config, prompts = turned.config, dict[TurnId, Prompt]()
    for ballot in ballots:
        agent, round_ = ballot.id
        pair = [turn.agent for turn in ballot.compared] if asks_pairs(config, round_) else None
        budget = context_budget(speaker_at(policy, config.seat(agent)), config)
        prompts[ballot.id] = agent_prompt(turned, past[:round_], agent, round_, budget, pair=pair)
    return prompts


def second_ballot(turn: Turn, votes: tuple[Vote, ...]) -> Swapped:
    """Return the stored form of a second ballot."""
    return Swapped(turn.id, turn.compared, without_tokens(turn.completion), votes)
