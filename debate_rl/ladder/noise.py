"""A debate with noise: in the places of the others' work stand texts of another problem."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from random import Random

from debate import Debate, DebateConfig, Policy, Problem, Turn
from debate.prompting.rendering import Entry, render_entry
from debate.prompting.seating import seat_debate
from debate.prompting.shown import public_turn
from debate.seeds import derive_seed
from debate.types import TurnId
from debate_rl.ladder.metered import unmetered
from debate_rl.strategies.holding import held
from debate_rl.strategies.separate import Reviser, ending, majority_of, revised
from debate_rl.strategies.solving import Refused, SolvePlan, Told, ask_all
from debate_rl.strategies.types import Answered, Asked
from debate_rl.strategies.work import Work

NO_OTHER = "needs two problems or more whose debates are of one size"


def noise_debates(
    problems: Sequence[Problem], plan: SolvePlan, policy: Policy, *, told: Told = lambda *_: None
) -> list[Answered | Refused]:
    """Return what debates answer whose agents read their own work and that of a debate on another problem.

    Labels, order, prompts and personas are those of the debate on the problem, and so is its round 0; it ends
    where its agents agree if the debate does. The answer is the last round's majority. The texts are those
    of the other problem's debate, from the same places and rounds; they were written for that one and cost
    nothing here.
    """
    own = ask_all(problems, plan, unmetered(policy), _debate)
    others = dict(zip((one.id for one in problems), donors(own, plan.seed), strict=True))
    return ask_all(problems, plan, policy, partial(_noisy, others=others), told=told)


def donors(debates: Sequence[Debate | Refused], seed: int) -> list[Debate | None]:
    """Return for each debate one on another problem, drawn by the seed; None where there is none.

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


async def _debate(asked: Asked) -> Debate:
    protocol = asked.protocol.model_copy(update={"final_ballot": False})
    debate = await held(Work(replace(asked, protocol=protocol, tokens=None, seconds=None)))
    assert debate is not None  # no clock ends it
    return debate


async def _noisy(asked: Asked, others: Mapping[str, Debate | None]) -> Answered:
    other = others[asked.problem.id]
    if other is None:
        raise ValueError(f"noise_debate: {NO_OTHER}")
    config = asked.protocol.of_level(asked.problem.level).model_copy(update={"final_ballot": False})
    seating = seat_debate(asked.problem, config, asked.seed)
    said = {turn.id: turn for turn in other.turns}
    rounds = other.protocol.num_rounds  # a debate that stopped early has its last texts also later

    def shown(one: Reviser, round_: int, own: Entry) -> list[Entry]:
        strange = [said[TurnId(agent, min(round_, rounds - 1))] for agent in range(config.num_agents)]
        entries = [_entry(one, turn, round_) for turn in strange]
        return [own if agent == one.seat else entry for agent, entry in enumerate(entries)]

    work = Work(asked)
    revisers = [Reviser(seating, agent, asked.seed) for agent in range(config.num_agents)]
    spoken = await revised(work, revisers, config.num_rounds, shown, ending(asked, config))
    return majority_of(work, spoken, settled=len(spoken) < config.num_rounds)


def _entry(one: Reviser, turn: Turn, round_: int) -> Entry:
    """Return a turn of another debate as it is shown here: under the label of who sits in its place."""
    public = public_turn(turn, strip=one.seating.texts.strip)
    id, handle = turn.id._replace(round=round_), one.seating.handles[turn.id.agent]
    return render_entry(one.seating.texts, replace(public, id=id, handle=handle))


def too_few(protocol: DebateConfig, problems: Sequence[Problem]) -> str | None:
    """Return why some problem has no other one whose debate may be read in its own; None where all have."""
    sizes = Counter(protocol.of_level(one.level).num_agents for one in problems)
    return NO_OTHER if 1 in sizes.values() else None


def no_noise(protocol: DebateConfig) -> str | None:
    """Return why no debate with noise can be held under a protocol; None where one can."""
    kinds = {
        "debate.protocol": protocol.protocol if protocol.protocol != "debate" else None,
        "debate.conversation": "true" if protocol.conversation else None,
        "debate.summary.enabled": "true" if protocol.summary.enabled else None,
        "debate.compress.over": protocol.compress.over,
        "debate.history_rounds": 0 if protocol.history_rounds == 0 else None,
        "debate.seats": "frozen or remote" if protocol.seats else None,
        "debate.num_rounds": 1 if protocol.num_rounds == 1 else None,
    }
    return next((f"{key} = {value} has no noise" for key, value in kinds.items() if value is not None), None)
