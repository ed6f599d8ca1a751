"""The estimate is told before the first step, and not when nothing is left to do."""


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
    assert out.startswith("done: 2 steps")
