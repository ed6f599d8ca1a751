"""Find the program in a reply, run it in the sandbox, and find out which tests it passes.

Results are compared in a place that the program cannot reach.
"""

from __future__ import annotations

import ast
import asyncio
import json
import re
from dataclasses import replace
from functools import cache
from math import isclose
from pathlib import Path

from debate.concurrency import run_async
from debate.tools import Programs, Ran, Session
from envs.grading.exact import decided
from envs.programs import ProgramTests, read_tests
from envs.sandbox import Limits, Sandbox
from envs.types import Grade

LIMITS = Limits(seconds=6.0, memory_mb=1024, output_chars=1 << 20)  # limits of a tested program
MOST_CALLS = 2000  # maximum number of requests of one test to the program
MOST_DEATHS = 2  # after this many deaths, for example by timeouts, all remaining tests count as failed
CLOSE = 1e-6  # decimals in outputs are equal if they differ by at most this, relatively or absolutely
MARK = "\x1e"

_BLOCK = re.compile(r"^```[ \t]*([^\s`]*)[^\n`]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_PYTHON = ("", "python", "py", "python3")

_REMOTE = (Path(__file__).parent / "remote.py").read_text("utf-8")
_LOAD = f"import types\nremote = types.ModuleType('remote')\nexec({_REMOTE!r}, remote.__dict__)\n"
_PROGRAM = """
_names = {{"__name__": "solution"}}
exec(compile({setup!r}, "<setup>", "exec"), _names)
exec(compile({code!r}, "<solution>", "exec"), _names)
_answering = remote.Answering(_names)
"""
_STANDARD_INPUT = """
import os, sys
with open("/tmp/input", "w", encoding="utf-8", newline="") as file:
    file.write({text!r})
os.dup2(os.open("/tmp/input", os.O_RDONLY), 0)
os.unlink("/tmp/input")
sys.stdin = open(0, encoding="utf-8", closefd=False)
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
sys.stderr = open(2, "w", closefd=False)
exec(compile({code!r}, "<solution>", "exec"), {{"__name__": "__main__"}})
"""


@cache
def shared_sandbox() -> Sandbox:
    """Return the tested sandbox of this process's graders; raise SandboxRefused if none can run."""
    sandbox = Sandbox(LIMITS)
    sandbox.start()
    return sandbox


async def passed(tests: ProgramTests, code: str, programs: Programs) -> list[bool]:
    """Return for each test whether a program passes it: first the statements, then the inputs."""
    called = await _statements(tests, code, programs) if tests.asserts else []
    return called + list(await asyncio.gather(*(_pair(pair, code, programs) for pair in tests.pairs)))


async def _pair(pair: tuple[str, str], code: str, programs: Programs) -> bool:
    """Return whether the program, alone in its session, writes the expected output for an input."""
    given, wanted = pair
    async with programs.session() as session:
        ran = await session.run(_STANDARD_INPUT.format(text=given, code=code))
    return ran.status == "ok" and same_output(ran.output, wanted)


def same_output(output: str, wanted: str) -> bool:
    r"""Return whether two outputs have the same words; decimals may differ by ``CLOSE``.

    >>> same_output("1 2\n3 ", "1 2\n\n3"), same_output("0.3333333", "0.33333333"), same_output("1", "1.5")
    (True, True, False)
    """

    def same(ours: str, theirs: str) -> bool:
        try:
            close = "." in theirs and isclose(float(ours), float(theirs), rel_tol=CLOSE, abs_tol=CLOSE)
        except ValueError:
            close = False
        return close or ours == theirs

    ours, theirs = output.split(), wanted.split()
    return len(ours) == len(theirs) and all(map(same, ours, theirs))


async def _statements(tests: ProgramTests, code: str, programs: Programs) -> list[bool]:
    """Return for each statement whether it holds; statements and the program run in two sessions."""
    found: list[bool] = []
    start = _LOAD + _PROGRAM.format(setup=tests.setup, code=code)
    deaths, loaded = 0, False
    async with programs.session() as program, programs.session() as tester:
        await tester.run(f"{_LOAD}_testing = remote.Asking({tests.setup!r}, {tests.entry!r})")
        for test in tests.asserts:
            if not loaded and deaths < MOST_DEATHS:
                ran = await program.run(start)
                loaded = ran.status == "ok"
                deaths += not loaded
            if not loaded:
                found.append(False)
                continue
            holds, loaded = await _holds(test, program, tester)
            deaths += not loaded
            found.append(holds)
    return found


async def _holds(test: str, program: Session, tester: Session) -> tuple[bool, bool]:
    """Return whether a statement holds, and whether the program is still alive."""
    await tester.run("_testing.begin()")
    reply: str | None = None
    for _ in range(MOST_CALLS):
        said = _said(await tester.run(f"print({MARK!r} + _testing.check({test!r}, {reply!r}))"))
        asked = json.loads(said) if said else {"passed": False}
        if "passed" in asked:
            return bool(asked["passed"]), True
        ran = await program.run(f"print({MARK!r} + _answering.answer({said!r}))")
        if ran.status != "ok":
            return False, ran.status == "error"
        reply = _said(ran) or '{"raised": "ValueError", "text": "no value"}'
    return False, True


def _said(ran: Ran) -> str:
    return ran.output.rpartition(MARK)[2].strip() if ran.status == "ok" and MARK in ran.output else ""


def code_of(reply: str, start: str = "") -> str:
    r"""Return the program in a reply: its last Python block, or the whole reply if it is valid Python.

    Any other reply counts as the continuation of ``start``, the beginning of a program.

    >>> code_of("So:\n```python\ndef f(x):\n    return x\n```\nDone.")
    'def f(x):\n    return x\n'
    >>> code_of("```python\nA = 1\n```\n```output\n```\nSo:\n```python\nB = 2\n```\n")
    'B = 2\n'
    >>> code_of("    return x + 1", "def f(x):\n")
    'def f(x):\n    return x + 1'
    """
    blocks = [code for label, code in _BLOCK.findall(reply) if label.lower() in _PYTHON]
    if blocks:
        return blocks[-1]
    try:
        ast.parse(reply)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return start + reply
    return reply


def grade_code(answer: str, gold: str) -> Grade:
    """Return the grade of a reply by the tests in a gold answer; a right reply passes all of them."""
    tests = read_tests(gold)
    found = run_async(passed(tests, code_of(answer, tests.start), shared_sandbox()))
    parts = tuple((f"test {number}", one) for number, one in enumerate(found, start=1))
    return replace(decided(all(found), "code"), parts=parts)
