"""The weights that a run kept: the newest, or those that a debate was held with."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from debate.files import read_json
from debate.seeds import derive_seed
from debate_rl.config import Config
from debate_rl.config.recipes import read_tables
from debate_rl.models import load_model
from debate_rl.runs.checkpoint import CheckpointError, damage, latest_good, load_checkpoint
from debate_rl.runs.checkpoint_folder import WARM_START, best_checkpoint, checkpoints, step_of
from debate_rl.runs.threads import use_threads
from debate_rl.warm_start.tokenizer import tiny_vocabulary


class KeptWeights(NamedTuple):
    """Weights of a run and the policy version that they are, as transcripts name it.

    ``path`` None: those that the run began with, which nothing but its recipe keeps.
    """

    path: Path | None
    version: int


def newest_weights(run: Path) -> Path:
    """Return the newest good checkpoint, or the warm start; ValueError where a run has neither."""
    path = latest_good(run / "checkpoints") or latest_good(run / WARM_START)
    if path is None:
        raise ValueError(f"{run}: holds no checkpoint; train it first")
    return path


def weights_of_version(run: Path, config: Config, version: int) -> KeptWeights:
    """Return the weights of a policy version, or the newest where no good checkpoint holds it (any more).

    Version 0 is what the run began with: the warm start, or without one the model of the recipe.
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
    started = latest_good(run / WARM_START)
    known = {
        "newest": good[-1:] or [path for path in (started,) if path],
        "best": [path for path in good if path == best_checkpoint(run / "checkpoints")],
        "start": [path for path in (started,) if path],
        "all": [path for path in (started, *good) if path],
    } | {str(step_of(path)): [path] for path in good}
    if not known.get(name):
        steps = ", ".join(str(step_of(path)) for path in good) or "none"
        raise ValueError(
            f"{run}: has no weights {name!r}: newest, best (train.keep_best), start (a warm start), all, "
            f"or the step of a checkpoint that is there: {steps}"
        )
    return known[name]


def start_of(name: str) -> Path:
    """Return the checkpoint that ``warm_start.from_run`` names, RUN or RUN@WEIGHTS.

    Without a name of weights it is the run's warm start; of a run that learnt from replies, the newest.
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
                f"warm_start.from_run={name}: holds no warm-started weights; {name}@newest or {name}@best "
                "takes those of a checkpoint"
            )
    try:
        return named_weights(Path(run), weights)[0]
    except (ValueError, OSError) as error:
        raise ValueError(f"warm_start.from_run={name}: {error}") from error


def load_kept(config: Config, path: Path | None) -> tuple[Any, Any]:
    """Return the run's model with the weights of a checkpoint (None: as it began) and its tokenizer."""
    model, tokenizer = load_run_model(config)
    if path is not None:
        load_checkpoint(path, model=model, restore_rng=False, verify=False)
    model.eval()
    return model, tokenizer


def load_run_model(config: Config) -> tuple[Any, Any]:
    """Return the model that a run begins with, and its tokenizer; on a CPU it has ``use_threads``."""
    use_threads(config)
    vocabulary = tiny_vocabulary(config)
    return load_model(config.model, vocabulary=vocabulary, seed=derive_seed(config.seed, "model"))


def version_of(path: Path) -> int:
    """Return the policy version of a checkpoint."""
    try:
        return int(read_json(path / "state.json")["state"]["policy_version"])
    except (ValueError, LookupError, TypeError) as error:
        raise CheckpointError(f"{path / 'state.json'}: has no policy version ({error})") from error
