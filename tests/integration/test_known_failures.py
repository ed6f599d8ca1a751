"""Known failures of reinforcement learning with language models that no test of one package meets."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from debate import DebateConfig, Problem, run_debates
from debate.policies.scripted import ScriptedPolicy
from debate.types import Message, SampleRequest, TurnId
from debate_rl.config import Config
from debate_rl.config.models import ModelConfig, TinyConfig
from debate_rl.config.recipes import load_config
from debate_rl.inference.local import LocalPolicy
from debate_rl.metrics.answers import answer_metrics
from debate_rl.metrics.debates import format_metrics
from debate_rl.preflight.start import SchemeWarning, check_loss
from learner import AdvantageConfig, LearnerConfig
from learner.advantages import StreamSettings
from learner.update.learner import Learner

from ..unit.learner.conftest import row_of

SOLVED, SILENT = "<solution>\\boxed{4}</solution>", "<solution>?</solution>"


def test_sampler_and_trainer_have_the_same_distribution(make_tiny):
    """At a temperature of 0.6 the first step's mismatch is rounding; a trainer at 1 is off by a third."""
    model, tokenizer = make_tiny(["<solution>", "</solution>", " 1"], context_tokens=2048)
    model.generation_config.top_k, model.generation_config.top_p = 1, 0.1  # what a hub model may bring along
    said = (Message("user", "What is 2 + 2?"),)
    asked = [SampleRequest(said, 0.6, 16, (), seed, "d", TurnId(0, 0)) for seed in range(16)]
    completions = LocalPolicy(model, tokenizer).sample_all(asked)
    assert len({completion.tokens for completion in completions}) == 16  # only the temperature shapes them
    rows = []
    for one in completions:
        logprobs = np.array([0.0] * len(one.prompt_tokens) + list(one.logprobs), np.float32)
        given = one.prompt_tokens, one.tokens, [1.0] * len(one.tokens)
        rows.append(row_of(*given, sampling_logprobs=logprobs, temperature=0.6))
    learner = Learner(model, LearnerConfig(lr=1e-12, warmup_steps=0))
    assert learner.step(rows)["mismatch_mean"] < 1e-4
    assert learner.step([replace(row, temperature=1.0) for row in rows])["mismatch_mean"] > 0.3


def held(names, replies, max_tokens=600, default=SILENT):
    config = DebateConfig(
        num_agents=2, num_rounds=1, final_ballot=False, prompts="tiny", max_tokens=max_tokens
    )
    problems = [Problem(name, "2 + 2?", answer="4", kind="number") for name in names]
    return run_debates(problems, ScriptedPolicy(replies, default=default, tokens=True), config, seed=0)


def test_truncation_stands_beside_every_accuracy():
    """Half the replies think too long: accuracy .5 is a matter of the limit and not of the model."""
    replies = {(0, 0): SOLVED.replace("\\boxed", "hm " * 40 + "\\boxed"), (1, 0): SOLVED}
    for max_tokens, right, cut in ((60, 0.5, 0.5), (600, 1.0, 0.0)):
        debates = held("abcd", replies, max_tokens)
        tables = [[[turn.parsed.answer == "4"] for turn in debate.turns] for debate in debates]
        assert answer_metrics(debates, tables)["accuracy"] == right
        assert format_metrics(debates)["truncated"] == cut


def test_problems_that_teach_nothing_are_counted():
    """One problem all right, one all wrong, one mixed."""
    tables = [((True,), (True,)), ((False,), (False,)), ((True,), (False,))]
    metrics = answer_metrics(held("abc", {(0, 0): SOLVED}), tables)
    assert metrics["accuracy/all_right"] == metrics["accuracy/all_wrong"] == pytest.approx(1 / 3)


def test_dr_grpo_divides_no_advantages_unless_it_is_told_to_and_says_that_it_is_weaker():
    plain = {"model": {"tiny": {}}, "learner": {"loss": "dr_grpo"}}
    config = Config.model_validate(plain)
    assert {getattr(config.advantages, name).scale for name in ("truth", "judge", "mixed")} == {"none"}
    divided = Config.model_validate(plain | {"advantages": {"truth": {"scale": "group"}}})
    assert (divided.advantages.truth.scale, divided.advantages.judge.scale) == ("group", "none")
    assert Config.model_validate(divided.model_dump()) == divided
    settings = AdvantageConfig(truth=StreamSettings(baseline="rloo"), judge=StreamSettings(scale="batch"))
    typed = Config(
        model=ModelConfig(tiny=TinyConfig()), learner=LearnerConfig(loss="dr_grpo"), advantages=settings
    )
    assert typed.advantages.truth == StreamSettings(baseline="rloo", scale="none")
    assert (typed.advantages.judge.scale, typed.advantages.mixed.scale) == ("batch", "none")
    overridden = load_config(Config, "quickstart", ["learner.loss=dr_grpo", "advantages.judge.scale=group"])
    assert (overridden.advantages.truth.scale, overridden.advantages.judge.scale) == ("none", "group")
    for chosen, told in ((divided, "advantages.truth.scale"), (config, "learner.lr$")):
        with pytest.warns(SchemeWarning, match=rf"^learner\.loss=dr_grpo: .*{told}"):
            check_loss(chosen)
    with warnings.catch_warnings(action="error"):
        check_loss(Config.model_validate({"model": {"tiny": {}}}))
