"""The error of a service, and the settings that no service can use."""

from __future__ import annotations

from debate.ramps import values_of
from debate_rl.config import Config
from debate_rl.inference.remote import RemoteError

NAMED = {
    "model.name_or_path": "name the model that the service trains",
    "model.policy": "leave it out",
    "model.dtype": "set auto",
    "model.lora_alpha": "verl needs a whole number, and servers of the Tinker API choose 32",
    "debate.context_tokens": "set it to the tokens of the longest prompt with its reply",
    "debate.personas": "every temperature must be 1",
    "debate.temperature": "it must be 1, the temperature at which the service learns",
}


class ServiceError(RemoteError):
    """A service does not answer or refuses a request. It has the weights, so no new step can be saved."""


def refuse_unfit(config: Config) -> None:
    """Raise ValueError, which names the key, for a setting that a service cannot use."""
    ramp, verl = config.debate.temperature, config.engine.kind == "verl"
    unfit = {
        "model.name_or_path": config.model.name_or_path is None,
        "model.policy": config.model.policy is not None,
        "model.quantization": config.model.quantization != "none",
        "model.dtype": config.model.dtype != "auto",
        "model.lora_alpha": not config.model.lora_alpha.is_integer()
        if verl
        else config.model.lora_alpha != 32,
        "warm_start": config.warm_start.steps > 0 or config.warm_start.from_run is not None,
        "sft.data": bool(config.sft.data),
        "learner.entropy_bonus": config.learner.entropy_bonus > 0,
        "learner.reference_every": config.learner.reference_every > 0,
        "learner.share_prefixes": config.learner.share_prefixes,
        "learner.compile": config.learner.compile,
        "learner.compute": not verl and config.learner.compute != "auto",
        "rewards.likelihood_weight": config.rewards.reads_likelihood,
        "train.async_level": config.train.async_level > 0,
        "train.jitter": config.train.jitter > 0,
        "debate.seats": verl and "frozen" in config.debate.seats,
        "debate.context_tokens": verl and config.debate.context_tokens is None,
        "debate.temperature": ramp is not None and set(values_of(ramp)) != {1},
        "debate.personas": any(one.temperature != 1 for one in config.debate.agent_personas),
    }
    for key, wrong in unfit.items():
        if wrong:
            how = NAMED.get(key, "leave it out")
            raise ValueError(f'{key}: engine.kind = "{config.engine.kind}" cannot use this value; {how}')
