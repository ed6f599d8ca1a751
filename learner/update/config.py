"""How the weights are changed. Defaults live here, once; nothing here loads torch."""

from __future__ import annotations

import warnings
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from debate.settings import Settings

LOSS_NAMES = (
    "grpo",
    "dr_grpo",
    "dapo",
    "gspo",
    "cispo",
    "ppo",
    "dppo_tv",
    "dppo_kl",
    "importance_sampling",
)
FROM_SAMPLER = ("dppo_tv", "dppo_kl")
"""Losses whose ratios are relative to the sampler: importance weights would correct for it twice."""


class LearnerConfig(Settings):
    """Loss, optimizer and batching of one learner step."""

    loss: str = "grpo"
    """grpo, dr_grpo, dapo, gspo, cispo, ppo, dppo_tv, dppo_kl, importance_sampling, or your own as
    "module:function". The gradients of dr_grpo are about 5 times weaker than those of grpo at the same
    learning rate: raise lr when you choose it. The ratios of gspo hardly leave 1: its paper has eps 3e-4 and
    eps_hi 4e-4. Those of dppo_tv and dppo_kl are relative to the sampler."""
    eps: float = Field(default=0.2, gt=0)
    """Clip range of the ratio below 1; cispo has none. Of dppo_tv how much probability a token may lose, of
    dppo_kl the divergence in nats; there .05 is usual."""
    eps_hi: float | None = Field(default=None, gt=0)
    """Clip range above 1; None means eps, and 0.28 for dapo."""
    normalise: Literal["joint", "stream"] = "joint"
    """"joint" averages the tokens of generator and judge together, so that a long solution leaves its judge's
    tokens less weight; "stream" averages each stream over its own tokens and rows, and adds the two means."""
    max_tokens: int | None = Field(default=None, ge=1)
    """The constant that dr_grpo divides by, for instance the completion limit."""
    beta: float = Field(default=0.0, ge=0)
    """Weight of the KL to the reference; with 0 there is none, unless ``keep_reference``."""
    beta_judge: float | None = Field(default=None, ge=0)
    """The same for judge tokens; None means beta."""
    keep_reference: bool = False
    """Whether the reference is there with beta 0 too: its KL is measured, and a likelihood reward reads by it
    (``rewards.likelihood_weight``). Of full weights it is a copy; of an adapter the model without it."""
    reference_every: int = Field(default=0, ge=0)
    """After so many steps the reference becomes the model as it then is, and again after as many; with 0 it
    stays the model that training began with. ``reference_step`` tells which it is."""
    kl: Literal["k1", "k2", "k3"] = "k3"
    """Estimator of that KL: "k3" and "k2" make sense as a loss, "k1" as a reward."""
    kl_in: Literal["loss", "reward"] = "loss"
    """Whether beta * KL is added to the loss, or taken from the advantage of each token."""
    entropy_bonus: float = Field(default=0.0, ge=0)
    """Weight of the mean entropy, which is added to what is maximised."""
    tis_cap: Annotated[float, Field(ge=0)] | Literal["auto"] = "auto"
    """Weight each token by exp(trainer - sampler), at most this (truncated importance sampling; 2 is usual);
    0 does not. "auto" is 2 where an engine with weights of its own samples, whose log-probabilities are not
    quite the trainer's (``mismatch_kl``), and 0 otherwise, also for a learner of your own loop, and for
    dppo_tv and dppo_kl."""
    tis: Literal["token", "sequence_mask"] = "token"
    """What ``tis_cap`` bounds: the weight of each token, or with "sequence_mask" that of all tokens of a
    stream in a row together, which are left out where it is larger (TRL's default, with a cap of 3)."""
    max_staleness: int | None = Field(default=None, ge=0)
    """Drop rows sampled from weights more than so many steps old; None is ``train.async_level`` + 1 in a run,
    and in a learner of your own loop keeps all."""
    lr: float = Field(default=3e-5, gt=0, le=100)
    """Peak learning rate."""
    betas: tuple[float, float] = (0.9, 0.95)
    """AdamW's decay rates."""
    adam_eps: float | None = Field(default=None, gt=0)
    """AdamW's epsilon. None is 1e-8 where trained weights are float32 and the learning rate warms up, so that
    small gradients of large models move them too (``update_per_lr``), and 1e-5 otherwise: 1e-7 without
    warm-up is known to explode."""
    weight_decay: float = Field(default=0.0, ge=0)
    """AdamW's decoupled weight decay."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """The gradient is scaled down to this norm."""
    warmup_steps: int = Field(default=30, ge=0)
    """Steps in which the learning rate rises linearly to its peak."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """What follows the warm-up; linear and cosine reach 0 when the run ends."""
    minibatches: int = Field(default=1, ge=1)
    """Optimizer updates in one pass over a step's rows."""
    epochs: int = Field(default=1, ge=1)
    """Passes over a step's rows."""
    micro_batch_tokens: int = Field(default=8192, ge=1)
    """Tokens that one forward pass reads, padding included; it changes memory and speed, not the result."""
    share_prefixes: bool = False
    """Read once what rows share: most of the prompts of a round. The same result but for rounding."""
    compute: Literal["auto", "float32", "bfloat16"] = "auto"
    """The type in which matrices are multiplied, whatever that of the weights: "auto" is bfloat16 for float32
    weights on a GPU and the base's type under an adapter. Gradients, logits and losses stay float32. The
    model samples in it too, where it samples in this process; the logits that it draws from are rounded to
    it."""
    compile: bool = False
    """Compile the layers that learn by torch.compile, which needs Triton or a C compiler, and minutes in the
    first step. The same result but for rounding; what samples is not compiled. For one process. Not measured
    on a GPU yet, and off for that reason."""
    gradient_checkpointing: bool | Literal["auto"] = "auto"
    """Keep no activations of the layers and compute them again in the backward pass: the same result in a
    fraction of the memory. A step of full weights takes 8 units of work in place of 6, one of an adapter 6 in
    place of 4. "auto" does where the run would otherwise take over 90% of the memory, as estimated; a learner
    of your own loop has no estimate, and does not."""
    max_bad_steps: int = Field(default=10, ge=1)
    """So many steps in a row without a finite gradient or reward end the run."""
    old_logprobs: Literal["recompute", "sampling"] = "recompute"
    """Ratios are relative to the trainer's log-probabilities before the first update, or the sampler's."""
    seed: int = 0
    """Of the order of rows in minibatches."""

    @field_validator("loss")
    @classmethod
    def _known_loss(cls, value: str) -> str:
        if value not in LOSS_NAMES and ":" not in value:
            raise ValueError(f'unknown loss {value!r}; valid: {", ".join(LOSS_NAMES)}, or "module:function"')
        return value

    @model_validator(mode="after")
    def _decay_rates(self) -> Self:
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas must lie in [0, 1), got {self.betas}")
        return self

    @model_validator(mode="after")
    def _weights_of_something(self) -> Self:
        if self.caps_weights and self.old_logprobs == "sampling":
            raise ValueError(
                'tis_cap weighs the trainer against the sampler, and with old_logprobs = "sampling" both are '
                'the sampler; leave out tis_cap, or set old_logprobs = "recompute"'
            )
        if self.caps_weights and self.loss in FROM_SAMPLER:
            raise ValueError(
                f"tis_cap = {self.tis_cap} weighs the trainer against the sampler, and the ratios of "
                f"{self.loss} do that already; leave out tis_cap"
            )
        if self.tis == "sequence_mask" and self.tis_cap == 0:
            raise ValueError(
                'tis = "sequence_mask" leaves out by tis_cap, which is 0; set it to 3, for instance'
            )
        return self

    @model_validator(mode="after")
    def _refreshes_something(self) -> Self:
        if self.reference_every and not self.needs_reference:
            raise ValueError(
                f"reference_every={self.reference_every} refreshes what beta holds the model near; beta is 0"
            )
        return self

    @property
    def caps_weights(self) -> bool:
        """Whether tokens have importance weights, of at most ``tis_cap``."""
        return self.tis_cap not in (0, "auto")

    @property
    def needs_reference(self) -> bool:
        """Whether any token is held near the reference, or it is there for another use."""
        return self.beta > 0 or bool(self.beta_judge) or self.keep_reference


def check_settings(config: LearnerConfig, total_steps: int | None) -> None:
    """Refuse settings that cannot work, and warn of those known to fail; ValueError names the key."""
    if config.schedule != "constant" and total_steps is None:
        raise ValueError(
            f"learner.schedule={config.schedule!r} needs the run's number of steps (total_steps)"
        )
    if config.loss == "dr_grpo" and config.max_tokens is None:
        raise ValueError("learner.loss='dr_grpo' needs learner.max_tokens, its constant divisor; got None")
    if config.adam_eps is not None and config.adam_eps < 1e-6 and config.warmup_steps == 0:
        warnings.warn(
            f"learner.adam_eps={config.adam_eps} without warm-up is known to explode; "
            "set learner.adam_eps to 1e-5 or learner.warmup_steps to 30",
            stacklevel=4,
        )
    if config.needs_reference and (config.kl, config.kl_in) == ("k1", "loss"):
        warnings.warn(
            'learner.kl="k1" as a loss holds nothing: its gradient is zero on average; '
            'choose k2 or k3, or learner.kl_in="reward"',
            stacklevel=4,
        )
    if config.tis == "sequence_mask" and not config.caps_weights:
        where, cure = "where the model itself samples", "set learner.tis_cap = 3, or "
        if config.loss in FROM_SAMPLER:
            where, cure = f"for {config.loss}", ""
        warnings.warn(
            'learner.tis = "sequence_mask" does nothing: learner.tis_cap = "auto" is 0 '
            f"{where}; {cure}leave learner.tis out",
            stacklevel=4,
        )
    if idle := idle_settings(config):
        warnings.warn(
            f"{'; '.join(idle)}: with one update in a step (learner.epochs = learner.minibatches = 1) and "
            "recomputed old log-probabilities every ratio is 1; raise learner.minibatches, or leave it out",
            stacklevel=4,
        )


def idle_settings(config: LearnerConfig) -> list[str]:
    """Return what of the settings does nothing because no ratio leaves 1, each with what it comes to.

    >>> idle_settings(LearnerConfig(loss="gspo", eps=3e-4))
    ['learner.loss = "gspo" has the gradient of grpo', 'learner.eps = 0.0003 does nothing']
    >>> idle_settings(LearnerConfig(eps=0.1, minibatches=2))
    []
    """
    elsewhere = config.old_logprobs == "sampling" or ":" in config.loss or config.loss in FROM_SAMPLER
    if config.epochs * config.minibatches > 1 or elsewhere:
        return []
    same = {"gspo": "grpo", "cispo": "dapo", "ppo": "dapo"}.get(config.loss)
    clips = {key: getattr(config, key) for key in ("eps", "eps_hi")}
    named = {key: one for key, one in clips.items() if one != LearnerConfig.model_fields[key].default}
    loss = [f'learner.loss = "{config.loss}" has the gradient of {same}'] if same else []
    return loss + [f"learner.{key} = {value:g} does nothing" for key, value in named.items()]
