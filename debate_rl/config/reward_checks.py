"""Checks for contradictions between settings of rewards, advantages, agents and verifier models."""

from __future__ import annotations

from collections.abc import Mapping

from debate.config import DebateConfig
from debate.protocols import GAMES
from debate.ramps import values_of
from debate_rl.config.endpoints import RoleConfig
from debate_rl.config.models import ModelConfig
from debate_rl.config.verifier import VerifierConfig
from debate_rl.config.warm_start import WarmStartConfig
from learner.advantages import AdvantageConfig
from learner.advantages.turns import CREDIT
from learner.update.config import LearnerConfig
from rewards import RewardConfig


def check_rewards(rewards: RewardConfig, advantages: AdvantageConfig, verifier: VerifierConfig) -> None:
    """Raise ValueError for settings that contradict each other. The message says how to fix them."""
    for name in keys_by_truth(advantages):
        _refuse_blind(name, rewards)
        _refuse_bonus(name, rewards)
        _refuse_later_labels(name, rewards)
    _refuse_wins_without_baseline(rewards, advantages)
    if max(values_of(rewards.judge_verdict_weight)) > 0 and verifier.endpoint is None:
        raise ValueError(
            "rewards.judge_verdict_weight: weights preferences of a verifier model; set "
            "verifier.endpoint, or set it to 0"
        )


def keys_by_truth(advantages: AdvantageConfig) -> list[str]:
    """Return the settings of advantage keys that depend on which solutions are right."""
    keys = advantages.group_keys.items()
    return [f'advantages.{name}.key = "{key}"' for name, key in keys if key in ("pair", "context")]


def check_labels(rewards: RewardConfig, verifier: VerifierConfig, control: object) -> None:
    """Raise ValueError for pseudo-labels without a source, and for two controls at once."""
    if rewards.pseudo == "verified" and (verifier.endpoint is None or not verifier.beside_truth):
        raise ValueError(
            'rewards.pseudo = "verified": needs verdicts of a verifier model; set '
            "verifier.endpoint and verifier.beside_truth = true, or choose another rule"
        )
    if control == "random_reward" and rewards.pseudo != "none":
        raise ValueError(
            'train.control = "random_reward": replaces truth by coin tosses, but so does rewards.pseudo = '
            f'"{rewards.pseudo}"; leave out one of them'
        )
    if isinstance(control, Mapping) and len(control) != 1:
        raise ValueError("train.control: a table must contain one control, as in {flipped_votes = 0.3}")


def check_returns(debate: DebateConfig, rewards: RewardConfig, advantages: AdvantageConfig) -> None:
    """Raise ValueError if summed truth rewards would favor disagreement. Agreement ends a debate early, so
    agents that agree would lose the truth rewards of later rounds.
    """
    rewarded = max(values_of(rewards.truth_weight)) > 0 and rewards.truth_rounds == "all"
    if advantages.discount and debate.min_rounds is not None and rewarded:
        raise ValueError(
            f"advantages.discount = {advantages.discount:g} sums the truth rewards of later rounds, but "
            f"debates end early on agreement (debate.min_rounds = {debate.min_rounds}), so agents would earn "
            'more by not agreeing; set rewards.truth_rounds = "last", or leave out one of the two keys'
        )


def check_keys(debate: DebateConfig, advantages: AdvantageConfig) -> None:
    """Raise ValueError if the key of an advantage compares agents that are not comparable."""
    named = [name for name, key in advantages.group_keys.items() if key == "debate"]
    for key in (f'advantages.{name}.key = "debate"' for name in named):
        if min(protocol.learners for protocol in debate.protocols()) < 2 or debate.protocol in GAMES:
            one = f'debate.protocol = "{debate.protocol}"' if debate.protocol in GAMES else "one agent learns"
            raise ValueError(
                f"{key} compares agents that act at the same time, but with {one} there is only one; "
                "choose another key"
            )
        if advantages.discount and key.split(".")[1] in CREDIT:
            raise ValueError(
                f"{key} compares a turn with others of its debate, but with advantages.discount = "
                f"{advantages.discount:g} their later rewards depend on it; leave out one of the two"
            )


def check_likelihood(learner: LearnerConfig, *, dynamic_sampling: int) -> None:
    """Raise ValueError if the likelihood reward has no frozen model, or is computed too late to be used."""
    if not learner.needs_reference:
        raise ValueError(
            "rewards.likelihood_weight: needs the frozen reference, but there is none (learner.beta = 0); "
            "set learner.keep_reference = true, or learner.beta above 0"
        )
    if learner.reference_every:
        raise ValueError(
            "rewards.likelihood_weight: needs a frozen reference, but learner.reference_every = "
            f"{learner.reference_every} changes it and so the meaning of the reward; set it to 0"
        )
    if dynamic_sampling:
        raise ValueError(
            f"train.dynamic_sampling = {dynamic_sampling}: replaces problems without a signal before the "
            "likelihood reward is known; set it to 0, or rewards.likelihood_weight"
        )


def _refuse_blind(key: str, rewards: RewardConfig) -> None:
    if rewards.truth_correct in (rewards.truth_wrong, rewards.truth_missing):
        raise ValueError(
            f"{key} recognizes right solutions by their truth reward, but other solutions also get "
            f"rewards.truth_correct = {rewards.truth_correct:g}"
        )


def _refuse_bonus(key: str, rewards: RewardConfig) -> None:
    parts = {
        f"rewards.form_bonus = {rewards.form_bonus}": rewards.form_bonus,
        'rewards.truth_credit = "partial"': rewards.truth_credit == "partial",
        'rewards.truth_rounds = "last"': rewards.truth_rounds == "last",
    }
    if named := [name for name, given in parts.items() if given]:
        raise ValueError(
            f"{key} finds right solutions by their truth reward, but {named[-1]} also changes this reward; "
            "leave out one of them"
        )


def _refuse_later_labels(key: str, rewards: RewardConfig) -> None:
    later = ("voted", "anchored", *(["last_majority"] if key.endswith('"context"') else []))
    if rewards.pseudo in later:
        raise ValueError(
            f'{key} depends on what was known before a turn, but rewards.pseudo = "{rewards.pseudo}" labels '
            f'it only afterwards; set rewards.pseudo = "majority", or another key'
        )


def _refuse_wins_without_baseline(rewards: RewardConfig, advantages: AdvantageConfig) -> None:
    name = "mixed" if rewards.mix == "rewards" else "peer"
    if rewards.peer == "win_rate" and getattr(advantages, name).baseline == "none":
        raise ValueError(
            'rewards.peer = "win_rate": is 1/2 on average, so without a baseline every solution would be '
            f'reinforced; set advantages.{name}.baseline = "group", or rewards.peer = "margin"'
        )


def check_seats(
    debate: DebateConfig, remote: RoleConfig, model: ModelConfig, warm_start: WarmStartConfig
) -> None:
    """Raise ValueError for agents in ``debate.seats`` without a policy, and for an unused remote endpoint."""
    if "remote" in debate.seats and remote.endpoint is None:
        raise ValueError(
            f'debate.seats: agent {debate.seats.index("remote")} is "remote", but no endpoint is named; '
            "set remote.endpoint"
        )
    if remote.endpoint is not None and "remote" not in debate.seats:
        raise ValueError('remote.endpoint: is not used; set an entry of debate.seats to "remote"')
    if "frozen" not in debate.seats or model.policy != "vllm":
        return
    ways = 'leave out model.policy, or name the model as remote.endpoint and set the seat to "remote"'
    if not model.lora_rank:
        raise ValueError(
            'debate.seats: "frozen" with model.policy = "vllm" needs an adapter, because an engine '
            f"holds only one copy of full weights: set model.lora_rank, {ways}"
        )
    if warm_start.from_run is not None:
        raise ValueError(
            'debate.seats: "frozen" with model.policy = "vllm" is the base without an adapter, but '
            f"warm_start.from_run = {warm_start.from_run!r} starts from a trained adapter: {ways}"
        )
