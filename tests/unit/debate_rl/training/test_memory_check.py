"""The estimate is compared with what a GPU counts, once."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from debate.types import TurnId
from debate_rl.training import memory_check
from debate_rl.training.estimate import LiveBytes, learning_bytes
from debate_rl.training.memory_check import checked_step
from learner import Learner, LearnerConfig, Row
from learner.update.batches import micro_batches
from learner.update.forward import action_logprobs


def row(length: int, agent: int) -> Row:
    mask, ones = np.arange(length) >= length // 2, np.ones(length, np.float32)
    ids = np.arange(length) % 7
    return Row(ids, mask, -ones, mask * ones, mask.astype(np.int8), "p", 0, TurnId(agent, 0))


ROWS = [row(length, agent) for agent, length in enumerate((20, 40, 30, 40))]


@pytest.fixture
def session(make_tiny):
    model, _ = make_tiny(layers=2)
    learner = Learner(model, LearnerConfig(micro_batch_tokens=80, warmup_steps=0))
    return SimpleNamespace(model=model, learner=learner, memory_checked=False)


def counting(peak: float) -> SimpleNamespace:
    """Return what answers as torch.cuda does where a kilobyte is held and learning takes so much more."""
    return SimpleNamespace(
        reset_peak_memory_stats=lambda device: None,
        memory_allocated=lambda device: 1000,
        max_memory_allocated=lambda device: 1000 + int(peak),
    )


def test_the_estimate_of_rows_is_what_real_ones_take(session):
    model = session.model
    largest = micro_batches(ROWS, 80)[0]
    assert largest.positions == 80
    with LiveBytes(model) as counted:
        for _ in range(2):
            action_logprobs(model, largest)[0].sum().backward()
    assert learning_bytes(model, ROWS, session.learner.config) == pytest.approx(counted.peak, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(("times", "warned"), [(1.0, False), (1.1, False), (1.3, True), (0.8, True)])
def test_what_a_gpu_counts_is_logged_once_and_told_where_it_is_far_away(times, warned, session, monkeypatch):
    estimated = learning_bytes(session.model, ROWS, session.learner.config)
    monkeypatch.setattr(memory_check, "gpu_of", lambda model: counting(times * estimated))
    assert "memory/learning" not in checked_step(session, ROWS)  # Adam's moments are made in this step
    with warnings.catch_warnings(record=True, action="always") as notes:
        metrics = checked_step(session, ROWS)
    assert metrics["memory/learning"] == pytest.approx(times * estimated / 2**30, rel=1e-3)
    assert metrics["memory/learning_estimated"] == estimated / 2**30
    assert [str(note.message).startswith("learning took ") for note in notes] == [True] * warned
    assert "memory/learning" not in checked_step(session, ROWS)


@pytest.mark.parametrize("error", [RuntimeError("it looks at its data\nat"), AttributeError()])
def test_a_model_that_cannot_be_counted_learns_all_the_same(error, session, monkeypatch):
    def looking(*_):
        raise error

    monkeypatch.setattr(memory_check, "gpu_of", lambda model: counting(1))
    monkeypatch.setattr(memory_check, "learning_bytes", looking)
    assert checked_step(session, ROWS)["updates"] == 1
    with pytest.warns(UserWarning, match=f": {type(error).__name__}: (it looks at its data)?$"):
        assert checked_step(session, ROWS)["updates"] == 1
    assert session.memory_checked


def test_nothing_is_counted_on_a_cpu(session):
    checked_step(session, ROWS)
    assert "memory/learning" not in checked_step(session, ROWS)
    assert not session.memory_checked
