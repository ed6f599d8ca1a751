"""How many threads torch computes with on a CPU.

The number decides the order of sums, and so their rounding. It follows from the model and the machine and is
not measured, so that other load at a start does not change the results of a seed. run.json keeps it.
"""

from __future__ import annotations

import os
from pathlib import Path

from debate.files import read_json
from debate_rl.config import Config
from debate_rl.models import resolve_device
from debate_rl.runs.provenance import usable_cores

NARROW = 512
"""Below this width a product is done before a second thread has woken up."""
EXPLICIT = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
FACT = "threads"
"""The key in run.json."""


def use_threads(config: Config) -> tuple[int, str] | None:
    """Set torch's threads for a model on a CPU; return their number and a line about it; None on a GPU.

    A narrow model gets one thread, another half the cores: threads wait for each other by spinning, so one
    that another process keeps from its core stops all. A resumed run keeps its number. The environment
    (``EXPLICIT``) overrides both, and a lower number set by ``torch.set_num_threads`` stays.
    """
    import torch

    if resolve_device(config.model.device).type != "cpu":
        return None
    kept, cores = _kept(Path(config.run.dir)), usable_cores()
    if given := next((name for name in EXPLICIT if os.environ.get(name)), None):
        count = torch.get_num_threads()
        other = "" if kept in (None, count) else f"; this run had {kept} before, and rounding may differ"
        return count, f"threads: {count} of {cores} cores, by {given}{other}"
    width = config.model.tiny.hidden_size if config.model.tiny else NARROW  # all others are wide
    count = kept or min(1 if width < NARROW else max(1, cores // 2), torch.get_num_threads())
    torch.set_num_threads(count)
    why = "as this run had before" if kept else "for a narrow model" if width < NARROW else "half of them"
    return count, f"threads: {count} of {cores} cores, {why}; OMP_NUM_THREADS sets another number"


def _kept(run: Path) -> int | None:
    """Return the number of a run's earlier start; None where it is not known."""
    try:
        facts = read_json(run / "run.json")
    except (OSError, ValueError):
        return None
    count = facts.get(FACT) if isinstance(facts, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and 0 < count < 1025 else None
