"""The live page of a run that trains, in a process of its own."""

import os
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from debate_rl.inspector.web.live import STARTING, listen_on_free_port, live_page

from .conftest import ENVIRONMENT

KILLED = """
import os, sys
from pathlib import Path
from debate_rl.inspector.web.live import live_page
with live_page(Path(sys.argv[1]), lambda line: print(line, flush=True)):
    sys.stdin.read(1)
    os.kill(os.getpid(), 9)
"""


def address(line: str) -> str:
    assert line.startswith("live page: http://127.0.0.1:")
    return line.split()[2]


def ends(url: str) -> bool:
    for _ in range(100):
        try:
            httpx.get(url, timeout=30)
        except httpx.ConnectError:
            return True
        except httpx.TransportError:  # it ended during the request
            continue
        time.sleep(0.1)
    return False


@pytest.mark.slow
def test_a_run_is_served_from_before_it_exists_until_training_ends(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", ENVIRONMENT["PYTHONPATH"])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "statistics.py").write_text("raise SystemExit")  # a file of the user
    run, said = tmp_path / "run", list[str]()
    with live_page(run, said.append):
        url = address(said[0])
        starting = httpx.get(url, timeout=60)
        assert (starting.status_code, starting.text, starting.headers["refresh"]) == (503, STARTING, "2")
        (run / "transcripts").mkdir(parents=True)
        (run / "config.toml").touch()
        page = httpx.get(url, timeout=60, follow_redirects=True)
        assert (page.status_code, page.url.path) == (200, "/run/run/")
        assert httpx.get(url, headers={"host": "evil.example"}).status_code >= 400
    assert len(said) == 1
    assert ends(url)


def test_a_port_in_use_is_no_error():
    with listen_on_free_port(0) as first:
        taken = first.getsockname()[1]
        with listen_on_free_port(taken) as second:
            assert second.getsockname()[1] != taken


@pytest.mark.slow
def test_the_page_of_a_killed_run_ends(tmp_path: Path):
    command = [sys.executable, "-c", KILLED, str(tmp_path / "run")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=os.environ | ENVIRONMENT, **pipes) as process:
        url = address(process.stdout.readline())
        assert httpx.get(url, timeout=60).status_code == 503
        process.stdin.write("x")
        process.stdin.flush()
        process.wait(30)
    assert ends(url)
