"""The seating of a debate: each agent's persona and label, and the order in which texts are shown.

Labels and orders are drawn anew for each debate, from its seed, so neither reveals an agent's identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

from debate.config import DebateConfig, check_label
from debate.personas import Persona
from debate.programs import public_part
from debate.prompting.rendering import Entry, problem_text, render_entry
from debate.prompting.shown import CRITIC, PROPOSER, public_turn
from debate.prompting.texts import PromptFileError, PromptTexts, load_prompts
from debate.seeds import derive_seed
from debate.types import Compression, Problem, Span, Turn

LETTERS = "ACDEFGHJKLMNPQRTUVWXY"  # without I and O, B, S and Z, which look like digits
DIGITS = "23456789"  # without 0 and 1, which look like letters


@dataclass(frozen=True, slots=True)
class Seating:
    """The fixed parts of a debate: the agents' personas and handles, and the order of the texts shown."""

    problem: Problem
    config: DebateConfig
    texts: PromptTexts
    personas: tuple[Persona, ...]  # (N,)
    handles: tuple[str, ...]  # (N,)
    orders: tuple[tuple[int, ...], ...]  # (N, N): for each viewer, the agents in the order shown
    opening: str  # the rendered problem
    consultant: int | None = None  # in a consultancy, the only agent whose whole solution the judges read


def seat_debate(
    problem: Problem, config: DebateConfig, seed: int, *, personas: Sequence[Persona] | None = None
) -> Seating:
    """Return the seating of one debate: personas by agent, and handles and orders drawn from the seed.

    ``personas``: the personas of a stored debate, (N,), so that none is imported.
    """
    size, texts = config.num_agents, prompts_of(config)
    orders = show_orders(size, seed, order=config.order)
    labels = derive_seed(seed, "handles")
    return Seating(
        problem,
        config,
        texts,
        config.agent_personas if personas is None else tuple(personas),
        draw_handles(size, labels, pool=config.handles, order=orders[0], avoid=problem.question),
        orders,
        problem_text(texts, problem),
        _consultant(config, seed),
    )


def _consultant(config: DebateConfig, seed: int) -> int | None:
    """Return which of the two arguing agents is the consultant.

    A coin decides, so either answer may be defended.
    """
    if config.protocol != "consultancy":
        return None
    return Random(derive_seed(seed, "consultant")).choice((PROPOSER, CRITIC))


def public_entries(
    seating: Seating, turns: Sequence[Turn], compressions: Sequence[Compression]
) -> list[Entry]:
    """Return what others may see of the turns of a round, (N,), with the short versions of long solutions."""
    texts, short = seating.texts, {one.turn: _claimed(seating, one.text) for one in compressions}
    public = [public_turn(turn, strip=texts.strip) for turn in turns]
    return [
        render_entry(texts, replace(one, solution=short[one.id]) if one.id in short else one)
        for one in public
    ]


def _claimed(seating: Seating, short: str) -> str:
    """Return a shortened solution with outputs labelled as claimed, because no program wrote them."""
    return short if seating.config.tools == "none" else public_part(short, Span(0, len(short)), ())


def prompts_of(config: DebateConfig) -> PromptTexts:
    """Return the prompt set of a debate.

    PromptFileError if a prompt family for one agent would serve several.

    >>> prompts_of(DebateConfig(num_agents=1, num_rounds=1, prompts="qa")).alone
    True
    """
    texts = load_prompts(config.prompts)
    if texts.alone and (config.num_agents, config.num_rounds) != (1, 1):
        raise PromptFileError(
            f"debate.prompts = {config.prompts!r} is for one agent in one round, but this debate has "
            f"num_agents = {config.num_agents} and num_rounds = {config.num_rounds}; set both to 1, or "
            "choose a set with the pieces of a debate"
        )
    return texts


def draw_handles(
    num_agents: int,
    seed: int,
    *,
    pool: Sequence[str] | None = None,
    order: Sequence[int] | None = None,
    avoid: str = "",
) -> tuple[str, ...]:
    """Return one label per agent, (N,): a letter and a digit. No letter repeats for up to 21 agents.

    Labels that occur in the text ``avoid`` (the question) are drawn only if no others are left. With a
    ``pool`` of your own, labels are drawn from the pool, and assigned in the pool's order to the agents in
    ``order``, (N,), the order in which texts are shown. So a very small model always reads the labels in one
    order, while the agents behind them change from debate to debate. ValueError if a label
    does not consist of words of letters and digits.

    >>> draw_handles(3, 7) == draw_handles(3, 7)
    True
    >>> draw_handles(2, 7, pool=("K7", "Q2"), order=(1, 0))
    ('Q2', 'K7')
    """
    rng = Random(seed)
    if pool is not None:
        return _dealt(_distinct(pool), rng, order or range(num_agents))
    taken = avoid.upper()
    letters = rng.sample(LETTERS, len(LETTERS))
    labels: list[str] = []
    for agent in range(num_agents):
        letter = letters[agent % len(letters)]
        free = [letter + digit for digit in rng.sample(DIGITS, len(DIGITS)) if letter + digit not in labels]
        labels.append(next((label for label in free if label not in taken), free[0]))
    return tuple(labels)


def _dealt(labels: Sequence[str], rng: Random, order: Sequence[int]) -> tuple[str, ...]:
    """Assign drawn labels, in the order of the pool, to the agents in the given order."""
    chosen = sorted(rng.sample(range(len(labels)), len(order)))
    by_agent = dict(zip(order, (labels[index] for index in chosen), strict=True))
    return tuple(by_agent[agent] for agent in range(len(order)))


def _distinct(pool: Sequence[str]) -> list[str]:
    """Return the labels of the pool without duplicates, ignoring case; the first spelling is kept."""
    for label in pool:
        check_label(label)
    return list({label.upper(): label for label in reversed(pool)}.values())[::-1]


def show_orders(
    num_agents: int, seed: int, *, order: Literal["per_debate", "per_viewer"]
) -> tuple[tuple[int, ...], ...]:
    """Return for each viewer the agents in the order in which their texts are shown, (N, N).

    >>> len(set(show_orders(4, 1, order="per_debate")))
    1
    """
    if order == "per_debate":
        return (_shuffled(num_agents, derive_seed(seed, "order")),) * num_agents
    return tuple(_shuffled(num_agents, derive_seed(seed, "order", agent)) for agent in range(num_agents))


def _shuffled(num_agents: int, seed: int) -> tuple[int, ...]:
    return tuple(Random(seed).sample(range(num_agents), num_agents))
