"""Turn rows into problems: look up the data set's fields, refuse or leave out rows that cannot be used."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from msgspec import UNSET, UnsetType

from debate.seeds import derive_seed
from debate.types import WITHOUT_TRUTH, Kind, Problem
from envs.answers.choices import LETTERS
from envs.answers.notation import clean, sides
from envs.answers.numbers import parse_number
from envs.data.data_set import OWN_FILE, DataSet
from envs.data.kinds import GOLDS, own_kind
from envs.data.records import Record, as_text
from envs.data.selection import Selection, normal_level
from envs.errors import DataError, DataWarning


def problem_of(entry: DataSet, row: Record, split: str, *, is_open: bool, seed: int = 0) -> Problem:
    """Return the row as a problem, or raise its error; of an open one no answer is looked for.

    ``seed`` draws the order of the choices in a set that lists the right one first.
    """
    choices = _choices(entry, row)
    named = own_kind(row) if entry.own else entry.row_kind(row) if entry.row_kind else None
    is_open = is_open or entry.kind == "open"
    without = "open" if is_open else named if named in WITHOUT_TRUTH else None
    gold = GOLDS[named] if entry.own and named and without is None else entry.gold
    answer = None if without else gold(row, choices)
    question = entry.question(row)
    if entry.shuffled and answer is not None:
        choices, answer = _shuffled(choices, answer, derive_seed(seed, "choices", question))
    subject = _optional(row, "subject", entry.subject)
    return Problem(
        id=_id(entry, row, split, question),
        question=question,
        answer=answer,
        source=f"{entry.name}/{subject}" if subject else entry.name,
        level=normal_level(_optional(row, "level", entry.level)),
        kind=without or named or _kind(entry, answer or "", choices),
        choices=choices,
        rubric=_own_text(entry, row, "rubric"),
        reference=_own_text(entry, row, "reference"),
    )


def _own_text(entry: DataSet, row: Record, name: str) -> str | UnsetType:
    """Return what a user's row tells a verifier model; UNSET where it tells nothing of the kind."""
    field = row.find(name, name) if entry.own else None
    return UNSET if field is None or field[1] is None else row.text(name, name)


def _shuffled(choices: tuple[str, ...], answer: str, seed: int) -> tuple[tuple[str, ...], str]:
    """Return the choices in an order that the seed draws, and the right one's letter there."""
    order = list(range(len(choices)))
    random.Random(seed).shuffle(order)
    return tuple(choices[index] for index in order), LETTERS[order.index(LETTERS.index(answer))]


def question_hash(question: str) -> str:
    r"""Return 16 hexadecimal digits for a question; how many blanks are between words does not matter.

    >>> question_hash("What is  1 + 1?") == question_hash("What is\n1 + 1?")
    True
    """
    return blake2b(" ".join(question.split()).encode(errors="replace"), digest_size=8).hexdigest()


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
    """Return the data set's name with the row's own id or its index: unique among data sets.

    A row of a stream has no fixed index, so it takes its question's hash.
    """
    field = row.find("id", *entry.ids)
    if "id" in row.renamed and field is None:
        raise row.error(row.renamed["id"], "is missing")
    index = question_hash(question) if entry.streamed else f"{split}-{row.index}"
    own = as_text(field[1]) if field else index
    if not own:
        raise row.error(field[0] if field else "id", "is empty", field[1] if field else None)
    row.whole(field[0] if field else "id", own, one_line=True)
    return own if entry.name == OWN_FILE.name or own.startswith(entry.name) else f"{entry.name}-{own}"


def _optional(row: Record, noun: str, names: Sequence[str]) -> str:
    field = row.find(noun, *names)
    return row.whole(field[0], as_text(field[1]) or "", one_line=True) if field else ""


@dataclass(slots=True)
class Reader:
    """Reads one split of a data set, once."""

    entry: DataSet
    split: str
    is_open: bool = False
    seed: int = 0
    """Draws the order of choices where a set lists the right one first."""
    seen: dict[str, str] = field(default_factory=dict)
    """The location of each id's first row."""
    left_out: int = 0
    """Rows of a loose data set that cannot be used."""
    first_left_out: DataError | None = None

    def read(self, rows: Iterable[Record], selection: Selection, *, enough: int | None) -> list[Problem]:
        """Return the selected problems; no row is read once there are ``enough``.

        DataError for a bad row, except in a loose data set: there a warning says how many were left out.
        """
        problems: list[Problem] = []
        kept = 0
        for problem in self._problems(rows):
            problems.append(problem)
            kept += selection.keeps(problem)
            if kept == enough:
                break
        self._report_left_out(len(problems))
        if kept == enough:
            return [problem for problem in problems if selection.keeps(problem)]
        return selection.of_all(self.entry.name, problems)

    def _problems(self, rows: Iterable[Record]) -> Iterator[Problem]:
        for row in rows:
            try:
                problem = problem_of(self.entry, row, self.split, is_open=self.is_open, seed=self.seed)
            except DataError as error:
                if not self.entry.loose:
                    raise
                self.left_out += 1
                self.first_left_out = self.first_left_out or error
                continue
            if self._is_new(problem, row):
                yield problem

    def _is_new(self, problem: Problem, row: Record) -> bool:
        """Whether the id is new; a stream may have a question again, with another solution."""
        known = self.seen.setdefault(problem.id, row.location)
        if known is not row.location and not self.entry.streamed:
            raise row.error("id", f"is a duplicate of {known}", problem.id)
        return known is row.location

    def _report_left_out(self, read: int) -> None:
        if not self.left_out:
            return
        text = (
            f"{self.entry.name}: {self.left_out} rows left out, {read} read; the first: {self.first_left_out}"
        )
        if not read:
            raise DataError(text)
        warnings.warn(text, DataWarning, stacklevel=4)
