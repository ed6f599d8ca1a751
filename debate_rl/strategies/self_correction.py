"""Self-correction in isolation: each agent revises its own solution, and reads nobody else's."""

from __future__ import annotations

from debate import DebateConfig
from debate.config import CompressionConfig, SummaryConfig
from debate.prompting.rendering import Entry
from debate.prompting.seating import seat_debate
from debate.prompting.shown import holds_solutions
from debate.seeds import derive_seed
from debate_rl.strategies.separate import Reviser, ending, majority_of, revised
from debate_rl.strategies.types import Answered, Asked
from debate_rl.strategies.work import Work, need


async def self_correction(asked: Asked) -> Answered:
    """Return the most frequent last answer of agents that each revised their own solution.

    As many agents, with the same personas, write as many solutions as in a debate, fewer too where they agree
    (``debate.min_rounds``); what a debate adds to it is the work of others [the isolated arm of arXiv
    2605.00914].
    """
    need_revisions(asked)
    config = asked.protocol.of_level(asked.problem.level)
    work, revisers = Work(asked), list[Reviser]()
    for agent in range(config.num_agents):
        seed = derive_seed(asked.seed, "alone", agent)
        revisers.append(Reviser(seat_debate(asked.problem, alone(config, agent), seed), 0, seed))
    rounds = solution_rounds(config)
    said = await revised(work, revisers, rounds, _its_own, ending(asked, config))
    return majority_of(work, said, settled=len(said) < rounds)


def _its_own(_: Reviser, __: int, own: Entry) -> list[Entry]:
    return [own]


def solution_rounds(config: DebateConfig) -> int:
    """Return how many solutions an agent writes in a debate.

    >>> [solution_rounds(DebateConfig(protocol=name, num_rounds=3)) for name in ("debate", "critique")]
    [3, 2]
    """
    return sum(holds_solutions(config, round_) for round_ in range(config.num_rounds))


def need_revisions(asked: Asked) -> None:
    """ValueError where nothing is revised, or the budget of tokens is too small for all solutions."""
    config = asked.protocol.of_level(asked.problem.level)
    rounds = solution_rounds(config)
    if rounds < 2:
        raise ValueError(
            f"--strategy self_correction: debate.num_rounds = {config.num_rounds} has nobody revise "
            "anything; use majority"
        )
    need(asked, config.num_agents * rounds, f"{config.num_agents} agents with {rounds} solutions each")


def alone(config: DebateConfig, agent: int) -> DebateConfig:
    """Return the protocol of one agent of a debate that reads nobody else."""
    return config.model_copy(
        update={
            "protocol": "debate",
            "num_agents": 1,
            "num_rounds": solution_rounds(config),
            "min_rounds": None,
            "by_level": (),
            "seats": (),
            "ask_swapped": False,
            "final_ballot": False,
            "history_rounds": config.history_rounds or 1,
            "conversation": False,
            "personas": config.agent_personas[agent : agent + 1],
            "summary": SummaryConfig(),
            "compress": CompressionConfig(),
        }
    )
