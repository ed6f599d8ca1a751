"""Traces of GenSelect: lists of a policy's own solutions, and a reply that names a right one.

The prompts are those of the strategies (``debate_rl.strategies.selecting``): what is learnt is what is asked
for. Labels and places are drawn for each list, so neither tells which solution is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random

from debate import DebateConfig
from debate.prompting.fitting import ContextBudget
from debate.seeds import derive_seed
from debate_rl.evaluation.grading import Graded
from debate_rl.sft.traces import Harvest, Trace, trace_of
from debate_rl.strategies.selecting import (
    check_selection,
    longest_list,
    selection_prompt,
    selection_reply,
)
from debate_rl.strategies.work import Solution


def selections(
    groups: Sequence[Sequence[Graded]],
    protocol: DebateConfig,
    source: Mapping[str, object],
    *,
    budget: ContextBudget,
    seed: int,
) -> Harvest:
    """Return a trace for each list of solutions to a problem that holds right and wrong ones.

    ``groups``: of each problem, solutions of one agent alone. They are drawn into lists of 2 to as many as
    a selection may have; each list of both kinds is a trace, the others teach nothing. The label that is
    named is drawn among those of the right solutions. ``asked`` counts lists, ``kept`` those of both kinds.
    """
    check_selection(protocol)
    harvest, problems = Harvest([]), set[str]()
    for group in groups:
        known = [(one, one.correct[0][0]) for one in group]
        harvest.ungraded += sum(grade is None for _, grade in known)
        readable = [(one, grade is True) for one, grade in known if grade is not None and _solution(one).text]
        level = group[0].debate.problem.level if group else ""
        problems |= {one.debate.problem.id for one in group}
        for trace in _lists(readable, protocol, source, budget=budget, seed=seed):
            harvest.asked[level] += 1
            if trace is not None:
                harvest.kept[level] += 1
                harvest.traces.append(trace)
    harvest.problems = len(problems)
    return harvest


def _lists(
    graded: Sequence[tuple[Graded, bool]],
    protocol: DebateConfig,
    source: Mapping[str, object],
    *,
    budget: ContextBudget,
    seed: int,
) -> Iterator[Trace | None]:
    """Yield a trace for each list of one problem's solutions, None for a list of one kind."""
    if not graded:
        return
    own_seed = derive_seed(seed, "lists", graded[0][0].debate.problem.id)
    rng = Random(own_seed)
    left = rng.sample(graded, len(graded))
    number = 0
    while len(left) > 1:
        size = rng.randint(2, longest_list(protocol))
        part, left = left[:size], left[size:]
        right = [index for index, (_, grade) in enumerate(part) if grade]
        if not 0 < len(right) < len(part):
            yield None
            continue
        named, number = rng.choice(right), number + 1
        drawn = derive_seed(own_seed, number)
        yield _trace([one for one, _ in part], named, protocol, source, budget=budget, seed=drawn)


def _trace(
    part: Sequence[Graded],
    named: int,
    protocol: DebateConfig,
    source: Mapping[str, object],
    *,
    budget: ContextBudget,
    seed: int,
) -> Trace:
    debate = part[named].debate
    prompt = selection_prompt(debate.problem, [_solution(one) for one in part], protocol, budget, seed)
    reply = selection_reply(prompt.labels[named])
    asked = [{"role": message.role, "content": message.content} for message in prompt.messages]
    trace = trace_of(debate, debate.turns[0], source, reply=reply)
    del trace["tokens"]  # they are the solution's
    return trace | {"messages": asked, "turn": "selection"}


def _solution(one: Graded) -> Solution:
    """Return the solution of one agent alone, as a selection shows it."""
    [turn] = one.debate.turns
    span = turn.parsed.solution
    return Solution(turn, "" if span is None else span.of(turn.completion.text).strip(), turn.parsed.answer)
