"""An object in its own process: calls, errors, cancelling, and what is left when either side ends."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from debate_rl.inference.remote import PING, Address, Gone, Remote, RemoteError, RemoteProcess, new_address

SERVED = """
import asyncio, os

class Parrot:
    def __init__(self, word="polly"):
        if not word:
            raise ValueError("word: must not be empty")
        self.word, self.cancelled = word, 0
        print("hatched")

    def state(self):
        return self.cancelled

    async def say(self, *words):
        return [self.word, *words]

    async def fail(self, kind):
        raise {"value": ValueError, "key": KeyError}[kind]("it said so")

    async def wait(self):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    async def end(self):
        os._exit(3)
"""


@pytest.fixture
def parrot(tmp_path, monkeypatch):
    (tmp_path / "parrots.py").write_text(SERVED)
    monkeypatch.syspath_prepend(str(tmp_path))
    made = []

    def start(**settings) -> tuple[RemoteProcess, Address]:
        address = new_address(tmp_path, f"socket_{len(made)}")
        made.append(RemoteProcess("parrots:Parrot", settings, address, tmp_path / "log"))
        made[-1].start()
        made[-1].wait()
        return made[-1], address

    yield start
    for process in made:
        process.close()


def until(true) -> bool:
    end = time.monotonic() + 60
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    return true()


def test_it_answers_every_caller_and_what_it_prints_goes_to_its_log(parrot, tmp_path):
    _, address = parrot(word="ara")
    first, second = Remote(address), Remote(address)
    assert first.call("say", 1, "two").result(60) == ["ara", 1, "two"]
    assert asyncio.run(second.ask("say")) == ["ara"]
    assert (tmp_path / "log").read_text() == "hatched\n"


def test_errors_come_back(parrot):
    _, address = parrot()
    remote = Remote(address)
    with pytest.raises(ValueError, match=r"^it said so$"):
        remote.call("fail", "value").result(60)
    with pytest.raises(RemoteError, match=r"^KeyError: 'it said so'$"):
        remote.call("fail", "key").result(60)
    with pytest.raises(RemoteError, match="has no attribute 'sing'"):
        remote.call("sing").result(60)
    with pytest.raises(ValueError, match=r"^word: must not be empty$"):
        parrot(word="")
    assert remote.call("say").result(60) == ["polly"]


def test_a_call_that_nobody_waits_for_is_cancelled(parrot):
    _, address = parrot()
    remote, leaving = Remote(address), Remote(address)

    async def give_up() -> None:
        async with asyncio.timeout(0.1):
            await remote.ask("wait")

    with pytest.raises(TimeoutError):
        asyncio.run(give_up())
    assert until(lambda: remote.call(PING).result(60) == 1)
    leaving.call("wait")
    leaving.call("say").result(60)
    leaving.close()
    assert until(lambda: remote.call(PING).result(60) == 2)


def test_who_waits_for_a_process_that_ends_is_told(parrot):
    process, address = parrot()
    remote = Remote(address)
    waiting = remote.call("wait")
    with pytest.raises(Gone):
        remote.call("end").result(60)
    with pytest.raises(Gone):
        waiting.result(60)
    assert until(lambda: "ended with code 3" in process.ended())
    with pytest.raises(Gone):
        remote.call("say").result(60)
    with pytest.raises(Gone):
        Remote(address)
    process.start()  # anew, at the same address
    process.wait()
    assert Remote(address).call("say").result(60) == ["polly"]


def test_nobody_without_the_key_is_answered(parrot):
    _, address = parrot()
    with pytest.raises(Exception, match=r"digest|Nothing|nothing"):
        Remote(Address(address.path, b"guessed"))
    assert Remote(address).call("say").result(60) == ["polly"]


OWNER = """
import sys, time
from pathlib import Path
from debate_rl.inference.remote import RemoteProcess, new_address
process = RemoteProcess("parrots:Parrot", {}, new_address(Path("."), "socket"), Path("log"))
process.start()
process.wait()
print(process.pid, flush=True)
time.sleep(60)
"""


def test_a_killed_owner_leaves_no_process_behind_and_a_signal_to_all_ends_the_owner_alone(tmp_path):
    (tmp_path / "parrots.py").write_text(SERVED)
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[3])])
    how = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": path}, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", OWNER], start_new_session=True, **how) as owner:
        served = int(owner.stdout.readline())
        os.kill(served, signal.SIGINT)
        os.kill(served, signal.SIGTERM)
        time.sleep(0.2)
        assert is_running(served)
        owner.kill()
    assert until(lambda: not is_running(served))


def is_running(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
