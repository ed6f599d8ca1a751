"""``python -m experiments.ladder``: every rung with its controls, and the card."""

from __future__ import annotations

import json
import re
import runpy
import sys
import warnings

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
num_rounds = 2
max_tokens = 200
context_tokens = 8000
[model]
policy = "openai"
name_or_path = "any"
server = { base_url = "http://127.0.0.1:9/v1" }
"""


def reply(request):
    """Be wrong in two of three solutions, right where any work shown is right, and judge truly."""
    text = request.messages[-1].content
    right = int(re.search(r"What is (\d+)", text)[1]) + 2
    shown = dict(re.findall(r'<work agent="(\w+)" .*?boxed\{(.*?)\}', text, re.DOTALL))
    known, wrong = str(right) in shown.values() or request.seed % 3 == 0, right + 1 + request.seed % 2
    ranked = sorted(shown, key=lambda label: shown[label] != str(right))
    votes = f"<comparison>{' > '.join(ranked)}</comparison>" if len(ranked) > 1 else ""
    return f"<solution>\\boxed{{{right if known else wrong}}}</solution><evaluation>-</evaluation>{votes}"


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """Return call(*words) -> (exit code, stdout, stderr), run in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)  # ``run`` sets its own
    (tmp_path / "r.toml").write_text(RECIPE)
    rows = [{"id": f"n{n}", "question": f"What is {n} + 2?", "answer": f"{n + 2}"} for n in range(6)]
    (tmp_path / "train.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    monkeypatch.setattr(
        "debate_rl.evaluation.asking.open_policy", lambda *_: ScriptedPolicy(reply, tokens=True)
    )

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["ladder", *words])
        with pytest.raises(SystemExit) as ended:
            runpy.run_module("experiments.ladder", run_name="__main__")
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, said.err

    return call


def test_an_unknown_rung_is_one_line(command):
    code, _, err = command("r.toml", "--rungs", "one_person")
    assert code == 2
    assert "did you mean 'one_persona'?" in err.splitlines()[-1]


@pytest.mark.slow
def test_every_rung_is_climbed_and_the_card_has_every_claim(command, tmp_path):
    code, out, err = command("r.toml", "--samples", "4", "--json", "l.json")
    assert code == 0, err
    found = json.loads((tmp_path / "l.json").read_text())
    rungs = {rung["strategy"]: rung["accuracy"]["value"] for rung in found["strategies"]}
    assert len(rungs) == 11
    assert rungs["debate_majority"] > rungs["noise_debate"]
    assert all(claim["claim"][:30] in out for claim in found["claims"])
    assert {claim["outcome"] for claim in found["claims"]} <= {"holds", "not shown", "fails", "not tested"}
