"""Opens the policies that a command evaluates, and finds their problems and the folder for their replies."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from debate import Policy, Problem
from debate_rl.config import Config
from debate_rl.config.models import ENGINES
from debate_rl.config.recipes import open_run_or_recipe
from debate_rl.engines import end_engines, open_policy
from debate_rl.evaluation.folder import default_folder
from debate_rl.evaluation.play import Unopened
from debate_rl.runs.weights import named_weights
from debate_rl.sampling.load_problems import load_held_out
from envs import DataError, Environment

MAX_LIVE = 128
"""Maximum number of debates open at a time if ``train.max_live`` is not set."""
NO_PROBLEMS = "held_out: there are no problems to evaluate on; set held_out.limit and held_out.kind"


def weights_named(run: Path | None, name: str, what: str) -> Path | None:
    """Return the checkpoint that a name means, or None for a recipe.

    ValueError if the name does not mean exactly one checkpoint.
    """
    if run is None:
        if name != "newest":
            raise ValueError(f"--weights {name}: {what} is a recipe without checkpoints; name a run")
        return None
    chosen = named_weights(run, name)
    if len(chosen) != 1:
        raise ValueError(f"--weights {name}: matches {len(chosen)} checkpoints; name one")
    return chosen[0]


def judge_of(name: str, overrides: Iterable[str] = ()) -> tuple[Config, Path | None]:
    """Return the configuration of the model that --judge names, with tools off, and its newest weights."""
    run, config = open_run_or_recipe(name, overrides)
    alone = config.model_copy(update={"debate": config.debate.model_copy(update={"tools": "none"})})
    return alone, weights_named(run, "newest", name)


def graded_problems(config: Config, key: str) -> tuple[Environment, tuple[Problem, ...]]:
    """Return the environment that grades the held-out problems, and the problems.

    ``key`` names the data set in error messages. DataError if there are no problems, or if a
    problem has no gold answer.
    """
    environment, problems = load_held_out(config, key=key)
    if not problems:
        raise DataError(NO_PROBLEMS)
    if known := next((one.id for one in problems if one.kind in ("open", "rubric")), None):
        raise DataError(f"problem {known}: has no gold answer; strategies need problems with gold answers")
    return environment, problems


def kept_folder(
    kind: str, run: Path | None, config: Config, weights: Path | None, what: Mapping[str, object]
) -> Path:
    """Return the folder for the replies: in the run's folder, or for a recipe in the working directory."""
    home = run / kind if run is not None else Path(kind) / Path(config.run.dir).name
    return default_folder(home, weights, what)


def requests_at_once(config: Config) -> int | None:
    """Return how many requests may be in flight, or None for an engine that schedules requests itself."""
    return None if config.model.policy in ENGINES else config.train.sample_batch_size


@contextmanager
def policy_of(config: Config, weights: Path | None) -> Iterator[Unopened]:
    """Yield a policy that is opened at its first request. Its engines are closed at the end of the block."""
    opened: list[Policy] = []

    def policy() -> Policy:
        if not opened:
            opened.append(open_policy(config, weights))
        return opened[0]

    try:
        yield Unopened(policy)
    finally:
        if opened and (config.model.policy == "vllm" or config.debate.tools != "none"):
            end_engines(opened[0])
        opened.clear()
        gc.collect()  # frees memory for the next weights
        if "torch" in sys.modules:
            sys.modules["torch"].cuda.empty_cache()
