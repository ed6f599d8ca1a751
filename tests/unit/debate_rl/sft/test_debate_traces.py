"""Which turns of stored debates become traces, and that their prompts are those that were read."""

import json

import pytest

from debate import DebateConfig, Problem, run_debates
from debate.policies.scripted import Answers, scripted_debaters
from debate_rl.runs.provenance import prompts_checksum
from debate_rl.sft.examples import examples_of
from debate_rl.sft.harvests import debate_turns, read_traces, write_traces
from envs.data.records import read_files
from rewards import RewardConfig, score_debate
from transcripts import Record, write_step

PROBLEMS = [Problem(f"sum/{n}", f"What is {n} + 1?", str(n + 1), "sums/small", "1") for n in range(3)]


class Listening:
    """A policy that writes down what it was asked."""

    def __init__(self, policy):
        self._policy, self.asked = policy, {}

    def __getattr__(self, name):
        return getattr(self._policy, name)

    async def sample(self, request):
        self.asked[request.debate, request.turn] = request.messages
        return await self._policy.sample(request)


@pytest.fixture
def played(tmp_path):
    """A run of three debates, what was asked in them, and their records."""
    config = DebateConfig(num_agents=3, num_rounds=2)
    answers = {p.id: Answers(str(p.answer), ("5", "6")) for p in PROBLEMS}
    scripted = scripted_debaters(answers, solve=(0.6,) * 3, judge=0.7)
    policy, records = Listening(scripted), []
    for debate in run_debates(PROBLEMS, policy, config, seed=3):
        solved = [turn for turn in debate.turns if not turn.ballot]
        grades = {turn.id: turn.parsed.answer == debate.problem.answer for turn in solved}
        table = tuple(tuple(g for t, g in grades.items() if t.agent == agent) for agent in range(3))
        records.append(Record(debate, 0, "g", table, score_debate(debate, table, RewardConfig())))
    write_step(tmp_path / "transcripts", 0, records, tokens=False, seal=True)
    facts = {"data": {"prompts: default": prompts_checksum("default")}, "starts": []}
    (tmp_path / "run.json").write_text(json.dumps(facts))
    return tmp_path, policy.asked, records


def test_each_kept_turn_is_right_and_stands_behind_the_prompt_that_it_read(played):
    run, asked, records = played
    harvest = debate_turns(run)
    assert harvest.asked.total() == 3 * 9  # three agents, two rounds and a ballot
    assert 3 < len(harvest.traces) < 27
    prompts = {tuple(m.content for m in messages) for messages in asked.values()}
    for trace in harvest.traces:
        assert tuple(message["content"] for message in trace["messages"]) in prompts
        assert (trace["grade"], trace["level"]) == ("right", "1")
    turns = [(agent, round_) for agent in range(3) for round_ in range(2)]
    solved = {(r.debate.problem.id, f"{a}.{n}"): r.correct[a][n] for r in records for a, n in turns}
    kept = {(trace["id"], trace["turn"]) for trace in harvest.traces}
    opening = {key for key in solved if key[1].endswith(".0")}
    assert kept & opening == {key for key in opening if solved[key]}
    later = {key for key in solved if key[1].endswith(".1")}
    assert kept & later < {key for key in later if solved[key]}  # a wrong vote leaves a right solution out
    assert any(turn.endswith(".2") for _, turn in kept)


def test_the_traces_are_learnt_as_they_were_said_and_of_their_problem(played, tmp_path):
    run, _, _ = played
    harvest = debate_turns(run)
    write_traces(tmp_path / "traces.jsonl", harvest.traces)
    assert read_traces([tmp_path / "traces.jsonl"]) == harvest.traces
    for row, trace in zip(read_files([tmp_path / "traces.jsonl"], {}), harvest.traces, strict=True):
        [example] = examples_of(row)
        assert (example.reply, example.problem.question) == (trace["reply"], trace["question"])
        assert [message.content for message in example.messages] == [m["content"] for m in trace["messages"]]
