"""Sampling and learning of SmolLM2-135M-Instruct on a CPU, beside transformers, vLLM and TRL; wall time.

The debates are those of the recipe smollm2/debate, four on each problem, with scripted replies. Weights and
products are float32, and all sides have the same number of threads. They take turns, so that other work on
the machine hits all of them; small work before the first turn is not counted.

Sampling: as many round-1 prompts at once as ``--prompts``, and as many tokens of each as ``--tokens``, at
temperature 1. No token ends a reply, so all sides sample equally many. "local" is ``sample_batch``, which
reads common prefixes once, "transformers" is ``generate`` with padding on the left, and "vllm" is vLLM's own
``generate`` with an empty prefix cache of blocks of 32 tokens (a CPU has 128 by default), in a process of its
own, compiled unless $TORCH_COMPILE_DISABLE is 1. "local" and "vllm" also return log-probabilities. Seconds
include the prompts. "prefill" ends with the first token.

Learning: one update of all weights by AdamW from all rows of ``--debates`` debates, by our learner with
``share_prefixes``, and by TRL's GRPOTrainer as in ``benchmarks/learner_vs_trl.py``, 8 padded rows a pass.
Tokens are those of the rows, prompts included and padding not; "read" is what goes through the layers.

    make bench && .venv-bench/bin/python benchmarks/cpu_model.py --json cpu_model.json
"""

from __future__ import annotations

import copy
import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import torch
from cpu_engine import ON_A_CPU
from learner_vs_trl import ROWS_A_PASS, Ours, Step, TheirLoop, tokens_a_pass, with_old
from report import Figure, parser, report
from rows import TEMPERATURE

from debate import Debate, Problem, run_debates
from debate.prompting.reading import read_prompt
from debate.prompting.texts import load_prompts
from debate.types import Completion, SampleRequest
from debate_rl.config import Config
from debate_rl.config.recipes import load_config
from debate_rl.inference.local import end_tokens
from debate_rl.inference.sampler import Draw, Drawn, StopWatch, sample_batch, steps_for
from debate_rl.inference.speech import SpeakingPolicy, Speech, Thought
from debate_rl.models import load_model
from debate_rl.sampling.load_problems import load_run_problems
from debate_rl.smollm2 import find_smollm2
from envs.families import FAMILIES
from learner import AdvantageConfig, Row, make_rows, transitions_of
from learner.advantages import TurnAdvantage
from rewards import RewardConfig, score_debate

GROUP, AGENTS = 4, 3
SMALL = 8
"""Prompts and tokens of the work that is not counted."""
Seconds = dict[str, float]
Prompts = Sequence[tuple[int, ...]]
Side = Callable[[Prompts, int], Seconds]


def main() -> None:
    options = parser(str(__doc__).partition("\n")[0])
    options.add_argument(
        "--threads", type=int, default=os.cpu_count(), help="of every side; default: all cores"
    )
    options.add_argument("--prompts", type=int, default=64, help="replies sampled at once")
    options.add_argument("--tokens", type=int, default=64, help="tokens of each reply")
    options.add_argument("--debates", type=int, default=4, help="debates of an update, a multiple of 4")
    options.add_argument("--repeats", type=int, default=3)
    args = options.parse_args()
    torch.set_num_threads(args.threads)
    name = find_smollm2()
    config = load_config(Config, "smollm2/debate", [f"model.name_or_path={name}", "warm_start.from_run="])
    model, tokenizer = load_model(config.model, seed=0)
    needed = max(args.debates, -(-args.prompts // AGENTS))
    debates = scripted_debates(config, ScriptedSpeech(config, model, tokenizer), needed)
    turns = [turn for debate in debates for turn in debate.turns if turn.id.round == 1]
    prompts = [turn.completion.prompt_tokens for turn in turns][: args.prompts]
    figures = sampling(model, tokenizer, name, prompts, args)
    figures += learning(model, rows_of(debates[: args.debates]), args.repeats)
    of = f"SmolLM2-135M-Instruct, float32, {args.threads} threads for every side"
    report(f"{of}; wall time, medians, range in low and high", figures, args.json)


class ScriptedSpeech(SpeakingPolicy):
    """Scripted replies in the tokens of a model."""

    version = 0

    def __init__(self, config: Config, model: Any, tokenizer: Any) -> None:
        ends = end_tokens(model, tokenizer)
        self._speech = Speech(tokenizer, ends=ends, context_tokens=config.debate.context_tokens)
        self._texts, self._family = load_prompts(config.debate.prompts), FAMILIES[config.env.kind]
        self.problems: dict[str, Problem] = {}

    async def sample(self, request: SampleRequest) -> Completion:
        """Answer with a solution, and with checks and a comparison of those in the prompt."""
        problem, rng = self.problems[request.debate.partition(":")[2]], Random(request.seed)
        seen, family = read_prompt(self._texts, request.messages), self._family
        text = (
            f"<solution>{family.write_solution(problem, family.attempt(problem, rng, right=0.5))}</solution>"
        )
        if shown := [one for one in seen.entries if one.handle != seen.handle]:
            checks = " ".join(f"{one.handle}:{family.write_check(problem, one.solution)}" for one in shown)
            order = " > ".join(one.handle for one in shown)
            text += f"<evaluation>{checks}</evaluation><comparison>{order}</comparison>"
        tokens = self._speech.reply(text, request.messages)
        reply = Drawn(tokens, (0.0,) * len(tokens), "stop")
        return self._speech.completion(self._speech.prompt(request), Thought(), reply, version=0)

    async def update(self, weights: object, version: int) -> None:
        """Do nothing: the replies are scripted."""


def scripted_debates(config: Config, policy: ScriptedSpeech, count: int) -> list[Debate]:
    problems = load_run_problems(config).train[: -(-count // GROUP)]
    policy.problems = {problem.id: problem for problem in problems}
    return run_debates([one for one in problems for _ in range(GROUP)], policy, config.debate, seed=0)


def figure(name: str, values: Sequence[float], unit: str) -> Figure:
    return Figure(name, median(values), unit, len(values), min(values), max(values))


# Sampling -----------------------------------------------------------------------------------------


def sampling(model: Any, tokenizer: Any, name: str, prompts: Prompts, args: Any) -> list[Figure]:
    """Return the figures of all sides that start here."""
    sides: dict[str, Side] = {"local": local(model, tokenizer), "transformers": generate(model)}
    vllm = VLLM(name, args.threads)
    if vllm.problem:
        print(f"vLLM is left out: {vllm.problem}")
    else:
        sides["vllm"] = vllm
    for side in sides.values():
        side(prompts[:SMALL], min(SMALL, args.tokens))
    rounds = [{key: side(prompts, args.tokens) for key, side in sides.items()} for _ in range(args.repeats)]
    vllm.close()
    count, read = len(prompts) * args.tokens, sum(map(len, prompts))
    figures = [Figure("sample_prompt_tokens", read / len(prompts), "tokens", len(prompts))]
    for key in sides:
        rates = [count / one[key]["seconds"] for one in rounds]
        figures.append(figure(f"sample_tokens_per_second_{key}", rates, "tokens/s"))
    for key in [*sides][1:]:
        ratios = [one[key]["seconds"] / one["local"]["seconds"] for one in rounds]
        figures.append(figure(f"sample_speedup_over_{key}", ratios, "times"))
    for part in ("prefill", "decode"):
        figures.append(figure(f"sample_{part}_seconds_local", [one["local"][part] for one in rounds], "s"))
    return figures


def local(model: Any, tokenizer: Any) -> Side:
    watch = StopWatch(Speech(tokenizer, ends=frozenset()).text, model.config.vocab_size)

    def sample(prompts: Prompts, tokens: int) -> Seconds:
        draws = [Draw(prompt, tokens, 1.0, seed) for seed, prompt in enumerate(prompts)]
        began, marks = time.perf_counter(), list[float]()
        steps: Any = steps_for(model)
        step = steps.step
        steps.step = lambda new: (marks.append(time.perf_counter()), step(new))[1]
        drawn = sample_batch(model, draws, ends=frozenset(), watch=watch, steps=steps)
        ended = time.perf_counter()
        assert {len(one.tokens) for one in drawn} == {tokens}
        return {"seconds": ended - began, "prefill": marks[0] - began, "decode": ended - marks[0]}

    return sample


def generate(model: Any) -> Side:
    model.generation_config.eos_token_id = None  # no token ends a reply
    settings = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0, "pad_token_id": 0}

    def sample(prompts: Prompts, tokens: int) -> Seconds:
        longest = max(map(len, prompts))
        ids = torch.tensor([[0] * (longest - len(one)) + list(one) for one in prompts])
        mask = torch.tensor([[0] * (longest - len(one)) + [1] * len(one) for one in prompts])
        began = time.perf_counter()
        found = model.generate(input_ids=ids, attention_mask=mask, max_new_tokens=tokens, **settings)
        seconds = time.perf_counter() - began
        assert found.shape == (len(prompts), longest + tokens)
        return {"seconds": seconds}

    return sample


class VLLM:
    """vLLM in a process of its own, which an instruction that this processor lacks may end."""

    def __init__(self, name: str, threads: int) -> None:
        self.problem, self._process = "it is not installed (make bench)", None
        if find_spec("vllm") is None:
            return
        compiles = {"TORCH_COMPILE_DISABLE": os.environ.get("TORCH_COMPILE_DISABLE", "0")}
        more = {"VLLM_CPU_KVCACHE_SPACE": "4", "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
        os.environ |= ON_A_CPU | compiles | more | {"OMP_NUM_THREADS": str(threads)}
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, name, threads), daemon=True)
        self._process.start()
        theirs.close()
        self.problem = self._answer()

    def __call__(self, prompts: Prompts, tokens: int) -> Seconds:
        """Sample in that process."""
        self._pipe.send((prompts, tokens))
        return self._answer()

    def _answer(self) -> Any:
        try:
            return self._pipe.recv()
        except EOFError:
            assert self._process is not None
            self._process.join()
            return f"its process ended with exit code {self._process.exitcode}"

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.terminate()


def serve(pipe: Connection, name: str, threads: int) -> None:
    """Start vLLM, say what is wrong ("" if nothing is), and then sample what is asked for, timed."""
    try:
        vllm: Any = import_module("vllm")
        most = {"max_model_len": 1024, "max_num_seqs": 256, "block_size": 32}
        llm = vllm.LLM(name, dtype="float32", enable_prefix_caching=True, gpu_memory_utilization=0.5, **most)
        sample_with(llm, [tuple(range(100))] * SMALL, SMALL)
    except Exception as error:
        pipe.send(f"it does not start here: {(str(error).strip().splitlines() or [repr(error)])[0]}")
        return
    found = torch.get_num_threads()
    pipe.send("" if found == threads else f"it has {found} threads and not {threads}")
    while True:
        pipe.send(sample_with(llm, *pipe.recv()))


def sample_with(llm: Any, prompts: Prompts, tokens: int) -> Seconds:
    how = {"temperature": 1.0, "max_tokens": tokens, "ignore_eos": True, "logprobs": 0}
    params = import_module("vllm").SamplingParams(**how, flat_logprobs=True, detokenize=False)
    asked = [{"prompt_token_ids": list(one)} for one in prompts]
    assert llm.reset_prefix_cache()
    began = time.perf_counter()
    outputs = llm.generate(asked, params, use_tqdm=False)
    seconds = time.perf_counter() - began
    assert {len(output.outputs[0].token_ids) for output in outputs} == {tokens}
    return {"seconds": seconds}


# Learning -----------------------------------------------------------------------------------------


def rows_of(debates: Sequence[Debate]) -> list[Row]:
    """Return a row for each turn, with random advantages, at TRL's temperature."""
    rng = Random(0)
    rewards = [score_debate(debate, [[None] * 2] * AGENTS, RewardConfig()) for debate in debates]
    groups = [index // GROUP for index in range(len(debates))]
    transitions = transitions_of(debates, rewards, groups)
    advantages = [TurnAdvantage(rng.gauss(0, 1), rng.gauss(0, 1), None) for _ in transitions]
    rows = make_rows(transitions, advantages, AdvantageConfig())
    return [replace(row, temperature=TEMPERATURE) for row in rows]


def learning(model: Any, rows: list[Row], repeats: int) -> list[Figure]:
    """Return the figures of our learner, and of TRL where it is installed."""
    rows = with_old(rows, model)
    tokens = sum(len(row.input_ids) for row in rows)
    ours = TimedLearner(copy.deepcopy(model), rows, share=True, checkpointing=False)
    if find_spec("trl") is None:
        print("TRL is left out: it is not installed (make bench)")
        for _ in range(repeats + 1):
            ours.step(counted=False)
        return rates("local", ours.steps, tokens, ours.read)
    with TemporaryDirectory() as folder:
        theirs = Turns(model, rows, Path(folder), repeats - 1, ours, checkpointing=False)
    pairs = [*zip(ours.steps, theirs.steps, strict=True)]
    apart = max(abs(a.loss - b.loss) for a, b in pairs)
    return [
        *rates("local", ours.steps, tokens, ours.read),
        *rates("trl", theirs.steps, tokens, tokens_a_pass(rows) * len(rows) // ROWS_A_PASS),
        figure("learn_speedup_over_trl", [b.seconds / a.seconds for a, b in pairs[1:]], "times"),
        Figure("learn_loss_difference", apart, "loss", len(pairs)),
    ]


def rates(side: str, steps: Sequence[Step], tokens: int, read: float) -> list[Figure]:
    return [
        figure(f"learn_tokens_per_second_{side}", [tokens / one.seconds for one in steps[1:]], "tokens/s"),
        Figure(f"learn_read_share_{side}", read / tokens, "of the rows' tokens", tokens),
    ]


class TimedLearner(Ours):
    """Our learner with its steps in wall time, and the tokens that it reads; the first does not count."""

    read = 0.0

    def step(self, *, counted: bool) -> None:
        """Learn once from the rows, timed."""
        began = time.perf_counter()
        found = self.learner.step(self.rows)
        self.steps.append(Step(time.perf_counter() - began, found["loss"]))
        self.read = found["read_tokens"]


class Turns(TheirLoop):
    """TRL's steps in wall time, each after one of ours; the first does not count."""

    def begin(self, number: int) -> None:
        """Do a step of ours, and start the clock of theirs."""
        self.ours.step(counted=False)
        self.loss, self.started = 0.0, time.perf_counter()

    def end(self) -> None:
        """Note a step of theirs."""
        self.steps.append(Step(time.perf_counter() - self.started, self.loss))


if __name__ == "__main__":
    main()
