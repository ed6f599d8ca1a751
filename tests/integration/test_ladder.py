"""``debate eval ladder``: its tables, that it resumes, and what it refuses."""

from __future__ import annotations

import json
import re

import pytest

from debate.policies.scripted import ScriptedPolicy

RECIPE = """
[env]
kind = "file"
path = "train.jsonl"
[held_out]
kind = "file"
path = "train.jsonl"
limit = 6
[debate]
num_agents = 3
num_rounds = 2
max_tokens = 200
context_tokens = 8000
[model]
policy = "openai"
name_or_path = "any"
server = { base_url = "http://127.0.0.1:9/v1" }
"""
ROWS = [{"id": f"n{n}", "question": f"What is {n} + 2?", "answer": f"{n + 2}"} for n in range(6)]


class Learns(ScriptedPolicy):
    """Wrong in two of three solutions; right in a debate where any work shown is right, and a true judge."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        super().__init__(self.reply, tokens=True)

    def reply(self, request):
        if self.stop_after is not None and len(self.requests) > self.stop_after:
            raise KeyboardInterrupt
        text = request.messages[-1].content
        right = int(re.search(r"What is (\d+)", text)[1]) + 2
        shown = dict(re.findall(r'<work agent="(\w+)" .*?boxed\{(.*?)\}', text, re.DOTALL))
        said = (
            right if str(right) in shown.values() or request.seed % 3 == 0 else right + 1 + request.seed % 2
        )
        ranked = sorted(shown, key=lambda label: shown[label] != str(right))
        votes = f"<comparison>{' > '.join(ranked)}</comparison>" if len(ranked) > 1 else ""
        return f"<solution>\\boxed{{{said}}}</solution><evaluation>-</evaluation>{votes}"


@pytest.fixture
def climber(tmp_path, monkeypatch, debate_command):
    """Return climb(*words, stop_after=None) -> (code, lines, stderr, policy)."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.toml").write_text(RECIPE)
    (tmp_path / "train.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))

    def call(*words, stop_after=None):
        policy = Learns(stop_after)
        monkeypatch.setattr("debate_rl.evaluation.asking.open_policy", lambda *_: policy)
        return *debate_command("eval ladder", *words), policy

    return call


@pytest.mark.slow
def test_a_ladder_has_every_rung_at_equal_cost(climber, tmp_path):
    code, out, err, first = climber("r.toml", "--samples", "4", "--json", "l.json")
    assert code == 0, err
    [found] = json.loads((tmp_path / "l.json").read_text())
    rungs = {rung["strategy"]: rung for rung in found["strategies"]}
    assert len(rungs) == 9
    assert rungs["debate_majority"]["accuracy"]["value"] > rungs["majority"]["accuracy"]["value"]
    for rung in rungs.values():
        for budget, compared in rung["equal"].items():
            cost = rung["generated"] + (rung["read"] if budget == "total" else 0)
            assert compared["samples"] == pytest.approx(max(1, cost / found["one_solution"][budget]))
    [folder] = (tmp_path / "evaluations").glob("*/model-*")
    assert json.loads((folder / "figures.json").read_text()).items() <= found.items()
    code, again, _, policy = climber("r.toml", "--samples", "4")
    assert (again, policy.requests) == (out, [])  # the replies are kept
    lines = (folder / "replies.jsonl").read_text().splitlines()
    assert len({json.loads(line)["request"] for line in lines}) == len(lines) == len(first.requests)


@pytest.mark.slow
def test_a_ladder_that_was_stopped_goes_on_and_asks_nothing_twice(climber, tmp_path):
    words = ("r.toml", "--rungs", "greedy,debate_winner", "--samples", "2", "--out", "l", "--json", "l.json")
    code, _, err, _ = climber(*words, stop_after=20)
    assert code == 130
    assert "l keeps " in err
    code, _, _, rest = climber(*words)
    assert code == 0
    [stopped] = json.loads((tmp_path / "l.json").read_text())
    climber(*words[:-4], "--out", "other", "--json", "l.json")
    [straight] = json.loads((tmp_path / "l.json").read_text())
    asked = [json.loads(line)["request"] for line in (tmp_path / "l/replies.jsonl").read_text().splitlines()]
    assert len(asked) == len(set(asked)) == 20 + len(rest.requests)
    for one, other in zip(stopped["strategies"], straight["strategies"], strict=True):
        same = ("strategy", "accuracy", "generated", "read", "oracle_gap")
        assert {name: one[name] for name in same} == {name: other[name] for name in same}
        for budget in ("generated", "total"):
            assert one["equal"][budget] == other["equal"][budget]


def test_rungs_that_the_protocol_does_not_allow_are_said_and_not_climbed(climber, tmp_path):
    words = ("r.toml", "debate.num_agents=2", "debate.num_rounds=1", "debate.final_ballot=false")
    code, out, _, _ = climber(*words, "--problems", "2", "--samples", "2", "--json", "l.json")
    assert code == 0
    [found] = json.loads((tmp_path / "l.json").read_text())
    assert {rung["strategy"] for rung in found["strategies"]} == {
        *("single", "greedy", "majority", "genselect", "debate_majority", "debate_winner")
    }
    assert "self_correction: left out: debate.num_rounds = 1 has nobody revise anything" in out
    assert found["problems"] == 2


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["r.toml", "--rungs", "swis"], "--strategies swis: is not known; did you mean 'swiss'?"),
        (["r.toml", "r.toml"], "r.toml: is named twice"),
        (["r.toml", "--weights", "best"], "--weights best: r.toml is a recipe"),
        (["r.toml", "--on", "gsm8k=none.jsonl"], "none.jsonl"),
        (["r.toml", "--out", "train.jsonl"], "train.jsonl"),
        (["r.toml", "held_out.limit=0"], "there are no problems to evaluate on"),
    ],
)
def test_a_mistake_is_one_line(climber, words, line):
    code, _, err, _ = climber(*words)
    assert code == 2
    assert line in err.splitlines()[-1], err
