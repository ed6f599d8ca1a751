"""What one agent's prompt holds, and what gives way when it does not fit the context.

The rule, in this order: whole rounds go, oldest first, but never the newest one; then the longest texts of
the newest round are shortened to one common length, the largest that fits, with their boxed answers kept;
as a last resort only the marks of the cut stand there. A prompt that does not fit even then is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from debate.config import DebateConfig
from debate.handles import draw_handles, show_orders
from debate.personas import seat_personas
from debate.prompts import (
    PromptTexts,
    Task,
    entry_text,
    history_text,
    load_prompts,
    problem_text,
    render,
    task_text,
)
from debate.seeds import derive_seed
from debate.showing import Shown, comparable, rounds_held, rounds_shown, shorten
from debate.types import Message, Persona, Policy, Problem, TurnId


class PromptTooLongError(ValueError):
    """A prompt that cannot be cut to fit the context; the message has the problem's id and the length."""


@dataclass(frozen=True, slots=True)
class Table:
    """What is fixed for a debate: who sits where, under which label, and in which order texts are shown."""

    problem: Problem
    config: DebateConfig
    texts: PromptTexts
    personas: tuple[Persona, ...]  # (N,)
    handles: tuple[str, ...]  # (N,)
    orders: tuple[tuple[int, ...], ...]  # (N, N): for each viewer the seats in the order shown
    opening: str  # the rendered problem


@dataclass(frozen=True, slots=True)
class Entry:
    """A public turn with its rendered text in the history."""

    shown: Shown
    text: str


@dataclass(frozen=True, slots=True)
class Room:
    """Tokens that a prompt may take (None: no limit), and how they are counted."""

    tokens: int | None
    count: Callable[[tuple[Message, ...]], int]

    def fits(self, messages: tuple[Message, ...]) -> bool:
        """Tell whether the prompt fits."""
        return self.tokens is None or self.count(messages) <= self.tokens


@dataclass(frozen=True, slots=True)
class View:
    """One agent's prompt, and what it shows: see ``Turn.shown``, ``Turn.compared`` and ``Turn.cut``."""

    messages: tuple[Message, ...]
    task: Task
    shown: tuple[TurnId, ...] = ()
    compared: tuple[TurnId, ...] = ()
    cut: int = 0

    @property
    def due(self) -> bool:
        """Whether comparisons are asked for."""
        return len(self.compared) >= 2


def set_table(problem: Problem, config: DebateConfig, seed: int) -> Table:
    """Return the seating of one debate: personas by seat, handles and orders drawn from the seed."""
    size, texts = config.num_agents, load_prompts(config.prompts)
    orders = show_orders(size, seed, order=config.order)
    labels = derive_seed(seed, "handles")
    return Table(
        problem,
        config,
        texts,
        seat_personas(config.persona_pool, size),
        draw_handles(size, labels, pool=config.handles, order=orders[0], avoid=problem.question),
        orders,
        problem_text(texts, problem),
    )


def entry(texts: PromptTexts, shown: Shown) -> Entry:
    """Return the public turn as the history shows it, uncut."""
    return Entry(shown, entry_text(texts, shown))


def rounds_of_view(
    table: Table, past: Sequence[Sequence[Entry]], agent: int, round_: int
) -> list[list[Entry]]:
    """Return the entries that a prompt of this round shows by rule, by round, in the viewer's order.

    ``past`` holds the rounds so far, (round, N). Numbers of rounds stay what they were.
    """
    order = table.orders[agent]
    shown = rounds_shown(round_, table.config.history_rounds)
    return [[past[number][seat] for seat in order] for number in shown]


def view(table: Table, past: Sequence[Sequence[Entry]], agent: int, round_: int, room: Room) -> View:
    """Return one agent's prompt of one round, cut to fit if it must be; PromptTooLongError if it can not."""
    rounds = rounds_of_view(table, past, agent, round_)
    for left_out in range(max(1, len(rounds))):
        kept = [one for entries in rounds[left_out:] for one in entries]
        found = _assemble(table, kept, agent, round_, left_out > 0)
        if room.fits(found.messages):
            return replace(found, cut=_texts(rounds[:left_out])) if left_out else found
    newest = rounds[-1] if rounds else []
    build = partial(_assemble, table, agent=agent, round_=round_, left_out=len(rounds) > 1)
    return _shortened(table, newest, build, room, already_cut=_texts(rounds[:-1]))


def _assemble(table: Table, entries: Sequence[Entry], agent: int, round_: int, left_out: bool) -> View:
    """Return the prompt that shows exactly these entries."""
    texts, judge_own = table.texts, table.config.judge_own
    shown = tuple([one.shown.id for one in entries])
    compared = comparable(shown, agent, judge_own=judge_own)
    alone = table.config.num_agents == 1
    compared = () if alone else compared
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
    history = history_text(texts, [one.text for one in entries], left_out=left_out)
    messages = render(texts, problem=table.opening, history=history, task=own_part, alone=alone)
    return View(messages, task, shown, compared)


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


def _shortened(
    table: Table,
    entries: Sequence[Entry],
    build: Callable[[list[Entry]], View],
    room: Room,
    *,
    already_cut: int,
) -> View:
    """Return the view with the largest common length of text that fits, found by bisection."""
    best: View | None = None
    low, high = 0, max((len(text) for one in entries for text in _public(one.shown)), default=0)
    while low <= high:
        cap = (low + high) // 2
        short = [_cut_entry(table.texts, one, cap) for one in entries]
        found = build(short)
        if room.fits(found.messages):
            best, low = replace(found, cut=already_cut + _changed(entries, short)), cap + 1
        else:
            high = cap - 1
    if best is not None:
        return best
    bare = [_cut_entry(table.texts, one, 0, keep_answer=False) for one in entries]
    found = replace(build(bare), cut=already_cut + _changed(entries, bare))
    _require_fit(table.config, table.problem, found, room)
    return found


def _cut_entry(texts: PromptTexts, one: Entry, cap: int, *, keep_answer: bool = True) -> Entry:
    shown = one.shown
    answer = shown.answer if keep_answer else None
    cut = replace(
        shown,
        solution=None
        if shown.solution is None
        else shorten(shown.solution, cap, answer=answer, mark=texts.cut),
        evaluation=None
        if shown.evaluation is None
        else shorten(shown.evaluation, cap, answer=None, mark=texts.cut),
    )
    return one if cut == shown else entry(texts, cut)


def _public(shown: Shown) -> Iterator[str]:
    yield from (text for text in (shown.solution, shown.evaluation) if text is not None)


def _changed(before: Sequence[Entry], after: Sequence[Entry]) -> int:
    """Return how many texts were shortened."""
    pairs = [(a.shown, b.shown) for a, b in zip(before, after, strict=True)]
    return sum((a.solution != b.solution) + (a.evaluation != b.evaluation) for a, b in pairs)


def _texts(rounds: Sequence[Sequence[Entry]]) -> int:
    """Return how many texts these rounds hold; a placeholder counts as one."""
    return sum(1 + (one.shown.evaluation is not None) for entries in rounds for one in entries)


def room_for_prompt(policy: Policy, config: DebateConfig) -> Room:
    """Return what the context leaves for a prompt: the smaller of the policy's and the configured limit.

    A policy may have ``context_tokens`` (int | None) and ``count_tokens(messages) -> int``; without the
    latter one token is taken as three characters, rounded up.
    """
    limits = [limit for limit in (config.context_tokens, getattr(policy, "context_tokens", None)) if limit]
    count: Callable[[tuple[Message, ...]], int] = getattr(policy, "count_tokens", _a_third_of_the_characters)
    return Room(min(limits) - completion_tokens(config) if limits else None, count)


def completion_tokens(config: DebateConfig) -> int:
    """Return the tokens that a reply may take, thinking included."""
    return config.max_tokens + config.thinking_tokens


def _a_third_of_the_characters(messages: tuple[Message, ...]) -> int:
    return -(-sum(len(message.content) for message in messages) // 3)


def check_fits(problem: Problem, policy: Policy, config: DebateConfig) -> None:
    """Raise PromptTooLongError if a prompt of the problem can not fit, however much its history is cut.

    Of the debate's prompts, cut to the bone, only the longest in characters is counted, so that whole data
    sets can be checked.
    """
    room = room_for_prompt(policy, config)
    if room.tokens is not None:
        barest = _barest_views(set_table(problem, config, 0))
        _require_fit(config, problem, max(barest, key=_characters), room)


def _barest_views(table: Table) -> Iterator[View]:
    """Yield the prompts of a debate in which every shown text is cut down to its mark."""
    seats = range(table.config.num_agents)
    mark = table.texts.cut or table.texts.unreadable
    past: list[list[Entry]] = []
    for round_ in range(rounds_held(table.config)):
        for agent in seats:
            newest = [one for entries in rounds_of_view(table, past, agent, round_)[-1:] for one in entries]
            yield _assemble(table, newest, agent, round_, left_out=len(past) > 1)
        bare = [Shown(TurnId(agent, round_), table.handles[agent], mark, mark) for agent in seats]
        past.append([entry(table.texts, shown) for shown in bare])


def _characters(found: View) -> int:
    return sum(len(message.content) for message in found.messages)


def _require_fit(config: DebateConfig, problem: Problem, found: View, room: Room) -> None:
    if room.fits(found.messages):
        return
    raise PromptTooLongError(
        f"problem {problem.id!r}: its shortest prompt ({found.task}) has {room.count(found.messages)} tokens,"
        f" but the context leaves {room.tokens} beside {completion_tokens(config)} for the reply; raise"
        " debate.context_tokens, lower debate.max_tokens or debate.num_agents, or leave the problem out"
    )
