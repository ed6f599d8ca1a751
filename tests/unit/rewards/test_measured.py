from math import sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate import DebateConfig, Problem, run_debates
from debate.policies.scripted import ScriptedPolicy
from rewards import RewardConfig
from rewards.measured import (
    DECAY,
    SURE,
    judged_pairs,
    measure,
    measured,
    measured_metrics,
    stream_weights,
    take,
    vote_weight,
)

MEASURED = RewardConfig(peer_weight="measured", truth_weight=0.25)


def state_of(*steps):
    state = {}
    for problems in steps:
        take(state, problems)
    return state


def test_the_weight_is_twice_the_lower_bound_of_p_v_over_a_coin():
    """Ten problems of one vote, 9 of them right: squared residuals 9 * .01 + .81 = .9."""
    found = measured(state_of([(1.0, 1.0)] * 9 + [(1.0, 0.0)]))
    assert found.votes == pytest.approx(0.9)
    assert found.low == pytest.approx(0.4 - SURE * sqrt(0.9 * 10 / 9) / 10)
    assert vote_weight(found) == pytest.approx(2 * found.low)


def test_older_steps_count_less():
    """Ten problems with right votes, then ten with wrong ones: .9 * 10 of 19."""
    found = measured(state_of([(1.0, 1.0)] * 10, [(1.0, 0.0)] * 10))
    assert found.votes == pytest.approx(DECAY * 10 / (DECAY * 10 + 10))
    assert found.low < 0
    assert vote_weight(found) == 0


def test_of_few_problems_nothing_is_known_and_votes_do_not_count():
    few = state_of([(4.0, 4.0)] * 9)
    assert measured(few) is None
    assert stream_weights(MEASURED, few) == (0.0, 0.25)
    assert measured_metrics(few) == {"labels/vote_weight": 0.0}
    assert measured(state_of([], [])) is None


def test_problems_that_all_say_the_same_leave_room_for_others():
    """Of ten alike .025^(1/10) = .6915 of all problems are known: p_v - 1/2 is .1915."""
    state = state_of([(2.0, 2.0)] * 10)
    assert stream_weights(MEASURED, state) == pytest.approx((0.75 * 0.3830, 0.25), abs=1e-4)
    known = {"labels/vote_weight": 0.3830, "labels/votes_right": 1.0, "labels/margin_low": 0.1915}
    assert measured_metrics(state) == pytest.approx(known, abs=1e-4)
    assert vote_weight(measured(state_of([(2.0, 2.0)] * 1000))) > 0.99


ROWS = st.lists(
    st.integers(1, 6).flatmap(lambda n: st.tuples(st.just(float(n)), st.integers(0, n).map(float))),
    max_size=30,
)


@settings(max_examples=30)
@given(st.lists(ROWS, max_size=4))
def test_weights_lie_in_their_range_and_do_not_depend_on_the_order_of_problems(steps):
    state, turned = state_of(*steps), state_of(*(rows[::-1] for rows in steps))
    assert all(abs(value - turned[name]) < 1e-6 for name, value in state.items())
    peer, truth = stream_weights(MEASURED, state)
    assert 0 <= peer <= 0.75
    assert truth == 0.25
    found = measured(state)
    if found is not None:
        assert found.low <= found.votes - 0.5 + 1e-9


HANDLES = ("K7", "Q2", "M4")


def test_pairs_of_debates_are_read_as_the_doctor_reads_them():
    """Answers 4, 5, 5, right is 4: agents 1 and 2 compare it with each other's 5; 0 has nothing to decide."""

    def reply(request):
        answer = 4 if request.turn.agent == 0 else 5
        votes = {1: "K7 > M4", 2: "Q2 > K7"}.get(request.turn.agent, "Q2 > M4")
        return f"<solution>\\boxed{{{answer}}}</solution><comparison>{votes}</comparison>"

    config = DebateConfig(num_agents=3, num_rounds=2, final_ballot=False, handles=HANDLES)
    [debate] = run_debates([Problem("p", "?", "4", kind="number")], ScriptedPolicy(reply), config, seed=0)
    correct = [[True, True], [False, False], [False, False]]
    found = list(judged_pairs([debate], [correct], lambda problem, answer: answer))
    assert {one.pair.judge.agent for one in found} == {1, 2}
    assert {one.crowd for one in found} == {0.0}  # 5 is the commoner answer
    state = {}
    measure(state, [debate], [None], lambda problem, answer: answer)
    assert state["measured/n"] == 0  # no label, nothing measured
