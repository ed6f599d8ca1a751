"""Which steps are saved where the next one fails."""

from types import SimpleNamespace

import pytest

from debate_rl.training.run import Run


@pytest.mark.parametrize(("steps", "halfway", "saved"), [(2, False, [2]), (2, True, []), (3, False, [])])
def test_steps_are_saved_only_with_the_weights_that_they_ended_with(steps, halfway, saved):
    """The third step fails: before its first update, between two, and once the learner has counted it."""
    found = []
    session = SimpleNamespace(
        step=2,
        ema={"truth/A": 0.5},
        sampler=SimpleNamespace(memory={}),
        learner=SimpleNamespace(steps=steps, halfway=halfway),
        save_finished=lambda: found.append(session.step),
    )

    def fail() -> None:
        with Run.finished_steps_saved(session):
            session.ema["truth/A"] = 0.7
            raise RuntimeError("no figures")

    with pytest.raises(RuntimeError, match="no figures"):
        fail()
    assert found == saved
    assert session.ema == {"truth/A": 0.5}
