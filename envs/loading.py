"""``load_problems``: any data set, file or synthetic family as a tuple of problems, or one clear error."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path

from debate.seeds import derive_seed
from debate.types import Kind, Problem
from envs.catalog import DATA_SETS, DataSet
from envs.choices import LETTERS
from envs.errors import DataError
from envs.golds import plain
from envs.numbers import parse_number
from envs.pair_sum import PairSum
from envs.records import Record, as_text, read_file, read_hub
from envs.synthetic import SyntheticFamily
from envs.words import Words

FAMILIES: Mapping[str, SyntheticFamily] = {"pair_sum": PairSum(), "words": Words()}
"""Synthetic families by name, at all of their levels."""
NOUNS = ("question", "answer", "id", "level", "subject", "choices", "solution")
OWN_FILE = DataSet("file", "", {}, plain, ids=("id", "unique_id"), subject=("subject", "type"))
OWN_FILE_NAMES = ("file", "jsonl", "json", "parquet", "open")
"""Names for your own data; under "open" the problems have no answers and none is looked for."""


def load_problems(
    name: str,
    *,
    split: str = "train",
    limit: int | None = None,
    seed: int | None = None,
    path: str | PathLike[str] | None = None,
    levels: Iterable[str | int] | None = None,
    subjects: Iterable[str] | None = None,
    ids: Iterable[str] | None = None,
    fields: Mapping[str, str] | None = None,
) -> tuple[Problem, ...]:
    """Return the problems of a data set, of your own file (name "file"), or of a synthetic family.

    ``path`` reads a local JSONL, JSON or Parquet file instead of the hub; ``fields`` names its fields,
    e.g. ``{"question": "prompt", "answer": "gold"}``. ``levels``, ``subjects`` and ``ids`` keep what they
    name, and what matches nothing is an error. ``seed`` shuffles (the same order for every ``limit``),
    ``limit`` keeps the first n. Split "all" reads every row of a local file.

    >>> [problem.question for problem in load_problems("words", split="test", limit=1, seed=0, levels=[1])]
    ['Ann has 9 books. Ann loses 1. How many books?']
    """
    if limit is not None and limit < 1:
        raise DataError(f"limit: needs at least 1, got {limit}")
    if name in FAMILIES:
        _refuse(name, path=path, subjects=subjects, ids=ids, fields=fields)
        return FAMILIES[name].of_levels(levels).problems(split=split, limit=limit, seed=seed)
    entry = _entry(name, path)
    records = _read(entry, split, path, _checked_fields(fields))
    loaded = [(_problem(entry, row, split, is_open=name == "open"), row) for row in records]
    _refuse_duplicates(loaded)
    problems = _selected(entry.name, loaded, levels=levels, subjects=subjects, ids=ids)
    if seed is not None:
        random.Random(derive_seed(seed, "problems", entry.name, split)).shuffle(problems)
    return tuple(problems[:limit])


def normal_level(level: object) -> str:
    """Return a level as the data sets' plain form.

    >>> normal_level("Level 5"), normal_level(5)
    ('5', '5')
    """
    return str(level).strip().removeprefix("Level ").strip()


def _entry(name: str, path: str | PathLike[str] | None) -> DataSet:
    if name in OWN_FILE_NAMES:
        if path is None:
            raise DataError(f"{name!r}: give path= the file to read")
        return OWN_FILE
    if name not in DATA_SETS:
        valid = ", ".join((*DATA_SETS, *FAMILIES, "file"))
        raise DataError(
            f"name: {name!r} is no known data set; valid: {valid} (your own: 'file' with path=...)"
        )
    return DATA_SETS[name]


def _read(
    entry: DataSet, split: str, path: str | PathLike[str] | None, renamed: Mapping[str, str]
) -> list[Record]:
    if path is None:
        if split not in entry.splits:
            raise DataError(f"split: {entry.name} has {', '.join(entry.splits)}; got {split!r}")
        return read_hub(entry.hub_id, entry.configs, entry.splits[split], renamed)
    records = read_file(Path(path), renamed)
    if entry.split_field and split != "all":
        known = sorted({str(row.values.get(entry.split_field)) for row in records})
        records = [row for row in records if row.values.get(entry.split_field) in (split, None)]
        if not records:
            raise DataError(
                f"{path}: no row of split {split!r}; the file has {', '.join(known)}, or use 'all'"
            )
    return records


def _problem(entry: DataSet, row: Record, split: str, *, is_open: bool) -> Problem:
    choices = _choices(entry, row)
    answer = None if is_open else entry.gold(row, choices)
    question = entry.question(row)
    subject = _optional(row, "subject", entry.subject)
    return Problem(
        id=_id(entry, row, split),
        question=question,
        answer=answer,
        source=f"{entry.name}/{subject}" if subject else entry.name,
        level=normal_level(_optional(row, "level", ("level",))),
        kind=_kind(entry, answer, choices),
        choices=choices,
    )


def _choices(entry: DataSet, row: Record) -> tuple[str, ...]:
    if entry.choices:
        return entry.choices(row)
    given = row.find("choices", "choices") if entry is OWN_FILE else None
    if given is None or given[1] is None:
        return ()
    field, value = given
    if not isinstance(value, list | tuple) or len(value) > len(LETTERS):
        raise row.error(field, f"needs a list of at most {len(LETTERS)} options", value)
    return tuple(map(str, value))


def _kind(entry: DataSet, answer: str | None, choices: tuple[str, ...]) -> Kind:
    if answer is None:
        return "open"
    if entry.kind != "auto":
        return entry.kind
    if choices:
        return "choice"
    return "number" if parse_number(answer) else "expression"


def _id(entry: DataSet, row: Record, split: str) -> str:
    """Return the row's own id, or its place, behind the data set's name: unique among data sets."""
    found = row.find("id", *entry.ids)
    if "id" in row.renamed and found is None:
        raise row.error(row.renamed["id"], "is missing")
    own = as_text(found[1]) if found else f"{split}-{row.index}"
    if not own:
        raise row.error(found[0] if found else "id", "is empty", found[1] if found else None)
    if any("\ud800" <= character <= "\udfff" for character in own):
        raise row.error(found[0] if found else "id", "holds half a character (a lone surrogate)", own)
    return own if entry is OWN_FILE or own.startswith(entry.name) else f"{entry.name}-{own}"


def _optional(row: Record, noun: str, names: Sequence[str]) -> str:
    found = row.find(noun, *names)
    return (as_text(found[1]) or "") if found else ""


def _refuse_duplicates(loaded: list[tuple[Problem, Record]]) -> None:
    seen: dict[str, Record] = {}
    for problem, row in loaded:
        if problem.id in seen:
            raise row.error("id", f"is a duplicate of {seen[problem.id].place}", problem.id)
        seen[problem.id] = row


def _selected(
    name: str,
    loaded: list[tuple[Problem, Record]],
    *,
    levels: Iterable[str | int] | None,
    subjects: Iterable[str] | None,
    ids: Iterable[str] | None,
) -> list[Problem]:
    everything = [problem for problem, _ in loaded]
    filters: tuple[tuple[str, set[str] | None, Callable[[Problem], str]], ...] = (
        (
            "levels",
            None if levels is None else {normal_level(level) for level in levels},
            lambda problem: problem.level,
        ),
        (
            "subjects",
            None if subjects is None else {_plain_subject(subject) for subject in subjects},
            _subject_of,
        ),
        ("ids", None if ids is None else set(ids), lambda problem: problem.id),
    )
    kept = everything
    for what, wanted, key in filters:
        if wanted is not None:
            _refuse_unmatched(f"{name}, {what}", wanted, {key(problem) for problem in everything})
            kept = [problem for problem in kept if key(problem) in wanted]
    if not kept:
        raise DataError(f"{name}: no problem has all of the levels, subjects and ids asked for")
    return kept


def _refuse_unmatched(place: str, wanted: set[str], known: set[str]) -> None:
    """A wanted key that no problem has is an error, never a silent skip (lesson 8)."""
    if not wanted:
        raise DataError(f"{place}: is empty; leave it out to keep everything")
    if unmatched := sorted(wanted - known):
        valid = sorted(known - {""})
        shown = ", ".join(valid[:12]) + (f", ... ({len(valid)} in all)" if len(valid) > 12 else "") or "none"
        raise DataError(f"{place}: {len(unmatched)} unmatched: {', '.join(unmatched[:5])}; valid: {shown}")


def _subject_of(problem: Problem) -> str:
    return _plain_subject(problem.source.partition("/")[2])


def _plain_subject(subject: str) -> str:
    return subject.lower().replace("&", "and").replace(" ", "_")


def _checked_fields(fields: Mapping[str, str] | None) -> Mapping[str, str]:
    for noun in fields or {}:
        if noun not in NOUNS:
            raise DataError(f"fields: {noun!r} is nothing that can be named; valid: {', '.join(NOUNS)}")
    return fields or {}


def _refuse(name: str, **options: object) -> None:
    for option, value in options.items():
        if value is not None:
            raise DataError(
                f"{option}: the synthetic family {name!r} takes none; it takes split, limit, seed, levels"
            )
