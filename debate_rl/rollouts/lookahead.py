"""Hold the debates of later steps in a separate process while the learner trains on a step.

The debates of a step start once the sampling weights are at most ``train.async_level`` updates older than the
weights that the step updates. The step waits for all its debates, so no debate is dropped and short debates
are not preferred. A resumed run starts unfinished debates again.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import AbstractContextManager
from typing import Any

from debate.types import Policy
from debate_rl.config import Config
from debate_rl.engines import open_summarizer, with_remote, with_tools
from debate_rl.evaluation.grading import open_verifying
from debate_rl.inference.engine_pool import EnginePool, engine_client
from debate_rl.inference.remote import Gone, Remote, RemoteProcess, new_address
from debate_rl.inference.wrapped import engine_of
from debate_rl.rollouts.worker import Clock, Rollout, RolloutWorker
from debate_rl.sampling.draw_problems import Draw
from debate_rl.sampling.load_problems import load_run_problems

LOOK_S = 0.5
"""Seconds between checks of the engines while waiting for debates."""


class RolloutProcess:
    """A ``RolloutWorker`` in a separate process, which starts the debates of later steps early."""

    def __init__(
        self,
        config: Config,
        policy: Policy,
        interruptible: Callable[[], AbstractContextManager[None]],
        *,
        version: int,
        ema: Mapping[str, float],
    ) -> None:
        policy = engine_of(policy)
        assert isinstance(policy, EnginePool), policy
        self._config, self._pool, self._interruptible = config, policy, interruptible
        self._asked: dict[int, Future[Rollout]] = {}
        settings = {"config": config, "engines": policy.client_settings, "version": version, "ema": dict(ema)}
        address = new_address(policy.home, "rollouts")
        self._process = RemoteProcess("debate_rl.rollouts.lookahead:Steps", settings, address, policy.log)
        self._process.start()
        self._process.wait()
        self._remote = Remote(address)

    def roll_out(
        self, step: int, draw: Callable[[int], Draw], ema: Mapping[str, float], clock: Clock
    ) -> Rollout:
        """Request the debates of later steps, and return the debates of this step when all have ended."""
        train = self._config.train
        for later in range(step, min(step + train.async_level + 1, train.steps)):
            if later not in self._asked:
                self._asked[later] = self._remote.call("roll_out", later, draw(later))
        with self._interruptible():
            rollout = self._waited_for(self._asked.pop(step))
        clock.lap("rollout")
        return rollout

    def published(self, version: int, ema: Mapping[str, float]) -> None:
        """Start the debates that were waiting for weights of this version."""
        self._remote.call("published", version, dict(ema)).result()

    def close(self) -> None:
        """End the process."""
        self._process.close()

    def _waited_for(self, asked: Future[Rollout]) -> Rollout:
        while True:
            try:
                return asked.result(timeout=LOOK_S)
            except NotYet:
                self._pool.states()  # raises an error if engines have failed
            except Gone:
                why = f"train.async_level: the process that holds the debates ended: {self._process.ended()}"
                raise Gone(why) from None


class Steps:
    """Serves the debates of steps within the separate process, once the weights are new enough."""

    def __init__(
        self, config: Config, engines: Mapping[str, Any], version: int, ema: dict[str, float]
    ) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the parent process has shown the warnings
            data = load_run_problems(config)
        self._worker = RolloutWorker(
            config,
            data,
            with_tools(config, lambda: with_remote(config, engine_client(**engines))),
            verifying=open_verifying(config),
            summarizer=open_summarizer(config),
        )
        self._lookahead, self._version, self._ema = config.train.async_level, version, ema
        self._changed = asyncio.Condition()

    async def roll_out(self, step: int, drawn: Draw) -> Rollout:
        """Hold and return a step's debates once the weights are at most ``async_level`` updates old."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._version >= step - self._lookahead)
        return await asyncio.to_thread(self._worker.roll_out, step, lambda _: drawn, self._ema, Clock())

    async def published(self, version: int, ema: dict[str, float]) -> None:
        """Store the version of the engines' weights, and wake the steps that wait for it."""
        async with self._changed:
            self._version, self._ema = version, ema
            self._changed.notify_all()
