"""Settings of the learner. Defaults are defined only here; this module does not load torch."""

from __future__ import annotations

import warnings
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from debate.settings import Seeded

LOSS_FILES = {
    **{name: name for name in ("grpo", "dr_grpo", "dapo", "gspo", "cispo", "ppo", "importance_sampling")},
    **dict.fromkeys(("dppo_tv", "dppo_kl"), "dppo"),
}
"""The file of each loss in ``learner/losses``."""
LOSS_NAMES = tuple(LOSS_FILES)
FROM_SAMPLER = ("dppo_tv", "dppo_kl")
"""Losses whose ratios are relative to the sampler; importance weights would correct for it twice."""


class LearnerConfig(Seeded):
    """Loss, optimizer and batching of one learner step."""

    loss: str = "grpo"
    """grpo, dr_grpo, dapo, gspo, cispo, ppo, dppo_tv, dppo_kl, importance_sampling, or your own as
    "module:function". Gradients of dr_grpo are about 5 times smaller than those of grpo at the same learning
    rate: raise ``lr``. Ratios of gspo stay close to 1: its paper uses eps 3e-4 and eps_hi 4e-4. Ratios of
    dppo_tv and dppo_kl are relative to the sampler."""
    eps: float = Field(default=0.2, gt=0)
    """Clip range of the ratio below 1 (cispo has none). For dppo_tv: the largest decrease of a token's
    probability. For dppo_kl: the largest divergence in nats, usually 0.05."""
    eps_hi: float | None = Field(default=None, gt=0)
    """Clip range of the ratio above 1. None uses ``eps``, and 0.28 for dapo."""
    normalise: Literal["joint", "stream"] = "joint"
    """How token losses are averaged. "joint": over generator and judge tokens together, so a long solution
    lowers the weight of the judge tokens in its row. "stream": over each stream's own tokens and rows; the
    two means are added."""
    max_tokens: int | None = Field(default=None, ge=1)
    """The constant by which dr_grpo divides the loss, for instance the completion limit."""
    beta: float = Field(default=0.0, ge=0)
    """Weight of the KL divergence to the reference model. 0 loads no reference, unless
    ``keep_reference`` is true."""
    beta_judge: float | None = Field(default=None, ge=0)
    """KL weight on judge tokens. None uses ``beta``."""
    keep_reference: bool = False
    """Keep a reference model even if ``beta`` is 0: the KL to it is logged, and the likelihood reward uses it
    (``rewards.likelihood_weight``). With full weights it is a copy of the model; with an adapter, no
    copy is needed."""
    reference_every: int = Field(default=0, ge=0)
    """Steps between updates of the reference to the current weights. 0 keeps the initial weights.
    The metric ``reference_step`` is the step of the reference's weights."""
    kl: Literal["k1", "k2", "k3"] = "k3"
    """KL estimator. "k2" and "k3" are for ``kl_in = "loss"``, "k1" is for "reward"."""
    kl_in: Literal["loss", "reward"] = "loss"
    """Add beta * KL to the loss, or subtract it from each token's advantage ("reward")."""
    entropy_bonus: float = Field(default=0.0, ge=0)
    """Weight of the mean entropy, added to the objective."""
    tis_cap: Annotated[float, Field(ge=0)] | Literal["auto"] = "auto"
    """Truncated importance sampling: weight each token by min(exp(trainer - sampler), cap). 0 turns it off; 2
    is usual. "auto" is 2 if a separate engine samples, because its log-probabilities differ slightly from the
    trainer's (``mismatch_kl``). It is 0 if the trained model itself samples, for dppo_tv and dppo_kl, and
    in your own training loop."""
    tis: Literal["token", "sequence_mask"] = "token"
    """What ``tis_cap`` limits. "token": the weight of each token. "sequence_mask": the product of the weights
    of one stream's tokens in a row. If the product exceeds the cap, these tokens are dropped from the loss
    (TRL's default, with a cap of 3)."""
    max_staleness: int | None = Field(default=None, ge=0)
    """Drop rows sampled from weights more than this many updates old. None is ``train.async_level`` + 1 in a
    run, and no limit in a training loop of your own."""
    lr: float = Field(default=3e-5, gt=0, le=100)
    """Peak learning rate."""
    betas: tuple[float, float] = (0.9, 0.95)
    """Decay rates of AdamW."""
    adam_eps: float | None = Field(default=None, gt=0)
    """Epsilon of AdamW. None is 1e-8 for float32 weights with warm-up, so that small gradients still change
    the weights of large models (``update_per_lr``), and 1e-5 otherwise: 1e-7 without warm-up is known to
    diverge."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """Clip the gradient to this norm."""
    warmup_steps: int = Field(default=30, ge=0)
    """Steps over which the learning rate rises linearly to its peak."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """Learning rate after the warm-up. linear and cosine reach 0 at the end of the run."""
    minibatches: int = Field(default=1, ge=1)
    """Optimizer updates per pass over the rows of a step."""
    epochs: int = Field(default=1, ge=1)
    """Passes over the rows of a step."""
    micro_batch_tokens: int = Field(default=8192, ge=1)
    """Maximum tokens of one forward pass, padding included. This changes memory and speed, not the result.
    With ``model.policy = "vllm"`` the default is 16384."""
    share_prefixes: bool = False
    """Compute shared prompt prefixes of rows once. The result is the same up to rounding. With
    ``model.policy = "vllm"`` the default is true."""
    compute: Literal["auto", "float32", "bfloat16"] = "auto"
    """Data type of matrix products. "auto" is bfloat16 for float32 weights on a GPU, and with an adapter the
    type of the base model. Gradients, logits and losses stay float32. A model that samples in this process
    uses this type too, and its logits are rounded to it."""
    compile: bool = False
    """Compile the trained layers with torch.compile, which needs Triton or a C compiler and minutes in the
    first step. The result is the same up to rounding. Works in a single process only. Not measured on a GPU
    yet."""
    gradient_checkpointing: bool | Literal["auto"] = "auto"
    """Recompute activations in the backward pass: less memory, same result. It costs a third more compute
    with full weights, and half more with an adapter. "auto" turns it on if the run is forecast to use more
    than 90% of the memory without it; in a training loop of your own it is off."""
    old_logprobs: Literal["recompute", "sampling"] = "recompute"
    """Denominator of the ratios: the trainer's log-probabilities before the first update ("recompute"), or
    the sampler's ("sampling")."""

    @field_validator("loss")
    @classmethod
    def _known_loss(cls, value: str) -> str:
        if value not in LOSS_NAMES and ":" not in value:
            raise ValueError(f'unknown loss {value!r}; valid: {", ".join(LOSS_NAMES)}, or "module:function"')
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas must lie in [0, 1), got {self.betas}")
        if self.caps_weights and self.old_logprobs == "sampling":
            raise ValueError(
                "tis_cap weights the trainer relative to the sampler, but with old_logprobs = "
                '"sampling" both sides are the sampler\'s; leave out tis_cap, or set '
                'old_logprobs = "recompute"'
            )
        if self.caps_weights and self.loss in FROM_SAMPLER:
            raise ValueError(
                f"tis_cap = {self.tis_cap} weights the trainer relative to the sampler, but the ratios of "
                f"{self.loss} already do that; leave out tis_cap"
            )
        if self.tis == "sequence_mask" and self.tis_cap == 0:
            raise ValueError('tis = "sequence_mask" drops rows above tis_cap, which is 0; set tis_cap to 3')
        if self.reference_every and not self.needs_reference:
            raise ValueError(
                f"reference_every={self.reference_every} updates the KL reference, but beta is 0; set beta"
            )
        return self

    @property
    def caps_weights(self) -> bool:
        """Whether tokens get importance weights, capped at ``tis_cap``."""
        return self.tis_cap not in (0, "auto")

    @property
    def needs_reference(self) -> bool:
        """Whether a reference is needed, for a KL penalty or for another use."""
        return self.beta > 0 or bool(self.beta_judge) or self.keep_reference


def check_settings(config: LearnerConfig, total_steps: int | None) -> None:
    """Refuse settings that cannot work, and warn about those known to fail. A ValueError names the key."""
    if config.schedule != "constant" and total_steps is None:
        raise ValueError(
            f"learner.schedule={config.schedule!r} needs the run's number of steps (total_steps)"
        )
    if config.loss == "dr_grpo" and config.max_tokens is None:
        raise ValueError("learner.loss='dr_grpo' needs learner.max_tokens, its constant divisor; got None")
    notes: list[str] = []
    if config.adam_eps is not None and config.adam_eps < 1e-6 and config.warmup_steps == 0:
        notes.append(
            f"learner.adam_eps={config.adam_eps} without warm-up is known to explode; "
            "set learner.adam_eps to 1e-5 or learner.warmup_steps to 30"
        )
    if config.needs_reference and (config.kl, config.kl_in) == ("k1", "loss"):
        notes.append(
            'learner.kl="k1" as a loss has no effect: its gradient is zero on average; '
            'choose k2 or k3, or learner.kl_in="reward"'
        )
    if config.tis == "sequence_mask" and not config.caps_weights:
        from_sampler = config.loss in FROM_SAMPLER
        where = f"for {config.loss}" if from_sampler else "where the model itself samples"
        cure = "" if from_sampler else "set learner.tis_cap = 3, or "
        notes.append(
            'learner.tis = "sequence_mask" does nothing: learner.tis_cap = "auto" is 0 '
            f"{where}; {cure}leave learner.tis out"
        )
    if idle := idle_settings(config):
        notes.append(
            f"{'; '.join(idle)}: with one update in a step (learner.epochs = learner.minibatches = 1) and "
            "recomputed old log-probabilities every ratio is 1; raise learner.minibatches, or leave these out"
        )
    for note in notes:
        warnings.warn(note, stacklevel=4)


def idle_settings(config: LearnerConfig) -> list[str]:
    """Return the settings without effect because every ratio is 1, each with its actual effect.

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
