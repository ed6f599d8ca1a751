"""Adaptive sampling: when a problem has enough, which debates are held, and what the rule does to figures."""

from itertools import product
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate import Problem
from debate.types import Completion
from debate_rl.config import AdaptiveConfig, Config, TrainConfig
from debate_rl.rollouts.worker import Clock, RolloutWorker, adaptive_metrics, has_enough
from debate_rl.sampling.draw_problems import Draw
from envs import Grade, GradeStatus
from learner.advantages import stream_advantages

RIGHT, WRONG = ((True,),), ((False,),)


class Sure:
    """Answers as a table says: of debate j of problem i by ``table[i][j]``."""

    version = 0

    def __init__(self, table, most):
        self.table, self.most, self.asked = table, most, []

    async def sample(self, request):
        number = int(request.debate.split(":")[0])
        self.asked.append((number, request.seed))
        text = f"<solution>\\boxed{{{int(self.table[number // self.most][number % self.most])}}}</solution>"
        return Completion((1,), (2,), (-1.0,), text, "stop", 0)

    async def update(self, weights, version): ...


class Ones:
    """Says that 1 is right."""

    name = "ones"

    def grade(self, problem, answer):
        return Grade(GradeStatus.CORRECT if answer == "1" else GradeStatus.WRONG, "ones", answer)


def rolled(table, *, step=0, **adaptive):
    """Return the rollout of a step whose problems have these answers, and what the policy was asked."""
    most = len(table[0])
    problems = tuple(Problem(f"p{i}", "?", answer="1", kind="number") for i in range(len(table)))
    tables = {
        "model": {"name_or_path": "none"},
        "debate": {"num_agents": 1, "num_rounds": 1, "final_ballot": False},
        "rewards": {"truth_weight": 1.0},
        "train": {"batch_size": len(table), "group_size": most, "adaptive": adaptive or None},
    }
    policy = Sure(table, most)
    data = SimpleNamespace(train=problems, environment=Ones())
    worker = RolloutWorker(Config.model_validate(tables), data, policy)
    draw = Draw(tuple(range(len(problems))))
    return worker.roll_out(step, lambda _: draw, {}, Clock()), policy


def test_a_problem_stops_at_the_chunk_in_which_it_has_enough():
    order = [1, 0, 0, 0, 0, 0, 0]
    table = [order, [0, 1, 0, 1, 1, 1, 1], [1] * 7]
    # The table is by the place of a problem in the step, whatever its name is.
    rollout, _ = rolled(table, chunk=2, right=1, wrong=1)
    sizes = [rollout.groups.count(name) for name in dict.fromkeys(rollout.groups)]
    assert sizes == [2, 2, 7]
    rollout, _ = rolled(table, chunk=3, right=2, wrong=2)
    assert [rollout.groups.count(name) for name in dict.fromkeys(rollout.groups)] == [7, 6, 7]
    assert [len(set(rollout.groups)), len(rollout.debates), len(rollout.timings)] == [3, 20, 20]


TABLES = st.integers(2, 9).flatmap(
    lambda most: st.lists(st.lists(st.booleans(), min_size=most, max_size=most), min_size=1, max_size=4)
)


@settings(max_examples=30)
@given(TABLES, st.integers(1, 9), st.integers(1, 3), st.integers(1, 3))
def test_the_debates_held_are_the_first_ones_of_a_full_group(table, chunk, right, wrong):
    most = len(table[0])
    chunk, right = min(chunk, most), min(right, most - 1)
    wrong = min(wrong, most - right)
    (full, every), (rollout, policy) = rolled(table), rolled(table, chunk=chunk, right=right, wrong=wrong)
    assert set(policy.asked) <= set(every.asked)  # the same seeds, whatever else is held
    by_name = {n: [d for d, g in zip(full.debates, full.groups, strict=True) if g == n] for n in full.groups}
    for place, name in enumerate(by_name):
        held = [d for d, g in zip(rollout.debates, rollout.groups, strict=True) if g == name]
        assert held == by_name[name][: len(held)]
        rights = [sum(table[place][:n]) for n in range(most + 1)]
        enough = (n for n in range(1, most + 1) if rights[n] >= right and n - rights[n] >= wrong)
        first = min(enough, default=most)
        assert len(held) == min(-(-first // chunk) * chunk, most)


@pytest.mark.parametrize(
    ("tables", "enough"),
    [
        ([RIGHT, WRONG], True),
        ([RIGHT, RIGHT], False),
        ([WRONG], False),
        ([RIGHT, (("missing",),)], True),
        ([RIGHT, ((None,),)], False),  # no verdict
        ([RIGHT, None], False),  # not graded
        ([((True, False), (False, True))], True),  # one of two agents each, in the last round
        ([((True, False), (True, False))], False),  # round 0 does not count
    ],
)
def test_what_is_right_and_wrong(tables, enough):
    assert has_enough(tables, AdaptiveConfig(chunk=1, right=1, wrong=1)) is enough


def test_figures_by_hand():
    train = TrainConfig(group_size=5, adaptive=AdaptiveConfig(chunk=2))
    correct = [RIGHT, WRONG, RIGHT, WRONG, WRONG, WRONG, ((None,),), None]
    assert adaptive_metrics(["p"] * 4 + ["q"] * 2 + ["r"] * 2, correct, train) == {
        "sampling/group_size/mean": 8 / 3,
        "sampling/group_size/min": 2.0,
        "sampling/group_size/max": 4.0,
        "sampling/saved": pytest.approx(1 - 8 / 15),
        "sampling/accuracy": 0.25,  # 1/2 of p, 0 of q; r has no grade
    }


def outcomes(chunk, wanted, most):
    """Yield every order of right and wrong answers that the rule lets a problem have."""
    for order in product([True, False], repeat=most):
        tables = [RIGHT if x else WRONG for x in order]
        held = next((n for n in range(chunk, most, chunk) if has_enough(tables[:n], wanted)), most)
        if not any(order[held:]):  # each beginning once
            yield order[:held]


@pytest.mark.parametrize("chance", [0.1, 0.5, 0.7])
@pytest.mark.parametrize(("chunk", "right", "wrong"), [(1, 1, 1), (2, 1, 2), (3, 2, 1)])
def test_the_first_chunk_is_unbiased_and_baselines_point_the_right_way(chance, chunk, right, wrong):
    """By all outcomes, each with its probability: what docs/losses.md says."""
    wanted = AdaptiveConfig(chunk=chunk, right=right, wrong=wrong)
    train = TrainConfig(group_size=7, adaptive=wanted)
    total = first = plain = weight = formula = others = 0.0
    for order in outcomes(chunk, wanted, 7):
        n, s = len(order), sum(order)
        odds = chance**s * (1 - chance) ** (n - s)
        grades = [RIGHT if x else WRONG for x in order]
        total += odds
        plain += odds * s / n
        first += odds * adaptive_metrics(["p"] * n, grades, train)["sampling/accuracy"]
        pull = [(x - chance) / (chance * (1 - chance)) for x in order]
        for baseline in ("group", "rloo"):
            centred = stream_advantages([float(x) for x in order], ["p"] * n, baseline=baseline, scale="none")
            gained = odds * sum((a or 0.0) * b for a, b in zip(centred, pull, strict=True))
            weight, others = (weight + gained, others) if baseline == "group" else (weight, others + gained)
        formula += odds * s * (n - s) / n / (chance * (1 - chance))
    assert total == pytest.approx(1)
    assert first == pytest.approx(chance)
    assert abs(plain - chance) > 1e-3 or (chance, right) == (0.5, wrong)
    assert weight == pytest.approx(formula)
    assert others > weight > 0


@pytest.mark.parametrize(
    ("agents", "adaptive", "said"),
    [
        (3, {"right": 3}, r"train\.adaptive\.chunk"),
        (3, {"chunk": 2, "right": 5}, r"train\.adaptive\.right = 5: .* train\.group_size = 4 debates; "),
        (1, {"chunk": 2, "right": 3}, r"train\.adaptive\.right \+ train\.adaptive\.wrong = 5: "),
    ],
)
def test_what_a_problem_can_never_have_is_refused(agents, adaptive, said):
    def config_of(**wanted):
        tables = {"model": {"name_or_path": "none"}, "debate": {"num_agents": agents}}
        tables |= {"rewards": {"truth_weight": 1.0}, "train": {"group_size": 4, "adaptive": wanted}}
        return Config.model_validate(tables)

    config_of(chunk=2)
    with pytest.raises(ValueError, match=said):
        config_of(**adaptive)
    if agents > 1:  # a debate may be both
        config_of(chunk=2, right=4, wrong=4)
