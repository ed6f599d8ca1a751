"""Transitions -> advantages -> rows -> loss -> new weights.

Importing this package does not load torch; ``learner.losses`` and ``Learner`` load it on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from learner.advantages import AdvantageConfig, TurnAdvantage, stream_advantages, turn_advantages
from learner.rows import make_rows
from learner.token_streams import token_streams
from learner.types import Row, Transition, transitions_of
from learner.update.config import LearnerConfig

if TYPE_CHECKING:
    from learner import losses
    from learner.update.learner import Learner

__all__ = [
    "AdvantageConfig",
    "Learner",
    "LearnerConfig",
    "Row",
    "Transition",
    "TurnAdvantage",
    "losses",
    "make_rows",
    "stream_advantages",
    "token_streams",
    "transitions_of",
    "turn_advantages",
]


def __getattr__(name: str) -> object:
    if name == "losses":
        return import_module("learner.losses")
    if name == "Learner":
        return import_module("learner.update.learner").Learner
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
