"""The estimate that ``debate train`` prints before its first step, against measured peaks and times (Linux).

OMP_NUM_THREADS=1 .venv/bin/python benchmarks/estimate.py --json estimate.json

Each shape runs in a process of its own, where every reply spends its limit. Memory is the peak resident size
above that of the process after a small step, or on a GPU what torch allocated. On a CPU freed memory is given
back at once (MALLOC_MMAP_THRESHOLD_): otherwise gaps that the allocator keeps are measured too.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from report import Figure, parser, report

BLOCK = {"hidden_size": 256, "layers": 4, "intermediate_size": 768, "heads": 8}
SHAPES: dict[str, dict[str, Any]] = {
    "learning": {"tiny": BLOCK, "learner": {"micro_batch_tokens": 8192}},
    "learning, layers computed again": {
        "tiny": BLOCK,
        "learner": {"micro_batch_tokens": 8192, "gradient_checkpointing": True},
    },
    "learning, large vocabulary, reference": {
        "tiny": BLOCK | {"layers": 2},
        "words": 24000,
        "learner": {"micro_batch_tokens": 4096, "beta": 0.01},
    },
    "sampling, long prompts": {
        "tiny": BLOCK | {"layers": 3},
        "learner": {"micro_batch_tokens": 512},
        "prompt": 448,
        "replies": 64,
    },
    "sampling, the model's own forward": {
        "tiny": BLOCK | {"hidden_size": 512, "layers": 8, "intermediate_size": 1536},
        "learner": {"micro_batch_tokens": 256},
        "replies": 32,
        "own": True,
    },
}
"""Sizes of the model and the step; ``prompt`` is of the question, ``replies`` are as many as are sampled.

``own``: without the fast path."""
USUAL = {"prompt": 144, "reply": 48, "replies": 32, "words": 0}


def main() -> None:
    arguments = parser(__doc__ or "")
    arguments.add_argument("--only", choices=SHAPES, help="one shape")
    arguments.add_argument("--child", choices=SHAPES, help="measure here and print JSON")
    args = arguments.parse_args()
    if args.child:
        print(json.dumps(measure(USUAL | SHAPES[args.child])))
        return
    figures: list[Figure] = []
    for name in [args.only] if args.only else SHAPES:
        found = measured_apart(name)
        for what, unit in (("memory", "MiB"), ("sampling", "s"), ("learning", "s")):
            expected, got = found[what]
            figures += [
                Figure(f"{name}: {what}, estimated", expected, unit, 1),
                Figure(f"{name}: {what}, measured", got, unit, 1),
                Figure(f"{name}: {what}, estimated / measured", expected / got, "ratio", 1),
            ]
    report("the estimate and what was measured", figures, args.json)


def measured_apart(name: str) -> dict[str, list[float]]:
    """Return (estimated, measured) by name, from a process of its own."""
    command = [sys.executable, __file__, "--child", name]
    home = str(Path(__file__).parents[1])
    path = os.pathsep.join([home, str(Path(__file__).parent)])
    environment = os.environ | {"PYTHONPATH": path, "MALLOC_MMAP_THRESHOLD_": "65536"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure(shape: dict[str, Any]) -> dict[str, list[float]]:
    """Return memory in MiB and seconds of sampling and learning, each (estimated, measured)."""
    from debate_rl.forecast.memory import memory_of
    from debate_rl.forecast.time import learning_seconds, probe, sampling_seconds

    small = {"prompt": 16, "reply": 8, "replies": 2, "words": 0}
    _step(shape | small)  # what is loaded on first use is not part of a step
    gc.collect()
    base = _reset_peak()
    model, load, config, (sampled, learned) = _step(shape)
    peak = _peak() - base
    speed = probe(model, load)
    rows = max(1, load.micro_tokens // load.longest)
    return {
        "memory": [memory_of(model, load, config).peak / 2**20, peak / 2**20],
        "sampling": [sampling_seconds(load, speed), sampled],
        "learning": [learning_seconds(load, speed, config) * rows / load.replies, learned],
    }


def _step(shape: dict[str, Any]) -> tuple[Any, Any, Any, tuple[float, float]]:
    """Learn, sample and learn again; return model, load, configuration, and seconds of both."""
    from debate import Problem, run_debates
    from debate_rl.config import Config
    from debate_rl.engines import make_policy
    from debate_rl.forecast.memory import load_of
    from debate_rl.inference import sampler
    from learner.update.learner import Learner

    config = _config(shape, Config)
    question = " a" * (shape["prompt"] - 2)
    problems = [
        Problem(str(n), f"{question}{n:02}") for n in range(shape["replies"])
    ]  # equal prompts are read once
    if shape.get("own"):  # models that debate_rl.inference.cpu_steps does not know
        sampler.fits = lambda _: False
    model, _, policy = make_policy(config)
    load = load_of(config, policy, problems[0])  # type: ignore[arg-type]
    learner = Learner(model, config.resolved_learner(), total_steps=10)  # type: ignore[arg-type]
    rows = _rows(load)[: max(1, load.micro_tokens // load.longest)]
    learner.step(rows)  # the optimizer's state is made in the first step
    started = time.perf_counter()
    run_debates(problems, policy, config.debate, seed=0)
    sampled = time.perf_counter() - started
    started = time.perf_counter()
    learner.step(rows)
    return model, load, config, (sampled, time.perf_counter() - started)


def _config(shape: dict[str, Any], model: Any) -> Any:
    words = [f"w{n}" for n in range(shape["words"])]
    context = shape["prompt"] + shape["reply"] + 512
    tiny = {"fallback": "ascii", "pieces": [" a", *words], "context_tokens": context, **shape["tiny"]}
    return model.model_validate(
        {
            "env": {"kind": "pair_sum"},
            "rewards": {"truth_weight": 1.0},
            "debate": {
                "num_agents": 1,
                "num_rounds": 1,
                "final_ballot": False,
                "prompts": "tiny",
                "max_tokens": shape["reply"],
                "stop": [],
            },
            "model": {"tiny": tiny, "chat": True},
            "learner": shape["learner"],
            "train": {"batch_size": shape["replies"], "group_size": 1},
        }
    )


def _rows(load: Any) -> list[Any]:
    """Return rows as long as the estimate has them."""
    from debate.types import TurnId
    from learner.types import Row

    prompt, length = load.rounds[0][0], load.longest
    mask = np.arange(length) >= prompt
    return [
        Row(
            input_ids=np.full(length, 7, np.int64),
            action_mask=mask,
            sampling_logprobs=np.where(mask, -3.0, 0.0).astype(np.float32),
            advantages=np.where(mask, (-1.0) ** n, 0.0).astype(np.float32),
            stream=mask.astype(np.int8),
            group_id=str(n),
            policy_version=0,
            turn=TurnId(0, 0),
        )
        for n in range(load.replies)
    ]


def _reset_peak() -> int:
    """Forget the peak so far and return the bytes in use."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated()
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _peak() -> int:
    import torch

    return torch.cuda.max_memory_allocated() if torch.cuda.is_available() else _status("VmHWM")


def _status(name: str) -> int:
    [line] = [row for row in Path("/proc/self/status").read_text().splitlines() if row.startswith(name)]
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
