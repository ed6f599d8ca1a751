from collections import Counter

from debate import DebateConfig, run_debates
from debate.policies.scripted import Answers, scripted_debaters
from debate.types import Problem, TurnId
from debate_rl.rollouts.records import LabelLedger, of_groups, step_records
from learner.advantages import AdvantageConfig, turn_advantages
from learner.types import group_indices, transitions_of
from rewards import RewardConfig, score_debate
from transcripts import read_records, write_step

PROBLEMS = [Problem(f"p{n}", f"{n}?", answer="1", kind="number") for n in range(2)]
CONFIG = DebateConfig(num_rounds=2, max_tokens=500)


def step():
    """Return a step's debates (two of each problem), truth, rewards, turns and advantages."""
    answers = {problem.id: Answers("1", ("2",)) for problem in PROBLEMS}
    policy = scripted_debaters(answers, solve=0.5, judge=0.8, malformed=0.2, tokens=True)
    debates = run_debates([p for p in PROBLEMS for _ in range(2)], policy, CONFIG, seed=2)
    correct = [table_of(debate) for debate in debates]
    rewards = [score_debate(d, c, RewardConfig()) for d, c in zip(debates, correct, strict=True)]
    transitions = transitions_of(debates, rewards, group_indices([one.problem.id for one in debates], 2))
    advantages = turn_advantages(transitions, RewardConfig(), AdvantageConfig(), {})
    return debates, correct, rewards, transitions, advantages


def table_of(debate):
    return tuple(tuple(graded(debate, agent, round_) for round_ in range(2)) for agent in range(3))


def graded(debate, agent, round_):
    answer = debate.turn(TurnId(agent, round_)).parsed.answer
    return "missing" if answer is None else answer == "1"


def test_a_step_is_read_back_as_it_was(tmp_path):
    debates, correct, rewards, _, advantages = step()
    write_step(tmp_path, 3, step_records(3, debates, correct, rewards, advantages.turns))
    records = list(read_records(tmp_path))
    assert [record.debate for record in records] == debates
    assert [record.correct for record in records] == correct
    assert [record.rewards for record in records] == list(rewards)
    assert Counter(record.group for record in records) == {"p0": 2, "p1": 2}
    assert {record.step for record in records} == {3}


def test_every_turn_with_a_signal_has_its_own_advantages(tmp_path):
    debates, correct, rewards, transitions, advantages = step()
    write_step(tmp_path, 0, step_records(0, debates, correct, rewards, advantages.turns))
    records = list(read_records(tmp_path))
    found = 0
    for number, record in enumerate(records):
        parts = {part.turn: part for part in record.advantages}
        order = [turn.id for turn in record.debate.turns if turn.id in parts]
        assert [part.turn for part in record.advantages] == order
        pairs = zip(transitions, advantages.turns, strict=True)
        of_debate = [(one, part) for one, part in pairs if one.debate == number]
        assert len(of_debate) == len(record.debate.turns)
        for transition, part in of_debate:
            stored = parts.get(transition.turn.id)
            assert (stored is None) == (part is None)
            if part is not None:
                streams = ("generator", "judge", "format")
                assert all(getattr(stored, name) == getattr(part, name) for name in streams)
                found += 1
    assert found == advantages.metrics["advantage/turns"] - advantages.metrics["advantage/rows_dropped"]


def test_tokens_can_be_left_out(tmp_path):
    debates, correct, rewards, _, advantages = step()
    write_step(tmp_path, 0, step_records(0, debates, correct, rewards, advantages.turns), tokens=False)
    for record, debate in zip(read_records(tmp_path), debates, strict=True):
        assert all(turn.completion.tokens == () for turn in record.debate.turns)
        assert [t.completion.text for t in record.debate.turns] == [t.completion.text for t in debate.turns]


def test_the_first_groups_of_a_step_may_be_all_that_is_stored():
    debates, correct, rewards, _, advantages = step()
    records = step_records(3, debates, correct, rewards, advantages.turns)
    assert of_groups(records, None) == of_groups(records, 2) == of_groups(records, 9) == records
    assert of_groups(records, 1) == records[:2]
    assert of_groups(records, 0) == []


def test_a_problem_that_stands_there_twice_is_one(tmp_path):
    path = tmp_path / "labels.jsonl"
    path.write_text('{"step": 0, "problem": "a"}\n{"step": 1, "problem": "b"}\n{"step": 1, "problem": "a"}\n')
    assert LabelLedger(path, 2).used == ["a", "b"]
    assert LabelLedger(path, 1).used == ["a"]
