"""Debates in the format of verifiers, and replies from it. tests/slow/test_verifiers.py reads both."""

import json

import pytest

from debate import DebateConfig, run_debates
from debate.policies import Answers, scripted_debaters
from debate_rl.evaluation.grading import grade_debate
from debate_rl.sft.exchange import INFO, replies_in, store_debates, write_episodes
from debate_rl.sft.harvests import read_traces
from envs import DataError, load_environment
from rewards import RewardConfig, score_debate
from transcripts import Record, read_records
from transcripts.codec import from_line


@pytest.fixture(scope="module")
def records():
    environment = load_environment("pair_sum")
    problems = environment.problems(split="train", limit=2, seed=0)
    answers = {one.id: Answers(one.answer, ("1 2",)) for one in problems}
    policy = scripted_debaters(answers, tokens=True, prompts="tiny")
    protocol = DebateConfig(num_rounds=2, prompts="tiny", max_tokens=200)
    found = []
    for debate in run_debates(problems, policy, protocol, seed=1):
        graded, correct = grade_debate(environment, debate)
        rewards = score_debate(graded, correct, RewardConfig())
        found.append(Record(graded, 3, graded.problem.id, correct, rewards))
    return found


@pytest.fixture(scope="module")
def episodes(records, tmp_path_factory):
    file = tmp_path_factory.mktemp("episodes") / "of" / "traces.jsonl"
    assert write_episodes(file, records) == len(records) == 2
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_trace_has_the_prompt_the_tokens_and_the_rewards_of_its_turn(records, episodes):
    for record, episode in zip(records, episodes, strict=True):
        assert episode["task"]["data"]["id"] == record.debate.problem.id
        for turn, trace in zip(record.debate.turns, episode["traces"], strict=True):
            *prompt, reply = trace["nodes"]
            assert [one["parent"] for one in trace["nodes"]] == [None, *range(len(prompt))]
            assert prompt[-1]["token_ids"] == list(turn.completion.prompt_tokens)
            assert reply["message"]["content"] == turn.completion.text
            assert reply["token_ids"] == list(turn.completion.tokens)
            assert len(reply["mask"]) == len(reply["logprobs"]) == len(reply["token_ids"])
            agent, round_ = turn.id
            if not turn.ballot:
                assert trace["rewards"]["truth"]["score"] == record.rewards.truth[agent][round_]
            assert trace["info"][INFO]["turn"] == [agent, round_]
        first = episode["traces"][0]["info"][INFO]["record"]
        assert from_line(json.dumps(first).encode()).debate.problem == record.debate.problem


def test_the_right_solutions_come_back_as_replies(records, episodes):
    found = [row["reply"] for one in episodes for row in replies_in(one)]
    said = [
        (turn, record.rewards.truth) for record in records for turn in record.debate.turns if not turn.ballot
    ]
    right = [turn.completion.text for turn, truth in said if truth[turn.id.agent][turn.id.round] == 1]
    assert found == right != []


def test_debates_are_stored_as_they_were(records, tmp_path):
    write_episodes(tmp_path / "t.jsonl", records)
    assert store_debates(tmp_path / "run", tmp_path / "t.jsonl") == 2
    stored = sorted(read_records(tmp_path / "run"), key=lambda one: one.debate.seed)
    for one, other in zip(stored, sorted(records, key=lambda one: one.debate.seed), strict=True):
        assert (one.rewards, one.correct) == (other.rewards, other.correct)
        assert one.debate.problem == other.debate.problem
    (tmp_path / "bad.jsonl").write_text('{"traces": []}\n')
    with pytest.raises(ValueError, match=r"bad\.jsonl, line 1: not an episode"):
        store_debates(tmp_path / "run", tmp_path / "bad.jsonl")


def test_rewards_of_another_environment_are_added_up():
    def trace(content, *scores, **more):
        rewards = {str(number): {"score": score, "weight": 0.5} for number, score in enumerate(scores)}
        messages = [{"role": "user", "content": "?"}, {"role": "assistant", "content": content}]
        return {"nodes": [{"message": one} for one in messages], "rewards": rewards, "info": {}, **more}

    traces = [trace("a", 1, 1), trace("b", 1, 0.5), trace("c", 2), trace("d", 2, errors=[{}]), trace(None, 2)]
    rows = list(replies_in({"traces": traces}))
    assert [row["reply"] for row in rows] == ["a", "c"]
    assert rows[0]["messages"] == [{"role": "user", "content": "?"}]


@pytest.mark.parametrize(
    "traces", [[{}], [3], {"a": 1}, [{"rewards": {"x": {"weight": 1}}, "nodes": [], "info": {}}]]
)
def test_a_line_that_is_no_episode_is_named(tmp_path, traces):
    file = tmp_path / "t.jsonl"
    file.write_text(json.dumps({"traces": traces}) + "\n")
    with pytest.raises(DataError, match=r"t\.jsonl, line 1: not an episode"):
        read_traces([file])
