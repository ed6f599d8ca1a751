import json
import os
import time
from pathlib import Path
from random import Random

import pytest
import torch
from safetensors.torch import load_file

from debate import Problem
from debate.parsing import last_boxed
from debate_rl.config import Config
from debate_rl.metrics.held_out import read_held_out
from debate_rl.runs.weights import named_weights
from debate_rl.sft.session import REPLIES, learn, mean_loss, open_replies
from debate_rl.training.loop import finish_step, train, train_steps
from envs.families import FAMILIES

from .conftest import merged, python, same_weights, start, steps_of, untimed, write_recipe
from .protocol_runs import SIZES

RECIPE = {
    "seed": 1,
    "env": {"kind": "pair_sum", "levels": [1], "limit": 40},
    "held_out": {"limit": 8, "every": 4},
    "debate": {"num_agents": 1, "num_rounds": 1, "prompts": "qa", "max_tokens": 20},
    "grader": {"mode": "lenient"},
    "rewards": {"truth_weight": 1.0},
    "model": {
        "device": "cpu",
        "chat": False,
        "tiny": {
            **SIZES,
            "context_tokens": 128,
            "fallback": "none",
            "pieces": ["Question:", " Target", "\nAnswer:", "\n\n", " The answer is", ".", " "],
        },
    },
    "sft": {"epochs": 2, "batch_size": 8, "held_back": 6},
    "learner": {"lr": 1e-2, "warmup_steps": 2, "schedule": "linear"},
    "train": {"save_every": 3, "sample_batch_size": 64, "batch_size": 2, "group_size": 4},
    "logging": {"progress": "none"},
}


@pytest.fixture(scope="module")
def demonstrations(tmp_path_factory):
    """Return a file of right solutions, written by the family."""
    path, rng = tmp_path_factory.mktemp("data") / "right.jsonl", Random(0)
    family = FAMILIES["pair_sum"].of_levels((1,))
    with path.open("w") as file:
        for problem in family.problems(split="train", limit=60, seed=3):
            reply = family.write_solution(problem, family.attempt(problem, rng, right=1.0, lure=0.0))
            file.write(json.dumps({"id": problem.id, "question": problem.question, "reply": reply}) + "\n")
    return path


@pytest.fixture(scope="module")
def config_of(demonstrations):
    def make(folder, **changes):
        own = {"run": {"dir": str(folder)}, "sft": {"data": [str(demonstrations)]}}
        return Config.model_validate(merged(merged(RECIPE, own), changes))

    return make


def learnt(config, until=None):
    """Do a run's steps, up to ``until`` of them, and return its session."""
    with open_replies(config) as session:
        if until is None:
            train_steps(session, REPLIES)
        for step in range(session.step, until or 0):
            finish_step(session, step, learn(session, step, print), REPLIES)
    return session


def weights_of(run, name="newest"):
    [path] = (named_weights(run, name)[0] / "model").glob("*.safetensors")
    return load_file(path)


def test_a_run_learns_and_keeps_what_it_was_measured_by(tmp_path, config_of):
    session = learnt(config_of(tmp_path / "run", sft={"epochs": 6}))
    rows = untimed(tmp_path / "run")
    assert len(rows) == 40 == session.config.train.steps  # 6 * 54 / 8
    assert rows[-1]["loss"] < 0.6 * rows[0]["loss"]
    assert rows[-1]["eval/sft/loss"] < 0.8 * rows[3]["eval/sft/loss"]
    assert rows[-1]["epoch"] == pytest.approx(40 * 8 / 54)
    assert rows[-1]["lr"] == pytest.approx(1e-2 / 38)
    assert not any(name.startswith(("mismatch", "stale", "ratio", "reward")) for row in rows for name in row)
    assert [one.step for one in read_held_out(tmp_path / "run")][:2] == [0, 4]
    facts = json.loads((tmp_path / "run/run.json").read_text())
    assert facts["replies"]["learnt"] + facts["replies"]["held_back"] == 60


def test_the_held_back_loss_is_the_mean_over_tokens(tmp_path, config_of):
    with open_replies(config_of(tmp_path / "run", learner={"micro_batch_tokens": 100})) as session:
        examples = session.data.held_back
        total = count = 0.0
        for one in examples:
            ids = torch.from_numpy(one.ids).long()[None]
            with torch.no_grad():
                logprobs = session.model(input_ids=ids).logits.log_softmax(-1)[0, :-1]
            own = -logprobs.gather(1, ids[0, 1:, None])[:, 0][torch.from_numpy(one.learnt[1:])]
            total, count = total + own.sum().item(), count + len(own)
        assert mean_loss(session, examples) == pytest.approx(total / count, abs=1e-5)


@pytest.fixture(scope="module")
def brief(tmp_path_factory, config_of):
    """The session of a run of two epochs that holds no problem out."""
    return learnt(config_of(tmp_path_factory.mktemp("brief") / "run", held_out={"limit": 0}))


def test_the_best_is_by_loss_where_nothing_is_held_out(brief):
    run = brief.folder.path
    losses = {row["step"] + 1: row["eval/sft/loss"] for row in untimed(run) if "eval/sft/loss" in row}
    assert brief.best == (min(losses, key=losses.get), min(losses.values()))
    assert os.readlink(run / "checkpoints/best") == f"step_{brief.best[0]:06d}"


def test_rl_begins_with_what_was_learnt(tmp_path, config_of, brief):
    start = {"warm_start": {"from_run": str(brief.folder.path)}, "sft": {"data": [], "held_back": 0}}
    session = train(config_of(tmp_path / "rl", **start, train={"steps": 1}, held_out={"every": 0}))
    assert session.step == 1
    assert same_weights(weights_of(tmp_path / "rl", "start"), weights_of(brief.folder.path))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sft": {"data": []}}, "sft.data: is empty"),
        ({"train": {"keep_best": "loss"}}, "train.keep_best='loss': is not a metric of an evaluation"),
        (
            {"train": {"keep_best": "eval/sft/loss"}, "sft": {"held_back": 0}},
            r"keep_best='eval/sft/loss': this run does not measure it; set sft.held_back",
        ),
        ({"sft": {"epochs": 0.05}}, "sft.epochs = 0.05: for 54 replies this is less than one step"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(tmp_path, config_of, changes, message):
    with pytest.raises(ValueError, match=message):
        learnt(config_of(tmp_path / "run", **changes))
    assert not (tmp_path / "run/config.toml").exists()


@pytest.mark.slow
def test_a_killed_run_goes_on_bit_for_bit(tmp_path, config_of):
    """``kill -9`` at any time: the same command ends with the same adapter and the same lines."""
    changes = {"model": {"lora_rank": 4}, "sft": {"epochs": 12}, "train": {"save_every": 2}}
    learnt(config_of(tmp_path / "whole", **changes))
    own = config_of(tmp_path / "run", **changes)
    write_recipe(tmp_path / "recipe.toml", own.model_dump(mode="json", exclude_none=True, exclude_unset=True))
    words = ("-m", "debate_rl", "train", tmp_path / "recipe.toml")
    rng, kills = Random(7), 0
    for _ in range(4):
        wanted = len(steps_of(tmp_path / "run")) + rng.randint(2, 16)
        with start(*words, cwd=tmp_path) as process:
            while process.poll() is None and len(steps_of(tmp_path / "run")) < wanted:
                time.sleep(0.02)
            kills += process.poll() is None
            process.kill()
    assert kills >= 2
    done = python(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert untimed(tmp_path / "run") == untimed(tmp_path / "whole")
    assert same_weights(weights_of(tmp_path / "run"), weights_of(tmp_path / "whole"))


@pytest.mark.slow
def test_a_teachers_right_replies_are_learnt(tmp_path, config_of, debate_command, monkeypatch):
    """Traces of what was learnt, sampled once: the same command reads what is kept, and filters it anew."""
    learnt(config_of(tmp_path / "teacher", sft={"epochs": 12}))
    monkeypatch.chdir(tmp_path)
    words = ("traces", "teacher", "--samples", "4", "--out", "t.jsonl", "--json", "t.json")
    overrides = ("sft.data=[]", "sft.held_back=0", "held_out.limit=8")
    shown = debate_command(*words, *overrides)
    assert shown.code == 0, shown.err
    rows = [json.loads(line) for line in Path("t.jsonl").read_text().splitlines()]
    figures = json.loads(Path("t.json").read_text())
    kept = len(rows) + figures["left_out"].get("duplicates", 0)
    assert figures["yield"]["all"] == {"replies": 160, "kept": kept}
    assert f"right: {figures['yield']['all']['kept']} of 160" in shown.out
    assert "only right replies are kept" in shown.out
    family = FAMILIES["pair_sum"]
    grades = [family.grade(Problem("p", row["question"]), last_boxed(row["reply"])).verdict for row in rows]
    assert all(grades)
    assert all(row["grade"] == "right" and row["provenance"]["prompt_set"] == "qa" for row in rows)
    monkeypatch.setattr(
        "debate_rl.evaluation.asking.open_policy", lambda *_: pytest.fail("nothing is left to sample")
    )
    shown = debate_command(*words, *overrides, "--per-problem", "1")
    assert shown.code == 0, shown.err
    once = [json.loads(line) for line in Path("t.jsonl").read_text().splitlines()]
    assert len({row["question"] for row in once}) == len(once) == len({row["question"] for row in rows})
    student = learnt(
        config_of(tmp_path / "student", sft={"data": ["t.jsonl"], "held_back": 0, "batch_size": 2})
    )
    assert student.step == student.config.train.steps > 0
