"""Each way to hold and to reward debates by a whole run: killed, replayed, explained, read by commands."""

import json
import shutil
from itertools import islice

import pytest
import torch
from msgspec import UNSET
from pydantic import ValidationError

from debate.policies.scripted import ScriptedPolicy
from debate.prompting.rebuilding import held_debate
from debate.types import TurnId
from debate_rl.config import Config
from debate_rl.engines import open_policy, with_remote
from debate_rl.evaluation.folder import identity
from debate_rl.inference.wrapped import engine_of
from debate_rl.inspector.lists import flags_of
from debate_rl.inspector.views import debate_view
from debate_rl.inspector.views.why import why
from debate_rl.metrics.step_log import read_metrics
from debate_rl.replay.scheme import Scheme, replay_run, scheme_of
from debate_rl.rollouts.controls import flip_votes, shuffle_votes
from debate_rl.runs.weights import newest_weights
from debate_rl.training.loop import train, train_steps
from debate_rl.training.open_or_resume import open_training
from rewards import RewardConfig, ballot_box, valid_votes
from transcripts import RunStore

from .conftest import left_by, merged, records, train_killed, weights_of
from .protocol_runs import COMMON, GIST, RUNS, SAID

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
def test_swiss_ballots_compare_one_pair_of_others_in_both_orders(protocol_run):
    held = records(protocol_run("swiss")[0])
    for record in held.values():
        ballots = [turn for turn in record.debate.turns if turn.ballot]
        assert [turn.id.agent for turn in ballots] == [0, 1, 2, 3, 4]
        assert all(len(turn.compared) == 2 for turn in ballots)
        assert all(turn.id.agent not in {one.agent for one in turn.compared} for turn in ballots)
        compared = {one.turn: one.compared[::-1] for one in record.debate.swapped}
        assert compared == {turn.id: turn.compared for turn in ballots}
    debates = [record.debate for record in held.values()]
    flipped = [flip_votes(debate, seed=1, share=1.0) for debate in debates]
    for controlled in (flipped, shuffle_votes(debates, seed=1)):
        for before, after in zip(debates, controlled, strict=True):
            assert [turn.compared for turn in after.turns] == [turn.compared for turn in before.turns]
            assert len(valid_votes(ballot_box(after))) == len(valid_votes(ballot_box(before)))


def test_in_the_game_one_wins_what_the_other_loses_and_a_frozen_judge_learns_nothing(protocol_run):
    held = records(protocol_run("zero_sum")[0])
    for record in held.values():
        assert {part.turn.agent for part in record.advantages} <= {0, 1}
        (proposer,), (critic,), (judge,) = record.rewards.peer
        assert judge is None
        assert proposer is None or proposer == -critic
    assert any(part.peer for record in held.values() for part in record.advantages)


@pytest.mark.slow
def test_judges_of_a_consultancy_read_no_work_of_the_silent_one(protocol_run, debate_command):
    run, _ = protocol_run("consultancy")
    held = records(run)
    assert any(part.peer for record in held.values() for part in record.advantages)
    for record in islice(held.values(), 8):
        debate = held_debate(record.debate)
        silent = 1 - debate.seating.consultant
        for turn in (one for one in record.debate.turns if one.ballot):
            read = debate.prompt(turn.id).messages[-1].content
            assert f"{debate.seating.handles[silent]}: \\boxed{{" in read or "?" in read
    code, _, err = debate_command("eval", run, "debate.protocol=zero_sum")
    assert code == 0, err


@pytest.mark.slow
def test_some_debates_stop_early_and_every_reader_knows(protocol_run):
    run, _ = protocol_run("early_stop")
    held = list(records(run).values())
    saved = [record.debate.rounds_saved or 0 for record in held]
    assert {0, 2} <= set(saved)  # some agree at once, others never
    for record, number in zip(held, saved, strict=True):
        protocol = record.debate.protocol
        assert protocol.num_rounds + number == 3
        assert len(record.debate.turns) == 3 * (protocol.num_rounds + 1)  # and the ballot
        assert {len(row) for row in record.correct} == {protocol.num_rounds}
        assert debate_view("0.0", record).rounds_saved == number
    first, second = read_metrics(run / "metrics.jsonl")
    assert first["stopped"] == pytest.approx(sum(map(bool, saved[:24])) / 24)
    assert first["rounds"] == pytest.approx(3 - sum(saved[:24]) / 24)
    assert 1 <= second["eval/debate/rounds"] <= 3
    with RunStore.open(run) as store:
        found = store.debates("rounds_saved:>0")
        assert len(found) == sum(map(bool, saved))
        assert all("stopped" in dict(flags_of(row)) for row in found)


@pytest.mark.slow
def test_levels_have_their_own_sizes_in_training_and_evaluation(protocol_run, tmp_path):
    _, config = protocol_run("early_stop")
    table = config.model_dump(exclude_unset=True)
    levels = [{"level": 1, "num_agents": 2, "num_rounds": 1}, {"level": 2, "num_rounds": 2}]
    table["debate"] |= {"judge_own": True, "by_level": levels}
    table |= {"rewards": {"judge_own": True}, "held_out": {"limit": 6, "every": 1}}
    table["env"] |= {"levels": [1, 2, 3], "limit": 12}
    train(elsewhere(Config.model_validate(table), tmp_path / "run", steps=1))
    sizes = {"1": (2, {1}), "2": (3, {1, 2}), "3": (3, {1, 2, 3})}
    held = list(records(tmp_path / "run").values())
    assert {record.debate.problem.level for record in held} == set(sizes)
    for record in held:
        agents, rounds = sizes[record.debate.problem.level]
        protocol = record.debate.protocol
        assert (protocol.num_agents, protocol.num_rounds in rounds) == (agents, True)
    [step] = read_metrics(tmp_path / "run/metrics.jsonl")
    counts = [record.debate.protocol.num_agents for record in held]
    assert step["agents"] == pytest.approx(sum(counts) / len(counts))
    assert 2 < step["eval/debate/agents"] < 3


@pytest.mark.slow
def test_long_solutions_are_shown_as_they_were_shortened_and_failures_are_counted(protocol_run):
    run, _ = protocol_run("compressed")
    held = list(records(run).values())
    made = [one for record in held for one in record.debate.compressions or ()]
    assert {one.failed for one in made} == {True, False}
    metrics = read_metrics(run / "metrics.jsonl")
    assert sum(row["compressions"] for row in metrics) == len(made)
    assert sum(row["compressions/failed"] for row in metrics) == sum(one.failed for one in made)
    for record in held:
        spoken = debate_view("0.0", record).spoken()
        shorter = {turn.id: turn.compressed for turn in spoken if turn.compressed is not None}
        assert shorter == {one.turn: one.text for one in record.debate.compressions or ()}


@pytest.mark.slow
def test_the_summarizer_writes_the_summary_of_each_round_that_shows_something(protocol_run):
    held = records(protocol_run("summarized")[0]).values()
    assert {summary.text for record in held for summary in record.debate.summaries} == {GIST}
    assert {len(record.debate.summaries) for record in held} == {2}  # before round 1 and the ballot
    assert all(turn.id.agent >= 0 for record in held for turn in record.debate.turns)


@pytest.mark.slow
def test_weights_of_rewards_change_with_the_step_and_are_logged(protocol_run):
    run, config = protocol_run("ramps")
    lines = list(read_metrics(run / "metrics.jsonl"))
    assert [line["schedule/truth_weight"] for line in lines] == [1.0, 0.875]
    assert [line["schedule/novelty_bonus"] for line in lines] == [0.3, 0.15]
    assert [line["schedule/temperature"] for line in lines] == pytest.approx([1.2, 1.15])
    temperatures = {(one.step, one.debate.personas[0].temperature) for one in records(run).values()}
    assert sorted(temperatures) == [(0, 1.2), (1, pytest.approx(1.15))]
    scheme = scheme_of(config)
    tables = config.rewards.model_dump() | {"truth_weight": [[0, 0.0], [2, 1.0]]}
    other = Scheme(RewardConfig.model_validate(tables), scheme.advantages, scheme.group_size)
    with RunStore.open(run) as store:
        assert not any(one.differs for one in replay_run(store, scheme, other))
        found = why(store, config, "0.0", TurnId(0, 0)).truth["reward"]
    assert (found.value, found.source) == (None, 'not the last round: rewards.truth_rounds = "last"')


@pytest.mark.slow
def test_likelihoods_are_stored_less_their_baseline_as_the_reward(protocol_run):
    run, config = protocol_run("likelihood")
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
    with RunStore.open(run) as store:
        found = why(store, config, "1.0", TurnId(0, 0))
    stream = next(stream for stream in found.streams if stream["name"] == "likelihood")
    assert eval(stream["reward"].formula) == pytest.approx(stream["reward"].value)
    assert eval(found.total["generator"].formula) == pytest.approx(found.total["generator"].value)
    assert "A_likelihood" in found.total["generator"].source


def test_pages_say_who_sits_where_and_why_nothing_is_learnt_from_a_seat(protocol_run, debate_command):
    run, config = protocol_run("seats")
    code, out, err = debate_command("inspect", run, "show", "0.0")
    assert (code, "(frozen)" in out, "(remote)" in out, "(learning)" in out) == (0, True, True, False), err
    code, out, err = debate_command("inspect", run, "why", "0.0", "--turn", "3.0")
    assert "the seat is frozen: " in out
    code, out, err = debate_command("inspect", run, "show", "0.0", "--json")
    assert json.loads(out)["seats"] == list(config.debate.seats)


def test_critics_tokens_carry_the_advantage_of_their_persuasion(protocol_run):
    """lambda_critic times the persuasion less the mean of the problem's critics, who had any signal."""
    held, found = records(protocol_run("critique")[0]), 0
    for step in (0, 1):
        own = [record for record in held.values() if record.step == step]
        earned = {}
        for index, record in enumerate(own):
            for agent, (opening, criticism, revision) in enumerate(record.rewards.persuasion):
                assert (opening, revision) == (None, None)
                if criticism is not None:
                    earned[index, agent] = criticism
        for index, record in enumerate(own):
            group = [v for (other, _), v in earned.items() if own[other].group == record.group]
            for part in record.advantages:
                if part.critic is not UNSET:
                    assert part.turn.round == 1
                    less_mean = earned[index, part.turn.agent] - sum(group) / len(group)
                    assert part.critic == pytest.approx(2 * less_mean)
                    found += part.critic != 0
    assert found > 5


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
    ("summarized", {"endpoints": {"other": {"policy": "gpt"}}}, "unknown policy 'gpt'"),
    ("summarized", {"endpoints": {"other": {"policy": "local"}}}, "model: is missing"),
    ("summarized", {"endpoints": {"other": {"model": "m"}}}, "base_url: is missing"),
    ("summarized", {"endpoints": {"other": {"model": "m", "base_url": "host"}}}, "must begin with http"),
    ("summarized", {"summarizer": {"endpoint": "otehr"}}, "did you mean 'other'"),
    ("summarized", {"endpoints": {"other": {"policy": "local", "modle": "m"}}}, "did you mean 'model'"),
    ("likelihood", {"learner": {}}, "set learner.keep_reference = true"),
    ("likelihood", {"learner": {"beta": 0.1, "reference_every": 5}}, "learner.reference_every = 5"),
    ("likelihood", {"train": ONE_STEP | {"dynamic_sampling": 2}}, "train.dynamic_sampling = 2"),
    ("likelihood", {"rewards": {"likelihood_weight": -1.0}}, "greater than or equal to 0"),
    ("likelihood", {"likelihood": {"prompt": "$question $answer"}}, r"prompt: must contain \$reasoning"),
]


@pytest.mark.parametrize(("name", "tables", "message"), REFUSED)
def test_settings_that_cannot_work_are_refused_by_key(tmp_path, name, tables, message):
    with pytest.raises(ValidationError, match=message):
        config_of(name, tmp_path, **tables)


def test_without_an_endpoint_the_policy_writes_summaries_and_evaluations_are_others(tmp_path):
    config = config_of("summarized", tmp_path / "run", summarizer={}, train=ONE_STEP)
    train(config)
    assert all(len(record.debate.summaries) == 2 for record in records(tmp_path / "run").values())
    assert "summarizer" not in identity(config, [], None, [0])
    assert "summarizer" in identity(config_of("summarized", tmp_path), [], None, [0])


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
