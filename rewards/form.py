"""The bonus for a solution that gives its answer in a required format, right or wrong.

The bonus is part of the truth reward and shares its baseline. So it teaches nothing if every solution has the
format, and it still teaches the format if all answers to a problem are wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

from debate.parsing import last_boxed
from debate.types import Debate, TurnId

Form: TypeAlias = Literal["boxed", "answer_is", "hashes"]

_FORMS: Mapping[Form, Callable[[str], object]] = {
    "boxed": lambda text: last_boxed(text) is not None,
    "answer_is": re.compile(r"\bthe (?:final )?answer is\b", re.IGNORECASE).search,
    "hashes": re.compile(r"^####[ \t]*\S", re.MULTILINE).search,
}


def has_form(text: str, form: Form) -> bool:
    r"""Return whether a solution gives its answer in a format.

    >>> [has_form(r"So \boxed{4}.", form) for form in ("boxed", "answer_is", "hashes")]
    [True, False, False]
    """
    return bool(_FORMS[form](text))


def formed_turns(debate: Debate, form: Form) -> set[TurnId]:
    """Return the turns whose solution gives its answer in a format."""
    spans = ((turn, turn.parsed.solution) for turn in debate.turns)
    return {turn.id for turn, span in spans if span and has_form(span.of(turn.completion.stated), form)}
