"""What a step of each shipped recipe of Qwen3 takes on its card: memory and seconds, computed, not measured.

    .venv/bin/python benchmarks/expected_step.py --json expected_step.json

Bytes and operations are counted (``debate train --plan``; ``benchmarks/gpu.py``), with replies that spend
``--spent`` of their limit. Seconds follow from the card's data sheet and from shares of it that are assumed:

    sampling   as many replies are live as the cache holds, in which agents of a round share blocks; a step of
               the engine, a token for each, reads all weights and every live reply's cache once, at .6 of the
               memory's bandwidth, and takes a fifth longer under an adapter; prompts, of which .35 are not in
               the prefix cache (benchmarks/rollout.py), go at .4 of the products' peak
    learning   the operations that the rows need, without what gradient checkpointing computes again, at .2 of
               the peak: packed and compiled runs of 7B models on an H100 report .19 to .22 [open-instruct
               #1466], plain layers of 1.7B with checkpointing .09 [TRL #6092]

With lookahead 0, and where engine and learner share a card, a step is the sum of both; with engines on cards
of their own it is the longer one. ``benchmarks/gpu.py`` measures the shares that are assumed here.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from qwen3 import operations, words, write_shape
from report import Figure, parser, report
from transformers import AutoTokenizer

from debate import DebateConfig, Problem
from debate_rl.config import Config
from debate_rl.config.recipes import load_config
from debate_rl.engines import local_settings
from debate_rl.forecast.memory import LARGE, load_of
from debate_rl.forecast.plan import planned
from debate_rl.inference.local import LocalPolicy
from debate_rl.sampling.load_problems import load_run_problems

BANDWIDTH_SHARE, ADAPTER, UNCACHED = 0.6, 1.2, 0.35
READING_SHARE, LEARNING_SHARE = 0.4, 0.2
PROBLEM = Problem(
    "gsm8k",
    "A baker sells 24 loaves in the morning and half as many in the afternoon. Each loaf is 3 dollars. The "
    "flour for all of them costs 20 dollars. How many dollars does the baker keep at the end of the day?",
)


class Card(NamedTuple):
    """GiB that a program sees, TFLOP/s of dense bfloat16 products, TB/s: by the data sheets."""

    name: str
    memory: float
    peak: float
    bandwidth: float


RTX4090, L40S = Card("RTX 4090", 22.5, 165, 1.01), Card("L40S", 45, 362, 0.864)
H100, H200 = Card("H100", 79, 989, 3.35), Card("H200", 139, 989, 4.8)
RECIPES = (
    ("gsm8k_qwen3_1b7_24gb", "1.7B", RTX4090),
    ("gsm8k_qwen3_4b_48gb", "4B", L40S),
    ("gsm8k_qwen3_8b_1gpu", "8B", H100),
    ("gsm8k_qwen3_8b_1gpu", "8B", H200),
    ("gsm8k_qwen3_1b7_full_80gb", "1.7B", H100),
    ("gsm8k_qwen3_4b_full_141gb", "4B", H200),
    ("math_qwen3_8b_1gpu", "8B", H200),
    ("aime_qwen3_8b_1gpu", "8B", H200),
)


def main() -> None:
    """Print the table."""
    options = parser(str(__doc__).partition("\n")[0])
    options.add_argument("--spent", type=float, default=0.5, help="what replies spend of their limit")
    args = options.parse_args()
    figures: list[Figure] = []
    for recipe, shape, card in RECIPES:
        figures += figures_of(recipe, shape, card, args.spent)
    report("computed, not measured", figures, args.json)


def figures_of(recipe: str, shape: str, card: Card, spent: float) -> list[Figure]:
    """Return GiB and seconds of a recipe's step."""
    plan, load = planned_for(recipe, shape, card, spent)
    title = f"{recipe}, {card.name}"
    sampling, learning = sampling_seconds(plan, load, card), learning_seconds(plan, load, card)
    return [
        Figure(f"{title}: memory", plan.memory.peak / 2**30, f"GiB of {card.memory:g}", 1),
        Figure(
            f"{title}: tokens",
            load.replies * sum(reply for _, reply in load.rounds),
            "generated",
            1,
        ),
        Figure(f"{title}: sampling", sampling, "s", 1),
        Figure(f"{title}: learning", learning, "s", 1),
        Figure(f"{title}: step", sampling + learning, "s", 1),
    ]


def planned_for(recipe: str, shape: str, card: Card, spent: float) -> tuple[Any, Any]:
    """Return the plan of a recipe on a card, and its work with shorter replies; nothing is downloaded."""
    with tempfile.TemporaryDirectory() as folder:
        write_shape(shape, Path(folder), words(PROBLEM, DebateConfig()))
        data = [
            "env.kind=pair_sum",
            "env.split=train",
            "env.limit=8",
            "held_out.kind=none",
            "held_out.limit=0",
        ]
        config = load_config(Config, recipe, [f"model.name_or_path={Path(folder)}", *data])
        plan = planned(config, load_run_problems(config), there=int(card.memory * 2**30))
        assert plan is not None
        policy = LocalPolicy(plan.model, AutoTokenizer.from_pretrained(folder), **local_settings(config))
        debate = config.debate.model_copy(update={"max_tokens": int(spent * config.debate.max_tokens)})
        return plan, load_of(config.model_copy(update={"debate": debate}), policy, PROBLEM)


def sampling_seconds(plan: Any, load: Any, card: Card) -> float:
    """Return the seconds in which the engine answers a step's replies."""
    engine = plan.engine
    said = load.replies * sum(reply for _, reply in load.rounds)
    read = load.replies * sum(prompt for prompt, _ in load.rounds)
    mean = sum(prompt + reply / 2 for prompt, reply in load.rounds) / len(load.rounds)
    shared = load.shared or (0,) * len(load.rounds)
    alone = mean - sum(shared) / len(shared) * (
        1 - 1 / load.together
    )  # blocks of the cache that agents share
    live = min(most_live(card), engine.tokens / alone, load.replies)
    each = (engine.weights + live * mean * engine.token) / (BANDWIDTH_SHARE * card.bandwidth * 1e12)
    adapter = ADAPTER if hasattr(plan.model, "peft_config") else 1.0
    prompts = UNCACHED * read * engine.weights / (READING_SHARE * card.peak * 1e12)  # 2 bytes, 2 operations
    return adapter * said / live * each + prompts


def most_live(card: Card) -> int:
    """Return the requests that vLLM 0.32.0 answers at once by default."""
    return 1024 if card.memory >= LARGE / 2**30 else 256


def learning_seconds(plan: Any, load: Any, card: Card) -> float:
    """Return the seconds of a step's passes."""
    learner = plan.config.resolved_learner(plan.chosen)
    squares = load.replies * sum((prompt + reply) ** 2 for prompt, reply in load.rounds)
    needed = operations(
        plan.model.config,
        read=load.read_tokens,
        said=load.replies * sum(reply for _, reply in load.rounds),
        squares=squares * load.read_tokens / load.row_tokens,
        adapter=hasattr(plan.model, "peft_config"),
    )
    return learner.epochs * needed / (LEARNING_SHARE * card.peak * 1e12)


if __name__ == "__main__":
    main()
