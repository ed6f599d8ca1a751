"""vLLM engines in their own processes, as one policy. An engine that ends or hangs is restarted.

All turns of a debate go to one engine, whose prefix cache has their common prompts. Requests that an engine
did not finish are sent again: a reply depends only on its seed and the weights.
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
"""After this many restarts within this many seconds, the pool gives up."""
SILENT_S = 300.0
"""A busy engine that finishes no step in this time is restarted."""
LOOK_S = 0.5
"""Time between two checks of the engines."""
PING_S = 30.0
"""Time-out of a ping, which a process answers even while its engine computes."""
AGAIN_S = 0.2
"""Time between two requests to an engine that is being restarted."""
DEBATES_KEPT = 65_536
"""Number of debates whose engine is remembered."""
BROKEN = 70
"""The exit code of an engine after an internal error."""


class EngineError(RemoteError):
    """Engines that cannot continue."""


class EngineClient(SpeakingPolicy):
    """A policy over running engines, for any thread, event loop or process. Their owner updates them."""

    def __init__(self, addresses: Sequence[Address], speech: Speech, *, version: int = 0) -> None:
        self.version = version
        self._speech = speech
        self.addresses = tuple(addresses)
        self._remotes: dict[int, Remote] = {}
        self._homes: dict[str, int] = {}
        self._at: Counter[int] = Counter()
        self._lock = threading.Lock()

    async def sample(self, request: SampleRequest) -> Completion:
        """Answer one request by the engine of its debate. If that engine ends, the request is sent again."""
        return await self._ask(self._home(request.debate), "sample", request)

    async def update(self, weights: object, version: int) -> None:
        """Set the version. The engines get their weights from their owner."""
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
        """Prepare an engine for a request. Raises Gone if the engine cannot be reached."""

    def _refuse_dead(self) -> None:
        """Raise EngineError if engines that end are no longer restarted."""

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
    """Starts and watches engines, and gives them the weights of a model in this process.

    ``settings`` and ``environments``: for each engine, the settings of its ``VLLMPolicy`` or ``VLLMServer``,
    and environment variables of its process, such as its GPU. ``write``: writes a model's weights into a
    folder below ``folder``, by default below ``home``, the pool's folder in memory with its sockets. The
    newest folder and ``kept`` older ones are not removed, because a server that restarts may still need them.
    Output of the engines goes to ``log``. ``transfer``: how a model's weights are sent; None means by
    ``write``, and a restarted engine reads the folder again.

    With a ``transfer``, a restarted engine gets the model's current weights at the next request to this
    pool. So do not use the pool while the model changes. Clients may send requests at any time; these wait
    until the engine has its weights.
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
        """Give all engines the weights of a model, or those in a folder."""
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
                await self._ask(index, "context_tokens")  # before any answer, it gets the weights

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
        """Send the model's weights to an engine that lacks them. EngineError if that fails.

        Raises Gone if the engine has ended; the weights are sent again after its restart.
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
                    f"engine {index} did not receive the weights: {error} (see {self.log})"
                ) from error
            self._lacking.discard(index)

    async def check(self, requests: Sequence[SampleRequest]) -> tuple[EngineReport, ...]:
        """Let every engine answer these requests, and return the engines' reports."""
        reports: list[tuple[EngineReport, ...]] = await asyncio.gather(
            *(self._ask(index, "check", tuple(requests)) for index in self._engines)
        )
        return tuple(chain.from_iterable(reports))

    def states(self) -> list[EngineState]:
        """Return the state of each engine that answers. EngineError if the pool has given up."""
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
        """Return a message if a busy engine has finished no step for ``SILENT_S``, else ""."""
        steps, heard = self._heard[index]
        state = self._state(index)
        if state is not None and (not state.busy or state.steps != steps):
            heard = time.monotonic()
            self._heard[index] = state.steps, heard
        silent = time.monotonic() - heard
        if silent <= SILENT_S:
            return ""
        return f"process {self._processes[index].pid} finished no step for {silent:.0f} s (see {self.log})"

    def _state(self, index: int) -> EngineState | None:
        """Return the state of an engine, or None if it does not answer."""
        with suppress(RemoteError, NoReply):
            state: EngineState = self._remote(index).call(PING).result(timeout=min(PING_S, SILENT_S))
            return state
        return None

    def _start_anew(self, index: int, why: str) -> None:
        process = self._processes[index]
        process.close()
        now = time.monotonic()
        if len(self._starts) == MOST_STARTS and now - self._starts[0] < WITHIN_S:
            starts = f"had to be restarted within {WITHIN_S / 60:.0f} minutes"
            self._failed = EngineError(f"{MOST_STARTS} engines of model.policy=vllm {starts}; {why}")
            return
        self._starts.append(now)
        self._start(index)
        try:
            process.wait()
        except Gone as gone:
            with self.log.open("a") as log:  # the next check finds that it has ended
                print(gone, file=log)
        except Exception as error:
            self._failed = EngineError(f"an engine of model.policy=vllm cannot be restarted: {error}")


class Engine:
    """The policy in an engine's process: ``VLLMServer`` for settings with ``base_url``, else ``VLLMPolicy``.

    ``weights``: a folder of weights of this ``version``. ``lacking``: whether requests wait for weights from
    the owner's model.
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
        """Answer a request. Errors not caused by the request end the process, which is then restarted."""
        await self._ready.wait()
        try:
            return await self._policy.sample(request)
        except (ValueError, ServerError):
            raise
        except Exception:
            traceback.print_exc()
            os._exit(BROKEN)

    async def update(self, weights: str, version: int) -> None:
        """Load the weights in a folder."""
        await self._policy.update(Path(weights), version)
        self._ready.set()

    async def receive(self, call: str, arguments: dict[str, Any], version: int | None) -> None:
        """Execute a call of the sender of full weights. The last call also has their ``version``."""
        assert isinstance(self._policy, VLLMPolicy)
        await self._policy.receive(call, arguments, version)
        if version is not None:
            self._ready.set()

    async def check(self, requests: Sequence[SampleRequest]) -> tuple[EngineReport, ...]:
        """Return the policy's reports on these requests."""
        return await self._policy.check(requests)

    async def context_tokens(self) -> int | None:
        """Return the maximum number of tokens of a prompt with its completion."""
        return self._policy.context_tokens

    def state(self) -> EngineState:
        """Return what the engine has done so far."""
        return self._policy.state()
