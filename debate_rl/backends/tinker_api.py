"""The Tinker API as an engine: Thinking Machines' service, or SkyRL's server on your own GPUs."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import tarfile
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

import numpy as np
from numpy.typing import NDArray
from peft import LoraConfig, PeftModel
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from transformers import AutoTokenizer

from debate.concurrency import run_async
from debate.files import read_json
from debate.seeds import SERVER_SEEDS
from debate.types import Completion, SampleRequest, TurnId
from debate_rl.backends.policy import ServicePolicy
from debate_rl.backends.service import ServiceError
from debate_rl.config import Config
from debate_rl.inference.server import ServerKey, key_for
from debate_rl.inference.vllm_requests import Part
from debate_rl.models import load_model
from learner.types import Row
from learner.update.optimizer import adam_eps


class _Lazy:
    """A module that is imported at first use, because the SDK is optional."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # tools that look at modules ask for these
            raise AttributeError(attribute)
        return getattr(import_module(self._name), attribute)


tinker, types = _Lazy("tinker"), _Lazy("tinker.types")
Reduction: TypeAlias = Literal["sum", "row_mean"]
"""How a server adds up token losses. "sum": over all tokens, as the API defines it.

"row_mean": the mean over each row, then over rows, as in SkyRL's JAX backend.
"""
ADAPTER = ("adapter_config.json", "adapter_model.safetensors")
"""The files of an adapter in a server's archive."""
STATE = "tinker.json"
"""The file of a checkpoint with the address of weights and optimizer at the server."""
TINKER = ServerKey("TINKER_API_KEY", "TINKER_BASE_URL", "https://tinker.thinkingmachines.dev")
NO_KEY = "tml-none"
"""The key sent to a server that must not get the user's key. The SDK requires one."""
PATIENCE_S = 600.0
"""Seconds to wait for one answer before the run ends."""
LOSS = "importance_sampling"
PROBE_LR = 1e-9
"""The learning rate of a probe of gradient norms: the weights stay what they are, to rounding."""
PROBE_EPS, PROBE_RATES = 1e3, tuple(2.0**power for power in range(-12, 15))
"""With this epsilon, a step of Adam is lr / epsilon times the gradient. The first rates are too small to move
the model far, so the first step that can be measured is small."""
MOVED, TOO_FAR = 0.02, 0.2
"""Smallest and largest change of log-probabilities in nats that a probe accepts: several times bfloat16's
rounding, and where the model is no longer linear."""


class TinkerPolicy(ServicePolicy):
    """Samples with a Tinker sampling client."""

    def __init__(self, service: TinkerService, name: str, **speech: Any) -> None:
        super().__init__(name, **speech)
        self._service = service
        self._client: Any = None  # until the first update

    def freeze(self) -> None:
        """Do nothing: the base model answers for frozen seats."""

    async def update(self, weights: object, version: int) -> None:
        """Publish the service's weights. A reply in progress keeps the weights with which it began."""
        self._client = await asyncio.to_thread(self._service.publish)
        self.version = version

    async def sample(self, request: SampleRequest) -> Completion:
        """Answer one request."""
        frozen = request.seat == "frozen"
        client, version = (self._service.start, 0) if frozen else (self._client, self.version)

        async def ask(prompt: list[int], sampling: dict[str, Any]) -> Part:
            return await self._asked(client, prompt, sampling)

        return await self._reply(request, ask, version=version)

    async def _asked(self, client: Any, prompt: list[int], sampling: dict[str, Any]) -> Part:
        how = types.SamplingParams(
            max_tokens=sampling["max_tokens"],
            temperature=sampling["temperature"],
            top_p=sampling["top_p"],
            top_k=sampling["top_k"] or -1,
            seed=sampling["seed"] % SERVER_SEEDS,
            stop=sampling["stop_token_ids"],  # ids or strings, not both: strings are cut here
        )
        with _errors_named("a request"):
            asked = client.sample_async(types.ModelInput.from_ints(prompt), 1, how)
            answer = await asyncio.wait_for(asked, PATIENCE_S)
        one = answer.sequences[0]
        return self._part(one.tokens, one.logprobs or (), sampling)


class TinkerService:
    """The weights that a server of the Tinker API trains; see ``Service``. ``service``: the SDK's client.

    ``probe_ids``: any token ids of the model, for the probe of ``reduction``. ``model.lora_rank = 0`` trains
    full weights if the server supports it.
    """

    def __init__(self, service: Any, config: Config, probe_ids: Sequence[int]) -> None:
        self._service, self._config, self._probe_ids = service, config, probe_ids

    @cached_property
    def start(self) -> Any:
        """The sampling client of the base model, for frozen seats and as the reference of the KL penalty."""
        with _errors_named("a request for the base"):
            made = self._service.create_sampling_client_async(base_model=self._config.model.name_or_path)
            return self._answer(made)

    @cached_property
    def reduction(self) -> Reduction:
        """How the server adds up token losses, measured once."""
        with _errors_named("a probe"):
            return self._probe(self._probe_ids)

    def prepare(self) -> None:
        """Measure how the server adds up losses, before any debate is held."""
        _ = self.reduction

    @cached_property
    def _client(self) -> Any:
        """The training client. A new one starts with the weights of the base model."""
        with _errors_named("a request for a training client"):
            return self._new_client()

    def _new_client(self) -> Any:
        model, seed = self._config.model, self._config.seed % SERVER_SEEDS
        asked = {"base_model": model.name_or_path, "rank": model.lora_rank, "seed": seed}
        return self._answer(self._service.create_lora_training_client_async(**asked))

    def publish(self) -> Any:
        """Return a sampling client with the current weights."""
        with _errors_named("a request to publish weights"):
            return self._answer(self._client.save_weights_and_get_sampling_client_async())

    def logprobs(self, rows: Sequence[Row], *, reference: bool = False) -> list[NDArray[np.float32]]:
        """Return log-probabilities (L,) of each row in nats, 0 for its first token; see ``Service``."""
        with _errors_named("a request for log-probabilities"):
            if not reference:
                return self._forward(self._client, rows)
            inputs = [types.ModelInput.from_ints(row.input_ids.tolist()) for row in rows]
            found = map(self._wait, [self.start.compute_logprobs(one) for one in inputs])
            return [_with_first(one[1 - len(row.input_ids) :]) for one, row in zip(found, rows, strict=True)]

    def _forward(self, client: Any, rows: Sequence[Row]) -> list[NDArray[np.float32]]:
        data = [_datum(row, *np.zeros((2, len(row.input_ids)))) for row in rows]
        output = self._wait(client.forward(data, LOSS))
        return [_with_first(one["logprobs"].data) for one in output.loss_fn_outputs]

    def update(
        self, rows: Sequence[Row], logprobs: Tensor, advantages: Tensor, *, lr: float
    ) -> dict[str, float]:
        """Apply one optimizer step; see ``Service``. Return the gradient norm if the server reports it."""
        added = self.reduction == "sum"
        scales = [1.0 if added else len(rows) * (len(row.input_ids) - 1) for row in rows]
        parts = zip(rows, logprobs.numpy(), advantages.numpy(), scales, strict=True)
        data = [_datum(row, old, weight * scale) for row, old, weight, scale in parts]
        settings = self._config.learner
        adam = types.AdamParams(
            learning_rate=lr,
            beta1=settings.betas[0],
            beta2=settings.betas[1],
            eps=adam_eps((), settings),  # adapters are float32
            grad_clip_norm=settings.max_grad_norm,
        )
        with _errors_named("an update"):
            norm = self._learn(self._client, data, adam)
        return {} if norm is None else {"grad_norm": norm, "grad_norm_max": norm}

    def _learn(self, client: Any, data: list[Any], adam: Any) -> float | None:
        """Apply one optimizer step. Return the gradient norm if the server reports it."""
        passed, stepped = client.forward_backward(data, LOSS), client.optim_step(adam)
        self._wait(passed)
        metrics = getattr(self._wait(stepped), "metrics", None) or {}
        return next((float(value) for name, value in metrics.items() if name.endswith("grad_norm")), None)

    def save_pretrained(self, folder: Path, **_: object) -> None:
        """Save weights and optimizer at the server, and write their address into a folder."""
        with _errors_named("a request to save"):
            saved = self._wait(self._client.save_state(_new_name()))
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / STATE).write_text(json.dumps({"state": saved.path}), encoding="ascii")

    def load_pretrained(self, folder: Path) -> None:
        """Load the weights and the optimizer that ``save_pretrained`` saved at the server."""
        path = Path(folder) / STATE
        try:
            state = str(read_json(path)["state"])
        except FileNotFoundError:
            raise ValueError("it was not saved with engine.kind = tinker") from None
        except (LookupError, TypeError) as error:
            raise ValueError(
                f'{path}: must have the address of the state under "state" ({error}); restore the file'
            ) from error
        try:
            made = self._service.create_training_client_from_state_with_optimizer_async(state)
            self._client = self._answer(made)
        except (tinker.TinkerError, TimeoutError, ConnectionError) as error:
            raise ValueError(f"the server no longer has {state}: {_first_line(error)}") from error

    def download(self, folder: Path, out: Path) -> None:
        """Write the adapter that ``save_pretrained`` saved at the server into a folder, as peft loads it."""
        self.load_pretrained(folder)
        with _errors_named("a request for the adapter"):
            saved = self._wait(self._client.save_weights_for_sampler(_new_name()))
            run, _, name = saved.path.removeprefix("tinker://").partition("/")
            url = self._wait(self._service.create_rest_client().get_checkpoint_archive_url(run, name)).url
            unpack_adapter(url, out)
        write_adapter_config(out)

    def _probe(self, ids: Sequence[int]) -> Reduction:
        """Learn from one row, then from two copies of it, with a separate client, and compare the gradients.

        A server that reports no gradient norm shows them by how far its log-probabilities move, if its
        optimizer uses the epsilon that it is sent: a third step with twice the weight tells.
        """
        row, client = probe_row(ids), self._new_client()
        now = self._forward(client, [row])[0]

        def step(copies: int, weight: float, lr: float) -> float | None:
            data = [_datum(row, now, weight * row.action_mask)] * copies
            adam = types.AdamParams(learning_rate=lr, beta1=0.0, beta2=0.0, eps=PROBE_EPS)
            return self._learn(client, data, adam)

        once, twice = (step(copies, 1.0, PROBE_LR) for copies in (1, 2))
        if once and twice is not None:
            return _reduction_of(twice / once)
        for lr in PROBE_RATES:
            moved: list[float] = []
            for copies, weight in ((1, 1.0), (2, 1.0), (1, 2.0)):
                step(copies, weight, lr)
                before, now = now, self._forward(client, [row])[0]
                moved.append(float((now - before)[row.action_mask].mean()))
            if MOVED < abs(moved[0]) < TOO_FAR:
                if not _doubled(moved[2] / moved[0]):
                    raise ValueError(
                        "engine.base_url: the server neither reports gradient norms nor uses the "
                        "optimizer's epsilon that it is sent, so nothing tells whether it sums losses or "
                        "averages them; use another server or version"
                    )
                return _reduction_of(moved[1] / moved[0])
        raise ValueError(
            "engine.base_url: an update at the server does not change its log-probabilities; see the "
            "server's log, or use another server"
        )

    def _wait(self, future: Any) -> Any:
        return future.result(timeout=PATIENCE_S)

    def _answer(self, asked: Coroutine[Any, Any, Any]) -> Any:
        return run_async(asyncio.wait_for(asked, PATIENCE_S))


def _new_name() -> str:
    return f"debate-rl-{token_hex(6)}"


def unpack_adapter(url: str, out: Path) -> None:
    """Download an archive and write the files of its adapter. All other members are ignored."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise ValueError(f"the server's address of the archive is not a URL: {url[:100]!r}")
    with urlopen(url, timeout=PATIENCE_S) as answer, tarfile.open(fileobj=answer, mode="r|*") as archive:
        for member in archive:
            name = Path(member.name).name
            if name in ADAPTER and (file := archive.extractfile(member)) is not None:
                (out / name).write_bytes(file.read())


def write_adapter_config(folder: Path) -> None:
    """Replace an adapter's configuration by one that is made from its tensors and its alpha.

    Servers leave out the target modules, for which peft would use the model's defaults. A configuration from
    elsewhere could also name code to import.
    """
    config, weights = (folder / name for name in ADAPTER)
    try:
        alpha = float(read_json(config)["lora_alpha"])
        shapes = {name: tensor.shape for name, tensor in load_file(weights).items() if ".lora_A." in name}
        [rank] = {shape[0] for shape in shapes.values()}
    except (OSError, ValueError, LookupError, TypeError, SafetensorError) as error:
        raise ValueError(f"peft cannot load the adapter that the server returned: {error}") from error
    modules = sorted({name.split(".lora_A.")[0].rpartition(".")[2] for name in shapes})
    made: Any = LoraConfig(r=rank, target_modules=modules, task_type="CAUSAL_LM")
    made.lora_alpha = alpha
    made.save_pretrained(str(folder))


def load_trained(config: Config, checkpoint: Path) -> tuple[Any, Any]:
    """Return the base model with a checkpoint's adapter, downloaded from the server, and the tokenizer."""
    if not config.model.lora_rank:
        raise ValueError(
            "model.lora_rank=0: full weights cannot be downloaded from the server; only adapters can"
        )
    service, tokenizer, _ = open_service(config)
    whole = config.model.model_copy(update={"lora_rank": 0, "quantization": "none"})
    base, _ = load_model(whole, seed=config.seed)
    with TemporaryDirectory() as folder:
        service.download(checkpoint / "model", Path(folder))
        return PeftModel.from_pretrained(base, folder).eval(), tokenizer


def _reduction_of(ratio: float) -> Reduction:
    """Return how the server reduces losses over rows (sum or mean).

    ``ratio``: of the gradients in the probe's two steps. It is about 2 for a sum and 1 for a mean; otherwise
    ValueError.
    """
    if 0.75 < ratio < 1.3:
        return "row_mean"
    if _doubled(ratio):
        return "sum"
    raise ValueError(
        f"engine.base_url: a row sent twice has {ratio:.2g} times the gradient of a row sent once; it must "
        f"be 2 (losses are summed) or 1 (they are averaged), so use another server or version"
    )


def _doubled(ratio: float) -> bool:
    return 1.5 < ratio < 2.7


def probe_row(ids: Sequence[int]) -> Row:
    """Return a row whose first token is the prompt and whose other tokens were sampled."""
    array = np.array(ids, np.int64)
    mask, zeros = np.arange(len(array)) > 0, np.zeros(len(array), np.float32)
    return Row(array, mask, zeros, zeros, mask.astype(np.int8), "probe", 0, TurnId(0, 0))


def _datum(row: Row, logprobs: NDArray[Any], advantages: NDArray[Any]) -> Any:
    """Return a row in Tinker's format, in which position i predicts token i + 1."""
    length, mask = len(row.input_ids), row.action_mask[1:]
    found = {
        "target_tokens": row.input_ids[1:],
        "logprobs": np.where(mask, logprobs[1:length], 0.0).astype(np.float32),
        "advantages": np.where(mask, advantages[1:length], 0.0).astype(np.float32),
    }
    return types.Datum(
        model_input=types.ModelInput.from_ints(row.input_ids[:-1].tolist()),
        loss_fn_inputs={name: types.TensorData.from_numpy(array) for name, array in found.items()},
    )


def _with_first(logprobs: Sequence[float]) -> NDArray[np.float32]:
    """Return a row's log-probabilities with 0 for the first token, which has none."""
    return np.array([0.0, *logprobs], np.float32)


@contextmanager
def _errors_named(what: str) -> Iterator[None]:
    """Convert an error of the SDK or of a download to ServiceError."""
    try:
        yield
    except (tinker.TinkerError, TimeoutError, ConnectionError, URLError, tarfile.TarError) as error:
        raise ServiceError(f"the Tinker server did not answer {what}: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def open_service(config: Config, **speech: Any) -> tuple[TinkerService, Any, TinkerPolicy]:
    """Return the service that learns, the tokenizer, and the policy that samples at the service."""
    name = str(config.model.name_or_path)
    os.environ.setdefault("TINKER_TELEMETRY", "0")  # it sends tracebacks to the service
    logging.getLogger("tinker").setLevel(logging.ERROR)  # a warning each ten seconds without an answer
    with _errors_named("a first request"):
        client = tinker.ServiceClient(**_address(config.engine.base_url))
        served = [one.model_name for one in client.get_server_capabilities().supported_models]
    if name not in served:
        raise ValueError(
            f"model.name_or_path={name}: the server only has {', '.join(map(str, served))}; choose one of "
            f"these"
        )
    tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
    ids = tokenizer("1 2 3 4 5 6 7 8", add_special_tokens=False)["input_ids"]
    service = TinkerService(client, config, ids)
    policy = TinkerPolicy(service, name, context_tokens=config.debate.context_tokens, **speech)
    return service, tokenizer, policy


def _address(base_url: str | None) -> dict[str, str]:
    """Return the arguments of the SDK's client. The key is not sent to a server that only the recipe names.

    >>> _address("http://gpu.example:8000")
    {'base_url': 'http://gpu.example:8000', 'api_key': 'tml-none'}
    >>> _address(None)  # the SDK reads both from the environment
    {}
    """
    if base_url is None:
        return {}
    return {"base_url": base_url, "api_key": key_for(base_url, TINKER) or NO_KEY}
