"""New weights in vLLM: how long they take, what the canary costs, what it finds, and its false alarms.

A tiny model learns noise. After each update the engine is looked after as in training. Eight faults are
injected one after another, with whole weights, with an adapter, or with both, and a healthy update follows
each: ``faults_found`` counts those that were named at once wherever they were injected. ``canary_share`` is
the canary's part of a step of 64 debates at once, N=3, R=3 and a final ballot, with the learner's update.
Seconds are CPU seconds of this process, in which all of it runs, where there is no GPU.

    make bench && OMP_NUM_THREADS=1 .venv-bench/bin/python benchmarks/weight_sync.py --json weight_sync.json
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from report import Figure, parser, report
from tiny_engine import CONFIG, PROBLEMS, TalkingPolicy, clock, learner_of, open_engine, write_tiny

from debate import run_debates
from debate_rl.config import Config
from debate_rl.inference import vllm
from debate_rl.inference.local import LocalPolicy
from debate_rl.inference.speech import Speech
from debate_rl.inference.vllm_weights import named_tensors, write_adapter
from debate_rl.training.check_engine_weights import Canary, canary_requests
from learner.advantages import AdvantageConfig, turn_advantages
from learner.rows import make_rows
from learner.types import transitions_of
from learner.update.config import LearnerConfig
from learner.update.learner import Learner
from rewards import RewardConfig, score_debate

NOISE, RANK = 0.02, 4


class Side:
    """A model that learns, its canary, and the seconds that each update took."""

    def __init__(self, policy: TalkingPolicy, base: Path, *, lora_rank: int = 0) -> None:
        self.policy, self.base = policy, str(base)
        self.model, self.tokenizer = model, tokenizer = learner_of(base, lora_rank)
        settings = {"debate": CONFIG.model_dump(), "env": {"kind": "pair_sum"}, "model": {"tiny": {}}}
        requests = canary_requests(Config.model_validate(settings), PROBLEMS, policy)
        self.canary = Canary(
            model,
            requests,
            encode=LocalPolicy(model, tokenizer).encode,
            logprobs=Learner(model, LearnerConfig()).logprobs,
        )
        self.synced: list[float] = []
        self.checked: list[float] = []

    def update(self) -> str | None:
        """Learn, hand the weights over, and return what is wrong with the engine."""
        with torch.no_grad():
            for weight in self.model.parameters():
                if weight.requires_grad:
                    weight += NOISE * torch.randn_like(weight)
        started = clock()
        try:
            asyncio.run(self.policy.update(self.model, self.policy.version + 1))
        except ValueError as error:
            return str(error)
        handed_over = clock()
        requests = self.canary.requests
        said = asyncio.run(self.policy.check(requests))
        fault = self.canary.compare(*said).fault
        self.synced.append(handed_over - started)
        self.checked.append(clock() - handed_over)
        return fault


class Fault(NamedTuple):
    """A fault by its name, how the canary's sentence begins that names it, and what injects it."""

    name: str
    cause: str
    inject: Callable[[Side], AbstractContextManager[object]]


def stale(side: Side) -> AbstractContextManager[object]:
    """The engine goes on with the adapter that it has."""
    return patch.object(side.policy, "_load_adapter")


def unsynced(_: Side) -> AbstractContextManager[object]:
    """One layer's weights are not handed over."""

    def most(model: Any, dtype: torch.dtype) -> Iterator[tuple[str, torch.Tensor]]:
        return ((name, value) for name, value in named_tensors(model, dtype) if "mlp.down_proj" not in name)

    return patch.object(vllm, "named_tensors", most)


def wrong_temperature(side: Side) -> AbstractContextManager[object]:
    """Every request is sampled at temperature 1."""
    made = side.policy._sampling
    return patch.object(side.policy, "_sampling", lambda *args: made(*args) | {"temperature": 1.0})


@contextmanager
def wrong_base(side: Side) -> Iterator[None]:
    """The engine has another model below the adapter."""
    with TemporaryDirectory() as folder:
        side.policy._reload(weights_path=str(write_tiny(Path(folder), seed=1)))
        yield
    side.policy._reload(weights_path=side.base)


@contextmanager
def rounded_head(side: Side) -> Iterator[None]:
    """The engine's logits are products in bfloat16."""
    model = side.policy._llm.apply_model(lambda model: model)[0]
    processor = getattr(model.logits_processor, "base_layer", model.logits_processor)
    with patch.object(processor, "head_dtype", torch.bfloat16):
        yield


def kept_cache(side: Side) -> AbstractContextManager[object]:
    """The prefix cache still holds what older weights computed."""
    return patch.object(side.policy._llm.llm_engine, "reset_prefix_cache", return_value=True)


def other_template(side: Side) -> AbstractContextManager[object]:
    """The engine's tokenizer has another chat template."""
    tokenizer = copy.deepcopy(side.tokenizer)
    tokenizer.chat_template = "{{ 'Chat: ' }}" + tokenizer.chat_template
    own = side.policy._speech
    speech = Speech(tokenizer, ends=own.ends, context_tokens=own.context_tokens)
    return patch.object(side.policy, "_speech", speech)


def half_an_adapter(_: Side) -> AbstractContextManager[object]:
    """The adapter's file is cut in the middle."""

    def cut(model: Any, folder: Path, dtype: torch.dtype) -> None:
        write_adapter(model, folder, dtype)
        file = folder / "adapter_model.safetensors"
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])

    return patch.object(vllm, "write_adapter", cut)


def half_the_weights(_: Side) -> AbstractContextManager[object]:
    """Only the first half of the weights arrives."""

    def half(model: Any, dtype: torch.dtype) -> Iterator[tuple[str, torch.Tensor]]:
        tensors = list(named_tensors(model, dtype))
        return iter(tensors[: len(tensors) // 2])

    return patch.object(vllm, "named_tensors", half)


BOTH = (
    Fault("wrong temperature", "temperature: ", wrong_temperature),
    Fault("bf16 head", "head: ", rounded_head),
    Fault("other chat template", "template: ", other_template),
)
WHOLE = (
    *BOTH,
    Fault("unsynced layer", "stale weights: not all of the update was taken, 1 of ", unsynced),
    Fault("cache not reset", "cache: ", kept_cache),
    Fault("half a file", "stale weights: not all of the update was taken, ", half_the_weights),
)
ADAPTER = (
    *BOTH,
    Fault("stale adapter", "stale adapter: nothing of the update was taken, ", stale),
    Fault("wrong base", "wrong base: ", wrong_base),
    Fault("half a file", "vLLM cannot load the adapter in ", half_an_adapter),
)


def main() -> None:
    """Print the table."""
    options = parser(str(__doc__).partition("\n")[0])
    options.add_argument("--updates", type=int, default=1000, help="healthy updates")
    options.add_argument("--no-step", action="store_true", help="leave out the step, and so canary_share")
    args = options.parse_args()
    torch.manual_seed(0)
    with TemporaryDirectory() as folder:
        base = write_tiny(Path(folder))
        policy = open_engine(base, TalkingPolicy, max_lora_rank=RANK)
        step = [] if args.no_step else [step_seconds(policy, learner_of(base)[0])]
        whole = Side(policy, base)
        found = {"whole": observed(whole, WHOLE, args.updates // 2)}
        asyncio.run(policy.update(base, policy.version + 1))
        adapter = Side(policy, base, lora_rank=RANK)
        found["adapter"] = observed(adapter, ADAPTER, args.updates - args.updates // 2)
    report("weights in vLLM", figures({"whole": whole, "adapter": adapter}, found, step), args.json)


def observed(side: Side, faults: Sequence[Fault], updates: int) -> tuple[list[tuple[str, bool]], int]:
    """Return which faults were found and named, and how often a healthy update was called a fault."""
    alarms = sum(side.update() is not None for _ in range(updates))
    named: list[tuple[str, bool]] = []
    for fault in faults:
        with fault.inject(side):
            said = side.update()
        print(f"{fault.name}: {said}", flush=True)
        named.append((fault.name, said is not None and said.startswith(fault.cause)))
        alarms += side.update() is not None
    return named, alarms


def figures(
    sides: dict[str, Side], found: dict[str, tuple[list[tuple[str, bool]], int]], step: Sequence[float]
) -> list[Figure]:
    """Return the figures of both sides."""
    rows: list[Figure] = []
    for name, side in sides.items():
        rows += [middle(f"sync_ms: {name}", side.synced), middle(f"canary_ms: {name}", side.checked)]
    pairs = [pair for named, _ in found.values() for pair in named]
    kinds = sorted({name for name, _ in pairs})
    right = [kind for kind in kinds if all(good for name, good in pairs if name == kind)]
    updates = sum(len(side.checked) for side in sides.values())
    rows += [
        Figure("faults_found", len(right), f"of {len(kinds)}", len(pairs)),
        Figure("false_alarms", sum(alarms for _, alarms in found.values()), "alarms", updates),
    ]
    for seconds in step:
        canary = max(median(side.checked) for side in sides.values())
        rows += [
            Figure("step_s", seconds, "s", 1),
            Figure("canary_share", canary / seconds, "share", 1),
        ]
    return rows


def middle(name: str, seconds: Sequence[float]) -> Figure:
    values = [1000 * one for one in seconds]
    return Figure(name, median(values), "ms", len(values), min(values), max(values))


def step_seconds(policy: TalkingPolicy, model: Any) -> float:
    """Return the seconds of one step: its debates, and the update from their rows."""
    started, luck, rewards = clock(), Random(0), RewardConfig()
    debates = run_debates(PROBLEMS, policy, CONFIG, seed=0)
    scores = [score_debate(debate, grades(luck), rewards) for debate in debates]
    transitions = transitions_of(debates, scores, range(len(debates)))
    config = AdvantageConfig()
    parts = turn_advantages(transitions, rewards, config, {}).turns
    Learner(model, LearnerConfig(), total_steps=10).step(make_rows(transitions, parts, config))
    return clock() - started


def grades(luck: Random) -> list[list[bool]]:
    """Return whether each agent was right in each round, by chance."""
    return [[luck.random() < 0.5 for _ in range(CONFIG.num_rounds)] for _ in range(CONFIG.num_agents)]


if __name__ == "__main__":
    main()
