"""Which steps are saved where the next one fails."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from debate_rl.backends.service import ServiceError
from debate_rl.training import loop
from debate_rl.training.run import Run


@pytest.mark.parametrize(("steps", "halfway", "saved"), [(2, False, [2]), (2, True, []), (3, False, [])])
def test_steps_are_saved_only_with_the_weights_that_they_ended_with(steps, halfway, saved):
    """The third step fails: before its first update, between two, and once the learner has counted it."""
    found = []
    parts = {"sampler": SimpleNamespace(memory={}), "learner": SimpleNamespace(steps=steps, halfway=halfway)}
    session = SimpleNamespace(step=2, ema={"truth/A": 0.5}, **parts)
    session.save_finished = lambda: found.append(session.step)

    def fail() -> None:
        with Run.finished_steps_saved(session):
            session.ema["truth/A"] = 0.7
            raise RuntimeError("no figures")

    with pytest.raises(RuntimeError, match="no figures"):
        fail()
    assert found == saved
    assert session.ema == {"truth/A": 0.5}


def test_a_service_that_fails_while_it_publishes_ends_the_run_with_what_is_saved(monkeypatch):
    async def update(model, version):
        raise ServiceError("the server did not answer")

    run = SimpleNamespace(policy=SimpleNamespace(update=update), model=None, step=3, end_recorded=nullcontext)
    run.saved_words = lambda: "2 of 9 steps are saved"
    monkeypatch.setattr(loop, "_end_of_steps", lambda run, task: Run.publish(run, 4))
    with pytest.raises(ServiceError, match=r"^step 3: the server did not answer; 2 of 9 steps are saved$"):
        loop.train_steps(run)
