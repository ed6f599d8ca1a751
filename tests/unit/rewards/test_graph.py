from debate.types import TurnId, Vote
from rewards.graph import (
    Results,
    condorcet_winner,
    cycles,
    last_voted_round,
    majorities,
    results_by_opponent,
    win_matrix,
)

A, B, C, D, E, F = (TurnId(agent, 0) for agent in range(6))


def cast(*lines: tuple[TurnId, TurnId, str]) -> list[Vote]:
    """One vote by one new judge for each line."""
    return [Vote(TurnId(10 + n, 1), left, right, outcome) for n, (left, right, outcome) in enumerate(lines)]


# A beats B 2 to 1, B and C are 1 to 1 with a tie, C beats A once.
MIXED = cast(
    (A, B, "left"),
    (B, A, "right"),
    (A, B, "right"),
    (B, C, "left"),
    (C, B, "left"),
    (B, C, "tie"),
    (A, C, "right"),
)


def test_results_stand_once_for_each_side():
    assert results_by_opponent(MIXED) == {
        A: {B: Results(2, 1, 0), C: Results(0, 1, 0)},
        B: {A: Results(1, 2, 0), C: Results(1, 1, 1)},
        C: {B: Results(1, 1, 1), A: Results(1, 0, 0)},
    }
    assert results_by_opponent([]) == {}


def test_the_matrix_has_half_a_win_each_way_for_a_tie():
    assert win_matrix((A, B, C, D), MIXED) == ((0, 2, 0, 0), (1, 0, 1.5, 0), (1, 1.5, 0, 0), (0, 0, 0, 0))
    assert win_matrix((C, A), MIXED) == ((0, 1), (0, 0))


def test_a_majority_is_strict():
    assert majorities(MIXED) == ((A, B), (C, A))
    assert majorities(cast((A, B, "tie"), (B, C, "left"), (C, B, "left"))) == ()


def test_cycles_are_components_of_three_or_more():
    ring = ((A, B), (B, C), (C, A))
    assert cycles(ring) == ((A, B, C),)
    assert cycles((*ring, (A, D), (E, A))) == ((A, B, C),)  # beaten by or beating a cycle is not in it
    assert cycles((*ring, (C, D), (D, A))) == ((A, B, C, D),)  # two that share an edge are one
    other = ((D, E), (E, F), (F, D))
    assert cycles((*other, (C, D), *ring)) == ((A, B, C), (D, E, F))
    assert cycles(((A, B), (B, C), (A, C))) == cycles(()) == ()


def test_a_condorcet_winner_beats_all_others_of_its_round():
    later = [TurnId(agent, 1) for agent in range(3)]
    edges = ((A, B), (A, C), (later[1], later[0]))
    assert condorcet_winner(edges, 0, 3) == A
    assert condorcet_winner(edges, 0, 4) is None  # D was not beaten
    assert condorcet_winner(edges, 1, 3) is None
    assert condorcet_winner(((A, B), (B, C), (C, A)), 0, 3) is None
    assert condorcet_winner((), 0, 1) is None


def test_the_last_voted_round_is_that_of_the_newest_side():
    assert last_voted_round(MIXED) == 0
    assert last_voted_round([Vote(TurnId(2, 2), A, TurnId(1, 1), "tie")]) == 1
    assert last_voted_round([]) is None
