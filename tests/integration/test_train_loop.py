import json
import sys
import types
from collections import Counter

import pytest
import torch
from safetensors.torch import load_file

from debate.prompting.fitting import PromptTooLongError
from debate_rl.config import Config
from debate_rl.inference.remote import RemoteError
from debate_rl.metrics.held_out import read_held_out
from debate_rl.metrics.step_log import read_metrics
from debate_rl.replay.scheme import replay_step, scheme_of, score_step
from debate_rl.rollouts.worker import RolloutWorker
from debate_rl.runs.checkpoint import checkpoints
from debate_rl.runs.weights import named_weights
from debate_rl.training.loop import StuckError, finish_step, train, train_step
from debate_rl.training.open_or_resume import open_training
from learner.losses import LossOutputs
from learner.update.config import LOSS_NAMES
from learner.update.learner import Learner
from transcripts import read_records

from .conftest import merged, same_weights, untimed, weights_of
from .protocol_runs import PARITY

PAIR_SUM = {
    "env": {"kind": "pair_sum", "levels": [1], "limit": 40},
    "warm_start": {"solve_steps": 10, "debate_steps": 20, "solve_batch": 16, "batch": [4, 4, 2, 2]},
}
RLVR = {
    "debate": {"num_agents": 1, "num_rounds": 1},
    "rewards": {"truth_weight": 1.0},
    "train": {"group_size": 12},
}
CORRECTIONS = {
    **{"kl": "k1", "kl_in": "reward", "entropy_bonus": 0.01, "tis_cap": 2.0},
    **{"max_staleness": 0, "gradient_checkpointing": True},
}
CONTROLS = ("random_judge", "shuffled_votes", "own_answer")


def config_of(folder, **changes):
    return Config.model_validate(merged(PARITY, {"run": {"dir": str(folder)}, **changes}))


def metrics_of(session):
    return read_metrics(session.folder.metrics)


FOUR_STEPS = {
    "train": {"steps": 4, "save_every": 1},
    "held_out": {"every": 2},
    "learner": {"schedule": "linear", "minibatches": 2},
    "advantages": {"truth": {"baseline": "rae", "scale": "batch"}},
}


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """Return a session after four steps in one go."""
    return train(config_of(tmp_path_factory.mktemp("straight") / "run", **FOUR_STEPS))


NAMES = """
reward/peer/mean reward/peer/std reward/truth/mean reward/judge/mean reward/format/mean
votes/cast votes/valid votes/ties votes/duplicate votes/contradictory votes/own_work votes/not_a_comparison
votes/not_due votes/unknown_handle votes/same_handle votes/not_shown
accuracy accuracy/n accuracy/round_0 accuracy/round_1 accuracy/all_wrong pass@1 pass@2 pass@6 avg@6 cons@6
winner/n winner/accuracy winner/lift
format/valid format/cut format/no_comparison malformed/missing_section missing truncated
judge/accuracy judge/decidable_votes judge/parsed_share judge/signal_share
kl_mean kl_max ratio_mean ratio_max clip_fraction entropy_mean grad_norm loss lr updates skipped_updates
mismatch_mean mismatch_kl
advantage/zero_variance_share/peer advantage/zero_variance_share/truth advantage/zero_variance_share/judge
advantage/turns advantage/rows_dropped
tokens/completion tokens/prompt tokens/generated tokens/generator tokens/judge completions/distinct
tokens_per_second prompt/cut grader/timeout grader/crash
seconds/rollout seconds/reward seconds/learn seconds/record
"""

MAY_BE_EMPTY = {"reward/judge/mean", "judge/accuracy", "advantage/zero_variance_share/judge"}


def test_every_step_writes_the_metrics_by_name(straight):
    rows = metrics_of(straight)
    assert [row["step"] for row in rows] == [0, 1, 2, 3]
    assert sorted(set(NAMES.split()) - set().union(*rows)) == []
    for row in rows:
        assert set(NAMES.split()) - row.keys() <= MAY_BE_EMPTY  # a mean of nothing is left out
        assert None not in row.values()
    assert rows[0]["ratio_mean"] == pytest.approx(1.0, abs=0.2)
    assert rows[0]["mismatch_mean"] < 1e-3  # trainer and sampler agree on what was sampled
    assert rows[0]["advantage/turns"] == 3 * 2 * 3 * 3


def test_a_run_is_evaluated_before_its_first_step_and_keeps_what_each_problem_gave(straight):
    kept = read_held_out(straight.folder.path)
    assert [one.step for one in kept] == [0, 2, 4]
    ids = [problem.id for problem in straight.data.held_out]
    assert all(list(one.problems) == ids for one in kept)
    for one in kept[1:]:  # the same figures as in metrics.jsonl
        row = metrics_of(straight)[one.step - 1]
        for name in one.figures:
            assert one.estimate(name).value == pytest.approx(row[f"eval/{name}"])
    assert kept[0].figures != kept[1].figures


@pytest.mark.slow
def test_evaluating_changes_nothing_of_the_training(straight, tmp_path):
    never = train(config_of(tmp_path / "run", **merged(FOUR_STEPS, {"held_out": {"every": 0}})))
    assert not never.folder.held_out.exists()
    trained = [
        {name: value for name, value in row.items() if not name.startswith("eval/")}
        for row in untimed(straight.folder.path)
    ]
    assert untimed(never.folder.path) == trained
    assert same_weights(weights_of(never), weights_of(straight))
    assert list(read_records(never.folder.transcripts)) == list(read_records(straight.folder.transcripts))


@pytest.mark.parametrize(
    ("kind", "last", "saved"), [(PromptTooLongError, 0, []), (RemoteError, 1, ["step_000001"])]
)
def test_debates_that_cannot_be_held_end_the_run_with_its_finished_steps_saved(
    kind, last, saved, tmp_path, monkeypatch
):
    once = RolloutWorker.roll_out

    def roll_out(worker, step, *rest):
        if step == last:
            raise kind("they cannot be held")
        return once(worker, step, *rest)

    monkeypatch.setattr(RolloutWorker, "roll_out", roll_out)
    with pytest.raises(kind, match=r"^they cannot be held$"):
        train(config_of(tmp_path / "run", train={"save_every": 0, "keep_best": ""}))
    assert [path.name for path in checkpoints(tmp_path / "run/checkpoints")] == saved


@pytest.mark.parametrize("updates", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_step_that_cannot_be_learnt_ends_the_run_with_its_finished_steps_saved(
    updates, straight, tmp_path, monkeypatch
):
    """In the third step, of two updates each; after the first of them the weights are between two steps."""
    once, calls = Learner._update, iter(range(99))

    def update(learner, *rest):
        if next(calls) == 2 * 2 + updates:
            torch.rand(7)
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return once(learner, *rest)

    config = config_of(tmp_path / "run", **merged(FOUR_STEPS, {"train": {"save_every": 0, "keep_best": ""}}))
    monkeypatch.setattr(Learner, "_update", update)
    found = "2 of 4 steps are saved" if updates == 0 else "no step is saved"
    with pytest.raises(ValueError, match=rf"^step 2: CUDA out of memory; lower learner.*; {found}"):
        train(config)
    monkeypatch.undo()
    saved = [path.name for path in checkpoints(tmp_path / "run/checkpoints")]
    assert saved == (["step_000002"] if updates == 0 else [])
    if saved:
        assert same_weights(weights_of(train(config)), weights_of(straight))
        assert untimed(tmp_path / "run") == untimed(straight.folder.path)


TALK = {
    "debate": {"history_rounds": -1, "num_rounds": 3, "conversation": True},
    "learner": {"share_prefixes": True},
}
VARIANTS = [
    pytest.param({"model": {"lora_rank": 4}, "learner": {"beta": 0.1}}, id="lora"),
    pytest.param(RLVR | {"seed": 0}, id="rlvr"),
    *(pytest.param({"learner": {"loss": name}}, id=name) for name in LOSS_NAMES if name != "grpo"),
    pytest.param({"learner": CORRECTIONS}, id="corrections"),
    pytest.param(
        {"advantages": {"judge": {"key": "pair"}}, "train": {"dynamic_sampling": 2}}, id="dapo_judge"
    ),
    *(pytest.param({"train": {"control": name}}, id=name) for name in CONTROLS),
    pytest.param({"rewards": {"mix": "rewards", "peer": "bradley_terry"}}, id="mixed_rewards"),
    pytest.param({"debate": {"history_rounds": -1, "num_rounds": 3, "judge_own": True}}, id="all_history"),
    pytest.param(merged(PAIR_SUM, {"env": {"kind": "words"}}), id="warm_started_words"),
    pytest.param(TALK, id="conversation"),
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:learner.loss")
@pytest.mark.parametrize("changes", VARIANTS)
def test_variants_run_and_move_the_weights(changes, tmp_path):
    if changes.get("debate", {}).get("judge_own"):
        changes = merged(changes, {"rewards": {"judge_own": True}})
    config = config_of(tmp_path / "run", **merged({"train": {"steps": 2}}, changes))
    with open_training(config) as session:
        before = weights_of(session)
        for step in range(2):
            finish_step(session, step, train_step(session, step))
        after = weights_of(session)
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert moved
    if config.model.lora_rank:
        assert all("lora_" in name for name in moved)
    assert all(row["skipped_updates"] == 0 for row in metrics_of(session))


def assert_same_after_a_stop(tmp_path, changes, steps=1):
    """Train to the end at once, and again with a stop; return the session of the first."""
    whole = train(config_of(tmp_path / "whole", **changes))
    with open_training(config_of(tmp_path / "parts", **changes)) as session:
        for step in range(steps):
            finish_step(session, step, train_step(session, step))
    resumed = train(config_of(tmp_path / "parts", **changes))
    assert untimed(resumed.folder.path) == untimed(whole.folder.path)
    assert same_weights(weights_of(resumed), weights_of(whole))
    return whole


FEW = {"steps": 3, "group_size": 2, "dynamic_sampling": 4, "save_every": 1}


def test_dynamic_sampling_fills_a_step_up_and_is_the_same_after_a_stop(tmp_path):
    """Whole replies of one token: most problems' two answers are both wrong, and so teach nothing."""
    changes = merged(RLVR, {"debate": {"max_tokens": 1}, "train": FEW})
    whole = assert_same_after_a_stop(tmp_path, changes)
    rows = metrics_of(whole)
    for row in rows:
        extra, silent = row["sampling/extra_problems"], row["sampling/silent_problems"]
        assert 0 < extra <= 4
        assert 3 + extra - silent <= 3
        assert extra == 4 or 3 + extra - silent == 3
        assert row["rows"] == 2 * (3 + extra - silent)
    assert {record.step: 0 for record in read_records(whole.folder.transcripts)}.keys() == {0, 1, 2}
    kept = len(list(read_records(whole.folder.transcripts)))
    assert kept == sum(2 * (3 + row["sampling/extra_problems"]) for row in rows)


def test_adaptive_groups_vary_and_are_the_same_after_a_stop_and_in_a_replay(tmp_path):
    adaptive = {"chunk": 8, "right": 1, "wrong": 1}
    sizes = {"steps": 2, "group_size": 24, "dynamic_sampling": 1, "adaptive": adaptive, "save_every": 1}
    whole = assert_same_after_a_stop(tmp_path, merged(RLVR, {"train": sizes}))
    rows, records = metrics_of(whole), list(read_records(whole.folder.transcripts))
    scheme, sizes = scheme_of(whole.config), set()
    for step, row in enumerate(rows):
        of_step = [record for record in records if record.step == step]
        groups = Counter(record.group for record in of_step)
        assert groups.keys() >= {record.debate.problem.id for record in of_step}
        assert row["sampling/group_size/max"] == max(groups.values())
        assert row["sampling/saved"] == pytest.approx(1 - len(of_step) / (24 * len(groups)))
        right = {name: {r.correct == ((True,),) for r in of_step if r.group == name} for name in groups}
        assert row["sampling/silent_problems"] == sum(len(seen) == 1 for seen in right.values())
        replayed = replay_step(score_step(of_step, scheme), scheme, {})
        assert [record.advantages for record in of_step] == [one.advantages for one in replayed]
        sizes |= set(groups.values())
    assert {8, 24} <= sizes <= {8, 16, 24}


@pytest.mark.slow
def test_gradients_that_are_no_numbers_end_a_run_with_nothing_lost(tmp_path, monkeypatch):
    def lossless(inputs, config):
        return LossOutputs((inputs.logprobs * float("nan")).sum())

    monkeypatch.setitem(sys.modules, "broken", types.SimpleNamespace(loss=lossless))
    monkeypatch.setattr("debate_rl.training.loop.MAX_BAD_STEPS", 3)
    run, stuck = tmp_path / "run", {"train": {"steps": 6, "save_every": 0}}
    with pytest.raises(StuckError, match=r"^step 3: 3 steps in a row .*; 3 of 6 steps are saved in [^\n]*$"):
        train(config_of(run, **merged(stuck, {"learner": {"loss": "broken:loss"}})))
    rows = read_metrics(run / "metrics.jsonl")
    assert [(row["bad_steps"], row["skipped_updates"]) for row in rows] == [(1, 1), (2, 1), (3, 1)]
    assert [path.name for path in (run / "checkpoints").iterdir()] == ["step_000003"]
    assert len(list((run / "transcripts").glob("*.jsonl.zst"))) == 3
    mended = merged(stuck, {"run": {"dir": str(run), "allow_changes": ["learner.loss"]}})
    rows = metrics_of(train(config_of(run, **mended)))
    assert [row["updates"] for row in rows] == [0, 0, 0, 1, 1, 1]


@pytest.mark.slow
def test_a_warm_start_is_shared_with_another_run(tmp_path):
    first = train(config_of(tmp_path / "first", **PAIR_SUM))
    shared = {"env": PAIR_SUM["env"], "warm_start": {"from_run": str(tmp_path / "first")}}
    second = train(config_of(tmp_path / "second", **shared))
    assert same_weights(weights_of(second), weights_of(first))
    assert untimed(second.folder.path) == untimed(first.folder.path)
    with pytest.raises(ValueError, match=r"warm_start.from_run=.*nowhere: has no warm-started weights"):
        train(
            config_of(tmp_path / "third", **shared | {"warm_start": {"from_run": str(tmp_path / "nowhere")}})
        )


@pytest.mark.slow
def test_a_lora_run_goes_on_from_its_adapter(tmp_path):
    changes = {"model": {"lora_rank": 4}, "learner": {"beta": 0.1}, "train": {"save_every": 1}}
    assert_same_after_a_stop(tmp_path, changes, steps=2)


@pytest.mark.slow
def test_a_run_begins_with_a_checkpoint_of_another(tmp_path):
    """It is kept as what the run began with: the weights named "start", and the reference of the KL."""
    changes = {"model": {"lora_rank": 4}, "learner": {"beta": 0.1}, "train": {"save_every": 1}}
    first = train(config_of(tmp_path / "first", **changes))
    shared = changes | {"warm_start": {"from_run": f"{tmp_path / 'first'}@2"}}
    second = train(config_of(tmp_path / "second", **shared))
    start = named_weights(tmp_path / "second", "start")[0]
    taken = load_file(tmp_path / "first/checkpoints/step_000002/model/adapter_model.safetensors")
    kept = load_file(start / "model/adapter_model.safetensors")
    assert same_weights(taken, kept)
    assert metrics_of(second)[0]["kl_mean"] == pytest.approx(0.0, abs=1e-6)
    assert metrics_of(first)[-1]["kl_mean"] > 0


@pytest.mark.slow
def test_open_problems_train_from_peer_votes_only(tmp_path):
    rows = [{"id": f"o{n}", "question": f"Which is nicer, {n} or {n + 1}?"} for n in range(8)]
    path = tmp_path / "open.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    session = train(
        config_of(
            tmp_path / "run",
            env={"kind": "open", "path": str(path), "levels": None, "limit": None},
            held_out={"limit": 4, "every": 1},
            debate={"handles": ["K7", "Q2", "M4", "T9"], "num_agents": 4},
        )
    )
    rows = metrics_of(session)
    for row in rows:
        assert row["reward/truth/n"] == 0
        assert not {"correct", "reward/truth/mean", "winner/accuracy", "judge/accuracy"} & row.keys()
        assert not any(name.startswith("eval/") for name in row)
    records = list(read_records(session.folder.transcripts))
    assert all(record.correct is None for record in records)
    assert {score for r in records for row in r.rewards.truth for score in row} == {None}
    assert len(session.data.train) == 8


def test_a_step_shows_the_progress_of_its_turns_and_of_its_learning(tmp_path):
    told = []
    config = config_of(
        tmp_path, warm_start={"solve_steps": 0, "debate_steps": 0}, learner={"micro_batch_tokens": 512}
    )
    with open_training(config) as run:
        run.tracker.sinks[:] = [types.SimpleNamespace(advance=lambda *line: told.append(line))]
        train_step(run, 0)
        held = sum(len(record.debate.turns) for record in read_records(run.folder.transcripts))
    parts = {name: [line[1:] for line in told if line[0] == name] for name, *_ in told}
    assert list(parts) == ["step 0: turns", "step 0: learning"]
    for part in parts.values():
        done, totals = zip(*part, strict=True)
        assert len(set(totals)) == 1
        assert list(done) == sorted(done)
        assert (done[0], done[-1]) == (0, totals[0])
    assert parts["step 0: turns"][0][1] == held
    assert all(len(part) > 3 for part in parts.values())
