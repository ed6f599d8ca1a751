"""Problems to solve (a text, a file, or piped input), and the environment that grades them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from debate import Problem
from debate.types import Kind
from debate.values import whole_text
from debate_rl.config import Config
from envs import DataError, Environment, load_environment, load_problems
from envs.data.loading import question_hash
from envs.families import FAMILIES

ROWS = (".jsonl", ".json", ".parquet")
"""Suffixes of data set files. Any other file has one problem per line."""
ANSWERS = {"answer", "expected_answer", "target", "solution"}
"""Fields of a row that may hold the gold answer."""
_FILE = re.compile(
    r"[^\s]+\.(jsonl|json|parquet|txt|csv)|(~?/|\.{1,2}/)[^\s]+|[A-Za-z][\w.-]*(/[A-Za-z][\w.-]*)+",
    re.IGNORECASE,
)
"""Matches a word that names a file, by its suffix or as a path, and not a problem such as 1/2+x/3."""


@dataclass(frozen=True, slots=True)
class Posed:
    """Problems, their grader, and the reason why answers are not graded, if they are not."""

    problems: tuple[Problem, ...]
    environment: Environment
    ungraded: str = ""


def pose(what: str, piped: str | None, config: Config, kind: Kind | None = None) -> Posed:
    """Return the problems of a command-line argument: a file, a text, or "-" for the ``piped`` text.

    DataError if there are no problems. The prompt of a problem without a gold answer also requests an answer.
    """
    if what == "-":
        return _of_pipe(piped or "", config, kind)
    try:
        path = Path(what).expanduser()
        there = path.exists()
    except (OSError, ValueError, RuntimeError):  # the text is not a valid path
        path, there = Path(), False
    if not there or not path.is_file():
        if there and " " not in what:
            raise DataError(f"{what}: is not a regular file; name one, or give - and pipe the problems")
        if _FILE.fullmatch(what):
            raise DataError(f"{what}: there is no such file")
        return pose_texts([what], config, kind=kind)
    if path.suffix.lower() in ROWS:
        return _of_rows(path, str(path), config, kind)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not UTF-8 text ({error.reason} at byte {error.start})") from error
    return pose_texts(text.splitlines(), config, str(path), kind)


def pose_texts(
    texts: Sequence[str], config: Config, name: str = "the problem", kind: Kind | None = None
) -> Posed:
    """Return a problem for each different text that is not blank. ``name`` names them in error messages."""
    known = dict.fromkeys(whole_text(text).strip() for text in texts if text.strip())
    if not known:
        raise DataError(f"{name}: is empty; give at least one problem")
    problems = tuple(
        Problem(question_hash(text)[:16], text, source="solve", answer="", kind=kind or "expression")
        for text in known
    )
    family = family_named(problems, config.env.kind)
    if family is None:
        return Posed(problems, load_environment("gsm8k"), "no gold answers")
    return Posed(tuple(replace(one, answer=None) for one in problems), family)


def _of_pipe(text: str, config: Config, kind: Kind | None) -> Posed:
    """Return the problems of a piped text: rows of JSON, or lines."""
    name = "standard input"
    if not text.lstrip().startswith("{"):
        return pose_texts(text.splitlines(), config, name, kind)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "problems.jsonl"
        path.write_text(text, encoding="utf-8")
        try:
            return _of_rows(path, name, config, kind)
        except DataError as error:
            raise DataError(str(error).replace(str(path), name)) from error


def _of_rows(path: Path, name: str, config: Config, kind: Kind | None) -> Posed:
    """Return the problems of a data set file. Without gold answers, they are not graded."""
    try:
        problems, ungraded = load_problems("file", path=path, split="all"), ""
    except DataError:
        if not _is_without_answers(path):
            raise
        rows = load_problems("open", path=path, split="all")
        ungraded = f"{name} has no gold answers"
        problems = tuple(replace(one, answer="", kind=kind or "expression") for one in rows)
    family = family_named(problems, config.env.kind)
    return Posed(tuple(problems), family or load_environment("gsm8k"), "" if family else ungraded)


def _is_without_answers(path: Path) -> bool:
    """Return whether no row of a JSONL file has a field that may hold a gold answer."""
    if path.suffix.lower() != ".jsonl":
        return False
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except ValueError:
        return False
    return bool(rows) and all(isinstance(row, dict) and not ANSWERS & row.keys() for row in rows)


def family_named(problems: Sequence[Problem], kind: str) -> Environment | None:
    """Return the synthetic family of this kind if it can read every problem, else None."""
    family = FAMILIES.get(kind)
    if family is None:
        return None
    try:
        for problem in problems:
            family.grade(problem, "1 2")  # raises if the family cannot read the problem
    except DataError:
        return None
    return load_environment(kind)
