import json

import pytest


@pytest.fixture
def doctor(tiny_recipe, debate_command, tmp_path, monkeypatch):
    """Return call(*words) -> (code, checks by name, stderr) of a doctor of the tiny recipe."""
    monkeypatch.chdir(tmp_path)

    def call(*words):
        code, out, err = debate_command("doctor", tiny_recipe, *words, "--json", "-")
        return code, checks_of(out), err

    return call


def checks_of(out: str) -> dict[str, dict[str, object]]:
    return {check["name"]: check for check in json.loads(out)["checks"]}


def test_the_inputs_alone_are_looked_at_without_sampling(tiny_recipe, debate_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = debate_command("doctor", tiny_recipe, "--quick")
    assert (code, err) == (0, "")
    assert out.splitlines()[0].startswith("ok            problems: 20; ")
    assert out.splitlines()[-1].startswith("go: no check is bad")
    assert list(tmp_path.iterdir()) == []
    code, out, err = debate_command("doctor", tiny_recipe, "train.steps=many")
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_a_model_that_can_do_nothing_is_no_go_and_the_json_says_which_keys(doctor, tmp_path):
    code, checks, err = doctor("--problems", "3")
    assert code == 1
    assert err.startswith("3 problems x 2 debates: 54 replies of at most 24 tokens")
    assert (checks["base accuracy"]["verdict"], checks["base accuracy"]["value"]) == ("bad", 0)
    assert checks["valid comparisons"]["verdict"] == "bad"
    assert "100% of turns lack valid form, most often cut (" in checks["valid comparisons"]["why"]
    assert checks["valid comparisons"]["set"].startswith("debate.max_tokens=48")
    assert checks["judge"]["verdict"] == "not measured"
    assert checks["sampler and trainer"]["value"] < 0.01
    assert list(tmp_path.iterdir()) == []


def test_one_agent_alone_has_no_gates_of_votes(doctor):
    alone = ("debate.num_agents=1", "debate.num_rounds=1", "rewards.truth_weight=1.0")
    code, checks, _ = doctor(*alone, "--problems", "2")
    assert (code, checks["base accuracy"]["verdict"]) == (1, "bad")
    assert "there are no votes to check" in checks["judge"]["why"]
    assert checks["valid comparisons"]["verdict"] == "warn"


@pytest.mark.parametrize(
    ("words", "check", "why"),
    [
        ("train.on_alarm.kll=stop --quick", "start", "did you mean 'kl'?"),
        ("env.path=/nowhere.jsonl env.kind=gsm8k", "problems", "/nowhere.jsonl"),
        ("model.policy=vllm --quick", "start", "the package 'vllm' is not installed"),
    ],
)
def test_what_a_start_would_refuse_is_a_check(doctor, monkeypatch, words, check, why):
    if "vllm" in words:
        monkeypatch.setattr("debate_rl.engines.find_spec", lambda name: None)
    code, checks, _ = doctor(*words.split())
    assert (code, checks[check]["verdict"]) == (1, "bad")
    assert why in checks[check]["why"]


@pytest.mark.slow
def test_a_warm_start_is_announced_and_leaves_the_json_alone(debate_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    short = ("warm_start.solve_steps=50", "warm_start.solve_batch=2", "warm_start.debate_steps=0")
    _, out, err = debate_command("doctor", "quickstart", *short, "--problems", "1", "--json", "-")
    assert "base accuracy" in checks_of(out)
    lines = err.splitlines()
    assert lines[0].startswith("1 problem x 4 debates")
    assert lines[1] == "starting with a warm start of 50 steps in memory, as in training"
    assert lines[2] == "warm start 0/50"
    assert lines[3].startswith("warm start 50/50 in ")
    assert lines[4].startswith("warm start: loss ")
