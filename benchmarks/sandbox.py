"""The sandbox: time to the first output of a fresh session, programs a second, and what 10,000 leave behind.

    python benchmarks/sandbox.py --json figures.json

Of the last part two programs in three are hostile: they leave processes and threads behind, fill memory and
files, kill themselves, or do not end. Counted are processes of the sandbox, open files, mounts and memory.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from report import Figure, parser, report

from envs.sandbox import Limits, Sandbox

PROGRAM = "from sympy import factorint\nprint(factorint(5040 + {}))"
KINDS = (
    PROGRAM,
    "print({} ** 2)",
    "import os, time\nfor _ in range(5):\n    if os.fork() == 0:\n        os.setsid(); time.sleep(60)",
    "import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()",
    "open('/tmp/large', 'wb').write(bytes(4 << 20)); open('/dev/shm/large', 'wb').write(bytes(1 << 20))",
    "x = bytearray(64 << 20)\nimport os; os.kill(os.getpid(), 9)",
)
MARKED = Limits(seconds=2.0, memory_mb=256, file_mb=16, output_chars=10_000 + os.getpid())
MARK = f'"output_chars": {MARKED.output_chars}'.encode()
SLOW = "while True: pass"
"""One program in a hundred."""


async def _one(sandbox: Sandbox, program: str) -> tuple[float, str]:
    began = time.perf_counter()
    async with sandbox.session() as session:
        ran = await session.run(program)
        return (time.perf_counter() - began) * 1000, ran.status


async def first_outputs(sandbox: Sandbox, count: int) -> list[float]:
    """Return the milliseconds from taking a session to its first output, one session after another."""
    return [(await _one(sandbox, PROGRAM.format(number)))[0] for number in range(count)]


async def all_at_once(sandbox: Sandbox, count: int, program: Callable[[int], str]) -> float:
    """Return the programs a second of so many sessions, 200 at a time."""
    places = asyncio.Semaphore(200)

    async def placed(number: int) -> None:
        async with places:
            await _one(sandbox, program(number))

    began = time.perf_counter()
    await asyncio.gather(*(placed(number) for number in range(count)))
    return count / (time.perf_counter() - began)


async def in_one_session(sandbox: Sandbox, count: int) -> float:
    """Return the programs a second of one session after another, 20 programs in each."""
    began = time.perf_counter()
    for start in range(0, count, 20):
        async with sandbox.session() as session:
            for number in range(start, start + 20):
                await session.run(PROGRAM.format(number))
    return count / (time.perf_counter() - began)


def hostile(number: int) -> str:
    """Return a program of the last part."""
    return SLOW if number % 100 == 99 else KINDS[number % len(KINDS)].replace("{}", str(number))


def processes() -> set[str]:
    """Return the processes of this machine that came of this benchmark's sandboxes: they keep its words."""
    found: set[str] = set()
    for entry in Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
        except OSError:
            continue
        if b"inside.zygote" in line and MARK in line:
            found.add(entry.name)
    return found


def files() -> set[str]:
    """Return our open files and the mounts and files of this machine that a program could have left."""
    mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if "/newroot" in line]
    places = [entry.as_posix() for entry in Path("/dev/shm").iterdir()]
    return {*places, *mounts, *(f"fd {name}" for name in os.listdir("/proc/self/fd"))}


def memory_mb(pids: set[str]) -> float:
    """Return the memory of these processes and of this, without what they share, in MB."""
    pages = 0
    for pid in (*pids, "self"):
        try:
            words = Path(f"/proc/{pid}/statm").read_text().split()
        except OSError:
            continue
        pages += int(words[1]) - int(words[2])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def left_behind(sandbox: Sandbox, count: int) -> list[Figure]:
    """Run hostile programs; return what is there afterwards and was not before."""
    settle(sandbox)
    own, there, held = len(processes()), files(), memory_mb(processes())
    rate = asyncio.run(all_at_once(sandbox, count, hostile))
    settle(sandbox)
    more, kept = max(len(processes()) - own, 0), len(files() - there)
    return [
        Figure("left_behind", more + kept, "processes, files and mounts", count),
        Figure("left_processes", more, "processes", count),
        Figure("left_files", kept, "files and mounts", count),
        Figure("left_memory_mb", max(memory_mb(processes()) - held, 0.0), "MB", count),
        Figure("hostile_per_second", rate, "programs/s", count),
    ]


def settle(sandbox: Sandbox) -> None:
    """End all that is kept warm, and begin with the one process that forks."""
    sandbox.close()
    sandbox.start()
    time.sleep(5.0)  # it imports the libraries


def main() -> None:
    options = parser("Speed of the sandbox, and what it leaves behind.")
    options.add_argument("--programs", type=int, default=10_000, help="of the last part; 0 leaves it out")
    arguments = options.parse_args()
    with Sandbox(MARKED) as sandbox:
        settle(sandbox)
        first = sorted(asyncio.run(first_outputs(sandbox, 200)))
        fresh = asyncio.run(all_at_once(sandbox, 400, PROGRAM.format))
        kept = asyncio.run(in_one_session(sandbox, 1000))
        figures = [
            Figure("first_output_ms", median(first), "ms", len(first), first[5], first[-6]),
            Figure("programs_per_second", fresh, "programs/s, each in a fresh session", 400),
            Figure("programs_per_second_kept", kept, "programs/s, 20 in a session", 1000),
        ]
        if arguments.programs:
            figures += left_behind(sandbox, arguments.programs)
    report("Sandbox", figures, arguments.json)


if __name__ == "__main__":
    main()
