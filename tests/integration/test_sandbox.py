"""The sandbox beside the process that uses it: the command, its end by any signal, refusals, no box."""

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from debate_rl.config import Config
from debate_rl.engines import open_sandbox
from envs.sandbox import Limits, Sandbox, SandboxRefused
from envs.sandbox import box as box_module


@pytest.fixture(scope="module")
def can_run():
    """Skip, with the reason, where no sandbox can run."""
    try:
        with Sandbox(warm=0) as sandbox:
            sandbox.start()
    except SandboxRefused as refused:
        pytest.skip(str(refused))


def lines_of(text):
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def programs(tmp_path):
    for name, text in (("one.py", "x = 6"), ("two.py", "x * 7"), ("three.py", "1 / 0")):
        (tmp_path / name).write_text(text)
    return [str(tmp_path / name) for name in ("one.py", "two.py", "three.py")]


def test_the_command_prints_a_line_for_each_program(can_run, debate_command, programs, tmp_path):
    code, out, _ = debate_command("sandbox", *programs, "--json", tmp_path / "all.json")
    assert code == 0
    found = lines_of(out)
    assert [line["file"] for line in found] == programs
    assert [line["status"] for line in found] == ["ok", "error", "error"]
    assert [set(line) for line in found] == [{"file", "status", "output", "error", "seconds"}] * 3
    assert found[2]["error"] == "ZeroDivisionError: division by zero"
    assert json.loads((tmp_path / "all.json").read_text()) == found


def test_the_command_runs_programs_in_one_session(can_run, debate_command, programs):
    assert lines_of(debate_command("sandbox", *programs, "--session")[1])[1]["output"] == "42\n"


def test_the_command_reads_standard_input(can_run, debate_command, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"print('in \xc3\xa9 \xff')")))
    assert lines_of(debate_command("sandbox", "-")[1])[0]["output"] == "in é �\n"


@pytest.mark.parametrize(
    ("words", "start"),
    [
        (("nowhere.py",), "nowhere.py: "),
        (("--seconds", "0"), "--seconds 0.0: "),
        (("--memory-mb", f"{10**20}"), f"--memory-mb {10**20}: "),
        (("--memory-mb", "1"), "--memory-mb 1: "),
    ],
)
def test_a_mistake_is_one_line(debate_command, programs, words, start):
    code, out, err = debate_command("sandbox", *programs, *words)
    assert (code, out, err.count("\n"), err.startswith(f"debate: {start}")) == (2, "", 1, True)


def test_without_bubblewrap_the_package_is_named(debate_command, programs, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    code, _, said = debate_command("sandbox", programs[0])
    assert code == 2
    assert "apt install bubblewrap" in said


def test_where_namespaces_are_forbidden_the_setting_is_named(tmp_path, monkeypatch):
    setting = tmp_path / "max_user_namespaces"
    setting.write_text("0\n")
    monkeypatch.setattr(box_module, "SETTINGS", {str(setting): ("0", "10000")})
    refused = str(box_module.refusal("bwrap: No permissions to create a new namespace\n"))
    assert refused.startswith("the sandbox cannot run: bwrap: No permissions to create a new namespace; set ")
    assert "max_user_namespaces = 10000" in refused


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("sys.platform", "darwin", "needs Linux"),
        ("platform.release", lambda: "5.4.0-generic", "needs Linux 5.14 or later; this is 5.4.0-generic"),
        ("platform.machine", lambda: "riscv64", "no filter of system calls for riscv64"),
    ],
)
def test_a_system_that_cannot_is_named(monkeypatch, name, value, said):
    monkeypatch.setattr(f"envs.sandbox.box.{name}", value)
    with pytest.raises(SandboxRefused, match=said):
        box_module.check_system()


@pytest.mark.slow
def test_unsafe_runs_without_bubblewrap_and_says_so(monkeypatch, tmp_path, caplog):
    monkeypatch.setenv("PATH", str(tmp_path))
    with Sandbox(Limits(seconds=5), unsafe=True) as sandbox:
        sandbox.start()
        [ran] = asyncio.run(one_session(sandbox, "import os, sympy\nos.path.isdir('/proc/self'), 6 * 7"))
    assert ran.output.endswith("42)\n")
    assert "sandbox.unsafe: programs run as plain processes of this user, in no box" in caplog.text


@pytest.mark.slow
def test_unsafe_ends_what_a_program_leaves(caplog):
    program = "import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(1000)"
    before = left_of(os.getpid())
    with Sandbox(Limits(seconds=0.3, memory_mb=256), unsafe=True, warm=0) as sandbox:
        sandbox.start()
        ended = asyncio.run(one_session(sandbox, program, "while True: pass", "bytearray(1 << 40)"))
        assert [ran.status for ran in ended] == ["ok", "timeout", "memory"]
    assert left_of(os.getpid()) <= before


def test_a_configuration_opens_one(can_run):
    tables = {"env": {"kind": "pair_sum"}, "model": {"tiny": {}}, "sandbox": {"seconds": 2}}
    with open_sandbox(Config.model_validate(tables).sandbox) as sandbox:
        assert sandbox.limits == Limits(seconds=2)


async def one_session(sandbox, *programs):
    async with sandbox.session() as session:
        return [await session.run(program) for program in programs]


HOST = """
import asyncio, sys
from envs.sandbox import Limits, Sandbox
async def main(sandbox):
    async with sandbox.session() as session:
        await session.run("import os\\nif os.fork() == 0:\\n    os.setsid()\\nx = 1")
        print("begun", flush=True)
        await session.run("import os\\nos.fork(); os.setsid()\\nwhile True: pass")
asyncio.run(main(Sandbox(Limits(seconds=1000), warm=2)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_when_the_user_of_it_is_killed(can_run, number):
    with subprocess.Popen(
        [sys.executable, "-c", HOST], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout.readline() == b"begun\n"
        began = left_of(process.pid)
        assert len(began) >= 5
        process.send_signal(number)
    deadline = time.monotonic() + 30
    while (left := {pid for pid in began if is_there(pid)}) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert left == set()


def test_a_sandbox_whose_first_process_is_killed_begins_anew(can_run):
    before = left_of(os.getpid())
    with Sandbox(warm=1) as sandbox:
        sandbox.start()
        began = left_of(os.getpid()) - before
        for pid in began:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while any(map(is_there, began)):  # a signal is sent, not yet obeyed
            time.sleep(0.01)
        ended = asyncio.run(one_session(sandbox, "1", "6 * 7"))
    assert ended[-1].output == "42\n"


@pytest.mark.slow
def test_a_session_that_is_cancelled_leaves_nothing(can_run):
    async def cancelled(sandbox):
        task = asyncio.create_task(one_session(sandbox, "while True: pass"))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    before = left_of(os.getpid())
    with Sandbox(Limits(seconds=1000), warm=0) as sandbox:
        sandbox.start()
        asyncio.run(cancelled(sandbox))
    assert left_of(os.getpid()) <= before


def test_two_event_loops_in_turn_use_one_sandbox(can_run):
    with Sandbox(warm=2) as sandbox:
        assert [asyncio.run(one_session(sandbox, "6 * 7"))[0].output for _ in range(2)] == ["42\n"] * 2


def left_of(parent):
    """Return the pids of living processes of a sandbox that come of a process."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and is_there(int(entry.name)):
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found, new = set(), {parent}
    while new:
        new = {pid for pid, of in parents.items() if of in new} - found
        found |= new
    return {pid for pid in found if is_ours(pid)}


def is_ours(pid):
    try:
        return b"inside.zygote" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def is_there(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
