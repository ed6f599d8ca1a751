import json
from dataclasses import replace

import pytest

from debate import DebateConfig, Problem, run_debates
from debate.policies.scripted import Answers, scripted_debaters
from debate_rl.config import LoggingConfig
from debate_rl.metrics.step_log import draw_samples, samples_of
from debate_rl.metrics.trackers import open_trackers
from rewards import RewardConfig, score_debate
from transcripts import Record, TurnAdvantages

PROBLEM = Problem("p0", "2 - 1?", answer="1", kind="number")


@pytest.fixture(scope="module")
def record():
    """One debate of two rounds and a ballot in which every agent always says 1."""
    policy = scripted_debaters({"p0": Answers("1", ("2",))}, solve=1.0, judge=1.0, tokens=True)
    [debate] = run_debates([PROBLEM], policy, DebateConfig(num_rounds=2, max_tokens=500), seed=2)
    correct = ((True, True),) * 3
    rewards = score_debate(debate, correct, RewardConfig())
    last = debate.turns[-1].id
    parts = (TurnAdvantages(debate.turns[0].id, 0.5, None, -0.5), TurnAdvantages(last, None, 0.25))
    return Record(debate, 7, "p0", correct, rewards, parts)


def test_each_turn_is_a_row_with_its_answer_rewards_and_advantages(record):
    rows = list(samples_of(record, 4))
    assert [(row["round"], row["agent"]) for row in rows] == [(r, a) for r in range(3) for a in range(3)]
    assert {(row["step"], row["debate"], row["problem"], row["gold"]) for row in rows} == {
        (7, "7.4", "p0", "1")
    }
    first, last = rows[0], rows[-1]
    assert (first["answer"], first["grade"], first["ballot"]) == ("1", "right", False)
    assert first["text"] == record.debate.turns[0].completion.text
    assert first["tokens"] == len(record.debate.turns[0].completion.tokens) > 0
    assert (first["advantage_generator"], first["advantage_judge"], first["advantage_format"]) == (
        0.5,
        None,
        -0.5,
    )
    assert first["reward_truth"] == 1.0
    assert (last["answer"], last["grade"], last["ballot"]) == (None, "", True)
    assert (last["reward_peer"], last["reward_truth"]) == (None, None)
    assert (last["advantage_generator"], last["advantage_judge"]) == (None, 0.25)
    assert rows[4]["advantage_generator"] is None


def test_about_the_share_is_drawn_and_always_the_same(record):
    records = [replace(record, debate=replace(record.debate, seed=seed)) for seed in range(2000)]
    drawn = {int(row["debate"][2:]) for row in draw_samples(records, 0.1)}
    assert 140 < len(drawn) < 260  # 200 expected, 13.4 the standard deviation
    later = {int(row["debate"][2:]) for row in draw_samples(records[500:], 0.1)}
    assert later == {d - 500 for d in drawn if d >= 500}
    assert draw_samples(records, 0.0) == []
    assert len(draw_samples(records[:3], 1.0)) == 3 * 9


def test_samples_are_lines_that_a_resumed_run_writes_again(tmp_path, record):
    config = LoggingConfig(progress="none", sample_share=1.0)
    for first in (0, 7):
        with open_trackers(tmp_path, config, steps=9, first_step=first) as trackers:
            trackers.show(6, [replace(record, step=6)])
            trackers.show(7, [record])
    rows = [json.loads(line) for line in (tmp_path / "samples.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [6] * 18 + [7] * 9  # step 6 was kept, and here written once more
    assert rows[-9:] == list(samples_of(record, 0))
    assert len((tmp_path / "samples.superseded.jsonl").read_text().splitlines()) == 9
