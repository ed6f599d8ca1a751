"""Selection from a list: the model reads several solutions and names the best [GenSelect, arXiv 2504.16891].

The list is the history of a debate: labels and order are drawn anew for each, texts are escaped and cut to
fit. The reply is one comparison section with a label in it. A knock-out of lists takes any number of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from debate import DebateConfig, Message, Problem, SampleRequest
from debate.parsing.sections import find_sections
from debate.policy import opens_thinking
from debate.prompting.fitting import ContextBudget, context_budget, fit_history
from debate.prompting.rendering import Frame
from debate.prompting.seating import prompts_of, seat_debate
from debate.seeds import derive_seed
from debate.types import TurnId
from debate_rl.strategies.tournament import entry_of
from debate_rl.strategies.work import Answered, End, Solution, Tally, Work, of_one_round

LONGEST = 16
"""Solutions of one list at most."""


def check_list(work: Work) -> None:
    """ValueError where the judge is shown nothing of others, or the budget has no room for a selection."""
    check_selection(work.judged_by.protocol)
    work.need(1, "a solution and a selection", more=work.comparison_tokens)


def check_selection(protocol: DebateConfig) -> None:
    """ValueError where a prompt set has no form for what is shown of others."""
    if prompts_of(protocol).alone:
        raise ValueError(
            f"debate.prompts = {protocol.prompts!r}: is for one agent and shows nobody's solutions, as "
            "genselect does; choose a set of debates, or another strategy"
        )


async def genselect(work: Work) -> Answered:
    """Return the answer of the solution that is left when each list has had one selected.

    Lists are drawn by the seed. One whose solutions give the same answer is not asked about, and once all
    that are left give the same, it is settled. A list of which nothing could be read keeps the solution
    whose answer the most solutions give.
    """
    size = longest_list(work.judged_by.protocol)
    tally = await work.solve_all()
    left = [index for members in tally.members for index in members]
    Random(derive_seed(work.seed, "lists")).shuffle(left)
    ended: End = "settled" if len(tally.answers) == 1 and left else "done"
    while len({tally.of(index) for index in left}) > 1 and work.room(work.comparison_tokens) >= 1:
        groups = [left[start : start + size] for start in range(0, len(left), size)]
        mixed = [group for group in groups if len({tally.of(index) for index in group}) > 1]
        if not mixed:  # by chance every list is of one answer: the next ones are of their first solutions
            left = [group[0] for group in groups]
            continue
        found = dict(zip(map(tuple, mixed), await _select(work, mixed), strict=True))
        left = [_kept(tally, group, found.get(tuple(group))) for group in groups]
        if work.seconds is not None and work.elapsed() >= work.seconds:
            break
    chosen = left[0] if len({tally.of(index) for index in left}) == 1 else tally.best()
    return work.answered(tally, chosen if left else None, ended)


def _kept(tally: Tally, group: Sequence[int], named: int | None) -> int:
    """Return the solution of a list that goes on: the one named, else one whose answer most give."""
    if named is not None:
        return named
    return max(group, key=lambda index: (tally.weights[tally.of(index) or 0], -group.index(index)))


async def _select(work: Work, groups: Sequence[Sequence[int]]) -> list[int | None]:
    """Return the solution that is selected of each group, all asked at once; None where none is."""
    judge = work.judged_by
    work.stage += 1
    budget = context_budget(judge.policy, judge.protocol)
    prompts, requests = list[SelectionPrompt](), list[SampleRequest]()
    for number, group in enumerate(groups):
        seed = derive_seed(work.seed, "selection", work.stage, number)
        listed = [work.solutions[index] for index in group]
        prompt = selection_prompt(work.problem, listed, judge.protocol, budget, seed)
        prompts.append(prompt)
        requests.append(_request(work.name, judge.protocol, prompt, seed, TurnId(number, work.stage)))
    chosen: list[int | None] = []
    for prompt, group, reply in zip(prompts, groups, await work.replies(judge.policy, requests), strict=True):
        at = None
        if reply is not None:
            in_thinking = opens_thinking(judge.policy, prompt.messages)
            at = selected(reply.text, prompt.labels, in_thinking=in_thinking)
            work.comparisons += 1
            work.unread += at is None
        chosen.append(None if at is None else group[at])
    return chosen


class SelectionPrompt(NamedTuple):
    """A list to select from: its messages, where the reply ends, and the label of each solution, (n,)."""

    messages: tuple[Message, ...]
    stop: tuple[str, ...]
    labels: tuple[str, ...]


def _request(
    name: str, protocol: DebateConfig, prompt: SelectionPrompt, seed: int, turn: TurnId
) -> SampleRequest:
    return SampleRequest(
        messages=prompt.messages,
        temperature=protocol.agent_personas[0].temperature,
        max_tokens=protocol.max_tokens,
        stop=prompt.stop,
        seed=seed,
        debate=name,
        turn=turn,
        thinking_tokens=protocol.thinking_tokens,
        top_p=protocol.top_p,
        top_k=protocol.top_k,
    )


def longest_list(protocol: DebateConfig) -> int:
    """Return how many solutions one list may have: as many as there are labels, 16 at most."""
    labels = protocol.handles
    return LONGEST if labels is None else min(LONGEST, len({label.upper() for label in labels}))


def selection_prompt(
    problem: Problem, solutions: Sequence[Solution], protocol: DebateConfig, budget: ContextBudget, seed: int
) -> SelectionPrompt:
    """Return the prompt that lists these solutions, two or more, in an order drawn by the seed."""
    config = of_one_round(protocol, protocol="debate", num_agents=len(solutions))
    seating = seat_debate(problem, config, seed)
    entries = [entry_of(seating, agent, one) for agent, one in enumerate(solutions)]
    order, texts = seating.orders[0], seating.texts
    labels = ", ".join(seating.handles[agent] for agent in order)
    frame = Frame("ballot", "", seating.opening, texts.select(compared=labels))
    history = fit_history(frame, [[entries[agent] for agent in order]], seating, budget)
    stop = ("</comparison>",) if texts.sections else ()
    return SelectionPrompt(frame.messages(history.text), (*config.stop, *stop), seating.handles)


def selection_reply(label: str) -> str:
    """Return the reply that names a solution.

    >>> selected(selection_reply("K7"), ("Q2", "K7"))
    1
    """
    return f"<comparison>\n{label}\n</comparison>"


def selected(text: str, labels: Sequence[str], *, in_thinking: bool = False) -> int | None:
    """Return the index of the label that a reply names; None where it names none, or several.

    >>> selected("<comparison>K7 or Q2</comparison>", ("K7", "Q2")) is None
    True
    """
    span = find_sections(text, in_thinking=in_thinking).inside("comparison")
    words = {word.upper() for word in re.findall(r"[^\W_]+", span.of(text))} if span else set[str]()
    whole = " ".join(span.of(text).split()).upper() if span else ""
    known = [label.upper() for label in labels]
    named = [index for index, label in enumerate(known) if label in words or label == whole]
    return named[0] if len(named) == 1 else None
