"""Examples to train on, and the files, data sets and synthetic families that contain them.

A row of a file has a question and a ``reply``, which is used unchanged; or a question and a ``solution``,
which is formatted by the prompt set; or a chat in ``messages``. Files of ``debate traces`` are read in the
same way.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import TypeAlias, TypeVar, cast, get_args

from debate.seeds import derive_seed
from debate.types import Kind, Message, Problem, Role, Shot
from debate_rl.config import Config
from debate_rl.config.warm_start import KINDS as TURNS
from debate_rl.config.warm_start import Kind as TurnKind
from debate_rl.config.warm_start import kinds_of_turns
from debate_rl.warm_start.demonstrations import Demonstrator
from envs.data.catalog import OWN_FILE, DataSet
from envs.data.loading import entry_of, normal_level, problem_of, question_hash, rows_of
from envs.data.records import Record, as_text, files_of, read_files
from envs.data.shots import plain_solution
from envs.errors import DataError
from envs.families import FAMILIES
from envs.families.synthetic import SyntheticFamily
from envs.grading.extraction import last_box

Levels: TypeAlias = Sequence[str | int] | None
WITH_TOOL = "_tir"
"""Suffix of the name of a synthetic family: solutions with a program and its output."""
DEBATES = "_debates"
"""Suffix of the name of a synthetic family: turns of scripted debates."""
REPLIES = ("reply", "response", "completion", "output")
SOLUTIONS = ("solution", "generated_solution", "rationale")
QUESTIONS = ("question", "problem", "prompt")
ROLES: tuple[Role, ...] = get_args(Role)
KINDS: tuple[Kind, ...] = get_args(Kind)
_TOOL_CALL = re.compile(r"<tool_call>\n?((?:(?!</?tool_call>).)*?)\n?</tool_call>", re.DOTALL)
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Example:
    """A problem and its reply, or a ``solution`` that is not formatted as a reply yet.

    ``messages``: the prompt, if it is not built from the problem. ``prompts``: the checksum of the prompt set
    that the reply answers, "" if unknown. ``location``: the origin of the row.
    """

    problem: Problem
    reply: str = ""
    solution: Shot | None = None
    messages: tuple[Message, ...] = ()
    prompts: str = ""
    location: str = ""

    @property
    def text(self) -> str:
        """The text of the reply, or of the solution."""
        return self.reply if self.solution is None else self.solution.solution


@dataclass
class Source:
    """A file, data set or synthetic family. ``unusable``: number of skipped rows of a data set."""

    name: str
    config: Config
    unusable: int = 0
    first_unusable: str = ""

    def read(self, *, split: str, limit: int | None, seed: int, levels: Levels = None) -> Iterator[Example]:
        """Yield at most ``limit`` examples. Raise DataError for a row that cannot be read.

        For a synthetic family, ``levels`` selects levels (None: all) and ``limit`` is the number of problems.
        If its name ends with ``DEBATES``, each problem has an example of every kind of turn.
        """
        kind = self.name.removesuffix(WITH_TOOL).removesuffix(DEBATES)
        if kind in FAMILIES:
            if limit is None:
                raise DataError(f"sft.limit: {self.name} generates any number of problems; set a limit")
            problems = FAMILIES[kind].of_levels(levels).problems(split=split, limit=limit, seed=seed)
            rng = Random(derive_seed(seed, "attempts"))
            if self.name.endswith(DEBATES):
                yield from _debates(self.config, kind, problems, rng)
            else:
                yield from _solutions(FAMILIES[kind], problems, rng, with_tool=self.name.endswith(WITH_TOOL))
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
        for row in rows_of(entry, split, None, {}, seed):
            try:
                yield example_of_set(entry, row, split)
            except DataError as error:
                if not (entry.loose or entry.own):
                    raise
                self.unusable += 1
                self.first_unusable = self.first_unusable or str(error)


def chosen_by(
    items: Iterable[Item],
    described: Callable[[Item], tuple[str, str, str]],
    per_problem: int | None,
    lost: Counter[str],
) -> list[Item]:
    """Return the items that pass all filters, without duplicates. ``lost`` counts items left out per filter.

    ``described`` returns the reason to leave an item out ("" keeps it), a key of its problem, and its text.
    """
    seen: set[tuple[str, str]] = set()
    of_problem: Counter[str] = Counter()
    kept: list[Item] = []
    for item in items:
        why, key, text = described(item)
        if not why and (key, text) in seen:
            why = "duplicates"
        elif not why and per_problem is not None and of_problem[key] >= per_problem:
            why = f"beyond {per_problem} per problem"
        if why:
            lost[why] += 1
        else:
            seen.add((key, text))
            of_problem[key] += 1
            kept.append(item)
    return kept


def of_family(kind: str) -> tuple[str, ...]:
    """Return the names of a synthetic family in ``sft.data``: solutions, with programs, and debates."""
    return kind, f"{kind}{WITH_TOOL}", f"{kind}{DEBATES}"


def _solutions(
    family: SyntheticFamily, problems: Sequence[Problem], rng: Random, *, with_tool: bool
) -> Iterator[Example]:
    for problem in problems:
        if with_tool:
            text = family.write_with_tool(problem)
        else:
            text = family.write_solution(problem, family.attempt(problem, rng))
        yield Example(problem, solution=_as_shot(problem, text.strip()), location=problem.id)


def _debates(config: Config, kind: str, problems: Sequence[Problem], rng: Random) -> Iterator[Example]:
    """Yield a turn of each kind for each problem. Its own solution is right, some in its prompt are wrong."""
    demonstrator = Demonstrator(kind, config.debate, config.warm_start, rng, own_right=True)
    turns: list[TurnKind] = [
        turn for turn in TURNS if turn != "drill" and turn in kinds_of_turns(config.debate)
    ]
    for problem in problems:
        for turn in turns:
            shown = demonstrator.show(turn, problem)
            yield Example(problem, shown.reply, messages=shown.messages, location=problem.id)


def is_file(name: str) -> bool:
    """Return True if a name in ``sft.data`` is a file or folder instead of a data set.

    >>> is_file("traces/mine.jsonl"), is_file("numinamath_cot"), is_file("AI-MO/NuminaMath-CoT")
    (True, False, False)
    """
    path = Path(name)
    return path.exists() or path.suffix.lower() in (".jsonl", ".json", ".parquet")


def example_of_set(entry: DataSet, row: Record, split: str) -> Example:
    """Return the example of a row of a data set with written solutions."""
    if entry.name == "openr1_math":
        given = _verified_generation(row)
    else:
        given = plain_solution(row.text("solution", *SOLUTIONS, "answer"))
    if entry.name == "openmathreasoning":  # its programs are in tags, ours in fences
        given = _TOOL_CALL.sub(r"```python\n\1\n```", given)
    problem = problem_of(entry, row, split, is_open=False)
    return Example(problem, solution=_as_shot(problem, given), location=row.location)


def _verified_generation(row: Record) -> str:
    """Return the first verified and complete generation of a row of OpenR1-Math."""
    columns: list[list[object]] = []
    for name in ("generations", "correctness_math_verify", "is_reasoning_complete"):
        value = row.value(name, name)
        if not isinstance(value, list):
            raise row.error(name, "is not a list", value)
        columns.append(value)
    for reply, is_right, is_whole in zip(*columns, strict=False):
        if is_right is True and is_whole is True and isinstance(reply, str) and reply.strip():
            return row.whole("generations", reply.strip())
    raise row.error("generations", "has no complete generation that math-verify accepts")


def _as_shot(problem: Problem, solution: str) -> Shot:
    return Shot(problem.question, solution, problem.answer or "", problem.choices)


def examples_of(row: Record) -> Iterator[Example]:
    """Yield the example of a row of a file, or an example for each assistant message of a chat."""
    if (grade := row.find("grade", "grade")) and grade[1] not in (None, "right", True):
        raise row.error("grade", "is not 'right'; only right replies can be trained on", grade[1])
    reply, chat = row.find("reply", *REPLIES), row.find("messages", "messages")
    asked = row.find("question", *QUESTIONS)
    if asked is not None and not isinstance(asked[1], str):
        asked = None
    if chat is not None and reply is not None:
        messages = _messages(row, chat[1])
        question = str(asked[1]) if asked else messages[-1].content
        yield _example(row, question, reply=_reply(row), messages=messages)
    elif asked is not None and reply is not None:
        yield _example(row, row.text("question", *QUESTIONS), reply=_reply(row))
    elif asked is not None and row.find("solution", *SOLUTIONS):
        yield _example(row, row.text("question", *QUESTIONS), solution=row.text("solution", *SOLUTIONS))
    elif chat is not None:
        messages = _messages(row, chat[1])
        ends = [at for at, message in enumerate(messages) if message.role == "assistant" and at]
        if not ends:
            raise row.error("messages", "has no assistant message after a user message")
        for at in ends:
            question = next((m.content for m in reversed(messages[:at]) if m.role == "user"), "")
            yield _example(row, question, reply=messages[at].content, messages=messages[:at])
    else:
        raise row.error(
            "reply", "is missing; a row needs a question and a reply or solution, or a chat in messages"
        )


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
            "answer",
            "is missing, and the solution has no box; use the field reply for text that is used unchanged",
        )
    named = row.find("provenance", "provenance")
    of = named[1] if named else None
    prompts = str(of.get("prompts", "")) if isinstance(of, Mapping) else ""
    return Example(problem, reply, shot, messages, prompts, row.location)


def _problem(row: Record, question: str) -> Problem:
    """Return the problem of a row, without an answer if the row has none."""
    kind = row.find("kind", "kind")
    if kind is not None and kind[1] not in KINDS:
        raise row.error("kind", f"is not one of {', '.join(KINDS)}", kind[1])
    choices = row.find("choices", "choices")
    listed = choices[1] if choices and isinstance(choices[1], list) else []
    solution = row.find("solution", *SOLUTIONS)
    text = solution[1] if solution and isinstance(solution[1], str) else ""
    box = last_box(text)
    return Problem(
        id=_word(row, "id", *OWN_FILE.ids) or question_hash(question),
        question=question,
        answer=_word(row, "answer", "answer", "expected_answer") or (box and box.of(text).strip()) or None,
        source=_word(row, "source", "source"),
        level=normal_level(_word(row, "level", "level")),
        kind=cast("Kind", kind[1]) if kind else "expression",
        choices=tuple(row.whole("choices", str(one), one_line=True) for one in listed),
    )


def _word(row: Record, noun: str, *names: str) -> str:
    field = row.find(noun, *names)
    return row.whole(field[0], as_text(field[1]) or "") if field else ""


def _reply(row: Record) -> str:
    """Return the unchanged reply of a row, including blanks at its ends."""
    found = row.find("reply", *REPLIES)
    if found is None or not isinstance(found[1], str) or not found[1].strip():
        raise row.error(found[0] if found else REPLIES[0], "is empty or not text", found and found[1])
    return row.whole(found[0], found[1])


def _messages(row: Record, value: object) -> tuple[Message, ...]:
    """Return a chat. Raise DataError if an entry has no known role or no text."""
    if not isinstance(value, list) or not value:
        raise row.error("messages", "is not a list of messages", value)
    messages: list[Message] = []
    for number, entry in enumerate(value):
        known = entry if isinstance(entry, Mapping) else {}
        role, content = known.get("role"), known.get("content")
        if role not in ROLES or not isinstance(content, str):
            raise row.error(f"messages[{number}]", f"needs a role ({', '.join(ROLES)}) and a content", entry)
        messages.append(Message(cast("Role", role), row.whole("messages", content)))
    return tuple(messages)
