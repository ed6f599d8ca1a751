"""Half a minute on a GPU, before any download: is the learner right there, and does it fit?

    python benchmarks/gpu_smoke.py --json smoke.json
    python benchmarks/gpu_smoke.py --device cpu

The model has four layers as wide as Qwen3-8B's, its vocabulary, random weights and a LoRA adapter of rank 32.
Each check prints ok or FAILED, its value and the bounds of that; the exit code is 1 if one failed. On a CPU
the model is small, products are bfloat16 all the same, and what a CPU cannot tell is left out. "Apart": how
far the gradient of a step is from that of another, as a share of the latter's norm. All were ok on an H100
(experiments/results/one_h100.md).

gpu              1 if torch sees one: its CUDA is not newer than the driver
room             GiB that are free for an 8B adapter on its way to vLLM, and for the one before it
rounding         nats between log-probabilities and those of float32, mean
few tokens       a step whose passes have few sampled tokens, or none, apart from float32
tiny vocabulary  a step of full weights with 500 words, apart from float32 on the CPU
noise            how far the gradient of padded rows is from that of rows one by one, as a share of its norm
shared rows      how far it is from that of plain rows where shared tokens are read once
shared step      the same with layers computed again (gradient checkpointing), apart from float32
resume           how far a step's figures are from those of the same step after a resume
memory           what a step takes, by the estimate of ``debate train --plan``
speed            a step's share of the speed of bfloat16 products, without what is computed again
"""

from __future__ import annotations

import copy
import json
import re
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isfinite, nan
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gpu import device_name, empty, peak_of_step, product_flops, seconds_of
from qwen3 import operations, qwen3
from report import parser
from transformers import AutoModelForCausalLM

from debate.types import TurnId
from debate_rl.config.models import ModelConfig
from debate_rl.forecast.memory import learning_bytes
from debate_rl.inference.vllm_weights import MEMORY, memory_folder
from debate_rl.models import NVIDIA_DRIVER, add_lora
from learner import LearnerConfig
from learner.types import Row
from learner.update.learner import Learner

ADAPTER = 175e6
"""Bytes of an adapter of rank 32 of Qwen3-8B."""
STILL: dict[str, Any] = {"lr": 1e-9, "max_grad_norm": 1e9}
"""A learning rate that leaves the weights as they are, and a gradient as it is."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a check found: a value, the bounds that it is to be within, and more in words."""

    value: float
    low: float = 0.0
    high: float = inf
    more: str = ""

    @property
    def ok(self) -> bool:
        """Whether the value is within its bounds."""
        return self.low <= self.value <= self.high


class Smoke:
    """The checks' model, rows and settings on a device; on a CPU all of it is small."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.large = device, device.type == "cuda"
        config = qwen3("8B" if self.large else "toy")
        config.num_hidden_layers = 4 if self.large else 2
        config.vocab_size = config.vocab_size if self.large else 2000
        self.shape = config
        self.star = star(*((1500, 80, 400) if self.large else (150, 10, 40)), words=config.vocab_size)

    @cached_property
    def model(self) -> Any:
        """The base in bfloat16 under a float32 adapter that is not zero."""
        torch.manual_seed(0)
        with self.device:
            base = AutoModelForCausalLM.from_config(self.shape, dtype=torch.bfloat16).eval()
        model = add_lora(base, ModelConfig(name_or_path="random", lora_rank=32))
        for name, value in model.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(value, std=0.01)
        return model

    @cached_property
    def exact(self) -> Any:
        """The same weights in float32."""
        return copy.deepcopy(self.model).float()

    @cached_property
    def first(self) -> dict[str, float]:
        """The metrics of a first step in which what rows share is read once."""
        return self.learner(share_prefixes=True).step(self.star)

    def learner(self, **settings: Any) -> Learner:
        """Return a learner of the model whose products are bfloat16."""
        return Learner(self.model, LearnerConfig(**{"compute": "bfloat16", **STILL, **settings}))

    def steps_apart(self, rows: Sequence[Row], **settings: Any) -> Found:
        """Return how far the gradient of a step is from that in float32, row by row."""
        plain = LearnerConfig(compute="float32", share_prefixes=False, micro_batch_tokens=1, **STILL)
        return apart(self.learner(**settings), Learner(self.exact, plain), rows)


def apart(one: Learner, exact: Learner, rows: Sequence[Row]) -> Found:
    """Return how far the gradients of the first steps of two learners are apart, by Adam's first moments."""
    norms = [learner.step(rows)["grad_norm"] for learner in (one, exact)]
    found, wanted = (
        torch.cat([each.optimizer.state[value]["exp_avg"].flatten().cpu() for value in each.parameters])
        for each in (one, exact)
    )
    share = float((found - wanted).norm() / wanted.norm())
    return Found(share, high=0.05, more="norms {:.4g} and {:.4g}".format(*norms))


def star(prompt: int, own: int, reply: int, *, words: int, agents: int = 3, stars: int = 1) -> list[Row]:
    """Return rows of agents that share a prompt of so many tokens; each star has a prompt of its own."""
    rng = np.random.default_rng(0)
    rows: list[Row] = []
    for number in range(stars):
        shared = rng.integers(0, words, prompt)
        for agent in range(agents):
            ids = np.concatenate([shared, rng.integers(0, words, own + reply)])
            mask = np.arange(len(ids)) >= prompt + own
            advantages = (mask * rng.normal()).astype(np.float32)
            logprobs = np.zeros(len(ids), np.float32)
            turn = TurnId(agent, 0)
            rows.append(
                Row(ids, mask, logprobs, advantages, mask.astype(np.int8), f"p{number}", 0, turn, 0.9)
            )
    return rows


# The checks ---------------------------------------------------------------------------------------


def gpu(smoke: Smoke) -> Found:
    driver = re.search(r"\d+\.\d+(\.\d+)?", NVIDIA_DRIVER.read_text()) if NVIDIA_DRIVER.is_file() else None
    words = f"torch {torch.__version__}, CUDA {torch.version.cuda}, driver {driver[0] if driver else 'none'}"
    there = torch.cuda.is_available()
    return Found(float(there), low=1.0, more=f"{device_name(smoke.device)}, {words}" if there else words)


def room(_: Smoke) -> Found:
    with memory_folder(int(ADAPTER)) as home:
        free = shutil.disk_usage(home).free / 2**30
    there = shutil.disk_usage(MEMORY).free / 2**30 if MEMORY.is_dir() else 0.0
    return Found(free, low=2 * ADAPTER / 2**30, more=f"in {Path(home).parent}; {MEMORY} has {there:.2f}")


def rounding(smoke: Smoke) -> Found:
    said = torch.from_numpy(np.stack([row.action_mask for row in smoke.star]))
    exact = Learner(smoke.exact, LearnerConfig(compute="float32")).logprobs(smoke.star)
    return Found(float((smoke.learner().logprobs(smoke.star) - exact)[said].abs().mean()), high=0.03)


def few_tokens(smoke: Smoke) -> Found:
    rows = star(50, 20, 30, words=smoke.shape.vocab_size, agents=2)
    nothing = np.zeros_like(rows[1].action_mask)
    rows.append(replace(rows[1], action_mask=nothing, advantages=0 * rows[1].advantages))
    return smoke.steps_apart(rows, micro_batch_tokens=1, share_prefixes=False)


def tiny_vocabulary(smoke: Smoke) -> Found:
    torch.manual_seed(0)
    shape = qwen3("toy")
    shape.vocab_size = 500
    model = AutoModelForCausalLM.from_config(shape)
    rows = star(50, 20, 30, words=500)
    exact = Learner(copy.deepcopy(model), LearnerConfig(compute="float32", **STILL))
    return apart(Learner(model.to(smoke.device), LearnerConfig(**STILL)), exact, rows)


def noise(smoke: Smoke) -> Found:
    return Found(smoke.first["sharing/noise"], high=0.02)


def shared_rows(smoke: Smoke) -> Found:
    found, rows = smoke.first, smoke.first["row_tokens"]
    apart = found["sharing/difference"] if found["read_tokens"] < rows else inf
    more = f"{found['read_tokens']:.0f} of {rows:.0f} tokens read"
    return Found(apart, high=max(0.05, 4 * found["sharing/noise"]), more=more)


def shared_step(smoke: Smoke) -> Found:
    return smoke.steps_apart(smoke.star, share_prefixes=True, gradient_checkpointing=True)


def resume(smoke: Smoke) -> Found:
    settings = {"lr": 1e-4, "warmup_steps": 0}
    learner = smoke.learner(**settings)
    learner.step(smoke.star)
    weights = [value.detach().clone() for value in learner.parameters]
    state = copy.deepcopy(learner.state_dict())
    straight = learner.step(smoke.star)
    with torch.no_grad():
        for value, saved in zip(learner.parameters, weights, strict=True):
            value.copy_(saved)
    resumed = smoke.learner(**settings)
    resumed.load_state_dict(state)
    again = resumed.step(smoke.star)
    apart = max(abs(again[name] / straight[name] - 1) for name in ("grad_norm", "update_per_lr"))
    return Found(apart, high=0.01)


def pack(smoke: Smoke) -> list[Row]:
    """Return six stars, a pass of 16k tokens."""
    return star(1500, 80, 400, words=smoke.shape.vocab_size, stars=6)


def memory(smoke: Smoke) -> Found:
    rows, learner = pack(smoke), smoke.learner(share_prefixes=True, gradient_checkpointing=True)
    learner.step(rows)
    took = peak_of_step(learner, rows, smoke.device)
    estimate = learning_bytes(smoke.model, rows, learner.config)
    more = f"{took / 2**30:.2f} of {estimate / 2**30:.2f} GiB"
    return Found(took / estimate, low=0.85, high=1.15, more=more)


def speed(smoke: Smoke) -> Found:
    rows, learner = pack(smoke), smoke.learner(share_prefixes=True, gradient_checkpointing=True)
    metrics = learner.step(rows)
    seconds = min(seconds_of(lambda: learner.step(rows), smoke.device) for _ in range(3))
    read = metrics["read_tokens"]
    squares = sum(len(row.input_ids) ** 2 for row in rows) * read / metrics["row_tokens"]
    said = metrics["action_tokens"]
    work = operations(smoke.shape, read=read, said=said, squares=squares, adapter=True)
    share = work / seconds / product_flops(smoke.device)
    return Found(share, low=0.1, more=f"{read / seconds:,.0f} tokens/s by four layers and the head")


ANYWHERE = (room, rounding, few_tokens, tiny_vocabulary, noise, shared_rows, shared_step, resume)
CHECKS = (gpu, *ANYWHERE, memory, speed)


def checked(check: Callable[[Smoke], Found], smoke: Smoke) -> dict[str, object]:
    """Return what a check found, and print it; one that raises is not ok."""
    began = time.perf_counter()
    try:
        found = check(smoke)
    except Exception as error:
        found = Found(nan, more=f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}")
    verdict, name = "ok" if found.ok else "FAILED", check.__name__.replace("_", " ")
    numbers = found.value, found.low, found.high
    bounds = f"{found.low:.3g} to {found.high:.3g}"
    took = f"[{time.perf_counter() - began:.1f} s]"
    print(f"{verdict:7} {name:16} {found.value:<10.4g} {bounds:14} {found.more} {took}", flush=True)
    value, low, high = (number if isfinite(number) else None for number in numbers)
    return {"name": name, "ok": found.ok, "value": value, "low": low, "high": high, "more": found.more}


def main() -> None:
    """Print the checks; exit code 1 if one failed."""
    options = parser(str(__doc__).partition("\n")[0])
    options.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    args = options.parse_args()
    smoke = Smoke(torch.device(args.device))
    checks = CHECKS if torch.cuda.is_available() else (gpu,)
    checks = checks if smoke.large else ANYWHERE
    rows: list[dict[str, object]] = []
    for check in checks:
        rows.append(checked(check, smoke))
        empty()
        if args.json is not None:
            args.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    sys.exit(not all(row["ok"] for row in rows))


if __name__ == "__main__":
    main()
