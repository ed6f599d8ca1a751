"""Evaluations kept by problem, and what is said of two of them, against figures worked out by hand."""

import json
from pathlib import Path

import pytest

from debate_rl.metrics import held_out
from debate_rl.metrics.held_out import DIRECT, JUDGE, WINNER, HeldOut, append_held_out, gain, sentence

MAJORITY = "direct/self_consistency"


def evaluation(step: int, name: str = DIRECT, series: str = "", /, **sums: tuple[float, int]) -> HeldOut:
    """Return an evaluation in which each problem has these sums and counts of one figure."""
    return HeldOut(step, {id: f"text of {id}" for id in sums}, {name: dict(sums)}, 1, 0, series)


BEFORE = evaluation(0, a=(0, 2), b=(1, 2), c=(0, 2), d=(1, 2))
AFTER = evaluation(8, a=(2, 2), b=(2, 2), c=(1, 2), d=(1, 2))


def test_a_gain_is_paired_by_problem():
    found = gain(BEFORE, AFTER, DIRECT)
    assert (found.before, found.after, found.difference.value) == (0.25, 0.75, 0.5)
    reach = 3.182446 * (1 / 6) ** 0.5 / 2  # t(3); differences 1, .5, .5, 0 have a variance of 1/6
    assert found.difference.low == pytest.approx(0.5 - reach, abs=1e-5)
    assert found.difference.high == pytest.approx(0.5 + reach, abs=1e-5)
    assert not found.difference.excludes_zero


def test_a_gain_is_over_the_problems_with_a_value_in_both():
    problems = dict.fromkeys("abcd", "?")
    before = HeldOut(0, problems, {JUDGE: {"a": (1, 1), "b": (5, 9), "c": (2, 2)}})
    after = HeldOut(8, problems, {JUDGE: {"a": (1, 4), "b": (4, 9), "d": (0, 7)}})
    found = gain(before, after, JUDGE)
    assert (found.before, found.after) == pytest.approx(((1 + 5 / 9) / 2, (1 / 4 + 4 / 9) / 2))
    assert found.difference.value == pytest.approx((-3 / 4 - 1 / 9) / 2)
    assert found.after - found.before == pytest.approx(found.difference.value)
    assert (found.difference.clusters, found.values, found.left_out) == (2, 10, 2)
    assert sentence([before, after], JUDGE) == (
        "Held-out judge accuracy: .78 before the first step -> .35 after 8 steps, -.43 (-1.00 to +1.00), "
        "on the 2 problems with a value in both, paired: no clear change."
    )
    assert gain(before, HeldOut(8, problems, {JUDGE: {"d": (1, 1)}}), JUDGE) is None


def test_a_lead_is_the_difference_within_each_problem():
    lead, problems = "debate/winner_minus_self_consistency", dict.fromkeys("abc", "?")
    majority = {"a": (0, 1), "b": (1, 1)}
    before = HeldOut(0, problems, {WINNER: {"a": (1, 1), "b": (1, 1), "c": (1, 1)}, MAJORITY: majority})
    after = HeldOut(8, problems, {WINNER: {"a": (0, 1), "b": (0, 1)}, MAJORITY: majority})
    assert before.means(lead) == {"a": 1.0, "b": 0.0}
    estimate, found = before.estimate(lead), gain(before, after, lead)
    assert (estimate.value, estimate.clusters) == (0.5, 2)
    assert (found.before, found.after, found.difference.value) == (0.5, -0.5, -1.0)
    # both fell by 1 of at most 2: at least sqrt(.025) of all do, the others rise by 2 or fall by 2
    low, high = (-(0.025**0.5) + end * (1 - 0.025**0.5) for end in (-2, 2))
    assert (found.difference.low, found.difference.high) == (pytest.approx(low), pytest.approx(high))
    assert before.estimate("debate/winner_minus_direct") is None


def test_problems_that_changed_are_left_out():
    changed = HeldOut(8, AFTER.problems | {"a": "another text"}, AFTER.figures)
    found = gain(BEFORE, changed, DIRECT)
    assert (found.before, found.after) == pytest.approx((2 / 6, 4 / 6))
    assert gain(BEFORE, HeldOut(8, dict.fromkeys(AFTER.problems, "?"), AFTER.figures), DIRECT) is None


def test_the_sentence_says_what_the_interval_allows():
    said = sentence([BEFORE, AFTER])
    assert said == (
        "Held-out accuracy of one agent alone: .25 before the first step -> .75 after 8 steps, "
        "+.50 (-.15 to +1.00), 4 problems, paired: no clear change."
    )
    first, last = ({f"p{n}": (float(n % 4 < rights), 1) for n in range(300)} for rights in (1, 2))
    many = [evaluation(0, **first), evaluation(40, **last)]
    assert sentence(many) == (
        "Held-out accuracy of one agent alone: .25 before the first step -> .50 after 40 steps, "
        "+.25 (+.20 to +.30), 300 problems, paired."
    )
    worse = sentence([HeldOut(0, many[1].problems, many[1].figures), many[0]])
    assert "-.25 (-.30 to -.20), 300 problems, paired." in worse
    same = sentence([BEFORE, HeldOut(1, BEFORE.problems, BEFORE.figures)])
    assert "-> .25 after 1 step, +.00 (" in same
    assert same.endswith("no clear change.")


def test_the_sentence_without_two_evaluations():
    assert sentence([]) == "Held-out accuracy of one agent alone: unknown, because there is no evaluation."
    assert sentence([BEFORE]) == (
        "Held-out accuracy of one agent alone: .25 (.00 to .71) before the first step, 4 problems; "
        "there are not two evaluations of the same problems to compare."
    )
    assert "without a value before the first step" in sentence([BEFORE], JUDGE)
    one = sentence([evaluation(0, a=(0, 2)), evaluation(4, a=(1, 2))])
    assert one.endswith("+.50, 1 problem, paired: too few for an interval.")


def test_the_figures_that_were_measured_have_a_sentence_each():
    votes = [HeldOut(step, {"a": "?"}, {JUDGE: {"a": (step, 8)}}) for step in (0, 8)]
    direct, judge = held_out.sentences(votes)
    assert direct.startswith("Held-out accuracy of one agent alone: without a value before the first step; ")
    assert judge.startswith("Held-out judge accuracy: .00 before the first step -> 1.00 after 8 steps, +1.00")
    assert held_out.sentences([]) == [sentence([])]


def test_lines_are_read_back_as_they_were_written(tmp_path: Path):
    for one in (AFTER, BEFORE):
        append_held_out(tmp_path / "held_out.jsonl", one)
    assert held_out.read_held_out(tmp_path) == [BEFORE, AFTER]
    [first, second] = (tmp_path / "held_out.jsonl").read_text().splitlines()
    assert json.loads(second)["figures"]["direct/accuracy"]["b"] == [1, 2]
    with (tmp_path / "held_out.jsonl").open("a") as file:
        file.write(first[:50])  # killed while writing
    notes: list[str] = []
    assert held_out.read_held_out(tmp_path, notes) == [BEFORE, AFTER]
    assert notes == []
    append_held_out(tmp_path / "held_out.jsonl", evaluation(9))
    assert [one.step for one in held_out.read_held_out(tmp_path)] == [0, 8, 9]


def test_figures_made_afterwards_stand_in_where_training_has_no_before(tmp_path: Path):
    def keep(folder: str, *evaluations: HeldOut) -> None:
        for one in evaluations:
            append_held_out(tmp_path / folder / "held_out.jsonl", one)

    def steps() -> list[int]:
        return [one.step for one in held_out.read_held_out(tmp_path)]

    assert steps() == []
    keep("evaluations/other", evaluation(0, DIRECT, "other", a=(1, 1)))
    keep(".", evaluation(4, a=(1, 1)))
    assert steps() == [4]  # nothing to compare in either
    keep("evaluations/start", evaluation(0, DIRECT, "one", a=(0, 1)))
    keep("evaluations/end", evaluation(8, DIRECT, "one", a=(1, 1)))
    assert steps() == [0, 8]
    keep(".", evaluation(6, a=(1, 1)))
    assert steps() == [0, 8]
    keep(".", evaluation(0, a=(0, 1)))
    assert steps() == [0, 4, 6]
