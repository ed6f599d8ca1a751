from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate import Problem
from debate.personas import PERSONAS
from debate.types import Completion, ParsedTurn, Turn, TurnId
from debate_rl.config import Config
from debate_rl.rollouts import worker as worker_module
from debate_rl.rollouts.worker import Clock, RolloutWorker, silent_groups
from debate_rl.sampling.draw_problems import Draw
from learner import Transition
from rewards import Rewards
from rewards.nan_rewards import drop_nan_rewards


def group_of(*rewards: dict[str, float | None]) -> list[Transition]:
    """Each dictionary is the rewards of one turn that owes votes, in round 1 of a debate of its own."""
    shown, said = (TurnId(1, 0), TurnId(2, 0)), Completion((1,), (2,), (-1.0,), "x", "stop", 0, (0,))
    turn = Turn(TurnId(0, 1), "K7", shown, said, ParsedTurn(), shown)
    return [Transition(turn, PERSONAS[0], "p", debate=k, **one) for k, one in enumerate(rewards)]


def speaks(*given: dict[str, float | None], **config) -> bool:
    """Whether a problem teaches under a configuration."""
    tables = {"model": {"name_or_path": "none"}, **config}
    return not silent_groups(group_of(*given), Config.model_validate(tables), {})


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [
        ([{"truth": 1.0}, {"truth": 1.0}], False),  # DAPO's case: all right
        ([{"truth": 0.0}, {"truth": 0.0}], False),  # all wrong
        ([{"truth": 0.0}, {"truth": 1.0}], True),
        ([{"truth": 1.0, "peer": 1.0}, {"truth": 1.0, "peer": -1.0}], False),  # votes differ, truth decides
        ([{"peer": 1.0}, {"peer": -1.0}], True),  # without truth all streams decide
        ([{"peer": 0.0}, {"peer": 0.0}], False),  # nothing but ties
        ([{"judge": 1.0}, {"judge": -1.0}], True),
        ([{"judge": 1.0}, {"judge": 1.0}], False),
        ([{"format": -0.5}, {"format": 0.0}], True),
        ([{}, {}], False),
    ],
)
def test_a_problem_is_silent_when_no_stream_that_decides_has_a_signal(rewards, expected):
    assert speaks(*rewards) is expected


REWARD = st.sampled_from([None, -1.0, 0.0, 1.0])
VOTES = st.lists(st.fixed_dictionaries({"peer": REWARD, "judge": REWARD}), min_size=1, max_size=6)


@given(VOTES, st.booleans())
def test_where_truth_decides_what_all_solve_or_nobody_is_silent_whatever_the_votes(votes, right):
    rewards = [{**of_turn, "truth": float(right), "format": -0.5} for of_turn in votes]
    assert not speaks(*rewards)
    wrong = {**votes[0], "truth": float(not right)}
    assert speaks(*rewards, wrong)


@pytest.mark.parametrize("rewards", [{"truth_weight": 0.0}, {"mix": "rewards"}, {"peer_weight": "routed"}])
def test_votes_decide_where_truth_has_no_advantage_of_its_own(rewards):
    assert speaks({"truth": 1.0, "peer": 1.0}, {"truth": 1.0, "peer": -1.0}, rewards=rewards)


class Played:
    """A part of a step: problems of which some are silent."""

    def __init__(self, problems):
        self.problems = list(problems)

    def transitions(self):
        return self.problems

    def add(self, other):
        self.problems += other.problems


@given(st.integers(1, 6), st.lists(st.booleans(), max_size=12))
def test_silent_problems_are_replaced_until_none_is_missing_or_no_spare_is_left(size, silences):
    """``silences[i]``: whether problem i is silent; the first ``size`` are the step's, the others spare."""
    silences = [*silences, *[True] * size][: max(size, len(silences))]
    problems = [Problem(str(n), "?") for n in range(len(silences))]
    config = Config.model_validate({"model": {"name_or_path": "none"}, "train": {"dynamic_sampling": 12}})
    worker = RolloutWorker(config, SimpleNamespace(train=problems), None)
    worker._play = lambda chosen, *_: Played(chosen)
    draw = Draw(tuple(range(size)), tuple(range(size, len(problems))))
    with pytest.MonkeyPatch.context() as patch:
        silent = lambda chosen, *_: sum(silences[int(problem.id)] for problem in chosen)  # noqa: E731
        patch.setattr(worker_module, "silent_groups", silent)
        played = [int(one.id) for one in worker.roll_out(0, lambda _: draw, {}, Clock()).problems]
    won = sum(not silences[i] for i in played)
    assert played == list(range(len(played)))
    assert won <= size
    assert won == size or len(played) == len(silences)


def test_rewards_that_are_no_numbers_become_none_and_are_counted():
    inf, nan = float("inf"), float("nan")
    rewards = Rewards(((1.0, nan), (None, -inf)), ((0.0, 1.0), (1.0, 1)), ((inf,), (0.5,)), ((0.0,), (0.0,)))
    good, bad = drop_nan_rewards(rewards)
    assert bad == 3
    assert good.peer == ((1.0, None), (None, None))
    assert good.judge == ((None,), (0.5,))
    assert good.truth == rewards.truth
    assert drop_nan_rewards(good) == (good, 0)
