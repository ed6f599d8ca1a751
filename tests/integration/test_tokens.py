import json
from dataclasses import replace
from math import exp

import pytest
import torch

from debate.types import TurnId
from debate_rl.config import Config
from debate_rl.config.recipes import load_config, read_run_config
from debate_rl.inspector.views.tokens import token_table
from debate_rl.runs.weights import load_kept
from debate_rl.training.loop import train
from learner.token_streams import token_streams
from transcripts import read_records


@pytest.fixture(scope="module")
def folder(tiny_recipe, tmp_path_factory):
    """A run of three steps that kept its policy versions 2 and 3."""
    where = tmp_path_factory.mktemp("runs")
    quiet = ["logging.progress=none", "learner.lr=0.02", "train.steps=3", "train.save_every=2"]
    train(load_config(Config, tiny_recipe, [f"run.dir={where / 'run'}", *quiet]))
    return where


@pytest.fixture
def tokens(folder, debate_command, monkeypatch):
    monkeypatch.chdir(folder)
    return lambda *arguments: debate_command("inspect tokens", *arguments)


def record_of(folder, step, place):
    return list(read_records(folder / f"run/transcripts/step_{step:06d}.jsonl"))[place]


def expected(folder, checkpoint, record, turn_id):
    """Return each token's log-probability by the model's whole logits in float64."""
    config = read_run_config(folder / "run")
    model, _ = load_kept(config, checkpoint and folder / "run" / checkpoint)
    turn = record.debate.turn(turn_id)
    prompt, own = turn.completion.prompt_tokens, turn.completion.tokens
    with torch.no_grad():
        logits = model.double()(torch.tensor([prompt + own])).logits[0, len(prompt) - 1 : -1]
    table = (logits / record.debate.personas[turn_id.agent].temperature).log_softmax(-1)
    return table.gather(1, torch.tensor(own)[:, None])[:, 0].tolist()


@pytest.mark.parametrize(
    ("step", "checkpoint", "trainer", "said"),
    [
        (0, None, 0, "trainer: the start weights, policy version 0, which sampled this turn"),
        (2, "checkpoints/step_000002", 2, "policy version 2, which sampled this turn"),
        (1, "checkpoints/step_000003", 3, "Version 1, which sampled this turn, was not kept"),
    ],
)
def test_each_token_has_its_stream_advantage_and_both_log_probabilities(
    tokens, folder, tmp_path, step, checkpoint, trainer, said
):
    record, turn_id = record_of(folder, step, 3), TurnId(1, 1)
    code, out, err = tokens("run", f"{step}.3", "--turn", "1.1", "--json", tmp_path / "t.json")
    assert (code, err) == (0, "")
    assert said in out
    found = json.loads((tmp_path / "t.json").read_text())
    assert (found["policy_version"], found["trainer_version"]) == (step, trainer)
    turn = record.debate.turn(turn_id)
    [part] = [part for part in record.advantages if part.turn == turn_id]
    weights = {1: part.generator or 0.0, 2: (part.judge or 0.0) + (part.format or 0.0)}
    rows = found["tokens"]
    assert [row["token"] for row in rows] == list(turn.completion.tokens)
    streams = token_streams(turn, evaluation=read_run_config(folder / "run").advantages.evaluation).tolist()
    assert [row["stream"] for row in rows] == [("forced", "generator", "judge")[stream] for stream in streams]
    given = [weights[stream] for stream in streams]
    if 2 not in streams and turn.completion.stop_reason == "stop":
        given[-1] += part.format or 0.0  # nothing was judged: the format is that of ending the reply so
    assert [row["advantage"] for row in rows] == pytest.approx(given)
    assert [row["sampler"] for row in rows] == pytest.approx(turn.completion.logprobs)
    truth = expected(folder, checkpoint, record, turn_id)
    assert [row["trainer"] for row in rows] == pytest.approx(truth, abs=1e-5)
    assert [row["ratio"] for row in rows] == pytest.approx(
        [exp(row["trainer"] - row["sampler"]) for row in rows]
    )
    far = max(abs(row["ratio"] - 1) for row in rows)
    assert far < 1e-4 if trainer == step else far > 1e-3


def test_the_trainer_multiplies_in_the_type_of_the_run(tokens, folder, tmp_path):
    """In bfloat16 a log-probability of this model is some thousandths away from the exact one."""
    record, turn_id, path = record_of(folder, 0, 3), TurnId(1, 1), tmp_path / "t.json"
    truth = torch.tensor(expected(folder, None, record, turn_id))
    for compute, least, most in (("float32", 0.0, 1e-5), ("bfloat16", 1e-4, 0.1)):
        tokens("run", "0.3", "--turn", "1.1", "--json", path, f"learner.compute={compute}")
        trainer = torch.tensor([row["trainer"] for row in json.loads(path.read_text())["tokens"]])
        assert least <= float((trainer - truth).abs().max()) < most


def test_a_turn_without_signal_and_forced_tokens_have_blanks(folder):
    record = record_of(folder, 0, 0)
    config = read_run_config(folder / "run")
    model, tokenizer = load_kept(config, None)
    first = record.debate.turns[0]
    completion = replace(first.completion, forced=(0, 2))
    turns = (replace(first, completion=completion), *record.debate.turns[1:])
    changed = replace(record, debate=replace(record.debate, turns=turns), advantages=())
    rows = token_table(changed, first.id, model, tokenizer, config)
    assert {row.advantage for row in rows} == {None}
    assert [row.index for row in rows if row.stream == "forced"] == [0, 2]
    assert (rows[0].sampler, rows[0].trainer, rows[0].ratio) == (None, None, None)
    assert rows[1].ratio == pytest.approx(1.0, abs=1e-4)
