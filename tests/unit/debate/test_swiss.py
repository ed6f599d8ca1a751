import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from debate import DebateConfig, Problem
from debate.concurrency import run_async
from debate.hold import hold_debate
from debate.policies.scripted import ScriptedPolicy
from debate.prompting.rebuilding import held_debate
from debate.swiss import next_pairs
from debate.types import TurnId
from rewards import RewardConfig, ballot_box, score_debate, valid_votes, voted_winner
from rewards.votes import due_pairs

PROBLEM = Problem("p", "What is 2 + 2?", answer="4", kind="number")
ENTRY = re.compile(r'<work agent="(\w+)" round="\d+">\n<solution>.*?boxed\{(.*?)\}', re.DOTALL)


def held(answers, worth=None, *, say=None, seed=0, rounds=1, **config):
    """Return a debate whose agents give these answers and prefer what is worth more; equal answers tie."""
    worth = worth or {}

    def write(request):
        shown = ENTRY.findall(request.messages[-1].content)
        solution = f"<solution>\\boxed{{{answers[request.turn.agent]}}}</solution>"
        if request.turn.round < rounds:
            targets = "".join(f"<target>{label}</target>no" for label, _ in shown)
            criticises = config.get("protocol") == "critique" and request.turn.round % 2
            return f"<evaluation>{targets}</evaluation>" if criticises else solution
        if say is not None:
            return say
        (a, left), (b, right) = shown
        x, y = worth.get(left, 0), worth.get(right, 0)
        sign = ">" if x > y else "<" if x < y else "="
        return f"<evaluation>-</evaluation><comparison>\n{a} {sign} {b}: so\n</comparison>"

    protocol = DebateConfig(num_agents=len(answers), num_rounds=rounds, ballot="swiss", **config)
    policy = ScriptedPolicy(write, tokens=True)
    return run_async(hold_debate(PROBLEM, policy, protocol, seed=seed)), policy


def ballots(debate):
    return [turn for turn in debate.turns if turn.ballot]


def winning_answer(debate):
    winner = voted_winner(score_debate(debate, None, RewardConfig()).peer, seed=debate.seed)
    return debate.turn(winner).parsed.answer


@pytest.mark.parametrize("seed", range(4))
def test_stages_by_hand(seed):
    """Judges 0 and 1 have voted on two pairs, and nobody has compared what agent 0 wrote."""
    answers, said = [0, 1, 2, 3, 4], {0: ((1, 2), 1), 1: ((3, 4), 1)}
    # Results by agent: none, +1, -1, +1, -1. Of the judges 2, 3 and 4 one is asked, the one whose work leads.
    assert next_pairs(answers, said, seed=seed) == {3: (0, 1)}
    said[3] = ((0, 1), 1)
    # Means: +1, 0, -1, +1, -1. The leaders 0 and 3 meet before one of the judges 2 and 4.
    [(judge, pair)] = next_pairs(answers, said, seed=seed).items()
    assert (judge in (2, 4), set(pair)) == (True, {0, 3})
    said[judge] = (pair, 1 if pair[0] == 0 else -1)
    # Means: +1, 0, -1, 0, -1. The last judge compares the leader with 1 or 3, and then all have voted.
    [(last, pair)] = next_pairs(answers, said, seed=seed).items()
    assert ({judge, last}, pair[0], pair[1] in (1, 3)) == ({2, 4}, 0, True)
    assert next_pairs(answers, said | {last: (pair, 0)}, seed=seed) == {}


@settings(max_examples=60)
@given(st.lists(st.integers(0, 3), min_size=3, max_size=12), st.integers(0, 2**32), st.randoms())
def test_every_judge_compares_one_pair_of_others_and_every_solution_is_compared(answers, seed, rng):
    said = {}
    while asked := next_pairs(answers, said, seed=seed):
        assert asked == next_pairs(answers, said, seed=seed)
        assert not said.keys() & asked.keys()
        once = [agent for pair in asked.values() for agent in pair]
        assert len(once) == len(set(once))
        said |= {judge: (pair, rng.choice((-1, 0, 1))) for judge, pair in asked.items()}
    assert said.keys() == set(range(len(answers)))
    assert all(judge not in pair for judge, (pair, _) in said.items())
    compared = Counter(agent for pair, _ in said.values() for agent in pair)
    assert compared.keys() == set(range(len(answers)))


@settings(max_examples=60)
@given(st.lists(st.integers(0, 3), min_size=3, max_size=12), st.integers(0, 2**32))
def test_the_first_stage_compares_all_alike_and_different_answers_first(answers, seed):
    first = next_pairs(answers, {}, seed=seed)
    compared = [agent for pair in first.values() for agent in pair]
    assert set(Counter(compared).values()) == {1}
    for judge, (one, other) in first.items():
        if answers[one] == answers[other]:  # only where no other answer was left for it
            taken = [agent for pair in list(first.values())[: list(first).index(judge)] for agent in pair]
            left = set(range(len(answers))) - {judge, *taken}
            assert {answers[agent] for agent in left} == {answers[one]}


@settings(max_examples=40)
@given(st.integers(4, 10), st.integers(0, 2**32))
def test_a_judge_that_never_errs_finds_the_one_right_solution(size, seed):
    right = seed % size
    results: dict[int, list[int]] = {agent: [] for agent in range(size)}
    said = {}
    while asked := next_pairs([int(agent == right) for agent in range(size)], said, seed=seed):
        for judge, pair in asked.items():
            said[judge] = (pair, (pair[0] == right) - (pair[1] == right))
            for agent, sign in zip(pair, (1, -1), strict=True):
                results[agent].append(sign * said[judge][1])
    assert set(results[right]) == {1}  # every other solution lost to it or tied with its like
    assert all(1 not in results[agent] for agent in results if agent != right)


@pytest.mark.parametrize("seed", range(3))
def test_a_debate_asks_each_judge_about_one_pair_and_shows_it_nothing_else(seed):
    debate, policy = held(["5", "5", "6", "4", "7", "8", "5"], {"4": 1}, seed=seed)
    assert winning_answer(debate) == "4"
    assert [turn.id for turn in ballots(debate)] == [TurnId(agent, 1) for agent in range(7)]
    assert len(policy.requests) == 14
    for turn in ballots(debate):
        assert len(turn.compared) == 2
        assert turn.shown == turn.compared
        assert turn.id.agent not in {one.agent for one in turn.compared}


def test_due_pairs_counters_and_format_know_the_one_pair():
    debate, _ = held(["5", "6", "4", "7", "8"], {"4": 1})
    box = ballot_box(debate)
    pairs = due_pairs(box, valid_votes(box))
    assert len(pairs) == 5
    assert all(pair.verdict is not None for pair in pairs)
    assert not any(turn.parsed.failures for turn in ballots(debate))
    silent, _ = held(["5", "6", "4", "7", "8"], say="<evaluation>-</evaluation>")
    box = ballot_box(silent)
    assert [pair.verdict for pair in due_pairs(box, valid_votes(box))] == [None] * 5
    found = score_debate(silent, None, RewardConfig(format_penalty=-0.5))
    assert found.format == ((0.0, -0.5),) * 5
    assert (found.count("judge/due"), found.count("format/penalties")) == (5, 5)


@pytest.mark.parametrize(
    "config", [{"rounds": 1}, {"rounds": 2, "history_rounds": -1}, {"rounds": 3, "protocol": "critique"}]
)
def test_prompts_are_made_again_from_what_is_stored(config):
    debate, policy = held(["5", "6", "4", "7", "4"], say="<evaluation>-</evaluation>", **config)
    again = held_debate(debate)
    for request in policy.requests:
        assert again.prompt(request.turn).messages == request.messages


def test_judges_are_asked_again_about_their_own_pair_in_the_other_order():
    debate, policy = held(["5", "6", "4", "7", "8"], {"4": 1}, ask_swapped=True)
    first = {turn.id: turn.compared for turn in ballots(debate)}
    assert {one.turn: one.compared[::-1] for one in debate.swapped} == first
    assert all(one.votes for one in debate.swapped)
    assert len(policy.requests) == 15


@pytest.mark.parametrize(
    ("config", "line"),
    [
        ({"num_agents": 2}, 'num_agents: 2, but debate.ballot = "swiss" needs 3 or more'),
        (
            {"conversation": True, "history_rounds": -1},
            'conversation: True, but debate.ballot = "swiss" needs false',
        ),
        ({"by_level": ({"level": 1, "num_agents": 2},)}, r"by_level.0 \(level '1'\): num_agents: 2"),
    ],
)
def test_what_such_ballots_cannot_be_held_with_is_refused(config, line):
    with pytest.raises(ValidationError, match=line):
        DebateConfig.model_validate({"num_agents": 5, "ballot": "swiss", **config})
