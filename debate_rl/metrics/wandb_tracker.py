"""Weights & Biases: metrics, the groups of a step as a table, and alarms as alerts."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from debate.settings import install_hint
from debate_rl.formatting import shorten
from debate_rl.metrics.chart_names import charted
from debate_rl.metrics.group_table import GroupTable
from transcripts.errors import TranscriptWriteError

DONE = "steps_done"
BEST = ("accuracy", "self_consistency", "majority")
"""Suffixes of held-out figures whose maximum is also in the summary."""
TITLE = 64
"""Maximum number of characters of an alert's title."""
BLOCK, HEAD = 32768, 7
"""Bytes of a block of a .wandb file (the log format of LevelDB), and of the header of a file or a chunk."""
WHOLE_CHUNK, LAST_CHUNK = 1, 4


class WandbTracker:
    """Logs to Weights & Biases. The groups of a step become a table ``groups``.

    A resumed run continues the same W&B run: ``log`` skips the steps that W&B already has. W&B keeps the
    newest rows in memory, so a killed run loses some; it has to log them again.
    """

    def __init__(self, project: str, folder: Path, settings: Mapping[str, object]) -> None:
        try:
            import wandb
        except ImportError as error:
            raise ValueError(
                f"logging.wandb is set, but wandb is not installed: {install_hint('train')}"
            ) from error
        mode, id = os.environ.get("WANDB_MODE") or "online", _wandb_id(folder)
        stored = steps_on_disk(folder, id) if mode == "offline" else 0
        try:
            self._run = wandb.init(
                project=project,
                name=os.environ.get("WANDB_NAME") or folder.name,
                config=dict(settings),
                dir=folder,
                mode=mode,  # type: ignore[arg-type]
                id=id,
                resume=None if mode == "offline" else "allow",
                settings=wandb.Settings(console="off"),  # otherwise W&B stores every frame of a progress bar
            )
        except (wandb.Error, OSError) as error:
            raise ValueError(
                f"logging.wandb={project}: {error}; set WANDB_API_KEY, or WANDB_MODE=offline"
            ) from error
        self._table: Any = wandb.Table
        self._next = self._run.step if mode == "online" else stored
        self._groups: GroupTable | None = None
        self._known: set[str] = set()
        for group in ("train/*", "eval/*", "perf/*"):
            self._run.define_metric(group, step_metric=DONE)

    def begin(self, figures: Mapping[str, float]) -> None:
        """Log the held-out figures from before the first step."""
        self.log(-1, figures)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Log one step, unless W&B already has it."""
        figures, done = charted(metrics), step + 1
        groups, self._groups = self._groups, None
        if done < self._next:
            return
        for name in figures.keys() - self._known:
            if name.startswith("eval/") and name.endswith(BEST):
                self._run.define_metric(name, step_metric=DONE, summary="max,last")
        self._known |= figures.keys()
        columns, rows = groups or ([], [])
        table = {"groups": self._table(columns, rows)} if rows else {}
        self._run.log({DONE: done, **figures, **table}, step=done, commit=True)

    def groups(self, step: int, table: GroupTable) -> None:
        """Keep the table of a step's groups until the step is logged."""
        self._groups = table

    def alarm(self, step: int, title: str, text: str, *, ends: bool) -> None:
        """Send an alarm as an alert, which W&B passes on by mail or to Slack if the user has set that up."""
        self._run.alert(shorten(title, TITLE), text, level="ERROR" if ends else "WARN")

    def close(self) -> None:
        """Finish the upload."""
        self._run.finish()


def _wandb_id(folder: Path) -> str:
    """Return the W&B id of the run, drawn once and stored in the folder so that a resumed run has it."""
    path = folder / "wandb_id"
    try:
        if not path.exists():
            path.write_text(os.urandom(4).hex(), encoding="ascii")
        return path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise TranscriptWriteError.of(error, path) from error


def steps_on_disk(folder: Path, id: str) -> int:
    """Return the first number of steps done that none of the run's .wandb files has.

    A file has the first part of what its process logged. The rest is lost if the process is killed.
    """
    found = 0
    for path in folder.glob(f"wandb/*run-*-{id}/run-{id}.wandb"):
        with suppress(Exception):  # of a damaged file, what precedes the damage counts
            for record in read_wandb_file(path):
                for item in record.history.item:
                    if (item.key or "/".join(item.nested_key)) == DONE:
                        found = max(found, int(item.value_json) + 1)
    return found


def read_wandb_file(path: Path) -> Iterator[Any]:
    """Yield the whole records of a .wandb file, messages of ``wandb.proto``."""
    from wandb.proto import wandb_internal_pb2

    message: Any = wandb_internal_pb2
    data, at, record = path.read_bytes(), HEAD, b""
    while at + HEAD <= len(data):
        if BLOCK - at % BLOCK < HEAD:  # no chunk begins in the last bytes of a block
            at += BLOCK - at % BLOCK
            continue
        _, size, kind = struct.unpack_from("<IHB", data, at)
        record += data[at + HEAD : at + HEAD + size]
        at += HEAD + size
        if kind in (WHOLE_CHUNK, LAST_CHUNK) and at <= len(data):
            yield message.Record.FromString(record)
            record = b""
