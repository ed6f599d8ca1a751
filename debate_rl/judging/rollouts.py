"""Read rollouts that any tool wrote: responses by problem, and whether they are right if the file says so.

Formats: JSON lines with a problem and a response in each; ``traces.jsonl`` of verifiers 0.4; logs of
Inspect AI (``.eval`` and ``.json``). Files are untrusted: sizes are limited, nothing in them is executed, and
an error names the file, the line or member, and the field.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from lzma import LZMAError
from pathlib import Path
from struct import error as StructError
from typing import Any, NamedTuple
from zlib import error as ZlibError

from debate import Problem
from debate.files import TOO_DEEP, open_plain, plain_lines, read_plain
from debate.types import Kind
from debate.values import whole_text
from envs import DataError
from envs.answers.words import letter_of
from envs.data.golds import choice
from envs.data.loading import question_hash
from envs.data.records import Record

if sys.version_info >= (3, 14):
    import zipfile

    from compression.zstd import ZstdError
else:
    from backports.zstd import ZstdError, zipfile  # the standard module cannot read the logs of Inspect AI

QUESTION = ("question", "prompt", "problem", "input")
RESPONSE = ("response", "responses", "completion", "completions", "output")
GOLD = ("answer", "gold", "target")
REWARD = ("reward", "rewards", "score", "right", "correct")
ID = ("id", "problem_id", "example_id")
"""The names of the fields of a line of JSON, in order of precedence."""
LARGEST_TEXT = 1 << 20
"""Maximum characters of a question or a response."""
LARGEST_ROW = 16 << 20
"""Maximum bytes of a line."""
LARGEST_LOG, LARGEST_SAMPLE = 256 << 20, 64 << 20
"""Maximum bytes of a log in JSON, and of an unpacked sample of a packed log. A parser may need 24 times as
many bytes, for nested empty lists."""
LARGEST_FILE = 1 << 30
"""Maximum characters of all texts of a file together, and maximum bytes of all its unpacked members."""
MOST_MEMBERS = 200_000
LONGEST_ID = 100
NEAR = 1e-9
"""Rewards this close to 0 or 1 are wrong or right."""
ZIP = b"PK\x03\x04"
DAMAGE = (
    *(zipfile.BadZipFile, ZlibError, ZstdError, LZMAError, EOFError),
    *(RuntimeError, NotImplementedError, UnicodeDecodeError, StructError, OverflowError),
)
"""Errors of the standard module for a damaged packed file."""
WITHOUT = {True: "rollouts with an error", False: "rollouts without a reply"}
VALUES = {"C": True, "I": False, "N": False}
"""Scores of Inspect AI as grades: correct, incorrect, and without an answer."""


class Response(NamedTuple):
    """A response. ``right``: None if the file does not say. ``cut``: it ended at its token limit."""

    text: str
    right: bool | None = None
    cut: bool = False


class Group(NamedTuple):
    """A problem and its responses, in the order of the file. Its answer is "" if the file has none."""

    problem: Problem
    responses: tuple[Response, ...]


class Rollouts(NamedTuple):
    """The rollouts of a file. ``left_out``: the number of rollouts without a response, by reason."""

    format: str
    groups: tuple[Group, ...]
    left_out: Mapping[str, int]


@dataclass(slots=True)
class _Group:
    name: str
    gold: str = ""
    responses: list[Response] = field(default_factory=list[Response])


@dataclass(slots=True)
class _Reader:
    """Collects rollouts. ``where``: the file and the line or member that is read."""

    path: Path
    kind: Kind
    where: str = ""
    format: str = ""
    texts: int = 0
    groups: dict[tuple[str, tuple[str, ...]], _Group] = field(default_factory=dict[Any, "_Group"])
    left_out: Counter[str] = field(default_factory=Counter[str])

    def fail(self, name: str, what: str) -> DataError:
        return DataError(f"{self.where or self.path}: {name}: {what}" if name else f"{self.where}: {what}")

    def table(self, value: object, name: str) -> Mapping[str, Any]:
        """Return a JSON object. DataError for anything else."""
        if not isinstance(value, dict):
            raise self.fail(name, f"must be an object, got {_shown(value)}")
        return value

    def items(self, value: object, name: str) -> list[Any]:
        """Return a JSON list. DataError for anything else."""
        if not isinstance(value, list):
            raise self.fail(name, f"must be a list, got {_shown(value)}")
        return value

    def tables(self, value: object, name: str) -> list[Mapping[str, Any]]:
        """Return a JSON list of objects. DataError for anything else."""
        return [self.table(one, name) for one in self.items(value, name)]

    def text(self, value: object, name: str) -> str:
        """Return a text, or the text of a chat. DataError for anything else, or if it is too long.

        Of a chat whose last message is by the assistant, this is that message; of any other chat, all
        messages except those of the system, each with its role if there are several.
        """
        if isinstance(value, str):
            found = value
        elif isinstance(value, list) and value:
            chat = [self._message(one, name) for one in self.tables(value, name)]
            asked = [one for one in chat if one[0] != "system"]
            alone = chat[-1:] if chat[-1][0] == "assistant" else asked if len(asked) == 1 else []
            found = alone[0][1] if alone else "\n\n".join(f"{role}: {text}" for role, text in asked)
        else:
            raise self.fail(name, f"must be a text or a list of messages, got {_shown(value)}")
        self.texts += len(found)
        if len(found) > LARGEST_TEXT:
            raise self.fail(name, f"has {len(found):,} characters, more than {LARGEST_TEXT:,}")
        if self.texts > LARGEST_FILE:
            raise self.fail(name, f"the texts of the file have more than {LARGEST_FILE:,} characters")
        return whole_text(found)

    def _message(self, message: Mapping[str, Any], name: str) -> tuple[str, str]:
        """Return the role and the text of a message. Its parts that are not text are left out."""
        role, content = message.get("role"), message.get("content")
        if not isinstance(role, str):
            raise self.fail(f"{name}.role", f"must be a text, got {_shown(role)}")
        if isinstance(content, list):
            parts = self.tables(content, f"{name}.content")
            content = "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))
        if not isinstance(content, str | None):
            raise self.fail(f"{name}.content", f"must be a text or a list of parts, got {_shown(content)}")
        return role, content or ""

    def grade(self, value: object, name: str) -> bool | None:
        """Return whether a reward means right (1), wrong (0), or neither. DataError if it is no number."""
        if value is None:
            return None
        if not isinstance(value, int | float) or value != value:
            raise self.fail(name, f"must be a number, got {_shown(value)}")
        return next((right for right in (False, True) if abs(value - right) < NEAR), None)

    def gold(self, value: object, name: str) -> str:
        """Return a gold answer, "" without one. Of a GSM8K solution, it is the part after ####."""
        if value is None:
            return ""
        if not isinstance(value, str | int | float):
            raise self.fail(name, f"must be a text or a number, got {_shown(value)}")
        return whole_text(str(value)).rpartition("####")[2].strip()

    def add(
        self, question: str, response: Response, *, gold: str = "", id: object = None, choices: object = None
    ) -> None:
        """Add a response to the group of its question. DataError for another gold answer than before."""
        if not question.strip():
            raise self.fail("question", "is empty")
        options = tuple(self.text(one, "choices") for one in self.items(choices or [], "choices"))
        if gold and options and letter_of(gold, options) is None:  # an option's index, or nothing
            gold = choice(Record(self.where, 0, {"answer": gold}, {}), options)
        name = str(id) if isinstance(id, str | int) else ""
        group = self.groups.setdefault((question.strip(), options), _Group(name))
        if gold and group.gold and gold != group.gold:
            raise self.fail("answer", f"{_shown(gold)}, but an earlier response has {_shown(group.gold)}")
        group.gold = group.gold or gold
        group.responses.append(response)

    def found(self) -> Rollouts:
        """Return everything read. DataError if there is no response."""
        if not self.groups:
            out = f" ({self.left_out.total()} are left out)" if self.left_out else ""
            raise DataError(f"{self.path}: has no responses{out}")
        names = Counter(group.name for group in self.groups.values())
        groups: list[Group] = []
        for (question, choices), group in self.groups.items():
            name = group.name
            unique = name and len(name) <= LONGEST_ID and names[name] == 1 and name.isprintable()
            id = name if unique else question_hash("\n".join((question, *choices)))
            kind = "choice" if choices else self.kind
            source = whole_text(self.path.name)  # a name that is not UTF-8 has half characters
            problem = Problem(id, question, group.gold, source, kind=kind, choices=choices)
            groups.append(Group(problem, tuple(group.responses)))
        return Rollouts(self.format, tuple(groups), self.left_out)


def read_rollouts(path: Path, kind: Kind = "expression") -> Rollouts:
    """Return the rollouts of a file in any of the formats, grouped by problem in the order of the file.

    ``kind``: how answers are compared. DataError names what cannot be read; OSError if the file cannot be.
    """
    reader = _Reader(path, kind)
    with open_plain(path) as file:
        packed = file.read(len(ZIP)) == ZIP
    if packed:
        reader.format = "Inspect AI"
        for where, sample in _members(path):
            reader.where = where
            _add_sample(reader, reader.table(sample, "sample"))
    elif path.suffix.lower() == ".json":
        reader.format, reader.where = "Inspect AI", str(path)
        log = reader.table(_parsed(read_plain(path, LARGEST_LOG), str(path)), "log")
        for number, sample in enumerate(reader.items(log.get("samples"), "samples")):
            reader.where = f"{path}, sample {number}"
            _add_sample(reader, reader.table(sample, "sample"))
    else:
        for number, line in enumerate(plain_lines(path, LARGEST_ROW), start=1):
            if line.strip():
                reader.where = f"{path}, line {number}"
                row = reader.table(_parsed(line, reader.where), "line")
                (_add_episode if "traces" in row else _add_row)(reader, row)
    return reader.found()


def _add_row(reader: _Reader, row: Mapping[str, Any]) -> None:
    """Add a line with a question, and a response or a list of responses with a list of rewards."""
    reader.format = reader.format or "JSON lines"
    asked, prompt = _field(reader, row, QUESTION)
    question = reader.text(prompt, asked)
    name, value = _field(reader, row, RESPONSE)
    several = isinstance(value, list) and all(isinstance(one, str) for one in value)
    texts = value if several else [value]
    if not texts:
        reader.left_out[WITHOUT[False]] += 1
    key, given = next(((one, row[one]) for one in REWARD if one in row), ("reward", None))
    rewards = given if several and isinstance(given, list) else [given] * len(texts)
    if len(rewards) != len(texts):
        raise reader.fail(key, f"has {len(rewards)} values for {len(texts)} responses")
    key_of_gold = next((one for one in GOLD if one in row), "answer")
    gold = reader.gold(row.get(key_of_gold), key_of_gold)
    id = next((row[one] for one in ID if one in row), None)
    cut = row.get("finish_reason", row.get("stop_reason")) == "length" or row.get("is_truncated") is True
    for text, reward in zip(texts, rewards, strict=True):
        said = Response(reader.text(text, name), reader.grade(reward, key), cut)
        reader.add(question, said, gold=gold, id=id, choices=row.get("choices"))


def _field(reader: _Reader, row: Mapping[str, Any], names: tuple[str, ...]) -> tuple[str, Any]:
    """Return the first of these fields that a line has, with its name."""
    found = next(((name, row[name]) for name in names if row.get(name) is not None), None)
    if found is None:
        raise reader.fail(names[0], f"is missing (also possible: {', '.join(names[1:])})")
    return found


def _add_episode(reader: _Reader, row: Mapping[str, Any]) -> None:
    """Add the traces of an episode of verifiers, without auxiliary agents if it has others.

    A response is right if its rewards add up to 1, and wrong if they add up to 0.
    """
    reader.format = "verifiers"
    traces = reader.tables(row["traces"], "traces")
    agents = [reader.table(one.get("agent", {}), "agent") for one in traces]
    trained = [one for one, agent in zip(traces, agents, strict=True) if agent.get("trainable", True)]
    for trace in trained or traces:
        task = reader.table(reader.table(trace.get("task"), "task").get("data"), "task.data")
        nodes = reader.tables(trace.get("nodes"), "nodes")
        messages = reader.tables([one.get("message") for one in nodes], "nodes.message")
        said = [one for one in messages if one.get("role") == "assistant"]
        if trace.get("errors") or not said:
            reader.left_out[WITHOUT[bool(trace.get("errors"))]] += 1
            continue
        rewards = [one for one in reader.table(trace.get("rewards", {}), "rewards").values() if one]
        parts = [_worth(reader, one) for one in rewards]
        calls = reader.tables(trace.get("calls", []), "calls")
        right = reader.grade(sum(parts) if parts else None, "rewards")
        cut = bool(calls) and calls[-1].get("finish_reason") == "length"
        asked = task.get("prompt") or [one for one in messages if one.get("role") == "user"][:1]
        gold = task.get("answer")
        reader.add(
            reader.text(asked, "task.data.prompt"),
            Response(reader.text(said[-1:], "nodes.message"), right, cut),
            gold=reader.gold(gold, "task.data.answer") if isinstance(gold, str | int | float) else "",
            id=task.get("name") or task.get("idx"),
        )


def _worth(reader: _Reader, reward: object) -> float:
    one = reader.table(reward, "rewards")
    score, weight = one.get("score"), one.get("weight", 1.0)
    if not all(isinstance(number, int | float) for number in (score, weight)):
        raise reader.fail("rewards", f"must have a number as score, got {_shown(score)}")
    try:
        return float(score or 0) * float(weight)
    except OverflowError:
        raise reader.fail("rewards", "has a number that is too large") from None


def _add_sample(reader: _Reader, sample: Mapping[str, Any]) -> None:
    """Add a sample of Inspect AI. Its first score says whether the response is right."""
    output = reader.table(sample.get("output") or {}, "output")
    choices = reader.tables(output.get("choices") or [], "output.choices")
    failed = sample.get("error") is not None
    if failed or not choices:
        reader.left_out[WITHOUT[failed]] += 1
        return
    scores = reader.table(sample.get("scores") or {}, "scores")
    first = next(iter(scores.values()), None)
    value = None if first is None else reader.table(first, "scores").get("value")
    right = VALUES.get(value) if isinstance(value, str) else None
    if isinstance(value, int | float):
        right = reader.grade(value, "scores")
    target = sample.get("target")
    gold = target[0] if isinstance(target, list) and len(target) == 1 else target
    message = [{"role": "assistant", **reader.table(choices[0].get("message"), "output.choices.message")}]
    reader.add(
        reader.text(sample.get("input"), "input"),
        Response(
            reader.text(message, "output.choices.message"),
            right,
            choices[0].get("stop_reason") in ("max_tokens", "model_length"),
        ),
        gold=reader.gold(gold, "target") if not isinstance(gold, list) else "",
        id=sample.get("id"),
        choices=sample.get("choices"),
    )


def _members(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the name and content of each sample of a packed log, in the order of its epochs."""
    unpacked = 0
    try:
        with open_plain(path, LARGEST_FILE) as file, zipfile.ZipFile(file) as log:
            names = log.namelist()
            if len(names) > MOST_MEMBERS:
                raise DataError(f"{path}: has {len(names):,} members, more than {MOST_MEMBERS:,}")
            for name in names:
                if not (name.startswith("samples/") and name.endswith(".json")):
                    continue
                where = f"{path}, {name}"
                with log.open(name) as member:
                    data = member.read(LARGEST_SAMPLE + 1)
                unpacked += len(data)
                if len(data) > LARGEST_SAMPLE or unpacked > LARGEST_FILE:
                    most = LARGEST_SAMPLE if len(data) > LARGEST_SAMPLE else LARGEST_FILE
                    raise DataError(f"{where}: unpacks to more than {most >> 20:,} MiB")
                yield where, _parsed(data, where)
    except (*DAMAGE, OSError) as error:
        if isinstance(error, OSError) and error.filename is not None:  # the file, not what it contains
            raise
        raise DataError(f"{path}: cannot be unpacked: {error}") from error


def _parsed(data: bytes, where: str) -> Any:
    """Return the content of a JSON text. DataError names what is not JSON."""
    try:
        return json.loads(data)
    except RecursionError:
        raise DataError(f"{where}: {TOO_DEEP}") from None
    except ValueError as error:
        raise DataError(f"{where}: is not JSON: {error}") from error


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
