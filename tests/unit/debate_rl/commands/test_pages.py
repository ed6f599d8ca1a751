"""Every command in the documents is one that there is: its name, options, keys and recipe."""

import re
import shlex
from pathlib import Path

import pytest

from debate_rl.commands import console
from debate_rl.commands.main import COMMANDS, loaded, named
from debate_rl.config import Config
from debate_rl.config.keys import check_key
from debate_rl.config.recipes import load_config, shipped_recipes, shipped_sweeps

HOME = Path(__file__).parents[4]
AGENTS = HOME / "AGENTS.md"
NOTES = HOME / "experiments/results/reproducing.md"
PAGES = [HOME / "README.md", AGENTS, *HOME.glob("docs/*.md"), *HOME.glob("experiments/*/*.md")]
COMMAND = re.compile(
    r"^ {4}(?:\.venv/bin/)?debate ([a-z][^|&\n]*?)(?: {2,}#.*)?$|`debate ([a-z][^`|&]*)[`&]", re.MULTILINE
)
OTHERS = {"stage", "strategies", "seeds", "at_once", "devices", "out", "figures", "sweep", "recipe", "key"}
"""Words of train, eval and sweep that are no keys of a recipe, and a placeholder."""


def commands(page: Path) -> list[tuple[str, list[str]]]:
    """Return the commands of a page, each with its words; descriptions with brackets are left out."""
    text = re.sub(r" ?\\\n +", " ", page.read_text(encoding="utf-8"))
    found = (" ".join("".join(pair).split()) for pair in COMMAND.findall(text))
    return [named(shlex.split(line)) for line in found if "[" not in re.sub(r"'[^']*'", "", line)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(HOME)))
def test_the_commands_of_a_page_are_there(page):
    for name, words in commands(page):
        known = {option for param in loaded(name).params for option in param.opts}
        assert [word for word in words if word.startswith("--") and word.partition("=")[0] not in known] == []
        keys = {word.partition("=")[0] for word in words if re.match(r"[a-z][\w.]*=", word)} - OTHERS
        for key in keys:
            check_key(Config, key)
        what = words[0] if words else "-"
        if name in ("train", "doctor", "sweep", "traces") and re.match(r"[a-z]\w+(/\w+)?$", what):
            known = shipped_sweeps() | shipped_recipes() if name == "sweep" else shipped_recipes()
            assert what in known or what.startswith(("runs/", "r/", "traces/")), what
            overrides = [word for word in words[1:] if "=" in word and not word.startswith("--")]
            if name in ("train", "doctor") and not keys & OTHERS and what in known and "$" not in words:
                load_config(Config, what, [w for w in overrides if w.partition("=")[0] not in OTHERS])


def test_pages_have_many_commands():
    assert sum(len(commands(page)) for page in PAGES) > 250


def test_agents_lists_every_command_and_no_other():
    listed = re.findall(r"^\| `debate ([^`]+)`", AGENTS.read_text(encoding="utf-8"), re.MULTILINE)
    assert {named(line.split())[0] for line in listed} == set(COMMANDS)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_json(name):
    assert "json" in {param.name for param in loaded(name).params}


def test_exit_codes_are_those_of_the_command_line():
    codes = {console.NO_GO, console.WRONG, console.INTERRUPTED, console.TERMINATED, 0}
    listed = re.findall(r"^\| ([\d, ]+) \|", AGENTS.read_text(encoding="utf-8"), re.MULTILINE)
    assert {int(code) for row in listed for code in row.split(",")} == codes


def test_every_recipe_and_sweep_of_the_notes_is_on_their_page():
    page = NOTES.read_text(encoding="utf-8")
    recipes = {name for name in shipped_recipes() if name.startswith(("aimo3/", "seeds/", "rlvr/"))}
    text = page + "".join(path.read_text(encoding="utf-8") for path in shipped_sweeps().values())
    assert [name for name in sorted(recipes) if name not in text] == []
    notes = {path.stem for path in (HOME / "configs/sweeps").glob("*.toml")}
    others = ("debate_", "easy_", "judge_", "label_", "quickstart_", "rlvr_")
    assert [n for n in sorted(notes) if not n.startswith(others) and f"sweep {n}`" not in page] == []
