"""Why this reward? The chain votes, streams, baselines, advantage of one turn, each number with its source."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from debate.types import TurnId
from inspector.views.reward_types import Line, Why
from transcripts import RunStore

if TYPE_CHECKING:
    from learner.config import Config


def config_of(run: Path) -> tuple[Config | None, str]:
    """Return a run's configuration; None, and why, where there is none that can be read."""
    raise NotImplementedError


def why(store: RunStore, config: Config | None, id: str, turn: TurnId) -> Why:
    """Return the explanation of a turn; without a configuration it has stored numbers alone.

    TranscriptError where there is no such debate or turn.
    """
    raise NotImplementedError


def outline(found: Why) -> tuple[Line, ...]:
    """Return the explanation as an outline, from the votes to the advantages."""
    raise NotImplementedError
