"""Known failures of reinforcement learning with language models, a test for each, in numbers.

Distributions of sampler and trainer, masks and not token values, a seed for each request, chat templates
for chat models alone, stop strings, truncation, Adam's epsilon, groups without variance, Dr. GRPO.
"""

import warnings

import numpy as np
import pytest
import torch

from debate import DebateConfig, Problem, run_debates
from debate.personas import PERSONAS
from debate.policies.scripted import ScriptedPolicy
from debate.types import Completion, Message, ParsedTurn, SampleRequest, Turn, TurnId
from debate_rl.config import Config
from debate_rl.config.models import ModelConfig, TinyConfig
from debate_rl.config.recipes import load_config
from debate_rl.evaluation.evaluate import evaluate
from debate_rl.evaluation.play import EvalPlan
from debate_rl.evaluation.report import metrics
from debate_rl.inference.encoding import EncodingError, PromptEncoder
from debate_rl.inference.local import LocalPolicy
from debate_rl.metrics.answers import answer_metrics
from debate_rl.metrics.debates import format_metrics
from debate_rl.preflight.start import SchemeWarning, check_loss
from envs import Grade, GradeStatus, extract
from learner import AdvantageConfig, LearnerConfig, Row, Transition
from learner.advantages import StreamSettings, turn_advantages
from learner.losses import LOSSES, LossConfig, LossInputs
from learner.rows import make_rows
from learner.update.batches import collate
from learner.update.forward import action_logprobs
from learner.update.learner import Learner
from rewards import RewardConfig

PROBLEM = Problem("p", "What is 2 + 2?", answer="4", kind="number")
ALONE = DebateConfig(num_agents=1, num_rounds=1, prompts="tiny", max_tokens=24)


@pytest.fixture(scope="module")
def tiny(make_tiny):
    return make_tiny(["<solution>", "</solution>", " 1"], context_tokens=2048)


def request(seed=0, *, temperature=1.0, max_tokens=16, stop=()):
    messages = (Message("user", "What is 2 + 2?"),)
    return SampleRequest(messages, temperature, max_tokens, stop, seed, "d", TurnId(0, 0))


def row_of(completion: Completion, *, temperature: float = 1.0) -> Row:
    """A completion as a row with an advantage of 1."""
    prompt, total = len(completion.prompt_tokens), len(completion.prompt_tokens) + len(completion.tokens)
    mask = np.arange(total) >= prompt
    return Row(
        input_ids=np.array(completion.prompt_tokens + completion.tokens, np.int64),
        action_mask=mask,
        sampling_logprobs=np.concatenate([np.zeros(prompt), completion.logprobs]).astype(np.float32),
        advantages=mask.astype(np.float32),
        stream=mask.astype(np.int8),
        group_id="p",
        policy_version=0,
        turn=TurnId(0, 0),
        temperature=temperature,
    )


def test_sampler_and_trainer_have_the_same_distribution(tiny):
    """At a temperature of 0.6 the first step's mismatch is rounding; a trainer at 1 is off by a third."""
    model, tokenizer = tiny
    model.generation_config.top_k, model.generation_config.top_p = 1, 0.1  # what a hub model may bring along
    asked = [request(seed, temperature=0.6) for seed in range(16)]
    completions = LocalPolicy(model, tokenizer).sample_all(asked)
    model.generation_config.top_k = model.generation_config.top_p = None
    assert len({completion.tokens for completion in completions}) == 16, "nothing but temperature shapes it"
    mismatches = []
    for temperature in (0.6, 1.0):
        rows = [row_of(completion, temperature=temperature) for completion in completions]
        learner = Learner(model, LearnerConfig(lr=1e-12, warmup_steps=0))
        mismatches.append(learner.step(rows)["mismatch_mean"])
    ours, theirs = mismatches
    assert ours < 1e-4
    assert theirs > 0.3


def test_token_zero_is_a_token_and_padding_is_what_the_mask_says(tiny):
    """A completion "!!" of token 0 beside a longer one: whoever takes 0 for padding loses it all."""
    model, _ = tiny
    short = row_of(Completion((5, 6), (0, 0), (-1.0, -1.0), "!!", "stop", 0))
    longer = row_of(Completion((5, 6), (7, 8, 9, 10), (-1.0,) * 4, "", "stop", 0))
    batch = collate([short, longer], pad_id=0)
    theirs = batch.mask & (batch.input_ids != 0)
    assert (int(theirs[0].sum()), int(batch.mask[0].sum())) == (0, 2)
    logprobs = action_logprobs(model, batch)[0]
    assert int((logprobs[0] < 0).sum()) == 2
    assert logprobs[0, 4:].eq(0).all()


def test_every_request_has_a_seed_of_its_own(tiny):
    """Six debates of one problem: with one seed for all of them there is one answer and no contrast."""
    policy = LocalPolicy(*tiny)
    theirs = policy.sample_all([request(7) for _ in range(6)])
    assert len({completion.tokens for completion in theirs}) == 1
    ours = run_debates([PROBLEM] * 6, policy, ALONE, seed=7)
    assert len({debate.turns[0].completion.tokens for debate in ours}) == 6
    narrow = run_debates([PROBLEM] * 6, LocalPolicy(*tiny, batch_size=2), ALONE, seed=7, max_live=2)
    assert [d.turns[0].completion.tokens for d in narrow] == [d.turns[0].completion.tokens for d in ours]


def test_base_models_get_no_chat_template_and_chat_models_do(tiny):
    _, tokenizer = tiny
    messages = (Message("system", "You solve."), Message("user", "2 + 2?"))
    chat = tokenizer.decode(PromptEncoder(tokenizer, chat=True).encode(messages))
    base = tokenizer.decode(PromptEncoder(tokenizer, chat=False).encode(messages))
    assert ("<|assistant|>" in chat, "<|assistant|>" in base) == (True, False)
    assert "2 + 2?" in chat
    assert "2 + 2?" in base
    template, tokenizer.chat_template = tokenizer.chat_template, None
    with pytest.raises(EncodingError, match="no chat template; set chat = false"):
        PromptEncoder(tokenizer, chat=True)
    tokenizer.chat_template = template


RAMBLING = "<solution>2 + 2 = 4. \\boxed{4}</solution>\nQuestion: What is 9 + 8?\nAnswer: 17"


def test_nothing_is_read_behind_the_end_and_stopped_is_not_cut():
    """A model that goes on with a question of its own: the last number of it all is 17."""
    assert extract(RAMBLING, mode="lenient").answer == "4"
    assert extract("So 4.\nQuestion: What is 9 + 8?\nAnswer: 17", mode="lenient").answer == "17"
    stopped = ScriptedPolicy(lambda _: RAMBLING, tokens=True)
    (debate,) = run_debates([PROBLEM], stopped, ALONE.model_copy(update={"max_tokens": 500}), seed=0)
    completion = debate.turns[0].completion
    assert completion.text == "<solution>2 + 2 = 4. \\boxed{4}</solution>"
    assert (completion.stop_reason, debate.turns[0].parsed.answer) == ("stop", "4")
    own = ScriptedPolicy(lambda _: "So 4.\nQuestion: What is 9 + 8?", tokens=True)
    asked = ALONE.model_copy(update={"max_tokens": 500, "stop": ("Question:",)})
    (debate,) = run_debates([PROBLEM], own, asked, seed=0)
    assert debate.turns[0].completion.text == "So 4.\nQuestion:"
    (debate,) = run_debates([PROBLEM], stopped, ALONE, seed=0)
    assert debate.turns[0].completion.stop_reason == "length"


class Four:
    name = "four"

    def problems(self, *, split, limit=None, seed=None):
        return (PROBLEM,)

    def grade(self, problem, answer):
        if answer is None:
            return Grade(GradeStatus.MISSING, "four")
        return Grade(GradeStatus.CORRECT if answer == "4" else GradeStatus.WRONG, "four", answer)


def test_truncation_stands_beside_every_accuracy():
    """Half the replies think too long: accuracy .5 is a matter of the limit and not of the model."""
    long = "<solution>" + "hm " * 40 + "\\boxed{4}</solution>"
    replies = {(0, 0): long, (1, 0): "<solution>\\boxed{4}</solution>"}
    config = DebateConfig(num_agents=2, num_rounds=1, final_ballot=False, prompts="tiny", max_tokens=60)
    problems = [Problem(f"p{n}", "2 + 2?", answer="4", kind="number") for n in range(4)]
    debates = run_debates(problems, ScriptedPolicy(replies, tokens=True), config, seed=0)
    tables = [tuple((four(turn),) for turn in debate.turns) for debate in debates]
    assert answer_metrics(debates, tables)["accuracy"] == 0.5
    assert format_metrics(debates)["truncated"] == 0.5
    found = metrics(evaluate(EvalPlan(problems, Four(), config, (0,)), ScriptedPolicy(replies, tokens=True)))
    assert found["eval/debate/accuracy/round_0"] == found["eval/debate/truncated"] == 0.5
    roomy = config.model_copy(update={"max_tokens": 600})
    found = metrics(evaluate(EvalPlan(problems, Four(), roomy, (0,)), ScriptedPolicy(replies, tokens=True)))
    assert (found["eval/debate/accuracy/round_0"], found["eval/debate/truncated"]) == (1.0, 0.0)


def four(turn: Turn):
    return Four().grade(PROBLEM, turn.parsed.answer).verdict


def first_update(gradient: float, **changes) -> float:
    """How far AdamW moves one weight at the first step, in units of the peak learning rate."""
    weight = torch.nn.Parameter(torch.zeros((), dtype=torch.float64))
    config = LearnerConfig.model_validate({"lr": 1e-3, "adam_eps": 1e-5} | changes)
    lr = config.lr / config.warmup_steps if config.warmup_steps else config.lr
    optimizer = torch.optim.AdamW([weight], lr=lr, betas=config.betas, eps=config.adam_eps, weight_decay=0)
    weight.grad = torch.tensor(gradient, dtype=torch.float64)
    optimizer.step()
    return abs(weight.item()) / config.lr


def test_a_tiny_epsilon_without_warm_up_is_warned_about_and_not_the_default(tiny):
    """Adam's first step is g / (|g| + eps): with 1e-7 a gradient of mere noise moves a weight all the way."""
    noise = 1e-6
    assert first_update(noise, adam_eps=1e-7, warmup_steps=0) == pytest.approx(1 / 1.1)
    assert first_update(noise, adam_eps=1e-5, warmup_steps=0) == pytest.approx(1 / 11)
    assert first_update(noise, adam_eps=1e-8) == pytest.approx(1 / 1.01 / 30)  # after a warm-up of 30 steps
    defaults = LearnerConfig()
    assert (defaults.adam_eps, defaults.warmup_steps, defaults.max_grad_norm) == (None, 30, 1.0)
    model, _ = tiny
    with pytest.warns(UserWarning, match=r"learner\.adam_eps=1e-07 without warm-up is known to explode"):
        Learner(model, LearnerConfig(adam_eps=1e-7, warmup_steps=0))
    learners = (Learner(model, LearnerConfig(warmup_steps=steps)) for steps in (0, 30))
    assert [learner.optimizer.param_groups[0]["eps"] for learner in learners] == [1e-5, 1e-8]
    with warnings.catch_warnings(action="error"):
        Learner(model, defaults)


def solved(problem: str, group: int, agent: int, right: bool) -> Transition:
    completion = Completion((1,), (2,), (-1.0,), "x", "stop", 0, (0,))
    turn = Turn(TurnId(agent, 0), "K7", (), completion, ParsedTurn())
    return Transition(turn, PERSONAS[agent], problem, group, truth=float(right))


def test_groups_without_variance_are_dropped_and_counted():
    """One problem all right, one all wrong, one mixed: only the mixed one has something to teach."""
    verdicts = {"easy": (True, True), "hard": (False, False), "mixed": (True, False)}
    turns = [
        solved(name, group, agent, right)
        for group, (name, rights) in enumerate(verdicts.items())
        for agent, right in enumerate(rights)
    ]
    advantages = turn_advantages(turns, RewardConfig(truth_weight=1.0), AdvantageConfig(), {})
    assert [row.group_id for row in make_rows(turns, advantages.turns, AdvantageConfig())] == [
        "mixed",
        "mixed",
    ]
    assert advantages.metrics["advantage/zero_variance_share/truth"] == pytest.approx(2 / 3)
    assert advantages.metrics["advantage/rows_dropped"] == 4
    config = DebateConfig(num_agents=2, num_rounds=1, final_ballot=False, prompts="tiny", max_tokens=600)
    problems = [Problem(name, "?", answer="4", kind="number") for name in verdicts]
    policy = ScriptedPolicy({(0, 0): "<solution>\\boxed{4}</solution>"}, default="<solution>?</solution>")
    debates = run_debates(problems, policy, config, seed=0)
    tables = [tuple((right,) for right in rights) for rights in verdicts.values()]
    metrics = answer_metrics(debates, tables)
    assert metrics["accuracy/all_right"] == metrics["accuracy/all_wrong"] == pytest.approx(1 / 3)


def test_dr_grpo_is_weaker_by_the_share_of_the_limit_that_is_used():
    """Completions of 100 tokens under a limit of 512: 5.12 times weaker, which is said where it is chosen."""
    logprobs = torch.full((4, 100), -1.0, requires_grad=True)
    advantages = torch.tensor([1.0, -1.0, 1.0, -1.0])[:, None].expand(4, 100)
    ones = torch.ones(4, 100)
    inputs = LossInputs(logprobs, logprobs.detach(), ones, None, advantages, ones.bool(), ones.long())
    strengths = [
        torch.autograd.grad(LOSSES[name](inputs, LossConfig(max_tokens=512)).loss, logprobs)[0].norm().item()
        for name in ("grpo", "dr_grpo")
    ]
    assert strengths[0] / strengths[1] == pytest.approx(5.12)
    plain = {"model": {"tiny": {}}, "learner": {"loss": "dr_grpo"}}
    config = Config.model_validate(plain)
    assert {getattr(config.advantages, name).scale for name in ("truth", "judge", "mixed")} == {"none"}
    divided = Config.model_validate(plain | {"advantages": {"truth": {"scale": "group"}}})
    settings = AdvantageConfig(truth=StreamSettings(baseline="rloo"), judge=StreamSettings(scale="batch"))
    typed = Config(
        model=ModelConfig(tiny=TinyConfig()), learner=LearnerConfig(loss="dr_grpo"), advantages=settings
    )
    assert typed.advantages.truth == StreamSettings(baseline="rloo", scale="none")
    assert (typed.advantages.judge.scale, typed.advantages.mixed.scale) == ("batch", "none")
    recipe = load_config(Config, "rlvr/gsm8k_qwen3_1b7_dr_grpo")
    assert recipe.advantages.truth.scale == "none"
    overridden = load_config(Config, "quickstart", ["learner.loss=dr_grpo", "advantages.judge.scale=group"])
    assert (overridden.advantages.truth.scale, overridden.advantages.judge.scale) == ("none", "group")
    assert Config.model_validate(divided.model_dump()) == divided
    assert (divided.advantages.truth.scale, divided.advantages.judge.scale) == ("group", "none")
    weaker = "its gradients are about 5 times weaker than those of grpo: raise learner.lr"
    scale = '; advantages.truth.scale = "group" divides the advantages, and Dr. GRPO does not: leave it out'
    for chosen, told in ((divided, weaker + scale), (config, weaker)):
        with pytest.warns(SchemeWarning) as notes:
            check_loss(chosen)
        assert [str(note.message) for note in notes] == [f"learner.loss=dr_grpo: {told}"]
    with warnings.catch_warnings(action="error"):
        check_loss(Config.model_validate({"model": {"tiny": {}}}))
