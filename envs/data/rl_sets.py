"""Read rows of sets made for RL: chat messages, a verifier's truth beside them, several tasks in one set."""

from __future__ import annotations

import json
import re
from ast import literal_eval
from collections.abc import Mapping
from contextlib import suppress
from typing import cast
from warnings import catch_warnings, simplefilter

from debate.types import Kind
from envs.answers.notation import clean, sides
from envs.answers.numbers import parse_number
from envs.data import golds
from envs.data.messages import last_of_user
from envs.data.records import Record
from envs.instructions import ConstraintError
from envs.instructions.constraints import write_constraints

_TASKS: Mapping[str, Kind] = {"gsm8k": "number", "math": "expression", "ifeval": "instructions"}
"""How a row of Open-Instruct is graded, by its field "dataset"."""
_ASKED = re.compile(r"(?:^|\n\n)(?:Question|Problem):\s*")
_TO_ANSWER = re.compile(r"\s*\n\s*(?:Answer|Solution):\s*\Z")
_BOX_REQUEST = re.compile(r"\s*Present the answer in LaTex format: \\boxed\{Your answer\}\s*\Z")
_LONGEST = 100_000


def message(row: Record) -> str:
    """The last message of the user; in Eurus-2 without its request for a box."""
    field = row.field("question", "messages", "prompt")
    value = row.value("question", "messages", "prompt")
    content = last_of_user(value)
    if content is None:
        raise row.error(field, "needs a list of messages with one of role 'user'", value)
    text = _BOX_REQUEST.sub("", content).strip()
    if not text:
        raise row.error(field, "is empty", value)
    return row.whole(field, text)


def without_shots(row: Record) -> str:
    """The message; of one that shows worked examples first, its last question alone."""
    text = message(row)
    if task(row) == "instructions":
        return text
    return _TO_ANSWER.sub("", _ASKED.split(text)[-1]).strip() or text


def task(row: Record) -> Kind:
    """The kind of a row of Open-Instruct; the row's error for a verifier that is not here."""
    name = str(row.values.get("dataset", "")).lower()
    if name not in _TASKS:
        known = ", ".join(_TASKS)
        raise row.error("dataset", f"names a verifier that is not here; known: {known}", name)
    return _TASKS[name]


def ground_truth(row: Record, choices: tuple[str, ...]) -> str:
    """The truth of a row of Open-Instruct: an answer, or constraints in either of its two forms."""
    kind = task(row)
    if kind == "instructions":
        return _constraints(row)
    text = row.text("answer", "ground_truth")
    if kind == "number" and parse_number(sides(clean(text))[-1]) is None:
        raise row.error(row.field("answer", "ground_truth"), "is not a number", text)
    return golds.usable(row, row.field("answer", "ground_truth"), text)


def _constraints(row: Record) -> str:
    """One function with its arguments (RLVR-IFeval), or lists of ids and arguments (IF multi-constraints)."""
    field = row.field("answer", "ground_truth")
    value = _unpacked(row.value("answer", "ground_truth"))
    if not isinstance(value, Mapping) or not ({"func_name", "instruction_id"} & set(value)):
        raise row.error(field, "needs an object with 'func_name' or 'instruction_id'", value)
    named = cast("Mapping[str, object]", value)
    if "func_name" in named:
        given = {name: item for name, item in named.items() if name != "func_name"}
        pair: tuple[object, object] = ([named["func_name"]], [given])
    else:
        pair = (named["instruction_id"], named.get("kwargs"))
    try:
        return write_constraints(*pair)
    except ConstraintError as fault:
        raise row.error(field, f"{fault.field}: {fault.problem}", fault.value) from fault


def _unpacked(value: object) -> object:
    """Return the object that a text writes as JSON or as a Python literal; a list of one is what it holds."""
    if isinstance(value, str):
        value = _literal(value)
    if isinstance(value, list) and len(value) == 1:
        return _unpacked(value[0])
    return value


def _literal(text: str) -> object:
    """Return the value of a literal, nothing being run; the text itself where it is none."""
    if len(text) > _LONGEST:
        return text
    for read in (json.loads, literal_eval):
        with suppress(ValueError, SyntaxError, TypeError, RecursionError, MemoryError), catch_warnings():
            simplefilter("ignore")  # of the parser, about what the text holds
            return read(text)
    return text


def verl_truth(row: Record, choices: tuple[str, ...]) -> str:
    """``reward_model.ground_truth``; of a list of accepted texts, written as JSON, its first."""
    model = row.value("answer", "reward_model")
    field = row.field("answer", "reward_model")
    truth = model.get("ground_truth") if isinstance(model, Mapping) else model
    if isinstance(truth, str) and truth.lstrip().startswith("["):
        listed = _literal(truth)
        truth = listed[0] if isinstance(listed, list) and listed and isinstance(listed[0], str) else truth
    if not isinstance(truth, str) or not truth.strip():
        raise row.error(field, "needs an object with a text 'ground_truth'", model)
    return golds.usable(row, field, truth.strip())


def is_mathematics(row: Record) -> bool:
    """Eurus-2 has code too, whose verifier is not here."""
    return row.values.get("ability") == "math"
