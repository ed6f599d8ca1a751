"""The estimate that ``debate train`` prints before its first step, against measured peaks and times (Linux).

OMP_NUM_THREADS=1 .venv/bin/python benchmarks/estimate.py --json estimate.json

Each shape runs in a process of its own, where every reply spends its limit. Memory is the peak resident size
above that of the process with its libraries loaded, or on a GPU what torch allocated.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from report import Figure, parser, report

BLOCK = {"hidden_size": 256, "layers": 4, "intermediate_size": 768, "heads": 8, "kv_heads": 4}
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
        "tiny": BLOCK | {"layers": 3, "kv_heads": 8},
        "learner": {"micro_batch_tokens": 512},
        "prompt": 448,
        "replies": 64,
    },
    "sampling, the model's own forward": {
        "tiny": BLOCK | {"hidden_size": 512, "layers": 8, "intermediate_size": 1536},
        "learner": {"micro_batch_tokens": 256},
        "replies": 32,
    },
}
"""Sizes of the model and the step; ``prompt`` is of the question, ``replies`` are as many as are sampled."""
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
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([home, str(Path(__file__).parent)])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure(shape: dict[str, Any]) -> dict[str, list[float]]:
    """Return memory in MiB and seconds of sampling and learning, each (estimated, measured)."""
    import torch

    from debate import Problem, run_debates
    from debate_rl.config import Config
    from debate_rl.engines import make_policy
    from debate_rl.training.estimate import load_of, memory_of, probe, seconds_of, shape_of
    from debate_rl.warm_start.tokenizer import build_tokenizer
    from learner.update.learner import Learner

    config = _config(shape, Config)
    text = " a" * shape["prompt"]
    problems = [Problem(str(n), text) for n in range(shape["replies"])]
    build_tokenizer([" a"])
    torch.nn.Linear(8, 8)(torch.zeros(8, 8)).sum().backward()  # what is loaded on first use is no part of it
    base = _reset_peak()
    model, _, policy = make_policy(config)
    load, form = load_of(config, policy, problems[0]), shape_of(model)  # type: ignore[arg-type]
    learner = Learner(model, config.resolved_learner(), total_steps=10)
    rows = _rows(load)[: max(1, load.micro_tokens // load.longest)]  # one pass of the learner
    started = time.perf_counter()
    run_debates(problems, policy, config.debate, seed=0)
    sampled = time.perf_counter() - started
    learner.step(rows)  # the optimizer's state is made in the first step
    started = time.perf_counter()
    learner.step(rows)
    learnt = time.perf_counter() - started
    peak = _peak() - base
    took = seconds_of(load, probe(model, load), config, adapter=form.adapter)
    return {
        "memory": [memory_of(form, load, config).peak / 2**20, peak / 2**20],
        "sampling": [took.sampling, sampled],
        "learning": [took.learning * len(rows) / load.replies, learnt],
    }


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
            "train": {"problems_per_step": shape["replies"], "debates_per_problem": 1},
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
