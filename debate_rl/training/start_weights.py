"""The weights that a run begins with: of its own warm start, of another run's, or as the model has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from debate.policies.local import LocalPolicy
from debate.types import Policy
from debate_rl.config import Config
from debate_rl.engines import local_settings
from debate_rl.problems import Problems
from debate_rl.runs.checkpoint import TrainState, latest_good, load_checkpoint, save_checkpoint
from debate_rl.runs.checkpoint_folder import WARM_START
from debate_rl.runs.folder import RunFolder
from debate_rl.warm_start.training import warm_start


def start_weights(
    config: Config, folder: RunFolder, model: Any, tokenizer: Any, data: Problems, policy: Policy
) -> None:
    """Warm-start a new run and keep the result, the reference of the KL; an old run reads it again.

    The folder becomes a run once what is taken over from another is known to fit.
    """
    settings, home = config.warm_start, folder.path / WARM_START
    wanted = settings.steps > 0 or settings.from_run is not None
    own = latest_good(home) if wanted else None
    path = own or (_warm_start_of(settings.from_run) if settings.from_run is not None else None)
    if path is not None:
        load_checkpoint(path, model=model, restore_rng=False, verify=False)
    if not folder.resumed:
        folder.record()
    if own is not None or not wanted:
        return
    if path is None:
        own_model = isinstance(policy, LocalPolicy)
        speaker = policy if own_model else LocalPolicy(model, tokenizer, **local_settings(config))
        warm_start(model, tokenizer, config, data.environment, encode=speaker.encode)
    save_checkpoint(home, TrainState(step=config.warm_start.steps, seed=config.seed), model=model)


def _warm_start_of(run: str) -> Path:
    path = latest_good(Path(run) / WARM_START)
    if path is None:
        raise ValueError(f"warm_start.from_run={run}: holds no warm-started weights")
    return path
