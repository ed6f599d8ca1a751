"""The rungs of the ladder: strategies, and the controls that no one would use to solve a problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from debate import DebateConfig, Policy, Problem
from debate_rl.ladder.noise import no_noise, noise_debates, too_few
from debate_rl.strategies.catalog import STRATEGIES, check_asked
from debate_rl.strategies.solving import Refused, SolvePlan, Told, solve_all
from debate_rl.strategies.types import Answered, Judge

Climb: TypeAlias = Callable[
    [Sequence[Problem], SolvePlan, Policy, Judge | None, Told], list[Answered | Refused]
]
"""Returns the answers to problems; the plan's strategy is that of the rung."""


@dataclass(frozen=True, slots=True)
class Rung:
    """One way to an answer, and what it is in words.

    ``strategy``: the one that it is, or the one that it changes. ``adapt``: the plan as the rung needs it.
    ``refuses``: why a protocol does not allow it, None where it does; ``lacks``: why the problems do not.
    """

    says: str
    strategy: str
    climb: Climb
    adapt: Callable[[SolvePlan], SolvePlan] = lambda plan: plan
    refuses: Callable[[DebateConfig], str | None] = lambda _: None
    lacks: Callable[[DebateConfig, Sequence[Problem]], str | None] = lambda *_: None

    def plan(self, plan: SolvePlan) -> SolvePlan:
        """Return the plan of the rung."""
        return self.adapt(replace(plan, strategy=self.strategy))

    def why_not(
        self, plan: SolvePlan, problems: Sequence[Problem], judge: DebateConfig | None = None
    ) -> str | None:
        """Return why it cannot be asked these problems under the ladder's plan; None where it can.

        ``judge``: the protocol of another model that compares.
        """
        for problem in {problem.level: problem for problem in problems}.values():
            try:
                check_asked(self.strategy, self.plan(plan).sketched(problem, judge))
            except ValueError as error:
                return str(error).removeprefix(f"--strategy {self.strategy}: ")
        refused = next(filter(None, map(self.refuses, plan.protocol.protocols())), None)
        return refused or self.lacks(plan.protocol, problems)


def _solved(
    problems: Sequence[Problem], plan: SolvePlan, policy: Policy, judge: Judge | None, told: Told
) -> list[Answered | Refused]:
    return solve_all(problems, plan, policy, judge=judge, told=told)


def _noisy(
    problems: Sequence[Problem], plan: SolvePlan, policy: Policy, _: Judge | None, told: Told
) -> list[Answered | Refused]:
    return noise_debates(problems, plan, policy, told=told)


def one_persona(protocol: DebateConfig) -> DebateConfig:
    """Return the protocol with the first persona's instructions for all; each agent keeps its temperature.

    >>> personas = one_persona(DebateConfig(num_agents=2)).agent_personas
    >>> personas[0].instructions == personas[1].instructions
    True
    """
    first, *_ = seated = protocol.agent_personas
    same = tuple(replace(first, temperature=persona.temperature) for persona in seated)
    return protocol.model_copy(update={"personas": same, "temperature": None})


def _one_kind(protocol: DebateConfig) -> str | None:
    kinds = {persona.instructions for persona in protocol.agent_personas}
    return "all personas have the same instructions" if len(kinds) == 1 else None


def _strategy(name: str) -> Rung:
    return Rung(STRATEGIES[name].says, name, _solved)


RUNGS: Mapping[str, Rung] = MappingProxyType(
    {
        "single": Rung("one solution", "majority", _solved, adapt=lambda plan: replace(plan, samples=1)),
        "greedy": _strategy("greedy"),
        "majority": _strategy("majority"),
        "best_of_n": _strategy("best_of_n"),
        "swiss": _strategy("swiss"),
        "genselect": _strategy("genselect"),
        "self_correction": _strategy("self_correction"),
        "noise_debate": Rung(
            "a debate with the texts of another problem in the places of the others'; its majority",
            "debate_majority",
            _noisy,
            refuses=no_noise,
            lacks=too_few,
        ),
        "one_persona": Rung(
            "a debate of one persona, each agent at its own temperature; its majority",
            "debate_majority",
            _solved,
            adapt=lambda plan: replace(plan, protocol=one_persona(plan.protocol)),
            refuses=_one_kind,
        ),
        "debate_majority": _strategy("debate_majority"),
        "debate_winner": _strategy("debate_winner"),
    }
)
"""Every rung by name, the cheaper ways first."""
