"""labels.jsonl of a run folder: which problems' gold answers were used, and since which step.

A run that goes on from a checkpoint drops what later steps used: it does these steps again. A run whose
problems all have labels writes none.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from debate_rl.metrics.features import label_counts
from debate_rl.metrics.step_log import read_rows, rewind
from debate_rl.training.rollouts import Rollout
from transcripts.append import LineFile


class LabelLedger:
    """The problems whose labels the steps before ``step`` used, in the order of their first use."""

    def __init__(self, path: Path, step: int) -> None:
        self._path = path
        rewind(path, step)
        self.used = _problems(path) if path.exists() else []

    def use(self, step: int, played: Rollout) -> dict[str, float]:
        """Note the labels that a step uses; return its metrics."""
        labelled = [
            debate.problem.id
            for debate, credit in zip(played.debates, played.credits, strict=True)
            if "truth" in (credit.truth, credit.judge)
        ]
        known = set(self.used)
        self._note(step, [id for id in dict.fromkeys(labelled) if id not in known])
        counts = label_counts(played.credits, played.correct, played.groups)
        return {"labels/used": float(len(self.used)), **counts.metrics()}

    def _note(self, step: int, problems: Sequence[str]) -> None:
        self.used += problems
        if problems:
            with LineFile(self._path) as file:
                for id in problems:
                    file.write(json.dumps({"step": step, "problem": id}).encode("ascii"))


def _problems(path: Path) -> list[str]:
    """Return the problems that a file names, each once; ValueError names a line that names none."""
    found: dict[str, None] = {}
    for number, row in enumerate(read_rows(path), start=1):
        if not isinstance(name := row.get("problem"), str):
            raise ValueError(f"{path}:{number}: not a line of {path.stem}: problem {name!r} is not an id")
        found[name] = None
    return list(found)
