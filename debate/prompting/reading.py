"""Parse a rendered prompt with the templates that rendered it.

Scripted agents need this, because they know only their prompt; tests use it too. Escaped text cannot contain
what begins or ends an entry, so entries are parsed exactly.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from string import Template

from debate.prompting.rendering import SECTIONS, Task
from debate.prompting.texts import PromptTexts
from debate.types import Message

_GROUPS = {"handle": r"[^\n:<>\"]{1,40}?", "round": r"\d+"}


@dataclass(frozen=True, slots=True)
class SeenEntry:
    """One entry of the history as an agent sees it, escaped.

    ``round`` is None if the prompt set does not print it.

    ``solution`` is "" if the entry is criticism; its text is then in ``evaluation``.
    """

    handle: str
    round: int | None
    solution: str
    evaluation: str | None = None


@dataclass(frozen=True, slots=True)
class SeenPrompt:
    """The content of an agent's prompt: its task, its own label, and the entries in the order shown."""

    task: Task
    handle: str | None
    entries: tuple[SeenEntry, ...]


def read_prompt(texts: PromptTexts, messages: Sequence[Message]) -> SeenPrompt:
    r"""Return the content of a prompt. ValueError if it was not rendered from ``texts``.

    >>> from debate.prompting.texts import load_prompts
    >>> seen = read_prompt(load_prompts("tiny"), [Message("user", "1 + 1\nQ2: 2\nK7 careful judge")])
    >>> seen.task, seen.handle, seen.entries
    ('ballot', 'K7', (SeenEntry(handle='Q2', round=None, solution=' 2', evaluation=None),))
    """
    text = messages[-1].content
    tasks = SECTIONS if texts.opening_alone == texts.opening else (*SECTIONS, "opening_alone")
    for key in tasks:
        template = texts.templates[key]
        match = _task_pattern(template).match(text) if text.endswith(_last_words(template)) else None
        if match:
            task: Task = "opening" if key == "opening_alone" else key  # type: ignore[assignment]
            entries = () if task == "opening" else _entries(texts, text[: match.start("task")])
            return SeenPrompt(task, match.groupdict().get("handle"), entries)
    raise ValueError(f"the prompt was not rendered from the texts {texts.name!r}")


def _entries(texts: PromptTexts, text: str) -> tuple[SeenEntry, ...]:
    """Return the entries in order.

    If several kinds of entry match at a position, the one that ends first is taken.
    """
    kinds = ("entry", "entry_evaluated", "entry_criticism")
    patterns = [_entry_pattern(texts.templates[key]) for key in kinds]
    entries: list[SeenEntry] = []
    at = 0
    while matches := [match for pattern in patterns if (match := pattern.search(text, at))]:
        match = min(matches, key=lambda match: (match.start(), match.end()))
        groups, at = match.groupdict(), match.end()
        number: str | None = groups.get("round")
        round_ = int(number) if number else None
        solution = groups.get("solution", "")
        entries.append(SeenEntry(groups["handle"], round_, solution, groups.get("evaluation")))
    return tuple(entries)


def _last_words(template: str) -> str:
    """Return the text after the last placeholder of a template."""
    return template[max((match.end() for match in Template.pattern.finditer(template)), default=0) :]


@lru_cache(maxsize=64)
def _entry_pattern(template: str) -> re.Pattern[str]:
    return re.compile("^" + _pattern(template), re.MULTILINE | re.DOTALL)


@lru_cache(maxsize=64)
def _task_pattern(template: str) -> re.Pattern[str]:
    """Return a pattern for a message that ends with the task, which starts at the last line possible."""
    return re.compile(f".*^(?P<task>{_pattern(template)})\\Z", re.MULTILINE | re.DOTALL)


def _pattern(template: str) -> str:
    """Return a regular expression for the rendered template, with one named group for each placeholder."""
    parts: list[str] = []
    named: set[str] = set()
    end = 0
    for match in Template.pattern.finditer(template):
        parts.append(re.escape(template[end : match.start()]))
        name: str | None = match["named"] or match["braced"]
        if name is None:
            parts.append(r"\$")
        elif name in named:
            parts.append(f"(?P={name})")
        else:
            parts.append(f"(?P<{name}>{_GROUPS.get(name, '.*?')})")
            named.add(name)
        end = match.end()
    return "".join(parts) + re.escape(template[end:])
