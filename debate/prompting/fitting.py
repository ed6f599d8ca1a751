"""Cut a prompt that does not fit the context.

First, whole rounds are left out, oldest first, except the newest. Then the longest texts of the newest round
are shortened to one common length, the largest that fits; boxed answers are kept. Next, every long text is
replaced by the mark of a cut. Finally, short and unreadable texts are replaced in the same way. If the prompt
still does not fit, it is refused. A summary is shortened in the same way.
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
"""The content of a history: entries by round, oldest first, or a summary instead of them."""


class PromptTooLongError(ValueError):
    """A prompt cannot be cut to fit the context. The message has the problem's id and the length."""


@dataclass(frozen=True, slots=True)
class ContextBudget:
    """The maximum tokens of a prompt (None: no limit), and the function that counts them.

    ``reply`` tokens are reserved in addition. ``kept`` says what they are reserved for.
    """

    tokens: int | None
    count: Callable[[tuple[Message, ...]], int]
    reply: int = 0
    kept: str = "the reply"

    def fits(self, messages: tuple[Message, ...]) -> bool:
        """Return whether the prompt is within the limit."""
        return self.tokens is None or self.count(messages) <= self.tokens


def context_budget(policy: Policy, config: DebateConfig, *, max_tokens: int | None = None) -> ContextBudget:
    """Return the context budget of a prompt, from the smaller of the policy's and the configured limit.

    ``max_tokens``: the maximum tokens of the reply, if it is not an agent's.
    """
    limits = [limit for limit in (config.context_tokens, context_limit(policy)) if limit]
    reply = (max_tokens or config.max_tokens) + config.thinking_tokens
    return ContextBudget(min(limits) - reply if limits else None, token_counter(policy), reply)


@dataclass(frozen=True, slots=True)
class Cut:
    """How much is cut: the oldest ``rounds``, and the part of each remaining text above ``length``.

    ``length`` is in characters; None keeps texts complete. With length ``MARKS_ALONE`` not even answers are
    kept, but texts shorter than the mark are. With ``BAREST`` the history does not depend on what was
    written.
    """

    rounds: int = 0
    length: int | None = None


MARKS_ALONE, BAREST = -1, -2


@dataclass(frozen=True, slots=True)
class History:
    """A history as shown in a prompt: the turns, the text, the number of texts cut, and ``Cut.length``."""

    shown: tuple[TurnId, ...]
    text: str
    cut: int = 0
    length: int | None = None


def fit_history(frame: Frame, material: Material, seating: Seating, budget: ContextBudget | Cut) -> History:
    """Return as much of the history as fits into the frame. PromptTooLongError if even the marks do not fit.

    A ``Cut`` instead of a budget repeats an earlier cut.
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
    """Return the history with its texts cut to the largest length that fits, found by bisection.

    None if no length fits.
    """
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
    """Raise PromptTooLongError if a prompt that cannot be cut any further does not fit."""
    if budget.fits(messages):
        return
    raise PromptTooLongError(
        f"problem {problem.id!r}: its shortest prompt ({task}) has {budget.count(messages)} tokens,"
        f" but the context has only {budget.tokens}, with {budget.reply} reserved for {budget.kept}; raise"
        " debate.context_tokens, lower debate.max_tokens or debate.num_agents, or leave the problem out"
    )


def cut_history(texts: PromptTexts, material: Material, cut: Cut) -> History:
    """Return the history after this cut."""
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
    """Return the entry of a turn with marks instead of all texts, whatever the turn contains."""
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
    r"""Return ``text`` cut to about ``length`` characters and marked.

    A boxed answer is kept unless it is very long.

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
    """Return the length in characters of the longest text of the newest round, or of the summary."""
    if isinstance(material, Summary):
        return len(material.text)
    newest = [entry.turn for entry in material[-1]] if material else []
    return max((len(text) for turn in newest for text in (turn.solution, turn.evaluation) if text), default=0)
