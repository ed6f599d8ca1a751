"""What follows which stage, and why: decided by held-out files written by hand, no model trained."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from debate_rl.config import Config
from debate_rl.curriculum.drive import Driver
from debate_rl.curriculum.record import read_curriculum, stage_runs
from debate_rl.metrics.held_out import HeldOut, append_held_out
from debate_rl.runs.folder import RunFolderError

FIGURE = "direct/accuracy"
PROBLEMS = 50


def stage(name, **changes):
    return {"name": name, "figure": FIGURE, "target": 0.5, "max_steps": 20} | changes


RECIPE = {
    "env": {"kind": "pair_sum", "levels": [1, 2], "limit": 8},
    "held_out": {"limit": PROBLEMS, "every": 5},
    "debate": {"num_agents": 1, "num_rounds": 1},
    "rewards": {"truth_weight": 1.0},
    "model": {"name_or_path": "none"},
    "warm_start": {"from_run": "base@best"},
}


def recipe(folder, *stages, **tables):
    return Config.model_validate(RECIPE | {"run": {"dir": str(folder)}, "stages": stages} | tables)


class Trainer:
    """Stands for training: of each run so many right answers at each step; None if it is killed."""

    def __init__(self, *right):
        self.right, self.configs = list(right), []

    def __call__(self, config):
        self.configs.append(config)
        right = self.right.pop(0)
        if right is None:
            raise KeyboardInterrupt
        run = Path(config.run.dir)
        run.mkdir(parents=True, exist_ok=True)
        values = {f"p{n}": (float(n < right[1]), 1) for n in range(PROBLEMS)}
        problems = dict.fromkeys(values, "0")
        append_held_out(run / "held_out.jsonl", HeldOut(right[0], problems, {FIGURE: values}))
        return right[0]


def driven(config, *right, only=None):
    trainer, said = Trainer(*right), []
    record = Driver(config, trainer, said.append, only=only).drive()
    return record.visits, trainer.configs, said


EASY = stage("easy", sampling={"levels": [[0, [1]]]})
HARD = stage("hard", sampling={"levels": [[0, [2]]]}, debate={"max_tokens": 64}, demote_below=0.1)


def test_each_stage_begins_with_the_weights_of_the_one_before(tmp_path):
    visits, configs, said = driven(recipe(tmp_path / "run", EASY, HARD), (10, 40), (15, 35))
    assert [(v.folder, v.end, v.steps, v.start) for v in visits] == [
        ("01_easy", "reached", 10, ""),
        ("02_hard", "reached", 15, "stages/01_easy@10"),
    ]
    first, second = configs
    assert (first.warm_start.from_run, first.debate.max_tokens) == ("base@best", 2048)
    assert second.warm_start.from_run == str(tmp_path / "run/stages/01_easy@10")
    assert (second.run.dir, second.train.steps) == (str(tmp_path / "run/stages/02_hard"), 20)
    assert (second.debate.max_tokens, second.sampling.levels) == (64, ((0, (2,)),))
    assert second.stages is None
    target = second.train.target
    assert (target.figure, target.value, target.demote_below) == (FIGURE, 0.5, 0.1)
    # 40 of 50: .80 - 2.01 * .4 / 7 = .685
    assert visits[0].value == 0.8
    assert visits[0].low == pytest.approx(0.685, abs=0.003)
    assert visits[0].why.startswith("direct/accuracy .80 (.69 to .91) after 10 steps: the lower end is at")
    assert said[0].startswith(f"stage 1 of 2, easy: from the model of the recipe, in {tmp_path}/run/stag")
    assert said[2].startswith("stage 2 of 2, hard: from stages/01_easy@10, in ")
    assert said[3] == f"stage hard ended: {visits[1].why}"


def test_the_lower_end_decides_and_not_the_value(tmp_path):
    visits, _, _ = driven(recipe(tmp_path / "run", EASY, HARD), (20, 30), (20, 33))  # .60: .46; .66: .52
    assert [v.end for v in visits] == ["limit", "reached"]


def test_a_stage_at_its_limit_goes_on_or_stops(tmp_path):
    visits, _, _ = driven(recipe(tmp_path / "run", EASY | {"at_limit": "stop"}, HARD), (20, 10))
    assert [(v.folder, v.end) for v in visits] == [("01_easy", "limit")]
    assert visits[0].why.endswith("the lower end is below the target .50, after max_steps")


@pytest.fixture
def sums_file(tmp_path):
    """The path of a file of 300 replies to learn from."""
    path = tmp_path / "sums.jsonl"
    rows = ({"question": f"{n} + 1?", "reply": f"{n + 1}"} for n in range(300))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


TINY = {
    "model": {"tiny": {"context_tokens": 512}, "chat": False},
    "debate": {"num_agents": 1, "num_rounds": 1, "prompts": "qa"},
    "env": {"kind": "pair_sum", "levels": [1], "limit": 8},
}


def test_a_stage_of_replies_is_followed_by_one_of_debates_and_ends_after_its_epochs(tmp_path, sums_file):
    learns = {"name": "cot", "sft": {"data": [sums_file], "epochs": 3}}
    debates = {"name": "rl", "max_steps": 7, "rewards": {"truth_wrong": -0.5}}
    visits, configs, said = driven(recipe(tmp_path / "run", learns, debates, **TINY), (28, 0), (7, 0))
    assert [(v.folder, v.end, v.why, v.start) for v in visits] == [
        ("01_cot", "done", "after 28 steps", ""),
        ("02_rl", "done", "after 7 steps", "stages/01_cot@28"),
    ]
    assert [bool(one.sft.data) for one in configs] == [True, False]
    assert (configs[0].sft.epochs, configs[0].train.target, configs[1].train.steps) == (3, None, 7)
    assert [one.rewards.truth_wrong == -0.5 for one in configs] == [False, True]
    assert "stage 1 of 2, cot: from the model of the recipe" in said[0]
    assert said[0].endswith(": its epochs of replies")
    assert said[2].endswith(": 7 steps")


def test_one_stage_is_done_alone_once_the_one_before_is_over(tmp_path, sums_file):
    learns = {"name": "cot", "max_steps": 9, "sft": {"data": [sums_file]}}
    config = recipe(tmp_path / "run", learns, {"name": "rl", "max_steps": 7}, **TINY)
    with pytest.raises(ValueError, match="stage=rl: needs the weights of 'cot', which"):
        driven(config, only="rl")
    visits, configs, _ = driven(config, (9, 0), only="cot")
    assert [v.name for v in visits] == ["cot"]
    assert configs[0].sft.steps == 9
    assert len(driven(config, only="cot")[0]) == 1  # over already: nothing is trained
    visits, _, _ = driven(config, (7, 0), only="rl")
    assert [(v.name, v.end) for v in visits] == [("cot", "done"), ("rl", "done")]
    with pytest.raises(ValueError, match="stage=tirr: valid: cot, rl"):
        driven(config, only="tirr")


def test_a_demoted_stage_goes_back_to_the_weights_that_it_began_with(tmp_path):
    config = recipe(tmp_path / "run", EASY, HARD)
    visits, configs, _ = driven(config, (10, 40), (5, 0), (7, 45), (20, 0))
    assert [(v.folder, v.end, v.start, v.demotes) for v in visits] == [
        ("01_easy", "reached", "", False),
        ("02_hard", "demoted", "stages/01_easy@10", True),
        ("03_easy", "reached", "stages/01_easy@10", False),
        ("04_hard", "limit", "stages/03_easy@7", False),  # one demotion is all it may have
    ]
    assert configs[3].train.target.demote_below is None
    assert configs[0].seed == configs[1].seed == config.seed
    assert len({own.seed for own in configs[1:]}) == 3


def test_a_curriculum_that_was_killed_goes_on_with_the_same_visit(tmp_path):
    config = recipe(tmp_path / "run", EASY, HARD)
    with pytest.raises(KeyboardInterrupt):
        driven(config, (10, 40), None)
    left = read_curriculum(tmp_path / "run").visits
    assert [(v.name, v.end) for v in left] == [("easy", "reached"), ("hard", None)]
    visits, configs, _ = driven(config, (15, 35))
    assert [v.end for v in visits] == ["reached", "reached"]
    assert [Path(own.run.dir).name for own in configs] == ["02_hard"]
    assert driven(config)[0] == visits  # nothing is left to do
    assert [path.name for path in stage_runs(tmp_path / "run")] == ["01_easy", "02_hard"]


def test_a_changed_curriculum_is_refused_with_what_differs(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        driven(recipe(tmp_path / "run", EASY, HARD), None)
    changed = recipe(tmp_path / "run", EASY, HARD | {"target": 0.4})
    with pytest.raises(RunFolderError, match=r"stages.1.target was 0.5, now 0.4; .*allow_changes"):
        driven(changed)
    run = {"dir": str(tmp_path / "run"), "allow_changes": ["stages"]}
    allowed = recipe(tmp_path / "run", EASY, HARD | {"target": 0.4}, run=run)
    assert [v.end for v in driven(allowed, (10, 40), (9, 40))[0]] == ["reached", "reached"]


@pytest.mark.parametrize(
    ("stages", "match"),
    [
        ([EASY, EASY], "two are named 'easy'"),
        ([EASY | {"min_steps": 21}], "min_steps = 21 is more than max_steps = 20"),
        ([{"name": "rl"}], "max_steps: is required for a stage that learns from debates"),
        ([{"name": "a", "max_steps": 3, "demote_below": 0.1}], "demote_below = 0.1: needs a figure"),
        ([EASY | {"debate": {"num_agentz": 4}}], r"stages.0 \(easy\): debate: unknown key 'num_agentz'; did"),
        ([EASY | {"figure": "accuracy"}], "'accuracy' is not a held-out metric"),
        ([EASY | {"held_out": {"every": 0}}], "held_out.every = 0: no evaluation would measure"),
    ],
)
def test_impossible_stages_are_refused_with_the_recipe(tmp_path, stages, match):
    with pytest.raises(ValidationError, match=match):
        recipe(tmp_path, *stages)
