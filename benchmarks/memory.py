"""What a learner of Qwen3 takes on a GPU beside vLLM, as ``debate train --plan`` counts it, by card.

.venv/bin/python benchmarks/memory.py --json memory.json

Nothing is downloaded: the models are the published shapes without data, with a tokenizer of bytes, which
makes prompts longer. The rest is the recipe gsm8k_qwen3_8b_1gpu. The engine's share is what leaves a tenth of
the card free, and a run fits where its cache holds a whole context.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from math import floor
from pathlib import Path
from typing import Any

from qwen3 import QWEN3, write_shape
from report import Figure, parser, report

from debate_rl.forecast.memory import overhead_of

CARDS = {24: 22.5, 48: 45.0, 80: 79.0, 141: 139.0}
"""GiB that a program sees of the smallest card that is sold as of so many GB."""


def main() -> None:
    arguments = parser(__doc__ or "")
    arguments.add_argument("--only", choices=QWEN3, help="one model")
    args = arguments.parse_args()
    figures: list[Figure] = []
    for model in [args.only] if args.only else QWEN3:
        for way in ("LoRA", "full"):
            figures += figures_of(model, way)
    report("memory of a learner, and what it leaves vLLM", figures, args.json)


def figures_of(model: str, way: str) -> list[Figure]:
    """Return the learner's GiB, and for each card the share of the engine and the tokens of its cache."""
    plan = planned_for(model, way)
    learner = (plan.memory.peak - plan.memory.engine) / 2**30
    figures = [Figure(f"{model} {way}: learner", learner, "GiB", 1)]
    for card, there in CARDS.items():
        share = floor(100 * (0.9 - learner / there)) / 100
        room = int(there * 2**30)
        engine = replace(plan.engine, share=int(max(share, 0) * room), overhead=overhead_of(room))
        fits = engine.tokens >= engine.limit
        figures += [
            Figure(
                f"{model} {way}, {card} GB: gpu_memory_utilization",
                share if fits else 0.0,
                "0: does not fit",
                1,
            ),
            Figure(f"{model} {way}, {card} GB: cache", engine.tokens if fits else 0, "tokens", 1),
        ]
    return figures


def planned_for(model: str, way: str) -> Any:
    """Return the plan of the recipe with this model; the largest card, so that all of them are counted."""
    from debate_rl.config import Config
    from debate_rl.config.recipes import load_config
    from debate_rl.forecast.plan import planned
    from debate_rl.sampling.load_problems import load_run_problems

    with tempfile.TemporaryDirectory() as folder:
        write_shape(model, Path(folder))
        full = ["model.lora_rank=0", "model.dtype=auto"] if way == "full" else []
        data = [
            "env.kind=pair_sum",
            "env.split=train",
            "env.limit=8",
            "held_out.kind=none",
            "held_out.limit=0",
        ]
        name = f"model.name_or_path={Path(folder)}"
        config = load_config(Config, "gsm8k_qwen3_8b_1gpu", [name, *data, *full])
        return planned(config, load_run_problems(config), there=139 * 2**30)


if __name__ == "__main__":
    main()
