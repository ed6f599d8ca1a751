"""The type of a data set: where it is, where its fields are, and how its question is put together."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from debate.types import Kind
from envs.data import golds
from envs.data.golds import Gold
from envs.data.messages import last_of_user
from envs.data.records import Record
from envs.types import Mode

_HUB_ID = re.compile(r"(\w[\w.-]*/\w[\w.-]*)(?:/(\w[\w.-]*))?", re.ASCII)


def one_question(row: Record) -> str:
    """The question, or problem, field; of a list of chat messages the last of the user."""
    names = ("problem", "question", "Problem")
    found = row.find("question", *names)
    asked = last_of_user(found[1]) if found else None
    return row.text("question", *names) if asked is None else row.whole("question", asked.strip())


def gpqa_question(row: Record) -> str:
    """GPQA's question."""
    return row.text("question", "Question")


def prompt(row: Record) -> str:
    """IFEval's prompt."""
    return row.text("question", "prompt")


def body_and_question(row: Record) -> str:
    """SVAMP keeps the story and the question apart."""
    if "question" in row.renamed:
        return row.text("question")
    body = row.text("body", "Body").rstrip()
    return f"{body}{'' if body[-1] in '.?!' else '.'} {row.text('question', 'Question')}"


def with_context(row: Record) -> str:
    """OlympiadBench puts shared premises into a field of their own."""
    context = row.find("context", "context")
    before = f"{context[1]}\n" if context and context[1] else ""
    return before + one_question(row)


def hardest(row: Record) -> bool:
    """DeepMath's problems of difficulty 9 and above."""
    value = row.values.get("difficulty")
    return isinstance(value, int | float) and value >= 9


def numerical_only(row: Record) -> bool:
    """OlympiadBench's benchmark of 572 has its numerical problems, also those with several answers."""
    return row.text("answer_type", "answer_type") == "Numerical"


def arc_question(row: Record) -> str:
    """The question's text; the original file keeps it in the question's "stem"."""
    value = row.value("question", "question")
    stem = value.get("stem") if isinstance(value, Mapping) else None
    return stem.strip() if isinstance(stem, str) and stem.strip() else row.text("question", "question")


@dataclass(frozen=True, slots=True)
class DataSet:
    """One data set: the hub's id, its configurations, our split names to the hub's, and how to read a row."""

    name: str
    hub_id: str
    splits: Mapping[str, str]
    gold: Gold = golds.plain
    configs: tuple[str | None, ...] = (None,)
    kind: Literal["number", "expression", "choice", "instructions", "overlap", "code", "open", "auto"] = (
        "auto"
    )
    question: Callable[[Record], str] = one_question
    choices: Callable[[Record], tuple[str, ...]] | None = None
    ids: tuple[str, ...] = ()
    subject: tuple[str, ...] = ()
    level: tuple[str, ...] = ("level",)
    row_kind: Callable[[Record], Kind] | None = None
    """The kind of each row where a set mixes several; then ``kind`` says nothing."""
    mode: Mode | None = None
    """The grader mode that published figures of it were made with; None: any, as for its kind."""
    max_tokens: int | None = None
    """The tokens of a reply that published figures of it allow; None: none is usual."""
    shuffled: bool = False
    """Whether the row lists the right choice first: then the seed draws the order of the choices."""
    split_field: str | None = None
    """The field that names each row's split where a local file holds several."""
    keep: Callable[[Record], bool] | None = None
    """Which rows belong to it; None: all."""
    loose: bool = False
    """Some published rows cannot be used (a proof has no answer): they are left out with a warning."""
    streamed: bool = False
    """Too large to hold: read until ``limit`` is reached, each question once, its id from its text."""
    own: bool = False
    """A user's rows, by field names: any split, choices where the row has some, and the kind it names."""
    home: str = ""
    """Where the files of a set are that the hub does not have (``hub_id`` is then "")."""


OWN_FILE = DataSet(
    "file",
    "",
    {},
    golds.plain,
    ids=("id", "unique_id"),
    subject=("subject", "type"),
    split_field="split",
    own=True,
)
"""A user's own rows; each may name its split."""


def hub_data_set(name: str) -> DataSet | None:
    """Return a data set of the hub, "owner/name" or "owner/name/configuration"; None for any other text.

    >>> entry = hub_data_set("someone/my-problems/hard")
    >>> entry.hub_id, entry.configs
    ('someone/my-problems', ('hard',))
    """
    match = _HUB_ID.fullmatch(name)
    if match is None:
        return None
    return replace(OWN_FILE, name=name.replace("/", "--"), hub_id=match[1], configs=(match[2],))
