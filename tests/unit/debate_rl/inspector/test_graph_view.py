from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate.types import TurnId, Vote
from debate_rl.inspector.views import vote_graphs
from rewards import ballot_box
from rewards.graph import condorcet_winner, cycles, majorities
from rewards.votes import split_votes
from transcripts.index.facts import facts_of

from .conftest import judged, make, solved

A, B, C = (TurnId(agent, 0) for agent in range(3))


def test_votes_in_a_circle(circle):
    first, second = vote_graphs(circle)
    assert (first.round, first.solutions) == (0, (A, B, C))
    assert first.edges == ((A, B), (B, C), (C, A))
    assert first.matrix == ((0, 1, 0), (0, 0, 1), (1, 0, 0))
    assert (first.cycles, first.condorcet) == (((A, B, C),), None)
    assert [(arrow.winner, arrow.loser) for arrow in first.arrows] == [(B, C), (C, A), (A, B)]
    assert [arrow.judge for arrow in first.arrows] == [TurnId(agent, 1) for agent in range(3)]
    assert all(arrow.in_cycle and arrow.counts and not arrow.dropped for arrow in first.arrows)
    # K7 is right, the others are wrong
    assert [arrow.truth for arrow in first.arrows] == ["undecidable", "wrong", "right"]
    assert [arrow.line for arrow in first.arrows] == ["Q2 > M4", "M4 > K7", "K7 > Q2"]
    assert (second.round, second.cycles) == (1, ())


def test_ties_and_votes_that_do_not_count(circle):
    _, ballot = vote_graphs(circle)
    tie, kept, again, one, other = ballot.arrows
    assert (tie.tie, tie.left.agent, tie.right.agent, tie.counts, tie.in_cycle) == (True, 1, 2, True, False)
    assert (kept.counts, kept.winner.agent, kept.loser.agent) == (True, 0, 2)
    assert (again.counts, again.dropped, one.dropped) == (False, "duplicate", "contradictory")
    assert other.dropped == "contradictory"
    assert ballot.matrix == ((0, 0, 1), (0, 0, 0.5), (0, 0.5, 0))
    assert ballot.ties == ((0, 0, 0), (0, 0, 1), (0, 1, 0))
    assert [arrow.truth for arrow in ballot.arrows] == ["undecidable"] * 5  # all are right
    first, second = ((line.judge, line.reason, line.line) for line in ballot.unread)
    assert first == (TurnId(1, 2), "not_a_comparison", "K7 ? M4")
    assert second == (TurnId(2, 2), "unknown_handle", "Z9 > Q2")


def test_a_vote_that_does_not_count_is_in_no_cycle():
    votes = ["Q2 > M4\nM4 < Q2", "M4 > K7", "K7 > Q2"]
    record = make([[solved(4), solved(5), solved(6)], [judged(vote) for vote in votes]])
    [graph] = vote_graphs(record)
    found = [(arrow.dropped, arrow.in_cycle) for arrow in graph.arrows]
    assert found == [("", True), ("duplicate", False), ("", True), ("", True)]


def test_a_tie_is_not_right_and_own_work_does_not_count():
    votes = ["Q2 = M4", "K7 > M4", "K7 > Q2"]
    record = make([[solved(4), solved(4), solved(5)], [judged(vote) for vote in votes]])
    [graph] = vote_graphs(record)
    assert [arrow.truth for arrow in graph.arrows] == ["wrong", "right", "undecidable"]
    assert (graph.condorcet, graph.edges) == (A, ((A, B), (A, C)))
    own = make([[solved(4), solved(4), solved(5)], [judged("K7 > M4"), judged(""), judged("")]], own=True)
    assert [arrow.counts for arrow in vote_graphs(own)[0].arrows] == [True]
    refused = replace(own.debate, protocol=own.debate.protocol.model_copy(update={"judge_own": False}))
    assert [arrow.dropped for arrow in vote_graphs(replace(own, debate=refused))[0].arrows] == ["own_work"]


def test_without_votes_there_is_no_graph_but_for_lines_that_are_none():
    assert vote_graphs(make([[solved(4)] * 3])) == ()
    [graph] = vote_graphs(make([[solved(4)] * 3, [judged("K7 ? M4"), judged(""), judged("")]]))
    assert (graph.arrows, graph.edges, graph.matrix[0], len(graph.unread)) == ((), (), (0, 0, 0), 1)


def test_votes_on_what_was_not_graded_are_undecidable(circle):
    graphs = vote_graphs(replace(circle, correct=None))
    assert {arrow.truth for graph in graphs for arrow in graph.arrows} == {"undecidable"}


SIDES = st.builds(TurnId, st.integers(0, 2), st.integers(0, 2))
VOTES = st.lists(st.builds(Vote, SIDES, SIDES, SIDES, st.sampled_from(["left", "right", "tie"])), max_size=20)
BASE = make([[solved(4)] * 3, [solved(4, "K7 > Q2")] * 3, [judged("K7 ? M4")] * 3])


@pytest.mark.parametrize("own", [False, True])
@given(VOTES)
def test_what_counts_is_what_the_reward_rules_say(own, votes):
    """Whatever votes a transcript holds: those that count, the dropped by reason, majorities and cycles."""
    protocol = BASE.debate.protocol.model_copy(update={"judge_own": own})
    record = replace(BASE, debate=replace(BASE.debate, votes=tuple(votes), protocol=protocol))
    graphs = vote_graphs(record)
    arrows = [arrow for graph in graphs for arrow in graph.arrows]
    valid, dropped = split_votes(ballot_box(record.debate))
    counted = sorted((a.judge, a.left, a.right) for a in arrows if a.counts)
    assert counted == sorted((vote.judge, vote.left, vote.right) for vote in valid)
    reasons = [a.dropped for a in arrows if a.dropped] + [u.reason for g in graphs for u in g.unread]
    assert {reason: reasons.count(reason) for reason in reasons} == dict(+dropped)
    assert len(arrows) == len(votes)

    edges = {edge for graph in graphs for edge in graph.edges}
    assert sorted(edges) == list(majorities(valid))
    for graph in graphs:
        own_edges = {pair for pair in edges if max(side[1] for side in pair) == graph.round}
        assert bool(graph.cycles) == bool(cycles(own_edges))
        assert (graph.condorcet is not None) == (condorcet_winner(own_edges, graph.round, 3) is not None)
        assert sum(map(sum, graph.matrix)) == pytest.approx(sum(arrow.counts for arrow in graph.arrows))
        assert all(arrow.counts for arrow in graph.arrows if arrow.in_cycle)
    facts = facts_of(record).facts
    assert facts.votes == sum(arrow.counts for arrow in arrows)
    assert facts.ties == sum(arrow.counts and arrow.tie for arrow in arrows)
