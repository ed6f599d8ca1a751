"""Export a run's weights, with a README.md, to a folder that transformers and peft can load by themselves."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, NamedTuple

import tomli_w

from debate.files import read_json, write_text
from debate_rl.config import Config
from debate_rl.config.judges import judge_files
from debate_rl.gguf_file import loads_by_name
from debate_rl.inference.local import end_tokens
from debate_rl.metrics.held_out import read_held_out, sentence
from debate_rl.runs.checkpoint import step_of, write_model
from debate_rl.runs.folder import plain_config
from debate_rl.runs.provenance import source_commit, versions
from debate_rl.runs.weights import load_kept, newest_weights, version_of

MARK = "export.json"
"""The file that marks a folder as an export. Only exports are ever replaced."""
BASE = "base"
"""The subfolder of an export for the base of an adapter, if peft cannot load the base by name."""
DType = Literal["float32", "bfloat16", "float16"]


class Exported(NamedTuple):
    """What was written: the folder, "adapter", "merged" or "full", and the checkpoint that it came from."""

    folder: Path
    kind: str
    checkpoint: Path


def export_run(
    run: Path,
    config: Config,
    out: Path,
    *,
    merge: bool = False,
    dtype: DType | None = None,
    judge: bool = False,
) -> Exported:
    """Write the newest weights of a run to ``out`` with all files that are needed to load them.

    A LoRA run exports its adapter, or with ``merge`` the base with the adapter merged in; any other run
    exports its full weights. ``judge``: write full weights, with the debate's protocol and prompts.
    ``dtype``: the type of the written weights; None keeps the type in which they were trained. The folder
    appears complete or not at all. An earlier export of the same run is replaced; ValueError if ``out``
    contains anything else.
    """
    _refuse_other(out, run)
    path = newest_weights(run)
    model, tokenizer = _loaded(config, path)
    kind = ("merged" if merge or judge else "adapter") if config.model.lora_rank else "full"
    with _appearing(out) as fresh:
        _write_weights(model, fresh, config, kind, out, dtype)
        tokenizer.save_pretrained(fresh)
        settings = _generation_settings(config, model, tokenizer)
        for target in (fresh, fresh / BASE):  # whoever loads an adapter gets the settings of its base
            if target.is_dir():
                settings.save_pretrained(target)
        steps = step_of(path) if path.parent.name == "checkpoints" else 0  # a warm start has none
        write_text(fresh / "README.md", _card(run, config, kind, steps, out))
        for name, text in judge_files(config.debate, config.model).items() if judge else ():
            write_text(fresh / name, text)
        facts = {
            "run": str(run.resolve()),
            "checkpoint": path.relative_to(run).as_posix(),
            "policy_version": version_of(path),
            "kind": kind,
            "commit": source_commit(),
            "versions": versions(),
        }
        write_text(fresh / MARK, json.dumps(facts, indent=2))
    return Exported(out, kind, path)


def _loaded(config: Config, path: Path) -> tuple[Any, Any]:
    """Return the model with a checkpoint's weights, in this process, and its tokenizer."""
    if config.engine.kind != "local":
        return import_module(f"debate_rl.backends.{config.engine.kind}_api").load_trained(config, path)
    whole = config.model.model_copy(update={"quantization": "none"})  # the adapter fits the base as it was
    return load_kept(config.model_copy(update={"model": whole}), path)


def _generation_settings(config: Config, model: Any, tokenizer: Any) -> Any:
    """Return how the policy was sampled in training: unfiltered, at the mean temperature of its agents."""
    from transformers import GenerationConfig

    temperature = fmean(persona.temperature for persona in config.debate.agent_personas)
    sampled: dict[str, Any] = {"do_sample": False}
    if temperature:
        sampled = {"do_sample": True, "temperature": round(temperature, 4), "top_p": 1.0, "top_k": 0}
    return GenerationConfig(
        **sampled,
        max_new_tokens=config.debate.max_tokens + config.debate.thinking_tokens,
        eos_token_id=sorted(end_tokens(model, tokenizer)),
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
    )


def _write_weights(
    model: Any, fresh: Path, config: Config, kind: str, out: Path, dtype: DType | None
) -> None:
    import torch

    def typed(weights: Any) -> Any:
        return weights if dtype is None else weights.to(getattr(torch, dtype))

    if kind != "adapter":
        if kind == "merged":
            model = (model.float() if dtype == "float32" else model).merge_and_unload()
        write_model(fresh, typed(model))
        return
    name = config.model.name_or_path
    base = str(out.resolve() / BASE)
    if loads_by_name(name):  # the whole path, as the adapter may be loaded from anywhere
        path = Path(name).expanduser()
        base = str(path.resolve()) if path.is_dir() else name
    model.peft_config["default"].base_model_name_or_path = base
    write_model(fresh, typed(model))
    if not loads_by_name(name):
        write_model(fresh / BASE, model.unload())


def loading_code(folder: Path | str) -> str:
    """Return the three lines that load a model and its tokenizer."""
    return (
        "from transformers import AutoModelForCausalLM, AutoTokenizer\n"
        f"tokenizer = AutoTokenizer.from_pretrained({str(folder)!r})\n"
        f'model = AutoModelForCausalLM.from_pretrained({str(folder)!r}, dtype="auto")'
    )


def _card(run: Path, config: Config, kind: str, step: int, folder: Path) -> str:
    """Return the README.md of the weights after ``step`` steps: what they can do, and how they were made."""
    name = config.model.name_or_path
    hub = bool(name) and not Path(name).expanduser().exists()
    made = {"adapter": "LoRA adapter", "merged": "weights with the LoRA adapter merged in", "full": "weights"}
    debate = f"{config.debate.num_agents} agents, {config.debate.num_rounds} rounds, {config.env.kind}"
    tags = "debate-rl, reinforcement-learning, grpo" + (", lora" if config.model.lora_rank else "")
    lines = [
        "---",
        *([f"base_model: {json.dumps(name)}"] if hub else []),
        f"library_name: {'peft' if kind == 'adapter' else 'transformers'}",
        "pipeline_tag: text-generation",
        f"tags: [{tags}]",
        "---",
        f"# {folder.resolve().parent.name if folder.name == 'export' else folder.name}",
        "",
        sentence([one for one in read_held_out(run) if one.step <= step]),
        "",
        f"The {made[kind]} after {step} steps of reinforcement learning by multi-agent debate ({debate}). "
        f"Base: {name or 'a small Qwen3 model built from random weights'}.",
        "",
        *("```python", loading_code(folder), "```", ""),
    ]
    if kind == "adapter":
        lines.append(
            "transformers needs peft to load an adapter and reads the generation settings of the base;"
        )
        lines.append("the generation settings of training are in generation_config.json.")
        if not loads_by_name(name):
            lines.append("If the folder moves, adapter_config.json needs the new path of `base/`.")
        lines.append("")
    recipe = tomli_w.dumps(plain_config(config)).rstrip()
    fence = "```" if "```" not in recipe else "~~~~~~"
    lines += ["## Recipe", "", f"{fence}toml", recipe, fence, "", "## Made with", ""]
    facts: dict[str, Any] = read_json(run / "run.json") if (run / "run.json").exists() else {}
    start = (facts.get("starts") or [{}])[-1]
    hardware = start.get("hardware", {})
    rows = {
        "versions": ", ".join(f"{name} {number}" for name, number in start.get("versions", {}).items()),
        "commit": start.get("commit"),
        "processor": hardware.get("cpu"),
        "GPUs": ", ".join(hardware.get("gpus", [])),
        "data": ", ".join(f"{name} {checksum}" for name, checksum in facts.get("data", {}).items()),
        "seed": facts.get("seed"),
    }
    made = (f"- {name}: {value}" for name, value in rows.items() if value not in (None, ""))
    return "\n".join([*lines, *made, ""])


def _refuse_other(out: Path, run: Path) -> None:
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    try:
        made_from = read_json(out / MARK)["run"]
    except (OSError, ValueError, LookupError, TypeError):
        made_from = None
    if made_from != str(run.resolve()):
        holds = f"an export of {made_from}" if made_from else "something that is not an export"
        raise ValueError(f"--out {out}: contains {holds}; choose another folder")


@contextmanager
def _appearing(out: Path) -> Iterator[Path]:
    """Yield a hidden folder next to ``out``; if the block succeeds, the folder replaces ``out``."""
    fresh, old = (out.with_name(f".{out.name}.{word}") for word in ("unfinished", "replaced"))
    try:
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        yield fresh
        shutil.rmtree(old, ignore_errors=True)
        if out.exists():
            out.rename(old)
        fresh.rename(out)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        path = error.filename or out
        raise ValueError(f"--out {out}: cannot write {path}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
