"""Transcripts: every debate of a run with its votes, rewards and advantages, as JSON lines."""

from transcripts.errors import TornTailWarning, TranscriptError, TranscriptWriteError
from transcripts.migrations import SCHEMA_VERSION
from transcripts.record import Correct, Record, RewardNumbers, TurnAdvantages
from transcripts.store import (
    ShardWriter,
    read_records,
    set_aside_from,
    shard_paths,
    shard_step,
    write_step,
)

__all__ = [
    "SCHEMA_VERSION",
    "Correct",
    "Record",
    "RewardNumbers",
    "ShardWriter",
    "TornTailWarning",
    "TranscriptError",
    "TranscriptWriteError",
    "TurnAdvantages",
    "read_records",
    "set_aside_from",
    "shard_paths",
    "shard_step",
    "write_step",
]
