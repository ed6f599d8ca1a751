"""Load any data set, file or synthetic family as a tuple of problems, or raise one clear error."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from os import PathLike
from pathlib import Path

from msgspec import UNSET, UnsetType

from debate.seeds import derive_seed
from debate.types import WITHOUT_TRUTH, Problem
from envs.answers.notation import clean, sides
from envs.answers.numbers import parse_number
from envs.answers.words import LETTERS
from envs.data import golds
from envs.data.catalog import DATA_SETS, OWN_FILE, DataSet, find_data_set
from envs.data.records import Record, as_text, files_of, of_split, read_files, read_hub
from envs.errors import DataError, DataWarning, listed, shorten
from envs.families import FAMILIES

NOUNS = ("question", "answer", "id", "level", "subject", "choices", "solution", "split", "kind")
NOUNS = (*NOUNS, "rubric", "reference")
OWN_FILE_NAMES = ("file", "jsonl", "json", "parquet", "open")
"""Names for your own data; problems loaded as "open" have no answers, and answer fields are ignored."""
SHOWN = 12  # maximum number of valid keys in an error message


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

    ``name`` is a data set's name or hub id. Any other "owner/name" of the hub is parsed like your own file.
    ``path`` is a local JSONL, JSON or Parquet file to read instead of the hub, or a folder or a glob of
    shards; shards named for another split are skipped. ``fields`` gives the names of the fields, e.g.
    ``{"question": "prompt", "answer": "gold"}``. ``levels``, ``subjects`` and ``ids`` select problems, and a
    value that matches no problem is an error. ``seed`` shuffles, then ``limit`` keeps the first problems. The
    split "all" reads every row of a local file.

    >>> [problem.question for problem in load_problems("words", split="test", limit=1, seed=0, levels=[1])]
    ['Ann has 9 books. Ann loses 1. How many books?']
    """
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise DataError(f"limit: needs a whole number of at least 1, got {shorten(limit)}")
    if name in FAMILIES:
        for option, value in {"path": path, "subjects": subjects, "ids": ids, "fields": fields}.items():
            if value is not None:
                takes = "it takes split, limit, seed, levels"
                raise DataError(f"{option}: the synthetic family {name!r} takes none; {takes}")
        return FAMILIES[name].of_levels(levels).problems(split=split, limit=limit, seed=seed)
    entry = entry_of(name, path)
    selection = _wanted(levels, subjects, ids)
    drawn = None if seed is None else derive_seed(seed, "problems", entry.name, split)
    rows = rows_of(entry, split, path, checked_fields(fields), drawn)
    in_order = drawn is None or (entry.streamed and path is None)  # a stream shuffles itself
    enough = limit if entry.streamed and in_order else None
    problems = _read(entry, rows, split, selection, enough=enough, is_open=name == "open", seed=seed or 0)
    if drawn is not None and not in_order:
        random.Random(drawn).shuffle(problems)
    return tuple(problems[:limit])


def entry_of(name: str, path: str | PathLike[str] | None) -> DataSet:
    """Return the data set for a name, a hub id or your own file; raise DataError for an unknown name."""
    if name in OWN_FILE_NAMES:
        if path is None:
            raise DataError(f"{name!r}: give path= the file to read")
        return OWN_FILE
    entry = find_data_set(name)
    if entry is None:
        valid = f"valid: {', '.join((*DATA_SETS, *FAMILIES, 'file'))} (your own: 'file' with path=...)"
        raise DataError(f"name: {name!r} is not a known data set; {valid}")
    return entry


def rows_of(
    entry: DataSet, split: str, path: str | PathLike[str] | None, renamed: Mapping[str, str], seed: int | None
) -> Iterator[Record]:
    """Return the rows of a split that belong to the data set."""
    if path is None:
        if not entry.hub_id:
            raise DataError(
                f"{entry.name}: is not on the hub; give path= (env.path) its file of {entry.home}"
            )
        if split not in entry.splits and not entry.own:
            raise DataError(f"split: {entry.name} has {', '.join(entry.splits)}; got {split!r}")
        home = (entry.hub_id, entry.configs, entry.splits.get(split, split), renamed)
        rows = read_hub(*home, streamed=entry.streamed, seed=None if seed is None else seed % 2**32)
    else:
        files = files_of(path)
        if split != "all" and files != (Path(path),):
            files = of_split(path, files, (split, entry.splits.get(split, split)))
        rows = read_files(files, renamed)
        if split != "all" and (entry.split_field or "split" in renamed):
            rows = _of_split(rows, split, entry.split_field or "split", path)
    return rows if entry.keep is None else filter(entry.keep, rows)


def _of_split(rows: Iterable[Record], split: str, field: str, path: str | PathLike[str]) -> Iterator[Record]:
    """Yield the rows of a split and the rows that name no split; raise DataError if there are none."""
    known: set[str] = set()
    any_row = False
    for row in rows:
        named = row.find("split", field)
        known.add(str(named[1] if named else None))
        if named is None or named[1] in (split, None):
            any_row = True
            yield row
    if not any_row:
        had = ", ".join(sorted(known))
        raise DataError(f"{path}: no row of split {split!r}; the file has {had}, or use 'all'")


def checked_fields(fields: Mapping[str, str] | None) -> Mapping[str, str]:
    """Return the user's field names by our nouns; raise DataError for an unknown noun."""
    if fields is not None and not isinstance(fields, Mapping):
        raise DataError(f"fields: needs a table from our names to yours, got {shorten(fields)}")
    for noun, name in (fields or {}).items():
        if noun not in NOUNS:
            raise DataError(f"fields: {noun!r} cannot be named; valid: {', '.join(NOUNS)}")
        if not isinstance(name, str) or not name:
            raise DataError(f"fields: {noun!r} needs the name of a field, got {shorten(name)}")
    return fields or {}


def _read(
    entry: DataSet,
    rows: Iterable[Record],
    split: str,
    selection: Mapping[str, frozenset[str]],
    *,
    enough: int | None,
    is_open: bool,
    seed: int,
) -> list[Problem]:
    """Return the first ``enough`` selected problems (None: all); warn of bad rows in a loose data set."""
    problems: list[Problem] = []
    left_out: list[DataError] = []
    seen: dict[str, str] = {}  # the location of each id's first row
    kept = 0
    for row in rows:
        try:
            problem = problem_of(entry, row, split, is_open=is_open, seed=seed)
        except DataError as error:
            if not entry.loose:
                raise
            left_out.append(error)
            continue
        known = seen.setdefault(problem.id, row.location)
        if known is not row.location:
            if entry.streamed:  # the same question with another solution
                continue
            raise row.error("id", f"is a duplicate of {known}", problem.id)
        problems.append(problem)
        kept += _keeps(selection, problem)
        if kept == enough:
            break
    if left_out:
        counts = f"{len(left_out)} rows left out, {len(problems)} read"
        text = f"{entry.name}: {counts}; the first: {left_out[0]}"
        if not problems:
            raise DataError(text)
        warnings.warn(text, DataWarning, stacklevel=3)
    if kept == enough:
        return [problem for problem in problems if _keeps(selection, problem)]
    return _selected(entry.name, problems, selection)


def problem_of(entry: DataSet, row: Record, split: str, *, is_open: bool, seed: int = 0) -> Problem:
    """Return the row as a problem, or raise the row's error; ``seed`` orders choices that are shuffled."""
    choices = _choices(entry, row)
    named = golds.own_kind(row) if entry.own else entry.row_kind(row) if entry.row_kind else None
    is_open = is_open or entry.kind == "open"
    without = "open" if is_open else named if named in WITHOUT_TRUTH else None
    gold = golds.OWN[named] if entry.own and named and without is None else entry.gold
    answer = None if without else gold(row, choices)
    question = entry.question(row)
    if entry.shuffled and answer is not None:
        order = list(range(len(choices)))
        random.Random(derive_seed(seed, "choices", question)).shuffle(order)
        choices = tuple(choices[index] for index in order)
        answer = LETTERS[order.index(LETTERS.index(answer))]
    subject = _optional(row, "subject", entry.subject)
    kind = without or named
    if kind is None and entry.kind != "auto":
        kind = entry.kind
    elif kind is None:
        a_number = parse_number(sides(clean(answer or ""))[-1])
        kind = "choice" if choices else "number" if a_number else "expression"
    return Problem(
        id=_id(entry, row, split, question),
        question=question,
        answer=answer,
        source=f"{entry.name}/{subject}" if subject else entry.name,
        level=normal_level(_optional(row, "level", entry.level)),
        kind=kind,
        choices=choices,
        rubric=_own_text(entry, row, "rubric"),
        reference=_own_text(entry, row, "reference"),
    )


def _own_text(entry: DataSet, row: Record, name: str) -> str | UnsetType:
    field = row.find(name, name) if entry.own else None
    return UNSET if field is None or field[1] is None else row.text(name, name)


def _choices(entry: DataSet, row: Record) -> tuple[str, ...]:
    if entry.choices:  # some published options have line breaks
        options = tuple(" ".join(option.split()) for option in entry.choices(row))
        return tuple(row.whole("choices", option, one_line=True) for option in options)
    given = row.find("choices", "choices") if entry.own else None
    if given is None or given[1] is None:
        return ()
    field, value = given
    if not isinstance(value, list | tuple) or len(value) > len(LETTERS):
        raise row.error(field, f"needs a list of at most {len(LETTERS)} options", value)
    return tuple(row.whole(field, str(option), one_line=True) for option in value)


def _id(entry: DataSet, row: Record, split: str, question: str) -> str:
    """Return an id that is unique among data sets: the data set's name and the row's own id or index."""
    field = row.find("id", *entry.ids)
    if "id" in row.renamed and field is None:
        raise row.error(row.renamed["id"], "is missing")
    # a stream has no fixed order
    index = question_hash(question) if entry.streamed else f"{split}-{row.index}"
    name, own = (field[0], as_text(field[1])) if field else ("id", index)
    if not own:
        raise row.error(name, "is empty", field[1] if field else None)
    row.whole(name, own, one_line=True)
    return own if entry.name == OWN_FILE.name or own.startswith(entry.name) else f"{entry.name}-{own}"


def question_hash(question: str) -> str:
    r"""Return a hash of a question as 16 hexadecimal digits; the amount of white space does not matter.

    >>> question_hash("What is  1 + 1?") == question_hash("What is\n1 + 1?")
    True
    """
    return blake2b(" ".join(question.split()).encode(errors="replace"), digest_size=8).hexdigest()


def _optional(row: Record, noun: str, names: Sequence[str]) -> str:
    field = row.find(noun, *names)
    return row.whole(field[0], as_text(field[1]) or "", one_line=True) if field else ""


def normal_level(level: object) -> str:
    """Return a level in plain form.

    >>> normal_level("Level 5"), normal_level(5)
    ('5', '5')
    """
    return str(level).strip().removeprefix("Level ").strip()


def plain_subject(subject: str) -> str:
    """Return a subject in plain form.

    >>> plain_subject("Counting & Probability")
    'counting_and_probability'
    """
    return subject.lower().replace("&", "and").replace(" ", "_")


_KEYS: Mapping[str, Callable[[Problem], str]] = {
    "levels": lambda problem: problem.level,
    "subjects": lambda problem: plain_subject(problem.source.partition("/")[2]),
    "ids": lambda problem: problem.id,
}


def _wanted(
    levels: Iterable[str | int] | None, subjects: Iterable[str] | None, ids: Iterable[str] | None
) -> Mapping[str, frozenset[str]]:
    wanted: dict[str, frozenset[str]] = {}
    if levels is not None:
        wanted["levels"] = frozenset(map(normal_level, listed("levels", levels, int)))
    if subjects is not None:
        wanted["subjects"] = frozenset(map(plain_subject, listed("subjects", subjects)))
    if ids is not None:
        wanted["ids"] = frozenset(listed("ids", ids))
    return wanted


def _selected(
    name: str, problems: Sequence[Problem], selection: Mapping[str, frozenset[str]]
) -> list[Problem]:
    """Return the selected problems; raise DataError if there are none, or if a wanted value matches none."""
    for what, wanted in selection.items():
        if not wanted:
            raise DataError(f"{name}, {what}: is empty; leave it out to keep everything")
        known = set(map(_KEYS[what], problems))
        if unmatched := sorted(wanted - known):
            valid = sorted(known - {""})
            more = f", ... ({len(valid)} in all)" if len(valid) > SHOWN else ""
            raise DataError(
                f"{name}, {what}: {len(unmatched)} unmatched: {', '.join(unmatched[:5])}; "
                f"valid: {', '.join(valid[:SHOWN]) + more or 'none'}"
            )
    kept = [problem for problem in problems if _keeps(selection, problem)]
    if not kept:
        raise DataError(f"{name}: no problem matches all of the requested levels, subjects and ids")
    return kept


def _keeps(selection: Mapping[str, frozenset[str]], problem: Problem) -> bool:
    return all(_KEYS[what](problem) in wanted for what, wanted in selection.items())
