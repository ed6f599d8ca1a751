"""``python -m experiments.bottleneck``: a table, a file, and mistakes in one line."""

from __future__ import annotations

import json
import runpy
import sys
import warnings

import pytest

from debate_rl.config import Config
from debate_rl.training.loop import train

TINY = {"hidden_size": 16, "layers": 1, "heads": 2, "intermediate_size": 24, "init_std": 0.3}
PIECES = ["<solution> 8 + 3. \\boxed{1 + 2}</solution>", "<solution> 2 + 5. \\boxed{3 + 4}</solution>", "x"]


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bottleneck") / "run"
    tiny = TINY | {"context_tokens": 512, "fallback": "none", "pieces": PIECES}
    settings = {
        "env": {"kind": "pair_sum", "limit": 8},
        "held_out": {"every": 0},
        "debate": {"num_rounds": 2, "max_tokens": 24, "prompts": "tiny"},
        "likelihood": {"prompt": "$reasoning \\boxed{ $answer}"},
        "model": {"device": "cpu", "chat": True, "tiny": tiny},
        "train": {"steps": 2, "batch_size": 2, "group_size": 2, "save_every": 1},
        "logging": {"progress": "none"},
        "run": {"dir": str(folder)},
    }
    train(Config.model_validate(settings))
    return folder


@pytest.fixture
def command(monkeypatch, capsys):
    """Return call(*words) -> (exit code, stdout, stderr), run in this process."""
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)  # ``run`` sets its own
    monkeypatch.setenv("COLUMNS", "200")

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["bottleneck", *words])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            runpy.run_module("experiments.bottleneck", run_name="__main__")
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, said.err

    return call


@pytest.mark.slow
def test_the_bottleneck_of_a_run_is_a_table_and_a_file(run_folder, command, tmp_path):
    file = tmp_path / "b.json"
    code, out, err = command(str(run_folder), "--problems", "3", "--json", str(file))
    assert (code, err) == (0, "")
    assert "replace characters" in out
    said = json.loads(file.read_text())
    whole, *others = said["lines"]
    assert (whole["corruption"], len(others)) == ("", 15)
    assert whole["accuracy_drop"] is None
    empty = [line for line in others if line["share"] == 1.0 and not line["corruption"].startswith("replace")]
    assert len({line["logprob"]["value"] for line in empty}) == 1  # nothing is left in three of the ways
    assert all(line["logprob"]["value"] < 0 for line in said["lines"])


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("gsm8k_smoke",), "is a recipe, whose model has not said anything"),
        (("RUN", "--evaluation", "none"), "has no such folder"),
        (("RUN", "--reader", "7"), "has no weights '7'"),
        (("RUN", "--problems", "1"), "an interval needs 2 or more"),
    ],
)
def test_a_bottleneck_that_cannot_be_measured_is_one_line(run_folder, command, words, line):
    code, out, err = command(*[str(run_folder) if word == "RUN" else word for word in words])
    assert (code, out) == (2, "")
    assert line in err
    assert err.count("\n") == 1
