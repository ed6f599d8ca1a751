"""The program of a reply, and its grade by the tests of the problem."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from debate.concurrency import run_async
from envs.grading.exact import decided
from envs.programs.gold import read_tests
from envs.programs.harness import passed, shared_sandbox
from envs.types import Grade

_BLOCK = re.compile(r"^```[ \t]*([^\s`]*)[^\n`]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_PYTHON = ("", "python", "py", "python3")


def code_of(reply: str, start: str = "") -> str:
    r"""Return the program of a reply: its last block of Python, else the reply where it is Python.

    ``start``: a program that a reply without a block may go on from.

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
    return start + reply if start and not _is_python(reply) else reply


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def grade_code(answer: str, gold: str) -> Grade:
    """Return the grade of a reply by the tests of a gold answer; right where it passes all of them."""
    tests = read_tests(gold)
    found = run_async(passed(tests, code_of(answer, tests.start), shared_sandbox()))
    parts = tuple((f"test {number}", one) for number, one in enumerate(found, start=1))
    return replace(decided(all(found), "code"), parts=parts)
