"""The figures that the training report shows, and what it reads of config.toml and run.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from debate.files import read_plain, read_toml
from debate_rl.alarms.metrics_file import FORMS, GRADERS, parsed
from debate_rl.alarms.settings import flat
from debate_rl.judge_attack.pairs import ATTACKED, PLAIN

ROUNDS = range(8)
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


def read_json(path: Path) -> dict[str, Any]:
    """Return a JSON file's object; {} where there is none."""
    try:
        value = parsed(read_plain(path))
    except OSError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
