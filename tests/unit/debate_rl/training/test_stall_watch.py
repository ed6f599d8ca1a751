import re
import time

from debate_rl.rollouts.worker import Clock
from debate_rl.training.stops import StallWatch


def waited_for(said: list[str], count: int) -> None:
    end = time.monotonic() + 10
    while len(said) < count and time.monotonic() < end:
        time.sleep(0.01)


def test_a_silent_phase_is_named_while_it_lasts_and_again_after_twice_the_time():
    said: list[str] = []
    with StallWatch(said.append, stalled_s=0.05, look_s=0.01) as watch:
        watch.begin(7)
        Clock(watch.lap).lap("rollout")
        waited_for(said, 2)
    told = r"step 7: no phase has ended for [\d.]+ s; current phase: reward"
    assert all(re.match(told, line) for line in said)
    assert 2 <= len(said) <= 8  # doubling: .05, .1, .2, ...
