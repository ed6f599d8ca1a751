from random import Random

import pytest
import torch

from debate import DebateConfig
from debate_rl.config import Config
from debate_rl.config.warm_start import kinds_of_turns
from debate_rl.inference.local import LocalPolicy
from debate_rl.models import load_model
from debate_rl.warm_start.demonstrations import Demonstrator
from debate_rl.warm_start.tokenizer import tiny_vocabulary
from debate_rl.warm_start.training import Encoder, warm_start
from envs import load_environment

TINY = {"hidden_size": 32, "layers": 1, "heads": 2, "intermediate_size": 48}
TINY |= {"context_tokens": 256, "fallback": "ascii"}


def config_of(*, seed=0, kind="pair_sum", **warm):
    small = {"solve_steps": 4, "debate_steps": 6, "solve_batch": 8, "batch": (4, 4, 2, 2)}
    tables = {"seed": seed, "env": {"kind": kind, "levels": [1]}, "warm_start": small | warm}
    tables |= {"debate": {"num_rounds": 2, "prompts": "tiny", "handles": ["K7", "Q2", "M4"]}}
    return Config.model_validate(tables | {"model": {"tiny": TINY, "chat": True, "device": "cpu"}})


def started(config, environment=None):
    """Return (last loss, weights) of a warm start."""
    model, tokenizer = load_model(config.model, vocabulary=tiny_vocabulary(config), seed=1)
    environment = environment or load_environment(config.env.kind, levels=config.env.levels)
    encode = LocalPolicy(model, tokenizer).encode
    loss = warm_start(model, tokenizer, config, environment, encode=encode, advance=lambda *how: None)
    return loss, {name: value.clone() for name, value in model.state_dict().items()}


@pytest.mark.slow
def test_a_seed_repeats_bit_for_bit_and_another_differs():
    torch.manual_seed(1)
    loss, weights = started(config_of())
    torch.manual_seed(2)
    again, same = started(config_of())
    assert loss == again != started(config_of(seed=1))[0]
    assert all(torch.equal(weights[name], same[name]) for name in weights)


@pytest.fixture(scope="module")
def encoder():
    config = config_of()
    model, tokenizer = load_model(config.model, vocabulary=tiny_vocabulary(config), seed=1)
    return Encoder(tokenizer, LocalPolicy(model, tokenizer).encode), tokenizer


def test_prompts_and_padding_weigh_nothing(encoder):
    encode, _ = encoder
    config = config_of()
    habits = config.warm_start.model_copy(update={"misjudge": 0.0, "decidable": 0.5})
    demonstrator = Demonstrator("pair_sum", config.debate, habits, Random(0))
    problem = load_environment("pair_sum", levels=[1]).problems(split="train", limit=1, seed=0)[0]
    shown = [demonstrator.show(kind, problem) for kind in ("solve", "debate", "drill", "ballot")]
    all_tokens, all_weights = encode.batch(shown)
    for row, demonstration in enumerate(shown):
        tokens, weights = encode.batch([demonstration])
        length = tokens.shape[1]
        assert torch.equal(all_tokens[row, :length], tokens[0])
        assert torch.equal(all_weights[row, :length], weights[0])
        assert not all_weights[row, length:].any()
        prompt = int(weights[0].nonzero()[0])
        assert prompt > 5
        assert (weights[0, prompt:] > 0).all() == (demonstration.base_weight > 0)


@pytest.mark.parametrize(
    ("protocol", "kinds"),
    [
        ({"num_agents": 3, "num_rounds": 2}, {"solve", "debate", "drill", "ballot"}),
        ({"num_agents": 3, "num_rounds": 1}, {"solve", "drill", "ballot"}),
        ({"num_agents": 3, "num_rounds": 2, "final_ballot": False}, {"solve", "debate", "drill"}),
        ({"num_agents": 2, "num_rounds": 2}, {"solve", "debate"}),
        ({"num_agents": 2, "num_rounds": 2, "judge_own": True}, {"solve", "debate", "drill", "ballot"}),
        ({"num_agents": 3, "num_rounds": 2, "history_rounds": 0}, {"solve", "debate"}),
        ({"num_agents": 1, "num_rounds": 1}, {"solve"}),
    ],
)
def test_kinds_that_a_protocol_has_a_use_for(protocol, kinds):
    assert kinds_of_turns(DebateConfig(**protocol)) == kinds


def test_levels_that_are_not_shown_are_left_to_learn(monkeypatch):
    seen = []
    show = Demonstrator.show

    def spy(self, kind, problem, **more):
        seen.append(problem.level)
        return show(self, kind, problem, **more)

    monkeypatch.setattr(Demonstrator, "show", spy)
    mixed = load_environment("pair_sum", levels=[1, 2])
    settings = config_of(solve_steps=1, debate_steps=1, levels=[1])
    config = settings.model_copy(update={"env": settings.env.model_copy(update={"levels": (1, 2)})})
    started(config, mixed)
    assert set(seen) == {"1"}
    seen.clear()
    shown = config.model_copy(update={"warm_start": config.warm_start.model_copy(update={"levels": None})})
    started(shown, mixed)
    assert set(seen) == {"1", "2"}
