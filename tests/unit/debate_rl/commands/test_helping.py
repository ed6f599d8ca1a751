"""The table of commands, and help pages: each has examples that can be typed, and no word of Python."""

import re
import shlex

import pytest

from debate_rl.commands.inspect_actions import ACTIONS
from debate_rl.commands.main import COMMANDS, MOVED, examples, loaded, named

EXAMPLES = [line for name in COMMANDS for line in examples(name)]
EXAMPLES += [line for action in ACTIONS.values() for line in action.examples]


@pytest.fixture
def page(debate_command):
    """Return call(*words) -> what ``debate`` prints, which ends well."""

    def call(*words):
        done = debate_command(*words)
        assert (done.code, done.err) == (0, "")
        return done.out

    return call


def test_the_first_page_lists_every_command(page):
    said = page("--help")
    assert page("-h") == said
    assert all(f"  {name} " in said and entry.about in said for name, entry in COMMANDS.items())
    assert len({name.split()[0] for name in COMMANDS}) <= 15


@pytest.mark.parametrize("command", COMMANDS)
def test_every_page_has_examples_and_no_type_of_python(command, page):
    said = page(*command.split(), "--help")
    assert page(*command.split(), "-h") == said
    assert not re.search(r"<(?!=)|list\[|None|\bstr\b|\bbool\b|range", said)
    assert said.split("Usage: ")[1].startswith(f"debate {command} ")
    assert examples(command)
    assert all(f"debate {line}" in " ".join(said.split()) for line in examples(command))


@pytest.mark.parametrize("line", EXAMPLES)
def test_an_example_is_a_command_that_is_understood(line, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    name, words = named(shlex.split(line))
    if "--help" in words:
        return
    with loaded(name).make_context(name, words) as context:
        given = context.params
    assert not any(str(word).startswith("--") for word in given.get("words") or ())
    assert not any(str(word).startswith("--") for word in given.get("overrides") or ())


@pytest.mark.parametrize("former", MOVED)
def test_a_former_name_says_the_new_one(former, debate_command):
    done = debate_command(former, "runs/mine")
    assert done.code == 2
    now = re.fullmatch(rf"debate: debate {former} is now debate (.+)\n", done.err)[1]
    assert now in COMMANDS


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["inspect", "run", "ls", "--limt", "3"], "unknown option --limt; did you mean '--limit'?"),
        (["inspect", "--webb", "run"], "unknown option --webb; did you mean '--web'?"),
        (["inspect", "run", "ls", "--q=3"], "unknown option --q; see --help"),
        (["train", "quickstart", "--pln"], "Possible options: --plan"),
        (["eval", "run", "--weight", "best"], "Possible options: --weights"),
        (["trian"], "did you mean 'train'?"),
    ],
)
def test_an_unknown_option_has_a_suggestion(words, said, debate_command):
    done = debate_command(*words)
    assert done.code == 2
    assert said in " ".join(done.err.replace("│", " ").split())
