"""What seats need in addition to the protocol: a remote model, and the weights that training began with."""

from __future__ import annotations

from debate.config import DebateConfig
from debate_rl.config.endpoints import RoleConfig
from debate_rl.config.models import ModelConfig
from debate_rl.config.warm_start import WarmStartConfig


def check_seats(
    debate: DebateConfig, remote: RoleConfig, model: ModelConfig, warm_start: WarmStartConfig
) -> None:
    """ValueError for seats that nobody can take, and for a remote model without a seat."""
    if "remote" in debate.seats and remote.endpoint is None:
        raise ValueError(
            f'debate.seats: agent {debate.seats.index("remote")} is "remote", and nobody is named; set '
            "remote.endpoint"
        )
    if remote.endpoint is not None and "remote" not in debate.seats:
        raise ValueError('remote.endpoint: nobody asks it; set a seat of debate.seats to "remote"')
    if "frozen" not in debate.seats or model.policy != "vllm":
        return
    ways = 'leave out model.policy, or name the model as remote.endpoint and set the seat to "remote"'
    if not model.lora_rank:
        raise ValueError(
            'debate.seats: "frozen" with model.policy = "vllm" needs an adapter, since an engine holds whole '
            f"weights once: set model.lora_rank, {ways}"
        )
    if warm_start.from_run is not None:
        raise ValueError(
            'debate.seats: "frozen" with model.policy = "vllm" is the base without an adapter, and '
            f"warm_start.from_run = {warm_start.from_run!r} begins with one that has learnt: {ways}"
        )
