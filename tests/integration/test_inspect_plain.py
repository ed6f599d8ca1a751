"""``debate inspect`` in plain lines, of a trained run: in this process, in a pipe and on a terminal."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import debate_rl
from debate_rl.config import Config
from debate_rl.config.recipes import load_config
from debate_rl.training.loop import train
from transcripts import RunStore

HOME = Path(debate_rl.__file__).parents[1]
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(HOME), "TERM": "xterm"}
ENVIRONMENT.pop("NO_COLOR", None)
RUN = "from debate_rl.commands.main import run; run()"


@pytest.fixture(scope="module")
def folder(tiny_recipe, tmp_path_factory):
    """A run of two steps of four debates."""
    where = tmp_path_factory.mktemp("runs")
    train(load_config(Config, tiny_recipe, [f"run.dir={where / 'run'}", "logging.progress=none"]))
    return where


@pytest.fixture
def inspect(folder, debate_command, monkeypatch):
    monkeypatch.chdir(folder)
    return lambda *arguments: debate_command("inspect", *arguments)


def test_every_debate_is_listed_by_pages(inspect):
    code, out, err = inspect("run", "ls")
    assert code == 0
    headings, *lines = out.splitlines()
    assert headings.split()[:4] == ["debate", "winner", "accuracy", "judge"]
    assert [line.split()[0] for line in lines] == [f"{s}.{p}" for s in range(2) for p in range(4)]
    assert err == "8 debates\n"
    assert inspect("run") == (code, out, err)  # if there is no terminal, ls is the action

    _, first, err = inspect("run", "ls", "step:0..", "votes:>=0", "--limit", "5", "--newest")
    assert err.startswith("8 debates with step:0.. votes:>=0; next page: debate inspect run ls ")
    _, second, err = inspect(*shlex.split(err.split("next page: debate inspect ")[1]))
    pages = (*first.splitlines()[1:], *second.splitlines()[1:])
    assert [line.split()[0] for line in pages] == [f"{s}.{p}" for s in (1, 0) for p in (3, 2, 1, 0)]
    assert err == "8 debates with step:0.. votes:>=0\n"


def test_both_filters_hold(inspect):
    _, out, err = inspect("run", "ls", "step:1", "--filter", "id:0.1 OR id:1.1", "--json")
    assert [json.loads(line)["id"] for line in out.splitlines()] == ["1.1"]
    assert err == "1 debate with (id:0.1 OR id:1.1) (step:1)\n"


def test_a_filter_may_begin_with_what_is_not_wanted(inspect):
    _, out, _ = inspect("run", "ls", "-step:0", "-id:1.0")
    assert [line.split()[0] for line in out.splitlines()] == ["debate", "1.1", "1.2", "1.3"]
    code, _, err = inspect("run", "ls", "--limt", "5")
    assert (code, err) == (2, "debate: unknown option --limt; did you mean '--limit'?\n")


def test_a_debate_is_shown_as_text_and_as_json(inspect, folder):
    code, out, err = inspect("run", "show", "1.2")
    assert (code, err) == (0, "")
    with RunStore.open(folder / "run") as run:
        record = run.debate("1.2")
    assert record.debate.problem.question in out
    assert all(f", turn {turn.id.agent}.{turn.id.round}" in out for turn in record.debate.turns)
    code, out, _ = inspect("run", "show", "1.2", "--json")
    assert code == 0
    body = json.loads(out)
    assert [turn["text"] for turn in body["turns"]] == [turn.completion.text for turn in record.debate.turns]
    assert [turn["rewards"]["peer"] for turn in body["turns"][:3]] == [row[0] for row in record.rewards.peer]


def test_figures_and_searches(inspect):
    code, out, err = inspect("run", "stats", "--json")
    assert (code, err) == (0, "")
    body = json.loads(out)
    assert [(row["step"], row["debates"]) for row in body["steps"]] == [(0, 4), (1, 4)]
    assert inspect("run", "grep", "no such words") == (0, "", "found 0 times\n")
    code, out, err = inspect("run", "grep", "")
    assert (code, out) == (2, "")
    assert "text needs at least one letter or digit to search for" in err


def test_a_folder_of_runs_is_listed_and_one_in_it_is_opened(inspect, folder, tmp_path):
    assert inspect(".", "ls", "--limit", "1")[1].splitlines()[1].split()[0] == "0.0"
    for name in ("a", "b"):
        (tmp_path / name).symlink_to(folder / "run")
    code, out, _ = inspect(tmp_path)
    assert code == 0
    assert [line.split() for line in out.splitlines()] == [
        [f"{tmp_path}/{name}", "2/2", "–", "–", "0"] for name in ("a", "b")
    ]
    code, out, err = inspect(tmp_path, "stats")
    assert (code, out, err) == (2, "", f"debate: {tmp_path}: contains 2 runs; name one of them: a, b\n")


def test_a_mistake_is_one_line(inspect):
    for arguments, said in (
        (
            "run look",
            "ACTION is one of ls, show, grep, stats, why, same, replays, evaluations, pairs; got",
        ),
        ("run show", "show: name a debate by step and index"),
        ("run show 9.0", "run: no debate 9.0; there are steps 0 to 1"),
        ("run show x", "'x' is no debate"),
        ("run grep", "grep: give the words"),
        ("run show 0.0 --limit 3", "--limit: show does not use"),
        ("run stats --raw", "--raw: stats does not use"),
        ("nowhere ls", "nowhere: there is no such folder"),
    ):
        code, out, err = inspect(*arguments.split())
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert err.startswith(f"debate: {said}")


def test_a_wrong_filter_is_shown_with_a_caret(inspect):
    for arguments in (("ls", "winner:wron"), ("stats", "--filter", "winner:wron")):
        code, out, err = inspect("run", *arguments)
        assert (code, out) == (2, "")
        first, *shown = err.splitlines()
        assert first.startswith("debate: filter, character 7: winner is one of")
        assert shown == ["  winner:wron", "         ^"]


def test_what_is_not_ours_is_refused_and_left_alone(inspect, tmp_path):
    foreign, newer = tmp_path / "foreign", tmp_path / "newer"
    for where, line in ((foreign, '{"a": 1}\n'), (newer, '{"schema": 99}\n')):
        (where / "transcripts").mkdir(parents=True)
        (where / "transcripts/step_000000.jsonl").write_text(line)
    said = [inspect(where, "ls") for where in (foreign, newer)]
    assert all((code, out, err.count("\n")) == (2, "", 1) for code, out, err in said)
    assert "step_000000.jsonl:1: schema: not a debate transcript" in said[0][2]
    assert "schema: version 99; this version of" in said[1][2]
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["step_000000.jsonl"] * 2


@pytest.mark.slow
def test_a_reader_that_goes_away_ends_it_without_a_word(folder):
    command = [sys.executable, "-c", RUN, "inspect", "run", "show", *["0.0"] * 200]
    with subprocess.Popen(
        command, cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline().startswith(b"debate 0.0")
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def in_terminal(folder, *arguments, **environment):
    """Return what a terminal of 60 columns is sent."""
    leader, follower = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-c", RUN, "inspect", *arguments],
        cwd=folder,
        env=ENVIRONMENT | {"COLUMNS": "60"} | environment,
        stdin=follower,
        stdout=follower,
        stderr=subprocess.PIPE,
        timeout=120,
        check=False,
    )
    os.close(follower)
    sent = b""
    while True:
        try:
            part = os.read(leader, 1 << 16)
        except OSError:
            break
        if not part:
            break
        sent += part
    os.close(leader)
    return done.returncode, sent.decode().replace("\r\n", "\n"), done.stderr.decode()


@pytest.mark.slow
def test_a_terminal_has_headings_and_colour_unless_told_otherwise(folder):
    code, out, err = in_terminal(folder, "run", "ls", "--limit", "3")
    assert (code, err[:18]) == (0, "8 debates; next pa")
    assert out.startswith("\x1b[")
    assert len(out.splitlines()) == 5
    assert "columns more at a wider terminal" in out.splitlines()[-1]
    for quiet in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        code, out, _ = in_terminal(folder, "run", "ls", "--limit", "3", **quiet)
        assert code == 0
        assert "\x1b" not in out
        assert all(len(line) <= 60 for line in out.splitlines())


@pytest.mark.slow
def test_looking_at_a_run_needs_no_torch(folder):
    code = f"import sys\nfrom contextlib import suppress\nwith suppress(SystemExit):\n    {RUN}\n"
    code += "print(sorted({'torch', 'transformers', 'textual', 'jinja2'} & set(sys.modules)))"
    for action in (("show", "0.0", "--json"), ("ls",), ("stats",)):
        done = subprocess.run(
            [sys.executable, "-c", code, "inspect", "run", *action],
            cwd=folder,
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.stdout.splitlines()[-1] == "[]"
