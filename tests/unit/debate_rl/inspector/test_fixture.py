"""A debate saved as a fixture: what comes back, what a test of it sees, what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from debate import DebateConfig, Problem, run_debates
from debate.policies.scripted import Answers, scripted_debaters
from debate_rl.config import Config
from debate_rl.inspector.views.fixture import differences, load_fixture, save_fixture
from rewards import RewardConfig, score_debate
from transcripts import Record


@pytest.fixture
def record():
    problem = Problem("sum", "What is 2 + 2?", "4", kind="number")
    policy = scripted_debaters({"sum": Answers("4", ("5",))}, solve=(1.0, 0.0, 0.0), judge=1.0)
    [debate] = run_debates([problem], policy, DebateConfig(num_agents=3, num_rounds=2), seed=0)
    correct = ((True, True), (False, False), (False, False))
    rewards = score_debate(debate, correct, RewardConfig())
    return Record(debate, 3, "sum", correct, rewards)


@pytest.fixture
def config():
    return Config.model_validate({"run": {"dir": "x"}, "model": {"name_or_path": "any"}})


def test_what_was_saved_comes_back(tmp_path, record, config):
    path = tmp_path / "one.json"
    save_fixture(path, record, config, source="run 3.0")
    fixture = load_fixture(path)
    assert (fixture.source, fixture.rewards) == ("run 3.0", RewardConfig())
    assert fixture.record.rewards == record.rewards
    assert fixture.record.debate.votes == record.debate.votes
    assert differences(fixture) == []
    assert path.read_bytes().isascii()


def test_token_arrays_go_along_where_asked_for(tmp_path, record, config):
    said = replace(record.debate.turns[0].completion, tokens=(5, 6), logprobs=(-0.1, -0.25), offsets=(0, 1))
    turns = (replace(record.debate.turns[0], completion=said), *record.debate.turns[1:])
    record = replace(record, debate=replace(record.debate, turns=turns))
    save_fixture(tmp_path / "with.json", record, config, tokens=True)
    save_fixture(tmp_path / "without.json", record, config)
    assert load_fixture(tmp_path / "with.json").record.debate.turns[0].completion.logprobs == (-0.1, -0.25)
    kept = load_fixture(tmp_path / "without.json").record.debate.turns[0].completion
    assert (kept.tokens, kept.token_count) == ((), 2)


@pytest.mark.slow
def test_the_test_that_is_told_passes_and_fails_where_it_must(tmp_path, record, config):
    path = tmp_path / "one debate.json"
    told = save_fixture(path, record, config)
    assert "def test_one_debate():" in told
    (tmp_path / "test_it.py").write_text(told)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / "test_it.py")]
    assert subprocess.run(command, capture_output=True, cwd=tmp_path).returncode == 0
    content = json.loads(path.read_text())
    content["debate"]["rewards"]["peer"][0][0] = 0.5
    path.write_text(json.dumps(content))
    assert subprocess.run(command, capture_output=True, cwd=tmp_path).returncode == 1


def test_what_differs_is_named_by_turn(tmp_path, record, config):
    path = tmp_path / "one.json"
    save_fixture(path, record, config)
    content = json.loads(path.read_text())
    content["debate"]["rewards"]["peer"][0][0] = 0.5
    content["debate"]["debate"]["turns"][1]["parsed"]["answer"] = "6"
    path.write_text(json.dumps(content))
    assert differences(load_fixture(path)) == [
        "turn 1.0, answer: was '6', is '5'",
        "turn 0.0, peer reward: was 0.5, is 1",
    ]


def test_a_debate_that_was_not_paid_is_paid_as_today(tmp_path, record):
    save_fixture(tmp_path / "one.json", replace(record, rewards=None))
    fixture = load_fixture(tmp_path / "one.json")
    assert fixture.record.rewards == record.rewards
    assert differences(fixture) == []


def test_a_file_is_never_written_over(tmp_path, record, config):
    path = tmp_path / "one.json"
    path.write_text("mine")
    with pytest.raises(ValueError, match=r"one\.json: is there already; choose another name"):
        save_fixture(path, record, config)
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c.update(fixture=2), "fixture: 2 is newer than 1, which this version reads"),
        (lambda c: c.pop("rewards"), "rewards: missing"),
        (lambda c: c["rewards"].update(peer="none"), "rewards.peer: unknown peer rule 'none'"),
        (lambda c: c["debate"].update(step="3"), "step: expected int, got str"),
        (lambda c: c["debate"].update(schema=99), "99"),
        (lambda c: c.clear(), "fixture: expected a debate saved by"),
    ],
)
def test_a_file_that_is_none_is_refused_by_its_field(tmp_path, record, config, change, said):
    path = tmp_path / "one.json"
    save_fixture(path, record, config)
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"one\.json: ") as error:
        load_fixture(path)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_what_is_no_json_or_not_there(tmp_path):
    (tmp_path / "cut.json").write_text('{"fixture": 1, ')
    with pytest.raises(ValueError, match=r"cut\.json: not a whole line of JSON"):
        load_fixture(tmp_path / "cut.json")
    with pytest.raises(ValueError, match=r"none\.json: No such file"):
        load_fixture(tmp_path / "none.json")
