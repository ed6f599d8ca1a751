import dataclasses

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from debate import DebateConfig, Problem, run_debates
from debate.policies.scripted import Answers, scripted_debaters
from debate_rl.inference.wrapped import SeatedPolicy
from learner import AdvantageConfig, make_rows, transitions_of, turn_advantages
from rewards import RewardConfig, score_debate

PROBLEMS = [Problem("p", "2 + 2?", "4"), Problem("q", "3 + 3?", "6")]
TRUTH = {"p": Answers("4", ("5",)), "q": Answers("6", ("7", "8"))}
GROUPS = [0, 0, 0, 1, 1, 1]
SCHEME = RewardConfig(truth_weight=0.5)


@st.composite
def seated(draw):
    """Return a protocol with any seating in which somebody learns, and a seed."""
    kinds = draw(st.lists(st.sampled_from(("learning", "frozen", "remote")), min_size=2, max_size=4))
    seats = tuple(draw(st.permutations(["learning", *kinds[1:]])))
    critique = draw(st.booleans())
    config = DebateConfig(
        protocol="critique" if critique else "debate",
        num_agents=len(seats),
        num_rounds=3 if critique else draw(st.integers(1, 2)),
        seats=seats,
    )
    return config, draw(st.integers(0, 99)), draw(st.sampled_from(("group", "rae")))


@settings(deadline=None, max_examples=15)
@given(seated())
def test_only_seats_that_learn_leave_rows_and_move_baselines(drawn):
    config, seed, baseline = drawn
    own, other = (scripted_debaters(TRUTH, tokens=tokens) for tokens in (True, False))
    debates = run_debates(
        [one for one in PROBLEMS for _ in range(3)], SeatedPolicy(own, other), config, seed=seed
    )
    gold = {"p": "4", "q": "6"}
    rewards = [score_debate(debate, graded(debate, gold), SCHEME) for debate in debates]
    streams = {name: {"baseline": baseline} for name in ("peer", "truth", "judge")}
    advantages = AdvantageConfig.model_validate(streams)
    transitions = transitions_of(debates, rewards, GROUPS)
    means: dict[str, float] = {}
    found = turn_advantages(transitions, SCHEME, advantages, means).turns
    rows = make_rows(transitions, found, advantages)  # a remote turn has no tokens: it would raise
    assert {config.seat(row.turn.agent) for row in rows} <= {"learning"}
    assert {one.turn.id.agent for one in transitions} == {
        a for a in range(config.num_agents) if config.learns(a)
    }

    plain = config.model_copy(update={"seats": ()})
    whole = transitions_of([replace(debate, protocol=plain) for debate in debates], rewards, GROUPS)
    others: dict[str, float] = {}
    kept = [one for one in whole if config.learns(one.turn.id.agent)]
    # those of learning seats alone know what the other seats solved, for baselines by context
    assert kept == [dataclasses.replace(one, others=()) for one in transitions]
    assert turn_advantages(kept, SCHEME, advantages, others).turns == found
    assert others == means


def graded(debate, gold):
    table = [[None] * debate.protocol.num_rounds for _ in debate.personas]
    for turn in debate.turns:
        if not turn.ballot:
            table[turn.id.agent][turn.id.round] = turn.parsed.answer == gold[debate.problem.id]
    return tuple(map(tuple, table))
