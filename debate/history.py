"""What an agent's prompt shows of the rounds before, turns or a summary of them; ``fitting`` cuts it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from debate.config import DebateConfig
from debate.fitting import (
    Entry,
    Room,
    View,
    entry,
    fit_rounds,
    fit_summary,
    require_fit,
    room_for_prompt,
    show,
)
from debate.prompts import SECTIONS, Task, render, task_text
from debate.showing import Shown, comparable, rounds_held, rounds_shown
from debate.table import Table, set_table
from debate.types import Message, Policy, Problem, Summary, TurnId

Past = Sequence[Sequence[Entry]]
"""What others may see of the rounds so far, (round, N)."""


def view(
    table: Table, past: Past, agent: int, round_: int, room: Room, *, summary: Summary | None = None
) -> View:
    """Return one agent's prompt of one round, cut to fit if it must be; PromptTooLongError if it can not.

    A ``summary`` is shown in the place of the rounds that it tells of.
    """
    build = partial(_agents_view, table, agent, round_)
    if summary is not None:
        return fit_summary(table, summary, build, room)
    return fit_rounds(table, rounds_of_view(table, past, agent, round_), build, room)


def view_to_summarize(table: Table, past: Past, round_: int, room: Room) -> View:
    """Return the prompt that asks for a summary of what a round shows, one for all its viewers."""
    shown = rounds_of_view(table, past, 0, round_)
    return fit_rounds(table, shown, partial(_summarizers_view, table), room)


def rounds_of_view(table: Table, past: Past, agent: int, round_: int) -> list[list[Entry]]:
    """Return the entries that a prompt of this round shows by rule, by round, in the viewer's order."""
    shown = rounds_shown(round_, table.config.history_rounds)
    return [[past[number][seat] for seat in table.orders[agent]] for number in shown]


def _agents_view(table: Table, agent: int, round_: int, shown: tuple[TurnId, ...], history: str) -> View:
    """Return an agent's prompt that shows exactly these turns."""
    texts, judge_own = table.texts, table.config.judge_own
    alone = table.config.num_agents == 1
    compared = () if alone else comparable(shown, agent, judge_own=judge_own)
    task = which_task(round_, table.config.num_rounds, shows=bool(shown), due=len(compared) >= 2)
    own_part = task_text(
        texts,
        task,
        persona=table.personas[agent],
        handle=table.handles[agent],
        problem=table.problem,
        compared=[table.handles[turn.agent] for turn in compared],
        judge_own=judge_own,
        alone=alone,
    )
    messages = render(texts, problem=table.opening, history=history, task=own_part, alone=alone)
    return View(messages, task, shown, compared, stop=(f"</{SECTIONS[task][-1]}>",))


def _summarizers_view(table: Table, shown: tuple[TurnId, ...], history: str) -> View:
    """Return the summariser's prompt. Nothing in it tells of a viewer or a persona."""
    content = f"{table.opening}{history}{table.texts.summarize}"
    return View((Message("user", content),), "summary", shown)


def which_task(round_: int, num_rounds: int, *, shows: bool, due: bool) -> Task:
    """Return what an agent is asked for: nothing but a solution while nothing is shown, votes only when due.

    >>> [which_task(r, 2, shows=r > 0, due=r > 0) for r in range(3)]
    ['opening', 'debate', 'ballot']
    """
    if not shows:
        return "opening"
    if round_ == num_rounds:
        return "ballot"
    return "debate" if due else "review"


def check_fits(problem: Problem, policy: Policy, config: DebateConfig) -> None:
    """Raise PromptTooLongError if a prompt of the problem can not fit, however much its history is cut.

    Of the debate's prompts, cut to the bone, only the longest in characters is counted, so that whole data
    sets can be checked.
    """
    room = room_for_prompt(policy, config)
    if room.tokens is None:
        return
    table = set_table(problem, config, 0)
    require_fit(max(_barest_views(table), key=_characters), room, problem)
    if config.summary.enabled and (to_summarize := list(_barest_views_to_summarize(table))):
        room = room_for_prompt(policy, config, max_tokens=config.summary.max_tokens)
        require_fit(max(to_summarize, key=_characters), room, problem)


def _barest_views(table: Table) -> Iterator[View]:
    """Yield the agents' prompts of a debate in which every shown text is cut down to its mark."""
    for round_ in range(rounds_held(table.config)):
        newest = _barest_round(table, round_)
        for agent, order in enumerate(table.orders):
            build = partial(_agents_view, table, agent, round_)
            ordered = [newest[seat] for seat in order if newest]
            yield show(table.texts, ordered, build, left_out=round_ > 1)


def _barest_views_to_summarize(table: Table) -> Iterator[View]:
    """Yield the summariser's prompts of such a debate."""
    for round_ in range(rounds_held(table.config)):
        if newest := _barest_round(table, round_):
            yield show(table.texts, newest, partial(_summarizers_view, table), left_out=round_ > 1)


def _barest_round(table: Table, round_: int) -> list[Entry]:
    """Return the newest round that a prompt shows, (N,), with nothing but marks in it; [] for none."""
    mark = table.texts.cut or table.texts.unreadable
    return [
        entry(table.texts, Shown(TurnId(seat, number), handle, mark, mark))
        for number in rounds_shown(round_, table.config.history_rounds)[-1:]
        for seat, handle in enumerate(table.handles)
    ]


def _characters(found: View) -> int:
    return sum(len(message.content) for message in found.messages)
