"""Steps of agents from round to round, counted by hand."""

from __future__ import annotations

from debate import Problem
from debate_rl.ladder.rounds import rounds_of

PROBLEM = Problem("p", "What is 2 + 2?", answer="4", kind="number")


def counted(rounds, turns_of, grader):
    turns = turns_of(rounds)
    found = rounds_of(PROBLEM, turns, [grader.grade(PROBLEM, turn) for turn in turns], grader)
    return found.flips, (found.pressed, found.followed)


def test_who_follows_most_others_and_who_does_not(turns_of, grader):
    # agent 0 stands alone against two 5s and gives in; the other two see no majority against them
    flips, followed = counted([["4", "5", "5"], ["5", "5", "4"]], turns_of, grader)
    assert flips == {"cc": 0, "cw": 1, "wc": 1, "ww": 1}
    assert followed == (1, 1)
    flips, followed = counted([["4", "5", "5.0"], ["4", "5", ""]], turns_of, grader)
    assert flips == {"cc": 1, "cw": 0, "wc": 0, "ww": 2}
    assert followed == (1, 0)  # 5 and 5.0 are one answer


def test_two_others_that_disagree_press_nobody(turns_of, grader):
    assert counted([["4", "5", "6"], ["5", "5", "5"]], turns_of, grader)[1] == (0, 0)
    assert counted([["", "", ""], ["4", "4", "4"]], turns_of, grader)[1] == (0, 0)  # no answer is no majority
    assert counted([["", "5", "5"], ["5", "5", "5"]], turns_of, grader)[1] == (0, 0)  # nor another answer


def test_every_step_counts(turns_of, grader):
    flips, followed = counted([["5", "4", "4"], ["4", "4", "4"], ["4", "5", "4"]], turns_of, grader)
    assert flips == {"cc": 4, "cw": 1, "wc": 1, "ww": 0}
    assert followed == (1, 1)


def test_one_round_has_no_steps(turns_of, grader):
    flips, followed = counted([["4", "5", "5"]], turns_of, grader)
    assert (sum(flips.values()), followed) == (0, (0, 0))
