"""The commands of docs/quickstart.md for a run that learns nothing work, in its order, at small size."""

import re
import shlex
from pathlib import Path

import pytest

from ..integration.conftest import python

HOME = Path(__file__).parents[2]
PAGE = (HOME / "docs/quickstart.md").read_text(encoding="utf-8").split("## When a run learns nothing")[1]
LINES = re.findall(r"^    (debate .+)$", PAGE, re.MULTILINE)
SMALL = ("held_out.limit=8", "train.batch_size=2", "train.group_size=2")
START = ("warm_start.solve_steps=6", "warm_start.debate_steps=2")
SHORTER = {
    "quickstart": (*SMALL, "train.steps=2"),
    "rlvr/tiny": (*SMALL, *START),
    "curriculum/tiny": (*SMALL, *START, "held_out.every=1"),
}
CODES = {"doctor": (0, 1)}


def run(home, name, *words):
    return python("-m", "debate_rl", name, *words, cwd=home)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tutorial")
    made = run(
        folder, "train", "quickstart", *SHORTER["quickstart"], *START, "run.dir=runs/quickstart-pair_sum-0"
    )
    assert made.returncode == 0, made.stderr
    return folder


@pytest.mark.slow
def test_every_command_of_the_tutorial_runs_in_its_order(home):
    assert len(LINES) == 8
    for line in LINES:
        _, name, *words = shlex.split(line)
        more = [*SHORTER.get(words[0], ()), *(("--problems", "4") if name == "doctor" else ())]
        if words[0] == "curriculum/tiny":  # two steps a stage, so that a limit ends each
            more += [f"stages={stages()}"]
        done = run(home, name, *words, *more)
        assert done.returncode in CODES.get(name, (0,)), (line, done.stderr[-2000:])
    assert (home / "runs/curriculum-tiny/curriculum.json").exists()
    assert (home / "report/report.html").exists()


def stages():
    names = ("three_numbers", "six_numbers", "nine_numbers")
    goal = "figure = 'direct/accuracy', target = 0.6, max_steps = 2"
    one = "{{name = '{}', {}, sampling = {{levels = [[0, [{}]]]}}}}"
    return f"[{', '.join(one.format(name, goal, level) for level, name in enumerate(names, 1))}]"
