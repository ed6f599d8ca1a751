"""What an engine and the learner read of debates in which history grows: with conversations and without.

Debates of N agents over T rounds and, where they can compare, a final ballot; shipped prompts, a tiny model
in vLLM, replies of drawn lengths. "newest": each prompt is made anew, and shows the round before
(``history_rounds = 1``). "all": made anew, and shows all rounds (-1). "conversation": as in
``debate.conversation``, all rounds as well. Of each: tokens of all prompts, which is what an engine without
a prefix cache reads; those that vLLM computed, and its seconds; tokens of the learner's rows, those that it
reads with ``learner.share_prefixes``, and the seconds of an update. Seconds are CPU seconds of one core,
where there is no GPU.

    make bench && OMP_NUM_THREADS=1 .venv-bench/bin/python benchmarks/history.py --json history.json
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from qwen3 import words
from report import Figure, parser, report
from tiny_engine import BLOCK, CONFIG, ON_GPU, PROBLEMS, TINY, TalkingPolicy, clock

from debate import Debate, DebateConfig, run_debates
from debate_rl.config.models import ModelConfig
from debate_rl.inference.vllm import EngineLoop
from debate_rl.models import load_model
from learner import AdvantageConfig, LearnerConfig, Row, TurnAdvantage, make_rows, transitions_of
from learner.update.batches import micro_batches
from learner.update.learner import Learner
from rewards import RewardConfig, score_debate

HISTORIES = {
    "newest": {"history_rounds": 1},
    "all": {"history_rounds": -1},
    "conversation": {"history_rounds": -1, "conversation": True},
}
CONTEXT = 16_384
LONGEST = 160
A_PASS = 65_536
"""Tokens that the learner reads in one pass."""


class CountingLoop(EngineLoop):
    """Counts the tokens of prompts that were not in the prefix cache."""

    computed = 0

    async def complete(self, prompt: Sequence[int], params: Any, lora: Any) -> Any:
        """Return the finished output of a prompt."""
        done = await super().complete(prompt, params, lora)
        self.computed += len(prompt) - done.num_cached_tokens
        return done


class Counted(TalkingPolicy):
    """Counts what vLLM computes."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._loop = self.counting = CountingLoop(self._llm.llm_engine)

    def begin(self) -> None:
        """Forget what is cached."""
        self.counting.computed = 0
        assert self._llm.reset_prefix_cache()


def main() -> None:
    options = parser(str(__doc__).partition("\n")[0])
    options.add_argument("--rounds", type=int, nargs="*", default=[3, 5, 9])
    options.add_argument("--debates", type=int, default=8)
    options.add_argument("--agents", type=int, default=3)
    args = options.parse_args()
    torch.set_num_threads(1)
    figures: list[Figure] = []
    with TemporaryDirectory() as folder:
        policy, model = open_all(Path(folder))
        held(policy, 2, 1, {"num_agents": 3})  # warms up
        for rounds in args.rounds:
            for name, history in HISTORIES.items():
                settings = {"num_agents": args.agents, **history}
                figures += measured(policy, model, f"T={rounds} {name}", rounds, args.debates, settings)
    device = torch.cuda.get_device_name() if ON_GPU else "one CPU core, CPU seconds"
    title = f"N={args.agents}, T rounds, {args.debates} debates at once; of each debate; {device}"
    report(title, figures, args.json)


def open_all(folder: Path) -> tuple[Counted, Any]:
    """Return an engine, and the same model to learn; its context holds nine rounds."""
    tiny = ModelConfig(tiny=TINY.model_copy(update={"context_tokens": CONTEXT}), device="cpu")
    model: Any
    model, tokenizer = load_model(tiny, vocabulary=words(PROBLEMS[0], CONFIG), seed=0)
    model.get_input_embeddings().weight.data[model.config.eos_token_id] = 0.0  # no reply ends by chance
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    dtype = "bfloat16" if ON_GPU else "float32"
    engine = {"max_model_len": CONTEXT, "block_size": BLOCK, "gpu_memory_utilization": 0.5}
    return Counted(folder, dtype=dtype, enforce_eager=not ON_GPU, **engine), model


def held(policy: Counted, rounds: int, debates: int, settings: dict[str, Any]) -> list[Debate]:
    """Return debates of so many rounds."""
    config = DebateConfig(num_rounds=rounds, max_tokens=LONGEST, **settings)
    return run_debates(PROBLEMS[:debates], policy, config, seed=0)


def measured(
    policy: Counted, model: Any, name: str, rounds: int, count: int, settings: dict[str, Any]
) -> list[Figure]:
    """Return the figures of one way to show history, for each debate."""
    policy.begin()
    started = clock()
    debates = held(policy, rounds, count, settings)
    seconds = clock() - started
    rows = rows_of(debates)
    shared = micro_batches(rows, A_PASS, share=True)
    values = {
        "prompts": (sum(len(t.completion.prompt_tokens) for d in debates for t in d.turns), "tokens"),
        "generated": (sum(len(t.completion.tokens) for d in debates for t in d.turns), "tokens"),
        "engine computes of prompts": (policy.counting.computed, "tokens"),
        "engine": (seconds, "s"),
        "learner's rows": (sum(len(row.input_ids) for row in rows), "tokens"),
        "learner reads": (sum(batch.positions for batch in shared), "tokens"),
        "learner": (learning_seconds(model, rows), "s"),
        "cut texts": (sum(turn.cut for debate in debates for turn in debate.turns), "texts"),
    }
    return [Figure(f"{name}: {what}", value / count, unit, count) for what, (value, unit) in values.items()]


def rows_of(debates: Sequence[Debate]) -> list[Row]:
    """Return a row for every turn, with drawn advantages."""
    rng = random.Random(0)
    rewards = [score_debate(debate, None, RewardConfig()) for debate in debates]
    transitions = transitions_of(debates, rewards, range(len(debates)))
    advantages = [TurnAdvantage(rng.gauss(0, 1), rng.gauss(0, 1), 0.0) for _ in transitions]
    return make_rows(transitions, advantages, AdvantageConfig())


def learning_seconds(model: Any, rows: list[Row]) -> float:
    """Return the seconds of an update; what is shared was compared with plain reading before."""
    settings = {"share_prefixes": True, "micro_batch_tokens": A_PASS, "old_logprobs": "sampling"}
    with warnings.catch_warnings(action="ignore"):  # the advantages mean nothing
        learner = Learner(model, LearnerConfig.model_validate(settings))
        learner.step(rows[:40])
        started = clock()
        learner.step(rows)
    return clock() - started


if __name__ == "__main__":
    main()
