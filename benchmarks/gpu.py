"""What needs a GPU: how precise, how large and how fast Qwen3's shapes are there, with random weights.

    make vllm && .venv/bin/python benchmarks/gpu.py --json gpu.json
    .venv/bin/python benchmarks/gpu.py --device cpu --shapes toy --shrink 16 --alone

The first line takes about half an hour on an H100 (computed): 1.7B and 8B. The second runs the
code on a CPU. Nothing is downloaded.

precision    log-probabilities of a bfloat16 model against the same weights in float32, by position in a row
             of 4,608 tokens: mean |difference| in nats, and how much larger it is from 2,048 on than before
             512. Rounding stays the same along a row; rotary frequencies that are wrong grow.
learning     steps of the learner on the rows of ``benchmarks/rows.py``: plain ones, and those of debates,
             with shared tokens that are read in every row, or once. Tokens a second are those of the rows;
             the share of the card's peak (model FLOP utilisation) counts what the model needs for the tokens
             that are read, and nothing that is computed again. Memory is that of the second step beside what
             is held all the time, divided by the estimate that ``debate train --plan`` uses.
engine       ``benchmarks/rollout.py`` with each shape, then ``weight_sync.py``; ``--alone`` leaves them out.

Each figure is printed and written as soon as it is there. Layers' activations are computed again (gradient
checkpointing) where the estimate says that a step would not fit otherwise; what does not fit in either way is
left out, and said. Whatever else fails is said, and the others are still measured; the exit code is 1 then.
An 8B adapter with checkpointing reached .18 to .23 of an H100's peak: no layer is compiled or fused.
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from qwen3 import SHAPES, operations, qwen3
from report import Figure, parser, report, write
from rows import Shape, debate_rows, plain_rows, row, text
from transformers import AutoModelForCausalLM

from debate.types import TurnId
from debate_rl.config.models import ModelConfig
from debate_rl.forecast.memory import learning_bytes, memory_there, size
from debate_rl.models import add_lora
from learner import LearnerConfig
from learner.types import Row
from learner.update.batches import collate
from learner.update.forward import action_logprobs
from learner.update.learner import Learner

SLOWER = {"H200 NVL": 835, "H100 NVL": 835, "H100 PCIe": 756}
PEAKS = SLOWER | {"B200": 2250, "H200": 989, "H100": 989, "A100": 312, "L40S": 362, "4090": 165, "3090": 71}
"""TFLOP/s of dense bfloat16 products by the data sheets; any other card counts as what it is measured at."""
USABLE, BESIDE = 0.88, 2**30
"""Share of a card's memory that tensors may take once so many bytes are off: libraries and gaps take more."""
LENGTH, STARTS = 4608, (0, 512, 2048)
RANK, MICRO_BATCH_TOKENS = 32, 16_384
PATIENCE_S = 1200.0
"""For a benchmark of the engine."""
HERE = Path(__file__).parent


class Log:
    """The figures so far: printed as they come, and all written anew, so that nothing is lost to a crash."""

    def __init__(self, path: Path | None) -> None:
        self.path, self.failed = path, False
        self.figures: list[Figure] = []

    def add(self, title: str, measure: Callable[[], list[Figure]]) -> None:
        """Measure, and keep what comes of it; what fails is said."""
        try:
            found = measure()
        except torch.OutOfMemoryError as error:
            found = left_out(title, str(error).splitlines()[0])
        except Exception:
            found, self.failed = [], True
            traceback.print_exc()
            print(f"{title}: FAILED")
        empty()
        for figure in found:
            print(f"{figure.name}: {figure.value:.4g} {figure.unit}", flush=True)
        self.figures += found
        write(self.figures, self.path)


def main() -> None:
    """Print the table; exit code 1 if anything failed."""
    options = parser(str(__doc__).partition("\n")[0])
    options.add_argument("--device", default="cuda", help="cpu runs the code without a GPU")
    options.add_argument("--shapes", nargs="+", choices=SHAPES, default=["1.7B", "8B"])
    options.add_argument("--ways", nargs="+", choices=("LoRA", "full"), default=["LoRA", "full"])
    options.add_argument("--repeats", type=int, default=2, help="timed steps")
    options.add_argument("--shrink", type=int, default=1, help="what all lengths are divided by")
    options.add_argument("--alone", action="store_true", help="leave out the benchmarks of the engine")
    args = options.parse_args()
    if args.device == "cuda" and not torch.cuda.is_available():
        sys.exit(
            "torch sees no GPU here; --device cpu --shapes toy --shrink 16 --alone runs this without one"
        )
    device, log = torch.device(args.device), Log(args.json)
    products = product_flops(device)
    peak = peak_of(device_name(device), products)
    log.add("products", lambda: [Figure("bfloat16 products", products / 1e12, "TFLOP/s", 1)])
    for name in args.shapes:
        log.add(f"{name}: precision", partial(precision, name, device, LENGTH // args.shrink))
        for title, measure in learning(name, device, peak, args):
            log.add(title, measure)
        if not args.alone:
            extra = ("--shape", name, "--repeats", str(args.repeats))
            log.add(f"rollout.py {name}", partial(of_benchmark, "rollout.py", name, *extra))
    if not args.alone:
        log.add("weight_sync.py", partial(of_benchmark, "weight_sync.py", "", "--updates", "60"))
    report(f"{device_name(device)}; medians, range in low and high", log.figures, args.json)
    sys.exit(log.failed)


def device_name(device: torch.device) -> str:
    """Return the card's name."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "a CPU"


def product_flops(device: torch.device) -> float:
    """Return the operations a second of a large product in bfloat16."""
    side = 8192 if device.type == "cuda" else 512
    square = torch.ones(side, side, dtype=torch.bfloat16, device=device)
    return 2 * side**3 / min(seconds_of(lambda: square @ square, device) for _ in range(5))


def peak_of(name: str, products: float) -> float:
    """Return the operations a second that count as all of the card of this name."""
    return next((1e12 * peak for card, peak in PEAKS.items() if card in name), products)


def seconds_of(work: Any, device: torch.device) -> float:
    """Return the seconds of some work."""
    wait(device)
    started = time.perf_counter()
    work()
    wait(device)
    return time.perf_counter() - started


def wait(device: torch.device) -> None:
    """Wait until the device has done all it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def build(name: str, device: torch.device, dtype: torch.dtype) -> Any:
    """Return a shape with random weights; buffers stay float32."""
    torch.manual_seed(0)
    with device:
        return AutoModelForCausalLM.from_config(qwen3(name), dtype=dtype).eval()


# Precision ----------------------------------------------------------------------------------------


@torch.no_grad()
def precision(name: str, device: torch.device, length: int) -> list[Figure]:
    """Return how far the log-probabilities of a bfloat16 model are from those in float32, by position."""
    needed = 6 * parameters_of(name)
    if not fits(needed, device):
        return left_out(f"{name}: precision", f"takes about {size(needed)}")
    rng = np.random.default_rng(0)
    batch = collate([row(rng, text(rng, 1), length - 1, TurnId(0, 0), 0)], device=device)
    narrow = build(name, device, torch.bfloat16)
    wide = copy.deepcopy(narrow).float()
    apart = (action_logprobs(narrow, batch)[0] - action_logprobs(wide, batch)[0])[0].abs()[1:]
    cuts = [start * length // LENGTH for start in STARTS]
    means = [float(part.mean()) for part in apart.tensor_split(cuts[1:])]
    return [
        *(
            Figure(f"{name}: |dlogp| from {cut}", mean, "nats", 1)
            for cut, mean in zip(cuts, means, strict=True)
        ),
        Figure(f"{name}: |dlogp|, end to beginning", means[-1] / means[0], "ratio", 1, None, 1.5),
    ]


def parameters_of(name: str) -> int:
    """Return how many numbers a shape has."""
    with torch.device("meta"):
        return sum(weights.numel() for weights in AutoModelForCausalLM.from_config(qwen3(name)).parameters())


def fits(needed: float, device: torch.device) -> bool:
    """Return whether tensors of so many bytes fit the device's memory."""
    return needed + BESIDE <= USABLE * memory_there(device)


def left_out(title: str, why: str) -> list[Figure]:
    """Say what does not fit."""
    print(f"{title}: left out, {why}", flush=True)
    return []


def empty() -> None:
    """Give the memory of what was deleted back to the card."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


# Learning -----------------------------------------------------------------------------------------


def learning(
    name: str, device: torch.device, peak: float, args: argparse.Namespace
) -> list[tuple[str, Callable[[], list[Figure]]]]:
    """Return by title what measures steps: plain rows, debates read whole, and debates read once."""
    debates = debate_rows(Shape(shrink=args.shrink))
    cases = {
        "plain": (plain_rows(24, args.shrink), False),
        "debate": (debates, False),
        "debate, shared": (debates, True),
    }
    return [
        (title, partial(steps, title, way, rows, share, device, peak, args))
        for way in args.ways
        for case, (rows, share) in cases.items()
        for title in [f"{name} {way}, {case}"]
    ]


def steps(
    title: str,
    way: str,
    rows: Sequence[Row],
    share: bool,
    device: torch.device,
    peak: float,
    args: argparse.Namespace,
) -> list[Figure]:
    """Return speed, share of the peak and memory of steps on some rows."""
    name = title.split()[0]
    held = (2 if way == "LoRA" else 12) * parameters_of(name)  # full: weights and moments in float32
    if not fits(held, device):
        return left_out(title, f"takes more than {size(held)}")
    model = build(name, device, torch.bfloat16 if way == "LoRA" else torch.float32)
    if way == "LoRA":
        model = add_lora(model, ModelConfig(name_or_path=name, lora_rank=RANK))
    config = LearnerConfig(
        micro_batch_tokens=MICRO_BATCH_TOKENS // args.shrink,
        share_prefixes=share,
        gradient_checkpointing=False,
    )
    held = sum(p.nbytes * (3 if p.requires_grad else 1) for p in model.parameters())
    if not fits(held + learning_bytes(model, rows, config), device):
        config = config.model_copy(update={"gradient_checkpointing": True})
        needed = held + learning_bytes(model, rows, config)
        if not fits(needed, device):
            return left_out(title, f"takes about {size(needed)}")
    learner = Learner(model, config)
    learner.step(rows)  # kernels are chosen, moments made
    measured = peak_of_step(learner, rows, device)
    metrics: dict[str, float] = {}
    seconds = [seconds_of(lambda: metrics.update(learner.step(rows)), device) for _ in range(args.repeats)]
    tokens = metrics["row_tokens"]
    work = flops(name, rows, metrics, adapter=way == "LoRA")
    again = ", checkpointing" if config.gradient_checkpointing is True else ""
    figures = [
        spread(f"{title}{again}: tokens a second", [tokens / one for one in seconds], "tokens/s"),
        spread(f"{title}: of the peak", [work / one / peak for one in seconds], "share"),
    ]
    if measured:
        estimated = learning_bytes(model, rows, config)
        figures.append(Figure(f"{title}: memory to estimate", measured / estimated, "ratio", 1, 0.85, 1.15))
    return figures


def spread(name: str, values: Sequence[float], unit: str) -> Figure:
    """Return the median, with the range."""
    return Figure(name, median(values), unit, len(values), min(values), max(values))


def peak_of_step(learner: Learner, rows: Sequence[Row], device: torch.device) -> int:
    """Return the bytes of a step beside what is held all the time; 0 where nobody counts them."""
    if device.type != "cuda":
        return 0
    wait(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    learner.step(rows)
    return torch.cuda.max_memory_allocated(device) - before


def flops(name: str, rows: Sequence[Row], metrics: dict[str, float], *, adapter: bool) -> float:
    """Return the operations that a step needs, without padding and what is computed again."""
    tokens = min(metrics["read_tokens"], metrics["row_tokens"])  # padding is no work that is needed
    squares = sum(len(one.input_ids) ** 2 for one in rows) * tokens / metrics["row_tokens"]
    said = metrics["action_tokens"]
    return operations(qwen3(name), read=tokens, said=said, squares=squares, adapter=adapter)


# The engine ---------------------------------------------------------------------------------------


def of_benchmark(script: str, prefix: str, *arguments: str) -> list[Figure]:
    """Return the figures of another benchmark, run in a process of its own."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "figures.json"
        command = [sys.executable, HERE / script, *arguments, "--json", path]
        subprocess.run(command, check=True, timeout=PATIENCE_S)
        rows = json.loads(path.read_text(encoding="utf-8"))
    return [Figure(**row | {"name": f"{prefix}: {row['name']}" if prefix else row["name"]}) for row in rows]


if __name__ == "__main__":
    main()
