"""What is counted of labels and pseudo-labels, by hand."""

from debate_rl.metrics.features import LabelCounts, label_counts
from rewards import Credit
from rewards.labels import OF_TRUTH


def test_counts_are_of_problems_and_of_rounds():
    # Two debates of an unlabelled problem: 4 in round 0 (wrong), no label in round 1.
    half = Credit("majority", "none", ("4", None), ((True, None), (False, None)))
    grades = ((False, True), (True, None))
    counts = label_counts([OF_TRUTH, half, half, Credit("none", "none")], [grades] * 4, ["p", "q", "q", "r"])
    assert counts == LabelCounts(problems=3, labelled=1, rounds=2, pseudo=1, graded=1, right=0)


def test_any_solution_with_the_answer_shows_whether_a_label_is_right():
    # Nobody gave the label in round 0; in round 1 one who did was right.
    credit = Credit("voted", "none", ("4", "4"), ((False, True), (False, False)))
    counts = label_counts([credit], [((False, True), (False, False))], ["p"])
    assert (counts.pseudo, counts.graded, counts.right) == (2, 2, 2)
    assert label_counts([credit], [None], ["p"]).graded == 0


def test_coins_for_truth_leave_a_label_to_the_judges():
    coin = Credit("coin", "truth", (), ((True,),))
    assert label_counts([coin], [((True,),)], ["p"]) == LabelCounts(problems=1, labelled=1)
