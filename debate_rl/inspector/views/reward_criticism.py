"""How a critic's reward is written: a part for each of its targets."""

from __future__ import annotations

from debate.ramps import number
from debate.types import Debate, TurnId
from debate_rl.inspector.views.reward_types import written
from rewards import Correct, RewardConfig, ballot_box, valid_votes
from rewards.criticism import criticised, persuasions

SOURCES = {
    "persuasion": "of each target its score by the others less that of its revision",
    "help": "of each target the score of its revision by the others less that of its solution",
}


def persuasion_formula(debate: Debate, turn: TurnId, correct: Correct, scheme: RewardConfig) -> str:
    """Return what a critic earns as the sum over its targets; "" where none has both scores."""
    beta, parts = written(number(scheme.persuasion_beta)), list[str]()
    for one in criticised(debate, valid_votes(ballot_box(debate, judge_own=scheme.judge_own))):
        earned = persuasions([one], correct, scheme).get(turn)
        if earned is not None:
            before, after = written(one.before), written(one.after)
            helped = scheme.critic == "help"
            said = f"{beta} * ({after} - {before})" if helped else f"{beta} * max(0, {before} - {after})"
            parts.append(said if earned or not one.worth(scheme.critic) else written(0.0))
    return " + ".join(parts)


def persuasion_source(scheme: RewardConfig) -> str:
    """Return where the number is from, in words."""
    source = SOURCES[scheme.critic]
    return f"{source}; 0 for a right one" if scheme.persuasion_targets == "wrong" else source
