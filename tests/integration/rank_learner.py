"""Learns alone and with other ranks, and writes how far apart the two end: ``torchrun ... FILE OUT``."""

import copy
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from peft import LoraConfig, get_peft_model
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from debate.types import TurnId
from learner import Learner, LearnerConfig, Row
from learner.update import head
from learner.update.config import LOSS_NAMES
from learner.update.forward import compute_type
from learner.update.ranks import ALONE, Ranks, trained, whole
from learner.update.shards import cut, gathered, outline, shard
from tests.unit.learner.conftest import VOCABULARY, qwen3, row_of

TILE = head.TILE["cpu"]


@dataclass(frozen=True)
class Case:
    """``debates`` of three rows; ``base``: the type of an adapter's frozen weights.

    ``as_on_a_gpu``: the optimizer is one kernel, and the head computes two tokens at a time.
    """

    settings: dict[str, Any] = field(default_factory=dict)
    adapter: bool = False
    debates: int = 6
    base: torch.dtype = torch.float32
    infinite: bool = False
    as_on_a_gpu: bool = False


def loss_case(loss: str) -> Case:
    """Two rows, so that of three ranks one has nothing to learn from."""
    return Case({"loss": loss, "max_tokens": 16, "minibatches": 2, "lr": 1e-2}, debates=1)


KL = {"beta": 0.1, "beta_judge": 0.2, "minibatches": 2, "reference_every": 1, "lr": 1e-2}
CHECKPOINTED = {"gradient_checkpointing": True}
SHARED = {"share_prefixes": True, "minibatches": 2, **CHECKPOINTED}
CASES = {
    "whole": Case(),
    "updates": Case({"minibatches": 3, "epochs": 2, "lr": 1e-2}),
    "kl": Case(KL),
    "checkpointed": Case(CHECKPOINTED),
    "shared": Case(SHARED),
    "bonus": Case({"entropy_bonus": 0.01, "tis_cap": 2.0, "normalise": "stream", "minibatches": 2}),
    "adapter": Case({"lr": 1e-2, "minibatches": 2}, adapter=True),
    "adapter, kl": Case(KL | CHECKPOINTED, adapter=True),
    "adapter, shared": Case(SHARED | {"beta": 0.1}, adapter=True),
    "adapter, bfloat16": Case({"lr": 1e-2}, adapter=True, base=torch.bfloat16),
    "products in bfloat16": Case({"compute": "bfloat16"}),
    "not finite": Case(infinite=True),
    "as on a GPU": Case({"minibatches": 2}, as_on_a_gpu=True),
    "adapter, as on a GPU": Case({"minibatches": 2}, adapter=True, as_on_a_gpu=True),
    **{loss: loss_case(loss) for loss in LOSS_NAMES if loss != "grpo"},
}


def rows_of(case: Case) -> list[Row]:
    """Rows of three agents of each debate, whose prompts have their first 12 tokens in common."""
    rng = np.random.default_rng(0)
    rows: list[Row] = []
    for debate in range(case.debates):
        common = rng.integers(0, VOCABULARY, 12)
        for agent in range(3):
            own = rng.integers(0, VOCABULARY, 3 + rng.integers(2, 9))
            rows.append(_row(np.concatenate([common, own]), rng, debate, agent))
    if case.infinite:
        rows[0].advantages[-1] = np.inf
    return rows


def _row(ids: np.ndarray, rng: np.random.Generator, debate: int, agent: int) -> Row:
    row = row_of(ids[:15], ids[15:], rng.standard_normal(len(ids) - 15), turn=TurnId(agent, 0))
    stream = np.where(row.action_mask, rng.integers(1, 3, len(ids)), 0).astype(np.int8)
    temperature = float(rng.choice([0.6, 1.0]))
    return replace(row, stream=stream, temperature=temperature, group_id=str(debate), debate=debate)


def learner_of(case: Case, ranks: Ranks, mesh: DeviceMesh | None) -> Learner:
    """A learner of a tiny model, with one mesh for all ranks, or alone."""
    config = LearnerConfig.model_validate({"warmup_steps": 0, "micro_batch_tokens": 60, **case.settings})
    model, reference = _model(case), None
    if mesh is not None:
        compute = compute_type(model, config.compute)
        if config.needs_reference and not case.adapter:
            reference = copy.deepcopy(model).requires_grad_(False).eval()
            shard(reference, mesh, compute)
        shard(model, mesh, compute)
    learner = Learner(model, config, reference=reference, ranks=ranks)
    head.TILE["cpu"] = 2 * VOCABULARY if case.as_on_a_gpu else TILE
    for group in learner.optimizer.param_groups:
        group["fused"] = case.as_on_a_gpu
    return learner


def _model(case: Case) -> Any:
    model = qwen3()
    for weight in model.parameters():
        weight.data = weight.data.to(case.base)
    adapter = LoraConfig(r=3, target_modules=["q_proj", "v_proj"], lora_alpha=8)
    return get_peft_model(model, adapter) if case.adapter else model


def compared(case: Case, ranks: Ranks, mesh: DeviceMesh) -> dict[str, float]:
    """How far weights and metrics are apart after two steps, and after one more of the other's state."""
    rows = rows_of(case)
    alone, together = learner_of(case, ALONE, None), learner_of(case, ranks, mesh)
    begun = copy.deepcopy(_weights(alone))
    metrics = [(alone.step(rows), together.step(rows)) for _ in range(2)]
    found = {
        "weights": _apart(alone, together),
        "of_what_moved": _of_what_moved(begun, alone, together),
        "metrics": max(_unlike(one, other) for one, other in metrics),
        "updates": metrics[-1][0]["updates"],
    }
    swapped = learner_of(case, ALONE, None), learner_of(case, ranks, mesh)
    state = gathered({"learner": together.state_dict(), "weights": _weights(together)})
    if ranks.index == 0:
        _take(swapped[0], state)
    own = copy.deepcopy({"learner": alone.state_dict(), "weights": _weights(alone)})
    _take(swapped[1], cut(own if ranks.index == 0 else outline(own), mesh))
    for learner in (alone, swapped[1], *swapped[: ranks.index == 0]):
        learner.step(rows)
    found["resumed"] = max(_apart(alone, learner) for learner in swapped[ranks.index != 0 :])
    return found


def _weights(learner: Learner) -> dict[str, torch.Tensor]:
    return {name: value.detach() for name, value in trained(learner.model).items()}


def _take(learner: Learner, state: dict[str, Any]) -> None:
    learner.load_state_dict(state["learner"])
    for name, value in _weights(learner).items():
        value.copy_(state["weights"][name])


def _apart(alone: Learner, other: Learner) -> float:
    own, others = _weights(alone), {name: whole(value) for name, value in _weights(other).items()}
    assert own.keys() == others.keys()
    return max(float((own[name] - others[name]).abs().max()) for name in own)


def _of_what_moved(begun: dict[str, torch.Tensor], alone: Learner, other: Learner) -> float:
    """How far apart the weights are by how far they have moved, root mean squares of all of them."""
    own, others = _weights(alone), {name: whole(value) for name, value in _weights(other).items()}
    apart = sum(float((own[name] - others[name]).double().square().sum()) for name in own)
    moved = sum(float((own[name] - begun[name]).double().square().sum()) for name in own)
    return (apart / moved) ** 0.5 if moved else 0.0


def _unlike(alone: dict[str, float], together: dict[str, float]) -> float:
    """The largest relative difference; what is read depends on how rows are packed."""
    assert alone.keys() == together.keys()
    names = alone.keys() - {"read_tokens"}
    return max(abs(alone[name] - together[name]) / max(abs(alone[name]), 1e-2) for name in names)


def main(out: str, names: Sequence[str]) -> None:
    dist.init_process_group("gloo")
    ranks = Ranks(dist.get_rank(), dist.get_world_size())
    mesh = init_device_mesh("cpu", (ranks.count,))
    found = {name: compared(CASES[name], ranks, mesh) for name in names or CASES}
    dist.destroy_process_group()
    if ranks.index == 0:
        Path(out).write_text(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
