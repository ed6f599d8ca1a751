import asyncio
import signal
from collections import deque
from collections.abc import Callable

import pytest

from debate import DebateConfig, Problem, run_debates
from debate.policies.scripted import ScriptedPolicy
from debate_rl.training.stops import Stopped, catch_stops


def sent(number: signal.Signals, done: list[str]) -> None:
    signal.raise_signal(number)
    done.append("went on")


def sent_then(number: signal.Signals, done: list[str], then: Callable[[], None]) -> None:
    sent(number, done)
    then()


def test_a_signal_raises_at_once_and_the_handlers_come_back():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(Stopped) as caught, catch_stops():
        signal.raise_signal(signal.SIGTERM)
    assert (caught.value.signum, caught.value.exit_code, caught.value.at_once) == (15, 143, False)
    assert str(caught.value).startswith("stopped by SIGTERM; the same command resumes")
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_deferred_signal_waits_for_the_end_of_the_block_and_says_so(capfd):
    done: list[str] = []
    with catch_stops() as stops, pytest.raises(Stopped) as caught, stops.deferred():
        sent(signal.SIGINT, done)
    assert done == ["went on"]
    assert caught.value.exit_code == 130
    [line] = capfd.readouterr().err.splitlines()
    assert line.startswith("debate: SIGINT: the current step is finished and saved first")


def test_within_a_deferred_block_a_part_may_be_left_at_once(capfd):
    done: list[str] = []
    with catch_stops() as stops, pytest.raises(Stopped), stops.deferred(), stops.interruptible():
        sent(signal.SIGINT, done)
    assert done == []
    assert capfd.readouterr().err == ""


def test_a_signal_while_the_event_loop_is_closed_waits_until_it_is(monkeypatch, capfd):
    closed: list[str] = []

    class Loop(asyncio.SelectorEventLoop):
        def close(self):
            sent_then(signal.SIGINT, closed, super().close)

    monkeypatch.setattr(asyncio, "new_event_loop", Loop)
    monkeypatch.setattr(asyncio.events, "new_event_loop", Loop)
    problem, policy = Problem(id="p", question="?"), ScriptedPolicy({}, default="a")
    with catch_stops() as stops, pytest.raises(Stopped), stops.deferred():
        run_debates([problem], policy, DebateConfig(), seed=0, within=stops.interruptible())
    assert closed == ["went on"]


READY = """
class Ready(deque):
    def popleft(self):
        handle = super().popleft()
        if turn():
            signal.raise_signal(signal.SIGINT)
        return handle
"""
"""A loop's queue, as it is when a signal comes between two of asyncio's own instructions."""


@pytest.mark.parametrize("place", [1, 2, 3, 5, 8, 13])
def test_a_signal_in_asyncios_own_code_loses_no_task(monkeypatch, place):
    turns = iter(range(1, place + 1))
    names = {"deque": deque, "signal": signal, "turn": lambda: next(turns, None) == place}
    exec(compile(READY, asyncio.base_events.__file__, "exec"), names)

    class Loop(asyncio.SelectorEventLoop):
        def __init__(self):
            super().__init__()
            self._ready = names["Ready"](self._ready)

    monkeypatch.setattr(asyncio, "new_event_loop", Loop)
    monkeypatch.setattr(asyncio.events, "new_event_loop", Loop)
    problems, policy = [Problem(id=name, question="?") for name in "pqr"], ScriptedPolicy({}, default="a")
    with catch_stops() as stops, pytest.raises(Stopped) as caught, stops.deferred():
        run_debates(problems, policy, DebateConfig(), seed=0, within=stops.interruptible())
    assert next(turns, None) is None
    assert not caught.value.at_once


def test_a_second_signal_raises_wherever_it_comes(capfd):
    done: list[str] = []
    with catch_stops() as stops, pytest.raises(Stopped) as caught, stops.deferred():
        sent_then(signal.SIGTERM, done, lambda: sent(signal.SIGINT, done))
    assert done == ["went on"]
    assert caught.value.at_once
    assert str(caught.value).startswith("ended at once by SIGINT; ")
