"""Find the checkpoint with the requested weights of a run, and load it into a model."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from debate.files import read_json
from debate.seeds import derive_seed
from debate_rl.config import Config
from debate_rl.config.recipes import read_tables
from debate_rl.models import load_model, resolve_device
from debate_rl.runs.checkpoint import (
    WARM_START,
    CheckpointError,
    best_checkpoint,
    checkpoints,
    damage,
    latest_good,
    load_checkpoint,
    step_of,
)
from debate_rl.runs.provenance import usable_cores
from debate_rl.warm_start.tokenizer import tiny_vocabulary

if TYPE_CHECKING:
    from torch import Tensor


class KeptWeights(NamedTuple):
    """A checkpoint and its policy version, as in transcripts. ``path`` None means the recipe's model."""

    path: Path | None
    version: int


def newest_weights(run: Path) -> Path:
    """Return the newest undamaged checkpoint, or else the warm start; ValueError if a run has neither."""
    path = latest_good(run / "checkpoints") or latest_good(run / WARM_START)
    if path is None:
        raise ValueError(f"{run}: has no checkpoint; train it first")
    return path


def weights_of_version(run: Path, config: Config, version: int) -> KeptWeights:
    """Return the weights of a policy version, or the newest if no undamaged checkpoint has that version.

    Version 0 means the start weights: the warm start, or else the model of the recipe.
    """
    for path in reversed([*checkpoints(run / WARM_START), *checkpoints(run / "checkpoints")]):
        if damage(path) is None and version_of(path) == version:
            return KeptWeights(path, version)
    if version == 0 and not config.warm_start.steps and config.warm_start.from_run is None:
        return KeptWeights(None, 0)
    newest = newest_weights(run)
    return KeptWeights(newest, version_of(newest))


def named_weights(run: Path, name: str) -> list[Path]:
    """Return the checkpoints that a name means: "newest", "best", "start" (warm start), "all", or a step."""
    good = [path for path in checkpoints(run / "checkpoints") if damage(path) is None]
    started = [path for path in (latest_good(run / WARM_START),) if path]
    known = {
        "newest": good[-1:] or started,
        "best": [path for path in good if path == best_checkpoint(run / "checkpoints")],
        "start": started,
        "all": [*started, *good],
    } | {str(step_of(path)): [path] for path in good}
    if not known.get(name):
        steps = ", ".join(str(step_of(path)) for path in good) or "none"
        raise ValueError(
            f"{run}: has no weights {name!r}; use newest, best (train.keep_best), start (a warm start), all, "
            f"or the step of a checkpoint: {steps}"
        )
    return known[name]


def version_of(path: Path) -> int:
    """Return the policy version of a checkpoint."""
    try:
        return int(read_json(path / "state.json")["state"]["policy_version"])
    except (ValueError, LookupError, TypeError) as error:
        raise CheckpointError(f"{path / 'state.json'}: has no policy version ({error})") from error


def start_of(name: str) -> Path:
    """Return the checkpoint that ``warm_start.from_run`` names, RUN or RUN@WEIGHTS.

    RUN alone means its warm start, or the newest checkpoint of a supervised run.
    """
    run, at, weights = name.rpartition("@")
    named = bool(at) and not Path(name).exists()
    if not named:
        run, weights = name, "newest"
        if (path := latest_good(Path(run) / WARM_START)) is not None:
            return path
        config = Path(run) / "config.toml"
        sft = read_tables(config).get("sft") if config.is_file() else None
        if not (isinstance(sft, dict) and sft.get("data")):
            raise ValueError(
                f"warm_start.from_run={name}: has no warm-started weights; use {name}@newest or {name}@best "
                f"for the weights of a checkpoint"
            )
    try:
        return named_weights(Path(run), weights)[0]
    except (ValueError, OSError) as error:
        raise ValueError(f"warm_start.from_run={name}: {error}") from error


def load_kept(config: Config, path: Path | None) -> tuple[Any, Any]:
    """Return the run's model with the weights of a checkpoint (None: start weights) and its tokenizer."""
    model, tokenizer = load_run_model(config)
    if path is not None:
        load_checkpoint(path, model=model, restore_rng=False, verify=False)
    model.eval()
    return model, tokenizer


def load_run_model(config: Config) -> tuple[Any, Any]:
    """Return the model that a run begins with and its tokenizer; set threads on a CPU."""
    use_threads(config)
    vocabulary = tiny_vocabulary(config)
    return load_model(config.model, vocabulary=vocabulary, seed=derive_seed(config.seed, "model"))


def load_weights(model: Any, folder: Path) -> None:
    """Load weights saved by ``save_pretrained``, in place; ValueError if names or shapes do not match."""
    if hasattr(model, "load_pretrained"):  # a service, which has the weights
        model.load_pretrained(folder)
    else:
        (_load_adapter if hasattr(model, "peft_config") else _load_all)(model, folder)


def _load_adapter(model: Any, folder: Path) -> None:
    from peft import set_peft_model_state_dict
    from safetensors.torch import load_file

    path = folder / "adapter_model.safetensors"
    if not path.is_file():
        raise ValueError("it has full weights, but this run trains an adapter")
    saved = load_file(path)
    ranks = {tensor.shape[0] for name, tensor in saved.items() if "lora_A" in name}
    own = {config.r for config in model.peft_config.values()}
    if ranks and len(own) == 1 and ranks != own:
        shown = ", ".join(map(str, sorted(ranks)))
        raise ValueError(f"the adapter has rank {shown}, but this run's has {own.pop()} (model.lora_rank)")
    result = set_peft_model_state_dict(model, saved)
    missing = [name for name in result.missing_keys if "lora_" in name]
    if missing or result.unexpected_keys:
        name = (missing or result.unexpected_keys)[0]
        raise ValueError(f"the adapter has other layers than this run's: {name}")


def _load_all(model: Any, folder: Path) -> None:
    """Copy the saved weights by name; use from_pretrained for architectures that save other names."""
    from safetensors.torch import load_file

    saved: dict[str, Tensor] = {}
    for path in sorted(folder.glob("model*.safetensors")):
        saved |= load_file(path)
    if not saved:
        raise ValueError("it has an adapter, but this run trains full weights")
    own = model.state_dict()
    if saved.keys() - own.keys():
        loaded, info = type(model).from_pretrained(folder, dtype=model.dtype, output_loading_info=True)
        _refuse_other([*info["missing_keys"], *info["unexpected_keys"]])
        saved = loaded.state_dict()
    tied = set(getattr(model, "all_tied_weights_keys", None) or {})
    missing = own.keys() - saved.keys() - tied
    others = (name for name in saved if name not in own or own[name].shape != saved[name].shape)
    _refuse_other([*missing, *others])
    model.load_state_dict(saved, strict=False)
    model.tie_weights()


def _refuse_other(names: list[str]) -> None:
    if names:
        raise ValueError(f"the weights are of another model: {sorted(names)[0]}")


NARROW = 512
"""Models below this hidden width use one thread: waking a second takes longer than a matrix product."""
EXPLICIT = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
FACT = "threads"
"""The key of the number of threads in run.json."""


def use_threads(config: Config) -> tuple[int, str] | None:
    """Set torch's threads for a model on a CPU; return their number and a line about it; None on a GPU.

    A narrow model gets one thread, other models one per two cores, because a thread that waits for a core
    stalls all others. A resumed run keeps its number. The environment (``EXPLICIT``) overrides both, and a
    lower number set by ``torch.set_num_threads`` is kept.
    """
    import torch

    if resolve_device(config.model.device).type != "cpu":
        return None
    kept, cores = _kept(Path(config.run.dir)), usable_cores()
    if given := next((name for name in EXPLICIT if os.environ.get(name)), None):
        count = torch.get_num_threads()
        other = "" if kept in (None, count) else f"; this run had {kept} before, and rounding may differ"
        return count, f"threads: {count} of {cores} cores, by {given}{other}"
    width = config.model.tiny.hidden_size if config.model.tiny else NARROW  # all others are wide
    count = kept or min(1 if width < NARROW else max(1, cores // 2), torch.get_num_threads())
    torch.set_num_threads(count)
    why = "as this run had before" if kept else "for a narrow model" if width < NARROW else "half of them"
    return count, f"threads: {count} of {cores} cores, {why}; OMP_NUM_THREADS sets another number"


def _kept(run: Path) -> int | None:
    """Return the number of threads of a run's earlier launch; None if unknown."""
    try:
        facts = read_json(run / "run.json")
    except (OSError, ValueError):
        return None
    count = facts.get(FACT) if isinstance(facts, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and 0 < count < 1025 else None
