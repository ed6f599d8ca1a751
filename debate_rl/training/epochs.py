"""How long a run is, in steps and in epochs. An epoch is one draw of every training problem."""

from __future__ import annotations

from math import floor

from debate_rl.config import Config


def with_epochs(config: Config, problems: int, *, capped: bool | None = None) -> Config:
    """Return the configuration with the steps that ``train.epochs`` of so many problems are, in whole ones.

    ``capped``: whether ``train.steps`` may end the run before; None: where it is given. ValueError for less
    than a step.

    >>> train = {"epochs": 2, "batch_size": 64}
    >>> with_epochs(Config.model_validate({"model": {"tiny": {}}, "train": train}), 3994).train.steps
    124
    """
    train = config.train
    if train.epochs is None:
        return config
    steps = floor(train.epochs * problems / train.batch_size)
    if not steps:
        raise ValueError(
            f"train.epochs = {train.epochs:g}: of {problems} problems that is less than one step of "
            f"train.batch_size = {train.batch_size}; raise it, or lower that"
        )
    capped = "steps" in train.model_fields_set if capped is None else capped
    done = min(steps, train.steps) if capped else steps
    return config.model_copy(update={"train": train.model_copy(update={"steps": done})})


def length_line(config: Config, problems: int) -> str:
    """Return one line: the steps of an epoch, and how many epochs the steps of the run are.

    >>> train = {"steps": 124, "batch_size": 64}
    >>> length_line(Config.model_validate({"model": {"tiny": {}}, "train": train}), 3994)
    'an epoch is 62.4 steps of 64 problems; 124 steps are 1.99 epochs'
    """
    each = problems / config.train.batch_size
    steps = config.train.steps
    return (
        f"an epoch is {each:.1f} steps of {config.train.batch_size} problems; {steps} steps are "
        f"{steps / each:.2f} epochs"
    )
