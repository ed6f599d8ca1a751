"""Each detector on the numbers of the collapses it is for, and on the edges of its rule."""

import numpy as np
import pytest

from debate_rl.alarms import DETECTORS, readings
from debate_rl.alarms.curves import sustained

BATCHES = (0, 99, 999, 2999, 5999)
RATIOS = (1.0, 1.1719, 21.75, 26.25, 8.125)
REWARDS = (0.2129, 0.2002, -39.25, -33.5, -33.75)
LOGPROBS = (-1.6328, -1.875, -41.0, -35.25, -35.5)
LEVEL = [0.5] * 10
NONE = [None] * 9
GRADIENT = [0.45] * 20
MIXED = {"accuracy/all_right": [0.2] * 6, "accuracy/all_wrong": [0.3] * 6}
ALIKE = {"advantage/zero_variance_share/truth": [1.0] * 6}
SILENT = {"advantage/zero_variance_share/truth": [0.5, *[1.0] * 5]}
WRONG = {"judge/accuracy": [0.3] * 10, "judge/decidable_votes": [20.0] * 10}
CLIMBS = {"accuracy": [0.3] * 10 + [0.3 + 0.1 * n for n in range(1, 8)] + [1.0] * 5}
CATCHES_UP = {"accuracy [boxed]": [0.2] * 10 + [0.2 + 0.1 * n for n in range(1, 8)] + [0.9] * 5}
LOST = {"missing [boxed]": [0.1] * 10 + [0.6] * 15}
MORE = {"accuracy": LEVEL + [0.6] * 15, "accuracy [boxed]": LEVEL + [0.55] * 15}
FEWER = {"accuracy": LEVEL + [0.45] * 15, "accuracy [boxed]": LEVEL + [0.45] * 15}
CHANGED = {"accuracy": [0.6] * 15 + [0.3] * 15, "grader/strict": [0.0] * 15 + [1.0] * 15}
CHANGED |= {"accuracy [boxed]": [0.3] * 30}
READ, RIGHT = {"likelihood/logprob": [-3.8] * 20 + [-0.1] * 20}, {"accuracy": [0.5] * 20 + [0.2] * 20}
PRAISE = {"sample/winner_peer": [0.6] * 10 + [1.0] * 10}
GAP = {"eval/judge/hack_gap": [0.0, 0.2, 0.12], "eval/judge/hack_gap/high": [0.1, 0.4, 0.15]}
FORM = {"format/valid": [0.6] * 20 + [0.95] * 130}
CASES = [
    # detector, figures by step, the step of its alarm (None: quiet), and what is in its reason
    ("ratio", {"ratio_mean": RATIOS}, 2, ""),
    ("ratio", {"ratio_mean": RATIOS[:2]}, None, ""),
    ("logprob", {"sample/logprob": LOGPROBS}, 2, ""),
    ("logprob", {"sample/logprob": (-3.8125, -3.3594, -1.5312, -0.0894)}, None, ""),
    ("logprob", {"sample/logprob": (-8.0, -1.1, -1.0, -0.9)}, None, ""),  # it grows from low first values
    # .97^n < .1 from n = 76 on; the median of 5 is there two steps later, at step 14 + 78
    ("entropy", {"entropy_mean": [0.5] * 15 + [0.5 * 0.97**n for n in range(1, 80)]}, 92, "a tenth"),
    ("entropy", {"entropy_mean": [0.5] * 30 + [0.1] * 5}, 32, "a quarter"),  # 3 of 5 are low
    ("entropy", {"entropy_mean": [0.5] * 30 + [0.008] * 5}, 32, ""),
    ("entropy", {"entropy_mean": list(np.linspace(0.5, 0.1, 100))}, None, ""),
    ("gradient", {"grad_norm": [*GRADIENT, 46.75, *GRADIENT]}, 20, ""),
    ("gradient", {"grad_norm": [*GRADIENT, 148.0, *GRADIENT]}, 20, ""),
    ("gradient", {"grad_norm": [*GRADIENT, 5.0, 5.0, 5.0, *GRADIENT]}, 22, ""),
    ("gradient", {"grad_norm": [*GRADIENT, 5.0, *GRADIENT]}, None, ""),
    ("kl", {"kl_mean": [0.1] * 9 + [0.6, 0.6, 0.6]}, 11, "far from its reference"),
    ("kl", {"kl_max": [0.1] * 9 + [2685.0, 1.0, 9748.0, 9748.0, 9748.0]}, 13, "single tokens"),
    ("kl", {"kl_max": [120.0, 150.0, 0.1]}, 2, "where training began"),
    ("kl", {"kl_max": [0.02, 0.12, 0.03, 150.0, 300.0, 400.0]}, None, ""),
    ("not_finite", {"bad_steps": [0.0, 1.0, 2.0, 3.0]}, 3, "without an update"),
    ("mismatch", {"mismatch_kl": [0.05] * 5}, 4, "different probabilities"),
    ("mismatch", {"mismatch_kl": [1e-3] * 3 + [0.05] * 2 + [1e-3] * 5}, None, ""),
    ("repetition", {"sample/repeated": [0.0, 0.9, None, 0.0, 0.9]}, 4, ""),  # two of three looks
    ("repetition", {"sample/repeated": [0.0, 0.9, 0.0, 0.0, 0.9]}, None, ""),
    ("repetition", {"sample/repeated": [0.42]}, 0, "prompt form"),
    ("repetition", {"sample/repeated": [0.1, 0.42]}, None, ""),
    ("format", {"format/valid": [0.02] * 19}, None, ""),
    ("format", {"format/valid": [0.02] * 20}, 19, "hardly any reply has the form"),
    ("format", {"format/valid": [0.02] * 10 + [0.5] * 10}, None, ""),  # the mean of 20 is .26
    ("format", {"format/valid": [0.95] * 8 + [0.55] * 3}, 10, "got worse"),
    ("format", {"format/valid": [0.4] * 20}, None, ""),  # bad, and no collapse
    ("format", {"judge/parsed_share": [0.9] * 5 + [0.4] * 3}, 7, "comparisons are missing"),
    ("format", {"sample/empty": [0.0, 1.0, 1.0]}, 2, "N/A"),
    ("length", {"tokens/completion": [300.0] * 10 + [1.0] * 3}, 12, "very short"),
    ("length", {"tokens/completion": [10.0] * 5 + [1000.0] * 30}, None, ""),
    ("length", {"truncated": [0.6] * 5}, 4, "truncated"),
    ("constant_truth", MIXED | ALIKE, 4, ""),
    ("constant_truth", MIXED | ALIKE | {"accuracy/all_wrong": [0.75] * 6}, None, ""),  # groups of one kind
    # the mixed are the rounds before, which earn nothing
    ("constant_truth", MIXED | ALIKE | {"reward/truth/n": [96.0] * 6, "accuracy/n": [288.0] * 6}, None, ""),
    ("constant_truth", MIXED | ALIKE | {"reward/truth/n": [288.0] * 6, "accuracy/n": [288.0] * 6}, 4, ""),
    # the first window that holds none of the first ten ends at step 19
    ("circular", {"graph/cycles": [0.1] * 10 + [0.5] * 10}, 19, "circles"),
    ("circular", {"graph/cycles": [0.5] * 30}, None, ""),
    # the mean of 10 is .1 + .08 n after n steps; .4 and a rise of .25 from n = 4 on
    ("wrong_consensus", {"wrong_consensus": [0.1] * 17 + [0.9] * 10}, 20, ""),
    ("reward_explosion", {"reward/peer/mean": [0.1, 2.5, 10.7]}, 1, "reward/peer/mean"),
    ("reward_explosion", {"reward/truth/mean": [3.0, 9.0, 14.0]}, None, ""),  # rewards of another size
    ("reward_explosion", {"reward/judge/std": [0.5, 6.0]}, 1, "reward/judge/std"),
    ("no_exploration", {"completions/distinct": [3 / 83] * 5, "accuracy": [0.2] * 5}, 4, ""),  # H-28
    ("no_exploration", SILENT, 5, "variance"),
    ("no_exploration", SILENT | {"advantage/zero_variance_share/peer": [0.0] * 6}, None, ""),
    ("one_sided", {"sample/agent_2/votes": [50.0] * 2, "sample/agent_2/wins": [50.0] * 2}, 1, "agent 2"),
    ("votes_against_truth", WRONG, 9, "the wrong side"),
    ("votes_against_truth", WRONG | {"votes/valid": [50.0] * 10, "votes/ties": [20.0] * 10}, None, ""),
    ("votes_against_truth", {"winner/lift": [-0.2] * 10}, 9, "worse than a draw"),
    # the seed's run: correct .04, .03, .05 while the form went to 95%; a mean of 20 has risen .2 with 12 late
    # values, at step 31; 100 steps later it fires
    ("format_only", FORM | {"accuracy": [0.04] * 50 + [0.03] * 50 + [0.045] * 50}, 131, ""),
    ("format_only", FORM | {"accuracy": [0.04] * 40 + [0.2] * 110}, None, ""),
    # the lenient grader climbs from step 10 on; ten steps are compared with the first ten, from 19 on
    ("grader_drift", CLIMBS | {"accuracy [boxed]": [0.2] * 22}, 19, "accuracy [boxed] did not"),
    ("grader_drift", CLIMBS | CATCHES_UP, None, ""),
    ("grader_drift", {"accuracy": [0.6] * 25, "accuracy [boxed]": [0.1] * 10 + [0.6] * 15}, None, ""),
    # three of the last ten steps have .5 more
    ("grader_drift", LOST | MORE, 12, "missing [boxed] grew, although more solutions are right"),
    ("grader_drift", LOST | FEWER, None, ""),
    ("grader_drift", CHANGED | {"accuracy [lenient]": [0.6] * 30}, None, ""),  # the grader was changed
    ("grader_drift", CHANGED | {"accuracy [lenient]": [0.6] * 15 + [0.9] * 15}, 19, ""),
    ("grader_drift", {"accuracy": [0.5] * 20}, None, ""),
    # the first ten have the median -1.6328, and the threshold is twice that less 2; five are a median
    ("likelihood", {"likelihood/logprob": [LOGPROBS[0]] * 10 + [LOGPROBS[2]] * 5}, 14, "crashed"),
    ("likelihood", {"likelihood/logprob": [LOGPROBS[0]] * 10 + [LOGPROBS[2]] * 3}, None, ""),
    ("likelihood", {"likelihood/logprob": [-1.6] * 10 + [-5.0] * 10}, None, ""),
    # 20 steps are compared with the first 20
    ("likelihood", READ | RIGHT, 39, "fewer are right"),
    ("likelihood", READ | {"accuracy": [0.5] * 40}, None, ""),
    ("likelihood", {"likelihood/logprob": [-3.8] * 40} | RIGHT, None, ""),
    ("likelihood", {"likelihood/auc": [0.4] * 20}, 19, "wrong solutions"),
    ("likelihood", {"likelihood/auc": [0.5] * 40}, None, ""),
    # (.4 + .3) n / 10 > .3 from n = 5 on, but no sooner than 10 means later
    ("peer_truth", PRAISE | {"sample/winner_accuracy": [0.5] * 10 + [0.2] * 10}, 19, ""),
    ("peer_truth", PRAISE | {"sample/winner_accuracy": [0.5] * 20}, None, ""),
    ("hack_gap", GAP, None, ""),
    ("hack_gap", GAP | {"eval/judge/hack_gap/low": [-0.1, 0.05, 0.06]}, 2, ""),  # over a twentieth
]


def fired(name, curves):
    return DETECTORS[name].detect(curves)


@pytest.mark.parametrize(("name", "figures", "step", "why"), CASES)
def test_a_detector_fires_at_its_step_or_is_quiet(make_curves, name, figures, step, why):
    alarm = fired(name, make_curves(**figures))
    assert (alarm and alarm.step) == step
    assert alarm is None or why in alarm.why


def test_values_and_thresholds(make_curves):
    found = fired("ratio", make_curves(ratio_mean=RATIOS))
    assert (found.value, found.threshold) == (21.75, 2.0)
    found = fired("logprob", make_curves(sample__logprob=LOGPROBS))
    assert (found.value, found.threshold) == (-41.0, pytest.approx(2 * -1.875 - 1))
    found = fired("circular", make_curves(graph__cycles=[0.1] * 10 + [0.5] * 10))
    assert (found.value, found.threshold) == (0.5, 0.3)
    found = fired("reward_explosion", make_curves(reward__peer__mean=[0.1, 2.5, 10.7]))
    assert (found.value, found.threshold) == (2.5, 1.5)
    found = fired("hack_gap", make_curves(**GAP, **{"eval/judge/hack_gap/low": [-0.1, 0.05, 0.06]}))
    assert (found.value, found.threshold) == (0.12, 0.05)
    found = fired("likelihood", make_curves(likelihood__logprob=[LOGPROBS[0]] * 10 + [LOGPROBS[2]] * 5))
    assert (found.value, found.threshold) == (-41.0, pytest.approx(-5.2656))
    assert fired("likelihood", make_curves(**READ, **RIGHT)).value == pytest.approx(3.7)
    one_each = {"completions__distinct": [1 / 12] * 5}  # with K N = 12, one text for all is .083
    assert fired("no_exploration", make_curves(12, **one_each, accuracy=[0.2] * 5)).threshold == 0.125
    assert fired("no_exploration", make_curves(12, **one_each, accuracy=[0.97] * 5)) is None
    votes = {"sample__first__votes": [60.0] * 4, "sample__first__wins": [30.0, 57.0, 57.0, 57.0]}
    found = fired("one_sided", make_curves(**votes))
    assert (found.step, found.value) == (2, pytest.approx(0.95))  # 114 of 120
    last = {"sample__first__votes": [60.0] * 2, "sample__first__wins": [3.0, 2.0]}
    assert fired("one_sided", make_curves(**last)).value == pytest.approx(5 / 120)


def test_the_replayed_ratio_fires_before_the_reward_falls(make_curves):
    """Between the logged batches, a value in 100, the ratio is interpolated geometrically."""
    at = np.arange(0, BATCHES[-1] + 1, 100)
    ratios = np.exp(np.interp(at, BATCHES, np.log(RATIOS)))
    alarm = fired("ratio", make_curves(ratio_mean=ratios))
    rewards = np.interp(at, (0, 99, 999), REWARDS[:3])
    assert at[alarm.step] == 300  # 1.1719 * (21.75 / 1.1719) ** (201 / 900) = 2.25
    assert rewards[alarm.step] > REWARDS[2] / 4


def test_what_is_not_finite_fires_at_its_first_step(make_curves):
    broken = make_curves(loss=[0.1, None, None], broken={"loss": (1, 2), "kl_mean": (2,)})
    assert (fired("not_finite", broken).step, fired("not_finite", broken).why) == (1, "loss is not finite")


def test_a_stall_names_its_phase_and_what_took_longer_than_before(make_curves):
    seconds = {"seconds__rollout": [20.0] * 15 + [30.0], "seconds__learn": [10.0] * 15 + [3000.0]}
    alarm = fired("stall", make_curves(**seconds))
    assert (alarm.step, alarm.value) == (15, 3030.0)
    assert alarm.why.endswith("most of it in learn (against the steps before: rollout x1.5, learn x300.0)")
    # nine times the tokens took nine times the rollout; the grader took four times as long
    longer = {"seconds__rollout": [100.0] * 15 + [900.0], "seconds__grade": [1.0] * 15 + [4.0]}
    alarm = fired("stall", make_curves(**longer, tokens__generated=[1000.0] * 15 + [9000.0]))
    assert alarm.why.endswith("tokens x9.0, rollout x9.0, grade x4.0)")


def test_held_out_falls_while_training_gains(make_curves):
    """The notes' run: .289 at step 20, then .272, .267, .250, .235, .223; intervals of 500 problems."""
    held_out = {20: 0.289, 40: 0.2722, 60: 0.2666, 120: 0.2502, 160: 0.235, 200: 0.2234}
    ends = {"": 0, "/low": -0.0125, "/high": 0.0125}
    evals = {
        f"eval/direct/accuracy{end}": [held_out[s] + by if s in held_out else None for s in range(201)]
        for end, by in ends.items()
    }
    alarm = fired("held_out", make_curves(accuracy=list(np.linspace(0.55, 0.7, 201)), **evals))
    assert alarm.step == 160  # apart at 120 and at 160
    # the curve that fell names its own best step, counted from 0
    assert alarm.why.startswith("eval/direct/accuracy was best at step 20, where the curves part, and fell")
    assert fired("held_out", make_curves(accuracy=[0.6] * 201, **evals)) is None


def test_held_out_a_fall_of_one_grader_has_intervals_apart(make_curves):
    figures = {
        **{"accuracy": [0.5] * 20, "accuracy [boxed]": [0.3] * 20},
        "eval/direct/accuracy": [*NONE, 0.5, *NONE, 0.6],
        "eval/direct/accuracy [boxed]": [*NONE, 0.4, *NONE, 0.2],
        "eval/direct/accuracy [boxed]/low": [*NONE, 0.35, *NONE, 0.15],
    }
    high = "eval/direct/accuracy [boxed]/high"
    apart, joined = ({high: [*NONE, 0.45, *NONE, end]} for end in (0.25, 0.36))
    alarm = fired("grader_drift", make_curves(**figures, **apart))
    assert (alarm.step, alarm.why) == (19, "held out, accuracy [boxed] fell and accuracy did not")
    assert fired("grader_drift", make_curves(**figures, **joined)) is None


def test_too_few_steps_and_no_data_are_named(make_curves):
    curves = make_curves(grad_norm=[1.0] * 3, ratio_mean=[1.0])
    found = {one.detector.name: one.status for one in readings(curves)}
    assert (found["gradient"], found["ratio"], found["kl"]) == ("too few steps", "quiet", "no data")


def test_sustained_counts_only_the_last_values():
    found = sustained(np.array([1, 1, 0, 0, 0, 1, 1], bool), 2, 3).tolist()
    assert found == [False, True, *[False] * 4, True]
    assert sustained(np.zeros(0, bool), 1, 3).tolist() == []
