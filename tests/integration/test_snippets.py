"""The Python of the documents runs as it is printed, in one folder, on a small run of its own.

The examples of docs/extending.md are run by test_extending.py. What needs other packages (Inspect AI, TRL)
is only compiled, by tests/unit/test_snippets.py.
"""

import ast
import asyncio
import re
from inspect import iscoroutine

import pytest

import debate_rl.python
from debate import DebateConfig, Problem, run_debates
from debate.policies import Answers, scripted_debaters
from debate.types import TurnId
from debate_rl import open_run, train
from envs.sandbox import Limits, Sandbox, SandboxRefused
from rewards import RewardConfig, score_debate
from transcripts import Record, write_step

from ..snippets import DOCUMENTS, blocks

SMALL = {
    **{"warm_start.solve_steps": 2, "warm_start.debate_steps": 2, "train.steps": 1},
    **{"train.batch_size": 2, "train.group_size": 2, "held_out.limit": 4, "held_out.judge_pairs": 0},
}
ELSEWHERE = {"inspect_ai", "debate_rl.trl_trainer"}
BLOCKS = [
    block
    for block in blocks(*DOCUMENTS)
    if block.kind == "python"
    and block.page.name != "extending.md"
    and not any(f"from {name} import" in block.text for name in ELSEWHERE)
]


def trains(block) -> bool:
    return "from debate_rl import" in block.text or "import debate_rl\n" in block.text


def store_debates(run) -> None:
    """Write steps 1 to 12 of scripted debates, among them cycles of votes and lost right answers."""
    problems = [Problem(f"p{n}", f"What is {n} + 2?", answer=str(n + 2), kind="number") for n in range(12)]
    answers = {one.id: Answers(one.answer, ("0", "1")) for one in problems}
    policy = scripted_debaters(answers, solve=0.5, judge=0.5, tokens=True)
    for step in range(1, 13):
        held = run_debates(problems[step:] + problems[:step], policy, DebateConfig(num_rounds=2), seed=step)
        records = []
        for debate in held:
            right = {turn.id: turn.parsed.answer == debate.problem.answer for turn in debate.turns}
            grades = tuple(tuple(right[TurnId(a, r)] for r in range(2)) for a in range(3))
            rewards = score_debate(debate, grades, RewardConfig())
            records.append(Record(debate, step, debate.problem.id, grades, rewards))
        write_step(run / "transcripts", step, records, seal=True)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """The folder that all pages share, with the run that they read."""
    folder = tmp_path_factory.mktemp("snippets")
    store_debates(folder / "runs/quickstart-pair_sum-0")
    return folder


@pytest.fixture(scope="module")
def train_briefly(home):
    """Train as the README does, but one step. Scripted debates follow: a new model casts no votes."""

    def call(recipe, changes):
        train(recipe, changes | SMALL).close()
        store_debates(home / changes["run.dir"])
        return open_run(changes["run.dir"])

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        call("quickstart", {"run.dir": "runs/mine"}).close()
    return call


def is_boxed() -> bool:
    try:
        with Sandbox(Limits(seconds=2), warm=1) as sandbox:
            sandbox.start()
    except SandboxRefused:
        return False
    return True


@pytest.mark.parametrize("block", [one for one in BLOCKS if not trains(one)], ids=str)
def test_python_runs_and_prints_what_its_comments_say(block, home, monkeypatch, capsys):
    monkeypatch.chdir(home)
    if "Sandbox" in block.text and not is_boxed():
        pytest.skip("the sandbox cannot run here")
    run_block(block)
    printed = capsys.readouterr().out.splitlines()
    promised = re.findall(r"^print\(.*\)  # (\(.*\))$", block.text, re.MULTILINE)
    assert [line for line in promised if line not in printed] == []


@pytest.mark.slow
@pytest.mark.parametrize("block", [one for one in BLOCKS if trains(one)], ids=str)
def test_python_that_trains_or_samples_runs(block, home, train_briefly, monkeypatch):
    monkeypatch.chdir(home)
    monkeypatch.setattr(debate_rl.python, "train", train_briefly)
    run_block(block)


def run_block(block) -> None:
    """Run a block, with a policy of the reader's own at hand."""
    my_policy = scripted_debaters({"p": Answers("10063", ("1",))}, solve=1.0, judge=1.0)
    code = compile(block.text, str(block.page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    done = eval(code, {"my_policy": my_policy})
    if iscoroutine(done):
        asyncio.run(done)
