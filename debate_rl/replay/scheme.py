"""One step's rewards and advantages under a scheme, as training computes them."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from debate_rl.rollouts.records import advantages_by_debate
from debate_rl.rollouts.worker import finite
from envs.registry import key_by_itself
from learner.advantages import AdvantageConfig, turn_advantages
from learner.advantages.turns import Advantages, generator_streams
from learner.types import Transition, group_indices, transitions_of
from rewards import Credit, RewardConfig, Rewards, score_debate, score_debates
from rewards.labels import OF_TRUTH
from rewards.measured import measure
from rewards.routing import routed_as
from transcripts import Record, TurnAdvantages

if TYPE_CHECKING:
    from debate_rl.config import Config


@dataclass(frozen=True, slots=True)
class Scheme:
    """What turns a step's debates into advantages; ``group_size`` is the debates K of each problem.

    ``seed``: the run's, which deals labels; ``coins``: whether coins stand for truth (``train.control``).
    """

    rewards: RewardConfig
    advantages: AdvantageConfig
    group_size: int
    seed: int = 0
    coins: bool = False

    @property
    def remembers(self) -> bool:
        """Whether a step's advantages depend on the steps before, by running means or measured votes."""
        names = (*generator_streams(self.rewards), "judge", "persuasion", "format")
        return self.rewards.peer_weight == "measured" or any(
            getattr(self.advantages, name).baseline == "rae" for name in names
        )

    def at_step(self, step: int) -> Scheme:
        """Return the scheme of a step: a number in the place of every ramp."""
        now = self.rewards.at_step(step), self.advantages.at_step(step)
        return replace(self, rewards=now[0], advantages=now[1])

    def scores_as(self, other: Scheme) -> bool:
        """Return whether the rewards are the same as another scheme's: these keys act on advantages only."""
        same = {"truth_weight": 0.5, "mix": "advantages"}
        alike = self.rewards.model_copy(update=same) == other.rewards.model_copy(update=same)
        return alike and self.group_size == other.group_size


def scheme_of(config: Config) -> Scheme:
    """Return how a run's debates were, or are to be, rewarded."""
    coins = config.train.control == "random_reward"
    size = config.train.group_size
    return Scheme(config.rewards, config.advantages, size, config.seed, coins)


@dataclass(frozen=True, slots=True)
class ScoredStep:
    """A step's debates with their rewards, how many of each were not finite, and the turns.

    ``credits``: what each was rewarded by.
    """

    step: int
    records: Sequence[Record]
    rewards: Sequence[Rewards]
    credits: Sequence[Credit]
    not_finite: Sequence[int]
    transitions: Sequence[Transition]


@dataclass(frozen=True, slots=True)
class Replayed:
    """A debate's rewards and advantages under some scheme, the latter by turns in order.

    ``not_finite`` rewards were infinite or not a number, and are None.
    """

    rewards: Rewards
    advantages: tuple[TurnAdvantages, ...]
    not_finite: int = 0


def rewards_of(record: Record, config: RewardConfig) -> Rewards:
    """Return the rewards of a stored debate alone, credited and routed as its step was."""
    rewards = score_debate(
        record.debate,
        record.correct,
        config,
        record.verdicts or None,
        likelihoods=record.likelihoods or None,
        key=key_by_itself,
        credit=record.credit or OF_TRUTH,
    )
    return routed_as(rewards, record.rewards) if config.peer_weight == "routed" else rewards


def score_step(records: Sequence[Record], scheme: Scheme) -> ScoredStep:
    """Return the rewards of a step; ``records`` are all of it, in order."""
    step = records[0].step if records else 0
    debates = [record.debate for record in records]
    groups = group_indices([record.group for record in records], scheme.group_size)
    given, credits = score_debates(
        debates,
        [record.correct for record in records],
        groups,
        scheme.rewards.at_step(step),
        seed=scheme.seed,
        verdicts=[record.verdicts or None for record in records],
        likelihoods=[record.likelihoods or None for record in records],
        key=key_by_itself,
        coins=scheme.coins,
    )
    scored = [finite(one) for one in given]
    rewards, not_finite = [reward for reward, _ in scored], [count for _, count in scored]
    return ScoredStep(step, records, rewards, credits, not_finite, transitions_of(debates, rewards, groups))


def advantages_of_step(scored: ScoredStep, scheme: Scheme, ema: MutableMapping[str, float]) -> Advantages:
    """Return the advantages of a step's turns; ``ema`` as in ``replay_step``."""
    now = scheme.at_step(scored.step)
    found = turn_advantages(scored.transitions, now.rewards, now.advantages, ema, counted=False)
    if now.rewards.peer_weight == "measured":
        measure_votes(scored, ema)
    return found


def measure_votes(scored: ScoredStep, state: MutableMapping[str, float]) -> None:
    """Take a step's votes on labelled problems into the state that weighs the votes of the next."""
    pairs = zip(scored.records, scored.credits, strict=True)
    visible = [record.correct if credit.truth == "truth" else None for record, credit in pairs]
    measure(state, [record.debate for record in scored.records], visible, key_by_itself)


def replay_step(scored: ScoredStep, scheme: Scheme, ema: MutableMapping[str, float]) -> list[Replayed]:
    """Return what each debate of a step gets.

    ``ema`` holds the running means of the steps before, and is left with those after.
    """
    found = advantages_of_step(scored, scheme, ema)
    parts = advantages_by_debate([record.debate for record in scored.records], found.turns)
    return list(map(Replayed, scored.rewards, parts, scored.not_finite))
