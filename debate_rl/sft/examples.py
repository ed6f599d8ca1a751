"""Replies to learn from, and the files and data sets that hold them.

A row of a file has a question and a ``reply`` that is learnt as it is written, or a question and a written
``solution``, which gets the form that the prompt set asks for, or a chat in ``messages``. Files of ``debate
traces`` are read the same way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import TypeAlias, cast, get_args

from debate.seeds import derive_seed
from debate.types import Kind, Message, Problem, Role, Shot
from envs.data.catalog import OWN_FILE, DataSet
from envs.data.loading import entry_of, normal_level, problem_of, question_hash, rows_of
from envs.data.records import Record, as_text, files_of, read_files
from envs.data.shots import plain_solution
from envs.errors import DataError
from envs.extraction.boxes import last_box
from envs.families import FAMILIES

Levels: TypeAlias = Sequence[str | int] | None
WITH_TOOL = "_tir"
"""Behind the name of a synthetic family: solutions with a program and its output."""
REPLIES = ("reply", "response", "completion", "output")
SOLUTIONS = ("solution", "generated_solution", "rationale")
QUESTIONS = ("question", "problem", "prompt")
ROLES: tuple[Role, ...] = get_args(Role)
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Example:
    """A reply and the problem that it solves; a written ``solution`` has no form of a reply yet.

    ``messages``: the prompt where it is not the one of the problem. ``prompts``: the checksum of the prompt
    set that the reply was given to, "" where nobody says. ``location``: where it was read.
    """

    problem: Problem
    reply: str = ""
    solution: Shot | None = None
    messages: tuple[Message, ...] = ()
    prompts: str = ""
    location: str = ""

    @property
    def text(self) -> str:
        """What was written: the reply, or the solution."""
        return self.reply if self.solution is None else self.solution.solution


@dataclass
class Source:
    """One file or data set, read row by row; ``unusable`` counts rows that a set has and nobody can learn."""

    name: str
    unusable: int = 0
    first_unusable: str = ""

    def read(self, *, split: str, limit: int | None, seed: int, levels: Levels = None) -> Iterator[Example]:
        """Yield at most ``limit`` examples; DataError for a row that cannot be read.

        ``levels``: those of a synthetic family, whose problems are made; None is all that it has.
        """
        if self.name.removesuffix(WITH_TOOL) in FAMILIES:
            if limit is None:
                raise DataError(f"sft.limit: {self.name} makes problems without end; set it")
            yield from _of_family(self.name, split, limit, seed, levels)
        else:
            yield from islice(self._examples(split, seed), limit)

    def _examples(self, split: str, seed: int) -> Iterator[Example]:
        if is_file(self.name):
            for row in read_files(files_of(self.name), {}):
                yield from examples_of(row)
            return
        entry = entry_of(self.name, None)
        if entry.kind not in ("auto", "number", "expression"):
            raise DataError(f"sft.data: {self.name} has no written solutions of its problems")
        yield from self._of_set(entry, split, seed)

    def _of_set(self, entry: DataSet, split: str, seed: int) -> Iterator[Example]:
        for row in rows_of(entry, split, None, {}, seed):
            try:
                yield example_of_set(entry, row, split)
            except DataError as error:
                if not (entry.loose or entry.own):
                    raise
                self.unusable += 1
                self.first_unusable = self.first_unusable or str(error)


def of_family(kind: str) -> tuple[str, str]:
    """Return the names of a synthetic family's solutions: plain ones, and those with programs."""
    return kind, f"{kind}{WITH_TOOL}"


def _of_family(name: str, split: str, limit: int, seed: int, levels: Levels) -> Iterator[Example]:
    """Yield a right solution of each of a synthetic family's problems, with programs if the name says so."""
    family = FAMILIES[name.removesuffix(WITH_TOOL)].of_levels(levels)
    rng = Random(derive_seed(seed, "attempts"))
    for problem in family.problems(split=split, limit=limit, seed=seed):
        if name.endswith(WITH_TOOL):
            text = family.write_with_tool(problem)
        else:
            text = family.write_solution(problem, family.attempt(problem, rng))
        yield Example(problem, solution=_as_shot(problem, text.strip()), location=problem.id)


def is_file(name: str) -> bool:
    """Return whether a name of ``sft.data`` is that of a file or folder, and of no data set.

    >>> is_file("traces/mine.jsonl"), is_file("numinamath_cot"), is_file("AI-MO/NuminaMath-CoT")
    (True, False, False)
    """
    path = Path(name)
    return path.exists() or path.suffix.lower() in (".jsonl", ".json", ".parquet")


def example_of_set(entry: DataSet, row: Record, split: str) -> Example:
    """Return a row of a data set that comes with written solutions."""
    given = WRITTEN_OTHERWISE.get(entry.name, _written)(row)
    problem = problem_of(entry, row, split, is_open=False)
    return Example(problem, solution=_as_shot(problem, given), location=row.location)


def _written(row: Record) -> str:
    return plain_solution(row.text("solution", *SOLUTIONS, "answer"))


def _verified_generation(row: Record) -> str:
    """Return the first generation that was verified and came to its end, as OpenR1-Math names them."""
    replies, right, whole = (
        _list(row, name) for name in ("generations", "correctness_math_verify", "is_reasoning_complete")
    )
    for reply, is_right, is_whole in zip(replies, right, whole, strict=False):
        if is_right is True and is_whole is True and isinstance(reply, str) and reply.strip():
            return row.whole("generations", reply.strip())
    raise row.error("generations", "has none that math-verify finds right and that came to its end")


def _list(row: Record, name: str) -> list[object]:
    value = row.value(name, name)
    if not isinstance(value, list):
        raise row.error(name, "is not a list", value)
    return cast("list[object]", value)


def _with_fences(row: Record) -> str:
    """Return a solution of OpenMathReasoning with its programs as ours are: in fences, and not in tags."""
    return _TOOL_CALL.sub(r"```python\n\1\n```", _written(row))


_TOOL_CALL = re.compile(r"<tool_call>\n?((?:(?!</?tool_call>).)*?)\n?</tool_call>", re.DOTALL)
WRITTEN_OTHERWISE: Mapping[str, Callable[[Record], str]] = {
    "openr1_math": _verified_generation,
    "openmathreasoning": _with_fences,
}
"""Data sets whose solutions stand elsewhere than in a field of that name, or have another form."""


def _as_shot(problem: Problem, solution: str) -> Shot:
    return Shot(problem.question, solution, problem.answer or "", problem.choices)


def examples_of(row: Record) -> Iterator[Example]:
    """Yield the examples of a row of a file: one, or of a chat one for each thing that the assistant said."""
    if (grade := row.find("grade", "grade")) and grade[1] not in (None, "right", True):
        raise row.error("grade", "is not 'right', and nothing is learnt from wrong replies", grade[1])
    reply, chat = row.find("reply", *REPLIES), row.find("messages", "messages")
    asked = row.find("question", *QUESTIONS)
    if chat is not None and reply is not None:
        messages = _messages(row, chat[1])
        question = asked[1] if asked and isinstance(asked[1], str) else messages[-1].content
        yield _example(row, question, reply=_text(row, REPLIES), messages=messages)
    elif asked is not None and isinstance(asked[1], str) and reply is not None:
        yield _example(row, row.text("question", *QUESTIONS), reply=_text(row, REPLIES))
    elif asked is not None and isinstance(asked[1], str) and row.find("solution", *SOLUTIONS):
        yield _example(row, row.text("question", *QUESTIONS), solution=row.text("solution", *SOLUTIONS))
    elif chat is not None:
        yield from _said(row, _messages(row, chat[1]))
    else:
        raise row.error(
            "reply", "is missing; a row has a question and a reply or solution, or a chat in messages"
        )


def _said(row: Record, messages: tuple[Message, ...]) -> Iterator[Example]:
    """Yield what the assistant said, each with the messages before it."""
    ends = [at for at, message in enumerate(messages) if message.role == "assistant" and at]
    if not ends:
        raise row.error("messages", "has nothing that an assistant said to a user")
    for at in ends:
        question = next((m.content for m in reversed(messages[:at]) if m.role == "user"), "")
        yield _example(row, question, reply=messages[at].content, messages=messages[:at])


def _example(
    row: Record,
    question: str,
    *,
    reply: str = "",
    solution: str | None = None,
    messages: tuple[Message, ...] = (),
) -> Example:
    problem = _problem(row, question)
    shot = None if solution is None else _as_shot(problem, solution)
    if shot is not None and not shot.answer:
        raise row.error(
            "answer", "is missing, and the solution has no box; a text to be learnt as it is, is a reply"
        )
    named = row.find("provenance", "provenance")
    of = named[1] if named else None
    prompts = str(of.get("prompts", "")) if isinstance(of, Mapping) else ""
    return Example(problem, reply, shot, messages, prompts, row.location)


def _problem(row: Record, question: str) -> Problem:
    """Return the problem of a row, as far as the row says; its answer is not needed to learn a reply."""
    kind = row.find("kind", "kind")
    if kind is not None and kind[1] not in KINDS:
        raise row.error("kind", f"is not one of {', '.join(KINDS)}", kind[1])
    choices = row.find("choices", "choices")
    listed = choices[1] if choices and isinstance(choices[1], list) else []
    return Problem(
        id=_word(row, "id", *OWN_FILE.ids) or question_hash(question),
        question=question,
        answer=_word(row, "answer", "answer", "expected_answer") or _boxed(row),
        source=_word(row, "source", "source"),
        level=normal_level(_word(row, "level", "level")),
        kind=cast("Kind", kind[1]) if kind else "expression",
        choices=tuple(row.whole("choices", str(one), one_line=True) for one in listed),
    )


def _boxed(row: Record) -> str | None:
    found = row.find("solution", *SOLUTIONS)
    text = found[1] if found and isinstance(found[1], str) else ""
    box = last_box(text)
    return box.of(text).strip() or None if box else None


def _word(row: Record, noun: str, *names: str) -> str:
    field = row.find(noun, *names)
    return row.whole(field[0], as_text(field[1]) or "") if field else ""


def _text(row: Record, names: tuple[str, ...]) -> str:
    """Return a reply exactly as it is written, blanks at its ends too."""
    found = row.find("reply", *names)
    if found is None or not isinstance(found[1], str) or not found[1].strip():
        raise row.error(found[0] if found else names[0], "is not text, or empty", found[1] if found else None)
    return row.whole(found[0], found[1])


def _messages(row: Record, value: object) -> tuple[Message, ...]:
    """Return a chat; the row's error where an entry has no role that there is, or no text."""
    if not isinstance(value, list) or not value:
        raise row.error("messages", "is not a list of messages", value)
    messages: list[Message] = []
    for number, entry in enumerate(cast("list[object]", value)):
        role, content = (
            (entry.get("role"), entry.get("content")) if isinstance(entry, Mapping) else (None, None)
        )
        if role not in ROLES or not isinstance(content, str):
            raise row.error(f"messages[{number}]", f"needs a role ({', '.join(ROLES)}) and a content", entry)
        messages.append(Message(cast("Role", role), row.whole("messages", content)))
    return tuple(messages)
