"""Transcripts: every debate of a run with its votes, rewards and advantages, as JSON lines.

Importing this package does not load a database. A run's store and its filters load it on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from transcripts.codec import SCHEMA_VERSION
from transcripts.errors import TornTailWarning, TranscriptError, TranscriptWriteError
from transcripts.record import Record, Timing, TurnAdvantages, turn_rows
from transcripts.store import ShardWriter, read_records, write_step

if TYPE_CHECKING:
    from transcripts.filters.compile import compile_filter
    from transcripts.filters.parse import FilterError
    from transcripts.index.rows import DebateRow, StepRow
    from transcripts.run_store import RunStore

__all__ = [
    "SCHEMA_VERSION",
    "DebateRow",
    "FilterError",
    "Record",
    "RunStore",
    "ShardWriter",
    "StepRow",
    "Timing",
    "TornTailWarning",
    "TranscriptError",
    "TranscriptWriteError",
    "TurnAdvantages",
    "compile_filter",
    "read_records",
    "turn_rows",
    "write_step",
]

_LATER = {
    "compile_filter": "filters.compile",
    "FilterError": "filters.parse",
    "DebateRow": "index.rows",
    "StepRow": "index.rows",
    "RunStore": "run_store",
}


def __getattr__(name: str) -> object:
    if name in _LATER:
        return getattr(import_module(f"transcripts.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
