"""The wheel: what is in it, and that it works in an empty environment away from the checkout."""

import os
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

import debate_rl
from debate.settings import install_hint
from debate_rl.config.recipes import shipped_recipes

HOME = Path(debate_rl.__file__).parents[1]
PACKAGES = {"debate", "debate_rl", "envs", "learner", "rewards", "transcripts"}

SCRIPTED = """
import sys
from importlib.util import find_spec

from debate_rl import Config, grade_debate, score
from debate_rl.config.recipes import find_recipe, shipped_recipes
from debate import DebateConfig, Problem, run_debates
from debate.policies.scripted import Answers, scripted_debaters
from envs import load_problems, same_answer
from rewards import RewardConfig, score_debate
from transcripts import read_records

problem = Problem("sum", "What is 1/2 + 1/4?", answer="3/4", kind="expression")
policy = scripted_debaters({"sum": Answers("0.75", ("1",))}, solve=(1.0, 0.0, 0.0), judge=1.0)
[debate] = run_debates([problem], policy, DebateConfig(num_rounds=1), seed=0)
answers = [turn.parsed.answer for turn in debate.turns if not turn.ballot]
correct = [[same_answer(answer, problem.answer).verdict] for answer in answers]
rewards = score_debate(debate, correct, RewardConfig(truth_weight=0.5))
assert rewards == score_debate(debate, grade_debate(debate), RewardConfig(truth_weight=0.5))
print(answers, correct, rewards.peer[0], rewards.truth[0])
print(find_recipe("quickstart").parts[-3:], len(shipped_recipes()))
print(same_answer("\\\\frac{10!}{3!7!}", "\\\\binom{10}{3}").method)
print(len(load_problems("pair_sum", limit=3, seed=0)))
heavy = ("torch", "transformers", "peft", "vllm", "datasets")
print([name for name in heavy if find_spec(name) or name in sys.modules])
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(HOME)]
    subprocess.run(command, check=True, capture_output=True)
    [path] = folder.glob("*.whl")
    return path


def test_the_wheel_holds_our_packages_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
        about = message_from_bytes(archive.read(metadata))
    inside = {name for name in names if ".dist-info/" not in name}
    assert {name.partition("/")[0] for name in inside} == PACKAGES
    suffixes = ".py .toml .typed .html .css .js .svg .jsonl .mplstyle"
    assert {Path(name).suffix for name in inside} == {*suffixes.split()}
    data = [path for name in PACKAGES for path in (HOME / name).rglob("*.*") if path.is_file()]
    data = {str(path.relative_to(HOME)) for path in data if path.suffix not in (".pyc", ".md")}
    assert len([name for name in data if name.startswith("debate_rl/inspector/web/")]) > 10
    assert data <= inside
    assert {"debate/prompts/default.toml", "debate/prompts/tiny.toml"} <= inside
    shipped = {
        f"debate_rl/configs/{path.relative_to(HOME / 'configs')}" for path in (HOME / "configs").rglob("*.*")
    }
    assert {name for name in inside if name.startswith("debate_rl/configs/")} == shipped != set()
    assert not [name for name in inside if "test" in name]
    assert (about["License-Expression"], about["License-File"]) == ("Apache-2.0", "LICENSE")
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    extras = tomllib.loads((HOME / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert set(about.get_all("Provides-Extra")) == set(extras) >= {"train", "inspect", "report"}


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(wheel, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    scripts = tmp_path / "venv" / "bin"
    install = [scripts / "python", "-m", "pip", "install", "-q", "-c", HOME / "constraints.txt", wheel]
    subprocess.run(install, cwd=tmp_path, check=True)

    helped = run([scripts / "debate", "--help"], tmp_path)
    assert helped.returncode == 0, helped.stderr
    assert all(command in helped.stdout for command in ("quickstart", "train", "play"))

    held = run([scripts / "python", "-c", SCRIPTED], tmp_path)
    assert (held.returncode, held.stderr) == (0, "")
    assert held.stdout.splitlines() == [
        "['0.75', '1', '1'] [[True], [False], [False]] (1.0,) (1.0,)",
        f"('debate_rl', 'configs', 'quickstart.toml') {len(shipped_recipes())}",
        "math_verify",
        "3",
        "[]",
    ]

    trained = run([scripts / "debate", "train", "quickstart"], tmp_path)
    assert trained.returncode == 2
    assert (
        trained.stderr.splitlines()[-1]
        == f"debate: the package 'torch' is not installed: {install_hint('train')}"
    )


def run(command: list[object], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command as somebody would who never saw the checkout."""
    environment = {
        key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    return subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=environment | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
