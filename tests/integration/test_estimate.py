"""The estimate is told before the first step, and not when nothing is left to do."""

import json
import re

import pytest

from debate_rl.metrics.held_out import read_held_out, sentences


def test_a_plan_starts_nothing(debate_command, tiny_recipe, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = debate_command("train", tiny_recipe, "--plan", "held_out.every=1")
    assert (code, err, list(tmp_path.iterdir())) == (0, "", [])
    head, _, *lines = out.splitlines()
    assert head.startswith("runs/debate: 2 steps of 2 problems x 2 debates; ")
    assert [line.split()[0] for line in lines] == ["model", "memory", "work", "disk", "time"]
    assert " of 80.0 GiB, " in debate_command("train", tiny_recipe, "--plan", "--memory", "80").out
    for given in (["--memory", "80"], ["--plan", "--memory", "0"], ["--plan", "--memory", "nan"]):
        code, out, err = debate_command("train", tiny_recipe, *given)
        assert (code, out, err.startswith(f"debate: --memory {given[-1]}: ")) == (2, "", True)
    monkeypatch.setattr("debate_rl.curriculum.train.lacks_gpu", lambda config: True)
    assert "which has no GPU" in debate_command("train", tiny_recipe, "--plan").out


@pytest.mark.slow
def test_a_run_that_does_not_fit_is_refused_before_its_model_is_loaded(
    debate_command, tiny_recipe, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("debate_rl.forecast.plan.memory_there", lambda _: 1 << 20)
    with monkeypatch.context() as patch:
        patch.setattr("debate_rl.training.open_or_resume.make_policy", None)  # whoever loads the model fails
        code, out, err = debate_command("train", tiny_recipe)
    assert (code, out, list(tmp_path.iterdir())) == (2, "", [])
    assert "of 1.0 MiB, with its peak in learning" in err.splitlines()[-1]
    assert err.splitlines()[-1].endswith("or allow it with train.over_memory=true")
    code, _, err = debate_command("train", tiny_recipe, "train.over_memory=true")
    assert code == 0
    assert "          learner.gradient_checkpointing = true was chosen\n" in err
    facts = json.loads((tmp_path / "runs/debate/run.json").read_text())
    assert facts["chosen"] == {"learner.gradient_checkpointing": True}
    assert "  more than is available: lower learner.micro_batch_tokens or debate.max_tokens\n" in err
    assert debate_command("train", "runs/debate", "train.over_memory=false")[0] == 0  # all is done


def test_train_estimates_and_evaluates_first_and_ends_with_what_changed(
    debate_command, tiny_recipe, tmp_path
):
    command = ("train", tiny_recipe, f"run.dir={tmp_path / 'run'}", "held_out.every=9", "held_out.limit=3")
    code, out, err = debate_command(*command)
    assert code == 0
    start, *lines = err.splitlines()
    assert start == f"{tmp_path / 'run'}: 2 steps of 2 problems x 2 debates"
    order = (
        "estimate, ",
        "loading the model",
        "  time ",
        f"to watch it: debate inspect {tmp_path / 'run'} --web",
        "evaluating 3 ",
        "before the first step  held out (3",
    )
    order += ("step 0 (1 of 2 done)", "step 1 (2 of 2 done)")
    places = [[line.startswith(words) for line in lines].index(True) for words in order]
    assert places == sorted(places)
    assert re.search(r": 2 steps of .*\), 2 evaluations of .*; from a short probe", lines[places[2]])
    first, *others = out.splitlines()
    kept = read_held_out(tmp_path / "run")
    assert [first, *others[: len(sentences(kept)) - 1]] == sentences(kept)
    assert " before the first step -> " in first
    again = debate_command(*command)
    times = re.compile(r"(  ended .*; ).*")  # both starts took their time
    assert (again[0], times.sub(r"\1", again[1])) == (0, times.sub(r"\1", out))
    assert again[2].splitlines() == [start, "loading the model", "resuming after 2 of 2 steps"]
