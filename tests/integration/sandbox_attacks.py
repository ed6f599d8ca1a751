"""The attacks of tests/data/sandbox_attacks.txt: runs them all, and says which got through.

Behind every attack its session must go on or begin anew, another session must work, and no process be left.

    python tests/integration/sandbox_attacks.py [-v]      # prints {"name": ["what is wrong", ...]}
"""

import asyncio
import json
import os
import platform
import re
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from debate.tools import Ran
from envs.sandbox import Limits, Sandbox
from envs.sandbox.sandbox import SandboxSession

PROJECT = Path(__file__).parents[2]
PRELUDE = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
def call(*arguments):
    if libc.syscall(*arguments) >= 0:
        print("GOT")
def reach(function):
    try:
        print("GOT", function())
    except OSError as error:
        print(error)
"""
ANY = {"ok", "error", "timeout", "memory", "died"}
BRIEF, PATIENT = 0.7, 30.0
"""Seconds for a program: where a timeout is one of its ends, and where a busy machine must not cause one."""
X86_CALL = re.compile(r"^call\(", re.MULTILINE)
"""System calls by their numbers on x86-64, which are others elsewhere."""


@dataclass(frozen=True)
class Attack:
    """A program, and how it may end."""

    name: str
    program: str
    ends: set[str]


def attacks() -> list[Attack]:
    """Return the attacks that mean something on this machine."""
    text = (PROJECT / "tests" / "data" / "sandbox_attacks.txt").read_text("utf-8")
    found = []
    for part in re.sub(r"^# .*\n", "", text, flags=re.MULTILINE).split("=== ")[1:]:
        title, _, program = part.partition("\n")
        name, _, ends = title.partition(" | ")
        if platform.machine() == "x86_64" or not X86_CALL.search(program):
            found.append(
                Attack(name, program, ANY if ends == "any" else set(ends.split() or ("ok", "error")))
            )
    return found


def ours() -> set[str]:
    """Return the pids of processes that a sandbox of this process began."""
    parents = {}
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "stat").read_text().rpartition(")")[2].split() if entry.name.isdigit() else []
        except OSError:
            continue
        if words:
            parents[entry.name] = words[1]
    found, new = set(), {str(os.getpid())}
    while new:
        new = {pid for pid, parent in parents.items() if parent in new} - found
        found |= new
    return found


async def against(sandbox: Sandbox, attack: Attack, facts: dict[str, object]) -> list[str]:
    """Run an attack; return what is wrong with how it went."""
    program = attack.program
    for name, value in facts.items():
        program = program.replace("{" + name + "}", str(value))
    wrong, before = [], ours()
    async with asyncio.timeout(300), sandbox.session() as session:
        await answered(session, PRELUDE)
        ran = await session.run(program)
        after = await session.run("print(6 * 7)")
        async with sandbox.session() as other:
            elsewhere = await answered(other, "print(6 * 7)")
    if re.search("^GOT", ran.output, re.MULTILINE):  # not where a traceback quotes the program
        wrong.append(f"got through: {ran.output[:200]}")
    if ran.status not in attack.ends:
        wrong.append(f"ended with {ran.status}: {ran.error}")
    if len(ran.output) > 5000:
        wrong.append(f"{len(ran.output)} characters")
    if after.status not in ("ok", "died", "error", "timeout"):
        wrong.append(f"and then {after}")
    if elsewhere.output != "42\n":
        wrong.append(f"another session: {elsewhere}")
    deadline = time.monotonic() + 10
    while (left := ours() - before) and time.monotonic() < deadline:
        await asyncio.sleep(0.001)  # what watched over the session has a moment to end itself
    if left:
        wrong.append(f"{len(left)} processes left")
    return wrong


async def answered(session: SandboxSession, program: str) -> Ran:
    """Run a program that ends, again where a busy machine had no time for it."""
    while (ran := await session.run(program)).status == "timeout":
        pass
    return ran


async def run_all(sandbox: Sandbox, chosen: list[Attack], facts: dict[str, object]) -> dict[str, list[str]]:
    """Return what is wrong, by the names of the attacks."""
    found = {}
    for attack in chosen:
        began = time.monotonic()
        found[attack.name] = await against(sandbox, attack, facts)
        if "-v" in sys.argv:
            print(f"{time.monotonic() - began:6.2f} {attack.name}: {found[attack.name]}", file=sys.stderr)
    return found


def main(folder: Path) -> None:
    """Lay out what there is to get, run the attacks, and look whether anything of it was touched."""
    secret = folder / "secret.txt"
    secret.write_text("secret")
    secret.chmod(0o666)
    os.environ["CANARY"] = "secret"
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        name = f"debate-attack-{os.getpid()}"
        abstract.bind(f"\0{name}")
        abstract.listen()
        named = socket.socket(socket.AF_UNIX)
        named.bind(str(folder / "socket"))
        named.listen()
        facts = {"secret": secret, "home": folder, "port": server.getsockname()[1], "name": name}
        facts |= {"host": os.getpid(), "project": PROJECT}
        found = {}
        for seconds in (BRIEF, PATIENT):
            limits = Limits(seconds=seconds, memory_mb=128, processes=12, file_mb=8, output_chars=2000)
            chosen = [one for one in attacks() if ("timeout" in one.ends) == (seconds == BRIEF)]
            with Sandbox(limits, warm=0) as sandbox:
                sandbox.start()
                found |= asyncio.run(run_all(sandbox, chosen, facts))
        for one in (server, abstract, named):
            one.setblocking(False)
            with suppress(BlockingIOError):
                heard.append(str(one.accept()[1]))
        named.close()
    found["what the host has"] = [
        *(["the file was changed"] if secret.read_text() != "secret" else []),
        *(f"{address} was connected to" for address in heard),
        *(f"process {pid} is left" for pid in ours()),
        *(f"{entry} is there" for entry in folder.iterdir() if entry.name not in ("secret.txt", "socket")),
    ]
    print(json.dumps(found))


if __name__ == "__main__":
    with TemporaryDirectory(prefix="attacked-") as home:
        Path(home).chmod(0o755)
        main(Path(home))
