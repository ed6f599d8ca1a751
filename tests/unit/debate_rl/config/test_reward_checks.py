"""Reward settings that contradict each other are refused in one line, with the way out."""

import pytest
from pydantic import ValidationError

from debate_rl.config import Config

WIN_RATE = {"peer": "win_rate"}


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"rewards": WIN_RATE}, r'set advantages.peer.baseline = "group"'),
        ({"rewards": WIN_RATE | {"mix": "rewards"}, "advantages": {"mixed": {"baseline": "none"}}}, "mixed"),
        ({"rewards": {"judge_verdict_weight": [[0, 0.5], [9, 0.0]]}}, "set verifier.endpoint"),
        (
            {"rewards": {"truth_rounds": "last"}, "advantages": {"judge": {"key": "pair"}}},
            'rewards.truth_rounds = "last" also changes',
        ),
        ({"rewards": {"labels": 0, "pseudo": "verified"}}, "set verifier.endpoint and verifier.beside_truth"),
        ({"rewards": {"labels": 0, "judge_pseudo": True}}, r"there are no pseudo-labels"),
        ({"rewards": {"labels": 0, "truth_weight": 1}}, "leaves the generator without reward"),
        ({"train": {"control": "random_reward"}, "rewards": {"labels": 0, "pseudo": "voted"}}, "coin tosses"),
        ({"train": {"control": {}}}, "must contain one control"),
        ({"train": {"control_share": 0.2}}, "it is now control = {flipped_votes = 0.3}"),
        (
            {"debate": {"min_rounds": 1}, "advantages": {"discount": 0.7}},
            r'agents would earn more by not agreeing; set rewards.truth_rounds = "last"',
        ),
    ],
)
def test_contradictions_are_refused(tables: dict[str, object], message: str):
    with pytest.raises(ValidationError, match=message):
        Config.model_validate({"env": {"kind": "pair_sum"}, "model": {"tiny": {}}} | tables)


@pytest.mark.parametrize(
    "tables",
    [
        {"rewards": WIN_RATE, "advantages": {"peer": {"baseline": "group", "scale": "none"}}},
        {"rewards": WIN_RATE | {"mix": "rewards"}},
        {"rewards": {"peer": "net_wins", "truth_rounds": "last", "judge_ties": "reward"}},
        {"debate": {"min_rounds": 1}, "advantages": {"discount": 0.7}, "rewards": {"truth_rounds": "last"}},
    ],
)
def test_what_fits_together_is_accepted(tables: dict[str, object]):
    Config.model_validate({"env": {"kind": "pair_sum"}, "model": {"tiny": {}}} | tables)
