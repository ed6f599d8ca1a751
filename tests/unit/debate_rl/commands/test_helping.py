"""Help pages: each has examples that can be typed, and no word of Python."""

from __future__ import annotations

import re
import shlex
import sys

import pytest
import typer.main

from debate_rl.commands.helping import PAGES
from debate_rl.commands.inspect_lines import ACTIONS
from debate_rl.commands.main import COMMANDS, app, run

GROUP = typer.main.get_command(app)
EXAMPLES = [line for _, lines in COMMANDS.values() for line in lines]
EXAMPLES += [line for page in PAGES.values() for line in page.examples]


@pytest.fixture
def page(monkeypatch, capsys):
    """Return call(*words) -> what ``debate`` prints, which ends well."""
    monkeypatch.setenv("COLUMNS", "120")

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["debate", *words])
        with pytest.raises(SystemExit) as ended:
            run()
        said = capsys.readouterr()
        assert (ended.value.code or 0, said.err) == (0, "")
        return said.out

    return call


def test_the_page_of_an_action_says_its_own_limit(page):
    said = " ".join(page("inspect", "same", "--help").replace("│", " ").split())
    assert "same 50 of training and 50 of evaluations" in said


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_every_page_has_examples_and_no_type_of_python(command, page):
    words = [command] if command else []
    said = page(*words, "--help")
    assert page(*words, "-h") == said
    assert not re.search(r"<(?!=)|list\[|None|\bstr\b|\bbool\b|range", said)
    assert "debate" in said.split("Usage: ")[1].split()[0]
    for line in COMMANDS[command][1] if command else ():
        assert f"debate {line}" in said


@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_of_inspect_has_a_page(action, page):
    said = page("inspect", action, "--help")
    assert page("inspect", "runs/mine", action, "-h") == said
    about = PAGES[action]
    assert " ".join(about.text.split()) in " ".join(said.split())
    assert f"{action} {about.arguments}" in said
    for line in about.examples:
        assert f"debate {line}" in said
    assert "--web" not in said
    assert ("--turn" in said, "--raw" in said) == (action == "why", action == "show")


@pytest.mark.parametrize("line", EXAMPLES)
def test_an_example_is_a_command_that_is_understood(line, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    name, *words = shlex.split(line)
    if "--help" in words:
        return
    command = GROUP.commands[name]
    with command.make_context(name, words) as context:
        given = context.params
    assert not any(str(word).startswith("--") for word in given.get("words") or ())
    assert not any(str(word).startswith("--") for word in given.get("overrides") or ())


def test_pages_are_of_the_actions_that_there_are():
    assert list(PAGES) == list(ACTIONS)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["inspect", "run", "ls", "--limt", "3"], "no option is named --limt; did you mean '--limit'?"),
        (["inspect", "--webb", "run"], "no option is named --webb; did you mean '--web'?"),
        (["inspect", "run", "ls", "--q=3"], "no option is named --q; see --help"),
        (["train", "quickstart", "--pln"], "Possible options: --plan"),
        (["eval", "run", "--weight", "best"], "Possible options: --weights"),
        (["trian"], "Did you mean 'train'?"),
    ],
)
def test_an_unknown_option_has_a_suggestion(words, said, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["debate", *words])
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == 2
    assert said in " ".join(capsys.readouterr().err.replace("│", " ").split())
