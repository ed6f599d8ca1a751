"""Run in the bench environment: whole weights through vLLM's transfer, as JSON on the last line.

python vllm_transfer.py FOLDER: everything is written below it. What needs a GPU is asked for its metadata
alone; two engines in their own processes get the weights as ``vllm_tensors`` sends them.
"""

import asyncio
import json
import os
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from unittest.mock import patch

import torch
import vllm_tensors
from vllm.distributed.weight_transfer import packed_tensor
from vllm.distributed.weight_transfer.ipc_engine import IPCWeightTransferUpdateInfo

from debate import Message, SampleRequest
from debate.types import TurnId
from debate_rl.config.models import ModelConfig, TinyConfig
from debate_rl.inference import vllm_weights
from debate_rl.inference.engine_pool import EngineError, EnginePool
from debate_rl.inference.engine_report import digest
from debate_rl.inference.vllm_weights import LearntWeights, Transfer, sender_settings, weights_as_computed
from debate_rl.models import load_model

TINY = TinyConfig(hidden_size=64, heads=2, intermediate_size=48, init_std=0.3, context_tokens=512)
REQUESTS = 64


def chunks_of(source, size):
    """The chunks that vLLM makes of the weights for CUDA's handles, in memory of this machine."""
    empty = torch.empty
    with (
        patch.object(packed_tensor, "reduce_tensor", lambda buffer: (None, (buffer,))),
        patch.object(packed_tensor.torch, "empty", lambda size, dtype, device: empty(size, dtype=dtype)),
        patch.object(
            torch.cuda, "current_stream", lambda: SimpleNamespace(synchronize=lambda: None), create=True
        ),
    ):
        for chunk in packed_tensor.packed_ipc_producer(iter(source), "gpu", lambda item: item[1], size):
            info = IPCWeightTransferUpdateInfo(
                chunk.names, chunk.dtype_names, chunk.shapes, chunk.ipc_handle, None, chunk.tensor_sizes
            )
            (buffer,) = info.ipc_handles["gpu"]
            taken = packed_tensor.unpack_tensor(
                buffer[: sum(info.tensor_sizes)],
                info.names,
                info.shapes,
                [getattr(torch, name) for name in info.dtype_names],
                info.tensor_sizes,
            )
            yield [(name, value.clone()) for name, value in taken]


def packed(model):
    """Whether the chunks hold all of the weights, bit for bit, and how many chunks there are."""
    source = LearntWeights(model, torch.bfloat16)
    chunks = list(chunks_of(source, source.largest))
    taken = [pair for chunk in chunks for pair in chunk]
    own = [(name, value.to(torch.bfloat16)) for name, value in model.named_parameters()]
    same = [name for name, _ in taken] == [name for name, _ in own]
    return same and all(torch.equal(a, b) for (_, a), (_, b) in zip(taken, own, strict=True)), len(chunks)


def request(seed, tokens=24):
    return SampleRequest(
        (Message("user", f"hello {seed}"),),
        seed=seed,
        debate=f"d{seed % 8}",
        turn=TurnId(0, 0),
        temperature=1.0,
        max_tokens=tokens,
        stop=(),
    )


async def asked(pool, tokens=24):
    return await asyncio.gather(*(pool.sample(request(seed, tokens)) for seed in range(REQUESTS)))


def right(pool, model):
    """Whether both engines compute with the model's own numbers."""
    own = {name: digest(value, torch.float32) for name, value, _ in weights_as_computed(model, torch.float32)}
    reports = asyncio.run(pool.check([request(seed, 2) for seed in range(2)]))
    return [bool(report.digests) and report.digests.items() <= own.items() for report in reports]


def noise(model):
    with torch.no_grad():
        for value in model.parameters():
            value += 0.02 * torch.randn_like(value)


async def updated_meanwhile(pool, model, version):
    replies = asyncio.ensure_future(asked(pool, 200))
    await asyncio.sleep(1)
    await pool.update(model, version)
    return await replies


def killed(pool, index):
    process = pool._processes[index].pid
    os.kill(process, signal.SIGKILL)
    return process


def main():
    folder = Path(sys.argv[1])
    model, tokenizer = load_model(ModelConfig(tiny=TINY, device="cpu"), vocabulary=(" 1",), seed=0)
    for one in (model, tokenizer):
        one.save_pretrained(folder / "base")
    found = {"packed": packed(model)}
    found["ipc"] = asdict(sender_settings(Transfer("ipc", "bfloat16"), 2**30 + 1))
    found["nccl"] = asdict(sender_settings(Transfer("nccl", "bfloat16", 2), 7))
    settings = {
        "model_path": str(folder / "base"),
        "dtype": "float32",
        "enforce_eager": True,
        "chat": False,
        "thinking": False,
        "raw_prompt": vllm_tensors.raw_prompt,
        "weight_transfer_config": {"backend": "tensors"},
    }
    pool = EnginePool(
        [settings] * 2,
        [{"VLLM_ENABLE_V1_MULTIPROCESSING": "0"}] * 2,
        write=lambda *_: None,
        home=TemporaryDirectory(),
        log=folder / "engines.log",
        transfer=Transfer("tensors", "float32"),
    )
    with patch.object(vllm_weights, "sender_settings", lambda *_: vllm_tensors.Settings(rank=0)):
        try:
            noise(model)
            asyncio.run(pool.update(model, 1))
            found["first"] = right(pool, model)
            noise(model)
            replies = asyncio.run(updated_meanwhile(pool, model, 2))
            found["meanwhile"] = len(replies), sorted({one.policy_version for one in replies})
            found["second"] = right(pool, model)
            killed(pool, 1)
            found["after_a_death"] = sorted({one.policy_version for one in asyncio.run(asked(pool))})
            found["third"] = right(pool, model)
            noise(model)
            killed(pool, 0)
            asyncio.run(pool.update(model, 3))
            found["fourth"] = right(pool, model)
            found["files"] = [path.name for path in pool.home.iterdir() if path.is_dir()]
            model.get_input_embeddings().weight.data = torch.zeros(3, 64)
            try:
                asyncio.run(pool.update(model, 4))
            except EngineError as error:
                found["refused"] = str(error)
        finally:
            pool.close()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
