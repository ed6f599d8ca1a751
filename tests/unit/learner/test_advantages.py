from dataclasses import replace
from itertools import product
from math import prod, sqrt

import numpy as np
import pytest
from msgspec.structs import replace as msgspec_replace

from debate.personas import PERSONAS
from debate.types import TurnId
from learner import AdvantageConfig, Transition, TurnAdvantage, stream_advantages, turn_advantages
from learner.advantages import StreamSettings
from learner.advantages.baselines import returns, stream_parts
from rewards import RewardConfig

from .conftest import transition_of

PLAIN = StreamSettings(baseline="none", scale="none")


def approx(values):
    return [None if value is None else pytest.approx(value) for value in values]


# One stream ---------------------------------------------------------------------------------------


STD = sqrt(3) / 4 + 1e-4  # of 1, 0, 0, 0, by the population


@pytest.mark.parametrize(
    ("baseline", "scale", "groups", "values", "expected"),
    [
        ("group", "group", "aaaa", [1.0, 0.0, 0.0, 0.0], [0.75 / STD, *[-0.25 / STD] * 3]),
        ("group", "none", "aaa", [1.0, None, 0.0], [0.5, None, -0.5]),
        ("group", "none", "aabb", [1.0, 3.0, 10.0, 0.0], [-1.0, 1.0, 5.0, -5.0]),
        ("rloo", "none", "aaa", [1.0, 0.0, 0.5], [0.75, -0.75, 0.0]),
        ("rloo", "group", "aa", [1.0, 0.0], [1 / 0.5001, -1 / 0.5001]),
        ("none", "none", "abb", [0.5, 1.0, 1.0], [0.5, 1.0, 1.0]),  # even alone or equal
        ("none", "group", "aa", [1.0, 1.0], [None, None]),
        # the std sqrt(2) of all values: group b has no contrast but counts
        ("group", "batch", "aabb", [4.0, 0.0, 2.0, 2.0], [2 / sqrt(2), -2 / sqrt(2), None, None]),
        ("group", "batch", "aa", [0.02, 0.0], [0.01 / 0.1, -0.01 / 0.1]),  # the least divisor
    ],
)
def test_advantages_of_a_stream_by_hand(baseline, scale, groups, values, expected):
    assert stream_advantages(values, groups, baseline=baseline, scale=scale) == approx(expected)


@pytest.mark.parametrize("baseline", ["group", "rloo"])
@pytest.mark.parametrize("scale", ["group", "batch", "none"])
def test_a_group_without_contrast_gives_no_signal(baseline, scale):
    values = [0.3, 0.3, 0.3, 1.0, None, None]
    assert stream_advantages(values, "aaabcc", baseline=baseline, scale=scale) == [None] * 6


def test_rae_reads_the_mean_before_it_takes_the_step_in():
    ema = {"x": 0.5}
    advantages = stream_advantages([1.0, None, 0.0, 0.5, 1.0], "xxxxy", baseline="rae", scale="none", ema=ema)
    # x: less 0.5, whatever the order of the values; y has no step before
    assert advantages == approx([0.5, None, -0.5, 0.0, 1.0])
    assert ema == {"x": pytest.approx(0.95 * 0.5 + 0.05 * 0.5), "y": 1.0}


def test_rae_remembers_steps_and_not_the_last_few_values_of_one():
    """A step of 100 values, the last 20 of them 0, counts by its mean of 0.8."""
    ema = {"x": 0.4}
    stream_advantages([1.0] * 80 + [0.0] * 20, "x" * 100, baseline="rae", scale="none", ema=ema)
    assert ema == {"x": pytest.approx(0.95 * 0.4 + 0.05 * 0.8)}


def test_rae_decay_is_an_option_and_no_ema_starts_at_zero():
    assert stream_advantages([1.0, 1.0], "xx", baseline="rae", scale="none") == [1.0, 1.0]
    ema = {"x": 1.0}
    stream_advantages([0.0], "x", baseline="rae", scale="none", ema=ema, decay=0.5)
    assert ema == {"x": 0.5}


def test_unknown_rules_and_lengths_are_refused():
    with pytest.raises(ValueError, match="baseline must be group, rloo, rae or none, got 'mean'"):
        stream_advantages([0.0, 1.0], "aa", baseline="mean", scale="none")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="scale must be group, batch or none, got 'std'"):
        stream_advantages([0.0, 1.0], "aa", baseline="none", scale="std")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="shorter"):
        stream_advantages([0.0, 1.0], "a", baseline="none", scale="none")


# Turns --------------------------------------------------------------------------------------------


def transition(agent: int, round_: int, *, due: bool = False, **more: float | None) -> Transition:
    made, compared = transition_of(agent, round_, **more), (TurnId(1, 0), TurnId(2, 0)) if due else ()
    return replace(made, turn=msgspec_replace(made.turn, shown=compared, compared=compared))


def turns_of(groups: list[list[Transition]]) -> list[Transition]:
    """The turns of a step with the numbers of their groups."""
    return [replace(one, group=number) for number, group in enumerate(groups) for one in group]


def parts_of(
    groups, *, config: AdvantageConfig | None = None, ema: dict[str, float] | None = None, **rewards
):
    return turn_advantages(
        turns_of(groups), RewardConfig(**rewards), config or AdvantageConfig(), {} if ema is None else ema
    ).turns


def test_peer_and_truth_are_centred_apart_and_then_mixed():
    groups = [[transition(0, 0, peer=0.5, truth=1.0), transition(1, 0, peer=-0.5, truth=0.0)]]
    # peer as it is; truth (1 - 0.5) / (0.5 + 1e-4)
    truth = 0.5 / 0.5001
    assert [part.generator for part in parts_of(groups, truth_weight=0.25)] == approx(
        [0.75 * 0.5 + 0.25 * truth, 0.75 * -0.5 - 0.25 * truth]
    )


def test_a_missing_part_counts_as_zero_without_reweighting():
    groups = [[transition(0, 0, peer=0.8), transition(1, 0, truth=1.0), transition(2, 0, truth=0.0)]]
    truth = 0.5 / 0.5001
    assert [part.generator for part in parts_of(groups)] == approx([0.4, 0.5 * truth, -0.5 * truth])


def test_a_part_of_weight_zero_is_missing():
    groups = [
        [transition(0, 0, peer=0.8), transition(1, 0, peer=0.2, truth=1.0), transition(2, 0, truth=0.0)]
    ]
    parts = parts_of(groups, truth_weight=1.0)
    assert parts[0] is None
    assert parts[1].generator == pytest.approx(0.5 / 0.5001)


def test_rewards_are_mixed_before_the_baseline_and_advantages_after_it():
    """Mixed rewards are 0.75 and -0.05, their mean 0.35."""
    groups = [[transition(0, 0, peer=0.5, truth=1.0), transition(1, 0, peer=-0.1, truth=0.0)]]
    config = AdvantageConfig(mixed=StreamSettings(scale="none"))
    parts = parts_of(groups, config=config, mix="rewards")
    assert [part.generator for part in parts] == approx([0.4, -0.4])
    assert parts_of(groups, mix="rewards")[0].generator == pytest.approx(0.4 / 0.4001)
    after = parts_of(groups, mix="advantages")[0].generator
    assert after == pytest.approx(0.5 * 0.5 + 0.5 * 0.5 / 0.5001)


def test_groups_are_problem_and_round():
    groups = [
        [transition(0, 0, truth=1.0), transition(1, 0, truth=0.0), transition(0, 1, truth=1.0)],
        [transition(0, 0, truth=1.0), transition(1, 0, truth=1.0)],
        [transition(0, 0, truth=0.0)],
    ]
    parts = parts_of(groups)
    assert [part is None for part in parts] == [False, False, *[True] * 4]


def test_the_key_persona_splits_a_round():
    groups = [[transition(0, 0, truth=1.0), transition(0, 0, truth=0.0), transition(1, 0, truth=1.0)]]
    config = AdvantageConfig(truth=StreamSettings(scale="none", key="persona"))
    parts = parts_of(groups, config=config, truth_weight=1.0)
    assert [part and part.generator for part in parts] == [0.5, -0.5, None]


def test_the_key_debate_compares_the_agents_of_one_debate():
    groups = [
        [
            *(transition(agent, 1, debate=0, truth=truth) for agent, truth in enumerate([1.0, 1.0, 0.0])),
            *(transition(agent, 1, debate=1, truth=truth) for agent, truth in enumerate([0.0, 0.0, 0.0])),
        ]
    ]
    config = AdvantageConfig(truth=StreamSettings(scale="none", key="debate"))
    parts = parts_of(groups, config=config, truth_weight=1.0)
    assert [part and part.generator for part in parts] == approx([1 / 3, 1 / 3, -2 / 3, None, None, None])


def test_personas_of_other_temperatures_have_a_part_of_the_baseline_unless_a_key_is_named():
    """Two problems of two debates: the cold persona is right in 3 of 4, the hot one in 1 of 4."""

    def truth(*, hot: float, **own: str):
        values = [[1.0, 1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0]]  # cold, hot, cold, hot
        of = [[transition(n % 2, 0, debate=n // 2, truth=one) for n, one in enumerate(v)] for v in values]
        turns = [
            replace(one, persona=msgspec_replace(one.persona, temperature=hot if one.turn.id.agent else 1.0))
            for one in turns_of(of)
        ]
        config = AdvantageConfig(truth=StreamSettings(scale="none", **own))
        found = turn_advantages(turns, RewardConfig(truth_weight=1.0), config, {})
        return [part and part.generator for part in found.turns], found.streams["truth"].key

    # Indicators are x = +-1/2 about each problem's mean, 4 turns a persona: the least of
    # sum ((r - m) - (e1 - e2) x)^2 + e1^2 + e2^2 is at e1 = -e2 = 1/5, four fifths of the 1/4 seen.
    alike = [0.25, 0.25, 0.25, -0.75, 0.75, -0.25, -0.25, -0.25]
    assert truth(hot=1.0) == (approx(alike), "round")
    assert truth(hot=1.5, key="round") == (approx(alike), "round")
    offset = [a - 0.2 * (-1) ** n for n, a in enumerate(alike)]
    assert truth(hot=1.5) == (approx(offset), "persona_effect")


def in_context(debate: int, *turns: tuple[bool, bool]) -> list[Transition]:
    """One debate: whether each agent is right in round 0, and in round 1, in which it reads the others."""
    agents = range(len(turns))
    first = [transition(agent, 0, debate=debate, truth=float(turns[agent][0])) for agent in agents]
    shown = [tuple(TurnId(other, 0) for other in agents if other != agent) for agent in agents]
    second = [transition(agent, 1, debate=debate, truth=float(turns[agent][1])) for agent in agents]
    turn = [msgspec_replace(one.turn, shown=seen) for one, seen in zip(second, shown, strict=True)]
    return [*first, *(replace(one, turn=turn[agent]) for agent, one in enumerate(second))]


def test_the_key_context_takes_off_what_the_turn_was_shown():
    """Two problems of one debate each. Who was right stays right, the other of p copies, of q does not."""
    groups = [in_context(0, (True, True), (False, True)), in_context(1, (True, True), (False, False))]

    def truth(baseline, scale="none"):
        settings = StreamSettings(baseline=baseline, scale=scale, key="context")
        parts = parts_of(groups, config=AdvantageConfig(truth=settings), truth_weight=1.0)
        return [part and part.generator for part in parts]

    # Round 1: contexts (right, 0) and (wrong, 1), each once in p and once in q. Within problems an indicator
    # is +-1/2; minimising (1 - m - e)^2 + ... + e^2 gives e = +-1/6, the half of 1/2 times 2 / (2 + 1), and
    # so +-1/6 about the means 1 and 1/2; the weight of a turn in its own fit is 1/2 + 1/6.
    assert truth("group") == approx([0.5, -0.5, -1 / 6, 1 / 6, 0.5, -0.5, 1 / 3, -1 / 3])
    assert truth("rloo") == approx([1.0, -1.0, -1 / 2, 1 / 2, 1.0, -1.0, 1.0, -1.0])
    # where a standard deviation divides, two right ones have none
    assert truth("group", "group")[2:4] == [None, None]


def test_where_nothing_was_shown_the_key_context_is_the_key_round():
    groups = [
        [transition(agent, 0, truth=truth) for agent, truth in enumerate([1.0, 0.0, 0.0])],
        [transition(agent, 0, truth=1.0) for agent in range(3)],
        [transition(0, 0, truth=1.0)],
    ]
    for baseline, scale in product(("group", "rloo"), ("group", "batch", "none")):
        settings = (StreamSettings(baseline=baseline, scale=scale, key=key) for key in ("round", "context"))
        configs = (AdvantageConfig(truth=own) for own in settings)
        by_round, by_context = (
            [part and part.truth for part in parts_of(groups, config=config)] for config in configs
        )
        assert by_context == approx(by_round)


@pytest.mark.parametrize("baseline", ["group", "rloo"])
def test_a_baseline_of_context_leaves_the_gradient_where_it_points(baseline):
    """All outcomes of five turns: the expected advantage times score is p (1 - p), that of the reward alone.

    With "group" it is less by the turn's weight in its own baseline, whatever the others do.
    """
    groups, contexts, chances = "pppqq", "xxyxy", [0.9, 0.8, 0.3, 0.6, 0.2]
    expected = np.zeros(5)
    for outcome in product((0.0, 1.0), repeat=5):
        chance = prod(p if right else 1 - p for p, right in zip(chances, outcome, strict=True))
        found, parts = stream_parts(
            outcome, groups, baseline=baseline, scale="none", contexts=contexts, keep_equal=True
        )
        advantages = np.array([advantage or 0.0 for advantage in found])
        expected += chance * advantages * (np.array(outcome) - chances)
    true = np.array([p * (1 - p) for p in chances])
    weights = np.array([weight + 1 / 3 for weight in parts["p"].effects.leverage])
    assert expected[:3] == pytest.approx(true[:3] * (1 if baseline == "rloo" else 1 - weights))
    assert (expected > 0).all()


def test_advantages_by_context_sum_to_zero_in_a_group_and_do_not_depend_on_its_level():
    values, groups, contexts = [1.0, 0.0, 0.25, 0.5, None, 1.0], "ppqqqq", "xyxxyz"
    found, _ = stream_parts(values, groups, baseline="group", scale="none", contexts=contexts)
    assert sum(found[:2]) == pytest.approx(0)
    assert sum(advantage for advantage in found[2:] if advantage is not None) == pytest.approx(0)
    shifted = [value and value + 3.0 for value in values[:2]] + values[2:]
    shifted[1] = 3.0
    moved, _ = stream_parts(shifted, groups, baseline="group", scale="none", contexts=contexts)
    assert moved == approx(found)


def judged(debate: int, votes: str, *, right_first: bool) -> list[Transition]:
    """One debate: its judges are shown agent 1 before agent 2, and vote for the f(irst) or the s(econd)."""
    solutions = [
        transition(agent, 0, debate=debate, truth=float(right))
        for agent, right in ((1, right_first), (2, not right_first))
    ]
    judges = [
        transition(3 + n, 1, due=True, debate=debate, judge=1.0 if (vote == "f") == right_first else -1.0)
        for n, vote in enumerate(votes)
    ]
    return [*solutions, *judges]


def test_the_key_pair_pays_no_habit_of_naming_the_first():
    """Three debates with the right solution first, one with it second, and judges that toss a coin."""
    debates = [
        *judged(0, "fs", right_first=True),
        *judged(1, "fs", right_first=True),
        *judged(2, "fs", right_first=True),
        *judged(3, "fs", right_first=False),
    ]

    def paid(key):
        config = AdvantageConfig(judge=StreamSettings(scale="none", key=key))
        judge = [part.judge for part in parts_of([debates], config=config) if part and part.judge is not None]
        return judge, sum(judge[0::2]), sum(judge[1::2])  # of "first" and of "second"

    # plain: first is paid 3 * 1 - 1, second the opposite, though nobody looked
    assert paid("round") == ([1, -1, 1, -1, 1, -1, -1, 1], 2, -2)
    # 6 turns with the weight 8 / 12, 2 turns with the weight 8 / 4
    balanced, first, second = paid("pair")
    assert balanced == pytest.approx([2 / 3, -2 / 3] * 3 + [-2, 2])
    assert (first, second) == (pytest.approx(0), pytest.approx(0))


def test_the_key_pair_has_a_baseline_for_each_side():
    groups = [[*judged(0, "ffs", right_first=True), *judged(1, "sf", right_first=False)]]
    config = AdvantageConfig(judge=StreamSettings(scale="none", key="pair"))
    judge = [part.judge for part in parts_of(groups, config=config) if part and part.judge is not None]
    # first: values 1, 1, -1, mean 1/3, weight 5 / 6; second: 1, -1, mean 0, weight 5 / 4
    assert judge == pytest.approx([5 / 6 * 2 / 3, 5 / 6 * 2 / 3, -5 / 6 * 4 / 3, 5 / 4, -5 / 4])
    metrics = turn_advantages(turns_of(groups), RewardConfig(), config, {}).metrics
    assert metrics["advantage/judge_right_first"] == pytest.approx(3 / 5)


def test_ballots_are_a_group_of_their_own():
    groups = [
        [
            transition(0, 1, judge=1.0, due=True),
            transition(1, 1, judge=1.0, due=True),
            transition(0, 2, judge=1.0, due=True),
            transition(1, 2, judge=-1.0, due=True),
        ]
    ]
    parts = parts_of(groups)
    assert [part and part.judge for part in parts] == approx([None, None, 1 / 1.0001, -1 / 1.0001])


def test_running_means_belong_to_persona_and_stream():
    groups = [
        [transition(0, 0, peer=1.0, judge=0.5), transition(1, 0, peer=1.0)],
        [transition(0, 0, peer=1.0)],
    ]
    rae = StreamSettings(baseline="rae", scale="none")
    ema: dict[str, float] = {}
    parts = parts_of(groups, config=AdvantageConfig(peer=rae, judge=rae), ema=ema, truth_weight=0.0)
    assert [part.generator for part in parts] == approx([1.0, 1.0, 1.0])
    first, second = PERSONAS[0].name, PERSONAS[1].name
    assert ema == {f"judge/{first}": 0.5, f"peer/{first}": 1.0, f"peer/{second}": 1.0}


def test_lambdas_weigh_the_roles_and_zero_takes_a_role_out():
    groups = [[transition(0, 1, peer=0.5, judge=1.0), transition(1, 1, peer=0.5, judge=-1.0)]]
    config = AdvantageConfig(lambda_gen=2.0, lambda_judge=0.5, judge=PLAIN)
    assert parts_of(groups, config=config) == [
        TurnAdvantage(0.5, 0.5, None, peer=0.5),
        TurnAdvantage(0.5, -0.5, None, peer=0.5),
    ]
    muted = AdvantageConfig(lambda_judge=0.0, judge=PLAIN)
    assert [part.judge for part in parts_of(groups, config=muted)] == [None, None]


def test_a_missing_comparison_is_compared_with_the_turns_that_owed_one():
    """Mean of -0.5, 0, 0 and 0; a turn that owed none takes no part."""
    owing = [transition(agent, 1, due=True, format=-0.5 * (agent == 0)) for agent in range(4)]
    parts = parts_of([[*owing, transition(4, 1, format=0.0)]])
    assert [part and part.format for part in parts] == [-0.375, 0.125, 0.125, 0.125, None]
    assert parts[0] == TurnAdvantage(None, None, -0.375)


def test_an_advantage_of_zero_is_a_signal():
    assert parts_of([[transition(0, 0, peer=0.0)]]) == [TurnAdvantage(0.0, None, None, peer=0.0)]


def test_statistics():
    groups = [
        [
            transition(0, 1, judge=1.0, truth=1.0, due=True),
            transition(1, 1, judge=0.0, truth=1.0, due=True),
            transition(2, 1, truth=1.0, due=True),
            transition(0, 0, truth=1.0),
            transition(1, 0, truth=0.0),
            transition(2, 0),
        ],
        [transition(0, 1, judge=1.0, due=True)],
    ]
    metrics = turn_advantages(turns_of(groups), RewardConfig(), AdvantageConfig(), {}).metrics
    assert metrics == {
        "advantage/turns": 7,
        # agent 2 twice, and the lone judge of q
        "advantage/rows_dropped": 3,
        "advantage/judge_signal_share": 2 / 4,
        "advantage/zero_variance_share/truth": 1 / 2,
        "advantage/zero_variance_share/judge": 1 / 2,
    }


def test_turns_that_nothing_rewards_are_rows_where_they_are_asked_for():
    group = [transition(0, 1, peer=0.5), transition(1, 1, due=True)]
    dropped = turn_advantages(group, RewardConfig(), AdvantageConfig(), {})
    kept = turn_advantages(group, RewardConfig(), AdvantageConfig(keep_unrewarded=True), {})
    assert dropped.turns[1] is None
    assert kept.turns[1] == TurnAdvantage(None, None, None)
    assert kept.turns[0] == dropped.turns[0]
    assert kept.metrics["advantage/rows_dropped"] == dropped.metrics["advantage/rows_dropped"] - 1


def test_where_a_bonus_is_part_of_the_truth_reward_it_does_not_say_which_side_was_right():
    judges = judged(0, "fs", right_first=True) + judged(1, "fs", right_first=False)
    for scheme in (RewardConfig(form_bonus=0.1), RewardConfig(truth_credit="partial")):
        given = turn_advantages(judges, scheme, AdvantageConfig(), {})
        assert "advantage/judge_right_first" not in given.metrics
        assert set(given.sides) == {0}
    assert (
        turn_advantages(judges, RewardConfig(), AdvantageConfig(), {}).metrics["advantage/judge_right_first"]
        == 0.5
    )


def test_a_ballot_is_compared_with_ballots_and_a_debating_round_with_its_like():
    """Debate 0 stopped after round 0 and has its ballot in round 1; debate 1 went on."""
    values = [(0, 0, 1.0), (1, 0, -1.0), (0, 1, 0.5), (1, 1, 0.0)]  # agent, debate, judge reward in round 1
    transitions = [
        transition(agent, 1, due=True, debate=debate, judge=value) for agent, debate, value in values
    ]
    ballots = [
        replace(one, turn=msgspec_replace(one.turn, ballot=True)) if one.debate == 0 else one
        for one in transitions
    ]
    config = AdvantageConfig(judge=StreamSettings(baseline="group", scale="none"))
    advantages = turn_advantages(ballots, RewardConfig(), config, {})
    judged = [one.judge / config.lambda_judge for one in advantages.turns]
    assert judged == approx([1.0, -1.0, 0.25, -0.25])  # means 0 and .25; together .125
    assert advantages.metrics["advantage/zero_variance_share/judge"] == 0


def test_persuasion_has_a_baseline_of_its_own_and_the_critics_weight():
    turns = turns_of([[transition(0, 1, persuasion=2.0), transition(1, 1, persuasion=1.0), transition(2, 1)]])
    parts = turn_advantages(turns, RewardConfig(), AdvantageConfig(lambda_critic=2.0), {}).turns
    assert [part and part.critic for part in parts] == [1.0, -1.0, None]
    assert [part and (part.generator, part.judge) for part in parts] == [(None, None), (None, None), None]


# Returns and shaping ------------------------------------------------------------------------------


def three_rounds(*values: float | None, debate: int = 0) -> list[Transition]:
    return [transition(0, round_, debate=debate, truth=value) for round_, value in enumerate(values)]


def test_the_return_is_the_discounted_sum_of_the_later_rounds():
    turns = three_rounds(1.0, 0.0, 2.0)
    assert returns(turns, [1.0, 0.0, 2.0], 0.5) == [1.0 + 0.5 * (0.0 + 0.5 * 2.0), 1.0, 2.0]
    assert returns(turns, [1.0, 0.0, 2.0], 0.0) == [1.0, 0.0, 2.0]


def test_truth_of_the_last_round_alone_falls_by_the_discount_for_each_round_before():
    turns = three_rounds(None, None, 1.0)
    assert returns(turns, [None, None, 1.0], 0.7) == pytest.approx([0.49, 0.7, 1.0])
    assert returns(turns, [None, 1.0, None], 0.7) == [0.7, 1.0, None]


def test_agents_debates_and_the_ballot_stay_apart():
    last = transition(0, 2)
    ballot = replace(last, turn=msgspec_replace(last.turn, ballot=True))
    turns = [
        transition(0, 0),
        transition(0, 1),
        transition(1, 0),
        transition(0, 1, debate=1),
        ballot,
    ]
    assert returns(turns, [None, 1.0, None, 5.0, None], 0.5) == [0.5, 1.0, None, 5.0, None]


def test_returns_are_centred_among_the_returns_of_their_round():
    turns = [*three_rounds(None, 1.0), *three_rounds(None, 0.0, debate=1)]
    config = AdvantageConfig.model_validate({"discount": 0.5, "truth": {"scale": "none"}})
    found = turn_advantages(turns, RewardConfig(truth_weight=1.0), config, {})
    assert [part and part.generator for part in found.turns] == [0.25, 0.5, -0.25, -0.5]


def test_shaping_has_its_own_baseline_and_is_added_to_the_rest():
    turns = [
        transition(0, 0, truth=1.0, shaping=0.3),
        transition(0, 0, debate=1, truth=0.0, shaping=0.0),
    ]
    rewards = RewardConfig(truth_weight=0.5, novelty_bonus=0.3)
    config = AdvantageConfig.model_validate({"truth": {"scale": "none"}, "lambda_gen": 2.0})
    first, second = turn_advantages(turns, rewards, config, {}).turns
    assert first is not None
    assert second is not None
    assert (first.generator, first.truth, first.shaping) == pytest.approx((2 * (0.25 + 0.15), 0.5, 0.3))
    assert second.generator == pytest.approx(-0.8)


def test_shaping_is_added_to_mixed_rewards_too_and_can_be_all_there_is():
    turns = [transition(0, 0, shaping=0.3), transition(0, 0, debate=1, shaping=0.1)]
    rewards = RewardConfig(novelty_bonus=0.3, mix="rewards")
    found = turn_advantages(turns, rewards, AdvantageConfig(), {}).turns
    assert [part and part.generator for part in found] == pytest.approx([0.1, -0.1])
