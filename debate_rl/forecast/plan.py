"""The needs of a run before its model is loaded: memory, work and disk.

The model is built without weights, so only its settings and tokenizer are downloaded.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path
from typing import Any

import torch

from debate.prompting.prompt import check_fits
from debate_rl.config import Config
from debate_rl.engines import local_settings
from debate_rl.forecast.memory import (
    EngineMemory,
    Load,
    Memory,
    cure,
    engine_memory,
    in_words,
    load_of,
    memory_of,
    memory_there,
    of_first_rank,
    size,
)
from debate_rl.formatting import counted
from debate_rl.inference.local import LocalPolicy
from debate_rl.inference.vllm_engines import shares_gpu
from debate_rl.models import resolve_device, sketch_model
from debate_rl.quantization import quantized_bytes
from debate_rl.sampling.load_problems import Problems
from debate_rl.warm_start.tokenizer import tiny_vocabulary
from learner.update.config import FROM_SAMPLER

CROWDED = 0.9  # fraction of the memory above which ``gradient_checkpointing = "auto"`` means true
USUAL_CAP = 2.0  # cap of importance weights if ``tis_cap`` is "auto" and an engine samples [Yao et al., 2025]


class TooLargeError(ValueError):
    """A run that needs more memory than is available. The message says how to make it fit or allow it."""


@dataclass(frozen=True)
class Plan:
    """A run's needs. ``there``: bytes of the available memory; ``uncounted``: why ``memory`` is None.

    ``text``: bytes of text per token, as in the first problem. ``done``: finished steps. ``chosen``: the
    values chosen for "auto" settings, by key. ``ranks``: processes that learn together, each with a GPU;
    ``memory`` is that of the first. ``on_gpu``: whether the memory is a GPU's.
    """

    config: Config
    load: Load
    model: Any
    memory: Memory | None
    there: int
    held_out: int
    text: float
    uncounted: str = ""
    done: int = 0
    engine: EngineMemory | None = None
    chosen: Mapping[str, bool | float] = field(default_factory=dict)
    ranks: int = 1
    on_gpu: bool = True

    def memory_lines(self) -> list[str]:
        """Return the lines about memory, with the assumptions."""
        prompt, reply = max(self.load.rounds)
        every = list(self.model.parameters())
        trained = sum(parameter.numel() for parameter in every if parameter.requires_grad)
        words = f"not known, because this model cannot be counted: {self.uncounted}"
        if self.memory is not None:
            of = f"of the first of {self.ranks} ranks, " if self.ranks > 1 else ""
            words = of + in_words(self.memory, self.there)
        lines = [
            f"estimate, if every reply has {reply} tokens and prompts have up to {prompt}:",
            f"  model   {sum(p.numel() for p in every):,} parameters, {trained:,} of them trained",
            f"  memory  {words}",
        ]
        if (quantization := self.config.model.quantization) != "none":
            held = quantized_bytes(self.model, quantization)
            lines.append(
                f"  base    {size(held.packed)} of weights in {quantization.removesuffix('bit')} bits "
                f"({size(held.before)} before), {size(held.scales)} of scales, {size(held.rest)} of "
                f"embeddings, norms and the adapter; unpacking a layer takes up to {size(held.largest)} "
                "temporarily"
            )
        lines += [f"          {key} = {str(value).lower()} was chosen" for key, value in self.chosen.items()]
        if self.engine is not None:
            lines.append(f"  engine  {self.engine.in_words(self.config, self.load)}")
        if self.memory is not None and self.too_large:
            lines.append(f"  more than is available: {cure(self.memory, self.config, self.there)}")
        return lines

    @property
    def too_large(self) -> bool:
        """Whether the run needs more memory than is available."""
        return self.memory is not None and self.memory.peak > self.there

    def refuse_too_large(self) -> None:
        """Raise TooLargeError for a run that does not fit, unless ``train.over_memory`` allows it."""
        if self.engine is not None:
            self.engine.refuse_too_small(self.config, self.load)
        if self.memory is not None and self.too_large and not self.config.train.over_memory:
            needed = in_words(self.memory, self.there)
            raise TooLargeError(
                f"the run does not fit in memory if all replies reach their token limit: {needed}; "
                f"{cure(self.memory, self.config, self.there)}, or allow it with train.over_memory=true"
            )

    def work_lines(self) -> list[str]:
        """Return the lines about tokens and disk space."""
        steps = max(self.config.train.steps - self.done, 0)
        read, said = (self.load.replies * sum(part) for part in zip(*self.load.rounds, strict=True))
        learnt = f"{_tokens(steps * self.load.row_tokens)} trained on"
        if self.load.together > 1:
            learnt += f" by reading {_tokens(steps * self.load.read_tokens)}"
        count = evaluations_of(self.config, self.held_out, done=self.done)
        also = f"; {counted(count, 'evaluation')} of {self.held_out} held-out problems" if count else ""
        kept = self.config.train.keep_last + 1 + bool(self.config.train.keep_best)
        # A checkpoint has the trained weights, the optimizer's two moments, and a refreshed reference.
        copies = 4 if self.config.learner.reference_every else 3
        each = copies * sum(p.numel() * p.element_size() for p in self.model.parameters() if p.requires_grad)
        # Texts, and token arrays in base64 (4 bytes for 3): a token is an id of 4 bytes; a generated one has
        # a log-probability of 8 and an offset of 4 as well.
        logging, problems = self.config.logging, self.config.train.batch_size
        arrays = (4 * read + 16 * said) * 4 / 3 if logging.transcript_tokens else 0.0
        groups = problems if logging.transcript_groups is None else min(logging.transcript_groups, problems)
        transcripts = steps * ceil((arrays + self.text * said) * groups / problems)
        folder = Path(self.config.run.dir).absolute()
        home = next(path for path in (folder, *folder.parents) if path.is_dir())
        free, whole = size(shutil.disk_usage(home).free), size(kept * each + transcripts)
        over = f"in {counted(steps, 'step')}" + (" still to do" if self.done else "")
        work = f"{_tokens(steps * said)} tokens generated, {_tokens(steps * read)} read"
        return [
            f"  work    at most {work} and {learnt} {over}{also}",
            f"  disk    at most {whole} of {free} free: {kept} checkpoints of {size(each)}, including "
            f"one that is being written, and transcripts of {size(transcripts)} before they are compressed",
        ]


def planned(
    config: Config,
    data: Problems,
    *,
    there: int | None = None,
    done: int = 0,
    ranks: int = 1,
    assumed: bool = False,
) -> Plan | None:
    """Return the needs of the steps after the first ``done``; None if another engine computes them.

    ``there``: bytes of the planned GPU's memory; None means this machine. ``assumed``: use the model's known
    settings and count characters as tokens. ValueError if the context is too small for a prompt.
    """
    if config.model.policy not in (None, "vllm") or config.engine.kind != "local":
        return None
    device = None if there is not None else resolve_device(config.model.device)
    on_gpu, vocabulary = device is None or device.type != "cpu", tiny_vocabulary(config)
    model, tokenizer = sketch_model(config.model, vocabulary=vocabulary, on_gpu=on_gpu, assumed=assumed)
    policy = LocalPolicy(model, tokenizer, **local_settings(config))
    problem = data.train[0]
    check_fits(problem, policy, config.debate)
    room = there if device is None else memory_there(device)
    assert room is not None
    cuda = device is None or device.type == "cuda"
    vllm = config.model.vllm
    # The GPUs of another machine are not known: requested engines are assumed to have GPUs of their own.
    gpus = 1 + vllm.engines * vllm.tensor_parallel_size if device is None else torch.cuda.device_count()
    beside = ranks == 1 and shares_gpu(config, gpus)
    counted = cuda and config.model.policy == "vllm" and not vllm.servers
    plan = Plan(
        config,
        load_of(config, policy, problem),
        model,
        None,
        room,
        len(data.held_out),
        len(problem.question.encode()) / max(1, len(tokenizer(problem.question)["input_ids"])),
        done=done,
        engine=engine_memory(model, config, room, beside=beside) if counted else None,
        chosen=chosen_correction(config),
        ranks=ranks,
        on_gpu=cuda,
    )
    try:
        return _with_sleep(_counted(plan))
    except AttributeError as error:  # a model whose settings have other names
        return replace(plan, uncounted=str(error))


def _counted(plan: Plan) -> Plan:
    """Return the plan with its memory, and with gradient checkpointing if memory is short."""
    memory = _memory(plan, plan.config)
    if plan.config.learner.gradient_checkpointing == "auto" and memory.peak > CROWDED * plan.there:
        learner = plan.config.learner.model_copy(update={"gradient_checkpointing": True})
        config = plan.config.model_copy(update={"learner": learner})
        less = _memory(plan, config)
        if less.peak < memory.peak:
            chosen = {**plan.chosen, "learner.gradient_checkpointing": True}
            return replace(plan, config=config, memory=less, chosen=chosen)
    return replace(plan, memory=memory)


def _with_sleep(plan: Plan) -> Plan:
    """Return the plan; its engine sleeps during learning if ``sleep`` is set or memory requires it."""
    setting, engine = plan.config.model.vllm.sleep, plan.engine
    if engine is None or plan.memory is None or not (setting and engine.beside and plan.config.vllm_within):
        return plan
    asleep = engine.asleep(plan.memory)
    if setting == "auto" and not asleep.peak <= plan.there < plan.memory.peak:
        return plan
    chosen = {**plan.chosen, "model.vllm.sleep": True} if setting == "auto" else plan.chosen
    return replace(plan, memory=asleep, chosen=chosen)


def _memory(plan: Plan, config: Config) -> Memory:
    elsewhere = None if config.model.policy is None else 0
    engine = plan.engine.share * plan.engine.beside if plan.engine is not None else elsewhere
    memory = memory_of(plan.model, plan.load, config, on_gpu=plan.on_gpu, engine=engine)
    if plan.ranks == 1:
        return memory
    return of_first_rank(memory, plan.model, plan.ranks, samples=config.model.policy is None)


def chosen_correction(config: Config) -> dict[str, float]:
    """Return the cap of importance weights if it is "auto" and an engine has its own weights."""
    learner, engine = config.learner, config.model.policy == "vllm" or config.engine.kind != "local"
    applies = engine and learner.tis_cap == "auto" and learner.old_logprobs == "recompute"
    applies = applies and learner.loss not in FROM_SAMPLER
    return {"learner.tis_cap": USUAL_CAP} if applies else {}


def chosen_here(config: Config, data: Problems) -> Mapping[str, bool | float]:
    """Return the values chosen for "auto" settings on this machine; the forecast decides only on a GPU."""
    if resolve_device(config.model.device).type == "cpu":
        return chosen_correction(config)
    plan = planned(config, data)
    return plan.chosen if plan is not None else chosen_correction(config)


def evaluations_of(config: Config, held_out: int, *, done: int = 0) -> int:
    """Return the number of evaluations of ``held_out`` problems that remain after ``done`` steps."""
    steps = config.train.steps
    left = range(done + 1 if done else 0, steps + 1)
    return sum(config.held_out.due(step, steps) for step in left) if held_out else 0


def _tokens(count: float) -> str:
    """Format a number of tokens.

    >>> _tokens(1_230_000), _tokens(900), _tokens(236_000_000)
    ('1.2 M', '900', '236 M')
    """
    return f"{count:,.0f}" if count < 1e6 else f"{count / 1e6:,.{int(count < 1e7)}f} M"
