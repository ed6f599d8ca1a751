"""The canary with a stand-in engine: LocalPolicy on a copy of the model, which can be made wrong."""

import asyncio
import json
import sys
import types
from dataclasses import replace

import pytest
import torch

from debate import Message, Problem, SampleRequest
from debate.types import TurnId
from debate_rl.config import Config
from debate_rl.inference.engine_report import EngineReport, digest
from debate_rl.inference.local import LocalPolicy
from debate_rl.inference.vllm_weights import weights_as_computed
from debate_rl.training.check_engine_weights import Canary
from debate_rl.training.loop import train
from debate_rl.training.run import EngineError
from envs import Grade, GradeStatus
from learner import Learner, LearnerConfig

REQUESTS = [
    SampleRequest((Message("user", f"hello {seed}"),), temperature, 8, (), seed, "d", TurnId(0, 0))
    for seed, temperature in enumerate((0.6, 0.9))
]


def report_of(model, tokenizer, requests=REQUESTS, **changes):
    """Return what an engine with this model would say of itself."""

    async def replies():
        return await asyncio.gather(*map(LocalPolicy(model, tokenizer).sample, requests))

    report = EngineReport("float32", tuple(asyncio.run(replies())), 0, False, digests_of(model))
    return replace(report, **changes)


def digests_of(model):
    return {name: digest(one, torch.float32) for name, one, _ in weights_as_computed(model, torch.float32)}


def canary_of(model, tokenizer):
    own = Learner(model, LearnerConfig())
    return Canary(model, REQUESTS, encode=LocalPolicy(model, tokenizer).encode, logprobs=own.logprobs)


def learn(model, seed):
    """Change everything that learns."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.requires_grad:
                weight += torch.randn_like(weight) * 0.1


@pytest.fixture(params=[0, 2], ids=["whole", "adapter"])
def pair(request, make_tiny):
    """Return model, tokenizer and the canary that looks after it, one update seen."""
    model, tokenizer = make_tiny(lora_rank=request.param)
    canary = canary_of(model, tokenizer)
    learn(model, 0)
    assert canary.compare(report_of(model, tokenizer)).fault is None
    return model, tokenizer, canary


def test_an_engine_that_has_what_was_learnt_is_right(pair):
    model, tokenizer, canary = pair
    for seed in range(1, 4):
        learn(model, seed)
        finding = canary.compare(report_of(model, tokenizer))
        assert finding.fault is None
        assert finding.metrics["canary/weights_compared"] == 1
        assert finding.metrics["canary/logprob_difference"] < 1e-5


def test_weights_of_the_update_before_are_stale(pair):
    model, tokenizer, canary = pair
    old = report_of(model, tokenizer)
    learn(model, 1)
    kind = "adapter" if hasattr(model, "peft_config") else "weights"
    assert canary.compare(old).fault.startswith(f"stale {kind}: nothing of the update was taken, ")


def test_a_layer_that_was_left_out_is_named(pair):
    model, tokenizer, canary = pair
    before = report_of(model, tokenizer).digests
    learn(model, 1)
    now = report_of(model, tokenizer)
    layer = [one for one in before if "layers.1.mlp.down_proj" in one]
    name = next(one for one in layer if before[one] != now.digests[one])
    fault = canary.compare(replace(now, digests=now.digests | {name: before[name]})).fault
    assert "not all of the update was taken, 1 of" in fault
    assert fault.endswith(name)


def test_other_values_are_wrong_weights(make_tiny):
    model, tokenizer = make_tiny(lora_rank=2)
    other, _ = make_tiny(lora_rank=2, seed=5)
    canary = canary_of(model, tokenizer)
    theirs = {name: one for name, one in report_of(other, tokenizer).digests.items() if ".lora_" not in name}
    now = report_of(model, tokenizer)
    fault = canary.compare(replace(now, digests=now.digests | theirs)).fault
    assert fault.startswith("wrong base: the engine computes with other values in ")
    assert "model.embed_tokens.weight" in fault


def test_what_is_not_weights_is_named(pair):
    model, tokenizer, canary = pair
    now = report_of(model, tokenizer)
    asked = [replace(request, messages=(Message("user", "bye"),)) for request in REQUESTS]
    other = report_of(model, tokenizer, asked)
    assert canary.compare(replace(now, completions=other.completions)).fault.startswith("template: ")
    assert canary.compare(replace(now, cached_tokens=16)).fault.startswith("cache: 16 tokens")
    assert canary.compare(replace(now, rounded_head=True)).fault.startswith("head: ")


@pytest.mark.parametrize(
    ("made", "named"),
    [
        (lambda asked: 1.0, "temperature 1 in every request"),
        (lambda asked: 0.9, "temperature 0.9 in every request"),
        (lambda asked: asked**2, "each temperature applied twice"),
    ],
)
def test_another_temperature_is_named(pair, made, named):
    model, tokenizer, canary = pair
    asked = [replace(request, temperature=made(request.temperature)) for request in REQUESTS]
    fault = canary.compare(report_of(model, tokenizer, asked)).fault
    assert fault == f"temperature: the engine's log-probabilities are those at {named}"


PIECES = [*(f"<solution>\\boxed{{{n}}}</solution>" for n in (1, 2)), *(f" {n}" for n in range(6))]
TINY = {"hidden_size": 32, "layers": 1, "heads": 2, "intermediate_size": 48, "init_std": 0.3}


class Sums:
    """Chance solves some: whole replies are single tokens."""

    name = "sums"

    def problems(self, *, split, limit=None, seed=None):
        numbers = range(4) if split == "train" else range(4, 6)
        return tuple(Problem(f"p{n}", f" {n}", answer=str(1 + n % 2), kind="number") for n in numbers)

    def grade(self, problem, answer):
        right = answer == problem.answer
        return Grade(GradeStatus.CORRECT if right else GradeStatus.WRONG, "sums", answer)


class Engine(LocalPolicy):
    """Reports the digests of the model as it was ``late`` updates ago."""

    late = 0

    def __init__(self, model, tokenizer, **settings):
        super().__init__(model, tokenizer, **settings)
        self.model, self.taken = model, []

    async def update(self, weights, version):
        await super().update(weights, version)
        self.taken.append(digests_of(self.model))

    async def check(self, requests):
        replies = await asyncio.gather(*map(self.sample, requests))
        late = self.late if len(self.taken) > 2 else 0
        return (EngineReport("float32", tuple(replies), 0, False, self.taken[-1 - late]),)


@pytest.fixture
def config(tmp_path, monkeypatch):
    module = types.SimpleNamespace(Sums=Sums, Engine=Engine)
    monkeypatch.setitem(sys.modules, "canary_engine", module)
    tiny = TINY | {"context_tokens": 512, "fallback": "none", "pieces": PIECES}
    tables = {"run": {"dir": str(tmp_path / "run")}, "env": {"kind": "canary_engine:Sums"}}
    tables |= {"held_out": {"every": 0}, "debate": {"num_rounds": 1, "max_tokens": 8, "prompts": "tiny"}}
    tables |= {"model": {"device": "cpu", "policy": "canary_engine:Engine", "tiny": tiny}}
    tables |= {"learner": {"lr": 1e-3, "warmup_steps": 0}, "logging": {"progress": "none"}}
    return Config.model_validate(tables | {"train": {"steps": 4, "batch_size": 2, "group_size": 8}})


def lines_of(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_a_run_ends_with_finished_steps_saved_and_goes_on_with_a_right_engine(config, tmp_path, monkeypatch):
    monkeypatch.setattr(Engine, "late", 1)  # from the third update on: the first is that of the start
    with pytest.raises(EngineError, match=r"after update 2, stale weights: .*; 2 of 4 steps are saved in "):
        train(config)
    assert [line["step"] for line in lines_of(tmp_path / "run")] == [0, 1]
    monkeypatch.setattr(Engine, "late", 0)
    session = train(config)
    lines = lines_of(tmp_path / "run")
    assert [line["step"] for line in lines] == [0, 1, 2, 3]
    assert session.step == session.learner.steps == session.policy.version == 4
    assert all(line["canary/weights_compared"] == 1 for line in lines)
    assert all(line["seconds/canary"] < line["seconds/learn"] for line in lines)
    assert all(line["staleness_max"] == 0 for line in lines)
