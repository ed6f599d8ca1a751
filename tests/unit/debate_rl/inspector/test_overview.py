"""What a list of runs shows of each, from what the runs wrote; whatever lies there, the list is shown."""

import json
import os
from pathlib import Path

import pytest

from debate_rl.curriculum.record import Curriculum, Visit, write_curriculum
from debate_rl.inspector.plain import print_runs
from debate_rl.inspector.runs import find_runs, overviews
from debate_rl.metrics.held_out import DIRECT, HeldOut, append_held_out
from transcripts import write_step

from .conftest import make, printed, solved


def evaluated(step, right):
    figures = {DIRECT: {str(n): (float(n < right), 1) for n in range(4)}}
    return HeldOut(step, {str(n): "sum" for n in range(4)}, figures)


def written(run: Path, *, metrics=(), config="[train]\nsteps = 10\n", at=1000):
    """A run with debates of step 5, and these lines of metrics."""
    write_step(run / "transcripts", 5, [make([[solved(4), solved(5), solved(6)]])])
    (run / "config.toml").write_text(config)
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in metrics))
    for path in (run / "config.toml", run / "metrics.jsonl", *(run / "transcripts").glob("*.jsonl*")):
        os.utime(path, (at, at))


def listed(folder, **options):
    """The lines of the list of runs."""
    return printed(print_runs, overviews(find_runs(folder)), **options).splitlines()


@pytest.fixture
def runs(tmp_path):
    figures = [{"step": step, "judge/accuracy": 0.5 + step / 100, "ratio_mean": 1.0} for step in range(6)]
    written(tmp_path / "old", metrics=figures, at=1000)
    append_held_out(tmp_path / "old/held_out.jsonl", evaluated(0, 1))
    append_held_out(tmp_path / "old/held_out.jsonl", evaluated(5, 3))
    written(tmp_path / "new", metrics=[{"step": 0, "judge/accuracy": 0.5}], at=2000)
    append_held_out(tmp_path / "new/held_out.jsonl", evaluated(0, 2))
    written(tmp_path / "bare", config="[train]\nsteps = 'many'\n", at=500)
    return tmp_path


def test_the_one_that_wrote_last_is_on_top(runs):
    new, old, bare = overviews(find_runs(runs))
    assert (new.run.name, old.run.name, bare.run.name) == ("new", "old", "bare")
    assert (old.progress, old.before, old.after) == ("6/10", 0.25, 0.75)
    assert (old.judge, old.alarms) == (pytest.approx(0.55), 0)
    assert (new.before, new.after, new.judge, new.alarms) == (0.5, None, 0.5, None)  # none can fire yet
    assert (bare.progress, bare.before, bare.after, bare.judge, bare.alarms) == ("6", None, None, None, None)


def test_a_run_that_trains_on_held_out_problems_says_so(runs):
    written(runs / "own", config='[train]\nsteps = 10\n[env]\ndecontaminate = "never"\n', at=4000)
    own, new, *_ = overviews(find_runs(runs))
    assert (own.state, new.state) == ("test-time learning", "")
    assert [line.count("test-time learning") for line in listed(runs, width=100)] == [0, 1, 0, 0, 0]


def test_alarms_are_those_of_the_reports_detectors(runs):
    lines = [{"step": step, "grad_norm": 0.5, "ratio_max": 1e9 if step > 20 else 1.0} for step in range(40)]
    lines = [line | {"ratio_mean": line["ratio_max"], "loss": 0.1} for line in lines]
    written(runs / "bad", metrics=lines, at=3000)
    assert overviews(find_runs(runs))[0].alarms >= 1


def test_it_follows_the_files(runs):
    append_held_out(runs / "new/held_out.jsonl", evaluated(6, 4))
    with (runs / "new/metrics.jsonl").open("a") as file:
        file.write('{"step": 1, "judge/accuracy": 0.9}\n')
    [new] = [one for one in overviews(find_runs(runs)) if one.run.name == "new"]
    assert (new.before, new.after, new.judge) == (0.5, 1.0, 0.9)


def test_lines_in_a_pipe_and_on_a_terminal(runs):
    figures = {"new": "6/10 .50→– .50 –", "old": "6/10 .25→.75 .55 0", "bare": "6 – – –"}
    wanted = [f"{runs / name} {words}" for name, words in figures.items()]
    heads, *lines = (" ".join(line.split()) for line in listed(runs))
    assert (heads, lines) == ("path steps held-out judge alarms state", wanted)
    written(runs / ("long" * 30), at=10)
    heads, *lines = listed(runs, width=60)
    assert max(map(len, lines)) <= 60
    assert [line.split()[:2] for line in lines[:2]] == [["new", "6/10"], ["old", "6/10"]]
    assert heads.split() == ["run", "steps", "held-out", "judge", "alarms", "state"]
    first = json.loads(listed(runs, as_json=True)[1])
    assert (first["name"], first["planned"], first["before"], first["after"]) == ("old", 10, 0.25, 0.75)
    assert first["path"] == str(runs / "old")


@pytest.mark.parametrize("text", ["", "[", "[train]\nsteps = -1", "train = 3", "x x", "[train]\nsteps=1e9"])
def test_whatever_lies_there_the_list_is_shown(tmp_path, text):
    written(tmp_path / "run", config=text)
    for name in ("metrics.jsonl", "held_out.jsonl", "run.json"):
        (tmp_path / "run" / name).write_text(text)
    (tmp_path / "run" / "evaluations").write_text("")
    [one] = overviews(find_runs(tmp_path))
    assert (one.planned, one.alarms) == (None, None)
    written(tmp_path / "stages" / "one")  # of no curriculum
    assert overviews(find_runs(tmp_path / "stages"))[0].stage == ""
    (tmp_path / "run/metrics.jsonl").unlink()
    (tmp_path / "run/metrics.jsonl").mkdir()
    assert overviews(find_runs(tmp_path))[0].alarms is None


def test_a_stage_of_a_curriculum_says_how_it_ended_and_why(tmp_path):
    first, second = "01_easy", "02_hard"
    for folder, at in ((first, 1000), (second, 2000)):
        written(tmp_path / "stages" / folder, at=at)
    why = "direct/accuracy .64 (.57 to .71) after 30 steps: the lower end is at the target .40 or above"
    visits = (
        Visit(0, "easy", first, 1, steps=30, end="reached", why=why),
        Visit(1, "hard", second, 2, start="stages/01_easy@30"),
    )
    write_curriculum(tmp_path, Curriculum(visits))
    hard, easy = overviews(find_runs(tmp_path))
    assert (easy.state, easy.why, hard.state, hard.why) == ("reached", why, "", "")
    assert listed(tmp_path)[2].endswith(f"reached: {why}")
    (tmp_path / "curriculum.json").write_text("{")
    assert {one.state for one in overviews(find_runs(tmp_path))} == {""}
