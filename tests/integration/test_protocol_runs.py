"""Each way to hold and to reward debates by a whole run: killed, replayed, explained, read by commands."""

import json
import shutil
from itertools import islice

import pytest
import torch
from pydantic import ValidationError

from debate.policies.scripted import ScriptedPolicy
from debate.prompting.rebuilding import held_debate
from debate_rl.config import Config
from debate_rl.engines import open_policy, with_remote
from debate_rl.evaluation.folder import identity
from debate_rl.inference.wrapped import engine_of
from debate_rl.inspector.views.why import why
from debate_rl.metrics.step_log import read_metrics
from debate_rl.replay.scheme import replay_run, scheme_of
from debate_rl.runs.weights import newest_weights
from debate_rl.training.loop import train, train_steps
from debate_rl.training.open_or_resume import open_training
from transcripts import RunStore

from .conftest import left_by, merged, records, train_killed, weights_of
from .protocol_runs import COMMON, RUNS, SAID

COMMANDS = ("eval", "doctor", "solve play")
QUICK, SLOW = ("critique", "seats"), pytest.mark.slow
READERS = ("report", "replay", "eval regrade", "inspect")


def elsewhere(config, folder, **train):
    """Return the configuration in another folder."""
    return config.model_copy(
        update={
            "run": config.run.model_copy(update={"dir": str(folder)}),
            "train": config.train.model_copy(update=train),
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_is_killed_in_its_second_step_ends_as_the_one_left_alone(name, protocol_run, tmp_path):
    run, config = protocol_run(name)
    train_killed(elsewhere(config, tmp_path / "killed"), 1)
    train(elsewhere(config, tmp_path / "killed"))
    assert left_by(tmp_path / "killed") == left_by(run)


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in QUICK else SLOW) for name in RUNS])
def test_prompts_numbers_and_rewards_are_made_again_as_they_were_stored(name, protocol_run):
    run, config = protocol_run(name)
    own, explained = scheme_of(config), 0
    with RunStore.open(run) as store:
        changes = list(replay_run(store, own, own))
        assert len(changes) == store.count() > 0
        assert all(one.checked for one in changes)
        assert not any(one.differs or one.change for one in changes)
        for id, record in islice(store.records(), 3):
            for turn in record.debate.turns:
                assert held_debate(record.debate).prompt(turn.id).shown == turn.shown
                found = why(store, config, id, turn.id)
                assert found.matches is not False, (id, turn.id)
                explained += found.matches is True
    assert explained


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_commands_read_it(name, protocol_run, debate_command, tmp_path, monkeypatch):
    """What asks the model reads every run; what reads debates alone, one after the other."""
    run, _ = protocol_run(name)
    monkeypatch.chdir(tmp_path)
    more = {"doctor": ("--problems", "4"), "solve play": ("Target 7. Numbers 3 4 1.",)}
    for command in (*COMMANDS, READERS[list(RUNS).index(name) % len(READERS)]):
        code, out, err = debate_command(command, run, *more.get(command, ()))
        assert code in ((0, 1) if command == "doctor" else (0,)), (command, err)
        assert "Traceback" not in err
    code, out, err = debate_command("inspect", run, "show", "0.0", "--json", "--prompts")
    assert all(turn["prompt_unknown"] == "" for turn in json.loads(out)["turns"])


@pytest.mark.slow
def test_likelihoods_are_stored_less_their_baseline_as_the_reward(protocol_run):
    run, _ = protocol_run("likelihood")
    for record in records(run).values():
        read, baseline = record.likelihoods.logprobs, record.likelihoods.baseline
        assert baseline < 0
        for row, rewarded in zip(read, record.rewards.likelihood, strict=True):
            assert [value - baseline for value in row if value is not None] == list(rewarded)
    rows = read_metrics(run / "metrics.jsonl")
    assert [row["schedule/likelihood_weight"] for row in rows] == [1.0, 0.75]
    for row in rows:
        difference = row["likelihood/logprob"] - row["likelihood/baseline"]
        assert row["reward/likelihood/mean"] == pytest.approx(difference)  # all debates have as many turns
        assert row["kl_mean"] is not None  # the reference is there, with beta 0


def test_pages_say_who_sits_where_and_why_nothing_is_learnt_from_a_seat(protocol_run, debate_command):
    run, config = protocol_run("seats")
    code, out, err = debate_command("inspect", run, "show", "0.0")
    assert (code, "(frozen)" in out, "(remote)" in out, "(learning)" in out) == (0, True, True, False), err
    code, out, err = debate_command("inspect", run, "why", "0.0", "--turn", "3.0")
    assert "the seat is frozen: " in out
    code, out, err = debate_command("inspect", run, "show", "0.0", "--json")
    assert json.loads(out)["seats"] == list(config.debate.seats)


def config_of(name, folder, **tables):
    """Return a recipe's configuration with whole tables replaced."""
    return Config.model_validate(merged(COMMON, RUNS[name]) | {"run": {"dir": str(folder)}} | tables)


ONE_STEP = COMMON["train"] | {"steps": 1}
REFUSED = [
    ("seats", {"remote": {}}, r'debate.seats: agent 1 is "remote"'),
    ("seats", {"debate": {"num_agents": 4}}, "remote.endpoint: is not used"),
    (
        "seats",
        {
            "model": {"policy": "vllm", "name_or_path": "m", "lora_rank": 2},
            "warm_start": {"from_run": "runs/other"},
        },
        "warm_start.from_run = 'runs/other' ",
    ),
    ("summarized", {"debate": {}}, "summarizer.endpoint: is not used"),
    ("summarized", {"endpoints": {"other": {"policy": "local"}}}, "model: is missing"),
    ("summarized", {"endpoints": {"other": {"model": "m"}}}, "base_url: is missing"),
    ("summarized", {"endpoints": {"other": {"model": "m", "base_url": "host"}}}, "must begin with http"),
    ("summarized", {"summarizer": {"endpoint": "otehr"}}, "did you mean 'other'"),
    ("likelihood", {"learner": {}}, "set learner.keep_reference = true"),
    ("likelihood", {"learner": {"beta": 0.1, "reference_every": 5}}, "learner.reference_every = 5"),
    ("likelihood", {"train": ONE_STEP | {"dynamic_sampling": 2}}, "train.dynamic_sampling = 2"),
]


@pytest.mark.parametrize(("name", "tables", "message"), REFUSED)
def test_settings_that_cannot_work_are_refused_by_key(tmp_path, name, tables, message):
    with pytest.raises(ValidationError, match=message):
        config_of(name, tmp_path, **tables)


def test_evaluations_with_another_summarizer_are_others(tmp_path):
    alone, helped = config_of("summarized", tmp_path, summarizer={}), config_of("summarized", tmp_path)
    assert ["summarizer" in identity(one, [], None, [0]) for one in (alone, helped)] == [False, True]


@pytest.mark.slow
@pytest.mark.parametrize(("baseline", "zero"), [("empty", False), ("none", True)])
def test_other_baselines_need_no_solution_of_the_reference(tmp_path, baseline, zero):
    table = RUNS["likelihood"]["likelihood"] | {"baseline": baseline}
    train(config_of("likelihood", tmp_path / "run", likelihood=table, train=ONE_STEP))
    record = next(iter(records(tmp_path / "run").values()))
    assert (record.likelihoods.baseline is None) is zero
    assert not (tmp_path / "run/likelihood.jsonl").exists()


def test_problems_without_a_gold_answer_are_refused_by_name(tmp_path):
    path = tmp_path / "tasks.jsonl"
    path.write_text('{"id": "t1", "question": "Write a poem."}\n')
    with pytest.raises(ValueError, match=r"problem 't1' of kind 'open'"):
        train(config_of("likelihood", tmp_path / "run", env={"kind": "open", "path": str(path)}))


def test_frozen_weights_are_those_of_the_start_and_only_learning_seats_are_learnt_from(tmp_path, monkeypatch):
    monkeypatch.setenv("DEBATE_OWN_CODE", "1")
    config, rows = config_of("seats", tmp_path / "run"), []
    with open_training(config) as session:
        start, learn = weights_of(session), session.learner.step
        session.learner.step = lambda given: rows.extend(given) or learn(given)
        train_steps(session)
    assert rows
    assert {row.turn.agent for row in rows} <= {0, 2}
    assert any(not torch.equal(start[name], value) for name, value in weights_of(session).items())
    opened = open_policy(config, newest_weights(tmp_path / "run"))
    for policy in (session.policy, opened):
        assert all(torch.equal(start[name], value) for name, value in engine_of(policy)._frozen[0].items())
    for record in records(tmp_path / "run").values():
        assert {part.turn.agent for part in record.advantages} <= {0, 2}
        assert all(turn.parsed.answer == "3 4" for turn in record.debate.turns if turn.id == (1, 0))
    line = read_metrics(tmp_path / "run" / "metrics.jsonl")[-1]
    assert {f"seat/{seat}/accuracy" for seat in config.debate.seats} <= line.keys()
    assert "eval/debate/seat/frozen/accuracy" in line


@pytest.mark.slow
def test_a_resumed_run_whose_start_is_gone_takes_no_other_weights_for_it(tmp_path, monkeypatch):
    monkeypatch.setenv("DEBATE_OWN_CODE", "1")
    train(config_of("seats", tmp_path / "first"))
    own = {"warm_start": {"from_run": f"{tmp_path / 'first'}@newest"}}
    train(config_of("seats", tmp_path / "run", **own))
    shutil.rmtree(tmp_path / "run" / "warm_start")
    with pytest.raises(ValueError, match=r"run/warm_start: "):
        train(config_of("seats", tmp_path / "run", **own, train=COMMON["train"] | {"steps": 3}))


def test_a_remote_model_that_is_not_there_is_named_by_its_own_key(tmp_path):
    other = {"policy": "local", "model": str(tmp_path / "nowhere")}
    with pytest.raises(ValueError, match=r"^endpoints\.other\.model: no model in '.*nowhere' "):
        with_remote(config_of("seats", tmp_path, endpoints={"other": other}), ScriptedPolicy(lambda _: SAID))
