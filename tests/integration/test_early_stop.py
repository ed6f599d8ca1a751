"""Training and evaluation of debates that stop once their agents agree, also of an interrupted run."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest
from msgspec import UNSET

from debate import run_debates
from debate.policies.scripted import ScriptedPolicy
from debate.prompting.rebuilding import held_debate
from debate_rl.config import Config
from debate_rl.evaluation.folder import EvaluationError
from debate_rl.evaluation.play import EvalPlan, play
from debate_rl.evaluation.scores import scores
from debate_rl.inspector.lists import flags_of
from debate_rl.inspector.views import debate_view
from debate_rl.metrics.step_log import read_metrics
from debate_rl.training.loop import evaluate_first, finish_step, train, train_step
from debate_rl.training.run import open_training
from envs import DataError
from envs.answers.keys import plain_key
from transcripts import RunStore, read_records

from .conftest import model_that_says

HANDLES = ("K7", "Q2", "M4")
PIECES = [
    *(f"<solution>{words} \\boxed{{1 + 2}}</solution>" for words in "abcdefghijkl"),
    *(f"<solution>{words} \\boxed{{3 + 4}}</solution>" for words in "abcd"),
    "<comparison>K7 > Q2</comparison>",
    "<comparison>Q2 < M4</comparison>",
]
BASE = {
    "seed": 3,
    "env": {"kind": "pair_sum", "limit": 8},
    "held_out": {"limit": 4, "every": 2},
    "debate": {"num_rounds": 3, "min_rounds": 1, "max_tokens": 24, "prompts": "tiny", "handles": HANDLES},
    "model": model_that_says(PIECES),
    "train": {"steps": 2, "batch_size": 6, "group_size": 4, "save_every": 1},
    "logging": {"progress": "none"},
}


def config_of(folder: Path, **tables: object) -> Config:
    return Config.model_validate(BASE | {"run": {"dir": str(folder)}} | tables)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("early") / "run"
    train(config_of(folder))
    return folder


def test_some_debates_stop_and_every_reader_knows(run: Path):
    records = list(read_records(run))
    saved = [record.debate.rounds_saved or 0 for record in records]
    assert {0, 2} <= set(saved)  # some agree at once, others never
    for record, number in zip(records, saved, strict=True):
        protocol = record.debate.protocol
        assert protocol.num_rounds + number == 3
        rounds = protocol.num_rounds + 1  # and the ballot
        assert len(record.debate.turns) == 3 * rounds
        assert record.rewards is not None
        assert record.correct is not None
        assert {len(row) for row in record.correct} == {protocol.num_rounds}
        for turn in record.debate.turns:
            assert held_debate(record.debate).prompt(turn.id).shown == turn.shown
        assert debate_view("0.0", record).rounds_saved == number
    [first, second] = read_metrics(run / "metrics.jsonl")
    of_first = saved[:24]
    assert first["stopped"] == pytest.approx(sum(map(bool, of_first)) / 24)
    assert first["rounds"] == pytest.approx(3 - sum(of_first) / 24)
    assert 1 <= second["eval/debate/rounds"] <= 3
    with RunStore.open(run) as store:
        found = store.debates("rounds_saved:>0")
        assert len(found) == sum(map(bool, saved))
        assert all(("stopped" in dict(flags_of(row))) for row in found)


@pytest.mark.slow
def test_a_resumed_run_is_the_straight_one(run: Path, tmp_path: Path):
    stopped = config_of(tmp_path / "stopped")
    with open_training(stopped) as session:
        evaluate_first(session)
        finish_step(session, 0, train_step(session, 0))
        session.save_finished()
    train(stopped)
    lines = [
        [(one.debate, one.rewards, one.advantages) for one in read_records(folder) if one.step == 1]
        for folder in (run, tmp_path / "stopped")
    ]
    assert lines[0] == lines[1]


@pytest.mark.slow
def test_levels_have_their_own_sizes_in_training_and_evaluation(tmp_path: Path):
    levels = [{"level": 1, "num_agents": 2, "num_rounds": 1}, {"level": 2, "num_rounds": 2}]
    config = config_of(
        tmp_path / "run",
        env={"kind": "pair_sum", "levels": [1, 2, 3], "limit": 12},
        debate={**BASE["debate"], "judge_own": True, "by_level": levels},  # type: ignore[dict-item]
        rewards={"judge_own": True},
        held_out={"limit": 6, "every": 1},
        train={**BASE["train"], "steps": 1},  # type: ignore[dict-item]
    )
    train(config)
    sizes = {"1": (2, {1}), "2": (3, {1, 2}), "3": (3, {1, 2, 3})}
    records = list(read_records(tmp_path / "run"))
    assert {record.debate.problem.level for record in records} == set(sizes)
    for record in records:
        agents, rounds = sizes[record.debate.problem.level]
        protocol = record.debate.protocol
        assert (protocol.num_agents, protocol.num_rounds in rounds) == (agents, True)
        assert all(part.generator is not None for part in record.advantages if part.truth is not None)
    [step] = read_metrics(tmp_path / "run/metrics.jsonl")
    counts = [record.debate.protocol.num_agents for record in records]
    assert step["agents"] == pytest.approx(sum(counts) / len(counts))
    assert 2 < step["eval/debate/agents"] < 3


LONG = [
    *(f"<solution>so {word}" for word in "abcdefgh"),
    *(f" then \\boxed{{1 + {n}}}</solution>" for n in "2345"),
]


def make_short() -> ScriptedPolicy:
    return ScriptedPolicy(lambda request: "In short." if request.seed % 3 == 0 else "")


@pytest.mark.slow
def test_long_solutions_are_compressed_in_training_and_evaluation_and_trained_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    module = types.ModuleType("my_short")
    module.make = make_short  # type: ignore[attr-defined]
    monkeypatch.setattr(make_short, "__module__", "my_short")
    monkeypatch.setitem(sys.modules, "my_short", module)
    debate = {**BASE["debate"], "compress": {"over": 2, "max_tokens": 2}}  # type: ignore[dict-item]
    model = {**BASE["model"], "tiny": {**BASE["model"]["tiny"], "pieces": LONG}}  # type: ignore[index,dict-item]
    tables = {
        "debate": debate,
        "model": model,
        "summarizer": {"endpoint": "short"},
        "endpoints": {"short": {"policy": "my_short:make"}},
    }
    straight, stopped = (config_of(tmp_path / name, **tables) for name in ("straight", "stopped"))
    train(straight)
    with open_training(stopped) as session:
        evaluate_first(session)
        finish_step(session, 0, train_step(session, 0))
        session.save_finished()
    train(stopped)
    lines = [list(read_records(tmp_path / name)) for name in ("straight", "stopped")]
    assert lines[0] == lines[1]
    made = [one for record in lines[0] for one in record.debate.compressions or ()]
    assert {one.failed for one in made} == {True, False}
    metrics = read_metrics(tmp_path / "straight/metrics.jsonl")
    assert sum(row["compressions"] for row in metrics) == len(made)
    assert sum(row["compressions/failed"] for row in metrics) == sum(one.failed for one in made)
    for record in lines[0]:
        for turn in record.debate.turns:
            assert held_debate(record.debate).prompt(turn.id).shown == turn.shown
        view = debate_view("0.0", record)
        shorter = {turn.id: turn.compressed for turn in view.spoken() if turn.compressed is not None}
        assert shorter == {one.turn: one.text for one in record.debate.compressions or ()}


@pytest.mark.slow
def test_the_policy_itself_shortens_and_what_it_writes_repeats(tmp_path: Path):
    compress = {"over": 2, "max_tokens": 2, "temperature": 1}
    debate = {**BASE["debate"], "compress": compress, "stop": [" 6"]}  # type: ignore[dict-item]
    model = {**BASE["model"], "tiny": {**BASE["model"]["tiny"], "pieces": LONG}}  # type: ignore[index,dict-item]
    config = config_of(tmp_path / "run", debate=debate, model=model, train={"steps": 0})
    with open_training(config) as session:
        problems, lives = session.data.held_out * 3, (None, None, 3)
        held = [run_debates(problems, session.policy, config.debate, seed=1, max_live=live) for live in lives]
    assert held[0] == held[1]  # to the bit: the requests of a batch are the same, in the same order
    texts = [[one.text for debate in of for one in debate.compressions or ()] for of in held]
    assert texts[0] == texts[2]
    made = [one for debate in held[0] for one in debate.compressions or ()]
    assert made
    assert all(len(one.completions) == 3 for one in made if one.failed)


def test_a_level_that_no_problem_has_is_refused_before_anything_is_trained(tmp_path: Path):
    levels = [{"level": 4, "num_rounds": 1}]
    config = config_of(tmp_path / "run", debate={**BASE["debate"], "by_level": levels})  # type: ignore[dict-item]
    message = r"debate.by_level.0.level = '4': no problem is of that level; there are '1'"
    with pytest.raises(DataError, match=message):
        train(config)


def test_an_evaluation_goes_on_where_it_was_and_refuses_other_protocols(tmp_path: Path):
    config = config_of(tmp_path / "run", train=BASE["train"] | {"steps": 0})
    with open_training(config) as session:
        problems = session.data.held_out
        plan = EvalPlan(problems, session.data.environment, config.debate, [0])
        first = play(plan, session.policy, tmp_path / "eval")
        again = play(plan, Mute(), tmp_path / "eval")  # type: ignore[arg-type]
        assert again == first
        held = [graded.debate for graded in first.debates]
        assert {debate.rounds_saved for debate in held} - {UNSET}
        figures = scores(first, plain_key)
        rounds = figures.estimate("debate/rounds")
        assert rounds is not None
        assert rounds.value == sum(debate.protocol.num_rounds for debate in held) / len(held)
        last = figures.values["debate/accuracy/round_2"]
        assert {problem: len(values) for problem, values in last.items()} == {p.id: 3 for p in problems}
        other = config.debate.model_copy(update={"num_rounds": 4})
        with pytest.raises(EvaluationError, match="is not of this evaluation"):
            play(EvalPlan(problems, session.data.environment, other, [0]), Mute(), tmp_path / "eval")  # type: ignore[arg-type]


class Mute:
    """A policy that nobody may ask."""

    version = 0

    async def sample(self, request: object) -> object:
        raise AssertionError("everything is kept")
