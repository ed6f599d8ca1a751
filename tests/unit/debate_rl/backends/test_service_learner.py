"""A service's learner has the gradient of ours: our own model as the service ends with the same weights."""

import copy

import numpy as np
import pytest
import torch

from debate.types import TurnId
from debate_rl.backends.learner import ServiceLearner
from debate_rl.backends.tinker_api import TINKER
from debate_rl.config import Config
from debate_rl.engines import refuse_training
from debate_rl.inference.server import key_for
from learner import LearnerConfig, Row
from learner.update.batches import collate
from learner.update.config import LOSS_NAMES
from learner.update.forward import action_logprobs
from learner.update.learner import Learner


class OwnService:
    """Learns with torch from what a service is sent: rows, and an advantage for each token."""

    def __init__(self, model, config):
        self.model, self.start = model, copy.deepcopy(model)
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=config.lr, betas=config.betas, eps=1e-5, weight_decay=0.0
        )
        self.config = config

    def prepare(self):
        pass

    def logprobs(self, rows, *, reference=False):
        with torch.no_grad():
            found = action_logprobs(self.start if reference else self.model, collate(rows))[0]
        return [line[: len(row.input_ids)].numpy() for line, row in zip(found, rows, strict=True)]

    def update(self, rows, logprobs, advantages, *, lr):
        now = action_logprobs(self.model, collate(rows))[0]
        (-(now - logprobs).exp() * advantages).sum().backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.max_grad_norm)
        self.optimizer.param_groups[0]["lr"] = lr
        self.optimizer.step()
        self.optimizer.zero_grad()
        return {}


def rows_of(seed):
    rng = np.random.default_rng(seed)

    def row(number):
        prompt, length = rng.integers(2, 5), rng.integers(8, 14)
        mask = np.arange(length) >= prompt
        stream = np.where(mask, 1 + (np.arange(length) > length - 3), 0).astype(np.int8)
        sampled = np.where(mask, rng.normal(-3, 0.3, length), 0).astype(np.float32)
        advantages = np.where(mask, rng.normal(size=length), 0).astype(np.float32)
        ids = rng.integers(5, 60, length)
        return Row(ids, mask, sampled, advantages, stream, f"p{number}", 0, TurnId(number, 0))

    return [row(number) for number in range(6)]


CORRECTED = {"beta": 0.1, "beta_judge": 0.3, "minibatches": 2, "epochs": 2, "normalise": "stream"}


@pytest.mark.parametrize(
    "changes",
    [
        *({"loss": name, "max_tokens": 16, **CORRECTED} for name in LOSS_NAMES),
        {"beta": 0.1, "kl": "k1", "kl_in": "reward", "tis_cap": 2.0, "minibatches": 2},
        {"old_logprobs": "sampling", "loss": "ppo"},
        {"tis_cap": 3.0, "tis": "sequence_mask"},
    ],
)
def test_every_loss_moves_the_weights_as_our_learner_does(changes, make_tiny):
    config = LearnerConfig.model_validate({"lr": 1e-3, "warmup_steps": 0, "adam_eps": 1e-5} | changes)
    ours, theirs = make_tiny()[0], make_tiny()[0]
    before = [parameter.detach().clone() for parameter in ours.parameters()]
    local, remote = Learner(ours, config), ServiceLearner(OwnService(theirs, config), config)
    for seed in (0, 1):
        expected, found = local.step(rows_of(seed)), remote.step(rows_of(seed))
        for name in found:
            if name != "read_tokens":  # here without padding
                assert found[name] == pytest.approx(expected[name], rel=1e-3, abs=1e-5), name
    pairs = zip(ours.parameters(), theirs.parameters(), before, strict=True)
    apart, moved = zip(*(((a - b).abs().max(), (a - c).abs().max()) for a, b, c in pairs), strict=True)
    assert max(apart) < 1e-2 * max(moved)
    assert remote.state_dict() == {"steps": 2, "bad_steps": 0}


def test_an_update_that_the_service_skips_counts_as_bad(make_tiny):
    config = LearnerConfig(lr=1e-3, warmup_steps=0, adam_eps=1e-5)
    service = OwnService(make_tiny()[0], config)
    service.update = lambda *_, **__: {"grad_norm": float("nan")}
    learner = ServiceLearner(service, config)
    assert all(np.isfinite(value) for value in learner.step(rows_of(0)).values())
    assert learner.state_dict() == {"steps": 1, "bad_steps": 1}


@pytest.mark.parametrize(
    ("key", "changes"),
    [
        ("model.lora_alpha", {"model": {"name_or_path": "m", "lora_alpha": 16}}),
        ("model.name_or_path", {"model": {"tiny": {}}}),
        ("learner.entropy_bonus", {"learner": {"entropy_bonus": 0.1}}),
        ("train.jitter", {"train": {"jitter": 1}}),
        ("debate.personas", {}),
        ("debate.temperature", {"debate": {"temperature": [[0, 1.0], [4, 0.5]]}}),
        ("sft.data", {"sft": {"data": ["replies.jsonl"]}}),
    ],
)
def test_what_a_service_cannot_do_is_refused_by_name(key, changes):
    whole = {"model": {"name_or_path": "m"}, "engine": {"kind": "tinker"}} | changes
    with pytest.raises(ValueError, match=key):
        refuse_training(Config.model_validate(whole))


def test_the_key_goes_to_its_own_hosts_alone(monkeypatch):
    monkeypatch.setenv("TINKER_API_KEY", "tml-secret")
    monkeypatch.delenv("TINKER_BASE_URL", raising=False)
    sent = {url: key_for(url, TINKER) for url in ("http://evil.example:8000", "http://127.0.0.1:8000")}
    assert sent == {"http://evil.example:8000": None, "http://127.0.0.1:8000": "tml-secret"}
    monkeypatch.setenv("TINKER_BASE_URL", "http://own.example:8000")
    assert key_for("http://own.example:8000", TINKER) == "tml-secret"
