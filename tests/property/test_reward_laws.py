"""Laws of the rewards, over arbitrary ballots: symmetries, ranges, and what a coin-flip judge earns."""

from itertools import combinations, product

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate.types import TurnId
from rewards import RewardConfig, score_votes, valid_votes
from rewards.graph import condorcet_winner, cycles, majorities
from rewards.judge_rewards import judge_counts
from rewards.peer import PEER_RULES
from rewards.truth import flips as flips_of
from rewards.votes import ballot_box_of_votes, due_pairs

FLIPPED = {"left": "right", "right": "left", "tie": "tie"}
LAW = settings(deadline=None)  # the first Bradley-Terry fit imports scipy
GRADES = st.sampled_from([True, False, None, "missing"])


@st.composite
def debates(draw, min_agents: int = 1):
    """Return (N, R, votes, correct, config): any plain votes that the door lets in, sensible or not."""
    n, r = draw(st.integers(min_agents, 5)), draw(st.integers(1, 3))
    seats = st.integers(0, n - 1)
    vote = st.tuples(seats, st.integers(0, r), seats, seats, st.sampled_from(sorted(FLIPPED)))
    rows = st.lists(st.lists(GRADES, min_size=r, max_size=r), min_size=n, max_size=n)
    config = RewardConfig(
        peer=draw(st.sampled_from(sorted(PEER_RULES))),
        judge_truth_weight=draw(st.sampled_from([None, 0.0, 0.25, 1.0])),
        judge_own=draw(st.booleans()),
    )
    return n, r, draw(st.lists(vote, max_size=25)), draw(st.none() | rows), config


def streams(rewards):
    return {name: getattr(rewards, name) for name in ("peer", "truth", "judge", "format")}


def assert_same(ours, theirs):
    """Equal to 1e-6 (Bradley-Terry is fitted), and None exactly where the other is None."""
    for name, rows in streams(ours).items():
        for row, other in zip(rows, streams(theirs)[name], strict=True):
            for value, expected in zip(row, other, strict=True):
                assert (value is None) == (expected is None), name
                assert value is None or value == pytest.approx(expected, abs=1e-6), name


@LAW
@given(debates(), st.randoms(use_true_random=False))
def test_relabelling_the_agents_permutes_the_rewards(debate, rng):
    n, r, votes, correct, config = debate
    new = rng.sample(range(n), n)
    moved = [(new[j], t, new[a], new[b], outcome) for j, t, a, b, outcome in votes]
    grades = None if correct is None else [correct[new.index(seat)] for seat in range(n)]
    before, after = score_votes(n, r, votes, correct, config), score_votes(n, r, moved, grades, config)
    back = {name: tuple(rows[new[seat]] for seat in range(n)) for name, rows in streams(after).items()}
    assert_same(before, type(before)(**back))
    assert before.counters == after.counters


@LAW
@given(debates(), st.randoms(use_true_random=False))
def test_swapping_the_operands_with_the_operator_changes_nothing(debate, rng):
    n, r, votes, correct, config = debate
    swapped = [(j, t, b, a, FLIPPED[o]) if rng.random() < 0.5 else (j, t, a, b, o) for j, t, a, b, o in votes]
    assert score_votes(n, r, votes, correct, config) == score_votes(n, r, swapped, correct, config)


@LAW
@given(debates(min_agents=2), st.randoms(use_true_random=False))
def test_a_contradictory_pair_is_no_vote_on_it(debate, rng):
    n, r, votes, correct, config = debate
    judge, round_, (left, right) = rng.randrange(n), rng.randint(1, r), rng.sample(range(n), 2)
    without = [v for v in votes if (v[0], v[1], {v[2], v[3]}) != (judge, round_, {left, right})]
    both = [*without, (judge, round_, left, right, "left"), (judge, round_, right, left, "left")]
    assert_same(score_votes(n, r, both, correct, config), score_votes(n, r, without, correct, config))


@LAW
@given(debates())
def test_ranges_and_the_balance_of_the_counters(debate):
    n, r, votes, correct, config = debate
    rewards = score_votes(n, r, votes, correct, config)
    bounded = (*rewards.judge, *(rewards.peer if config.peer != "bradley_terry" else ()))
    bound = n * n if config.peer == "net_wins" else 1
    assert all(-bound <= value <= bound for row in bounded for value in row if value is not None)
    assert {value for row in rewards.format for value in row} <= {None, 0.0, config.format_penalty}
    counts = dict(rewards.counters)
    reasons = ("own_work", "not_shown", "same_handle", "duplicate", "contradictory")
    assert counts["votes/cast"] == len(votes)
    assert counts["votes/cast"] == counts["votes/valid"] + sum(
        counts[f"votes/{reason}"] for reason in reasons
    )


@LAW
@given(debates())
def test_no_turn_without_votes_gets_a_number_and_no_none_becomes_zero(debate):
    n, r, votes, correct, config = debate
    rewards = score_votes(n, r, votes, correct, config)
    legal = [
        (j, t, a, b) for j, t, a, b, _ in votes if t and a != b and (config.judge_own or j not in (a, b))
    ]
    targets = {(seat, t - 1) for _, t, a, b in legal for seat in (a, b)}
    judges = {(j, t) for j, t, _, _ in legal}
    for seat, round_ in product(range(n), range(r)):
        assert rewards.peer[seat][round_] is None or (seat, round_) in targets
        graded = correct is not None and correct[seat][round_] is not None
        assert (rewards.truth[seat][round_] is not None) == graded
    for seat, round_ in product(range(n), range(r + 1)):
        assert rewards.judge[seat][round_] is None or (seat, round_) in judges


@LAW
@given(debates())
def test_the_judge_stream_reads_nothing_but_graded_pairs_when_truth_rewards_alone(debate):
    n, r, votes, _, config = debate
    ungraded = [[None] * r for _ in range(n)]
    truth_only = config.model_copy(update={"judge_truth_weight": 1.0})
    assert score_votes(n, r, votes, ungraded, truth_only).judge == ((None,) * (r + 1),) * n


@pytest.mark.parametrize("rule", sorted(PEER_RULES))
@given(n=st.integers(3, 6), rng=st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_scores_of_a_round_in_which_every_pair_was_judged_have_a_fixed_sum(rule, n, rng):
    votes = [(*ballot, rng.choice(sorted(FLIPPED))) for ballot in full_round(n)]
    peer = score_votes(n, 1, votes, None, RewardConfig(peer=rule)).peer
    assert sum(row[0] for row in peer) == pytest.approx(n / 2 if rule == "win_rate" else 0.0, abs=1e-9)


def full_round(n: int) -> list[tuple[int, int, int, int]]:
    """(judge, 1, left, right) of a ballot in which every judge judges every pair it may."""
    pairs = ((j, a, b) for j in range(n) for a, b in combinations(range(n), 2) if j not in (a, b))
    return [(j, 1, a, b) for j, a, b in pairs]


# A coin-flip judge votes left or right with probability 1/2 whatever it sees.


@pytest.mark.parametrize("n", [4, 5, 6, 7])
def test_a_coin_flip_judge_earns_nothing_from_the_consensus_exactly(n):
    """All 2^(N-2) outcomes of the ballots on one pair: the mean over those with a value is exactly 0."""
    judges = range(2, n)
    values = []
    for flips in product(("left", "right"), repeat=n - 2):
        votes = [(j, 1, 0, 1, flip) for j, flip in zip(judges, flips, strict=True)]
        rewards = score_votes(n, 1, votes, None, RewardConfig())
        values += [rewards.judge[j][1] for j in judges if rewards.judge[j][1] is not None]
    assert values
    assert sum(values) == 0.0


@pytest.mark.parametrize("n", [3, 4, 5, 6, 7])
def test_a_coin_flip_judge_earns_nothing_from_truth_exactly(n):
    """Over both flips of one ballot on every pair, whatever the grades of the others."""
    for grades in product((True, False), repeat=min(n, 4)):
        correct = [[grade] for grade in (*grades, *[True] * (n - len(grades)))]
        for j, t, a, b in full_round(n):
            values = [
                score_votes(n, 1, [(j, t, a, b, flip)], correct, RewardConfig()).judge[j][1]
                for flip in ("left", "right")
            ]
            differ = correct[a] != correct[b]
            assert sorted(values, key=str) == ([-1.0, 1.0] if differ else [None, None])


def boxed(n, r, votes, config):
    return ballot_box_of_votes(n, r, votes, judge_own=config.judge_own, final_ballot=True)


@LAW
@given(debates(min_agents=2), st.randoms(use_true_random=False))
def test_relabelling_the_agents_permutes_majorities_cycles_and_winners_and_keeps_the_counts(debate, rng):
    n, r, votes, correct, config = debate
    new = rng.sample(range(n), n)
    moved = [(new[j], t, new[a], new[b], outcome) for j, t, a, b, outcome in votes]
    grades = None if correct is None else [correct[new.index(seat)] for seat in range(n)]
    boxes = [boxed(n, r, votes, config), boxed(n, r, moved, config)]
    before, after = map(valid_votes, boxes)

    def named(turn):
        return None if turn is None else TurnId(new[turn.agent], turn.round)

    edges, others = majorities(before), majorities(after)
    assert sorted(tuple(map(named, edge)) for edge in edges) == list(others)
    assert sorted(tuple(sorted(map(named, part))) for part in cycles(edges)) == list(cycles(others))
    for round_ in range(r):
        assert named(condorcet_winner(edges, round_, n)) == condorcet_winner(others, round_, n)
    counts = judge_counts(due_pairs(boxes[0], before), correct)
    assert counts == judge_counts(due_pairs(boxes[1], after), grades)
    assert flips_of(correct) == flips_of(grades)
    assert 0 <= counts.right <= counts.votes <= counts.due


@LAW
@given(debates(min_agents=3))
def test_a_condorcet_winner_is_in_no_cycle_and_loses_to_nobody(debate):
    n, r, votes, _, config = debate
    edges = majorities(valid_votes(boxed(n, r, votes, config)))
    graph = nx.DiGraph(edges)
    assert sorted(map(sorted, cycles(edges))) == sorted(
        sorted(part) for part in nx.strongly_connected_components(graph) if len(part) > 2
    )
    for round_ in range(r):
        best = condorcet_winner(edges, round_, n)
        assert best is None or (graph.in_degree(best) == 0 and graph.out_degree(best) == n - 1)


@LAW
@given(debates(), st.randoms(use_true_random=False))
def test_duplicate_lines_and_the_order_of_lines_change_nothing(debate, rng):
    n, r, votes, correct, config = debate
    stuffed = [vote for vote in votes for _ in range(rng.randint(1, 4))]
    rng.shuffle(stuffed)
    assert_same(score_votes(n, r, votes, correct, config), score_votes(n, r, stuffed, correct, config))
