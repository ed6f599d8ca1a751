"""On a terminal of its own: what reaches it, and what is said if there is none."""

import os
import pty
import re
import select
import subprocess
import sys
import time

import pytest

from debate_rl.inspector.terminal import run_terminal, why_not

COLOUR = re.compile(rb"\x1b\[(?:[0-9]+;)*(?:3[0-7]|4[0-7]|9[0-7]|10[0-7]|[34]8;[0-9;]+)(?:;[0-9]+)*m")
PROGRAM = "import sys; from debate_rl.inspector.terminal import run_terminal; run_terminal(sys.argv[1])"
PATIENCE_S = 60
STEPS = ((b"18 debates in 3 steps", b"d"), ("✓ right".encode(), b"q"))


def on_terminal(run, **environment):
    """Run the application on a terminal: wait for a text, type a key, and so on; return the output."""
    ours, theirs = pty.openpty()
    variables = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLORTERM")}
    size = {"COLUMNS": "80", "LINES": "24"}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(run)],
        **dict.fromkeys(("stdin", "stdout", "stderr"), theirs),
        env=variables | size | environment,
        start_new_session=True,
    )
    os.close(theirs)
    seen = b""
    try:
        for wanted, key in STEPS:
            seen += _until(ours, wanted)
            os.write(ours, key)
        _until(ours, b"\x1b[?1049l")
        process.wait(timeout=PATIENCE_S)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert process.returncode == 0
    return seen


def _until(terminal, wanted):
    seen, until = b"", time.monotonic() + PATIENCE_S
    while wanted not in seen:
        assert time.monotonic() < until, seen[-2000:]
        if select.select([terminal], [], [], 1)[0]:
            try:
                seen += os.read(terminal, 65536)
            except OSError as error:  # the other end is closed
                raise AssertionError(seen[-2000:]) from error
    return seen


@pytest.mark.slow
@pytest.mark.parametrize(
    ("coloured", "environment"),
    [
        (True, {"TERM": "xterm-256color"}),
        (False, {"TERM": "vt100"}),
        (False, {"TERM": "xterm", "NO_COLOR": "1"}),
    ],
)
def test_on_a_terminal(run, coloured, environment):
    assert bool(COLOUR.search(on_terminal(run, **environment))) == coloured


@pytest.mark.parametrize("term", ["dumb", "", "unknown"])
def test_a_terminal_that_cannot_be_drawn_on(term):
    assert "cannot move its cursor" in why_not(True, term)


def test_without_a_terminal_one_line_names_ls(run):
    said = r"^this is not a terminal; debate inspect .* ls prints the debates$"
    with pytest.raises(ValueError, match=said):
        run_terminal(run)


def test_without_the_package_one_line_names_the_extra(run, monkeypatch):
    for name in list(sys.modules):
        if name.startswith(("textual", "debate_rl.inspector.terminal.")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "textual", None)
    monkeypatch.setenv("TERM", "xterm")
    for stream in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, stream, Terminal())
    with pytest.raises(ValueError, match=r'pip install "\.\[inspect\]" in .*; debate inspect .* ls') as told:
        run_terminal(run)
    assert "\n" not in str(told.value)


class Terminal:
    def isatty(self):
        return True

    def write(self, text):
        return len(text)

    def flush(self):
        pass
