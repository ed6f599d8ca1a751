"""docs/reproducing.md and docs/quickstart.md against the software: commands, recipes, hours."""

from __future__ import annotations

import importlib
import re
import shlex
import sys
from pathlib import Path

import pytest

from debate_rl.commands.main import loaded, named
from debate_rl.config import Config
from debate_rl.config.keys import check_key
from debate_rl.config.recipes import load_config, shipped_recipes, shipped_sweeps

HOME = Path(__file__).parents[4]
PAGE = (HOME / "docs/reproducing.md").read_text(encoding="utf-8")
TUTORIAL = (HOME / "docs/quickstart.md").read_text(encoding="utf-8")
LINES = sorted(
    {
        *re.findall(r"`(debate [^`]+)`", PAGE + TUTORIAL),
        *re.findall(r"^    (debate .+)$", TUTORIAL, re.MULTILINE),
    }
)
HOURS = dict(re.findall(r"`([\w/]+)` ([\d.]+)(?=[,. |])", PAGE.split("## Hours")[1].split("\n## ")[0]))
RUNS = ("runs/", "RUN", "RECIPE", "traces/")


@pytest.mark.parametrize("line", LINES)
def test_a_command_of_the_page_is_one_that_there_is(line):
    name, words = named(shlex.split(line)[1:])
    known = {option for param in loaded(name).params for option in param.opts}
    keys = [word.partition("=")[0] for word in words if re.match(r"[\w.]+=", word)]
    for key in set(keys) - {"stage"}:
        check_key(Config, key)
    for word in words:
        if word.startswith("--"):
            assert word in known
    what = next((word for word in words if "=" not in word), None)
    if what is not None and not what.startswith(RUNS):
        assert what in (shipped_sweeps() if name == "sweep" else shipped_recipes())
        overrides = [word for word in words if "=" in word and not word.startswith("--")]
        if name in ("train", "doctor"):
            load_config(Config, what, overrides)


def test_every_recipe_and_sweep_of_the_notes_is_on_the_page():
    recipes = {name for name in shipped_recipes() if name.startswith(("aimo3/", "seeds/", "rlvr/"))}
    text = PAGE + "".join(path.read_text(encoding="utf-8") for path in shipped_sweeps().values())
    assert [name for name in sorted(recipes) if name not in text] == []
    notes = {path.stem for path in (HOME / "configs/sweeps").glob("*.toml")}
    others = ("debate_", "easy_", "judge_", "label_", "quickstart_", "rlvr_")
    notes -= {name for name in notes if name.startswith(others)}
    assert [name for name in sorted(notes) if f"sweep {name}`" not in PAGE] == []


@pytest.fixture(scope="module")
def hours():
    sys.path.insert(0, str(HOME / "benchmarks"))
    yield importlib.import_module("hours")
    sys.path.remove(str(HOME / "benchmarks"))


@pytest.mark.slow
@pytest.mark.parametrize("name", HOURS)
def test_hours_are_those_of_the_estimate(name, hours):
    assert float(HOURS[name]) == float(f"{hours.hours_of(name, hours.recipes_with_cards()[name]):.2g}")
