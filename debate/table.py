"""The seating of one debate: personas, labels, and the order in which texts are shown, all from the seed."""

from __future__ import annotations

from dataclasses import dataclass

from debate.config import DebateConfig
from debate.handles import draw_handles, show_orders
from debate.personas import seat_personas
from debate.prompts import PromptTexts, load_prompts, problem_text
from debate.seeds import derive_seed
from debate.types import Persona, Problem


@dataclass(frozen=True, slots=True)
class Table:
    """What is fixed for a debate: who sits where, under which label, and in which order texts are shown."""

    problem: Problem
    config: DebateConfig
    texts: PromptTexts
    personas: tuple[Persona, ...]  # (N,)
    handles: tuple[str, ...]  # (N,)
    orders: tuple[tuple[int, ...], ...]  # (N, N): for each viewer the seats in the order shown
    opening: str  # the rendered problem


def set_table(problem: Problem, config: DebateConfig, seed: int) -> Table:
    """Return the seating of one debate: personas by seat, handles and orders drawn from the seed."""
    size, texts = config.num_agents, load_prompts(config.prompts)
    orders = show_orders(size, seed, order=config.order)
    labels = derive_seed(seed, "handles")
    return Table(
        problem,
        config,
        texts,
        seat_personas(config.persona_pool, size),
        draw_handles(size, labels, pool=config.handles, order=orders[0], avoid=problem.question),
        orders,
        problem_text(texts, problem),
    )
