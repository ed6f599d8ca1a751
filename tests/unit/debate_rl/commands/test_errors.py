"""The one line, and what shadows our packages."""

from __future__ import annotations

import asyncio
import errno
import signal
import sys

import pytest

from debate_rl.commands.console import (
    HOME,
    PACKAGES,
    Ended,
    one_line,
    refuse_shadows,
    refuse_torchrun,
    refuse_windows,
)
from debate_rl.commands.main import _terminate
from transcripts.errors import TranscriptWriteError


class OddError(Exception):
    def __str__(self) -> str:
        return "  \n"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("a: wrong\n\n  got 3"), "a: wrong got 3"),
        (ValueError("red \x1b[31m\x07 \u202e text"), "red �[31m� � text"),
        (OddError(), "OddError"),
        (PermissionError(errno.EACCES, "Permission denied", "/root/x"), "/root/x: Permission denied"),
        (OSError("plain"), "plain"),
        (
            ModuleNotFoundError("No module named 'torch.nn'", name="torch.nn"),
            "the package 'torch' is not installed: pip install \".[train]\" in the folder of the source",
        ),
        (ModuleNotFoundError("No module named 'mine'", name="mine"), "No module named 'mine'"),
    ],
)
def test_an_error_is_one_printable_line(error, line):
    assert one_line(error) == line


def test_the_line_of_an_error_has_an_end():
    line = one_line(ValueError(f"config.toml: seed: must be a number (got {'9' * 100_000!r})"))
    assert len(line) < 2000
    assert line.startswith("config.toml: seed: must be a number (got '999")
    assert line.endswith("999')")


def test_an_error_that_words_itself_keeps_its_words(tmp_path):
    told = TranscriptWriteError.of(OSError(errno.ENOSPC, "No space left on device"), tmp_path / "f")
    assert (
        one_line(told)
        == f"cannot write {tmp_path}/f: No space left on device; what was written before is intact"
    )


def test_our_own_packages_are_ours():
    refuse_shadows()
    assert {path.name for path in HOME.iterdir()} >= set(PACKAGES)


def test_a_package_from_elsewhere_is_named(tmp_path):
    with pytest.raises(ImportError, match=r"/debate stands in the way of debate-rl's own package 'debate'"):
        refuse_shadows(tmp_path)


def test_windows_is_told_so():
    refuse_windows("darwin")
    with pytest.raises(
        ImportError, match=r"^debate-rl runs on Linux and macOS; on Windows, use it inside WSL 2"
    ):
        refuse_windows("win32")


@pytest.mark.parametrize(
    ("command", "goes_on"), [("inspect", False), ("eval regrade", False), ("eval", True), ("train", True)]
)
def test_only_what_goes_on_says_so_when_it_is_stopped(monkeypatch, command, goes_on):
    monkeypatch.setattr("sys.argv", ["debate", *command.split(), "run"])
    with pytest.raises(Ended) as ended:
        _terminate(signal.SIGTERM, None)
    assert ended.value.line.startswith("stopped")
    assert ("resumes" in ended.value.line) == goes_on


def test_torchrun_starts_nothing_but_training():
    elastic = {"TORCHELASTIC_RUN_ID": "none"}
    refuse_torchrun(["eval", "RUN"], elastic | {"WORLD_SIZE": "1"})
    refuse_torchrun(["eval", "RUN"], {"WORLD_SIZE": "2"})
    refuse_torchrun(["train", "RUN"], elastic | {"WORLD_SIZE": "2"})
    with pytest.raises(ValueError, match=r"^torchrun: only debate train is started 2 times at once; "):
        refuse_torchrun(["eval", "RUN"], elastic | {"WORLD_SIZE": "2"})


def test_a_signal_in_asyncios_own_code_ends_a_command_in_the_loops_next_turn():
    done = []

    async def work():
        asyncios_own = sys._getframe(1)
        _terminate(signal.SIGTERM, asyncios_own)
        done.append("went on")
        await asyncio.Event().wait()

    with pytest.raises(Ended):
        asyncio.run(work())
    assert done == ["went on"]
