"""The application: training, evaluation, reports and the inspector, behind the `debate` command."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from debate_rl.config import Config
    from debate_rl.python import evaluate, grade_debate, open_run, score, train
    from debate_rl.strategies.solving import solve

_OF_VERIFIERS = ("DebateEnv", "DebateHarness", "DebateTaskset")
__all__ = [
    "Config",
    "evaluate",
    "grade_debate",
    "open_run",
    "score",
    "solve",
    "train",
    *(_OF_VERIFIERS if find_spec("verifiers") else ()),  # pyright: ignore[reportUnsupportedDunderAll]
]
_HOMES = {
    "Config": "config",
    "solve": "strategies.solving",
    **dict.fromkeys(("evaluate", "grade_debate", "open_run", "score", "train"), "python"),
    **dict.fromkeys(_OF_VERIFIERS, "verifiers_env"),  # verifiers finds them by the name of this package
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"debate_rl.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
