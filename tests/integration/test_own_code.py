"""Code that the configuration of a run names, opened by every command that opens a run."""

import re
import shutil
import sys
from itertools import cycle
from pathlib import Path

import pytest

import debate.policy
from debate_rl.config.recipes import OWN_CODE, ConfigError, named_code, read_run_config

COMMANDS = [
    *("train RUN", "replay RUN", "eval regrade RUN", "inspect tokens RUN 0.0", "solve play RUN 1+1?"),
    *("eval RUN", "export RUN", "train RUN/config.toml", "solve play RUN/config.toml 1+1?"),
    "eval RUN/config.toml",
]


@pytest.fixture
def theirs(folder, tmp_path, monkeypatch):
    """Return make(key) -> (folder of a run whose configuration names code there, what the code leaves)."""
    ran = tmp_path / "ran"
    (tmp_path / "stranger.py").write_text(f"open({str(ran)!r}, 'w').close()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "stranger", raising=False)
    monkeypatch.delenv("DEBATE_OWN_CODE", raising=False)

    def make(key):
        run = tmp_path / "run"
        shutil.copytree(folder / "run", run)
        table, _, name = key.partition(".")
        lines = (run / "config.toml").read_text().splitlines()
        lines = [line for line in lines if not line.startswith((f"{name} =", f'"{name}" ='))]
        lines.insert(lines.index(f"[{table}]") + 1, f'{name} = "stranger:thing"')
        (run / "config.toml").write_text("\n".join(lines))
        return run, ran

    return make


@pytest.mark.parametrize(("key", "command"), list(zip(cycle(OWN_CODE), COMMANDS, strict=False)))
def test_no_command_loads_code_that_a_run_names(key, command, theirs, debate_command):
    run, ran = theirs(key)
    code, out, err = debate_command(*(word.replace("RUN", str(run)) for word in command.split()))
    assert (code, out) == (2, "")
    assert f"{key}='stranger:thing' names code" in err
    assert err.count("\n") == 1
    assert not ran.exists()


@pytest.mark.slow
def test_why_and_report_show_what_is_stored_and_load_no_code(theirs, debate_command):
    run, ran = theirs("rewards.peer")
    code, out, _ = debate_command("inspect", run, "why", "0.0")
    assert (code, "rewards.peer='stranger:thing' names code" in out) == (0, True)
    assert debate_command("report", run)[0] == 0
    assert not ran.exists()


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ({"endpoints": {"short": {"policy": "stranger:thing"}}}, "endpoints.short.policy"),
        ({"held_out": {"more": {"far": {"kind": "stranger:thing"}}}}, "held_out.more.far.kind"),
        ({"stages": [{"env": {"kind": "stranger:thing"}}]}, "stages.0.env.kind"),
    ],
)
def test_code_is_named_within_tables_too(table, key):
    assert list(named_code(table)) == [(key, "stranger:thing")]


def test_code_of_ones_own_is_loaded_when_asked_for(theirs, monkeypatch):
    run, ran = theirs("rewards.peer")
    monkeypatch.setenv("DEBATE_OWN_CODE", "1")
    with pytest.raises(ConfigError, match="the module 'stranger' has no 'thing'"):
        read_run_config(run)
    assert ran.exists()


def test_the_list_has_every_key_that_is_loaded_by_path():
    root = Path(__file__).parents[2]
    packages = ("debate", "envs", "rewards", "learner", "debate_rl")
    texts = [path.read_text() for package in packages for path in (root / package).rglob("*.py")]
    keys = {key for text in texts for key in re.findall(r'\bload_\w+\([^()]*\bkey="([\w.]+)"', text)}
    keys.add(debate.policy.KEY)
    keys.add("held_out.kind")  # loaded as env.kind
    assert keys == set(OWN_CODE)
