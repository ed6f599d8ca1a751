import io

import pytest
from rich.console import Console

from debate_rl.metrics.progress import Pace, PartLines, StepDisplay, parts_shown


class Clock:
    """A clock that is set by hand, in seconds."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=120)


def text_of(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def last_frame(bar: StepDisplay) -> str:
    """Return what the bar shows now."""
    paper = Console(file=io.StringIO(), width=120)
    paper.print(bar._bars.progress.get_renderable())
    return text_of(paper)


def test_steps_of_31_seconds_have_a_time_left_from_the_first_one_on(clock):
    bar = StepDisplay(terminal(), 6, bar=True, clock=clock)
    assert "left" not in last_frame(bar)
    clock.now += 31
    bar.log(0, {"seconds/rollout": 20.0, "seconds/learn": 11.0})
    assert "1/6" in last_frame(bar)
    assert "about 2.6 min left" in last_frame(bar)  # 5 x 31 s
    clock.now += 15
    assert "about 2.3 min left" in last_frame(bar)  # it goes down within a step
    clock.now += 16
    bar.log(1, {"seconds/rollout": 20.0, "seconds/learn": 11.0})
    assert "about 2.1 min left" in last_frame(bar)  # 4 x 31 s
    bar.close()


def test_each_line_in_a_pipe_has_the_time_left_and_the_last_one_has_none(clock):
    out = io.StringIO()
    lines = StepDisplay(Console(file=out), 3, bar=False, clock=clock)
    for step in range(3):
        clock.now += 40
        lines.log(step, {"seconds/rollout": 36.0, "seconds/reward": 4.0, "seconds/grade": 4.0})
    lines.close()
    said = [line.partition("  ")[2].strip() for line in out.getvalue().splitlines()]
    assert said == ["40 s, about 1.3 min left", "40 s, about 40 s left", "40 s"]


def test_a_resumed_run_knows_the_time_left_from_its_first_step(clock):
    pace = Pace(10, recent=10, clock=clock)
    clock.now = 500.0  # loading, a probe
    assert pace.words() == ""
    clock.now += 60
    pace.reach(8, took_s=60.0)
    assert pace.words() == "about 2 min left"


def test_a_hundredth_of_a_debate_predicts_nothing(clock):
    pace = Pace(48, 0.0, clock=clock)
    clock.now += 200
    pace.reach(0.01)
    assert pace.words() == ""
    clock.now += 200
    pace.reach(24)
    assert pace.words() == "about 6.7 min left"


def test_only_the_last_ten_steps_count(clock):
    pace = Pace(100, recent=10, clock=clock)
    for done in range(1, 31):
        took = 100.0 if done <= 20 else 6.0
        clock.now += took
        pace.reach(done, took_s=took)
    assert pace.words() == "about 7 min left"


def test_a_part_of_a_command_is_said_at_both_ends_and_every_30_seconds_between(clock):
    said: list[str] = []
    lines = PartLines(said.append, clock=clock)
    lines.advance("there already", 4, 4)
    lines.close()
    assert said == ["there already 4/4"]
    said.clear()
    for done in range(0, 301, 25):
        lines.advance("debates", done, 300)
        clock.now += 20
    assert said == [
        "debates 0/300",
        "debates 50/300, 40 s so far, about 3.3 min left",
        "debates 100/300, 1.3 min so far, about 2.7 min left",
        "debates 150/300, 2 min so far, about 2 min left",
        "debates 200/300, 2.7 min so far, about 1.3 min left",
        "debates 250/300, 3.3 min so far, about 40 s left",
        "debates 300/300 in 4 min",
    ]


def test_a_bar_of_an_evaluation_stands_below_that_of_the_steps_and_goes(clock):
    bar = StepDisplay(terminal(), 4, bar=True, clock=clock)
    bar.advance("evaluating: debates", 0, 300)
    clock.now = 40.0
    bar.advance("evaluating: debates", 75.5, 300)
    steps, debates = last_frame(bar).splitlines()
    assert "steps" in steps
    assert "75/300" in debates
    assert "about 2 min left" in debates  # 40 s x (300 - 75.5) / 75.5 = 119 s
    bar.advance("evaluating: debates", 300, 300)
    assert len(last_frame(bar).splitlines()) == 1
    bar.close()


def test_the_parts_of_a_command_are_bars_in_a_terminal_lines_in_a_pipe_or_nothing():
    console, pipe = terminal(), io.StringIO()
    with parts_shown("auto", console, keep=True) as parts:
        parts.advance("debates", 0, 2)
        parts.advance("debates", 2, 2)
        parts.say("[loss]")
    assert "2/2" in text_of(console)
    assert "[loss]" in text_of(console)
    with parts_shown("auto", Console(file=pipe), head="here: ") as parts:
        parts.advance("debates", 0, 2)
        parts.advance("debates", 2, 2)
    assert pipe.getvalue().splitlines()[0] == "here: debates 0/2"
    assert pipe.getvalue().splitlines()[1].startswith("here: debates 2/2 in ")
    with parts_shown("none", Console(file=pipe)) as parts:
        parts.advance("more", 0, 2)
        parts.say("more")
    assert "more" not in pipe.getvalue()
