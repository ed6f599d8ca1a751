"""A tiny training run in its own process that is killed, or finds its disk full, at a chosen call.

Imported by the process that starts it and, through multiprocessing's fork server, by the one that runs.
"""

import errno
import json
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path

import torch

import debate_rl.inference.local
import debate_rl.metrics.step_log
import debate_rl.runs.checkpoint
import debate_rl.training.evaluating
import debate_rl.training.loop
from debate_rl.config import Config
from debate_rl.inference.local import LocalPolicy
from debate_rl.training.stops import Stopped
from tests.integration.conftest import merged
from tests.integration.protocol_runs import PARITY

debate_rl.metrics.step_log.SAMPLE_SHARE = 0.5  # also in the command line, which imports this policy

RECIPE = merged(
    PARITY,
    {
        "held_out": {"every": 3},
        "advantages": {"truth": {"baseline": "rae", "scale": "batch"}},
        "model": {"policy": "mortal_run:DrawingPolicy"},
        "learner": {"schedule": "linear", "minibatches": 2},
        "train": {
            **{"steps": 5, "save_every": 2, "keep_last": 1},
            "keep_best": "eval/debate/winner/accuracy",
        },
    },
)


class DrawingPolicy(LocalPolicy):
    """Draws from the global generators as well: a run must find them again as they were."""

    def sample_all(self, requests):
        drawn = random.getrandbits(32) ^ int(torch.randint(2**32, ()))
        return super().sample_all([replace(one, seed=one.seed ^ drawn) for one in requests])


@dataclass(frozen=True)
class Fault:
    """What happens at the ``nth`` call (from 1) of a point: "before", "after" or "half" a write, SIGKILL;

    "full": this call and all later ones of the point find no space on the disk; "SIGINT", "SIGTERM": that
    signal, before the call.
    """

    point: str
    nth: int
    how: str


WRITES = {
    "transcript": "transcripts/step_",
    "metrics": "metrics.jsonl",
    "held_out": "held_out.jsonl",
    "samples": "samples.jsonl",
}
CALLS = {
    "sample": (debate_rl.inference.local, "sample_batch"),
    "evaluate": (debate_rl.training.evaluating, "evaluate"),
    "learn": (torch.optim.AdamW, "step"),
    "save_weights": (debate_rl.runs.checkpoint, "write_model"),
    "save_trainer": (torch, "save"),
    "publish": (debate_rl.runs.checkpoint, "publish"),
    "rename": (os, "rename"),
    "replace": (os, "replace"),
    "delete": (os, "unlink"),
    "rmtree": (shutil, "rmtree"),
    "fsync": (os, "fsync"),
    **dict.fromkeys(WRITES, (os, "write")),
}


def run(folder: str, log: str, fault: Fault | None = None) -> None:
    """Train in this process; write beside the log how often each point was passed, and the seconds."""
    said = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(said, stream)
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell ignores it
    counts: Counter[str] = Counter()
    for point in CALLS:
        _arm(point, counts, fault if fault and fault.point == point else None)
    started = time.monotonic()
    try:
        debate_rl.training.loop.train(Config.model_validate(RECIPE | {"run": {"dir": folder}}))
    except Stopped as stop:
        print(stop, flush=True)
        sys.exit(stop.exit_code)
    except (OSError, ValueError) as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        sys.exit(2)
    Path(f"{log}.counts").write_text(json.dumps(counts | {"seconds": time.monotonic() - started}))


def _arm(point: str, counts: Counter[str], fault: Fault | None) -> None:
    place, name = CALLS[point]
    real = getattr(place, name)

    @wraps(real)
    def call(*arguments, **named):
        if point in WRITES and WRITES[point] not in os.readlink(f"/proc/self/fd/{arguments[0]}"):
            return real(*arguments, **named)
        counts[point] += 1
        if fault is not None and (
            counts[point] == fault.nth or (fault.how == "full" and counts[point] > fault.nth)
        ):
            _befall(fault, real, arguments, named)
        return real(*arguments, **named)

    setattr(place, name, call)


def _befall(fault: Fault, real, arguments, named) -> None:
    if fault.how in ("SIGINT", "SIGTERM"):
        signal.raise_signal(signal.Signals[fault.how])
        return
    if fault.how == "full":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if fault.how == "after":
        with suppress(OSError):  # what is deleted in case it is there may not be there
            real(*arguments, **named)
    if fault.how == "half":
        real(arguments[0], arguments[1][: len(arguments[1]) // 2])
    os.kill(os.getpid(), signal.SIGKILL)
