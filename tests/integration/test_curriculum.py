import json
import signal

import pytest

from debate import Problem
from debate_rl.config import Config
from debate_rl.curriculum.drive import Driver
from debate_rl.curriculum.record import read_curriculum
from debate_rl.metrics.held_out import evaluations_of
from debate_rl.metrics.step_log import read_metrics
from debate_rl.training.loop import train

from .conftest import left_by, merged, model_that_says, start, wait_until, write_recipe
from .protocol_runs import NUMBERS, SIZES, Parity


class Numbers(Parity):
    """The second level has larger numbers."""

    def problems(self, *, split, limit=None, seed=None):
        numbers = range(1, 9) if split == "train" else range(9, 25)
        return tuple(
            Problem(f"{split}{n}", f" {n}", str(2 - n % 2), level=str(1 + n // 5), kind="number")
            for n in numbers
        )


PIECES = [*NUMBERS, *(f" {n}" for n in range(1, 25)), "?", "\n"]
STAGE = {"figure": "direct/accuracy", "target": 0.39, "max_steps": 2}
RECIPE = {
    "seed": 3,
    "env": {"kind": f"{__name__}:Numbers"},
    "held_out": {"limit": 16, "every": 1, "samples": 8},
    "debate": {"num_agents": 1, "num_rounds": 1, "max_tokens": 24, "prompts": "tiny"},
    "rewards": {"truth_weight": 1.0},
    "model": merged(model_that_says(PIECES), {"tiny": SIZES}),
    "learner": {"lr": 3e-3, "warmup_steps": 1, "beta": 0.01},
    "train": {"batch_size": 2, "group_size": 12, "save_every": 1},
    "logging": {"progress": "none", "transcript_tokens": False},
    "stages": [
        STAGE | {"name": "small", "sampling": {"levels": [[0, [1]]]}},
        STAGE | {"name": "large", "sampling": {"levels": [[0, [2]]]}, "debate": {"max_tokens": 28}},
    ],
}


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """A curriculum that nothing disturbed."""
    folder = tmp_path_factory.mktemp("straight") / "run"
    config = Config.model_validate(RECIPE | {"run": {"dir": str(folder)}})
    Driver(config, lambda own: train(own).step, lambda _: None).drive()
    return folder


def test_each_stage_draws_its_own_problems_and_has_its_own_settings(straight):
    for name, tokens in (("01_small", 24), ("02_large", 28)):
        run = straight / "stages" / name
        rows = read_metrics(run / "metrics.jsonl")
        assert len(rows) == 2
        assert f"max_tokens = {tokens}" in (run / "config.toml").read_text()
        assert 0 < rows[0]["gate/levels/admitted"] <= 1
        assert [one.step for one in evaluations_of(run / "held_out.jsonl")] == [0, 1, 2]


def test_the_record_says_what_each_stage_came_to(straight):
    visits = read_curriculum(straight).visits
    assert [(v.folder, v.end, v.steps) for v in visits] == [
        ("01_small", "limit", 2),
        ("02_large", "limit", 2),
    ]
    for visit in visits:
        last = evaluations_of(straight / "stages" / visit.folder / "held_out.jsonl")[-1]
        assert visit.value == last.estimate("direct/accuracy").value
        end = json.loads((straight / "stages" / visit.folder / "run.json").read_text())["starts"][-1]["end"]
        assert (end["reason"], end["step"]) == ("steps", 2)


@pytest.mark.slow
def test_a_curriculum_that_is_killed_in_each_stage_ends_as_the_one_left_alone(tmp_path):
    begun = ("stages/01_small/metrics.jsonl", "stages/02_large/warm_start", "stages/02_large/metrics.jsonl")
    for name, kills in (("alone", ()), ("killed", begun)):
        path = write_recipe(tmp_path / f"{name}.toml", RECIPE, {"run": {"dir": name}})
        for there in kills:
            with command(path) as child:
                wait_until(lambda name=name, there=there: has_something(tmp_path / name / there), child)
                child.send_signal(signal.SIGKILL)
        with command(path) as child:
            said = child.communicate()[1]
        assert child.returncode == 0, said
    alone, killed = (tmp_path / name for name in ("alone", "killed"))
    for stage in ("01_small", "02_large"):
        assert left_by(killed / "stages" / stage) == left_by(alone / "stages" / stage)
    assert read_curriculum(killed) is not None
    ends = [[(v.folder, v.end, v.value) for v in read_curriculum(one).visits] for one in (alone, killed)]
    assert ends[0] == ends[1]


def command(path):
    return start("-m", "debate_rl", "train", path, cwd=path.parent, DEBATE_OWN_CODE="1")


def has_something(path):
    return path.exists() and (any(path.iterdir()) if path.is_dir() else b"\n" in path.read_bytes())


def test_a_goal_that_is_reached_ends_the_stage_and_is_seen_again_by_a_resume(tmp_path):
    tables = RECIPE | {"run": {"dir": str(tmp_path / "run")}}
    del tables["stages"]
    target = {"metric": "eval/direct/accuracy", "value": 1e-6, "min_steps": 1}
    own = Config.model_validate(tables | {"train": RECIPE["train"] | {"steps": 9, "target": target}})
    session = train(own)
    found = evaluations_of(session.folder.held_out)
    reached = [one.step for one in found if one.step and one.estimate("direct/accuracy").low >= 1e-6]
    assert session.step == reached[0] < 9
    assert session.end.reason == "target"
    again = train(own)
    assert (again.step, again.end.reason, again.end.why) == (session.step, "target", session.end.why)


@pytest.mark.slow
def test_the_command_line(straight, debate_command, tmp_path, monkeypatch):
    monkeypatch.setenv("DEBATE_OWN_CODE", "1")
    path = write_recipe(tmp_path / "recipe.toml", RECIPE, {"run": {"dir": str(straight)}})
    done = debate_command("train", str(path))
    assert "01_small: limit, direct/accuracy" in done.out, done.err
    assert f"done: the curriculum is complete, in {straight}" in " ".join(done.out.split())
    plan = debate_command("train", str(path), "--plan")
    assert "stage 2, large: at most 2 steps" in plan.out, plan.err
    changed = debate_command("train", str(path), "held_out.samples=5")
    assert "held_out.samples was 8, now 5" in changed.err


@pytest.mark.slow
def test_stages_one_by_one_end_as_all_at_once(straight, debate_command, tmp_path, monkeypatch):
    monkeypatch.setenv("DEBATE_OWN_CODE", "1")
    path = str(write_recipe(tmp_path / "recipe.toml", RECIPE, {"run": {"dir": str(tmp_path / "run")}}))
    for name, said in (
        ("large", "stage=large: needs the weights of 'small', which has not ended"),
        ("lareg", "stage=lareg: did you mean 'large'?"),
    ):
        done = debate_command("train", path, f"stage={name}")
        assert (done.code, said in done.err) == (2, True), done.err
    for name in ("small", "large"):
        done = debate_command("train", path, f"stage={name}")
        assert done.code == 0, done.err
    for name in ("01_small", "02_large"):
        assert left_by(tmp_path / "run/stages" / name) == left_by(straight / "stages" / name)


@pytest.mark.slow
def test_the_report_and_the_inspector_show_the_stages(straight, debate_command):
    done = debate_command("report", str(straight))
    assert done.code == 0, done.err
    text = (straight / "report/report.json").read_text()
    for visit in read_curriculum(straight).visits:
        assert f'"text": "{visit.folder}"' in text
        assert json.dumps(visit.why) in text
    looked = debate_command("inspect", str(straight), "ls")
    assert ": 01_small, 02_large" in looked.err
