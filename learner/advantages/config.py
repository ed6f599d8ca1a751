"""How each stream's rewards become advantages."""

from __future__ import annotations

from typing import Literal, Self, TypeAlias

from pydantic import Field, model_validator

from debate.ramps import Weight, settings_at
from debate.settings import Settings
from learner.advantages.baselines import Baseline, Scale

Author: TypeAlias = Literal["generator", "judge", "both"]
Key: TypeAlias = Literal["auto", "round", "persona", "persona_effect", "debate", "context", "pair"]


class StreamSettings(Settings):
    """How one stream is centred and scaled."""

    baseline: Baseline = "group"
    """What is subtracted from a reward: the mean of its group ("group"), the mean of the other rewards in its
    group ("rloo"), the running mean of the persona ("rae"), or nothing ("none")."""
    scale: Scale = "group"
    """What the reward minus its baseline is divided by: the standard deviation of the group ("group") or of
    the batch ("batch", at least 0.1), or nothing ("none", the default with ``learner.loss = "dr_grpo"``)."""
    key: Key = "auto"
    """Which turns form a group. "round": the turns of one problem and round, over all debates of the problem.
    "persona" and "debate" divide these turns by persona or by debate. "pair" (judges only) divides them by
    whether the right solution was shown first or second; both sides count equally. Two keys add an effect to
    the group mean of "round", fitted over the problems of a step (learner.advantages.context_effects).
    "persona_effect": the effect of the persona.
    "context": the effect of whether the agent was right before, and of how many right solutions it read.
    "auto" is "persona_effect" if the temperatures of personas differ, else "round"."""

    @model_validator(mode="after")
    def _compared_by_key(self) -> Self:
        if self.key in ("debate", "context", "persona_effect") and self.baseline not in ("group", "rloo"):
            raise ValueError(
                f'key = "{self.key}" applies to the baselines "group" and "rloo", but baseline = '
                f'"{self.baseline}" is neither; use one of these, or leave out key'
            )
        return self


EMA_DECAY = 0.95
"""Decay per step of the running means of baseline "rae"."""


class AdvantageConfig(Settings):
    """Baselines and scales for each stream, and the weight of each role.

    Peer rewards are neither centred nor scaled by default: the votes of a debate already sum to about
    zero, and dividing by their spread would turn votes among equals into noise of unit variance.
    """

    peer: StreamSettings = StreamSettings(baseline="none", scale="none")
    """Rewards by votes received."""
    truth: StreamSettings = StreamSettings()
    """Rewards by ground truth."""
    judge: StreamSettings = StreamSettings()
    """Rewards for votes given."""
    shaping: StreamSettings = StreamSettings(scale="none")
    """Rewards for novelty, copies and length; their advantages are added to those of peer and truth."""
    likelihood: StreamSettings = StreamSettings()
    """Rewards by the likelihood of the gold answer; their weight is ``rewards.likelihood_weight``."""
    persuasion: StreamSettings = StreamSettings(scale="none")
    """Rewards of criticism. Only for ``debate.protocol = "critique"``."""
    format: StreamSettings = StreamSettings(scale="none")
    """Rewards for comparisons that were due and are missing; they apply to the judge's tokens."""
    discount: float = Field(default=0.0, ge=0, le=1)
    """Discount of later rounds in the return of an earlier solution: r_t + discount * r_{t+1} + ... for peer
    and truth. With 0, each round is rewarded only for itself."""
    mixed: StreamSettings = StreamSettings()
    """Peer and truth as one reward; only with ``rewards.mix = "rewards"``."""
    lambda_gen: Weight = 1.0
    """Weight of the generator's advantages. At 0 only KL and entropy act on the generator's tokens."""
    lambda_judge: Weight = 1.0
    """Weight of the judge's advantages. At 0 only KL and entropy act on the judge's tokens."""
    lambda_critic: Weight = 1.0
    """Weight of the critics' advantages. Only for ``debate.protocol = "critique"``."""
    evaluation: Author = "judge"
    """Which advantage the evaluation section gets, in a turn in which a comparison is due: the generator's,
    the judge's (the evaluation prepares its votes), or the sum of both. With "judge" and "both",
    ``learner.beta_judge``, the ratio of gspo and ``learner.normalise`` treat its tokens as judge tokens."""
    keep_unrewarded: bool = False
    """Keep turns without a reward as rows with advantage 0, so that the KL penalty acts on them. For
    example, ``learner.beta_judge`` then acts on ballots about problems without labels."""

    @model_validator(mode="after")
    def _only_judges_have_pairs(self) -> Self:
        for name in ("peer", "truth", "shaping", "likelihood", "persuasion", "format", "mixed"):
            if getattr(self, name).key == "pair":
                raise ValueError(f'{name}.key = "pair": only judges see pairs; use it in judge.key')
        return self

    @property
    def group_keys(self) -> dict[str, Key]:
        """The group key of each stream."""
        streams = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: own.key for name, own in streams.items() if isinstance(own, StreamSettings)}

    def at_step(self, step: int) -> Self:
        """Return the settings at a step, with a number instead of every ramp."""
        return settings_at(self, step)
