"""Transcripts: every debate of a run with its votes, rewards and advantages, as JSON lines."""

from transcripts.codec import SCHEMA_VERSION
from transcripts.errors import TornTailWarning, TranscriptError, TranscriptWriteError
from transcripts.filters.compile import compile_filter
from transcripts.filters.parse import FilterError
from transcripts.index.rows import DebateRow, StepRow, turn_rows
from transcripts.record import Record, Timing, TurnAdvantages
from transcripts.run_store import RunStore
from transcripts.store import ShardWriter, read_records, write_step

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
