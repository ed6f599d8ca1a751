import pytest

from debate import DebateConfig, Problem, run_debates
from debate.policies.scripted import ScriptedPolicy
from debate.types import TurnId
from rewards import RewardConfig, score_debate
from rewards.types import Verdicts
from transcripts import Record
from transcripts.codec import from_line, to_line
from transcripts.index.facts import facts_of
from transcripts.record import turn_rows

VERDICTS = Verdicts("m", 0.5, ((0.75,), ("missing",), (None,)))


@pytest.fixture
def record():
    problem = Problem("p", "Write.", kind="rubric", rubric="Wet.", reference="Rain.")
    policy = ScriptedPolicy({}, default="<solution>Rain.</solution>")
    config = DebateConfig(num_agents=3, num_rounds=1, final_ballot=False)
    [debate] = run_debates([problem], policy, config, seed=1)
    rewards = score_debate(debate, None, RewardConfig(), VERDICTS)
    return Record(debate, 0, "p", rewards=rewards, verdicts=VERDICTS)


def test_a_record_with_verdicts_is_read_back_and_one_without_has_no_such_field(record):
    assert from_line(to_line(record)) == record
    assert b'"verdicts":{"verifier":"m","threshold":0.5,"scores":[[0.75],["missing"],[null]]}' in to_line(
        record
    )
    assert b"verdicts" not in to_line(Record(record.debate, 0, "p"))


def test_verdicts_reward_the_generator_and_are_not_in_the_figures_of_truth(record):
    assert record.rewards.truth == ((0.75,), (0.0,), (None,))
    facts = facts_of(record).facts
    assert (facts.reward_truth, facts.reward_truth_n, facts.accuracy) == (None, 0, None)
    turns = list(turn_rows("0.0", record))
    assert [turn["reward_truth"] for turn in turns] == [None, None, None]
    assert [turn["verdict"] for turn in turns] == [0.75, None, None]
    assert [turn["grade"] for turn in turns] == ["ungraded"] * 3


def test_where_there_is_truth_verdicts_reward_nothing(record):
    correct = ((False,), (True,), (False,))
    rewards = score_debate(record.debate, correct, RewardConfig(), VERDICTS)
    assert rewards == score_debate(record.debate, correct, RewardConfig())


def test_a_solution_passes_at_the_threshold():
    verdicts = Verdicts("m", 0.75, ((0.75, 0.7499, "missing", None),))
    assert [verdicts.passes(TurnId(0, round_)) for round_ in range(4)] == [True, False, None, None]
    assert [verdicts.score(TurnId(0, round_)) for round_ in range(4)] == [0.75, 0.7499, None, None]
