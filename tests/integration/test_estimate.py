"""The estimate is told before the first step, and not when nothing is left to do."""


def test_train_tells_the_estimate_first(debate_command, tiny_recipe, tmp_path):
    command = ("train", tiny_recipe, f"run.dir={tmp_path / 'run'}")
    code, _, err = debate_command(*command)
    assert code == 0
    first, memory, seconds, step = err.splitlines()[:4]
    assert first.startswith("estimate, if every reply spends its 24 tokens and prompts have up to ")
    assert memory.startswith("  memory  about ")
    assert seconds.startswith("  time    about ")
    assert step.startswith("step 0 (1 of 2 done)")
    code, out, err = debate_command(*command)
    assert (code, err) == (0, "")
    assert out.startswith("done: 2 steps")
