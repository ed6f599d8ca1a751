"""vLLM engines in their own processes, as one policy; an engine that ends or falls silent is restarted.

All turns of a debate go to one engine, which has their common prompts in its prefix cache. A request is a
pure function of its seed and the weights: what an engine was doing when it ended is asked again.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as NoReply
from contextlib import suppress
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from debate.concurrency import run_async
from debate_rl.inference.remote import PING, Address, Gone, Remote, RemoteError, RemoteProcess, new_address
from debate_rl.inference.server import ServerError
from debate_rl.inference.speech import SpeakingPolicy, Speech, speech_of
from debate_rl.inference.vllm import EngineState, VLLMPolicy
from debate_rl.inference.vllm_server import VLLMServer
from debate_rl.inference.vllm_weights import Link, Transfer

if TYPE_CHECKING:
    from debate.types import Completion, SampleRequest
    from debate_rl.inference.engine_report import EngineReport

MOST_STARTS, WITHIN_S = 3, 600.0
"""An engine that restarted this often within this many seconds is given up."""
SILENT_S = 300.0
"""A busy engine that finishes no step for this long is restarted."""
LOOK_S = 0.5
"""Between two looks at the engines."""
PING_S = 30.0
"""For the reply of an engine's process; its reader is free even while the engine computes."""
AGAIN_S = 0.2
"""Between two attempts to ask an engine that is being restarted."""
DEBATES_KEPT = 65_536
"""Debates whose engine is remembered."""
BROKEN = 70
"""The exit code of an engine that cannot go on."""


class EngineError(RemoteError):
    """Engines that cannot go on."""


class EngineClient(SpeakingPolicy):
    """A policy over running engines, from any thread, event loop or process; their owner updates them."""

    def __init__(self, addresses: Sequence[Address], speech: Speech, *, version: int = 0) -> None:
        self.version = version
        self._speech = speech
        self.addresses = tuple(addresses)
        self._remotes: dict[int, Remote] = {}
        self._homes: dict[str, int] = {}
        self._at: Counter[int] = Counter()
        self._lock = threading.Lock()

    async def sample(self, request: SampleRequest) -> Completion:
        """Answer one request by the engine of its debate, again where that ended meanwhile."""
        return await self._ask(self._home(request.debate), "sample", request)

    async def update(self, weights: object, version: int) -> None:
        """Note the version: the engines' owner gives them their weights."""
        self.version = version

    def freeze(self) -> None:
        """Do nothing: the base model without an adapter answers for frozen seats."""

    async def _ask(self, index: int, method: str, *arguments: object) -> Any:
        while True:
            with suppress(Gone):
                await self._prepare(index)
                return await self._remote(index).ask(method, *arguments)
            self._refuse_dead()
            await asyncio.sleep(AGAIN_S)

    async def _prepare(self, index: int) -> None:
        """Prepare an engine for requests. Raises Gone if the engine cannot be reached."""

    def _refuse_dead(self) -> None:
        """Raise EngineError if ended engines will not be restarted."""

    def _remote(self, index: int) -> Remote:
        with self._lock:
            remote = self._remotes.get(index)
            if remote is None or not remote.alive:
                remote = self._remotes[index] = Remote(self.addresses[index])
            return remote

    def _home(self, debate: str) -> int:
        """Return the engine of a debate. A new debate gets the engine with the fewest debates."""
        with self._lock:
            if debate not in self._homes:
                if len(self._homes) >= DEBATES_KEPT:
                    self._at[self._homes.pop(next(iter(self._homes)))] -= 1
                self._homes[debate] = min(range(len(self.addresses)), key=lambda index: self._at[index])
                self._at[self._homes[debate]] += 1
            return self._homes[debate]

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            for remote in self._remotes.values():
                remote.close()


def engine_client(addresses: Sequence[Address], **speech: Any) -> EngineClient:
    """Return a policy over engines that another process owns; see ``EnginePool.client_settings``."""
    return EngineClient(addresses, speech_of(**speech))


class EnginePool(EngineClient):
    """Engines, started and watched here, with the weights of a model in this process.

    ``settings`` are those of ``VLLMPolicy``, or of ``VLLMServer``, of each engine. ``environments``: of each,
    what its process finds in its environment, for instance its GPU. ``write``: puts a model's weights into a
    folder below ``folder``, or else below ``home``, the pool's own in memory, with its sockets; ``kept`` of
    those before the newest stay, for servers that restart while requests are under way with an older one.
    A busy engine that ends no step for ``SILENT_S`` is killed and restarted. What engines print goes to
    ``log``. ``transfer``: how a model's weights are sent; None writes them, and an engine that is restarted
    reads them again.

    Weights that are sent are those of the model at that moment, so nobody may ask this pool while the model
    changes: an engine that was restarted is given them when next this pool is asked. Clients may ask at
    any time, and wait.
    """

    def __init__(
        self,
        settings: Sequence[dict[str, Any]],
        environments: Sequence[dict[str, str]],
        *,
        write: Callable[[Any, Path], None],
        home: TemporaryDirectory[str],
        folder: TemporaryDirectory[str] | None = None,
        kept: int = 0,
        log: Path,
        transfer: Transfer | None = None,
    ) -> None:
        self._settings, self._write, self._home_folder = settings, write, home
        self._weights: Path | None = None
        self._written: deque[Path] = deque()
        self._transfer, self._model = transfer, None
        self._links: dict[int, Link] = {}
        self._lacking: set[int] = set()
        self._sending = threading.Lock()
        self._failed: EngineError | None = None
        self.home, self.log = Path(home.name), log
        self._write_folder, self._kept = folder or home, kept
        addresses = [new_address(self.home, f"engine_{index}") for index in range(len(environments))]
        self._processes = [
            RemoteProcess("debate_rl.inference.engine_pool:Engine", {}, address, log, environment)
            for address, environment in zip(addresses, environments, strict=True)
        ]
        self._starts: deque[float] = deque(maxlen=MOST_STARTS)
        self._closing = threading.Event()
        self.version = 0
        try:
            for index in range(len(self._processes)):
                self._start(index)
            for process in self._processes:
                process.wait()
            self.client_settings = self._client_settings(addresses)
            speech = {key: value for key, value in self.client_settings.items() if key != "addresses"}
            super().__init__(addresses, speech_of(**speech))
        except BaseException:
            self._kill()
            raise
        self._watcher = threading.Thread(target=self._watch, name="engines", daemon=True)
        self._watcher.start()

    async def update(self, weights: object, version: int) -> None:
        """Give all engines the weights of a model, or those in a folder; none keeps the ones before."""
        if isinstance(weights, str | Path):
            await self._update_from(Path(weights), version)
        elif self._transfer is None:
            folder = Path(self._write_folder.name) / f"version_{version}_{time.monotonic_ns()}"
            self._written.append(folder)
            await asyncio.to_thread(self._write, weights, folder)
            await self._update_from(folder, version)
        else:
            self._weights, self._model, self.version = None, weights, version
            self._lacking.update(self._engines)
            for index in self._engines:
                await self._ask(index, "context_tokens")  # whatever it is asked, it gets the weights first

    async def _update_from(self, folder: Path, version: int) -> None:
        self._weights, self._model, self.version = folder, None, version  # for an engine that restarts
        self._lacking.clear()
        await asyncio.gather(*(self._ask(index, "update", str(folder), version) for index in self._engines))
        while len(self._written) > 1 + self._kept:
            shutil.rmtree(self._written.popleft(), ignore_errors=True)

    async def _prepare(self, index: int) -> None:
        if index in self._lacking:
            await asyncio.to_thread(self._send, index)

    def _send(self, index: int) -> None:
        """Send the model's weights to an engine that lacks them; EngineError if they do not arrive.

        Raises Gone if the engine has ended; the weights are sent again after the engine's restart.
        """
        with self._sending:
            if index not in self._lacking or self._transfer is None:
                return
            remote = self._remote(index)
            if index not in self._links:
                self._links[index] = Link(self._transfer, remote)
            try:
                self._links[index].send(self._model, self.version)
            except Gone:
                self._links.pop(index, None)
                raise
            except Exception as error:
                raise EngineError(
                    f"engine {index} did not get the weights: {error} (see {self.log})"
                ) from error
            self._lacking.discard(index)

    async def check(self, requests: Sequence[SampleRequest]) -> tuple[EngineReport, ...]:
        """Have every engine answer requests, and report what it computed them with."""
        reports: list[tuple[EngineReport, ...]] = await asyncio.gather(
            *(self._ask(index, "check", tuple(requests)) for index in self._engines)
        )
        return tuple(chain.from_iterable(reports))

    def states(self) -> list[EngineState]:
        """Return what each engine has done; EngineError if one has been given up."""
        self._refuse_dead()
        for index in tuple(self._lacking):
            with suppress(Gone):
                self._send(index)
        return [state for index in self._engines if (state := self._state(index)) is not None]

    @property
    def _engines(self) -> range:
        return range(len(self.addresses))

    def close(self) -> None:
        """End the engines."""
        self._closing.set()
        self._watcher.join()
        super().close()
        self._kill()
        self._write_folder.cleanup()
        self._home_folder.cleanup()

    def _client_settings(self, addresses: Sequence[Address]) -> dict[str, Any]:
        """Return the settings from which ``engine_client`` builds another process's policy."""
        context: int = Remote(addresses[0]).call("context_tokens").result()
        speech = {key: self._settings[0][key] for key in ("model_path", "chat", "thinking", "raw_prompt")}
        return {"addresses": tuple(addresses), "context_tokens": context, **speech}

    def _kill(self) -> None:
        for process in self._processes:
            process.close()

    def _start(self, index: int) -> None:
        process = self._processes[index]
        if lacking := self._model is not None:
            self._lacking.add(index)
            if (link := self._links.pop(index, None)) is not None:
                link.close()
        process.settings = {
            "settings": self._settings[index],
            "weights": None if self._weights is None else str(self._weights),
            "version": self.version,
            "lacking": lacking,
        }
        process.start()

    def _refuse_dead(self) -> None:
        if self._failed is not None:
            raise self._failed

    def _watch(self) -> None:
        """Restart each engine that ends, until the engines are closed or restarting is given up."""
        self._heard = [(0, time.monotonic())] * len(self._processes)
        while not self._closing.wait(LOOK_S) and self._failed is None:
            for index, process in enumerate(self._processes):
                why = process.ended() or self._silence(index)
                if why and not self._closing.is_set():
                    self._start_anew(index, why)
                    self._heard[index] = 0, time.monotonic()

    def _silence(self, index: int) -> str:
        """Return a message if a busy engine has finished no step for too long, else ""."""
        steps, heard = self._heard[index]
        state = self._state(index)
        if state is not None and (not state.busy or state.steps != steps):
            heard = time.monotonic()
            self._heard[index] = state.steps, heard
        silent = time.monotonic() - heard
        if silent <= SILENT_S:
            return ""
        return f"process {self._processes[index].pid} ended no step for {silent:.0f} s (see {self.log})"

    def _state(self, index: int) -> EngineState | None:
        """Return the state that an engine reports, or None if it does not answer."""
        with suppress(RemoteError, NoReply):
            state: EngineState = self._remote(index).call(PING).result(timeout=min(PING_S, SILENT_S))
            return state
        return None

    def _start_anew(self, index: int, why: str) -> None:
        process = self._processes[index]
        process.close()
        now = time.monotonic()
        if len(self._starts) == MOST_STARTS and now - self._starts[0] < WITHIN_S:
            starts = f"had to be started anew in {WITHIN_S / 60:.0f} minutes"
            self._failed = EngineError(f"{MOST_STARTS} engines of model.policy=vllm {starts}; {why}")
            return
        self._starts.append(now)
        self._start(index)
        try:
            process.wait()
        except Gone as gone:
            with self.log.open("a") as log:  # the next look finds it ended
                print(gone, file=log)
        except Exception as error:
            self._failed = EngineError(f"an engine of model.policy=vllm cannot be started anew: {error}")


class Engine:
    """A ``VLLMPolicy`` of these settings, with the weights in a folder, if any, as ``version``.

    With ``base_url`` among the settings it is a ``VLLMServer``. ``lacking``: no request is answered before
    weights have come from the owner's model.
    """

    def __init__(
        self, settings: dict[str, Any], weights: str | None, version: int, *, lacking: bool = False
    ) -> None:
        kind = VLLMServer if "base_url" in settings else VLLMPolicy
        self._policy: VLLMServer | VLLMPolicy = kind(version=version, **settings)
        self._ready = asyncio.Event()
        if weights is not None:
            run_async(self._policy.update(Path(weights), version))
        if not lacking:
            self._ready.set()

    async def sample(self, request: SampleRequest) -> Completion:
        """Answer a request. What is no fault of the request ends the process: another one takes its place."""
        await self._ready.wait()
        try:
            return await self._policy.sample(request)
        except (ValueError, ServerError):
            raise
        except Exception:
            traceback.print_exc()
            os._exit(BROKEN)

    async def update(self, weights: str, version: int) -> None:
        """Take the weights in a folder."""
        await self._policy.update(Path(weights), version)
        self._ready.set()

    async def receive(self, call: str, arguments: dict[str, Any], version: int | None) -> None:
        """Answer a call of the sender of whole weights; the last has their version."""
        assert isinstance(self._policy, VLLMPolicy)
        await self._policy.receive(call, arguments, version)
        if version is not None:
            self._ready.set()

    async def check(self, requests: Sequence[SampleRequest]) -> tuple[EngineReport, ...]:
        """Answer requests, and report what they were computed with."""
        return await self._policy.check(requests)

    async def context_tokens(self) -> int | None:
        """Return the most tokens of prompt and completion together."""
        return self._policy.context_tokens

    def state(self) -> EngineState:
        """Return what the engine has done so far."""
        return self._policy.state()
