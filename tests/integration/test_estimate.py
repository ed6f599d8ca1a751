"""The estimate is told before the first step, and not when nothing is left to do."""

from debate_rl.tracking.held_out import read_held_out, sentences


def test_train_tells_the_estimate_first(debate_command, tiny_recipe, tmp_path):
    command = ("train", tiny_recipe, f"run.dir={tmp_path / 'run'}")
    code, _, err = debate_command(*command)
    assert code == 0
    start, first, memory, seconds, step = err.splitlines()[:5]
    assert start == f"{tmp_path / 'run'}: 2 steps of 2 problems x 2 debates; loading the model"
    assert first.startswith("estimate, if every reply spends its 24 tokens and prompts have up to ")
    assert memory.startswith("  memory  about ")
    assert seconds.startswith("  time    about ")
    assert step.startswith("step 0 (1 of 2 done)")
    code, out, err = debate_command(*command)
    assert (code, err.splitlines()) == (0, [start, "resuming after 2 of 2 steps"])
    assert out.startswith("done: 2 steps")  # this recipe never evaluates


def test_train_evaluates_first_and_ends_with_what_changed(debate_command, tiny_recipe, tmp_path):
    command = ("train", tiny_recipe, f"run.dir={tmp_path / 'run'}", "held_out.every=9", "held_out.limit=3")
    code, out, err = debate_command(*command)
    assert code == 0
    told = err.splitlines()[4:8]
    assert "s for each of 2 evaluations of 3 held-out problems, one before the first step" in told[0]
    assert told[1] == "evaluating 3 held-out problems before the first step"
    assert told[2].startswith("before the first step  held out (3 problems): direct accuracy ")
    assert told[3].startswith("step 0 (1 of 2 done)")
    first, *others = out.splitlines()
    kept = read_held_out(tmp_path / "run")
    assert [first, *others[: len(sentences(kept)) - 1]] == sentences(kept)
    assert " before the first step -> " in first
    again = debate_command(*command)
    assert (again[0], again[1]) == (0, out)
    assert again[2].splitlines()[1:] == ["resuming after 2 of 2 steps"]
