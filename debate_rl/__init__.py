"""The application: training, evaluation, reports and the inspector, behind the `debate` command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from debate_rl.strategies.solving import solve

__all__ = ["solve"]


def __getattr__(name: str) -> Any:
    if name == "solve":
        from debate_rl.strategies.solving import solve

        return solve
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
