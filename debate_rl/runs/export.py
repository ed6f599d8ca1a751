"""A run's weights as a folder of the usual format, which other programs load without any code of ours."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from debate.files import read_json, write_text
from debate_rl.config import Config
from debate_rl.config.judges import judge_files
from debate_rl.gguf_file import loads_by_name
from debate_rl.inference.local import end_tokens
from debate_rl.runs.checkpoint import write_model
from debate_rl.runs.checkpoint_folder import step_of
from debate_rl.runs.kept_weights import load_kept, newest_weights, version_of
from debate_rl.runs.model_card import model_card
from debate_rl.runs.provenance import source_commit, versions
from transcripts import Record, read_records
from transcripts.names import shard_paths

MARK = "export.json"
"""The file by which an export is known again; nothing else is ever replaced."""
BASE = "base"
"""The folder within an export that holds the base of an adapter, where that base has no name of its own."""

DType = Literal["float32", "bfloat16", "float16"]


@dataclass(frozen=True, slots=True)
class Exported:
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
    """Write the newest weights of a run to ``out`` with all that is needed to load them.

    A LoRA run gives its adapter, or with ``merge`` the base with the adapter added in; any other run its
    whole weights. As a ``judge``'s the folder has its protocol and prompts too, and whole weights.
    ``dtype`` is that of the weights, None as trained. The folder appears as a whole or not at
    all; an earlier export of the same run is replaced, and ValueError refuses anything else in its place.
    """
    _refuse_other(out, run)
    path = newest_weights(run)
    whole = config.model.model_copy(update={"quantization": "none"})  # the adapter fits the base as it was
    model, tokenizer = load_kept(config.model_copy(update={"model": whole}), path)
    kind = ("merged" if merge or judge else "adapter") if config.model.lora_rank else "full"
    with _appearing(out) as fresh:
        _write_weights(model, fresh, config, kind, out, dtype)
        tokenizer.save_pretrained(fresh)
        settings = generation_settings(config, model, tokenizer)
        for target in (fresh, fresh / BASE):  # whoever loads an adapter gets the settings of its base
            if target.is_dir():
                settings.save_pretrained(target)
        prompt = _shown_prompt(run, tokenizer)
        card = model_card(run, config, kind=kind, step=_steps_of(path), folder=out, prompt=prompt)
        write_text(fresh / "README.md", card)
        for name, text in judge_files(config.debate, config.model).items() if judge else ():
            write_text(fresh / name, text)
        write_text(fresh / MARK, json.dumps(_facts(run, path, kind), indent=2))
    return Exported(out, kind, path)


def generation_settings(config: Config, model: Any, tokenizer: Any) -> Any:
    """Return how the policy was sampled in training: unfiltered, at the mean temperature of its agents."""
    from transformers import GenerationConfig

    temperature = fmean(persona.temperature for persona in config.debate.agent_personas)
    sampled = (
        {"do_sample": True, "temperature": round(temperature, 4)} if temperature else {"do_sample": False}
    )
    filters = {"top_p": 1.0, "top_k": 0} if temperature else {}
    return GenerationConfig(
        **sampled,
        **filters,
        max_new_tokens=config.debate.max_tokens + config.debate.thinking_tokens,
        eos_token_id=sorted(end_tokens(model, tokenizer)),
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
    )


def _write_weights(
    model: Any, fresh: Path, config: Config, kind: str, out: Path, dtype: DType | None
) -> None:
    if kind == "adapter":
        name = config.model.name_or_path
        base = _base_name(name) if loads_by_name(name) else str(out.resolve() / BASE)
        model.peft_config["default"].base_model_name_or_path = base
        write_model(fresh, _typed(model, dtype))
        if not loads_by_name(name):
            write_model(fresh / BASE, model.unload())
        return
    if kind == "merged":
        model = (model.float() if dtype == "float32" else model).merge_and_unload()
    write_model(fresh, _typed(model, dtype))


def _base_name(name: str) -> str:
    """Return the hub id, or the whole path of a folder: the adapter may be loaded from anywhere."""
    path = Path(name).expanduser()
    return str(path.resolve()) if path.is_dir() else name


def _typed(model: Any, dtype: DType | None) -> Any:
    import torch

    return model if dtype is None else model.to(getattr(torch, dtype))


def _steps_of(path: Path) -> int:
    """Return the training steps behind a checkpoint; a warm start has none."""
    return step_of(path) if path.parent.name == "checkpoints" else 0


def _shown_prompt(run: Path, tokenizer: Any) -> str | None:
    """Return the first prompt of the newest step, None where no transcript kept tokens of this model."""
    shards = shard_paths(run) if (run / "transcripts").is_dir() else []
    record = next(read_records(shards[-1]), None) if shards else None
    return first_prompt(record, tokenizer) if record else None


def first_prompt(record: Record, tokenizer: Any) -> str | None:
    """Return the first prompt of a debate, None where its tokens were not kept or are another model's."""
    ids = [token for turn in record.debate.turns[:1] for token in turn.completion.prompt_tokens]
    known = all(0 <= token < len(tokenizer) for token in ids)
    return tokenizer.decode(ids) if ids and known else None


def _facts(run: Path, path: Path, kind: str) -> dict[str, object]:
    return {
        "run": str(run.resolve()),
        "checkpoint": path.relative_to(run).as_posix(),
        "policy_version": version_of(path),
        "kind": kind,
        "commit": source_commit(),
        "versions": versions(),
    }


def _refuse_other(out: Path, run: Path) -> None:
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    try:
        made_from = read_json(out / MARK)["run"]
    except (OSError, ValueError, LookupError, TypeError):
        made_from = None
    if made_from != str(run.resolve()):
        holds = f"an export of {made_from}" if made_from else "something that is not an export"
        raise ValueError(f"--out {out}: holds {holds}; choose another folder")


@contextmanager
def _appearing(out: Path) -> Iterator[Path]:
    """Yield a hidden folder beside ``out`` that takes its place when all went well."""
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
