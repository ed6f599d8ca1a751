import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from debate.config import DebateConfig
from debate.types import Completion, Criticism, Debate, ParsedTurn, Problem, Span, Turn, TurnId, Vote
from rewards import RewardConfig, score_debate
from rewards.criticism import corrected_turns, criticised, persuasions, score_by_others
from rewards.shaping import shaping_of

PROTOCOL = DebateConfig(protocol="critique", num_agents=4, num_rounds=3)


def held(targets: dict[int, list[int]], votes: list[tuple[int, int, int, int, str]]) -> Debate:
    """A critique of 4: who names whom in round 1, and votes (judge, judge's round, left, right, outcome)."""

    def turn(agent: int, round_: int) -> Turn:
        shown = {1: [0], 2: [0, 1], 3: [2]}.get(round_, [])
        seen = tuple(TurnId(other, number) for number in shown for other in range(4))
        compared = tuple(
            TurnId(other, number) for number in shown[:1] for other in range(4) if other != agent
        )
        named = tuple(Criticism(f"H{target}", Span(0, 1)) for target in targets.get(agent, []))
        parsed = ParsedTurn(criticisms=named) if round_ == 1 else ParsedTurn()
        said, judges = Completion((), (), (), "x", "stop", 0), round_ in (1, 3)
        asked = compared if judges else ()
        return Turn(TurnId(agent, round_), f"H{agent}", seen, said, parsed, asked, ballot=judges)

    turns = tuple(turn(agent, round_) for round_ in range(4) for agent in range(4))
    cast = tuple(Vote(TurnId(j, r), TurnId(a, r - 1), TurnId(b, r - 1), o) for j, r, a, b, o in votes)
    return Debate(Problem("p", "?", "4"), (), turns, cast, 1, 0, PROTOCOL)


FALLS = [
    # before: 1 beats 2 for judges 0 and 3; after: 1 loses to 2 for judge 0, ties with 2 for judge 3
    *[(0, 1, 1, 2, "left"), (3, 1, 1, 2, "left")],
    *[(0, 3, 1, 2, "right"), (3, 3, 1, 2, "tie")],
]


def test_a_critic_earns_the_fall_of_its_target_in_the_votes_of_the_others():
    debate = held({0: [1], 3: [1, 2]}, FALLS)
    named = criticised(debate, debate.votes)
    assert [(tuple(one.critic), tuple(one.solution), one.before, one.after) for one in named] == [
        ((0, 1), (1, 0), 1.0, 0.5),  # by judge 3 alone
        ((3, 1), (1, 0), 1.0, 0.0),  # by judge 0 alone
        ((3, 1), (2, 0), 0.0, 1.0),
    ]
    earned = persuasions(named, None, RewardConfig(persuasion_beta=5.0))
    assert earned == {TurnId(0, 1): 2.5, TurnId(3, 1): 5.0}  # the rise of agent 2 costs nothing
    assert persuasions(named, None, RewardConfig(persuasion_beta=2.0)) == {
        TurnId(0, 1): 1.0,
        TurnId(3, 1): 2.0,
    }


def test_a_critic_that_is_to_help_earns_the_rise_of_its_target_and_pays_for_its_fall():
    debate = held({0: [1], 3: [1, 2]}, FALLS)
    named = criticised(debate, debate.votes)
    helps = RewardConfig(critic="help", persuasion_beta=5.0)
    assert persuasions(named, None, helps) == {
        TurnId(0, 1): -2.5,
        TurnId(3, 1): 5.0 * (0.0 - 1.0 + 1.0 - 0.0),
    }
    wrong = RewardConfig(critic="help", persuasion_beta=5.0, persuasion_targets="wrong")
    table = [[True, None, True], [True, None, False], [False, None, True], [True, None, True]]
    assert persuasions(named, table, wrong) == {TurnId(0, 1): 0.0, TurnId(3, 1): 5.0}  # 1 was right
    streams = score_debate(debate, None, RewardConfig(critic="help", truth_weight=0.0))
    assert streams.persuasion[0] == (None, -2.5, None)


def test_the_own_votes_of_a_critic_move_nothing():
    """The rule that counts them pays a critic that ranks its target first, and last in the verdict."""
    scheming = [(0, 1, 1, 2, "left"), (3, 1, 1, 2, "tie"), (0, 3, 1, 2, "right"), (3, 3, 1, 2, "tie")]
    debate = held({0: [1]}, scheming)
    foil = [score_by_others(debate.votes, TurnId(1, round_), -1) for round_ in (0, 2)]
    assert foil == [0.75, 0.25]
    assert persuasions(criticised(debate, debate.votes), None, RewardConfig()) == {TurnId(0, 1): 0.0}


def test_no_fall_earns_zero_and_no_votes_no_signal():
    rises = [(3, 1, 1, 2, "right"), (3, 3, 1, 2, "left")]
    debate = held({0: [1]}, rises)
    assert persuasions(criticised(debate, debate.votes), None, RewardConfig()) == {TurnId(0, 1): 0.0}
    for silent in ([], [(3, 1, 1, 2, "left")], [(0, 1, 1, 2, "left"), (0, 3, 1, 2, "right")]):
        debate = held({0: [1]}, silent)
        assert persuasions(criticised(debate, debate.votes), None, RewardConfig()) == {}


def test_with_targets_that_must_be_wrong_misleading_earns_nothing():
    debate = held({0: [1], 3: [2]}, [*FALLS, (0, 1, 2, 1, "left")])
    config = RewardConfig(persuasion_targets="wrong")
    named = criticised(debate, debate.votes)
    right = [[True, None, True]] * 4
    wrong = [[False, None, True]] * 4
    missing = [["missing", None, True]] * 4
    assert persuasions(named, right, config)[TurnId(0, 1)] == 0.0
    assert persuasions(named, wrong, config)[TurnId(0, 1)] == 2.5
    assert persuasions(named, missing, config)[TurnId(0, 1)] == 2.5
    assert persuasions(named, [[None] * 3] * 4, config) == {}
    assert persuasions(named, None, config) == {}


def test_targets_count_once_and_only_where_they_were_shown():
    debate = held({0: [1, 1, 0], 3: [9]}, FALLS)
    assert [tuple(one.solution) for one in criticised(debate, debate.votes)] == [(1, 0)]


def test_a_revision_that_the_others_find_better_corrected_itself():
    rises = [(0, 1, 1, 2, "right"), (3, 1, 1, 2, "tie"), (0, 3, 1, 2, "left"), (3, 3, 1, 2, "tie")]
    debate = held({}, rises)
    assert corrected_turns(debate, debate.votes) == {TurnId(1, 2)}  # 1/4 before, 3/4 after; 2 the other way
    parts = shaping_of(debate, RewardConfig(self_correction=0.25))
    assert {turn: part.correction for turn, part in parts.items() if part.correction} == {TurnId(1, 2): 0.25}
    assert [turn.round for turn in parts] == [0] * 4 + [2] * 4


def test_the_streams_of_a_debate_and_what_has_none():
    debate = held({0: [1]}, FALLS)
    correct = [[True, None, False]] * 4
    rewards = score_debate(debate, correct, RewardConfig(self_correction=0.5))
    assert rewards.persuasion == ((None, 2.5, None), *[(None, None, None)] * 3)
    assert [row[1] for row in rewards.truth] == [None] * 4
    assert [row[1] for row in rewards.peer] == [None] * 4
    assert rewards.judge[0] == (None, None, None, None)  # all right, then all wrong: nothing to decide
    # no vote where one was due, and none due in a revision
    assert rewards.format[1] == (0.0, -0.5, 0.0, -0.5)
    assert rewards.count("grades/ungraded") == 0
    assert rewards.count("shaping/corrected") == 1
    plain = Debate(debate.problem, (), (), (), 1, 0, DebateConfig(num_agents=4, num_rounds=3))
    assert score_debate(plain, None, RewardConfig()).persuasion is UNSET


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.sampled_from([1, 3]),
            st.permutations(range(4)),
            st.sampled_from(["left", "right", "tie"]),
        ),
        max_size=40,
    ),
    st.dictionaries(st.integers(0, 3), st.lists(st.integers(0, 3), max_size=4)),
    st.permutations(range(4)),
)
def test_relabelled_agents_earn_what_they_earned(drawn, targets, names):
    """Persuasion is never below 0, at most beta for each target, and follows the agents."""
    votes = [(j, r, order[0], order[1], o) for j, r, order, o in drawn]

    def earned(rename: list[int]) -> dict[int, float]:
        cast = [(rename[j], r, rename[a], rename[b], o) for j, r, a, b, o in votes]
        debate = held({rename[a]: [rename[t] for t in ts] for a, ts in targets.items()}, cast)
        stream = score_debate(debate, None, RewardConfig(truth_weight=0.5)).persuasion
        assert stream is not UNSET
        return {agent: row[1] for agent, row in enumerate(stream)}

    before, after = earned(list(range(4))), earned(list(names))
    assert {names[agent]: value for agent, value in before.items()} == pytest.approx(after)
    for agent, value in before.items():
        others = set(targets.get(agent, [])) - {agent}
        assert value is None or 0 <= value <= 5.0 * len(others)
