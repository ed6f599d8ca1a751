"""``debate doctor`` with a real tiny model: what it prints, leaves and returns."""

from __future__ import annotations

import json

import pytest


def checks_of(out: str) -> dict[str, dict[str, object]]:
    return {check["name"]: check for check in json.loads(out)["checks"]}


def test_the_inputs_alone_are_looked_at_without_sampling(tiny_recipe, debate_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = debate_command("doctor", tiny_recipe, "--quick")
    assert (code, err) == (0, "")
    assert out.splitlines()[0].startswith("ok            problems: 20; to train on, 2 held-out problems")
    assert out.splitlines()[-1].startswith("go: nothing is bad")
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_can_do_nothing_is_no_go_and_the_json_says_which_keys(
    tiny_recipe, debate_command, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    code, out, err = debate_command("doctor", tiny_recipe, "--problems", "3", "--json", "-")
    assert code == 1
    assert err.startswith("3 problems x 2 debates: 54 replies of at most 24 tokens")
    checks = checks_of(out)
    assert checks["base accuracy"]["verdict"] == "bad"
    assert checks["base accuracy"]["value"] == 0
    assert checks["valid comparisons"]["verdict"] == "bad"
    assert checks["judge"]["verdict"] == "not measured"
    assert checks["sampler and trainer"]["value"] < 0.01
    assert checks["forecast"]["why"].endswith("and has 3 of them")
    assert json.loads(out)["summary"].startswith("no go: base accuracy, some agent right")
    assert list(tmp_path.iterdir()) == []


def test_one_agent_alone_has_no_gates_of_votes(tiny_recipe, debate_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    alone = ("debate.num_agents=1", "debate.num_rounds=1", "rewards.truth_weight=1.0")
    code, out, _ = debate_command("doctor", tiny_recipe, *alone, "--problems", "2", "--json", "-")
    assert code == 1
    checks = checks_of(out)
    assert checks["judge"]["why"] == "nobody compares anything here: there are no votes to check"
    assert checks["base accuracy"]["verdict"] == "bad"


def test_what_a_start_would_refuse_is_a_check(tiny_recipe, debate_command):
    code, out, _ = debate_command("doctor", tiny_recipe, "train.on_alarm.kll=stop", "--quick", "--json", "-")
    assert code == 1
    start = checks_of(out)["start"]
    assert start["verdict"] == "bad"
    assert "did you mean 'kl'?" in str(start["why"])


def test_problems_or_an_engine_that_are_not_there_are_no_go(tiny_recipe, debate_command, monkeypatch):
    code, out, _ = debate_command(
        "doctor", tiny_recipe, "env.path=/nowhere.jsonl", "env.kind=gsm8k", "--json", "-"
    )
    assert (code, checks_of(out)["problems"]["verdict"]) == (1, "bad")
    assert "/nowhere.jsonl" in str(checks_of(out)["problems"]["why"])
    monkeypatch.setattr("debate_rl.engines.find_spec", lambda name: None)
    code, out, _ = debate_command("doctor", tiny_recipe, "model.policy=vllm", "--quick", "--json", "-")
    assert (code, checks_of(out)["start"]["verdict"]) == (1, "bad")
    assert "the package 'vllm' is not installed" in str(checks_of(out)["start"]["why"])


def test_what_cannot_be_looked_at_is_one_line_and_exit_code_2(tiny_recipe, debate_command):
    code, out, err = debate_command("doctor", tiny_recipe, "train.steps=many")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1


@pytest.mark.slow
def test_a_warm_start_is_announced_and_leaves_the_json_alone(debate_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    short = ("warm_start.solve_steps=50", "warm_start.solve_batch=2", "warm_start.debate_steps=0")
    _, out, err = debate_command("doctor", "quickstart", *short, "--problems", "1", "--json", "-")
    assert "base accuracy" in checks_of(out)
    lines = err.splitlines()
    assert lines[0].startswith("1 problem x 4 debates")
    assert lines[1] == "first the warm start of 50 steps, in memory, as a run would make it"
    assert lines[2] == "warm start 0/50"
    assert lines[3].startswith("warm start 50/50 in ")
    assert lines[4].startswith("warm start: loss ")


@pytest.mark.slow
def test_the_folder_of_a_run_is_looked_at_with_its_newest_weights(folder, debate_command):
    code, out, _ = debate_command("doctor", folder / "run", "--problems", "2", "--json", "-")
    assert code in (0, 1)
    assert "base accuracy" in checks_of(out)
