"""What must hold of any debate: who sits where and who is called what changes nothing."""

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate.types import TurnId
from debate_rl.reports import judgment_figures
from rewards import Rewards

OUTCOMES = ("left", "right", "tie")
SEATED = ("judge/accuracy/agent", "judge/strict_accuracy/agent", "judge/coverage/agent")


@st.composite
def debates(draw, make, *, ties=True):
    grade = st.sampled_from([True, False, "missing", None])
    correct = draw(st.lists(st.lists(grade, min_size=2, max_size=2), min_size=3, max_size=3))
    answers = [[draw(st.sampled_from("567")) if g is not True else "4" for g in row] for row in correct]
    outcomes = OUTCOMES if ties else OUTCOMES[:2]
    votes = []
    for judge in range(3):
        for round_ in (1, 2):
            a, b = (other for other in range(3) if other != judge)
            outcome = draw(st.sampled_from((*outcomes, None)))
            if outcome:
                votes.append((judge, round_, a, b, outcome))
    problem = draw(st.sampled_from("abc"))
    return make(votes, correct, answers, problem=problem, step=draw(st.integers(0, 3)))


def values(found, *, leave=()):
    return {
        f.name: (f.estimate.value, f.estimate.low, f.estimate.high, f.estimate.n) if f.estimate else f.why
        for f in found
        if not f.name.startswith(leave)
    }


def same(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        if isinstance(value, str):
            assert value == other[name], name
        else:
            assert other[name] == pytest.approx(value, abs=1e-6), name


def reseated(record, seats):
    """The same debate with agent a in seat ``seats[a]``; what was shown keeps its order."""
    debate = record.debate

    def moved(turn):
        return TurnId(seats[turn.agent], turn.round)

    turns = []
    for turn in debate.turns:
        shown = tuple(map(moved, turn.shown))
        turns.append(replace(turn, id=moved(turn.id), shown=shown, compared=shown))
    votes = (replace(v, judge=moved(v.judge), left=moved(v.left), right=moved(v.right)) for v in debate.votes)
    personas, correct = (by_seat(values, seats) for values in (debate.personas, record.correct))
    debate = replace(debate, personas=personas, turns=tuple(turns), votes=tuple(votes))
    return replace(record, debate=debate, correct=correct)


def by_seat(values, seats):
    """What agent a had, in seat ``seats[a]``."""
    return tuple(values[seats.index(seat)] for seat in range(len(seats)))


def with_votes(record, change):
    """The record with each of its votes changed."""
    return replace(record, debate=replace(record.debate, votes=tuple(map(change, record.debate.votes))))


@pytest.mark.slow
@given(data=st.data())
@pytest.mark.parametrize("clear", [False, True])
def test_seats_change_nothing_but_what_is_drawn_among_equals_by_seat(make_debate, clear, data):
    played = data.draw(st.lists(debates(make_debate), min_size=1, max_size=1 if clear else 4))
    seats = data.draw(st.sampled_from(list(permutations(range(3)))))
    moved = [reseated(debate, seats) for debate in played]
    if clear:
        scores = ((None, -0.5), (None, 0.25), (None, 1.0))
        played = [replace(one, rewards=Rewards(scores, (), (), ())) for one in played]
        moved = [replace(one, rewards=Rewards(by_seat(scores, seats), (), (), ())) for one in moved]
    leave = SEATED if clear else (*SEATED, "winner/", "collusion/peer", "collusion/truth", "collusion/gap")
    same(values(judgment_figures(played), leave=leave), values(judgment_figures(moved), leave=leave))


@pytest.mark.slow
@given(data=st.data())
def test_the_order_of_debates_and_names_of_problems_change_nothing(make_debate, data):
    played = data.draw(st.lists(debates(make_debate), min_size=1, max_size=4))
    other = []
    for record in played[::-1]:
        problem = replace(record.debate.problem, id=record.debate.problem.id + "!")
        other.append(replace(record, debate=replace(record.debate, problem=problem)))
    same(values(judgment_figures(played)), values(judgment_figures(other)))


@pytest.mark.slow
@given(data=st.data())
def test_the_opposite_votes_are_right_where_these_are_wrong(make_debate, data):
    played = data.draw(st.lists(debates(make_debate, ties=False), min_size=1, max_size=4))
    opposite = {"left": "right", "right": "left"}
    turned = [with_votes(record, lambda v: replace(v, outcome=opposite[v.outcome])) for record in played]
    here, there = ({f.name: f.estimate for f in judgment_figures(x) if f.estimate} for x in (played, turned))
    for name in ("judge/accuracy", "bias/position"):
        if name in here:
            total = 1.0 if name == "judge/accuracy" else 0.0
            assert here[name].value + there[name].value == pytest.approx(total)
    for name in ("judge/coverage", "graph/cycles", "graph/slater"):
        assert (name in here) == (name in there)
        assert name not in here or here[name].value == there[name].value


@given(data=st.data())
def test_a_line_written_the_other_way_round_is_the_same_vote(make_debate, data):
    played = data.draw(debates(make_debate))
    opposite = {"left": "right", "right": "left", "tie": "tie"}
    turned = with_votes(played, lambda v: replace(v, left=v.right, right=v.left, outcome=opposite[v.outcome]))
    same(values(judgment_figures([played])), values(judgment_figures([turned])))


@given(data=st.data())
def test_strict_accuracy_is_accuracy_times_coverage(make_debate, data):
    played = data.draw(st.lists(debates(make_debate), min_size=1, max_size=4))
    found = {f.name: f.estimate for f in judgment_figures(played) if f.estimate}
    if "judge/accuracy" in found:
        product = found["judge/accuracy"].value * found["judge/coverage"].value
        assert found["judge/strict_accuracy"].value == pytest.approx(product)
