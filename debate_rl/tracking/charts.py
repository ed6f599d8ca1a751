"""Trackers for other programs' charts, under the names of metrics.jsonl: Weights & Biases and TensorBoard."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from debate.settings import install_hint
from debate_rl.config.logging import WandbConfig
from debate_rl.tracking.step_lines import SAMPLE, Sample
from transcripts.errors import TranscriptWriteError


class WandbTracker:
    """Logs to Weights & Biases; drawn turns become the table ``samples`` of their step."""

    def __init__(self, config: WandbConfig, folder: Path, settings: Mapping[str, object]) -> None:
        try:
            import wandb
        except ImportError as error:
            raise ValueError(
                f"logging.wandb.project is set, but wandb is not installed: {install_hint('train')}"
            ) from error
        mode = config.mode or os.environ.get("WANDB_MODE") or "online"
        try:
            self._run = wandb.init(
                project=config.project,
                entity=config.entity,
                name=config.name or folder.name,
                group=config.group,
                tags=config.tags or None,
                config=dict(settings),
                dir=folder,
                mode=mode,  # type: ignore[arg-type]
                id=_wandb_id(folder),
                resume=None if mode == "offline" else "allow",
            )
        except (wandb.Error, OSError) as error:
            raise ValueError(
                f"logging.wandb.project={config.project}: {error}; set WANDB_API_KEY, "
                "or logging.wandb.mode=offline"
            ) from error
        self._table = wandb.Table

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Log one step."""
        self._run.log(dict(metrics), step=step)

    def show(self, step: int, samples: Sequence[Sample]) -> None:
        """Log the drawn turns as a table, a row for each."""
        rows: Any = [[sample[name] for name in SAMPLE] for sample in samples]
        self._run.log({"samples": self._table([*SAMPLE], rows)}, step=step)

    def close(self) -> None:
        """Finish the upload."""
        self._run.finish()


def _wandb_id(folder: Path) -> str:
    """Return the run's id, drawn once and kept in the folder: a resumed run goes on in the same chart."""
    path = folder / "wandb_id"
    try:
        if not path.exists():
            path.write_text(os.urandom(4).hex(), encoding="ascii")
        return path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise TranscriptWriteError.of(error, path) from error


class TensorBoardTracker:
    """Writes event files; ``tensorboard --logdir RUN`` shows them.

    ``first_step``: a resumed run's; TensorBoard drops what was logged from there on.
    """

    def __init__(self, folder: Path, first_step: int = 0) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ValueError(
                f"logging.tensorboard is set, but tensorboard is not installed: {install_hint('tensorboard')}"
            ) from error
        try:
            self._writer = SummaryWriter(str(folder), purge_step=first_step)
        except OSError as error:
            raise TranscriptWriteError.of(error, folder) from error

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write one step."""
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        """Bring the events to the disk."""
        self._writer.close()
