"""What gives way when a prompt does not fit the context.

The rule, in this order: whole rounds go, oldest first, but never the newest one; then the longest texts of
the newest round are shortened to one common length, the largest that fits, with their boxed answers kept;
as a last resort only the marks of the cut stand there. A prompt that does not fit even then is refused.
A summary is shortened likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from debate.config import DebateConfig
from debate.optional import context_limit, token_counter
from debate.prompts import PromptTexts, Task, entry_text, history_text, summary_text
from debate.showing import Shown, shorten
from debate.table import Table
from debate.types import Message, Policy, Problem, Summary, TurnId


class PromptTooLongError(ValueError):
    """A prompt that cannot be cut to fit the context; the message has the problem's id and the length."""


@dataclass(frozen=True, slots=True)
class Room:
    """Tokens that a prompt may take beside its reply's (None: no limit), and how they are counted."""

    tokens: int | None
    count: Callable[[tuple[Message, ...]], int]
    reply: int = 0

    def fits(self, messages: tuple[Message, ...]) -> bool:
        """Tell whether the prompt fits."""
        return self.tokens is None or self.count(messages) <= self.tokens


def room_for_prompt(policy: Policy, config: DebateConfig, *, max_tokens: int | None = None) -> Room:
    """Return what the context leaves for a prompt: the smaller of the policy's and the configured limit.

    ``max_tokens`` are the reply's, if it is not an agent's.
    """
    limits = [limit for limit in (config.context_tokens, context_limit(policy)) if limit]
    reply = (max_tokens or config.max_tokens) + config.thinking_tokens
    return Room(min(limits) - reply if limits else None, token_counter(policy), reply)


@dataclass(frozen=True, slots=True)
class Entry:
    """A public turn with its rendered text in the history."""

    shown: Shown
    text: str

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths of its texts that can be shortened."""
        return tuple(len(text) for text in (self.shown.solution, self.shown.evaluation) if text is not None)


def entry(texts: PromptTexts, shown: Shown) -> Entry:
    """Return the public turn as the history shows it, uncut."""
    return Entry(shown, entry_text(texts, shown))


@dataclass(frozen=True, slots=True)
class View:
    """One prompt, and what it shows: see ``Turn.shown``, ``Turn.compared`` and ``Turn.cut``."""

    messages: tuple[Message, ...]
    task: Task | Literal["summary"]
    shown: tuple[TurnId, ...] = ()
    compared: tuple[TurnId, ...] = ()
    cut: int = 0
    stop: tuple[str, ...] = ()  # the closing tag of the last section that is due

    @property
    def due(self) -> bool:
        """Whether comparisons are asked for."""
        return len(self.compared) >= 2


Build: TypeAlias = Callable[[tuple[TurnId, ...], str], View]
"""Makes the prompt that shows these turns, by this rendered history."""


def fit_rounds(table: Table, rounds: Sequence[Sequence[Entry]], build: Build, room: Room) -> View:
    """Return the view of as much of these rounds as fits; PromptTooLongError if not even the marks do."""
    texts = table.texts
    for left_out in range(max(1, len(rounds))):
        kept = [one for entries in rounds[left_out:] for one in entries]
        found = replace(show(texts, kept, build, left_out=left_out > 0), cut=_texts(rounds[:left_out]))
        if room.fits(found.messages):
            return found
    newest: Sequence[Entry] = rounds[-1] if rounds else ()

    def cut_at(cap: int, *, keep_answer: bool = True) -> View:
        short = [_cut_entry(texts, one, cap, keep_answer=keep_answer) for one in newest]
        found = show(texts, short, build, left_out=len(rounds) > 1)
        return replace(found, cut=_texts(rounds[:-1]) + _changed(newest, short))

    longest = max((length for one in newest for length in one.lengths), default=0)
    best = _largest_fitting(cut_at, longest, room)
    return best or require_fit(cut_at(0, keep_answer=False), room, table.problem)


def fit_summary(table: Table, summary: Summary, build: Build, room: Room) -> View:
    """Return the view of as much of a summary as fits; PromptTooLongError if not even its mark does."""

    def cut_at(cap: int) -> View:
        text = shorten(summary.text, cap, answer=None, mark=table.texts.cut)
        found = build(summary.shown, summary_text(table.texts, text))
        return replace(found, cut=summary.cut + (text != summary.text))

    whole = cut_at(len(summary.text))
    if room.fits(whole.messages):
        return whole
    best = _largest_fitting(cut_at, len(summary.text), room)
    return best or require_fit(cut_at(0), room, table.problem)


def show(texts: PromptTexts, entries: Sequence[Entry], build: Build, *, left_out: bool) -> View:
    """Return the view of exactly these entries."""
    history = history_text(texts, [one.text for one in entries], left_out=left_out)
    return build(tuple([one.shown.id for one in entries]), history)


def require_fit(found: View, room: Room, problem: Problem) -> View:
    """Return the view; PromptTooLongError when it does not fit."""
    if room.fits(found.messages):
        return found
    raise PromptTooLongError(
        f"problem {problem.id!r}: its shortest prompt ({found.task}) has {room.count(found.messages)} tokens,"
        f" but the context leaves {room.tokens} beside {room.reply} for the reply; raise"
        " debate.context_tokens, lower debate.max_tokens or debate.num_agents, or leave the problem out"
    )


def _largest_fitting(cut_at: Callable[[int], View], most: int, room: Room) -> View | None:
    """Return the view cut at the largest length in [0, most] that fits, found by bisection."""
    best: View | None = None
    low, high = 0, most
    while low <= high:
        cap = (low + high) // 2
        found = cut_at(cap)
        if room.fits(found.messages):
            best, low = found, cap + 1
        else:
            high = cap - 1
    return best


def _cut_entry(texts: PromptTexts, one: Entry, cap: int, *, keep_answer: bool) -> Entry:
    """Return the entry with each of its texts cut to the cap."""

    def cut(text: str | None, answer: str | None) -> str | None:
        return None if text is None else shorten(text, cap, answer=answer, mark=texts.cut)

    shown = one.shown
    answer = shown.answer if keep_answer else None
    short = replace(shown, solution=cut(shown.solution, answer), evaluation=cut(shown.evaluation, None))
    return one if short == shown else entry(texts, short)


def _changed(before: Sequence[Entry], after: Sequence[Entry]) -> int:
    """Return how many texts were shortened."""
    pairs = [(a.shown, b.shown) for a, b in zip(before, after, strict=True)]
    return sum((a.solution != b.solution) + (a.evaluation != b.evaluation) for a, b in pairs)


def _texts(rounds: Sequence[Sequence[Entry]]) -> int:
    """Return how many texts these rounds hold; a placeholder counts as one."""
    return sum(1 + (one.shown.evaluation is not None) for entries in rounds for one in entries)
