"""Debates through VLLMPolicy beside the raw engine with the same prompts, lengths and seeds.

64 debates at once, N=3, R=3 and a final ballot, shipped prompts, a tiny model, 4k context. "raw" gives the
requests that the debates made to vLLM's own ``generate``, in the order of their rounds: no prompts are
written, no replies read, and no request waits for another. "lock-step" gives it one round after the other,
so all debates wait for each round's slowest. The three take turns; ratios are of one turn of each.
"raw" also writes each token as text beside its log-probability, as vLLM does; debates leave that out.
Seconds are CPU seconds of this process, in which all of it runs, where there is no GPU.

    make bench && OMP_NUM_THREADS=1 .venv-bench/bin/python benchmarks/rollout.py --json rollout.json
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch
from qwen3 import SHAPES, VOCABULARY, words, write_shape
from report import Figure, parser, report
from tiny_engine import (
    CONFIG,
    DEBATES,
    ON_GPU,
    PROBLEMS,
    TalkingPolicy,
    clock,
    open_engine,
    write_tiny,
)

from debate import Completion, SampleRequest, run_debates
from debate_rl.inference.sampler import Draw
from debate_rl.inference.vllm import EngineLoop, sampling_params

BYTES = 262
"""Tokens that the tokenizer has beside its words."""


class Asked(NamedTuple):
    """A request of a debate, with the tokens that it led to."""

    round: int
    debate: str
    agent: int
    draw: Draw


class CountingLoop(EngineLoop):
    """Counts the tokens of prompts that came from the prefix cache."""

    cached_tokens = 0

    async def complete(self, prompt: Sequence[int], params: Any, lora: Any) -> Any:
        """Return the finished output of a prompt."""
        done = await super().complete(prompt, params, lora)
        self.cached_tokens += done.num_cached_tokens
        return done


class Counted(TalkingPolicy):
    """Also keeps the requests as vLLM's own ``generate`` takes them, and what its cache gave."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.asked: list[Asked] = []
        self._loop = self.counting = CountingLoop(self._llm.llm_engine)

    async def sample(self, request: SampleRequest) -> Completion:
        """Answer a request."""
        reply = await super().sample(request)
        draw = Draw(reply.prompt_tokens, len(reply.tokens), request.temperature, request.seed)
        self.asked.append(Asked(request.turn.round, request.debate, request.turn.agent, draw))
        return reply

    def begin(self) -> None:
        """Forget what was asked and what is cached."""
        self.asked, self.counting.cached_tokens = [], 0
        assert self._llm.reset_prefix_cache()

    def generate(self, asked: Iterable[Asked]) -> int:
        """Give requests to vLLM's own loop; return the tokens that it sampled."""
        draws = [one.draw for one in asked]
        prompts = [{"prompt_token_ids": list(draw.prompt)} for draw in draws]
        outputs = self._llm.generate(
            prompts, [sampling_params(self._sampling(draw, 0)) for draw in draws], use_tqdm=False
        )
        return sum(len(output.outputs[0].token_ids) for output in outputs)


def main() -> None:
    options = parser(str(__doc__).partition("\n")[0])
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument(
        "--shape",
        choices=SHAPES,
        help="a published shape, with weights that mean nothing, in place of a tiny model",
    )
    args = options.parse_args()
    torch.set_num_threads(1)
    with TemporaryDirectory() as folder:
        policy = (
            open_shape(Path(folder), args.shape)
            if args.shape
            else open_engine(write_tiny(Path(folder)), Counted)
        )
        report(title(), figures(policy, args.repeats), args.json)


def open_shape(folder: Path, shape: str) -> Counted:
    """Return an engine for a published shape; every token it can sample is a word that can be read again."""
    known = words(PROBLEMS[0], CONFIG)
    write_shape(shape, folder, [*known, *(f" w{n}" for n in range(VOCABULARY - len(known) - BYTES))])
    return open_engine(folder, Counted, load_format="dummy")


def title() -> str:
    device = torch.cuda.get_device_name() if ON_GPU else "one CPU core, CPU seconds"
    return f"{DEBATES} debates at once, N=3, R=3; {device}; medians, range in low and high"


def figures(policy: Counted, repeats: int) -> list[Figure]:
    """Return the figures of so many rounds, after one that is not counted."""
    rounds = [seconds_of(policy) for _ in range(repeats + 1)][1:]
    rows = [
        figure(f"{side}_s_per_1000_tokens", [one[side] for one in rounds], "s")
        for side in ("debates", "raw", "lock_step")
    ]
    return [
        *rows,
        figure("rollout_vs_raw", [one["raw"] / one["debates"] for one in rounds], "ratio"),
        figure("lock_step_vs_raw", [one["raw"] / one["lock_step"] for one in rounds], "ratio"),
        figure("prefix_computed_share", [one["computed"] for one in rounds], "share"),
    ]


def figure(name: str, values: Sequence[float], unit: str) -> Figure:
    return Figure(name, median(values), unit, len(values), min(values), max(values))


def seconds_of(policy: Counted) -> dict[str, float]:
    """Return each side's seconds for 1,000 sampled tokens, and the share of prompts that was computed."""
    policy.begin()
    held, seconds = timed(lambda: run_debates(PROBLEMS, policy, CONFIG, seed=0))
    asked, cached = sorted(policy.asked), policy.counting.cached_tokens
    tokens = sum(len(turn.completion.tokens) for debate in held for turn in debate.turns)
    read = sum(len(one.draw.prompt) for one in asked)
    rounds = [list(part) for _, part in groupby(asked, key=lambda one: one.round)]
    policy.begin()
    raw_tokens, raw = timed(lambda: policy.generate(asked))
    policy.begin()
    lock_tokens, lock_step = timed(lambda: sum(map(policy.generate, rounds)))
    return {
        "debates": 1000 * seconds / tokens,
        "raw": 1000 * raw / raw_tokens,
        "lock_step": 1000 * lock_step / lock_tokens,
        "computed": 1 - cached / read,
    }


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    started = clock()
    result = work()
    return result, clock() - started


if __name__ == "__main__":
    main()
