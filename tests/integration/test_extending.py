"""The examples of docs/extending.md, run as they are printed."""

import importlib
import re
import sys
from pathlib import Path

import pytest

from debate import DebateConfig
from debate.policy import own_policy
from debate_rl.config import Config
from debate_rl.config.recipes import load_config
from debate_rl.inference.local import LocalPolicy
from debate_rl.metrics.step_log import read_metrics
from debate_rl.training.loop import finish_step, train_step
from debate_rl.training.open_or_resume import open_training
from envs import load_environment
from learner import Learner, LearnerConfig
from rewards import RewardConfig, score_votes
from transcripts import RunStore

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
MODULES = ("my_env", "my_reward", "my_loss", "my_personas", "my_policy", "my_loop")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the page's blocks as files, from which modules can be imported."""
    for kind, text in re.findall(
        r"^```(python|toml)\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE
    ):
        name = re.match(r"# (\w+\.(?:py|toml))", text)
        assert name, f"a {kind} block does not begin with its file's name"
        (tmp_path / name[1]).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for module in MODULES:
        sys.modules.pop(module, None)


def test_the_configuration_trains_with_all_five(folder):
    config = load_config(Config, "mine.toml")
    with open_training(config) as session:
        metrics = train_step(session, 0)
        finish_step(session, 0, metrics)
        assert [p.id for p in session.data.train][:1] != []
        assert all(p.id.startswith("twice/") for p in (*session.data.train, *session.data.held_out))
        assert set(session.policy.spent) == {0, 1, 2}
        assert min(session.policy.spent.values()) > 0
    assert [line["step"] for line in read_metrics(folder / "runs/mine/metrics.jsonl")] == [0]


def test_the_loop_stores_and_learns(folder, make_tiny):
    twice = load_environment("my_env:Twice")
    problems = twice.problems(split="train", limit=2, seed=0)
    solutions = [f"<solution>\\boxed{{{one.answer}}}</solution>" for one in problems]
    model, tokenizer = make_tiny(solutions, fallback="none")
    before = model.get_input_embeddings().weight.detach().clone()
    policy = LocalPolicy(model, tokenizer, context_tokens=None)
    learner = Learner(model, LearnerConfig(lr=1e-2, warmup_steps=0), total_steps=2)
    protocol = DebateConfig(num_agents=3, num_rounds=1, max_tokens=24, prompts="tiny")
    loop = importlib.import_module("my_loop").train
    loop(policy, learner, model, problems, twice, protocol, folder / "transcripts", steps=2)
    assert learner.steps == 2
    assert not model.get_input_embeddings().weight.equal(before)
    with RunStore.open(folder) as run:
        records = [record for _, record in run.records()]
    assert [record.step for record in records] == [0] * 8 + [1] * 8
    versions = {(one.step, turn.completion.policy_version) for one in records for turn in one.debate.turns}
    assert versions == {(0, 0), (1, 1)}


def test_each_example_does_what_it_says(folder):
    twice = load_environment("my_env:Twice")
    [problem] = twice.problems(split="train", limit=1, seed=3)
    assert twice.grade(problem, f" {problem.answer} ").verdict is True
    assert twice.grade(problem, "1").verdict is False
    assert twice.grade(problem, None).verdict == "missing"
    ids = [{p.id for p in twice.problems(split=split)} for split in ("train", "test")]
    assert not ids[0] & ids[1]

    votes = [(0, 1, 1, 2, "left"), (2, 1, 0, 1, "right"), (1, 1, 0, 2, "tie")]
    scored = score_votes(3, 1, votes, [[False], [True], [False]], RewardConfig(peer="my_reward:wins"))
    assert scored.peer == ((0.0,), (1.0,), (0.0,))

    torch = importlib.import_module("torch")
    losses = importlib.import_module("learner.losses")
    logprobs = torch.tensor([[-1.0, -2.0, -9.0]], requires_grad=True)
    rest = [torch.zeros(1, 3)] * 2 + [None, torch.tensor([[0.5, -1.0, 3.0]]), torch.tensor([[1, 1, 0]])]
    inputs = losses.LossInputs(logprobs, *rest, stream=torch.ones(1, 3))
    loss = losses.find_loss("my_loss:reinforce")(inputs, losses.LossConfig()).loss
    assert loss.item() == pytest.approx(-(0.5 * -1.0 + -1.0 * -2.0) / 2)

    config = DebateConfig(personas="my_personas:PERSONAS")
    assert [persona.name for persona in config.agent_personas] == ["Estimator", "Checker", "Estimator"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def make(", "model.policy: cannot import 'my_policy' of 'my_policy:make': SyntaxError: "),
        (
            "from debate import Policy\ndef make(model) -> Policy: ...",
            "model.policy: 'my_policy:make' does not take what it is called with: ",
        ),
        (
            "class make:\n def __init__(self, *a, **k): self.version = 0\n def sample(self, request): ...\n"
            " async def update(self): ...",
            "model.policy: the policy of 'my_policy:make' has no async method 'sample'; see debate.Policy",
        ),
    ],
)
def test_what_is_no_policy_is_refused_in_one_line(folder, text, message):
    (folder / "my_policy.py").write_text(text)
    importlib.invalidate_caches()
    with pytest.raises(ValueError, match=r"^model\.policy: ") as error:
        own_policy("my_policy:make")(object(), object(), chat=True)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_reading_a_configuration_imports_no_personas():
    """A stored debate names its personas by path; to read it must run nobody's code."""
    config = DebateConfig(personas="no_such_module_anywhere:PERSONAS")
    with pytest.raises(ValueError, match=r"^debate\.personas: cannot import 'no_such_module_anywhere' of"):
        _ = config.agent_personas
    with pytest.raises(ValueError, match=r"debate\.personas: 'a:' is not a dotted path"):
        _ = DebateConfig(personas="a:").agent_personas
