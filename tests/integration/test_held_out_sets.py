import json
import os
import shutil

import pytest

from debate_rl.config import Config
from debate_rl.inspector.views.across import evaluations
from debate_rl.metrics.held_out import read_held_out
from debate_rl.metrics.step_log import read_metrics
from debate_rl.training.loop import evaluate, train
from debate_rl.training.open_or_resume import open_training
from envs import DataError
from transcripts import read_records

from .conftest import merged
from .protocol_runs import PARITY, PARITY_PIECES

WINNER, DIRECT = "eval/debate/winner/accuracy", "eval/direct/accuracy"


PIECES = [*PARITY_PIECES, *(f" {n}" for n in range(13, 17))]
BASE = {
    "held_out": {"limit": 3, "every": 1},
    "debate": {"num_rounds": 1, "max_tokens": 6},
    "model": {"tiny": {"pieces": PIECES}},
    "train": {"steps": 2, "batch_size": 2},
}


def config_of(folder, held_out=None, **changes):
    base = merged(merged(PARITY, BASE), {"run": {"dir": str(folder)}, "held_out": held_out or {}})
    return Config.model_validate(merged(base, changes))


ALONE = {"debate": {"num_agents": 1}, "rewards": {"truth_weight": 1.0}}
FAR = {"more": {"far": {"split": "far", "limit": 4, "direct": True, "samples": 3}}}


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """A run of two steps with a further set, which keeps no tokens."""
    folder, logging = tmp_path_factory.mktemp("sets") / "run", {"transcript_tokens": False}
    return train(config_of(folder, FAR, logging=logging))


def test_each_held_out_set_has_its_figures_under_its_name(session):
    rows = read_metrics(session.folder.metrics)
    for row in rows:
        assert {WINNER, DIRECT, "eval/far/direct/accuracy", "eval/far/direct/pass@2"} <= row.keys()
        assert not [name for name in row if name.startswith("eval/far/debate")]
        assert (row["eval/problems"], row["eval/far/problems"]) == (3, 4)
        assert row["eval/far/direct/samples"] == 3
    for data, ids in (("", ["e9", "e10", "e11"]), ("far", ["e13", "e14", "e15", "e16"])):
        kept = read_held_out(session.folder.path, data=data)
        assert [one.step for one in kept] == [0, 1, 2]
        assert all(list(one.problems) == ids for one in kept)
    far = read_held_out(session.folder.path, data="far")
    assert far[1].estimate("direct/accuracy").value == pytest.approx(rows[0]["eval/far/direct/accuracy"])
    checksums = json.loads((session.folder.path / "run.json").read_text())["data"]
    assert [name for name in checksums if name.startswith("held out far: ")]


def test_what_is_said_in_evaluations_is_kept_as_debate_eval_keeps_it(session):
    home = session.folder.path / "evaluations"
    names = {
        f"{head}-training{tail}" for head in ("start", "step_000001", "step_000002") for tail in ("", "_far")
    }
    assert {path.name for path in home.iterdir()} == names
    notes: list[str] = []
    assert [one.step for one in evaluations(session.folder.path, notes)] == [0, 0, 1, 1, 2, 2]
    assert notes == []
    debates = list(read_records(home / "step_000002-training/debates"))
    assert [record.debate.problem.id for record in debates] == ["e9", "e10", "e11"]
    right = sum(grade is True for r in debates for row in r.correct for grade in row)
    kept = read_held_out(session.folder.path)[-1].figures["debate/accuracy/round_0"]
    assert right == sum(total for total, _ in kept.values())
    assert not (home / "step_000002-training/debates/tokens").exists()
    solutions = list(read_records(home / "step_000002-training_far/direct"))
    assert len(solutions) == 4 * 3
    identity = json.loads((home / "step_000002-training/evaluation.json").read_text())["of"]
    assert identity["training step"] == 2
    assert json.loads((home / "step_000002-training/figures.json").read_text())


def test_one_agent_alone_is_evaluated_by_its_solutions_and_the_best_is_chosen_by_them(tmp_path):
    session = train(config_of(tmp_path / "run", {"samples": 4}, **ALONE))
    rows = read_metrics(session.folder.metrics)
    names = {name.split("/")[1] for row in rows for name in row if name.startswith("eval/")}
    assert names == {"direct", "problems", "ungraded"}
    best = max((1, 2), key=lambda step: rows[step - 1][DIRECT])
    assert session.best == (best, rows[best - 1][DIRECT])
    assert os.readlink(session.folder.checkpoints / "best") == f"step_00000{best}"
    assert rows[0]["eval/direct/samples"] == 4


def test_an_evaluation_that_was_cut_off_is_made_anew_from_its_beginning(tmp_path):
    """What an earlier start said is not mixed with what the same step says now."""
    with open_training(config_of(tmp_path / "run")) as session:
        evaluate(session, 1)
        kept = session.folder.path / "evaluations/step_000001-training"
        before = list(read_records(kept / "debates"))
        assert (kept / "debates/step_000000.jsonl.zst").is_file()  # as the transcripts of a finished step
        shutil.rmtree(kept / "self-consistency")
        (kept / "debates/step_000000.jsonl.zst").unlink()
        (kept / "debates/step_000000.jsonl").write_text("of other weights\n")
        evaluate(session, 1)
        assert list(read_records(kept / "debates")) == before
        assert (kept / "self-consistency").is_dir()


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"far": {"split": "train"}}, "questions are also trained on"),
        ({"far": {"split": "far", "limit": 0}}, "held_out.more.far: there are no problems to evaluate on"),
        ({"far": {"kind": "no_such"}}, "held_out.more.far.kind: 'no_such' is not known"),
        ({"far": {"kind": "gsm8k", "path": "none.jsonl"}}, "none.jsonl: No such file"),
        ({"direct": {"split": "far"}}, "'direct' becomes part of metric names"),
        ({"A/b": {"split": "far"}}, "'A/b' becomes part of metric names"),
    ],
)
def test_a_further_set_that_cannot_be_is_one_line_before_the_run(tmp_path, more, told):
    with pytest.raises((DataError, ValueError)) as error:
        train(config_of(tmp_path / "run", {"more": more}))
    assert told in str(error.value)
    assert not (tmp_path / "run").exists()
