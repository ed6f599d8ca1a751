"""What is said of a first step whose sampler and trainer differ."""

from types import SimpleNamespace

import pytest
import torch

from debate_rl.config import Config
from debate_rl.training.loop import check_first_mismatch


def said(found: float, *, step=0, compute=None, policy=None, **train: object) -> list[str]:
    """Return what a session says of a step with such a mismatch."""
    model = {"name_or_path": "m", "device": "cpu", "policy": policy}
    config = Config.model_validate({"model": model, "train": train})
    lines: list[str] = []
    parts = {"learner": SimpleNamespace(compute=compute), "tracker": SimpleNamespace(say=lines.append)}
    session = SimpleNamespace(config=config, step=step, **parts)
    metrics = {"mismatch_kl": found, "mismatch_mean": 0.1, "mismatch_max": 5.5}
    check_first_mismatch(session, metrics)  # pyright: ignore[reportArgumentType]
    return lines


def test_rounding_and_later_steps_are_no_matter():
    assert said(0.01) == []
    assert said(0.5, step=1) == []


def test_more_than_rounding_is_one_line_at_the_first_step_with_cause_and_cure():
    [line] = said(0.056, compute=torch.bfloat16, policy="vllm")
    assert line.startswith("step 0: mismatch_kl is 0.056 nats per token, over 0.01: sampler and trainer give")
    assert "(mismatch_mean 0.1, mismatch_max 5.5)" in line
    assert line.endswith(
        "The learner multiplies in bfloat16, the engine in float32, and one of them loses small weight "
        'updates by rounding: set learner.compute = "float32"'
    )
    for alike in (said(0.056, policy="vllm"), said(0.056, compute=torch.bfloat16)):
        assert alike[0].endswith("temperature, model, adapter and numeric type are the same for both")


def test_beyond_the_limit_the_run_ends_with_the_same_cause():
    with pytest.raises(ValueError, match=r"step 0: .*over train.max_first_mismatch = 0.1: .* \"float32\""):
        said(0.2, compute=torch.bfloat16, policy="vllm")
    assert len(said(0.2, max_first_mismatch=None)) == 1
