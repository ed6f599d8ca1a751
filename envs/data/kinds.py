"""The kind that a user's row names, and its gold answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import cast, get_args

from debate.types import Kind
from envs.answers.notation import clean, sides
from envs.answers.numbers import parse_number
from envs.answers.texts import normal_text, tokens_of
from envs.data import code_sets, golds, options
from envs.data.golds import Gold
from envs.data.records import Record, as_text
from envs.errors import HALF_CHARACTER
from envs.instructions import ConstraintError
from envs.instructions.constraints import FIELDS, write_constraints

KINDS: tuple[Kind, ...] = get_args(Kind)
_ANSWER = ("answer", "expected_answer", "target")
_COMMAND = re.compile(r"\\[A-Za-z]+")
_LETTER = re.compile(r"[^\W\d_]")


def own_kind(row: Record) -> Kind | None:
    """Return the kind that a user's row names, or "instructions" where it has constraints; else None.

    A field "kind" that the user reads as something else (``fields={"subject": "kind"}``) names none.
    """
    taken = "kind" not in row.renamed and "kind" in row.renamed.values()
    named = None if taken else row.find("kind", "kind")
    if named is None and "kind" in row.renamed:
        raise row.error(row.renamed["kind"], "is missing")
    if named is None or named[1] is None:
        return "instructions" if row.values.get(FIELDS[0]) is not None else None
    if named[1] not in KINDS:
        valid = f"valid: {', '.join(KINDS)}; or read it as something else, fields={{'subject': 'kind'}}"
        raise row.error(named[0], f"is not a kind of problem; {valid}", named[1])
    return cast(Kind, named[1])


def number(row: Record, choices: tuple[str, ...]) -> str:
    """A number in plain notation."""
    answer = golds.plain(row, ())
    if parse_number(sides(clean(answer))[-1]) is None:
        raise row.error(row.field("answer", *_ANSWER), "is not a number", answer)
    return answer


def expression(row: Record, choices: tuple[str, ...]) -> str:
    """The answer field as it is."""
    return golds.plain(row, ())


def text(row: Record, choices: tuple[str, ...]) -> str:
    """The accepted texts, one on each line, from a text or a list of texts."""
    texts = [" ".join(text.split()) for text in _texts(row)]
    for item in texts:
        if not normal_text(item):
            fault = "is nothing but articles and punctuation; kind 'verbatim' compares these as well"
            raise row.error(row.field("answer", *_ANSWER), fault, item)
        if parse_number(clean(item)) and not _LETTER.search(_COMMAND.sub("", item)):
            fault = "is a number: kind 'number' compares its value, kind 'verbatim' its every character"
            raise row.error(row.field("answer", *_ANSWER), fault, item)
    return "\n".join(texts)


def verbatim(row: Record, choices: tuple[str, ...]) -> str:
    """The accepted texts as they are, one on each line, from a text or a list of texts."""
    texts = _texts(row)
    for item in texts:
        if "\n" in item:
            raise row.error(row.field("answer", *_ANSWER), "holds a line break, which no box can", item)
    return "\n".join(texts)


def overlap(row: Record, choices: tuple[str, ...]) -> str:
    """The accepted texts, one on each line, their line breaks as blanks; each has words."""
    texts = [" ".join(text.split()) for text in _texts(row)]
    for item in texts:
        if not tokens_of(item):
            fault = "has no word to overlap with, but articles and punctuation"
            raise row.error(row.field("answer", *_ANSWER), fault, item)
    return "\n".join(texts)


def instructions(row: Record, choices: tuple[str, ...]) -> str:
    """IFEval's two fields as one text; each instruction and each of its arguments is checked."""
    given = [row.value(field, field) for field in FIELDS]
    try:
        return write_constraints(*given)
    except ConstraintError as fault:
        name = row.find("id", "id", "key")
        of = f" (row {as_text(name[1])})" if name else ""
        raise row.error(fault.field, fault.problem + of, fault.value) from fault


def _texts(row: Record) -> list[str]:
    field, value = row.field("answer", *_ANSWER), row.value("answer", *_ANSWER)
    items = [as_text(item) for item in (value if isinstance(value, list | tuple) else [value])]
    texts = [item for item in items if item]
    if not items or len(texts) < len(items):
        raise row.error(field, "needs a text or a list of texts, none of them empty", value)
    if any(map(HALF_CHARACTER.search, texts)):
        raise row.error(field, "holds half a character (a lone surrogate)", value)
    return texts


GOLDS: Mapping[Kind, Gold] = MappingProxyType(
    {
        "number": number,
        "expression": expression,
        "choice": options.choice,
        "text": text,
        "verbatim": verbatim,
        "overlap": overlap,
        "instructions": instructions,
        "code": code_sets.any_tests,
    }
)
"""The gold answer of a row that names its kind; an open one has none."""
