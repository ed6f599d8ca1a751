"""Whose gold answers reward, what stands for the others, and where votes count: by hand."""

from itertools import pairwise

import pytest
from msgspec.structs import replace as with_fields

from debate import Persona
from debate.types import ParsedTurn, Problem, TurnId, Vote
from rewards import Credit, RewardConfig, score_debates
from rewards.labels import OF_TRUTH, credits_of, is_labelled
from rewards.pseudo import Answered, last_majority, majority, verified, voted
from rewards.shaping import same_spelling
from rewards.types import Likelihoods, Verdicts

A, B, C = (TurnId(agent, 0) for agent in range(3))
PERSONAS = tuple(Persona(name, "") for name in "ABC")


@pytest.fixture
def answering(make_debate):
    """Return a debate of three agents and one round with these answers, before a ballot with these votes."""

    def make(answers, votes=(), *, problem="p", kind="number", seed=0):
        debate = make_debate([Vote(TurnId(j, 1), left, right, o) for j, left, right, o in votes])
        turns = [
            with_fields(turn, parsed=ParsedTurn(answer=answers[turn.id.agent]))
            if turn.id.round == 0
            else with_fields(turn, ballot=True)
            for turn in debate.turns
        ]
        posed = Problem(problem, "?", answer="1", kind=kind)
        return with_fields(debate, turns=tuple(turns), problem=posed, personas=PERSONAS, seed=seed)

    return make


def group(*rows, votes=(), verdicts=None):
    """Return a group of debates with these answers by round, ``rows[debate][agent][round]``."""
    keys = [
        {TurnId(a, r): key for a, row in enumerate(rows_) for r, key in enumerate(row) if key is not None}
        for rows_ in rows
    ]
    turns = [[TurnId(a, r) for a, row in enumerate(rows_) for r in range(len(row))] for rows_ in rows]
    return Answered(turns, keys, votes or [()] * len(rows), verdicts or [None] * len(rows))


def wins(*pairs):
    return [Vote(TurnId(9, winner.round + 1), winner, loser, "left") for winner, loser in pairs]


def labelled(name, share, seed):
    return is_labelled(Problem(name, "?"), RewardConfig(labels=share), seed)


def test_the_problems_of_a_smaller_share_are_among_those_of_a_greater_one():
    names = [f"p{n}" for n in range(2000)]
    shares = (0.0, 0.05, 0.125, 0.5, 1.0)
    dealt = [{name for name in names if labelled(name, share, 3)} for share in shares]
    assert all(a <= b for a, b in pairwise(dealt))
    assert [len(d) / 2000 for d in dealt] == [0, *(pytest.approx(s, abs=0.03) for s in shares[1:4]), 1]
    assert dealt[2] != {name for name in names if labelled(name, 0.125, 4)}


def test_labels_may_be_of_some_levels_alone(answering):
    config = RewardConfig(label_levels=(1, "a"), labels=0.5)
    levels = {level: Problem("p3", "?", answer="1", level=level) for level in ("1", "2", "a", "")}
    assert [is_labelled(problem, config, 0) for problem in levels.values()] == [True, False, True, False]
    assert not is_labelled(with_fields(levels["1"], id="p2"), config, 0)
    debate = with_fields(answering(["1", "1", "2"]), problem=levels["2"])
    (credit,) = credits_of([debate], [[[True], [True], [False]]], ["p"], config, seed=0, key=same_spelling)
    assert (credit.truth, credit.judge) == ("none", "none")


def test_the_majority_is_of_each_round_and_over_all_debates():
    both = group([["4", "5"], ["4", "5"], [None, "6"]], [["7", "6"], ["7", "6"], ["7", None]])
    assert majority(both) == [{"4": 2, "7": 3}, {"5": 2, "6": 3}]
    assert last_majority(both) == [{"5": 2, "6": 3}] * 2


def test_the_last_round_is_that_of_each_debate():
    stopped = group([["4"], ["4"]], [["5", "6"], ["5", "4"]])
    assert last_majority(stopped) == [{"4": 3, "6": 1}] * 2


def test_the_voted_label_has_the_most_wins_less_losses():
    # 4 is given twice and loses both times to 5; 6 wins once and loses once.
    one, other = [["4"], ["5"], ["6"]], [["4"], ["5"], ["4"]]
    votes = [wins((B, A), (C, A), (B, C)), wins((B, A), (C, A))]
    assert voted(group(one, other, votes=votes)) == [{"5": 3.0}]  # C over A there is 4 over 4
    assert voted(group(one, votes=[wins((A, B), (B, C), (C, A))])) == [{}]  # a cycle favours none
    assert voted(group([["4"], [None]], votes=[wins((A, B))])) == [{"4": 1.0}]


def test_an_answer_with_many_wins_outweighs_a_rare_one_that_beat_it():
    """L beats X in four debates, R beats L in the fifth: 4 - 1 wins against 1."""
    common, rare = [["L"], ["X"]], [["R"], ["L"]]
    votes = [*[wins((A, B))] * 4, wins((A, B))]
    assert voted(group(*[common] * 4, rare, votes=votes)) == [{"L": 3.0, "R": 1.0}]


def test_a_label_is_kept_where_most_verdicts_on_it_pass():
    rows = [["4"], ["4"], ["4"], ["5"]]

    def said(*scores):
        return verified(group(rows, verdicts=[Verdicts("m", 0.5, tuple((s,) for s in scores))]))

    assert said(0.9, 0.9, 0.1, 0.0) == [{"4": 3}]
    assert said(0.9, None, 0.1, 1.0) == [{}]  # one of two is not most, and 5 was not the majority
    assert verified(group(rows)) == [{}]


def test_a_problem_with_a_label_is_rewarded_by_truth_and_another_by_what_stands_for_it(answering):
    debates = [answering("112", problem=p, seed=s) for p in ("p3", "p2") for s in (1, 2)]
    truth = ((False,), (False,), (True,))
    scheme = RewardConfig(labels=0.5, pseudo="majority")
    assert [labelled(p, 0.5, 0) for p in ("p3", "p2")] == [True, False]
    credits = credits_of(debates, [truth] * 4, list("aabb"), scheme, seed=0, key=same_spelling)
    assert credits[:2] == [OF_TRUTH] * 2
    assert credits[2:] == [Credit("majority", "none", ("1",), ((True,), (True,), (False,)))] * 2
    rewards, _ = score_debates(debates, [truth] * 4, list("aabb"), scheme, seed=0)
    assert [one.truth for one in rewards[::2]] == [((0.0,), (0.0,), (1.0,)), ((1.0,), (1.0,), (0.0,))]
    assert [one.count("grades/right") for one in rewards] == [1] * 4  # counters tell the truth


def test_judges_are_rewarded_by_pseudo_labels_where_they_are_asked_to(answering):
    vote = (0, B, C, "left")
    judged = {
        by: score_debates(
            [answering("112", [vote])],
            [((True,), (False,), (True,))],
            ["g"],
            RewardConfig(labels=0, pseudo="majority", judge_pseudo=by),
            seed=0,
        )[0][0].judge[0][1]
        for by in (False, True)
    }
    assert judged == {False: None, True: 1.0}  # by truth the vote is wrong


def test_without_a_label_nothing_of_truth_is_rewarded(answering):
    debate = answering("112", [(0, B, C, "left")])
    debate = with_fields(debate, turns=tuple(with_fields(t, score=0.5) for t in debate.turns))
    scheme = RewardConfig(labels=0, truth_credit="partial", likelihood_weight=0.5)
    [rewards], [credit] = score_debates(
        [debate],
        [((True,), (False,), (True,))],
        ["g"],
        scheme,
        seed=0,
        likelihoods=[Likelihoods(((-1.0,), (-1.0,), (-1.0,)))],
    )
    assert credit == Credit("none", "none")
    assert rewards.truth == ((None,),) * 3
    assert rewards.judge == ((None, None),) * 3
    assert not rewards.likelihood
    assert rewards.peer == ((None,), (1.0,), (-1.0,))


def test_kinds_whose_answer_is_the_whole_reply_have_no_pseudo_label_and_open_ones_do(answering):
    scheme = RewardConfig(pseudo="majority")

    def of(kind):
        debate = answering("112", kind=kind)
        return credits_of([debate], [None], ["g"], scheme, seed=0, key=same_spelling)[0].truth

    assert (of("rubric"), of("open")) == ("none", "majority")


def test_ties_are_drawn_by_the_seed_and_favour_nobody(answering):
    drawn = []
    for seed in range(400):
        [credit] = credits_of(
            [answering("123", seed=seed)],
            [None],
            ["g"],
            RewardConfig(pseudo="majority"),
            seed=7,
            key=same_spelling,
        )
        drawn.append(credit.labels[0])
    assert [drawn.count(key) / 400 for key in "123"] == [pytest.approx(1 / 3, abs=0.08)] * 3


def test_coins_stand_for_truth_alone(answering):
    debates = [answering("112", [(0, B, C, "left")], seed=seed) for seed in range(300)]
    truth = ((False,), (True,), (False,))
    rewards, credits = score_debates(debates, [truth] * 300, ["g"] * 300, RewardConfig(), seed=0, coins=True)
    values = [value for one in rewards for (value,) in one.truth]
    assert sum(values) / 900 == pytest.approx(0.5, abs=0.06)
    assert {one.judge[0][1] for one in rewards} == {1.0}
    assert {credit.truth for credit in credits} == {"coin"}


def test_votes_are_routed_to_rounds_in_which_truth_is_silent(answering):
    votes = [(0, B, C, "left")]
    differ, agree = answering("112", votes), answering("112", votes)
    right, wrong = ((True,), (False,), (True,)), ((False,),) * 3
    scheme = RewardConfig(peer_weight="routed")
    [one, other], _ = score_debates([differ, agree], [right, wrong], ["p", "q"], scheme, seed=0)
    assert (one.peer, one.truth) == (((None,),) * 3, ((1.0,), (0.0,), (1.0,)))
    assert (other.peer, other.truth) == (((None,), (1.0,), (-1.0,)), ((None,),) * 3)
    [one, other], _ = score_debates([differ, agree], [right, wrong], ["p", "p"], scheme, seed=0)
    assert (one.peer, other.peer) == (((None,),) * 3,) * 2  # in one group some are right
