"""What the command line prints to: any encoding, a reader that goes away, a full disk, nothing at all."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

import debate_rl
from debate.files import write_text
from debate_rl.commands import main
from debate_rl.inspector.web.export import export_html
from debate_rl.runs.folder import locked, write_whole
from transcripts import RunStore, write_step

LIGHT = {
    "help": ("--help",),
    "keys": ("keys", "learner"),
    "list": ("inspect", "RUN", "ls"),
    "debate": ("inspect", "RUN", "show", "0.0", "0.1"),
    "stats": ("inspect", "RUN", "stats"),
    "mistake": ("inspect", "nowhere"),
}
OF_A_TRAINED_RUN = {
    "why": ("inspect", "RUN", "why", "0.0"),
    "replay": ("replay", "RUN", "rewards.truth_weight=0.3"),
    "regrade": ("eval", "regrade", "RUN", "--clip", "e"),
    "report": ("report", "RUN"),
    "tokens": ("inspect", "tokens", "RUN", "0.0"),
    "eval": ("eval", "RUN"),
    "play": ("solve", "play", "RUN", "What is 1 + 1?"),
}
COMMANDS = [*LIGHT, *(pytest.param(name, marks=pytest.mark.slow) for name in OF_A_TRAINED_RUN)]


@pytest.fixture
def call(request, tmp_path, monkeypatch):
    """Return call(command, stream) -> the exit code of a command that prints to a stream."""

    def ended(command, stream):
        trained = command in OF_A_TRAINED_RUN
        run_of = request.getfixturevalue("folder") / "run" if trained else request.getfixturevalue("run")
        monkeypatch.chdir(tmp_path)
        words = [str(run_of) if word == "RUN" else word for word in (LIGHT | OF_A_TRAINED_RUN)[command]]
        monkeypatch.setattr(sys, "argv", ["debate", *words])
        monkeypatch.setattr(sys, "stdout", stream)
        with pytest.raises(SystemExit) as end:
            main.run()
        return end.value.code

    return ended


@pytest.mark.parametrize("command", COMMANDS)
def test_what_an_encoding_lacks_is_written_as_its_escape(command, call, monkeypatch):
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="ascii") for _ in range(2))
    monkeypatch.setattr(sys, "stderr", err)
    assert call(command, out) == (2 if command == "mistake" else 0)
    out.seek(0)
    assert out.read() or command == "mistake"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_reader_that_went_away_ends_it_without_a_word(command, call, capsys):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", encoding="utf-8", buffering=1) as stream:
        assert call(command, stream) == (2 if command == "mistake" else 141)
    if command != "mistake":
        assert "rror" not in capsys.readouterr().err


@pytest.mark.parametrize("command", ["help", "keys", "list", "debate"])
def test_a_disk_that_is_full_is_named_as_that_of_the_output(command, call, capsys):
    with open("/dev/full", "w", encoding="utf-8") as stream:
        assert call(command, stream) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "debate: standard output: No space left on device"


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_where_a_stream_is_closed_nothing_is_printed_to_it(closed, tmp_path):
    code = "import sys; sys.argv = ['debate', 'keys']; from debate_rl.commands.main import run; run()"
    environment = os.environ | {"PYTHONPATH": str(Path(debate_rl.__file__).parents[1])}
    command = ["sh", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, code]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def into_a_lock(folder):
    with locked(folder):
        pass


def into_an_export(folder):
    with RunStore.open(folder / "run") as store:
        export_html(store, "", folder / "page.html")


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (lambda folder: write_whole(folder / "facts.json", b"x" * 100), "facts.json"),
        (lambda folder: write_text(folder / "figures.json", "x" * 100), "figures.json"),
        (into_a_lock, ".lock"),
        (into_an_export, "page.html"),
    ],
)
def test_what_cannot_be_written_is_named(write, name, tmp_path, step_records, files_of_at_most):
    write_step(tmp_path / "run/transcripts", 0, step_records(0))
    with (
        RunStore.open(tmp_path / "run"),
        files_of_at_most(0),
        pytest.raises(OSError, match="large") as caught,
    ):
        write(tmp_path)
    assert caught.value.filename == str(tmp_path / name)


def test_an_index_that_cannot_be_written_is_named(tmp_path, step_records, files_of_at_most):
    write_step(tmp_path / "run/transcripts", 0, step_records(0))
    with RunStore.open(tmp_path / "run", refresh=False) as store:
        with files_of_at_most(100), pytest.raises(OSError, match="the index cannot be used") as caught:
            store.refresh()
        assert caught.value.filename == str(store.folder)
        assert store.refresh() == 6
