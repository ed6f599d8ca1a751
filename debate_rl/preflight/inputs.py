"""Checks without sampling: data, template, prompts, lengths, data types, memory and settings."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from math import sqrt
from typing import Any

from debate.prompting.fitting import PromptTooLongError
from debate.prompting.prompt import check_fits
from debate.types import WITHOUT_TRUTH
from debate_rl.alarms.settings import flat, risky
from debate_rl.config import Config
from debate_rl.engines import counting_policy
from debate_rl.evaluation.prompts import differences, sent_prompts, speech_of
from debate_rl.forecast.plan import planned
from debate_rl.formatting import counted
from debate_rl.models import chat_flag, engine_dtype, resolve_device, resolve_dtype
from debate_rl.preflight.check import Check
from debate_rl.runs.folder import plain_config
from debate_rl.sampling.load_problems import Problems, shown_with
from learner.update.forward import compute_type
from learner.update.learner import check_dtypes

FULL_LR, FULL_SIZE = 1e-5, 1.7e9
"""The highest learning rate that worked for full weights, and their number [RLVR experiment notes]."""
LORA_TIMES, LORA_LR = 10.0, 5e-5
"""The factor for learning rates of adapters [LoRA Without Regret, Schulman et al., 2025], and the highest
rate of an adapter that did no harm [Markovian run analysis]."""
WIDE = 10.0
"""The check warns if the learning rate is below the advised rate divided by this number."""
MANY_ALIKE = 0.01
"""The check warns if the fraction of repeated questions is larger."""


def data_checks(data: Problems) -> Iterator[Check]:
    """Check the training problems: number, answers, repetitions and overlap with held-out problems."""
    train = data.train
    by_level = Counter(str(problem.level) for problem in train if problem.level is not None)
    levels = (
        f", levels {', '.join(f'{name[:20]}: {n}' for name, n in by_level.most_common(9))}"
        if by_level
        else ""
    )
    held_out = counted(len(data.never_trained), "held-out problem")
    yield Check("problems", "ok", len(train), f"to train on, {held_out}{levels}")
    open_ = sum(problem.kind in WITHOUT_TRUTH for problem in train)
    blank = sum(problem.kind not in WITHOUT_TRUTH and not problem.answer for problem in train)
    why = (
        f"among {counted(len(train) - open_, 'problem')} of gradable kinds; {open_:,} of open kinds need none"
    )
    yield Check("missing answers", "bad" if blank else "ok", blank, why)
    alike = len(train) - len({" ".join(problem.question.split()).casefold() for problem in train})
    verdict = "warn" if alike > MANY_ALIKE * len(train) else "ok"
    yield Check("repeated questions", verdict, alike, "of the training problems")
    shared = len(data.overlaps)
    why = "held-out problems share runs of words with training problems"
    yield Check("overlaps", "warn" if shared else "ok", shared, why, 'env.decontaminate="ngram"')


def model_checks(config: Config, data: Problems) -> Iterator[Check]:
    """Yield the checks that need the model's configuration and tokenizer, or a bad check if loading fails."""
    from debate_rl.models import refuse_damaged_weights, sketch_model
    from debate_rl.warm_start.tokenizer import tiny_vocabulary

    if config.model.policy not in (None, "vllm"):
        yield Check(
            "template", "not measured", None, f"model.policy={config.model.policy} applies the template"
        )
    else:
        try:
            refuse_damaged_weights(config.model)
            _, tokenizer = sketch_model(config.model, vocabulary=tiny_vocabulary(config), on_gpu=False)
        except (ValueError, OSError, ImportError) as error:
            yield Check("model", "bad", None, _line(error))
            for name in ("template", "lengths", "memory"):
                yield Check(name, "not measured", None, "the model cannot be loaded")
            return
        yield template_check(config, tokenizer)
    yield from length_checks(config, data)
    yield from memory_checks(config, data)


def template_check(config: Config, tokenizer: Any) -> Check:
    """Check that prompts have the format that the model was trained on: chats or plain text."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            chat = chat_flag(config.model, tokenizer)
    except ValueError as error:
        return Check("template", "bad", None, _line(error), "model.chat=false")
    if caught:
        return Check("template", "bad", None, _line(caught[0].message), "model.chat=false")
    named = (config.model.name_or_path or "").lower()
    instructed = any(word in named for word in ("instruct", "-chat", "-it"))
    if instructed and not chat:
        return Check("template", "bad", None, "a chat model gets plain-text prompts", "model.chat=true")
    return Check("template", "ok", None, "prompts are chats" if chat else "prompts are plain text")


def prompt_checks(config: Config, data: Problems) -> Iterator[Check]:
    """Check that training and evaluation use the same prompts, and that replies have an end."""
    speech, _ = speech_of(config)
    first = data.train[0]
    trained, evaluated = (
        sent_prompts(config, shown_with(config, first, count), speech)
        for count in (config.shots.count_at(0), config.shots.final)
    )
    changed = list(differences(trained, evaluated))
    why = (
        "training and evaluation use the same prompts"
        if not changed
        else f"training and evaluation differ: {changed[0]}"
    )
    yield Check("prompts", "warn" if changed else "ok", len(trained), f"kinds of prompt; {why}")
    plain = config.model.chat is False
    without = [prompt.name for prompt in trained if not prompt.settings["stop"]]
    if plain and without:
        why = f"no stop string ends a plain-text reply of {without[0]}, so models may add more questions"
        yield Check("stops", "warn", None, why, "debate.prompts=qa")
    else:
        yield Check("stops", "ok", None, "replies end with the end of the turn or a stop string")


def length_checks(config: Config, data: Problems) -> Iterator[Check]:
    """Check that the shortest prompt of every problem and its reply fit the context."""
    if config.model.policy not in (None, "vllm"):
        yield Check("lengths", "not measured", None, f"model.policy={config.model.policy} has the tokenizer")
        return
    try:
        policy = counting_policy(config)
        for problem in (*data.train, *data.never_trained):
            check_fits(problem, policy, config.debate)
    except PromptTooLongError as error:
        yield Check("lengths", "bad", None, _line(error), "env.max_prompt_tokens")
    except (ValueError, OSError) as error:
        yield Check("lengths", "bad", None, _line(error))
    else:
        reply = config.debate.max_tokens + config.debate.thinking_tokens
        yield Check("lengths", "ok", reply, "tokens of a reply fit after the prompt of every problem")


def memory_checks(config: Config, data: Problems) -> Iterator[Check]:
    """Yield the checks of memory (as by ``--plan``), learning rate and data types."""
    try:
        needs = planned(config, data)
    except PromptTooLongError as error:
        yield Check("memory", "not measured", None, _line(error))
        return
    except (ValueError, OSError) as error:
        yield Check("memory", "bad", None, _line(error))
        return
    if needs is None or needs.memory is None:
        other = config.model.policy or config.engine.kind
        why = needs.uncounted if needs else f"{other}: the memory of this engine is unknown"
        yield Check("memory", "not measured", None, why)
    else:
        lines = [line.strip() for line in needs.memory_lines()]
        set_ = "learner.micro_batch_tokens (halve it)" if needs.too_large else ""
        words = next(line for line in lines if line.startswith("memory")).removeprefix("memory").strip()
        yield Check(
            "memory", "bad" if needs.too_large else "ok", needs.memory.peak / 2**30, f"GiB: {words}", set_
        )
    if needs is not None:
        yield lr_check(config, sum(parameter.numel() for parameter in needs.model.parameters()))
        yield dtype_check(config, needs.model)


def suggested_lr(parameters: float, *, adapter: bool) -> float:
    """Return the highest learning rate advised for RL of a model of this size.

    With 1.7e9 full weights, 1e-5 worked and 2e-5 led to a collapse [RLVR experiment notes]. For other sizes,
    the rate scales with 1 / sqrt(parameters) [tinker-cookbook, hyperparam_utils], up to 1e-5. For adapters it
    is 10 times as high [LoRA Without Regret, 2025], up to 5e-5 [Markovian run analysis].

    >>> [suggested_lr(size, adapter=False) for size in (1.7e9, 6.8e9)], suggested_lr(6.8e9, adapter=True)
    ([1e-05, 5e-06], 5e-05)
    """
    full = FULL_LR * min(1.0, sqrt(FULL_SIZE / parameters))
    return min(LORA_LR, LORA_TIMES * full) if adapter else full


def lr_check(config: Config, parameters: int) -> Check:
    """Check that the learning rate is between a tenth of the advised rate and the advised rate."""
    lr, adapter = config.learner.lr, config.model.lora_rank > 0
    if config.model.tiny is not None:
        return Check("learning rate", "not measured", lr, "there is no advised rate for tiny models")
    best = suggested_lr(parameters, adapter=adapter)
    what = "an adapter of" if adapter else "all of"
    why = f"advised for {what} {parameters / 1e9:.2g} G parameters: {best / WIDE:.1g} to {best:.1g}"
    source = "RLVR notes, scaled by 1/sqrt(size); LoRA Without Regret for adapters"
    outside = not 0.999 * best / WIDE <= lr <= 1.001 * best
    return Check(
        "learning rate", "warn" if outside else "ok", lr, f"{why} ({source})", f"learner.lr={best:.1g}"
    )


def dtype_check(config: Config, model: Any) -> Check:
    """Check that the learner accepts the data type of the weights, and computes in that of the sampler."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            check_dtypes(trained)
    except ValueError as error:
        return Check("numeric types", "bad", None, _line(error), "model.dtype=float32")
    if caught:
        return Check("numeric types", "warn", None, _line(caught[0].message), "model.dtype=float32")
    on_gpu = resolve_device(config.model.device).type == "cuda"
    weights = str(resolve_dtype(config.model)).removeprefix("torch.")
    computes = str(compute_type(model, config.learner.compute, on_gpu=on_gpu) or weights)
    computes = computes.removeprefix("torch.")
    samples = {None: computes, "vllm": engine_dtype(config.model)}.get(config.model.policy, weights)
    why = f"weights are {weights}, the learner computes in {computes}, and the sampler in {samples}"
    if samples != computes:
        return Check("numeric types", "warn", None, why, f"learner.compute={samples}")
    return Check("numeric types", "ok", None, why)


def setting_checks(config: Config) -> Iterator[Check]:
    """Yield a warning for each risky setting, as in the report of a run."""
    risks = list(risky(flat(plain_config(config))))
    if not risks:
        yield Check("settings", "ok", None, "no setting is known to be risky")
    for setting, rule, source in risks:
        yield Check("settings", "warn", None, f"{setting}: {rule} ({source})")


def _line(error: object) -> str:
    return " ".join(str(error).split())[:300]
