"""The table of strategies: by name the function, what it costs, and what it needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from math import ceil, log2
from types import MappingProxyType
from typing import Literal

from debate import DebateConfig
from debate.prompting.shown import rounds_held
from debate.settings import did_you_mean
from debate_rl.strategies.debate import check_debate, debate_majority, debate_winner
from debate_rl.strategies.revising import check_revisions, self_correction
from debate_rl.strategies.selecting import LONGEST, check_list, genselect
from debate_rl.strategies.tournament import best_of_n, check_ballots, swiss
from debate_rl.strategies.voting import check_solutions, greedy, logprob_vote, majority
from debate_rl.strategies.work import Answered, Asked


@dataclass(frozen=True, slots=True)
class Strategy:
    """A way to one answer; ``run`` is called within a seat of the policy.

    ``speakers``: who writes solutions: one agent once, one agent as often as there are ``samples``, or the
    ``agents`` of the protocol in all rounds. ``check`` raises ValueError, before anything is sampled, for
    what the strategy cannot do: protocol, judge, budget. ``comparisons``: ballots or selections of k
    solutions at most; None where no judge compares. ``tools``: whether solutions run programs.
    """

    run: Callable[[Asked], Awaitable[Answered]]
    speakers: Literal["one", "samples", "agents"]
    check: Callable[[Asked], None] = check_solutions
    comparisons: Callable[[int], int] | None = None
    tools: bool = False

    @property
    def compares(self) -> bool:
        """Whether a judge compares solutions."""
        return self.comparisons is not None

    def replies(self, samples: int, protocol: DebateConfig) -> int:
        """Return how many replies it asks for of a problem, at most."""
        agents = protocol.num_agents * rounds_held(protocol)
        solutions = {"one": 1, "samples": samples, "agents": agents}[self.speakers]
        return solutions + (self.comparisons(samples) if self.comparisons else 0)


def _swiss_ballots(k: int) -> int:
    return k // 2 * ceil(log2(max(k, 2)))


STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {
        "greedy": Strategy(greedy, "one"),
        "majority": Strategy(majority, "samples"),
        "logprob_vote": Strategy(logprob_vote, "samples"),
        "best_of_n": Strategy(best_of_n, "samples", check_ballots, lambda k: k),
        "genselect": Strategy(genselect, "samples", check_list, lambda k: ceil(k / (LONGEST - 1))),
        "swiss": Strategy(swiss, "samples", check_ballots, _swiss_ballots),
        "self_correction": Strategy(self_correction, "agents", check_revisions),
        "debate_winner": Strategy(debate_winner, "agents", check_debate),
        "debate_majority": Strategy(debate_majority, "agents", check_debate),
        "tir": Strategy(greedy, "one", tools=True),
        "tir_majority": Strategy(majority, "samples", tools=True),
    }
)
"""What each answers: docs/solve.md. Tool-integrated reasoning (tir) after ToRA [arXiv 2309.17452]."""


def strategy_named(name: str) -> Strategy:
    """Return the strategy of a name; ValueError with the nearest one where there is none."""
    if name not in STRATEGIES:
        valid = ", ".join(STRATEGIES)
        raise ValueError(
            f"--strategy {name}: is not known; {did_you_mean(name, STRATEGIES, f'valid: {valid}')}"
        )
    return STRATEGIES[name]


def check_asked(name: str, asked: Asked) -> None:
    """ValueError, before anything is sampled, for what a strategy cannot do: protocol, judge, budget."""
    if asked.samples < 1:
        raise ValueError(f"--samples {asked.samples}: needs 1 or more")
    strategy_named(name).check(asked)
