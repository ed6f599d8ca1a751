"""Two rungs that no one would use to solve a problem: a debate with noise, and a debate of one persona.

In a debate with noise, texts of another problem stand in the places of the others' work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from types import MappingProxyType

from debate import Debate, DebateConfig, Policy, Problem, Turn
from debate.prompting.rendering import Entry, render_entry
from debate.prompting.seating import seat_debate
from debate.prompting.shown import public_turn
from debate.seeds import derive_seed
from debate.types import TurnId
from debate_rl.strategies.debate import Reviser, held, revised
from debate_rl.strategies.equal_cost import CONTENDERS, LADDER, Contender
from debate_rl.strategies.solving import Refused, ask_all
from debate_rl.strategies.work import Answered, Judge, SolvePlan, Work

NO_OTHER = "needs two problems or more whose debates are of one size"


def noise_debates(
    problems: Sequence[Problem],
    plan: SolvePlan,
    policy: Policy,
    *,
    judge: Judge | None = None,
    on_answer: Callable[[int, Answered | Refused], None] = lambda *_: None,
) -> list[Answered | Refused]:
    """Return what debates answer whose agents read their own work and that of a debate on another problem.

    Labels, order, prompts and personas are those of the debate on the problem, and so is its round 0; it ends
    where its agents agree if the debate does. The answer is the last round's majority. The texts are those
    of the other problem's debate, from the same places and rounds; they were written for that one and cost
    nothing here. Nobody judges.
    """
    own = ask_all(problems, plan, policy, _debate)
    others = dict(zip((one.id for one in problems), donors(own, plan.seed), strict=True))
    return ask_all(problems, plan, policy, partial(_noisy, others=others), on_answer=on_answer)


def donors(debates: Sequence[Debate | Refused], seed: int) -> list[Debate | None]:
    """Return for each debate one on another problem, drawn by the seed; None if there is none.

    The next one of the same number of agents, in a drawn circle: every debate is used once.
    """
    drawn: list[Debate | None] = [None] * len(debates)
    sizes: dict[int, list[int]] = {}
    for index, debate in enumerate(debates):
        if isinstance(debate, Debate):
            sizes.setdefault(debate.protocol.num_agents, []).append(index)
    for size, ring in sizes.items():
        Random(derive_seed(seed, "donors", size)).shuffle(ring)
        for index, other in zip(ring, [*ring[1:], *ring[:1]], strict=True):
            debate = debates[other]
            if other != index and isinstance(debate, Debate):
                drawn[index] = debate
    return drawn


async def _debate(work: Work) -> Debate:
    protocol = work.plan.protocol.model_copy(update={"final_ballot": False})
    debate = await held(replace(work, plan=replace(work.plan, protocol=protocol, tokens=None), seconds=None))
    assert debate is not None  # no clock ends it
    return debate


async def _noisy(work: Work, others: Mapping[str, Debate | None]) -> Answered:
    other = others[work.problem.id]
    if other is None:
        raise ValueError(f"noise_debate: {NO_OTHER}")
    config = work.protocol.model_copy(update={"final_ballot": False})
    seating = seat_debate(work.problem, config, work.seed)
    said = {turn.id: turn for turn in other.turns}
    rounds = other.protocol.num_rounds  # a debate that stopped early has its last texts also later

    def shown(one: Reviser, round_: int, own: Entry) -> list[Entry]:
        strange = [said[TurnId(agent, min(round_, rounds - 1))] for agent in range(config.num_agents)]
        entries = [_entry(one, turn, round_) for turn in strange]
        return [own if agent == one.seat else entry for agent, entry in enumerate(entries)]

    revisers = [Reviser(seating, agent, work.seed) for agent in range(config.num_agents)]
    return await revised(work, revisers, config, shown)


def _entry(one: Reviser, turn: Turn, round_: int) -> Entry:
    """Return a turn of another debate as it is shown here: under the label of who sits in its place."""
    public = public_turn(turn, strip=one.seating.texts.strip)
    id, handle = turn.id._replace(round=round_), one.seating.handles[turn.id.agent]
    return render_entry(one.seating.texts, replace(public, id=id, handle=handle))


def no_noise(plan: SolvePlan, problems: Sequence[Problem]) -> str | None:
    """Return why no debate with noise can be held under a plan on these problems; None if one can."""
    for protocol in plan.protocol.protocols():
        kinds = {
            "debate.protocol": protocol.protocol if protocol.protocol != "debate" else None,
            "debate.conversation": "true" if protocol.conversation else None,
            "debate.summary.enabled": "true" if protocol.summary.enabled else None,
            "debate.compress.over": protocol.compress.over,
            "debate.history_rounds": 0 if protocol.history_rounds == 0 else None,
            "debate.seats": "frozen or remote" if protocol.seats else None,
            "debate.num_rounds": 1 if protocol.num_rounds == 1 else None,
        }
        for key, value in kinds.items():
            if value is not None:
                return f"{key} = {value} has no noise"
    sizes = Counter(plan.protocol.of_level(one.level).num_agents for one in problems)
    return NO_OTHER if 1 in sizes.values() else None


def one_persona(protocol: DebateConfig) -> DebateConfig:
    """Return the protocol with the first persona's instructions for all; each agent keeps its temperature.

    >>> personas = one_persona(DebateConfig(num_agents=2)).agent_personas
    >>> personas[0].instructions == personas[1].instructions
    True
    """
    first, *_ = seated = protocol.agent_personas
    same = tuple(replace(first, temperature=persona.temperature) for persona in seated)
    return protocol.model_copy(update={"personas": same, "temperature": None})


def _one_kind(plan: SolvePlan, _: Sequence[Problem]) -> str | None:
    for protocol in plan.protocol.protocols():
        if len({persona.instructions for persona in protocol.agent_personas}) == 1:
            return "all personas have the same instructions"
    return None


CONTROLS: Mapping[str, Contender] = MappingProxyType(
    {
        "noise_debate": Contender("debate_majority", solve=noise_debates, refuses=no_noise),
        "one_persona": Contender(
            "debate_majority",
            lambda plan: replace(plan, protocol=one_persona(plan.protocol)),
            refuses=_one_kind,
        ),
    }
)
EVERY: Mapping[str, Contender] = MappingProxyType({**CONTENDERS, **CONTROLS})
"""Everything that can be compared, by name."""
CLIMBED = (*LADDER, *CONTROLS)
"""The ladder with its controls."""
