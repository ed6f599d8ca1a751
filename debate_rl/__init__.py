"""The application: training, evaluation, reports and the inspector, behind the `debate` command."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from debate_rl.strategies.solving import solve

_OF_VERIFIERS = ("DebateEnv", "DebateHarness", "DebateTaskset")
__all__ = ["solve", *(_OF_VERIFIERS if find_spec("verifiers") else ())]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name == "solve":
        from debate_rl.strategies.solving import solve

        return solve
    if name in _OF_VERIFIERS:  # verifiers finds them by the name of this package
        from debate_rl import verifiers_env

        return getattr(verifiers_env, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
