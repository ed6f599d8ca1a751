"""Every command in the documents is one that there is: its name, options, keys and recipe."""

import re
from contextlib import suppress
from pathlib import Path

import pytest
import typer

from debate_rl.commands import console
from debate_rl.commands.main import COMMANDS, loaded, named
from debate_rl.config import Config
from debate_rl.config.keys import check_key
from debate_rl.config.recipes import load_config, shipped_recipes, shipped_sweeps

from ....snippets import debate_commands

HOME = Path(__file__).parents[4]
AGENTS = HOME / "AGENTS.md"
NOTES = HOME / "experiments/results/reproducing.md"
PAGES = [HOME / "README.md", AGENTS, *HOME.glob("docs/*.md"), *HOME.glob("experiments/*/*.md")]
NEEDS = {
    "debate.protocol=consultancy": ["debate.num_rounds=1"],
    "debate.protocol=zero_sum": ["debate.num_rounds=1"],
    "endpoints.judge.base_url=URL": ["endpoints.judge.base_url=http://localhost:8000/v1"],
}
"""What a run that a page leaves open must have for a setting."""
OTHERS = {"stage", "strategies", "seeds", "at_once", "devices", "out", "figures", "sweep", "recipe", "key"}
"""Words of train, eval and sweep that are no keys of a recipe, and a placeholder."""


def commands(page: Path) -> list[tuple[str, list[str], bool]]:
    """Return the commands of a page, each with its words and whether it is in a block, but no synopses."""
    found = (
        (words, whole) for words, whole in debate_commands(page) if words and re.match("[a-z]", words[0])
    )
    return [
        (*named(words), whole) for words, whole in found if not any(word.startswith("[") for word in words)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(HOME)))
def test_the_commands_of_a_page_are_there(page):
    for name, words, whole in commands(page):
        command = loaded(name)
        if whole:
            with suppress(typer.Exit):  # of --help
                command.make_context(name, list(words))
        known = {option for param in command.params for option in param.opts}
        assert [word for word in words if word.startswith("--") and word.partition("=")[0] not in known] == []
        settings = [word for word in words if re.match(r"[a-z][\w.]*=", word)]
        settings = [word for word in settings if word.partition("=")[0] not in OTHERS]
        for setting in settings:
            check_key(Config, setting.partition("=")[0])
        what = words[0] if words else "-"
        shipped = shipped_recipes()
        if name in ("train", "doctor", "sweep", "traces") and re.match(r"[a-z]\w+(/\w+)?$", what):
            shipped = shipped_sweeps() | shipped if name == "sweep" else shipped
            assert what in shipped or what.startswith(("runs/", "r/", "traces/")), what
        if whole and name != "sweep":
            settings = [word for word in settings if not re.search(r"=my_\w+:", word)]
            needed = [more for word in settings for more in NEEDS.get(word, ())]
            load_config(
                Config, what if what in shipped_recipes() else "gsm8k_qwen3_8b_1gpu", settings + needed
            )


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
