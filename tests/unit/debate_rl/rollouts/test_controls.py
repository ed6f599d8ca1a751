from dataclasses import replace

import pytest

from debate import Completion, Debate, DebateConfig, Problem, Vote
from debate.parsing import parse_turn
from debate.types import Span, Swapped, Turn, TurnId
from debate_rl.rollouts.controls import controlled, flip_votes, share_errors, shuffle_votes
from envs.answers.keys import plain_key
from rewards.votes import verdict

A, B, C = TurnId(0, 0), TurnId(1, 0), TurnId(2, 0)


def debate_of(*votes):
    return Debate(Problem("p", "?"), (), (), votes, seed=1, policy_version=0, protocol=DebateConfig())


def vote(judge, left, right, outcome="left"):
    return Vote(TurnId(judge, 1), left, right, outcome, Span(0, 3))


def test_everything_but_outcomes_stays():
    debate = debate_of(vote(0, B, C), vote(1, A, C, "right"), vote(2, A, B, "tie"))
    flipped = flip_votes(debate, seed=3)
    assert replace(flipped, votes=()) == replace(debate, votes=())
    before, after = ([replace(v, outcome="left") for v in one.votes] for one in (debate, flipped))
    assert before == after
    assert flipped.votes[2] == debate.votes[2]  # a tie stays a tie
    assert {v.outcome for v in flipped.votes[:2]} <= {"left", "right"}


def test_the_coin_is_fair_whatever_was_voted_and_seeded():
    debate = debate_of(vote(0, B, C, "left"), vote(1, A, C, "right"))
    drawn = [[v.outcome for v in flip_votes(debate, seed=seed).votes] for seed in range(2000)]
    for place in (0, 1):
        share = sum(outcomes[place] == "left" for outcomes in drawn) / 2000
        assert share == pytest.approx(0.5, abs=0.04)  # 3.6 standard errors
    together = sum(outcomes[0] == outcomes[1] for outcomes in drawn) / 2000
    assert together == pytest.approx(0.5, abs=0.04)
    assert drawn[7] == [v.outcome for v in flip_votes(debate, seed=7).votes]


@pytest.mark.parametrize("seed", range(6))
def test_repeats_stay_repeats_and_contradictions_contradictions(seed):
    repeated = vote(0, B, C), vote(0, C, B, "right")  # twice the same: B is better
    first, second = flip_votes(debate_of(*repeated), seed=seed).votes
    assert (first.outcome == "left") == (second.outcome == "right")
    contradictory = vote(0, B, C, "left"), vote(0, B, C, "right")
    first, second = flip_votes(debate_of(*contradictory), seed=seed).votes
    assert first.outcome != second.outcome


@pytest.mark.parametrize("control", ["random_judge", "flipped_votes", "shared_errors", "own_answer"])
def test_second_ballots_are_replaced_as_the_first_ones_so_that_judges_stay_as_consistent(control):
    texts = tuple(turn(seat, 0, answer) for seat, answer in enumerate((4, 5, 6)))
    same, other = vote(0, B, C), vote(2, A, B)
    casts = (vote(0, C, B, "right"), vote(2, B, A))
    again = tuple(Swapped(cast.judge, (), texts[0].completion, (cast,)) for cast in casts)
    held = replace(debate_of(same, other), turns=texts, swapped=again)
    for seed in range(8):
        how = {"key": plain_key, "seed": seed, "run_seed": seed, "share": 0.5}
        [now] = controlled([replace(held, seed=seed)], control, **how)
        if control == "own_answer":  # A judges by 4 and C by 6: nothing on the first pair, nor on the second
            assert {cast.outcome for one in now.swapped for cast in one.votes} == {"tie"}
            continue
        said, said_again = ([verdict(cast) for cast in votes] for votes in (now.votes, votes_again(now)))
        assert said[0] == said_again[0]
        assert said[1] == -said_again[1]


def votes_again(debate):
    return [cast for one in debate.swapped for cast in one.votes]


def turn(seat, round_, answer=None, compared=()):
    text = "" if answer is None else rf"<solution>\boxed{{{answer}}}</solution>"
    parsed = parse_turn(text, handles=("K7", "Q2", "M4"), own="K7", due=False)
    said = Completion((), (), (), text, "eos", 0)
    return Turn(TurnId(seat, round_), "K7", (), said, parsed, compared=compared)


def judged(first_wins, *, by="left", seed=0):
    """A debate with one vote: whether its winner was shown first, and on which side it is written."""
    winner, loser = (B, C) if first_wins else (C, B)
    written = vote(0, winner, loser) if by == "left" else vote(0, loser, winner, "right")
    turns = (turn(0, 0), turn(0, 1, compared=(B, C)))
    return replace(debate_of(written), turns=turns, seed=seed)


def first_wins(debate):
    (cast,) = debate.votes
    return (cast.left if cast.outcome == "left" else cast.right) == B


def test_shuffling_keeps_the_bias_for_a_position_and_forgets_the_rest():
    debates = [judged(n < 3, by="left" if n % 2 else "right") for n in range(10)]
    held = [[first_wins(d) for d in shuffle_votes(debates, seed=seed)] for seed in range(600)]
    assert all(sum(row) == 3 for row in held)  # 3 of 10 still prefer what was shown first
    for place in (0, 9):
        assert sum(row[place] for row in held) / 600 == pytest.approx(0.3, abs=0.04)
    dealt = shuffle_votes(debates, seed=5)
    assert dealt == shuffle_votes(debates, seed=5)
    for before, after in zip(debates, dealt, strict=True):
        assert replace(after, votes=()) == replace(before, votes=())
        assert replace(after.votes[0], outcome="left") == replace(before.votes[0], outcome="left")


def test_controls_by_name():
    debates = [judged(True, seed=n) for n in range(40)]
    assert controlled(debates, "none", key=plain_key, seed=1) == debates
    assert controlled(debates, "shuffled_votes", key=plain_key, seed=1) == debates  # all prefer the first
    coins = [first_wins(d) for d in controlled(debates, "random_judge", key=plain_key, seed=1)]
    assert 8 < sum(coins) < 32


@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_the_share_of_flipped_votes_is_that_of_the_control(share):
    debates = [replace(debate_of(vote(0, B, C), vote(1, A, C)), seed=seed) for seed in range(1000)]
    flipped = controlled(debates, "flipped_votes", key=plain_key, seed=0, share=share)
    turned = [v.outcome == "right" for debate in flipped for v in debate.votes]
    assert sum(turned) / 2000 == pytest.approx(share, abs=0.04)


def test_all_votes_between_two_answers_err_alike_whoever_judges_and_in_whatever_step():
    def held(problem, seed, *answers):
        turns = tuple(turn(seat, 0, answer) for seat, answer in enumerate(answers))
        votes = vote(0, B, C), vote(1, C, A, "right"), vote(2, A, B)
        return replace(debate_of(*votes), problem=Problem(problem, "?"), turns=turns, seed=seed)

    names = [f"p{n}" for n in range(300)]
    # B and C answer the same, so the first vote stays; the others are on 4 and 5, A being preferred.
    debates = [held(name, seed, 4, 5, 5) for name in names for seed in (1, 2)]
    erring = controlled(debates, "shared_errors", key=plain_key, seed=0, run_seed=9, share=0.3)
    said = [[v.outcome for v in debate.votes] for debate in erring]
    assert {tuple(outcomes) for outcomes in said} == {("left", "right", "left"), ("left", "left", "right")}
    assert said[::2] == said[1::2]
    assert sum(outcomes[1] == "left" for outcomes in said) / 600 == pytest.approx(0.3, abs=0.05)
    other = controlled(debates, "shared_errors", key=plain_key, seed=1, run_seed=9, share=0.3)
    assert other == erring
    assert share_errors(debates[0], plain_key, seed=9, share=0.0) == debates[0]
