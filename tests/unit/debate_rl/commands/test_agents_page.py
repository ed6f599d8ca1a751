"""AGENTS.md against the command line: its commands, options, exit codes and keys are those that there are."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from debate_rl.commands.main import COMMANDS, loaded, named
from debate_rl.config import Config
from debate_rl.config.keys import check_key

PAGE = (Path(__file__).parents[4] / "AGENTS.md").read_text(encoding="utf-8")
LINES = [line.strip() for line in PAGE.splitlines() if line.startswith("    debate ")]


def test_every_command_is_listed_and_no_other():
    listed = re.findall(r"^\| `debate ([^`]+)`", PAGE, re.MULTILINE)
    assert {named(line.split())[0] for line in listed} == set(COMMANDS)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_json(name):
    assert "json" in {param.name for param in loaded(name).params}


@pytest.mark.parametrize("line", LINES)
def test_keys_and_options_of_the_loop_are_there(line):
    name, words = named(shlex.split(line.partition("||")[0])[1:])
    known = {option for param in loaded(name).params for option in param.opts}
    for word in words:
        if word.startswith("--"):
            assert word in known
        elif "=" in word:
            check_key(Config, word.partition("=")[0])
