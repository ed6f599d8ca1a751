"""Fill in the pieces of a prompt set and assemble them into messages.

Text shared by all agents comes first (rules, problem, history in one order), and the agent's own part comes
last (instructions, handle, task), so that an engine with a prefix cache processes the shared part once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase
from typing import Literal, TypeAlias

from debate.parsing import last_boxed
from debate.prompting.escape import clean, escape
from debate.prompting.shown import PublicTurn
from debate.prompting.texts import PromptTexts, load_prompts
from debate.types import Message, Problem, Shot, TurnId

Task: TypeAlias = Literal[
    "opening", "review", "debate", "ballot", "critique", "critique_unranked", "revision", "rival"
]

SECTIONS: dict[Task, tuple[str, ...]] = {
    "opening": ("solution",),
    "review": ("solution", "evaluation"),
    "debate": ("solution", "evaluation", "comparison"),
    "ballot": ("evaluation", "comparison"),
    "critique": ("evaluation", "comparison"),
    "critique_unranked": ("evaluation",),
    "revision": ("solution",),
    "rival": ("solution",),
}
"""The sections that each task asks for, in order."""

_OWN_LABEL = re.compile(r"\s*\(?([A-Za-z])\s*[).:]\s*")


@dataclass(frozen=True, slots=True)
class Frame:
    """A prompt without its history: the text before and after it, and the task.

    ``compared``: the turns that may be compared. ``stop``: the strings at which the reply ends. ``examples``:
    solved problems as separate turns.
    """

    task: Task | Literal["summary"]
    system: str
    before: str
    behind: str
    compared: tuple[TurnId, ...] = ()
    stop: tuple[str, ...] = ()
    examples: tuple[Message, ...] = ()

    def messages(self, history: str) -> tuple[Message, ...]:
        r"""Return the messages with this history: the system message, if any, examples, and the user message.

        >>> Frame("opening", "", "1 + 1\n", "K7 careful solve").messages("")
        (Message(role='user', content='1 + 1\nK7 careful solve'),)
        """
        user = Message("user", f"{self.before}{history}{self.behind}")
        system = (Message("system", self.system),) if self.system else ()
        return (*system, *self.examples, user)


def problem_text(texts: PromptTexts, problem: Problem) -> str:
    r"""Return the problem's text, including its choices.

    >>> problem_text(load_prompts("default"), Problem("p", "1 + 1?", choices=("2", "3")))
    'Problem:\n1 + 1?\n\nOptions:\nA. 2\nB. 3\n'
    """
    safe = escape if texts.sections else str
    options = "".join(
        texts.option(label=label, text=safe(choice)) for label, choice in _labelled(problem.choices)
    )
    choices = texts.choices(options=options) if options else ""
    return texts.problem(question=safe(problem.question), choices=choices)


def shot_reply(texts: PromptTexts, shot: Shot) -> str:
    r"""Return the assistant's reply in a solved example (shot).

    >>> shot_reply(load_prompts("default"), Shot("1 + 1?", "It is 2.", "2"))
    '<solution>\nIt is 2.\n\nThe answer is \\boxed{2}.\n</solution>'
    """
    box = "" if last_boxed(shot.solution) is not None else f"\n\nThe answer is \\boxed{{{shot.answer}}}."
    return texts.shot_reply(solution=shot.solution, answer=shot.answer, box=box)


def _labelled(choices: Sequence[str]) -> Iterable[tuple[str, str]]:
    """Pair each choice with its letter.

    If all choices start with their own letters, as in "A)5", remove those.
    """
    letters = [*ascii_uppercase, *map(str, range(27, len(choices) + 1))][: len(choices)]
    own = [_OWN_LABEL.match(choice) for choice in choices]
    if all(match and match[1].upper() == letter for match, letter in zip(own, letters, strict=True)):
        choices = [choice[match.end() :] for choice, match in zip(choices, own, strict=True) if match]
    return zip(letters, choices, strict=True)


@dataclass(frozen=True, slots=True)
class Entry:
    """A public turn with its rendered text."""

    turn: PublicTurn
    text: str


def render_entry(texts: PromptTexts, turn: PublicTurn) -> Entry:
    r"""Return one entry of the history, escaped. An unreadable solution is replaced by a placeholder.

    >>> from debate.types import TurnId
    >>> render_entry(load_prompts("tiny"), PublicTurn(TurnId(0, 0), "Q2", " 3 + 8 = 11.\nK7: 0")).text
    'Q2: 3 + 8 = 11. K7: 0\n'
    """
    if turn.critic:
        said = texts.no_criticism if turn.evaluation is None else one_text(texts, turn.evaluation)
        return Entry(
            turn, texts.entry_criticism(handle=turn.handle, round=turn.id.round + 1, evaluation=said)
        )
    piece = texts.entry if turn.evaluation is None else texts.entry_evaluated
    solution = texts.unreadable if turn.solution is None else one_text(texts, turn.solution)
    evaluation = "" if turn.evaluation is None else one_text(texts, turn.evaluation)
    rendered = piece(handle=turn.handle, round=turn.id.round + 1, solution=solution, evaluation=evaluation)
    return Entry(turn, rendered)


def answer_entry(texts: PromptTexts, turn: PublicTurn) -> Entry:
    r"""Return an entry that shows only the boxed answer of a solution.

    >>> from debate.types import TurnId
    >>> turn = PublicTurn(TurnId(0, 0), "Q2", r"3 + 8 = 11. \boxed{ 3 8}")
    >>> answer_entry(load_prompts("tiny"), turn).text
    'Q2: \\boxed{ 3 8}\n'
    """
    answer = None if turn.solution is None else last_boxed(turn.solution)
    said = None if answer is None else texts.answer_alone(answer=answer)
    return render_entry(texts, replace(turn, solution=said, evaluation=None))


def one_text(texts: PromptTexts, text: str) -> str:
    """Return a shown text, escaped, with line breaks written in the style of the prompt set."""
    return escape(clean(text).replace("\n", texts.line_break))


def history_text(texts: PromptTexts, entries: Iterable[str], *, left_out: bool = False) -> str:
    """Return the rendered entries with the text before and after them, or "" without entries."""
    body = "".join(entries)
    if not body:
        return ""
    return f"{texts.history_before}{texts.left_out if left_out else ''}{body}{texts.history_after}"


def summary_text(texts: PromptTexts, summary: str) -> str:
    r"""Return the text that shows a summary instead of the history.

    The summary is escaped; an empty one is replaced by a placeholder.

    >>> summary_text(load_prompts("tiny"), "Q2 says 11.\nK7 agrees. <solution>")
    'Q2 says 11. K7 agrees. &lt;solution>\n'
    """
    return texts.summary(summary=one_text(texts, summary) if summary else texts.unreadable)


def raw_prompt(messages: Sequence[Message], texts: PromptTexts | str = "default") -> str:
    r"""Return the messages as one text that ends where the reply begins, for models without a chat template.

    >>> raw_prompt([Message("user", "1 + 1 = ?")])
    '1 + 1 = ?\n\n<reply>\n'
    """
    chosen = load_prompts(texts) if isinstance(texts, str) else texts
    pieces = {"system": chosen.raw_system, "user": chosen.raw_user, "assistant": chosen.raw_reply}
    return "".join(pieces[m.role](content=m.content) for m in messages) + chosen.raw_start
