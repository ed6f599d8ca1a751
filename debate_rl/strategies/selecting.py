"""Selection from a list: the model reads several solutions and names the best [GenSelect, arXiv 2504.16891].

The list is the history of a debate: labels and order are drawn anew for each, texts are escaped and cut to
fit. The reply is one comparison section with a label in it. A knock-out of lists takes any number of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from debate import Completion, DebateConfig, Message, Policy, Problem, SampleRequest
from debate.config import CompressionConfig, SummaryConfig
from debate.parsing.sections import find_sections
from debate.policy import opens_thinking
from debate.prompting.fitting import ContextBudget, context_budget, fit_history
from debate.prompting.rendering import Entry, Frame
from debate.prompting.seating import Seating, prompts_of, seat_debate
from debate.seeds import derive_seed
from debate.types import TurnId
from debate_rl.strategies.judging import entry_of
from debate_rl.strategies.tally import Tally
from debate_rl.strategies.types import Answered, Asked, End, Solution
from debate_rl.strategies.voting import best_of
from debate_rl.strategies.work import Work, need, tokens_of_a_comparison

LONGEST = 16
"""Solutions of one list at most."""


@dataclass(frozen=True, slots=True)
class SelectionPrompt:
    """A list to select from: its messages, where the reply ends, and the label of each solution, (n,)."""

    messages: tuple[Message, ...]
    stop: tuple[str, ...]
    labels: tuple[str, ...]


def check_selection(protocol: DebateConfig) -> None:
    """ValueError where a prompt set has no form for what is shown of others."""
    if prompts_of(protocol).alone:
        raise ValueError(
            f"debate.prompts = {protocol.prompts!r}: is for one agent and shows nobody's solutions, as "
            "genselect does; choose a set of debates, or another strategy"
        )


def longest_list(protocol: DebateConfig) -> int:
    """Return how many solutions one list may have: as many as there are labels, 16 at most."""
    labels = protocol.handles
    return LONGEST if labels is None else min(LONGEST, len({label.upper() for label in labels}))


def selection_prompt(
    problem: Problem, solutions: Sequence[Solution], protocol: DebateConfig, budget: ContextBudget, seed: int
) -> SelectionPrompt:
    """Return the prompt that lists these solutions, two or more, in an order drawn by the seed."""
    config = selection_protocol(protocol, len(solutions))
    seating = seat_debate(problem, config, seed)
    entries = [entry_of(seating, agent, one) for agent, one in enumerate(solutions)]
    return _listed(seating, entries, budget)


def _listed(seating: Seating, entries: Sequence[Entry], budget: ContextBudget) -> SelectionPrompt:
    order, texts = seating.orders[0], seating.texts
    labels = ", ".join(seating.handles[agent] for agent in order)
    frame = Frame("ballot", "", seating.opening, texts.select(compared=labels))
    history = fit_history(frame, [[entries[agent] for agent in order]], seating, budget)
    stop = ("</comparison>",) if texts.sections else ()
    return SelectionPrompt(frame.messages(history.text), (*seating.config.stop, *stop), seating.handles)


def selection_protocol(protocol: DebateConfig, count: int) -> DebateConfig:
    """Return the protocol whose seating a list of so many solutions has."""
    return protocol.model_copy(
        update={
            "protocol": "debate",
            "num_agents": count,
            "num_rounds": 1,
            "min_rounds": None,
            "by_level": (),
            "seats": (),
            "conversation": False,
            "tools": "none",
            "history_rounds": 1,
            "summary": SummaryConfig(),
            "compress": CompressionConfig(),
        }
    )


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


async def select_of(work: Work, groups: Sequence[Sequence[int]]) -> list[int | None]:
    """Return the solution that is selected of each group, all asked at once; None where none is."""
    asked, judge, stage = work.asked, work.asked.judged_by, work.next_stage()
    seeds = [derive_seed(asked.seed, "selection", stage, number) for number in range(len(groups))]
    budget = context_budget(judge.policy, judge.protocol)
    prompts = [
        selection_prompt(asked.problem, [work.solutions[i] for i in group], judge.protocol, budget, seed)
        for group, seed in zip(groups, seeds, strict=True)
    ]
    requests = [
        _request(asked, judge.protocol, prompt, seed, TurnId(number, stage))
        for number, (prompt, seed) in enumerate(zip(prompts, seeds, strict=True))
    ]
    replies = await work.replies(judge.policy, requests)
    chosen = [_chosen(judge.policy, prompt, reply) for prompt, reply in zip(prompts, replies, strict=True)]
    came = [reply is not None for reply in replies]
    work.comparisons += sum(came)
    work.unread += sum(at is None for at, here in zip(chosen, came, strict=True) if here)
    return [None if at is None else group[at] for at, group in zip(chosen, groups, strict=True)]


def _request(
    asked: Asked, protocol: DebateConfig, prompt: SelectionPrompt, seed: int, turn: TurnId
) -> SampleRequest:
    return SampleRequest(
        messages=prompt.messages,
        temperature=protocol.agent_personas[0].temperature,
        max_tokens=protocol.max_tokens,
        stop=prompt.stop,
        seed=seed,
        debate=asked.name,
        turn=turn,
        thinking_tokens=protocol.thinking_tokens,
        top_p=protocol.top_p,
        top_k=protocol.top_k,
    )


def _chosen(policy: Policy, prompt: SelectionPrompt, reply: Completion | None) -> int | None:
    if reply is None:
        return None
    return selected(reply.text, prompt.labels, in_thinking=opens_thinking(policy, prompt.messages))


async def knock_out(asked: Asked, size: int) -> Answered:
    """Return the answer whose solution is left when lists of ``size`` solutions have each had one selected.

    Lists are drawn by the seed. One whose solutions give the same answer is not asked about, and once all
    that are left give the same, it is settled. A list of which nothing could be read keeps the solution
    whose answer the most solutions give.
    """
    check_selection(asked.judged_by.protocol)
    need(asked, 1, "a solution and a selection", comparisons=1)
    work, tally = Work(asked), Tally(asked.problem, asked.environment, asked.seed)
    await work.solve_all(keep=tokens_of_a_comparison(asked))
    for index, solution in enumerate(work.solutions):
        tally.add(index, solution)
    left = [index for members in tally.members for index in members]
    Random(derive_seed(asked.seed, "lists")).shuffle(left)
    ended: End = "settled" if len(tally.answers) == 1 and left else "done"
    while len({tally.of(index) for index in left}) > 1 and work.room(tokens_of_a_comparison(asked)) >= 1:
        groups = [left[start : start + size] for start in range(0, len(left), size)]
        mixed = [group for group in groups if len({tally.of(index) for index in group}) > 1]
        if not mixed:  # by chance every list is of one answer: the next ones are of their first solutions
            left = [group[0] for group in groups]
            continue
        found = dict(zip(map(tuple, mixed), await select_of(work, mixed), strict=True))
        left = [_kept(tally, group, found.get(tuple(group))) for group in groups]
        if work.late():
            break
    chosen = left[0] if len({tally.of(index) for index in left}) == 1 else best_of(work, tally)
    return work.answered(tally, chosen if left else None, ended)


def _kept(tally: Tally, group: Sequence[int], chosen: int | None) -> int:
    """Return the solution of a list that goes on: the one selected, else the one of most solutions."""
    if chosen is not None:
        return chosen
    weights = {index: tally.weights[at] for index in group if (at := tally.of(index)) is not None}
    return max(group, key=lambda index: (weights.get(index, 0.0), -group.index(index)))
