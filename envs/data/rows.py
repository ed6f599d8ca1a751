"""From a row to a problem: each data set's fields are looked up as its table entry says."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from debate.types import Kind, Problem
from envs.answers.choices import LETTERS
from envs.answers.notation import clean, sides
from envs.answers.numbers import parse_number
from envs.data.data_set import OWN_FILE, DataSet
from envs.data.kinds import GOLDS, own_kind
from envs.data.records import Record, as_text


def problem_of(entry: DataSet, row: Record, split: str, *, is_open: bool) -> Problem:
    """Return the row as a problem, or raise its error; an open one has no answer and none is looked for."""
    choices = _choices(entry, row)
    named = own_kind(row) if entry.own else None
    gold = entry.gold if named is None or named == "open" else GOLDS[named]
    answer = None if is_open or named == "open" else gold(row, choices)
    question = entry.question(row)
    subject = _optional(row, "subject", entry.subject)
    return Problem(
        id=_id(entry, row, split, question),
        question=question,
        answer=answer,
        source=f"{entry.name}/{subject}" if subject else entry.name,
        level=normal_level(_optional(row, "level", ("level",))),
        kind="open" if answer is None else named or _kind(entry, answer, choices),
        choices=choices,
    )


def question_hash(question: str) -> str:
    r"""Return 16 hexadecimal digits that stand for a question, blanks apart.

    >>> question_hash("What is  1 + 1?") == question_hash("What is\n1 + 1?")
    True
    """
    return blake2b(" ".join(question.split()).encode(errors="replace"), digest_size=8).hexdigest()


def normal_level(level: object) -> str:
    """Return a level as the data sets' plain form.

    >>> normal_level("Level 5"), normal_level(5)
    ('5', '5')
    """
    return str(level).strip().removeprefix("Level ").strip()


def _choices(entry: DataSet, row: Record) -> tuple[str, ...]:
    if entry.choices:  # some published options have lines
        options = tuple(" ".join(option.split()) for option in entry.choices(row))
        return tuple(row.whole("choices", option, one_line=True) for option in options)
    given = row.find("choices", "choices") if entry.own else None
    if given is None or given[1] is None:
        return ()
    field, value = given
    if not isinstance(value, list | tuple) or len(value) > len(LETTERS):
        raise row.error(field, f"needs a list of at most {len(LETTERS)} options", value)
    return tuple(row.whole(field, str(option), one_line=True) for option in value)


def _kind(entry: DataSet, answer: str, choices: tuple[str, ...]) -> Kind:
    if entry.kind != "auto":
        return entry.kind
    if choices:
        return "choice"
    return "number" if parse_number(sides(clean(answer))[-1]) else "expression"


def _id(entry: DataSet, row: Record, split: str, question: str) -> str:
    """Return the row's own id, or its place, behind the data set's name: unique among data sets.

    A row of a stream has no place that stays, so its question's hash stands for it.
    """
    found = row.find("id", *entry.ids)
    if "id" in row.renamed and found is None:
        raise row.error(row.renamed["id"], "is missing")
    place = question_hash(question) if entry.streamed else f"{split}-{row.index}"
    own = as_text(found[1]) if found else place
    if not own:
        raise row.error(found[0] if found else "id", "is empty", found[1] if found else None)
    row.whole(found[0] if found else "id", own, one_line=True)
    return own if entry.name == OWN_FILE.name or own.startswith(entry.name) else f"{entry.name}-{own}"


def _optional(row: Record, noun: str, names: Sequence[str]) -> str:
    found = row.find(noun, *names)
    return row.whole(found[0], as_text(found[1]) or "", one_line=True) if found else ""
