"""The policy that a run would begin with, opened without a run folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from debate.concurrency import run_async
from debate.types import Policy
from debate_rl.config import Config
from debate_rl.engines import end_engines, freeze_start, local_settings, make_policy, open_policy
from debate_rl.inference.local import LocalPolicy
from debate_rl.metrics.progress import parts_shown
from debate_rl.problems import Problems
from debate_rl.runs.checkpoint import load_checkpoint
from debate_rl.runs.weights import newest_weights
from debate_rl.training.start_weights import weights_of
from debate_rl.warm_start.training import warm_start


class Opened(NamedTuple):
    """What speaks, and the model that would learn; None where only a server has it."""

    policy: Policy
    model: Any


@contextmanager
def opened_policy(
    config: Config, data: Problems, run: Path | None, tell: Callable[[str], None]
) -> Iterator[Opened]:
    """Open the policy with the weights that training begins with, or with the newest of a run that is there.

    A warm start of the recipe's own is done in memory, and nothing of it is kept; ``tell`` gets its progress.
    """
    with ExitStack() as stack:
        if config.model.policy == "openai":
            policy = open_policy(config, None)
            stack.callback(end_engines, policy)
            yield Opened(policy, None)
            return
        model, tokenizer, policy = make_policy(config)
        stack.callback(end_engines, policy)
        started = config.warm_start
        if run is not None and "frozen" in config.debate.seats:
            freeze_start(config, run, model, policy)
        path = newest_weights(run) if run is not None else None
        if path is None and started.from_run is not None:
            path = weights_of(started.from_run)
        if path is not None:
            load_checkpoint(path, model=model, restore_rng=False, verify=False)
        elif started.steps:
            speaker = LocalPolicy(model, tokenizer, **local_settings(config))
            tell(f"first the warm start of {started.steps} steps, in memory, as a run would make it")
            with parts_shown() as parts:
                loss = warm_start(
                    *(model, tokenizer, config, data.environment),
                    encode=speaker.encode,
                    advance=parts.advance,
                )
            tell(f"warm start: loss {loss:.3f}")
        run_async(policy.update(model, policy.version))
        yield Opened(policy, model)
