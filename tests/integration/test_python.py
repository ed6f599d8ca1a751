"""The functions of ``debate_rl``, and what a notebook passes to them."""

import subprocess
import sys
from pathlib import Path

import pytest

from debate import Persona, Problem
from debate.settings import load_dotted
from debate_rl import Config, evaluate, grade_debate, open_run, score, train
from debate_rl.python import words_of
from envs import Grade, GradeStatus
from rewards import RewardConfig

QUIET = {"logging.progress": "none", "held_out.every": 0, "held_out.limit": 4, "held_out.judge_pairs": 0}
SMALL = {"train.steps": 1, "train.batch_size": 2, "train.group_size": 2, "debate.max_tokens": 24}
BRIEF = {**QUIET, **SMALL, "warm_start.solve_steps": 0, "warm_start.debate_steps": 0}


class Twice:
    """An environment of this file."""

    name = "twice"

    def problems(self, *, split, limit=None, seed=None):
        numbers = range(1, 40, 2) if split == "train" else range(0, 40, 2)
        return tuple(Problem(f"twice/{n}", f"Twice {n}?", answer=str(2 * n)) for n in numbers)[:limit]

    def grade(self, problem, answer):
        if answer is None:
            return Grade(GradeStatus.MISSING, self.name)
        return Grade(
            GradeStatus.CORRECT if answer == problem.answer else GradeStatus.WRONG, self.name, answer
        )


def half(votes, *, alpha):
    return {vote.left: 0.5 for vote in votes}


def test_objects_of_a_module_train_and_are_written_by_their_paths(tmp_path):
    own = {"env.kind": Twice, "env.levels": None, "env.limit": None, "rewards.peer": half}
    personas = {"debate.personas": [Persona("One", "careful", 1.0)], "debate.handles": None}
    with train("quickstart", {**BRIEF, **own, **personas, "run.dir": tmp_path / "run"}) as run:
        assert run.count() == 4
        [*records] = (record for _, record in run.records())
        assert {record.debate.problem.source for record in records} <= {"", "twice"}
        figures = evaluate(run, problems=2, direct=True, samples=2)
        assert set(figures.columns) >= {"name", "value", "low", "high", "n"}
        assert figures[figures.name == "direct/accuracy"].n.tolist() == [4]
        debate = records[0].debate
        grades = grade_debate(debate, Twice())
        assert [len(row) for row in grades] == [2, 2, 2]
        assert score(debate, RewardConfig(truth_weight=1.0), Twice()).truth == records[0].rewards.truth
    text = (tmp_path / "run/config.toml").read_text()
    assert f'kind = "{Twice.__module__}:Twice"' in text
    with train(tmp_path / "run") as again:  # nothing is left to do
        assert again.count() == 4


def test_a_configuration_in_python_trains(tmp_path):
    tables = {"env": {"kind": "pair_sum", "levels": [1], "limit": 20}, "held_out": {"limit": 2, "every": 0}}
    small = {"steps": 1, "batch_size": 2, "group_size": 2}
    config = Config(run={"dir": str(tmp_path / "run")}, model={"tiny": {}}, train=small, **tables)
    with train(config, {"debate.max_tokens": 8, "logging.progress": "none"}) as run:
        assert run.frame("metrics").step.tolist() == [0]


def test_what_a_script_defines_is_used_in_its_process_only(tmp_path):
    body = Path(__file__).read_text().split("QUIET = ")[1].split("\ndef test_")[0]
    script = tmp_path / "script.py"
    script.write_text(
        "from debate import Problem\nfrom debate_rl import evaluate, train\n"
        "from envs import Grade, GradeStatus\n"
        f"QUIET = {body}\n"
        "own = {'env.kind': Twice, 'env.levels': None, 'env.limit': None, 'rewards.peer': half}\n"
        "run = train('quickstart', {**BRIEF, **own, 'run.dir': 'run'})\n"
        "print(len(evaluate(run, problems=2, direct=True, samples=2)))\n"
    )
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    with open_run(tmp_path / "run") as run:
        assert run.count() == 4
    with pytest.raises(ValueError, match="names code"):
        evaluate(tmp_path / "run")
    with pytest.raises(ValueError, match="was defined in another notebook or script; move it to a module"):
        load_dotted("__main__:half", key="rewards.peer")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RewardConfig(peer=lambda votes, alpha: {}), "peer: '.*<lambda>' needs a name of its own"),
        (lambda: RewardConfig(peer=sorted), "peer: 'builtins:sorted' is part of Python itself"),
        (lambda: RewardConfig(peer=3), r"^RewardConfig: peer: Input should be a valid string \(got 3\)$"),
        (lambda: RewardConfig(pear="margin"), "^RewardConfig: unknown key 'pear'; did you mean 'peer'"),
        (lambda: Config(lerner={}), "^Config: unknown key 'lerner'; did you mean 'learner'"),
        (lambda: words_of({"a b": {"c d": 1}}), "'c d' is not a key of a recipe"),
        (lambda: train("quickstart", {"train.stps": 1}), "train: unknown key 'stps'; did you mean 'steps'"),
        (lambda: open_run("nowhere"), "nowhere: there is no such folder"),
    ],
)
def test_wrong_values_give_one_line(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
