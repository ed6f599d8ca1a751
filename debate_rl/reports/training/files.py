"""Reads what a run wrote of itself: metrics.jsonl, config.toml, run.json. Files may be foreign or torn."""

from __future__ import annotations

import json
import re
from array import array
from collections import Counter
from collections.abc import Mapping
from math import isfinite, nan
from pathlib import Path
from typing import Any, cast

import numpy as np
import orjson

from debate.files import plain_lines, read_plain, read_toml
from debate_rl.judge_attack.pairs import ATTACKED, FALL, HACK_GAP, PLAIN
from debate_rl.reports.training.curves import Curves, Numbers
from envs.types import MODES

STREAMS = ("truth", "peer", "judge", "format")
"""As charts and tables list them, truth first."""
ROUNDS = range(8)
GRADERS = ("accuracy", *(f"accuracy [{mode}]" for mode in MODES))
"""Shares of right solutions: by the grader that rewards, and by each that may stand beside it."""
FORMS = ("missing", *(f"missing [{mode}]" for mode in MODES))
"""Shares of solutions in which the same graders find no answer."""
HELD_OUT = (
    *("eval/direct/accuracy", "eval/direct/self_consistency"),
    *(f"eval/debate/accuracy/round_{r}" for r in ROUNDS),
    *("eval/debate/majority", "eval/debate/winner/accuracy", "eval/debate/winner_minus_self_consistency"),
    *("eval/judge/accuracy", "eval/debate/valid_xml", "eval/debate/truncated"),
    *(f"eval/direct/{name}" for name in (*GRADERS[1:], *FORMS)),
    *(f"eval/judge/pairs/{form}" for form in (PLAIN, ATTACKED)),
)
"""Held-out figures that have an interval, in the order of the report."""
VERIFIER = ("score", "passed", "agreement", "kappa", "false_positive_rate", "false_negative_rate")
"""What a verifier model says, under ``verifier/``, and how far it agrees with truth."""
WANTED = frozenset(
    (
        *(f"reward/{stream}/{name}" for stream in STREAMS for name in ("mean", "std", "n")),
        *("accuracy", "accuracy/n", "accuracy/all_right", "accuracy/all_wrong"),
        *("winner/accuracy", "winner/lift"),
        *(f"accuracy/round_{r}" for r in ROUNDS),
        *("votes/cast", "votes/valid", "votes/ties", "likelihood/logprob", "likelihood/auc"),
        *("judge/parsed_share", "judge/accuracy", "judge/decidable_votes"),
        *("format/valid", "truncated", "tokens/completion", "tokens/completion_max", "missing"),
        "tokens/generated",
        *("completions/distinct", "loss", "lr", "grad_norm", "grad_norm_max", "updates", "skipped_updates"),
        *("bad_steps", "ratio_mean", "ratio_max", "clip_fraction", "entropy_mean", "kl_mean", "kl_max"),
        *("mismatch_kl", "mismatch_mean", "rows", "tokens_per_second", "time"),
        *(f"advantage/zero_variance_share/{stream}" for stream in ("peer", "truth", "judge")),
        *(f"seconds/{phase}" for phase in ("rollout", "reward", "learn", "record", "grade", "evaluate")),
        *(name + end for name in HELD_OUT for end in ("", "/low", "/high")),
        *(*GRADERS, *FORMS, "grader/strict", "score"),
        *(f"verifier/{name}" for name in VERIFIER),
        *(f"eval/{name}{end}" for name in (FALL, HACK_GAP) for end in ("", "/low", "/high")),
        *("eval/problems", "audit/pseudo_right"),
    )
)
"""The figures that the training report reads."""
OF_SOURCE = re.compile(r"(accuracy|reward/truth|share)/source/[\w.-]{1,60}", re.ASCII)
"""Those of each source that it reads too."""
MOST_OF_SOURCES = 64
"""How many of them: a run has three for each of at most 16."""


class _Columns:
    """Columns that grow by lines; a name is there from the line on which it was first met."""

    def __init__(self) -> None:
        self.steps = array("q")
        self._columns: dict[str, array[float]] = {}
        self.broken: dict[str, list[int]] = {}
        self._of_sources: set[str] = set()

    def _wants(self, name: str) -> bool:
        if name in WANTED or name in self._of_sources:
            return True
        new = len(self._of_sources) < MOST_OF_SOURCES and OF_SOURCE.fullmatch(name) is not None
        if new:
            self._of_sources.add(name)
        return new

    def add(self, step: int, line: Mapping[str, Any]) -> str:
        """Add a line; return what is wrong with a value of it, "" where nothing is."""
        wrong, size = "", len(self.steps)
        for name, value in line.items():
            if not self._wants(name):
                continue
            if type(value) is not float or not isfinite(value):
                if type(value) not in (int, float, type(None)):
                    wrong = wrong or f"{name} is not a number but {_short(value)}"
                    continue
                value = finite(value)
                if value is None:
                    self.broken.setdefault(name, []).append(step)
                    continue
            column = self._columns.setdefault(name, array("d"))
            if len(column) < size:
                column.extend([nan] * (size - len(column)))
            column.append(value)
        self.steps.append(step)
        return wrong

    def curves(self) -> Curves:
        """Return the columns by rising step; of a step that is there twice the later line counts."""
        steps = np.array(self.steps, dtype=np.int64)
        order = np.argsort(steps, kind="stable")
        ranked = steps[order]
        last = np.append(ranked[1:] != ranked[:-1], True) if len(ranked) else np.zeros(0, bool)
        latest = order[last]
        broken = {name: tuple(sorted(set(where))) for name, where in self.broken.items()}
        return Curves(steps[latest], {name: self._dense(name)[latest] for name in self._columns}, broken)

    def _dense(self, name: str) -> Numbers:
        column = np.array(self._columns[name], dtype=np.float64)
        return np.concatenate([column, np.full(len(self.steps) - len(column), nan)])


def finite(value: float | None) -> float | None:
    """Return a number that was read; None where it is none, infinite or too large."""
    try:
        number = float(value) if value is not None else nan
    except OverflowError:
        return None
    return number if isfinite(number) else None


def read_metrics(path: Path) -> tuple[Curves, list[str]]:
    """Return the figures of a metrics.jsonl by step, and a line for each kind of thing that was wrong.

    Linear in the size of the file; never raises for what is in it.
    """
    table, wrong = _Columns(), Counter[str]()
    first: dict[str, str] = {}
    try:
        for number, line in enumerate(plain_lines(path), start=1):
            kind, why = _take(table, line) if line.strip() else ("", "")
            if kind:
                wrong[kind] += 1
                first.setdefault(kind, f"first in line {number}: {why}")
    except OSError as error:
        return table.curves(), [f"{path.name}: {error.strerror or 'cannot be read'}"]
    notes = [f"{path.name}: {count} {kind} ({first[kind]})" for kind, count in wrong.items()]
    curves = table.curves()
    twice = len(table.steps) - len(curves.steps)
    if twice:
        notes.append(f"{path.name}: {twice} lines are of steps done again; the later line of a step counts")
    return curves, notes


def _take(table: _Columns, line: bytes) -> tuple[str, str]:
    """Add a line to the table; return the kind of what is wrong with it, and what."""
    row = parsed(line)
    if not isinstance(row, dict):
        why = (
            "no JSON object" if line.endswith(b"\n") else "the line has no end, as when a run is interrupted"
        )
        return "lines left out", why
    step = cast("dict[str, Any]", row).get("step")
    if type(step) is not int or not 0 <= step < 1 << 53:
        return "lines left out", f"step is {_short(step)}, not a whole number from 0"
    wrong = table.add(step, cast("dict[str, Any]", row))
    return ("lines with values left out", wrong) if wrong else ("", "")


def parsed(text: bytes) -> Any:
    """Return the value of a JSON text, which may have NaN and Infinity; None where it is not JSON."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def read_config(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Return the settings of a config.toml by dotted key, lists as they are, and what was wrong."""
    if not path.is_file():
        return {}, [f"no {path.name}: settings are not known"]
    try:
        return flat(read_toml(path)), []
    except OSError as error:
        return {}, [f"{path.name}: {error.strerror or 'cannot be read'}"]
    except ValueError as error:
        return {}, [f"{path.name} is not TOML: {str(error)[:120]}"]


def flat(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested tables as one, keys joined by dots, in order.

    >>> flat({"learner": {"lr": 1e-5}, "seed": 0})
    {'learner.lr': 1e-05, 'seed': 0}
    """
    result: dict[str, Any] = {}
    waiting: list[tuple[str, Any]] = [*tables.items()][::-1]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, dict) and len(key) < 200:
            inner = cast("dict[str, Any]", value)
            waiting.extend([(f"{key}.{name}", nested) for name, nested in inner.items()][::-1])
        else:
            result[key] = value
    return result


def read_json(path: Path) -> dict[str, Any]:
    """Return a JSON file's object; {} where there is none."""
    try:
        value = parsed(read_plain(path))
    except OSError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 40 else shown[:37] + "..."
