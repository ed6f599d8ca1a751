"""``debate judge``: votes on rollouts of other tools, from the file to the inspector."""

import json
import re
import shutil
from pathlib import Path

import pytest

from debate.policies import ScriptedPolicy

from .conftest import write_recipe

DATA = Path(__file__).parents[1] / "data/rollouts"
SERVER = {"policy": "openai", "name_or_path": "any", "server": {"base_url": "http://127.0.0.1:9/v1"}}
RECIPE = {
    "env": {"kind": "gsm8k"},
    "debate": {"num_agents": 3, "num_rounds": 2, "max_tokens": 60, "context_tokens": 8000},
    "model": SERVER,
}
SOLUTION = re.compile(r'<work agent="(\w+)"[^>]*>\s*<solution>(.*?)</solution>', re.DOTALL)


def prefers_short(request):
    shown = dict(SOLUTION.findall(request.messages[-1].content))
    first, second = sorted(shown, key=lambda label: len(shown[label]))
    return f"<evaluation>-</evaluation><comparison>{first} > {second}</comparison>"


@pytest.fixture
def judge(tmp_path, monkeypatch, debate_command):
    """Return judge(*words) -> (code, lines, stderr, the requests to the judge)."""
    monkeypatch.chdir(tmp_path)
    write_recipe(tmp_path / "r.toml", RECIPE)
    for path in DATA.glob("*.*l"):
        shutil.copy(path, tmp_path)

    def call(*words):
        policy = ScriptedPolicy(prefers_short)
        monkeypatch.setattr("debate_rl.evaluation.asking.open_policy", lambda *_: policy)
        return *debate_command("judge", *words, "--judge", "r.toml"), policy.requests

    return call


@pytest.mark.parametrize("name", ["traces.jsonl", "sums.eval"])
def test_votes_on_the_rollouts_of_other_tools(judge, debate_command, name):
    code, out, err, asked = judge(name, "--json", "v.json", "--out", "votes")
    assert (code, len(asked)) == (0, 6), err
    found = json.loads(Path("v.json").read_text())
    assert (found["problems"], found["mixed"], found["responses"]) == (2, 2, 6)
    assert found["figures"]["all"]["votes_valid"]["value"] == 1.0
    assert found["figures"]["all"]["mean"]["value"] == 0.5
    assert found["figures"]["all"]["winner"]["value"] == 0.5  # the shortest is right in one of two problems
    assert "accuracy of the vote winner" in out
    assert "No vote counts" not in out
    assert out.splitlines()[-1] == "debate inspect votes"
    code, again, _, asked = judge(name, "--out", "votes")
    assert (code, again, asked) == (0, out, [])
    shown = debate_command("inspect", "votes", "ls", "--json")[1].splitlines()
    assert [json.loads(line)["winner"] for line in shown].count("right") == 1
    code, shown, _ = debate_command("inspect", "votes", "show", "0.0", "--prompts")
    assert code == 0
    assert "Response 3" in shown
    assert "This is the final ballot." in shown
    code, out, err, _ = judge(name, "--out", "votes", "--seed", "2")
    assert code == 2
    assert "contains an evaluation with other seeds" in err


def test_a_judge_that_writes_no_vote_is_called_out(judge, monkeypatch):
    monkeypatch.setitem(globals(), "prefers_short", lambda request: "no idea")
    code, out, err, _ = judge("traces.jsonl", "--out", "votes")
    assert code == 0, err
    assert "No vote counts: no reply of the judge has a valid comparison" in out


@pytest.mark.parametrize("name", ["traces.jsonl", "sums.eval", "sums.json"])
def test_a_file_is_inspected_without_a_judge(debate_command, name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    code, out, err = debate_command("inspect", DATA / name, "ls", "accuracy:>0", "--json")
    found = [json.loads(line) for line in out.splitlines()]
    assert (code, found[0]["votes"], found[0]["winner"]) == (0, 0, "none"), err
    assert {one["gold"] for one in found} == ({"7"} if name == "sums.json" else {"7", "8"})
    shown = debate_command("inspect", DATA / name, "show", "0.0").out
    assert "Response 2" in shown
    assert "malformed:" not in shown
    code, _, err = debate_command("inspect", write_recipe(tmp_path / "r.toml", RECIPE), "ls")
    assert (code, err.count("\n")) == (2, 1)
    assert "r.toml, line 1: is not JSON" in err


def test_the_result_as_a_page_in_html(judge, debate_command):
    pytest.importorskip("starlette")
    judge("sums.eval", "--out", "votes")
    code, out, err = debate_command("inspect", "votes", "--export", "votes.html")
    assert (code, out) == (0, "votes.html: 2 debates\n"), err
    page = Path("votes.html").read_text()
    assert "Response 2" in page
    assert "not &lt;b&gt;12&lt;/b&gt;" in page
    assert "<b>12</b>" not in page


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["none.jsonl"], "none.jsonl"),
        (["sums.eval", "debate.num_agents=2"], "the judge has no ballots: debate.num_agents = 2"),
        (["one.jsonl"], "one.jsonl: no problem has two responses, so there is nothing to compare"),
        (["bad.jsonl"], "bad.jsonl, line 1: response: is missing"),
    ],
)
def test_a_mistake_is_one_line(judge, words, problem):
    Path("one.jsonl").write_text('{"question": "1 + 1?", "response": "2"}\n')
    Path("bad.jsonl").write_text('{"question": "1 + 1?"}\n')
    code, _, err, asked = judge(*words)
    assert (code, asked, err.count("\n")) == (2, [], 1)
    assert problem in err
