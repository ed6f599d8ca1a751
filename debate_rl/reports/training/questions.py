"""The eight diagnostic questions of the debate training analysis, with threshold, source and filter."""

from __future__ import annotations

from debate_rl.reports.training.answers import (
    SOURCE,
    Question,
    base_accuracy,
    diversity,
    gradients,
    loss_and_progress,
    overfitting,
    updating,
    valid_comparisons,
    votes_and_truth,
)

QUESTIONS = (
    Question(
        "Q1",
        "What can the model do before training?",
        "good from .05, bad below .01; above .95 there is little to learn",
        f"{SOURCE}, 2.1: base accuracy of 5%",
        "step:0..4 accuracy.round_0:0",
        base_accuracy,
    ),
    Question(
        "Q2",
        "Are comparisons made, and valid?",
        "votes above 0; invalid below .5 (bad above .7); due and missing below .2 (bad above .5)",
        f"{SOURCE}, 2.1",
        "votes:0 OR malformed:>0",
        valid_comparisons,
    ),
    Question(
        "Q3",
        "Do the solutions of a problem differ?",
        "distinct completions .3 or more (bad below 1.5 / (K N), or .1); wrong consensus "
        "below .2 (bad above .5); good where over .9 of the answers are right, which may be alike",
        f"{SOURCE}, 2.1; bounds are ours",
        "agreement:1",
        diversity,
    ),
    Question(
        "Q4",
        "Do votes follow truth?",
        "judge accuracy .7 or more (bad below .55); correlation of winner and right .3 or more (at worst a "
        "warning: it is small where nearly all answers are alike in truth)",
        f"{SOURCE}, 3.2 and 4.3",
        "judge.accuracy:<0.5",
        votes_and_truth,
    ),
    Question(
        "Q5",
        "Is there a signal to learn from?",
        "std of truth and peer rewards .1 to 5 (bad above, and where neither has any), gradient above 0, "
        "groups without variance below .6 (bad above .95)",
        f"{SOURCE}, 2.1 (peer means are 0 by construction, so these are judged)",
        "reward.peer:none",
        gradients,
    ),
    Question(
        "Q6",
        "Does anything get better?",
        "accuracy of the last third above that of the first, 95%; a policy gradient's loss need not fall",
        f"{SOURCE}, 2.2",
        "accuracy.last_round:0",
        loss_and_progress,
    ),
    Question(
        "Q7",
        "Does the policy change?",
        "updates above 0, KL above 1e-6, outputs on the same problem further apart late than early",
        f"{SOURCE}, 2.2",
        "",
        updating,
    ),
    Question(
        "Q8",
        "Is what is gained also gained on held-out problems?",
        "held-out gain at least a quarter of the training gain; bad where the detector held_out fires",
        f"{SOURCE}, 2.2; the quarter is ours",
        "accuracy:1",
        overfitting,
    ),
)
"""In the seed's order."""
