"""Debates as an environment of verifiers, its advantages, and a taskset of verifiers as problems here."""

import asyncio
import json
import os
import subprocess
from pathlib import Path

import pytest

from debate.policies import Answers, scripted_debaters
from debate.types import Message, SampleRequest, TurnId
from debate_rl.inference.openai import restored
from debate_rl.judging.rollouts import read_rollouts

from ..integration.model_server import Answer, chat, serving

HOME = Path(__file__).parents[2]
VERIFIERS = HOME / ".venv-verifiers"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (VERIFIERS / "installed").exists(), reason="no verifiers in .venv-verifiers; make engines"
    ),
]
TASKSET = """
import verifiers.v1 as vf

__all__ = ["EchoTaskset"]


class EchoData(vf.TaskData):
    answer: str


class EchoTask(vf.Task[EchoData]):
    @vf.reward(weight=0.5)
    async def says_it(self, trace: vf.Trace) -> float:
        return float(self.data.answer in trace.last_reply)

    @vf.reward(weight=0.5)
    async def is_short(self, trace: vf.Trace) -> float:
        return float(len(trace.last_reply) < 40) if "boom" not in trace.last_reply else 1 / 0


class EchoTaskset(vf.Taskset[EchoTask, vf.TasksetConfig]):
    def load(self):
        for n in range(100):
            yield EchoTask(EchoData(prompt=f"Say word{n}.", system_prompt="Be brief.", answer=f"word{n}"))
"""
GRADED = """
import json
from envs import load_environment
tasks = load_environment("verifiers:echo-tasks")
splits = {split: tasks.problems(split=split) for split in ("train", "validation", "test")}
one = tasks.problems(split="train", limit=1, seed=1)[0]
said = [one.answer, "no", one.answer + " " * 3 + "x" * 50, "boom", None]
grades = [tasks.grade(one, text) for text in said]
print(json.dumps({
    "sizes": [len(of) for of in splits.values()],
    "questions": len({p.question for of in splits.values() for p in of}),
    "question": one.question,
    "grades": [[grade.status, grade.score] for grade in grades],
}))
"""

READ_BACK = """
import json
import verifiers.v1 as vf
from inspect_ai.log import read_eval_log
episodes = [vf.WireEpisode.model_validate_json(line) for line in open("own.jsonl")]
traces = [trace for one in episodes for trace in one.traces]
log = read_eval_log("own.eval")
print(json.dumps({
    "rewards": sorted(trace.reward for trace in traces),
    "replies": sorted(trace.assistant_messages[-1].content for trace in traces),
    "samples": len(log.samples),
    "scored": sum("winner" in one.scores for one in log.samples),
}))
"""


def run(*command, cwd, **environment):
    """Return what a command in verifiers' environment prints."""
    ran = subprocess.run(
        [VERIFIERS / "bin" / command[0], *map(str, command[1:])],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(HOME), str(cwd))), **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_a_taskset_is_an_environment(tmp_path):
    (tmp_path / "echo_tasks.py").write_text(TASKSET)
    found = json.loads(run("python", "-c", GRADED, cwd=tmp_path))
    assert sum(found["sizes"]) == found["questions"] == 100
    assert found["sizes"][0] > 50 > found["sizes"][2] > 5
    assert found["question"].startswith("Be brief.\n\nSay word")
    wanted = [["correct", 1.0], ["wrong", 0.5], ["wrong", 0.5], ["crash", None], ["missing", 0.0]]
    assert found["grades"] == wanted


def test_advantages_on_traces_are_those_of_our_rows_to_the_bit():
    found = json.loads(run("python", Path(__file__).with_name("verifiers_advantages.py"), cwd=HOME))
    assert found["traces"] == 108
    assert found["signals"] > 40
    assert found["differ"] == 0


def test_vf_eval_holds_debates_that_our_inspector_opens(tmp_path):
    policy = scripted_debaters({"p": Answers("1 2", ("3 4",))}, prompts="tiny")

    def answer(asked):
        if not asked.path.endswith("completions"):
            return Answer({"object": "list", "data": [{"id": "tiny", "object": "model"}]})
        body = asked.body
        messages = tuple(Message(one["role"], one["content"]) for one in body["messages"])
        limits = body["temperature"], body["max_tokens"], tuple(body["stop"]), body["seed"]
        request = SampleRequest(messages, *limits, "x:p", TurnId(0, 0))
        text = asyncio.run(policy.sample(request)).text
        reply = chat(text.removesuffix(body["stop"][0]))  # servers leave the stop string out
        reply["usage"]["total_tokens"] = 14
        return Answer(reply | {"id": "c", "object": "chat.completion", "created": 0, "model": "tiny"})

    with serving(answer) as server:
        words = ["debate-rl", "-m", "tiny", "--no-push", "-n", 2, "-r", 2, "--client.base-url", server.url]
        words += ["--env.taskset.split", "held_out", "--env.taskset.settings", '["debate.num_agents=2"]']
        run("vf-eval", *words, cwd=tmp_path, OPENAI_API_KEY="none")
        seeds = [one.body["seed"] for one in server.asked if one.path.endswith("completions")]
    [traces] = tmp_path.glob("outputs/*/traces.jsonl")
    episodes = [json.loads(line) for line in traces.read_text().splitlines()]
    assert len(episodes) == 4
    assert all(one["ok"] for one in episodes)
    assert len(set(seeds)) == len(seeds) == sum(len(one["traces"]) for one in episodes)
    rewards = [trace["rewards"] for one in episodes for trace in one["traces"]]
    assert {name for one in rewards for name in one} >= {"truth", "format"}
    run("python", "-m", "debate_rl", "traces", traces, "--format", "run", "--out", "runs/vf", cwd=tmp_path)
    shown = run("python", "-m", "debate_rl", "inspect", "runs/vf", "ls", cwd=tmp_path)
    assert shown.count("pair_sum-") == 4
    for form, file in {"verifiers": "own.jsonl", "inspect": "own.eval"}.items():
        run("python", "-m", "debate_rl", "traces", "runs/vf", "--format", form, "--out", file, cwd=tmp_path)
    back = json.loads(run("python", "-c", READ_BACK, cwd=tmp_path))
    assert back["rewards"] == sorted(sum(one["score"] for one in of.values()) for of in rewards)
    assert back["replies"] == sorted(
        restored(trace["nodes"][-1]["message"]["content"], ["</solution>", "</evaluation>", "</comparison>"])
        for one in episodes
        for trace in one["traces"]
    )
    assert (back["samples"], back["scored"]) == (4, 4)
    refused = subprocess.run(
        [VERIFIERS / "bin/vf-eval", *map(str, words[:-1]), '["debate.thinking_tokens=64"]'],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(HOME)},
        capture_output=True,
        text=True,
    )
    assert refused.returncode != 0
    assert "debate.thinking_tokens: debates in verifiers cannot use this value" in refused.stderr


def test_rollouts_that_the_installed_versions_write_can_be_judged(tmp_path):
    """``tests/data/rollouts`` has files of these versions; a newer version may write others."""
    run("python", HOME / "tests/data/rollouts/make.py", tmp_path, cwd=tmp_path, HOME=str(tmp_path))
    for name, count in {"traces.jsonl": 2, "sums.eval": 2, "sums.json": 1}.items():
        new, kept = (read_rollouts(of / name) for of in (tmp_path, HOME / "tests/data/rollouts"))
        said = [
            [(one.problem.question, one.problem.answer, sorted(one.responses)) for one in found.groups]
            for found in (new, kept)
        ]
        assert said[0] == said[1]
        assert len(said[0]) == count
