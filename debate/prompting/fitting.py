"""What is cut when a prompt does not fit the context.

The rule, in this order: whole rounds go, oldest first, but never the newest one; then the longest texts of
the newest round are shortened to one common length, the largest that fits, with their boxed answers kept;
as a last resort only the marks of the cut stand there, at the very last for short texts and for what could
not be read as well. A prompt that does not fit even then is refused.
A summary is shortened likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from debate.config import DebateConfig
from debate.policy import context_limit, token_counter
from debate.prompting.rendering import Entry, Frame, history_text, render_entry, summary_text
from debate.prompting.seating import Seating
from debate.prompting.shown import PublicTurn
from debate.prompting.texts import PromptTexts
from debate.types import Message, Policy, Problem, Summary, TurnId

Material: TypeAlias = Sequence[Sequence[Entry]] | Summary
"""What a history is made of: entries by round, oldest first, or a summary in their place."""


class PromptTooLongError(ValueError):
    """A prompt that cannot be cut to fit the context; the message has the problem's id and the length."""


@dataclass(frozen=True, slots=True)
class ContextBudget:
    """Tokens that a prompt may take in addition to its reply's (None: no limit), and how they are counted.

    ``reply`` tokens are kept free; ``kept`` says for what.
    """

    tokens: int | None
    count: Callable[[tuple[Message, ...]], int]
    reply: int = 0
    kept: str = "the reply"

    def fits(self, messages: tuple[Message, ...]) -> bool:
        """Return whether the prompt fits."""
        return self.tokens is None or self.count(messages) <= self.tokens


def context_budget(policy: Policy, config: DebateConfig, *, max_tokens: int | None = None) -> ContextBudget:
    """Return what the context leaves for a prompt: the smaller of the policy's and the configured limit.

    ``max_tokens`` are the reply's, if it is not an agent's.
    """
    limits = [limit for limit in (config.context_tokens, context_limit(policy)) if limit]
    reply = (max_tokens or config.max_tokens) + config.thinking_tokens
    return ContextBudget(min(limits) - reply if limits else None, token_counter(policy), reply)


@dataclass(frozen=True, slots=True)
class Cut:
    """How much is cut: the oldest ``rounds``, and what the remaining texts have above ``length``.

    ``length`` is in characters, None for whole texts; at ``MARKS_ALONE`` not even answers are kept, but
    texts shorter than the mark are. At ``BAREST`` a history is the same whatever was written.
    """

    rounds: int = 0
    length: int | None = None


MARKS_ALONE, BAREST = -1, -2


@dataclass(frozen=True, slots=True)
class History:
    """A history as a prompt has it: the turns shown, its text, how many texts gave way, ``Cut.length``."""

    shown: tuple[TurnId, ...]
    text: str
    cut: int = 0
    length: int | None = None


def fit_history(frame: Frame, material: Material, seating: Seating, budget: ContextBudget | Cut) -> History:
    """Return as much of the history as fits into the frame; PromptTooLongError if not even the marks do.

    A ``Cut`` in place of a budget is how much of it was cut before.
    """
    if isinstance(budget, Cut):
        return cut_history(seating.texts, material, budget)
    most = 0 if isinstance(material, Summary) else max(0, len(material) - 1)
    for rounds in range(most + 1):
        history = cut_history(seating.texts, material, Cut(rounds))
        if budget.fits(frame.messages(history.text)):
            return history
    if shortened := _longest_that_fits(frame, material, most, seating.texts, budget):
        return shortened
    marked = cut_history(seating.texts, material, Cut(most, MARKS_ALONE))
    if budget.fits(frame.messages(marked.text)):
        return marked
    barest = cut_history(seating.texts, material, Cut(most, BAREST))
    require_fit(frame.messages(barest.text), frame.task, seating.problem, budget)
    return barest


def _longest_that_fits(
    frame: Frame, material: Material, rounds: int, texts: PromptTexts, budget: ContextBudget
) -> History | None:
    """Return the history with its texts cut to the largest length that fits, found by bisection."""
    best: History | None = None
    low, high = 0, _longest_text(material)
    while low <= high:
        length = (low + high) // 2
        history = cut_history(texts, material, Cut(rounds, length))
        if budget.fits(frame.messages(history.text)):
            best, low = history, length + 1
        else:
            high = length - 1
    return best


def require_fit(messages: tuple[Message, ...], task: str, problem: Problem, budget: ContextBudget) -> None:
    """PromptTooLongError when a prompt that cannot be cut any further does not fit."""
    if budget.fits(messages):
        return
    raise PromptTooLongError(
        f"problem {problem.id!r}: its shortest prompt ({task}) has {budget.count(messages)} tokens,"
        f" but the context leaves {budget.tokens} beside {budget.reply} for {budget.kept}; raise"
        " debate.context_tokens, lower debate.max_tokens or debate.num_agents, or leave the problem out"
    )


def cut_history(texts: PromptTexts, material: Material, cut: Cut) -> History:
    """Return the history with this much of it cut."""
    if isinstance(material, Summary):
        text = _cut_text(texts, material.text, cut)
        changed = text != material.text
        return History(material.shown, summary_text(texts, text), material.cut + changed, cut.length)
    left_out = [entry.turn for entries in material[: cut.rounds] for entry in entries]
    kept = [entry for entries in material[cut.rounds :] for entry in entries]
    short = kept if cut.length is None else [_cut_entry(texts, entry, cut) for entry in kept]
    return History(
        tuple(entry.turn.id for entry in short),
        history_text(texts, [entry.text for entry in short], left_out=bool(left_out)),
        sum(1 + (turn.evaluation is not None) for turn in left_out) + _count_changed(kept, short),
        cut.length,
    )


def _cut_entry(texts: PromptTexts, entry: Entry, cut: Cut) -> Entry:
    """Return the entry with each of its texts shortened."""
    turn = entry.turn
    if cut.length == BAREST:
        return barest_entry(texts, turn.id, turn.handle, critic=turn.critic)
    short = replace(
        turn,
        solution=turn.solution and _cut_text(texts, turn.solution, cut, answer=turn.answer),
        evaluation=turn.evaluation and _cut_text(texts, turn.evaluation, cut),
    )
    return entry if short == turn else render_entry(texts, short)


def barest_entry(texts: PromptTexts, turn: TurnId, handle: str, *, critic: bool = False) -> Entry:
    """Return the entry of a turn with nothing but marks in it, whatever the turn says."""
    mark = _barest_text(texts)
    return render_entry(texts, PublicTurn(turn, handle, None if critic else mark, mark, critic=critic))


def _barest_text(texts: PromptTexts) -> str:
    return texts.cut or texts.unreadable


def _cut_text(texts: PromptTexts, text: str, cut: Cut, *, answer: str | None = None) -> str:
    if cut.length is None:
        return text
    if cut.length == BAREST:
        return _barest_text(texts)
    return shorten(text, cut.length, answer=None if cut.length == MARKS_ALONE else answer, mark=texts.cut)


def shorten(text: str, length: int, *, answer: str | None, mark: str, keep: int = 200) -> str:
    r"""Return ``text`` cut to about ``length`` characters, marked; a boxed answer stays unless it is huge.

    >>> shorten("one, two, three, so \\boxed{6}", 14, answer="6", mark="...")
    'on...\\boxed{6}'
    """
    if len(text) <= length:
        return text
    boxed = f"\\boxed{{{answer}}}" if answer is not None and len(answer) <= keep else ""
    head = text[: max(0, length - len(mark) - len(boxed))].rstrip()
    short = head + mark + ("" if boxed in head else boxed)
    return short if len(short) < len(text) else text


def _count_changed(before: Sequence[Entry], after: Sequence[Entry]) -> int:
    """Return how many texts were shortened."""
    pairs = [(a.turn, b.turn) for a, b in zip(before, after, strict=True)]
    return sum((a.solution != b.solution) + (a.evaluation != b.evaluation) for a, b in pairs)


def _longest_text(material: Material) -> int:
    """Return the characters of the longest text of the newest round, or of the summary."""
    if isinstance(material, Summary):
        return len(material.text)
    newest = [entry.turn for entry in material[-1]] if material else []
    return max((len(text) for turn in newest for text in (turn.solution, turn.evaluation) if text), default=0)
