"""Every block of code of the documents is valid; tests/integration/test_snippets.py runs those in Python."""

import ast
import json
import re
import tomllib

import pytest

from debate.prompting.texts import load_prompts
from debate_rl.config import Config
from debate_rl.config.recipes import read_config
from debate_rl.evaluation.suite import read_suite
from debate_rl.sweeps.arms import open_sweep

from ..snippets import DOCUMENTS, HOME, blocks, shell_commands

BLOCKS = tuple(blocks(*DOCUMENTS))
PROJECT = tomllib.loads((HOME / "pyproject.toml").read_text("utf-8"))["project"]
MORE = {"[summarizer]": "[debate.summary]\nenabled = true\n"}
"""What a table needs that its page describes in words."""


def of_kind(kind: str):
    found = [block for block in BLOCKS if block.kind == kind]
    return pytest.mark.parametrize("block", found, ids=map(str, found))


def test_every_block_is_of_a_kind_that_is_checked_or_says_that_it_is_text():
    assert [
        str(block) for block in BLOCKS if block.kind not in ("sh", "toml", "json", "python", "text")
    ] == []
    assert len(BLOCKS) > 100


@of_kind("toml")
def test_tables_are_valid_as_recipe_suite_sweep_or_prompts(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base.toml").write_text('[model]\nname_or_path = "any"\n')
    path, tables = tmp_path / "block.toml", tomllib.loads(block.text)
    path.write_text(block.text)
    if "sets" in tables:
        assert read_suite(str(path))
    elif "recipe" in tables:
        assert open_sweep(str(path), [])
    elif "problem" in tables:
        assert load_prompts(str(path)).stop
    elif "my_" not in block.text:  # test_extending.py trains by that recipe
        more = "".join(text for table, text in MORE.items() if table in block.text)
        path.write_text(f'base = "./base.toml"\n{block.text}{more}')
        read_config(Config, path)


@of_kind("json")
def test_lines_are_json(block):
    assert all(json.loads(line) for line in block.text.splitlines())


@of_kind("python")
def test_python_is_valid(block):
    compile(block.text, str(block), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@of_kind("sh")
def test_commands_name_targets_files_and_extras_that_there_are(block):
    """Those of ``debate`` are checked by commands/test_pages.py."""
    targets = set(re.findall(r"^([a-z]+):", (HOME / "Makefile").read_text("utf-8"), re.MULTILINE))
    for words in shell_commands(block.text):
        program, *rest = words[0].removeprefix(".venv/bin/"), *words[1:]
        if program == "make":
            assert set(rest) <= targets
        elif program in ("python", "pytest"):
            files = [word for word in rest if re.match(r"(benchmarks|experiments|tests|docs)/", word)]
            assert [name for name in files if not (HOME / name).exists()] == []


def test_extras_to_install_are_those_of_the_project():
    text = "".join(page.read_text("utf-8") for page in DOCUMENTS)
    named = {
        extra
        for words in re.findall(r"pip install[^`\n]*?\.\[([\w,-]+)\]", text)
        for extra in words.split(",")
    }
    assert named >= {"train", "inspect", "report", "tinker"}
    assert named <= set(PROJECT["optional-dependencies"])
