"""How each stream's rewards become advantages."""

from __future__ import annotations

from typing import Literal, Self, TypeAlias

from pydantic import Field, model_validator

from debate.ramps import Weight, settings_at
from debate.settings import Settings
from learner.advantages.streams import Baseline, Scale

Author: TypeAlias = Literal["generator", "judge", "both"]
Key: TypeAlias = Literal["auto", "round", "persona", "persona_effect", "debate", "context", "pair"]


class StreamSettings(Settings):
    """How one stream is centred and scaled."""

    baseline: Baseline = "group"
    """What is subtracted: the group's mean, the mean of the others, the persona's running mean, nothing."""
    scale: Scale = "group"
    """What divides: the group's standard deviation, the batch's (at least 0.1), nothing; with ``learner.loss
    = "dr_grpo"`` nothing does, unless a scale is named."""
    key: Key = "auto"
    """A group is the turns of one problem and round over its debates ("round"), or those of one persona or of
    one debate among them, or (judge only) those whose pairs had the right solution on the same side; both
    sides then count alike. Two keys add to the mean of "round" an effect that is fitted over the problems of
    the step (learner.advantages.contexts): "persona_effect" that of the persona; "context" that of whether
    the agent was right before, and of how many right solutions it was shown. "auto" is "persona_effect" where
    the temperatures of personas differ, and "round" where they do not."""

    @model_validator(mode="after")
    def _compared_by_key(self) -> Self:
        if self.key in ("debate", "context", "persona_effect") and self.baseline not in ("group", "rloo"):
            raise ValueError(
                f'key = "{self.key}" changes the baselines "group" and "rloo", and baseline = '
                f'"{self.baseline}" is neither; set one of them, or leave out key'
            )
        return self


class AdvantageConfig(Settings):
    """Baselines and scales for each stream, and the weight of each role.

    Peer rewards are neither centred nor scaled by default: the votes of a debate already sum to about
    zero, and dividing by their spread would turn votes among equals into noise of unit variance.
    """

    peer: StreamSettings = StreamSettings(baseline="none", scale="none")
    """Votes received."""
    truth: StreamSettings = StreamSettings()
    """Ground truth."""
    judge: StreamSettings = StreamSettings()
    """Votes given."""
    shaping: StreamSettings = StreamSettings(scale="none")
    """What is new, copied or long, where ``rewards`` has any of it: added to peer and truth."""
    likelihood: StreamSettings = StreamSettings()
    """The gold answer's likelihood, with ``rewards.likelihood_weight``: added with that weight."""
    persuasion: StreamSettings = StreamSettings(scale="none")
    """What criticism earns, in a critique."""
    format: StreamSettings = StreamSettings(scale="none")
    """Comparisons that were due and did not come, among the turns that owed any: on the judge's tokens."""
    discount: float = Field(default=0.0, ge=0, le=1)
    """What an agent's later rounds count for its earlier solutions, for each round between: peer and truth
    rewards are returns, r + discount * r of the next round + ...; 0: each round for itself."""
    mixed: StreamSettings = StreamSettings()
    """Peer and truth together; only with ``rewards.mix = "rewards"``."""
    lambda_gen: Weight = 1.0
    """Weight of the generator's advantages; at 0 only a KL or an entropy bonus still acts on its tokens."""
    lambda_judge: Weight = 1.0
    """Weight of the judge's advantages; at 0 only a KL or an entropy bonus still acts on its tokens."""
    lambda_critic: Weight = 1.0
    """Weight of the critics' advantages, in a critique."""
    evaluation: Author = "judge"
    """Whose advantage an evaluation gets in a debate turn that owed a comparison: the generator's, as the
    solution before it; the judge's, whose votes it prepares; or the sum of both. With the judge's share in it
    ``learner.beta_judge``, the ratio of gspo and ``learner.normalise`` take it as the judge's, too."""
    keep_unrewarded: bool = False
    """Whether turns that nothing rewards are rows, too, with advantages of 0, so that a KL acts on them:
    that of ``learner.beta_judge`` on the final ballots of judges without labels, for example."""
    ema_decay: float = Field(default=0.95, ge=0, lt=1)
    """Decay of the running means of the baseline "rae", by step."""

    @model_validator(mode="after")
    def _only_judges_have_pairs(self) -> Self:
        for name in ("peer", "truth", "shaping", "likelihood", "persuasion", "format", "mixed"):
            if getattr(self, name).key == "pair":
                raise ValueError(f'{name}.key = "pair": only a judge is shown pairs; use it in judge.key')
        return self

    @property
    def group_keys(self) -> dict[str, Key]:
        """The key of each stream's groups."""
        streams = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: own.key for name, own in streams.items() if isinstance(own, StreamSettings)}

    def at_step(self, step: int) -> Self:
        """Return the settings of a step: a number in the place of every ramp."""
        return settings_at(self, step)
