"""Each detector on the numbers of the collapses it is for, and on the edges of its rule."""

from __future__ import annotations

import numpy as np
import pytest

from debate_rl.alarms import DETECTORS, readings
from debate_rl.alarms.curves import sustained


def fired(name, curves):
    return DETECTORS[name].detect(curves)


def between_logged(batches, values):
    """Geometric interpolation between logged batches, one value in 100 batches."""
    at = np.arange(0, batches[-1] + 1, 100)
    return at, np.exp(np.interp(at, batches, np.log(values)))


BATCHES = (0, 99, 999, 2999, 5999)
RATIOS = (1.0, 1.1719, 21.75, 26.25, 8.125)
REWARDS = (0.2129, 0.2002, -39.25, -33.5, -33.75)
LOGPROBS = (-1.6328, -1.875, -41.0, -35.25, -35.5)


def test_the_replayed_ratio_fires_at_the_logged_batch_and_not_before(make_curves):
    alarm = fired("ratio", make_curves(ratio_mean=RATIOS))
    assert (alarm.step, alarm.value, alarm.threshold) == (2, 21.75, 2.0)
    assert fired("ratio", make_curves(ratio_mean=RATIOS[:2])) is None


def test_the_replayed_ratio_fires_before_the_reward_falls(make_curves):
    """Between the logged batches ratio and reward are interpolated, the latter in a straight line."""
    at, ratios = between_logged(BATCHES, RATIOS)
    alarm = fired("ratio", make_curves(ratio_mean=ratios))
    rewards = np.interp(at, (0, 99, 999), REWARDS[:3])
    assert at[alarm.step] == 300  # 1.1719 * (21.75 / 1.1719) ** (201 / 900) = 2.25
    assert rewards[alarm.step] > REWARDS[2] / 4


def test_the_replayed_log_probability_fires_at_the_crash(make_curves):
    alarm = fired("logprob", make_curves(sample__logprob=LOGPROBS))
    assert (alarm.step, alarm.value) == (2, -41.0)
    assert alarm.threshold == pytest.approx(2 * -1.875 - 1)
    better = (-3.8125, -3.3594, -1.5312, -0.0894)
    assert fired("logprob", make_curves(sample__logprob=better)) is None


def test_entropy_fires_at_a_tenth_and_at_a_fast_fall(make_curves):
    slow = [0.5] * 15 + [0.5 * 0.97**n for n in range(1, 80)]
    alarm = fired("entropy", make_curves(entropy_mean=slow))
    # .97^n < .1 from n = 76 on; the median of 5 is there two steps later, at step 14 + 78
    assert (alarm.step, alarm.threshold) == (92, 0.1)
    fast = [0.5] * 30 + [0.1] * 5
    assert fired("entropy", make_curves(entropy_mean=fast)).step == 32  # 3 of 5 are low
    assert fired("entropy", make_curves(entropy_mean=[0.5] * 30 + [0.008] * 5)).step == 32


def test_entropy_that_falls_slowly_to_a_fifth_is_quiet(make_curves):
    assert fired("entropy", make_curves(entropy_mean=list(np.linspace(0.5, 0.1, 100)))) is None


@pytest.mark.parametrize(
    ("spikes", "step"), [([46.75], 20), ([148.0], 20), ([5.0, 5.0, 5.0], 22), ([5.0], None)]
)
def test_gradients_that_spike(make_curves, spikes, step):
    curves = make_curves(grad_norm=[0.45] * 20 + spikes + [0.45] * 5)
    alarm = fired("gradient", curves)
    assert (alarm and alarm.step) == step


def test_kl_by_its_mean_its_maximum_and_its_beginning(make_curves):
    assert fired("kl", make_curves(kl_mean=[0.1] * 9 + [0.6, 0.6, 0.6])).step == 11
    assert fired("kl", make_curves(kl_max=[0.1] * 9 + [2685.0, 1.0, 9748.0, 9748.0, 9748.0])).step == 13
    assert fired("kl", make_curves(kl_max=[120.0, 150.0, 0.1])).step == 2
    assert fired("kl", make_curves(kl_max=[0.02, 0.12, 0.03, 150.0, 300.0, 400.0])) is None


def test_what_is_not_finite_fires_at_its_first_step(make_curves):
    broken = make_curves(loss=[0.1, None, None], broken={"loss": (1, 2), "kl_mean": (2,)})
    assert (fired("not_finite", broken).step, fired("not_finite", broken).why) == (1, "loss is not finite")
    assert fired("not_finite", make_curves(bad_steps=[0.0, 1.0, 2.0, 3.0])).step == 3


def test_a_mismatch_of_temperatures_fires_at_the_fifth_step(make_curves):
    assert fired("mismatch", make_curves(mismatch_kl=[0.05] * 5)).step == 4
    assert fired("mismatch", make_curves(mismatch_kl=[1e-3] * 3 + [0.05] * 2 + [1e-3] * 5)) is None


def test_a_stall_names_its_phase(make_curves):
    seconds = {"seconds__rollout": [20.0] * 15 + [30.0], "seconds__learn": [10.0] * 15 + [3000.0]}
    alarm = fired("stall", make_curves(**seconds))
    assert (alarm.step, alarm.value) == (15, 3030.0)
    assert (
        alarm.why
        == "the step hung, most of it in learn (against the steps before: rollout x1.5, learn x300.0)"
    )


def test_a_stall_says_how_much_longer_replies_and_grading_were(make_curves):
    """Nine times the tokens took nine times the rollout; the grader took four times as long."""
    curves = make_curves(
        seconds__rollout=[100.0] * 15 + [900.0],
        seconds__grade=[1.0] * 15 + [4.0],
        tokens__generated=[1000.0] * 15 + [9000.0],
    )
    assert fired("stall", curves).why.endswith("tokens x9.0, rollout x9.0, grade x4.0)")


def test_repeated_text_needs_two_of_three_looks(make_curves):
    assert fired("repetition", make_curves(sample__repeated=[0.0, 0.9, None, 0.0, 0.9])).step == 4
    assert fired("repetition", make_curves(sample__repeated=[0.0, 0.9, 0.0, 0.0, 0.9])) is None


def test_garbage_of_the_first_look_fires_at_once_and_names_the_prompt_form(make_curves):
    alarm = fired("repetition", make_curves(sample__repeated=[0.42]))
    assert (alarm.step, alarm.value, alarm.threshold) == (0, 0.42, 0.4)
    assert "prompt form" in alarm.why
    assert fired("repetition", make_curves(sample__repeated=[0.1, 0.42])) is None


def test_a_form_that_never_comes_fires_after_twenty_steps(make_curves):
    assert fired("format", make_curves(format__valid=[0.02] * 19)) is None
    alarm = fired("format", make_curves(format__valid=[0.02] * 20))
    assert (alarm.step, alarm.threshold, alarm.why) == (19, 0.1, "hardly any reply has the form")
    learns = [0.02] * 10 + [0.5] * 10  # the mean of 20 is .26
    assert fired("format", make_curves(format__valid=learns)) is None


def test_a_truth_reward_that_is_the_same_for_right_and_wrong(make_curves):
    mixed = {"accuracy__all_right": [0.2] * 6, "accuracy__all_wrong": [0.3] * 6}
    alike = {"advantage__zero_variance_share__truth": [1.0] * 6}
    assert fired("constant_truth", make_curves(**mixed, **alike)).step == 4
    uniform = {"accuracy__all_right": [0.2] * 6, "accuracy__all_wrong": [0.75] * 6}
    assert fired("constant_truth", make_curves(**uniform, **alike)) is None  # all groups are of one kind
    last = {"reward__truth__n": [96.0] * 6, "accuracy__n": [288.0] * 6}  # the mixed are rounds before
    assert fired("constant_truth", make_curves(**mixed, **alike, **last)) is None
    every = {"reward__truth__n": [288.0] * 6, "accuracy__n": [288.0] * 6}
    assert fired("constant_truth", make_curves(**mixed, **alike, **every)).step == 4


def test_votes_that_come_to_go_in_circles(make_curves):
    """Ten steps of .1, then ten of .5: the first window that holds none of the first ten ends at step 19."""
    alarm = fired("circular", make_curves(graph__cycles=[0.1] * 10 + [0.5] * 10))
    assert (alarm.step, alarm.value, alarm.threshold) == (19, 0.5, 0.3)
    assert fired("circular", make_curves(graph__cycles=[0.5] * 30)) is None


def test_what_grows_from_low_first_values_is_no_collapse(make_curves):
    """The median of the first values is known only after them: no earlier step is compared with it."""
    longer = [10.0] * 5 + [1000.0] * 30
    assert fired("length", make_curves(tokens__completion=longer)) is None
    better = (-8.0, -1.1, -1.0, -0.9)
    assert fired("logprob", make_curves(sample__logprob=better)) is None


def test_lengths(make_curves):
    assert fired("length", make_curves(tokens__completion=[300.0] * 10 + [1.0] * 3)).step == 12
    assert fired("length", make_curves(truncated=[0.6] * 5)).step == 4


def test_form_that_falls_from_its_best(make_curves):
    assert fired("format", make_curves(format__valid=[0.95] * 8 + [0.55] * 3)).step == 10
    assert fired("format", make_curves(format__valid=[0.4] * 20)) is None  # bad, and no collapse
    assert fired("format", make_curves(judge__parsed_share=[0.9] * 5 + [0.4] * 3)).step == 7
    assert fired("format", make_curves(sample__empty=[0.0, 1.0, 1.0])).step == 2


def test_rewards_explode_at_the_second_batch(make_curves):
    alarm = fired("reward_explosion", make_curves(reward__peer__mean=[0.1, 2.5, 10.7]))
    assert (alarm.step, alarm.value, alarm.threshold) == (1, 2.5, 1.5)
    large = make_curves(reward__truth__mean=[3.0, 9.0, 14.0])  # rewards of another size
    assert fired("reward_explosion", large) is None
    assert fired("reward_explosion", make_curves(reward__judge__std=[0.5, 6.0])).threshold == 5.0


def test_three_different_outputs_of_83(make_curves):
    """H-28: with K N = 12, one text for all is .083."""
    same = {"completions__distinct": [3 / 83] * 5, "accuracy": [0.2] * 5}
    assert fired("no_exploration", make_curves(**same)).step == 4
    one_each = {"completions__distinct": [1 / 12] * 5, "accuracy": [0.2] * 5}
    assert fired("no_exploration", make_curves(12, **one_each)).threshold == 0.125
    solved = {"completions__distinct": [1 / 12] * 5, "accuracy": [0.97] * 5}
    assert fired("no_exploration", make_curves(12, **solved)) is None


def test_votes_for_the_first_shown(make_curves):
    curves = {"sample__first__votes": [60.0] * 4, "sample__first__wins": [30.0, 57.0, 57.0, 57.0]}
    alarm = fired("one_sided", make_curves(**curves))
    assert (alarm.step, alarm.value) == (2, pytest.approx(0.95))  # 114 of 120
    last = {"sample__first__votes": [60.0] * 2, "sample__first__wins": [3.0, 2.0]}
    assert fired("one_sided", make_curves(**last)).value == pytest.approx(5 / 120)
    seat = {"sample__agent_2__votes": [50.0] * 2, "sample__agent_2__wins": [50.0] * 2}
    assert "agent 2" in fired("one_sided", make_curves(**seat)).why


def test_agreement_on_wrong_answers(make_curves):
    curves = make_curves(wrong_consensus=[0.1] * 17 + [0.9] * 10)
    # the mean of 10 is .1 + .08 n after n steps; .4 and a rise of .25 from n = 4 on
    assert fired("wrong_consensus", curves).step == 20


def test_praise_without_truth(make_curves):
    apart = {
        "sample__winner_peer": [0.6] * 10 + [1.0] * 10,
        "sample__winner_accuracy": [0.5] * 10 + [0.2] * 10,
    }
    alarm = fired("peer_truth", make_curves(**apart))
    # (.4 + .3) n / 10 > .3 from n = 5 on, but no sooner than 10 means later
    assert alarm.step == 19
    both = {"sample__winner_peer": [0.6] * 10 + [1.0] * 10, "sample__winner_accuracy": [0.5] * 20}
    assert fired("peer_truth", make_curves(**both)) is None


def test_votes_against_truth(make_curves):
    wrong = {"judge__accuracy": [0.3] * 10, "judge__decidable_votes": [20.0] * 10}
    assert fired("votes_against_truth", make_curves(**wrong)).step == 9
    tied = {"votes__valid": [50.0] * 10, "votes__ties": [20.0] * 10}
    assert fired("votes_against_truth", make_curves(**wrong, **tied)) is None
    assert fired("votes_against_truth", make_curves(winner__lift=[-0.2] * 10)).step == 9


def test_held_out_falls_while_training_gains(make_curves):
    """The notes' run: .289 at step 20, then .272, .267, .250, .235, .223; intervals of 500 problems."""
    held_values = [0.289, 0.2722, 0.2666, 0.2502, 0.235, 0.2234]
    steps = [20, 40, 60, 120, 160, 200]
    columns = {name: [None] * 201 for name in ("", "/low", "/high")}
    for at, value in zip(steps, held_values, strict=True):
        for end, bound in (("", 0), ("/low", -0.0125), ("/high", 0.0125)):
            columns[end][at] = value + bound
    evals = {f"eval/direct/accuracy{end}": column for end, column in columns.items()}
    trained = list(np.linspace(0.55, 0.7, 201))
    curves = make_curves(accuracy=trained, **{name.replace("/", "__"): c for name, c in evals.items()})
    alarm = fired("held_out", curves)
    assert alarm.step == 160  # apart at 120 and at 160
    # the curve that fell names its own best step, counted from 0
    assert alarm.why.startswith("eval/direct/accuracy was best at step 20, where the curves part, and fell")
    flat = make_curves(accuracy=[0.6] * 201, **{name.replace("/", "__"): c for name, c in evals.items()})
    assert fired("held_out", flat) is None


def test_form_without_answers(make_curves):
    """The seed's run: correct .04, .03, .05 while the form went to 95%."""
    form, right = [0.6] * 20 + [0.95] * 130, [0.04] * 50 + [0.03] * 50 + [0.045] * 50
    alarm = fired("format_only", make_curves(format__valid=form, accuracy=right))
    # a mean of 20 has risen .2 with 12 late values, at step 31; 100 steps later it fires
    assert alarm.step == 131
    learnt = [0.04] * 40 + [0.2] * 110
    assert fired("format_only", make_curves(format__valid=form, accuracy=learnt)) is None


def test_too_few_steps_and_no_data_are_told(make_curves):
    found = {
        one.detector.name: one.status for one in readings(make_curves(grad_norm=[1.0] * 3, ratio_mean=[1.0]))
    }
    assert (found["gradient"], found["ratio"], found["kl"]) == ("too few steps", "quiet", "no data")


def test_sustained_counts_only_the_last_values():
    assert sustained(np.array([1, 1, 0, 0, 0, 1, 1], bool), 2, 3).tolist() == [
        False,
        True,
        *[False] * 4,
        True,
    ]
    assert sustained(np.zeros(0, bool), 1, 3).tolist() == []


def test_without_votes_truth_alone_tells_of_no_variance(make_curves):
    truth = {"advantage/zero_variance_share/truth": [0.5, *[1.0] * 5]}
    assert fired("no_exploration", make_curves(**truth)).step == 5
    both = truth | {"advantage/zero_variance_share/peer": [0.0] * 6}
    assert fired("no_exploration", make_curves(**both)) is None


LEVEL = [0.5] * 10


def test_a_grader_that_climbs_alone_is_no_progress(make_curves):
    """The lenient one climbs from step 10 on; ten steps are compared with the first ten, from 19 on."""
    climbs = {"accuracy": [0.3] * 10 + [0.3 + 0.1 * n for n in range(1, 8)] + [1.0] * 5}
    still = {"accuracy [boxed]": [0.2] * 22}
    alarm = fired("grader_drift", make_curves(**climbs, **still))
    assert (alarm.step, alarm.why) == (19, "accuracy climbed and accuracy [boxed] did not")
    both = {"accuracy [boxed]": [0.2] * 10 + [0.2 + 0.1 * n for n in range(1, 8)] + [0.9] * 5}
    assert fired("grader_drift", make_curves(**climbs, **both)) is None


def test_a_strict_grader_that_catches_up_is_form_being_learnt(make_curves):
    strict = {"accuracy [boxed]": [0.1] * 10 + [0.6] * 15}
    assert fired("grader_drift", make_curves(accuracy=[0.6] * 25, **strict)) is None


def test_a_form_that_is_lost_while_more_is_right(make_curves):
    lost = {"missing [boxed]": [0.1] * 10 + [0.6] * 15, "accuracy [boxed]": LEVEL + [0.55] * 15}
    alarm = fired("grader_drift", make_curves(accuracy=LEVEL + [0.6] * 15, **lost))
    assert (alarm.step, alarm.value) == (12, pytest.approx(0.15))  # three of the last ten steps have .5 more
    assert alarm.why == "missing [boxed] grew while more solutions are right"
    worse = {**lost, "accuracy [boxed]": LEVEL + [0.45] * 15}
    assert fired("grader_drift", make_curves(accuracy=LEVEL + [0.45] * 15, **worse)) is None


def test_of_a_schedule_the_step_at_which_the_grader_changes_is_no_drift(make_curves):
    lenient = {"accuracy [lenient]": [0.6] * 30, "accuracy [boxed]": [0.3] * 30}
    strict = {"grader/strict": [0.0] * 15 + [1.0] * 15}
    own = [0.6] * 15 + [0.3] * 15
    assert fired("grader_drift", make_curves(accuracy=own, **lenient, **strict)) is None
    grows = {**lenient, "accuracy [lenient]": [0.6] * 15 + [0.9] * 15}
    assert fired("grader_drift", make_curves(accuracy=own, **grows, **strict)).step == 19


def test_held_out_a_fall_has_intervals_apart(make_curves):
    none = [None] * 9
    figures = {
        **{"accuracy [boxed]": [0.3] * 20, "eval/direct/accuracy": [*none, 0.5, *none, 0.6]},
        "eval/direct/accuracy [boxed]": [*none, 0.4, *none, 0.2],
        "eval/direct/accuracy [boxed]/low": [*none, 0.35, *none, 0.15],
    }
    high = "eval/direct/accuracy [boxed]/high"
    apart, joined = ({high: [*none, 0.45, *none, end]} for end in (0.25, 0.36))
    alarm = fired("grader_drift", make_curves(accuracy=[0.5] * 20, **figures, **apart))
    assert (alarm.step, alarm.why) == (19, "held out, accuracy [boxed] fell and accuracy did not")
    assert fired("grader_drift", make_curves(accuracy=[0.5] * 20, **figures, **joined)) is None
    assert fired("grader_drift", make_curves(accuracy=[0.5] * 20)) is None


def test_the_replayed_crash_of_the_likelihood(make_curves):
    """The first ten have the median -1.6328, and the threshold is twice that less 2; five are a median."""
    crash = [LOGPROBS[0]] * 10 + [LOGPROBS[2]] * 5
    alarm = fired("likelihood", make_curves(likelihood__logprob=crash))
    assert (alarm.step, alarm.value) == (14, -41.0)
    assert alarm.threshold == pytest.approx(-5.2656)
    assert fired("likelihood", make_curves(likelihood__logprob=crash[:13])) is None
    assert fired("likelihood", make_curves(likelihood__logprob=[-1.6] * 10 + [-5.0] * 10)) is None


def test_a_likelihood_that_rises_while_fewer_are_right(make_curves):
    """From step 20 on one is -.1 and no longer -3.8, the other .2 and no longer .5; the first 20 steps are
    compared with 20 others, so from step 39 on: 3.7 more and .3 less.
    """
    read, right = [-3.8] * 20 + [-0.1] * 20, [0.5] * 20 + [0.2] * 20
    alarm = fired("likelihood", make_curves(likelihood__logprob=read, accuracy=right))
    assert (alarm.step, alarm.value) == (39, pytest.approx(3.7))
    level = make_curves(likelihood__logprob=read, accuracy=[0.5] * 40)
    assert fired("likelihood", level) is None
    assert fired("likelihood", make_curves(likelihood__logprob=[-3.8] * 40, accuracy=right)) is None


def test_a_reader_that_prefers_wrong_solutions(make_curves):
    alarm = fired("likelihood", make_curves(likelihood__auc=[0.4] * 20))
    assert (alarm.step, alarm.value) == (19, pytest.approx(0.4))
    assert fired("likelihood", make_curves(likelihood__auc=[0.5] * 40)) is None


def test_a_hack_gap_fires_once_its_interval_is_above_a_twentieth(make_curves):
    gap = {"eval/judge/hack_gap": [0.0, 0.2, 0.12], "eval/judge/hack_gap/high": [0.1, 0.4, 0.15]}
    low = {"eval/judge/hack_gap/low": [-0.1, 0.05, 0.06]}
    alarm = fired("hack_gap", make_curves(**gap, **low))
    assert (alarm.step, alarm.value, alarm.threshold) == (2, 0.12, 0.05)
    assert fired("hack_gap", make_curves(**gap)) is None
