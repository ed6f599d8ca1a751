"""The least hours of every recipe of the notes on its card, as experiments/results/reproducing.md has them.

.venv/bin/python benchmarks/hours.py --json hours.json

Nothing is run and nothing downloaded: the models are the published shapes without data, with a tokenizer of
bytes and of the words of the prompts, and problems of a synthetic family stand for the real ones. Every reply
spends its limit, and the card does the peak of its data sheet, so that no run is faster that spends as much.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

from qwen3 import write_shape
from report import Figure, parser, report

GIB = {"A10G": 24, "L40S": 48, "H100 SXM": 80, "H200 SXM": 141}
PLACED = (
    *("env.kind=pair_sum", "env.mix=none", "env.path=none", "env.levels=none", "env.split=train"),
    *("env.limit=1", "env.difficulty=none", "env.decontaminate=none"),
    *("held_out.kind=none", "held_out.levels=none", "held_out.more=none"),
)
"""What a recipe has in place of its data sets."""


def main() -> None:
    args = parser(__doc__ or "").parse_args()
    figures = [
        Figure(name, hours_of(name, gib), f"hours, {gib} GB", 1) for name, gib in recipes_with_cards().items()
    ]
    report("the least hours of a recipe", figures, args.json)


def recipes_with_cards() -> dict[str, int]:
    """Return the recipes of one run of RL by vLLM and truth, with the memory of the card that each names."""
    from debate_rl.config import Config
    from debate_rl.config.recipes import load_config, shipped_recipes

    found: dict[str, int] = {}
    for name, path in shipped_recipes().items():
        if name == "rlvr/gpu":  # what others are based on
            continue
        config = load_config(Config, name)
        if config.model.policy == "vllm" and not (
            config.stages or config.sft.data or config.verifier.endpoint
        ):
            found[name] = next(gib for gib in GIB.values() if f"one GPU of {gib} GB" in path.read_text())
    return found


def hours_of(name: str, gib: int) -> float:
    """Return the hours of a recipe on the card with so much memory."""
    from debate_rl.config import Config
    from debate_rl.config.recipes import load_config
    from debate_rl.engines import local_settings
    from debate_rl.forecast.memory import load_of
    from debate_rl.forecast.plan import evaluations_of
    from debate_rl.forecast.time import CARDS, least_seconds
    from debate_rl.inference.local import LocalPolicy
    from debate_rl.models import sketch_model
    from debate_rl.sampling.load_problems import load_run_problems

    whole = load_config(Config, name)
    with tempfile.TemporaryDirectory() as folder:
        write_shape(shape_of(whole), Path(folder))
        config = load_config(Config, name, [f"model.name_or_path={folder}", *PLACED, "held_out.limit=1"])
        model, tokenizer = sketch_model(config.model, vocabulary=(), on_gpu=True)
        problem = load_run_problems(config).train[0]
        load = load_of(config, LocalPolicy(model, tokenizer, **local_settings(config)), problem)
        card = next(card for card in CARDS if card.gib == gib)
        held_out = whole.held_out.limit + sum(part.limit for part in whole.held_out.more.values())
        step, each = least_seconds(config, model, load, held_out, card)
    return (config.train.steps * step + evaluations_of(config, held_out) * each) / 3600


def shape_of(config: Any) -> str:
    """Return the size of a recipe's model, as benchmarks/qwen3.py names shapes."""
    sizes = re.findall(r"(SmolLM2-|(?<=-))(\d+(?:\.\d+)?B)\b", config.model.name_or_path)
    return "".join(sizes[0])


if __name__ == "__main__":
    main()
