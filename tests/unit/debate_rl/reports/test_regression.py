"""The regression of the report on votes whose log-odds are known by counting."""

from __future__ import annotations

from math import log

import pytest

from debate_rl.reports import judgment_figures


def votes_of(make_debate, cases):
    """Debates of one vote each: (judge, grades, how often the first shown won, and the second)."""
    number = 0
    for judge, grades, first, second in cases:
        sides = [agent for agent in range(3) if agent != judge]
        for place in range(first + second):
            vote = (judge, 1, *sides, "left" if place < first else "right")
            answers = [["4" if grade else "5"] for grade in grades]
            yield make_debate([vote], [[grade] for grade in grades], answers, problem=f"p{number}")
            number += 1


def regression(debates):
    found = [f for f in judgment_figures(debates) if f.name.startswith("regression/")]
    return {f.name.removeprefix("regression/"): f.estimate.value for f in found if f.estimate}


def test_place_and_truth(make_debate):
    cases = [(2, (True, False, False), 30, 10), (2, (False, True, False), 15, 25)]
    up, down = log(30 / 10), log(15 / 25)
    found = regression(votes_of(make_debate, cases))
    assert found == pytest.approx({"position": (up + down) / 2, "correctness": (up - down) / 2})


def test_personas_sum_to_zero(make_debate):
    cases = [(1, (False,) * 3, 30, 10), (2, (False,) * 3, 10, 20)]
    up, down = log(30 / 10), log(10 / 20)
    found = regression(votes_of(make_debate, cases))
    assert found == pytest.approx({"position": (up + down) / 2, "persona/Advocate": (up - down) / 2})


def test_separated_votes_say_so(make_debate):
    cases = [(2, (True, False, False), 20, 0), (2, (False, True, False), 0, 20)]
    found = {f.name: f for f in judgment_figures(votes_of(make_debate, cases))}
    assert found["regression/correctness"].estimate is None
    assert "not estimable: the votes are separated" in found["regression/correctness"].why
    assert found["judge/accuracy"].estimate.value == 1.0


def test_a_persona_whose_votes_all_went_one_way_is_left_out(make_debate):
    truth = [(1, (True, False, False), 30, 10), (1, (False, False, True), 15, 25)]
    cases = [*truth, (2, (False,) * 3, 20, 0)]
    found = {f.name: f for f in judgment_figures(votes_of(make_debate, cases))}
    persona = found["regression/persona/Advocate"]
    assert persona.estimate is None
    assert "not estimable: the votes are separated" in persona.why
    kept = found["regression/correctness"]
    assert (kept.flag, kept.why) == ("without personas", "")
    # the same as a fit of votes whose judges are one persona: 15 to 25, 30 to 10, and 20 to 0 of equal pairs
    alone = [(1, grades, first, second) for _, grades, first, second in cases]
    wanted = {f.name: f for f in judgment_figures(votes_of(make_debate, alone))}
    assert kept.estimate.value == pytest.approx(wanted["regression/correctness"].estimate.value)
    assert wanted["regression/correctness"].flag == ""
