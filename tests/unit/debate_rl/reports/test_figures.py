"""Every figure of the judgment report, by hand, on two debates."""

from dataclasses import replace
from math import inf, log

import pytest

from debate_rl.reports import judgment_figures
from debate_rl.reports.figures import figures_of
from debate_rl.reports.rows import Study
from rewards import Rewards

ENTROPY = (2 / 3 * log(3 / 2) + 1 / 3 * log(3)) / log(3)
BY_HAND = {
    "judge/accuracy": (1 / 3, 3, 1),
    "judge/strict_accuracy": (1 / 6, 6, 2),
    "judge/coverage": (3 / 6, 6, 2),
    "judge/ties": (1 / 3, 3, 1),
    "bias/position": (3 / 5 - 1 / 2, 5, 2),
    "winner/accuracy": (1.0, 2, 2),
    "winner/lift": ((1 / 3 + 0) / 2, 2, 2),
    "winner/mixed_accuracy": (1.0, 1, 1),
    "winner/oracle_gap": (0.0, 2, 2),
    "winner/minus_majority": (0.0, 2, 2),
    "winner/drawn": (1 / 2, 2, 2),  # the votes of one go in a circle
    "winner/auc": (0.5, 1, 1),  # scores of the right -1 and .5, of the wrong 0
    "winner/tau_b": (0.0, 1, 1),
    "winner/correlation": (0.1**0.5, 6, 2),  # (1/3 - 1/3 5/6) / sqrt(2/9 5/36)
    "flip/CC": (3 / 6, 6, 2),
    "flip/CW": (1 / 6, 6, 2),
    "flip/WC": (1 / 6, 6, 2),
    "flip/WW": (1 / 6, 6, 2),
    "cascade/vulnerability": (1 / 4, 4, 2),
    "cascade/recovery": (1 / 2, 2, 1),
    "cascade/first_listed": (0.0, 2, 1),  # +.5 by agent 1, -.5 by agent 2
    "graph/cycles": (1 / 2, 2, 2),
    "graph/condorcet": (0.0, 2, 2),
    "graph/circular_triads": (1 / 2, 2, 2),
    "graph/zeta": (1 / 2, 2, 2),
    "graph/slater": (1 / 3, 3, 2),
    "collusion/peer_trend": (0.5 - 0.75, 2, 2),
    "collusion/truth_trend": (0.0, 2, 2),
    "collusion/gap_trend": (-0.25, 2, 2),
    "collusion/reciprocity": ((1 - 3) / 4, 4, 2),
    "collusion/entropy": (ENTROPY, 2, 2),
    "collusion/entropy_trend": (0.0, 2, 2),
}
NOT_THERE = {
    "bias/length": "no decided vote on two right or two wrong solutions of different length",
    "bias/self_preference": "no judge compared a wrong solution of its own",
    "swaps/primacy": 'no pair was shown in both orders: set debate.order = "per_viewer"',
    "regression/position": "not estimable: 2 problems are too few for 4 coefficients",
    "regression/length": "not estimable: it does not vary",
}


@pytest.fixture
def found(ordered, circular):
    return {figure.name: figure for figure in judgment_figures(iter([ordered, circular]))}


@pytest.mark.parametrize("name", BY_HAND)
def test_value_count_and_clusters(found, name):
    estimate = found[name].estimate
    assert (estimate.n, estimate.clusters) == BY_HAND[name][1:]
    assert estimate.value == pytest.approx(BY_HAND[name][0], abs=1e-6)
    assert estimate.low <= estimate.value <= estimate.high
    on_a_line = name.endswith("trend")  # through two problems there is always one, and nothing left over
    assert (estimate.high == inf) == (estimate.clusters == 1 or on_a_line)


@pytest.mark.parametrize("name", NOT_THERE)
def test_no_value_has_a_reason(found, name):
    assert found[name].estimate is None
    assert found[name].why == NOT_THERE[name]


def test_groups_have_their_own_pairs_and_filters(found):
    estimates = {n[15:]: f.estimate for n, f in found.items() if n.startswith("judge/accuracy/")}
    assert {name: e.value if e else None for name, e in estimates.items()} == {
        "persona/Advocate": 1.0,
        "persona/Analyst": 0.0,  # a tie
        "persona/Solver": 0.0,
        "fault/no visible fault": 1 / 3,
        "round/1": 1 / 2,
        "round/2": 0.0,
        "agent/0": 0.0,
        "agent/1": 1.0,
        "agent/2": 0.0,
        "length/about as long": 1 / 3,
        "step/0..10": 1 / 3,
        "step/99..100": None,
        "level/Level 1": 1 / 3,
        "level/Level 2": None,
        "subject/algebra": 1 / 3,
        "subject/geometry": None,
    }
    assert found["judge/coverage/level/Level 2"].estimate.value == 0.0
    assert found["judge/accuracy/level/Level 2"].estimate is None
    assert found["judge/accuracy/subject/algebra"].filter == 'source:"MATH/algebra" judge.accuracy:>=0'
    assert found["judge/accuracy/step/0..10"].filter == "step:0..10 judge.accuracy:>=0"
    assert found["judge/accuracy/persona/Solver"].filter is None  # no words for whose vote it is


def test_debates_without_answers_have_what_needs_no_truth(circular):
    found = {figure.name: figure for figure in judgment_figures([replace(circular, correct=None)])}
    assert found["judge/accuracy"].estimate is None
    assert found["winner/accuracy"].estimate is None
    assert found["graph/cycles"].estimate.value == 1.0


def test_an_ungraded_answer_makes_no_pair_decidable(ordered):
    first, *others = ordered.correct  # the right side of both votes of round 1
    ordered = replace(ordered, correct=((None, *first[1:]), *others))
    found = {figure.name: figure for figure in judgment_figures([ordered])}
    assert found["judge/strict_accuracy"].estimate.n == 2
    assert found["judge/accuracy"].estimate.value == 0.0


def test_the_winner_below_the_line_is_flagged(ordered):
    *votes, last_but_one, last = ordered.debate.votes
    votes += [replace(last_but_one, outcome="right"), replace(last, outcome="tie")]  # the wrong one wins
    turned = replace(ordered, debate=replace(ordered.debate, votes=tuple(votes)))
    [figure] = [f for f in judgment_figures([turned]) if f.name == "winner/correlation"]
    assert figure.estimate.value == pytest.approx(-1.0)
    assert figure.flag == ""  # one debate tells nothing
    many = [of_problem(turned if n % 4 else ordered, str(n)) for n in range(40)]
    [figure] = [f for f in judgment_figures(many) if f.name == "winner/correlation"]
    assert figure.estimate.high < 0.3
    assert figure.flag == "below 0.3"


def of_problem(record, name):
    """The record on another problem."""
    return replace(record, debate=replace(record.debate, problem=replace(record.debate.problem, id=name)))


def test_self_preference_is_against_other_wrong_work(make_debate):
    votes = [
        (0, 1, 0, 1, "left"),  # own and wrong, preferred
        (0, 1, 1, 2, "left"),  # neither own: the right one
        (2, 1, 0, 1, "left"),  # neither own: the wrong one
        (2, 1, 0, 2, "left"),  # both wrong: says nothing here
        (1, 1, 0, 1, "left"),  # own and right: says nothing here
    ]
    debate = make_debate(votes, [[False], [True], [False]], [["5"], ["4"], ["6"]], own=True)
    [figure] = [f for f in judgment_figures([debate]) if f.name == "bias/self_preference"]
    assert (figure.estimate.value, figure.estimate.n) == (1.0 - 0.5, 3)


@pytest.mark.parametrize(
    ("votes", "kind"), [("01", "primacy"), ("10", "recency"), ("00", "consistency"), ("11", "consistency")]
)
def test_two_judges_of_one_pair_in_both_orders(make_debate, votes, kind):
    cast = [(j, 1, 0, 1, "left" if vote == "0" else "right") for j, vote in zip((2, 3), votes, strict=True)]
    order = {2: [0, 1, 2, 3], 3: [1, 0, 2, 3]}
    correct = [[True], [True], [False], [False]]
    debate = make_debate(cast, correct, [["4"]] * 4, order=lambda agent: order.get(agent, range(4)))
    found = {f.name: f.estimate for f in judgment_figures([debate])}
    for name in ("consistency", "primacy", "recency"):
        assert found[f"swaps/{name}"].value == (name == kind)


def test_the_longer_solution(make_debate):
    votes = [(0, 1, 1, 2, "left"), (1, 1, 0, 2, "right")]
    debate = make_debate(votes, [[False]] * 3, [["5"], ["6"], ["7"]], sizes=(10, 25, 40))
    found = {f.name: f.estimate for f in judgment_figures([debate])}
    assert found["bias/length"].value == 0.0  # 25 before 40, then 40 before 10
    debate = make_debate(votes, [[False], [False], [True]], [["5"], ["6"], ["4"]], sizes=(10, 25, 40))
    found = {f.name: f.estimate for f in judgment_figures([debate])}
    assert found["judge/accuracy/length/longer"].value == 0.0
    assert found["judge/accuracy/length/more than twice"].value == 1.0


def test_rewards_of_the_record_decide_the_winner(ordered):
    rewards = Rewards(((None, -1.0), (None, 0.0), (None, 0.25)), (), (), ())
    rows = Study([replace(ordered, rewards=rewards)])
    assert rows.winners["right"].tolist() == [0]
    assert rows.winners["score"].tolist() == [0.25]
    [lift] = [f for f in figures_of(rows) if f.name == "winner/lift"]
    assert lift.estimate.value == pytest.approx(-2 / 3)


def test_judges_that_always_take_the_first_are_half_above_a_half(make_debate):
    votes = [(judge, 1, *others, "left") for judge, others in enumerate(((1, 2), (0, 2), (0, 1)))]
    played = [make_debate(votes, [[True]] * 3, [["4"]] * 3, problem=str(n)) for n in range(10)]
    found = {f.name: f for f in judgment_figures(played)}
    position = found["bias/position"].estimate
    assert position.value == pytest.approx(0.5)
    assert position.high == pytest.approx(0.5)
    assert position.low == pytest.approx(0.025**0.1 - 0.5)
    assert found["regression/position"].why == "not estimable: every vote has the same outcome"
