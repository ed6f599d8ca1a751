"""The weights that a run begins with: from its own warm start, from another run, or the model's own."""

from __future__ import annotations

from typing import Any

import torch

from debate.seeds import derive_seed
from debate.types import Policy
from debate_rl.config import Config
from debate_rl.engines import local_settings
from debate_rl.inference.local import LocalPolicy
from debate_rl.inference.wrapped import engine_of
from debate_rl.metrics.progress import parts_shown
from debate_rl.runs.checkpoint import (
    WARM_START,
    TrainState,
    checkpoints,
    latest_good,
    load_checkpoint,
    save_checkpoint,
)
from debate_rl.runs.folder import RunFolder
from debate_rl.runs.weights import start_of
from debate_rl.sampling.load_problems import Problems
from debate_rl.warm_start.training import warm_start

JITTER = 1e-6
"""The relative change of a weight: about ten times the rounding error of float32."""


def start_weights(
    config: Config, folder: RunFolder, model: Any, tokenizer: Any, data: Problems, policy: Policy
) -> None:
    """Load or compute the weights that a run starts from, and save them as the reference of the KL penalty.

    A resumed run loads the saved weights. ``train.jitter`` perturbs the weights of a new run before they are
    saved. Another run's weights are loaded before the folder becomes a run. ValueError if a run with
    checkpoints has lost its start weights: ``warm_start.from_run`` may have been trained further since.
    """
    settings, home = config.warm_start, folder.path / WARM_START
    wanted = settings.steps > 0 or settings.from_run is not None
    own = latest_good(home) if wanted else None
    if own is None and settings.from_run is not None and checkpoints(folder.checkpoints):
        raise ValueError(
            f"{home}: this run's start weights are missing or damaged, and {settings.from_run} may have "
            f"trained further since; restore the folder, or choose another run.dir"
        )
    path = own or (start_of(settings.from_run) if settings.from_run is not None else None)
    if path is not None:
        load_checkpoint(path, model=model, restore_rng=False, verify=False)
    if not folder.resumed:
        folder.record()
    if own is not None:
        return
    if path is None and wanted:
        engine = engine_of(policy)
        local = isinstance(engine, LocalPolicy)
        speaker = engine if local else LocalPolicy(model, tokenizer, **local_settings(config))
        with parts_shown(config.logging.progress) as parts:
            loss = warm_start(
                *(model, tokenizer, config, data.environment), encode=speaker.encode, advance=parts.advance
            )
            parts.say(f"warm start: loss {loss:.3f}")
    if config.train.jitter:
        perturb(model, derive_seed(config.seed, "jitter", config.train.jitter))
    if wanted:
        save_checkpoint(home, TrainState(step=config.warm_start.steps, seed=config.seed), model=model)


def perturb(model: Any, seed: int) -> None:
    """Change every weight that learns by about 1e-6 of its size, in place: w (1 + 1e-6 z), z standard normal.

    Raises ValueError if the numeric type is too coarse for such a change, as bfloat16 is.
    """
    generator, changed = torch.Generator().manual_seed(seed), False
    with torch.no_grad():
        for weight in (one for one in model.parameters() if one.requires_grad):
            factor = 1 + JITTER * torch.randn(weight.shape, generator=generator).double()
            before = weight.clone()
            weight.copy_((weight.cpu().double() * factor).to(weight.dtype))  # a Mac's GPU has no float64
            changed |= not torch.equal(weight, before)
    if not changed:
        raise ValueError(
            f"train.jitter: the weights' data type is too coarse for a relative change of {JITTER:g}; set "
            'model.dtype = "float32"'
        )
