"""A cut of the miniature of the AIMO recipe: what a small model cannot compute, its programs can."""

import re

import pytest
import tomli_w

from debate_rl.config.recipes import find_recipe, read_tables
from debate_rl.curriculum.record import stage_runs
from debate_rl.metrics.held_out import evaluations_of
from envs.sandbox import Sandbox, SandboxRefused

pytestmark = pytest.mark.slow
STEPS = {"cot": 30, "tir": 150, "rl": 2}
"""Steps of each stage of the cut."""


def test_a_small_model_learns_to_write_the_program_and_the_table_shows_it(debate_command, tmp_path):
    sandbox = Sandbox()
    try:
        sandbox.start()
    except SandboxRefused as refused:
        pytest.skip(f"no sandbox here: {refused}")
    finally:
        sandbox.close()
    tables = read_tables(find_recipe("aimo3/tiny")) | {"run": {"dir": str(tmp_path / "run")}}
    for stage in tables["stages"]:
        stage["max_steps"] = STEPS[stage["name"]]
    tables["held_out"] |= {"limit": 40, "strategies": ["greedy", "tir"]}
    path = tmp_path / "cut.toml"
    path.write_text(tomli_w.dumps(tables))
    done = debate_command("train", path, "logging.progress=none")
    assert done.code == 0, done.err

    first, *_, last = (evaluations_of(run / "held_out.jsonl") for run in stage_runs(tmp_path / "run"))
    assert first[-1].estimate("direct/accuracy").value < 0.1
    assert last[-1].estimate("direct/accuracy").low > 0.3
    rows = dict(re.findall(r"│ (greedy|tir) +│ +([\d.]+)", done.out))
    assert float(rows["greedy"]) < 0.1 < 0.3 < float(rows["tir"])
