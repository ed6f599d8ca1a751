"""The one line, and what shadows our packages."""

import asyncio
import errno
import signal
import sys

import pytest

from debate_rl.commands.console import Ended, one_line
from debate_rl.commands.main import _terminate


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


@pytest.mark.parametrize(
    ("command", "goes_on"), [("inspect", False), ("eval regrade", False), ("eval", True), ("train", True)]
)
def test_only_what_goes_on_says_so_when_it_is_stopped(monkeypatch, command, goes_on):
    monkeypatch.setattr("sys.argv", ["debate", *command.split(), "run"])
    with pytest.raises(Ended) as ended:
        _terminate(signal.SIGTERM, None)
    assert ended.value.line.startswith("stopped")
    assert ("resumes" in ended.value.line) == goes_on


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
