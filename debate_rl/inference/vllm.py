"""A policy over vLLM in this process, with the prompts, stop strings and thinking of LocalPolicy.

vLLM forms batches by timing, so results differ in their last bits, although each request has its own seed.
vLLM has its own copy of the weights: ``VLLMPolicy.update`` loads new ones.
"""

# pyright: standard, reportMissingTypeStubs=false, reportMissingImports=false, reportAttributeAccessIssue=false
# vllm is not always installed, and then pyright takes this very file for it; so its types are Any here.

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

from debate.types import Completion, Message, SampleRequest
from debate_rl.inference.engine_report import EngineReport
from debate_rl.inference.local import OTHER_LOOP
from debate_rl.inference.sampler import Draw
from debate_rl.inference.speech import speech_of
from debate_rl.inference.vllm_requests import Current, Part, RequestingPolicy
from debate_rl.inference.vllm_weights import memory_folder, named_tensors, write_adapter, written_bytes

ADAPTER = "adapter_config.json"
WIDE_HEAD = {"head_dtype": "float32"}
"""Logits in float32, since rounding them to 16 bits would change every log-probability."""
MOST_READ = 8192
"""Number of prompt tokens read at a time on a CPU, unless the longest prompt has more."""


class VLLMPolicy(RequestingPolicy):
    """A policy over the model in ``model_path``: a folder, or a hub id.

    ``max_lora_rank`` 0 means no adapters. ``adapter`` is the folder of the first adapter, and
    ``adapters_at_once`` is how many adapters one batch may use. ``chat``, ``thinking`` and
    ``raw_prompt`` are as in ``LocalPolicy``; ``engine_settings`` go to ``vllm.LLM``. Log-probabilities are of
    the sampled distribution, at the request's temperature. ``sleeps``: whether ``sleep`` frees the GPU's
    memory, which needs CUDA.

    To ``update`` from a model in this process, set VLLM_ENABLE_V1_MULTIPROCESSING=0 before vllm is imported.
    """

    def __init__(
        self,
        model_path: str | Path,
        *,
        dtype: str = "auto",
        max_model_len: int | None = None,
        gpu_memory_utilization: float = 0.9,
        max_lora_rank: int = 0,
        adapters_at_once: int = 1,
        adapter: str | Path | None = None,
        chat: bool | None = None,
        thinking: bool = False,
        raw_prompt: Callable[[tuple[Message, ...]], str] | None = None,
        version: int = 0,
        sleeps: bool = False,
        **engine_settings: Any,
    ) -> None:
        self._sleeps, self._asleep = sleeps, False
        self._llm = _engine(
            str(model_path),
            dtype=dtype,
            max_model_len=max_model_len,
            gpu_memory_utilization=gpu_memory_utilization,
            **_lora_settings(max_lora_rank, adapters_at_once),
            **({"enable_sleep_mode": True} if sleeps else {}),
            **engine_settings,
        )
        self.version = version
        self._speech = speech_of(
            str(model_path),
            chat=chat,
            thinking=thinking,
            raw_prompt=raw_prompt,
            context_tokens=self._llm.llm_engine.model_config.max_model_len,
        )
        self._loop = EngineLoop(self._llm.llm_engine)
        self._takes_adapters, self._adapters = max_lora_rank > 0, 0
        self._now: Current[Any] = Current(None, self._remove)
        self._unread = True
        if adapter is not None:
            self._load_adapter(Path(adapter))

    async def sample(self, request: SampleRequest) -> Completion:
        """Answer one request with the weights at the time of the call."""
        frozen = request.seat == "frozen" and self._takes_adapters
        version, self._unread = 0 if frozen else self.version, False
        with self._now.kept() as newest:
            lora = None if frozen else newest

            async def ask(prompt: list[int], sampling: dict[str, Any]) -> Part:
                return await self._part(prompt, sampling, lora)

            return await self._reply(request, ask, version=version)

    def freeze(self) -> None:
        """Do nothing: the base model without an adapter answers for frozen seats."""

    def sleep(self) -> None:
        """Free the GPU's memory until the next update, if ``sleeps`` is set. RuntimeError during requests.

        With adapters, the base weights move to the machine's memory (vLLM's level 1). Full weights are
        dropped (level 2), since the update replaces all of them. Made for vLLM 0.32.0, never run on a GPU.
        """
        if not self._sleeps or self._asleep:
            return
        if self._loop.state().busy:
            raise RuntimeError("vLLM cannot sleep while requests are running")
        self._llm.sleep(level=1 if self._takes_adapters else 2)
        self._asleep = True

    @contextmanager
    def _awake(self) -> Generator[None]:
        """Allocate the weights' memory again before the block, and the cache's memory after it."""
        if not self._asleep:
            yield
            return
        import torch

        torch.cuda.empty_cache()  # the learner's freed memory must return to the GPU first
        self._llm.wake_up(tags=["weights"])
        yield
        self._llm.wake_up(tags=["kv_cache"])
        self._asleep = False

    async def update(self, weights: object, version: int) -> None:
        """Load weights from the folder of an export, or from a model in this process.

        Running requests keep the adapter they began with. New full weights apply to them at once, and their
        cached prefixes are computed again.
        """
        with self._awake():
            self._take(weights, version)
        self.version, self._unread = version, True

    def _take(self, weights: object, version: int) -> None:
        kind = self._llm.llm_engine.model_config.dtype
        if hasattr(weights, "peft_config"):
            with memory_folder(written_bytes(weights, kind)) as home:
                write_adapter(weights, Path(home) / f"version_{version}", kind)
                self._load_adapter(Path(home) / f"version_{version}")
        elif hasattr(weights, "named_parameters"):
            self._reload(weights_iterator=named_tensors(weights, kind))
        elif (_folder(weights) / ADAPTER).is_file():
            self._load_adapter(_folder(weights))
        else:
            self._reload(weights_path=str(_folder(weights).resolve()))

    async def check(self, requests: Sequence[SampleRequest]) -> tuple[EngineReport, ...]:
        """Answer requests, and return a report of what they were computed with.

        Right after an update, no token of the first prompt, which is read alone, may come from the cache. If
        other requests are running, the cache is not checked, since they may share the prompt.
        """
        alone = self._unread and not self._loop.state().busy
        first = Draw(self.encode(requests[0].messages), 1, requests[0].temperature, requests[0].seed)
        params = sampling_params(self._sampling(first, 0))
        read = await self._loop.complete(first.prompt, params, self._now.adapter)
        replies = await asyncio.gather(*map(self.sample, requests))
        adapter = 0 if self._now.adapter is None else self._now.adapter.lora_int_id
        digests = self._llm.collective_rpc("weight_digests", args=(adapter,))
        report = EngineReport(
            dtype=str(self._llm.llm_engine.model_config.dtype).removeprefix("torch."),
            completions=tuple(replies),
            cached_tokens=read.num_cached_tokens if alone else 0,
            rounded_head=any(self._llm.collective_rpc("rounds_logits")),
            digests={name: (a, b) for name, (a, b) in digests[0].items()} if len(digests) == 1 else {},
        )
        return (report,)

    def _load_adapter(self, path: Path) -> None:
        """Load an adapter under a new id, since vLLM would keep the old adapter under a known id.

        The adapter is read at once, so errors are raised here and not at the next request.
        """
        if not self._takes_adapters:
            raise ValueError(
                f"{path}: is an adapter; create the policy with max_lora_rank of at least its rank"
            )
        self._adapters += 1
        request = import_module("vllm.lora.request").LoRARequest
        lora = request(f"adapter-{self._adapters}", self._adapters, str(path.resolve()))
        try:
            taken = self._llm.llm_engine.add_lora(lora)
        except Exception as error:  # whatever its workers raise at files that do not suit them
            raise _refused(f"vLLM cannot load the adapter in {path}", error) from error
        if not taken:
            raise ValueError(f"vLLM did not load the adapter in {path}")
        self._now.replace(lora)

    def _remove(self, lora: Any) -> None:
        if lora is not None:
            self._llm.llm_engine.remove_lora(lora.lora_int_id)

    async def receive(self, call: str, arguments: dict[str, Any], version: int | None) -> None:
        """Execute a call of vLLM's sender of full weights (``vllm_weights.Link``).

        The last call has the ``version`` of the weights. The engine pauses from the first call to the last.
        """
        if call == "start_weight_update":
            self._loop.may_step.clear()
        self._llm.collective_rpc(call, kwargs=arguments)
        if version is not None:
            self._begin_anew()
            self.version, self._unread = version, True
            self._loop.may_step.set()

    def _reload(self, **source: object) -> None:
        self._llm.collective_rpc("reload_weights", kwargs=source)
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Drop everything that vLLM cached with the previous weights."""
        self._llm.collective_rpc("refresh_head")
        if not self._llm.llm_engine.reset_prefix_cache(reset_running_requests=True):
            raise RuntimeError(
                "vLLM could not drop the cache of the previous weights; nothing new was sampled"
            )
        self._now.replace(None)

    def state(self) -> EngineState:
        """Return what the engine has done so far."""
        return self._loop.state()

    async def _part(self, prompt: Sequence[int], sampling: dict[str, Any], lora: Any) -> Part:
        output = (await self._loop.complete(prompt, sampling_params(sampling), lora)).outputs[0]
        return Part(tuple(output.token_ids), _logprobs(output), output.finish_reason)


@dataclass(frozen=True, slots=True)
class EngineState:
    """Whether requests are running, and the number and total seconds of the engine's steps."""

    busy: bool
    steps: int
    seconds: float


class EngineLoop:
    """Steps vLLM's ``LLMEngine`` within an event loop while requests wait.

    A step blocks the event loop, as sampling does in ``LocalPolicy``; other tasks run between two steps.
    Cancelled requests are aborted. All waiting requests must belong to one event loop.
    """

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self._numbers = count()
        self._stepping: asyncio.Task[None] | None = None
        self._steps, self._seconds = 0, 0.0
        self.may_step = asyncio.Event()  # cleared while new weights come in
        self.may_step.set()

    def state(self) -> EngineState:
        """Return what the engine has done so far."""
        return EngineState(bool(self._waiting), self._steps, self._seconds)

    async def complete(self, prompt: Sequence[int], params: Any, lora: Any) -> Any:
        """Return the finished ``RequestOutput`` of a prompt (P,)."""
        loop = asyncio.get_running_loop()
        if any(future.get_loop() is not loop for future in self._waiting.values()):
            raise RuntimeError(OTHER_LOOP)
        name, future = str(next(self._numbers)), loop.create_future()
        inner = self._engine.add_request(name, {"prompt_token_ids": list(prompt)}, params, lora_request=lora)
        state = self._engine.output_processor.request_states[inner]
        state.logprobs_processor.tokenizer = None  # it would write each token as text once more
        self._waiting[name] = future
        if self._stepping is None or self._stepping.done():
            self._stepping = loop.create_task(self._step_until_done())
        try:
            return await future
        except asyncio.CancelledError:
            self._engine.abort_request([name])
            raise
        finally:
            self._waiting.pop(name, None)

    async def _step_until_done(self) -> None:
        """Step the engine while requests wait. An engine error is raised in every waiting request."""
        try:
            while self._waiting:
                await self.may_step.wait()
                began = time.perf_counter()
                outputs = self._engine.step()
                self._steps, self._seconds = self._steps + 1, self._seconds + time.perf_counter() - began
                for output in outputs:
                    future = self._waiting.get(output.request_id)
                    if output.finished and future is not None and not future.done():
                        future.set_result(output)
                await asyncio.sleep(0)
        except Exception as error:
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(error)


def sampling_params(sampling: dict[str, Any]) -> Any:
    """Return vLLM's ``SamplingParams``."""
    module = import_module("vllm.sampling_params")
    return module.SamplingParams(
        **sampling, flat_logprobs=True, output_kind=module.RequestOutputKind.FINAL_ONLY
    )


def _engine(model_path: str, **settings: Any) -> Any:
    """Start vLLM's engine, and print one line about it to standard error.

    vLLM prints only its own warnings, or more if $VLLM_LOGGING_LEVEL is set.
    """
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    vllm = import_module("vllm")
    defaults: dict[str, object] = {"hf_overrides": WIDE_HEAD}
    if import_module("vllm.platforms").current_platform.is_cpu():
        # On a CPU a prompt must be read at once: read in parts, a request with a seed fails, since vLLM
        # 0.32.0 rewinds the random generator, which a CPU's generator does not allow.
        most = max(settings["max_model_len"] or 0, MOST_READ)
        defaults |= {"enable_chunked_prefill": False, "max_num_batched_tokens": most}
    try:
        llm = vllm.LLM(
            model_path,
            logprobs_mode="processed_logprobs",
            worker_extension_cls="debate_rl.inference.vllm_worker.WorkerExtension",
            trust_remote_code=False,
            **(defaults | settings),
        )
    except Exception as error:  # whatever its workers raise at a model or a machine that does not suit them
        raise _refused(f"vLLM cannot serve {model_path!r}", error) from error
    print(f"vLLM {vllm.__version__}: {engine_words(llm.llm_engine.vllm_config)}", file=sys.stderr, flush=True)
    return llm


def _refused(what: str, error: Exception) -> ValueError:
    """Return a ValueError that quotes the first lines of an error from vLLM's workers."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return ValueError(f"{what}: {' '.join(lines[:3]) or type(error).__name__}")


def engine_words(config: Any) -> str:
    """Return a line on the runner, scheduling and cache that vLLM chose, from its ``VllmConfig``."""
    runner = "V2" if config.use_v2_model_runner else "V1"
    scheduling = "asynchronous" if config.scheduler_config.async_scheduling else "synchronous"
    tokens = config.cache_config.num_gpu_blocks * config.cache_config.block_size
    return f"model runner {runner}, {scheduling} scheduling, a cache of {tokens:,} tokens"


def _lora_settings(rank: int, at_once: int = 1) -> dict[str, object]:
    """Return vLLM's settings for adapters up to a rank, rounded up to a rank that vLLM supports.

    >>> _lora_settings(4), _lora_settings(0)
    ({'enable_lora': True, 'max_lora_rank': 8, 'max_loras': 1, 'max_cpu_loras': 2}, {})
    """
    known = (1, 8, 16, 32, 64, 128, 256, 320, 512)
    if rank > known[-1]:
        raise ValueError(f"max_lora_rank {rank}: vLLM takes adapters up to {known[-1]}")
    if not rank:
        return {}
    size = next(size for size in known if size >= rank)
    # One more adapter waits in CPU memory: it is read before the requests of the previous one have ended.
    return {"enable_lora": True, "max_lora_rank": size, "max_loras": at_once, "max_cpu_loras": at_once + 1}


def _folder(weights: object) -> Path:
    if not isinstance(weights, str | Path) or not Path(weights).is_dir():
        raise ValueError(
            f"vLLM has its own weights: update needs the folder of an export, got {weights!r:.80}"
        )
    return Path(weights)


def _logprobs(output: Any) -> tuple[float, ...]:
    """Return the log-probability of each token (T,) in nats."""
    values = tuple(output.logprobs.logprobs) if output.logprobs else ()
    if len(values) != len(output.token_ids):
        raise RuntimeError(f"vLLM gave {len(values)} log-probabilities of {len(output.token_ids)} tokens")
    return values
