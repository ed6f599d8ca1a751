"""Debates in which agents give solutions that were written before, and simulated judges vote on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from debate import Debate, DebateConfig, run_debates
from debate.hold import debate_seed
from debate.policies.scripted import ScriptedPolicy
from debate.prompting.rendering import SECTIONS, Task
from debate.prompting.seating import seat_debate
from debate.seeds import derive_seed
from debate.types import SampleRequest
from envs import Environment
from reports.simulation.judges import Judges
from reports.simulation.solutions import Solved, answer_of

KEEPS = 0.5
"""The chance that an agent's next solution is the one it gave before."""


@dataclass(frozen=True, slots=True)
class Dealt:
    """Who says what in one debate: ``texts`` and ``right`` (N, R), labels (N,), orders shown (N, N)."""

    texts: tuple[tuple[str, ...], ...]
    right: tuple[tuple[bool, ...], ...]
    handles: tuple[str, ...]
    orders: tuple[tuple[int, ...], ...]


def deal(solved: Solved, right: Sequence[bool], config: DebateConfig, seed: int) -> Dealt:
    """Return the solutions of each agent, different ones in the first round as far as there are any.

    Later on an agent keeps its solution or, with chance 1 - ``KEEPS``, takes any of the problem's.
    """
    rng, count = Random(derive_seed(seed, "deal")), len(solved.texts)
    drawn = rng.sample(range(count), count)
    chosen = [[drawn[agent % count]] for agent in range(config.num_agents)]
    for row in chosen:
        for _ in range(config.num_rounds - 1):
            row.append(row[-1] if rng.random() < KEEPS else rng.randrange(count))
    seating = seat_debate(solved.problem, config, seed)
    return Dealt(
        tuple(tuple(solved.texts[place] for place in row) for row in chosen),
        tuple(tuple(right[place] for place in row) for row in chosen),
        seating.handles,
        seating.orders,
    )


def replay_solutions(
    solved: Sequence[Solved],
    judges: Judges,
    config: DebateConfig,
    environment: Environment,
    *,
    seed: int,
) -> Iterator[Debate]:
    """Yield a debate for each problem of the list, held by agents who say what they were dealt.

    Judges know the truth as the grader does, and err as ``judges`` says.
    """
    problems = [one.problem for one in solved]
    dealt: dict[str, Dealt] = {}
    for place, one in enumerate(solved):
        right = [environment.grade(one.problem, answer_of(text)).verdict is True for text in one.texts]
        own = debate_seed(seed, place, one.problem)
        dealt[f"{place:06d}"] = deal(one, right, config, own)
    policy = ScriptedPolicy(lambda request: _reply(dealt, judges, config, request))
    yield from run_debates(problems, policy, config, seed=seed)


def _reply(dealt: Mapping[str, Dealt], judges: Judges, config: DebateConfig, request: SampleRequest) -> str:
    """Return what is said in a turn, with every section that is due."""
    mine = dealt[request.debate.partition(":")[0]]
    agent, round_ = request.turn.agent, request.turn.round
    others = [seat for seat in mine.orders[agent] if seat != agent] if round_ else []
    shown = [(mine.handles[seat], mine.right[seat][round_ - 1]) for seat in others]
    lines = judges.lines(shown, Random(request.seed))
    written = {
        "solution": mine.texts[agent][round_] if round_ < config.num_rounds else "",
        "evaluation": f"I read {', '.join(label for label, _ in shown)}.",
        "comparison": "\n" + "\n".join(lines) + "\n",
    }
    return "\n".join(f"<{name}>{written[name]}</{name}>" for name in SECTIONS[_task(round_, config)])


def _task(round_: int, config: DebateConfig) -> Task:
    if round_ == config.num_rounds:
        return "ballot"
    if round_ == 0:
        return "opening"
    return "debate" if config.num_agents > 2 else "review"


def needed(solved: Sequence[Solved], debates: int) -> list[Solved]:
    """Return the problems of so many debates, each as often as the others, give or take one.

    >>> from debate import Problem
    >>> one, two = (Solved(Problem(id, ""), ("a", "b"), (None, None)) for id in "pq")
    >>> [item.problem.id for item in needed([one, two], 3)]
    ['p', 'q', 'p']
    """
    return [solved[place % len(solved)] for place in range(debates)]
