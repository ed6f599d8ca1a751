"""Programs in a session: what they show, what they keep, how they end."""

import asyncio

import pytest

GONE = "[the session ended: nothing that was defined in it is left]\n"


def test_a_program_shows_what_it_prints_and_the_value_of_its_last_line(run):
    one, two, three = run("x = 6\nprint('six', end='')\nx * 7", "x + 1", "x = None\nx")
    assert (one.status, one.output, one.error) == ("ok", "six42\n", "")
    assert (two.output, three.output) == ("7\n", "")
    assert one.seconds > 0


def test_a_failure_shows_the_programs_own_lines_and_leaves_what_was_defined(run):
    one, two = run("def f(n):\n    return 1 / n\nprint(f(2))\nf(0)", "f(4)")
    assert one.status == "error"
    assert one.error == "ZeroDivisionError: division by zero"
    shown = [line.strip() for line in one.output.splitlines() if not line.strip().startswith("~")]
    assert [line for line in shown if "^" not in line] == [
        *("0.5", "Traceback (most recent call last):", 'File "<program 1>", line 4, in <module>', "f(0)"),
        *('File "<program 1>", line 2, in f', "return 1 / n", "ZeroDivisionError: division by zero"),
    ]
    assert two.output == "0.25\n"


@pytest.mark.slow
def test_the_libraries_are_there(run):
    [ran] = run(
        "import networkx, numpy, scipy.optimize, sympy\n"
        "x = sympy.symbols('x')\n"
        "print(sympy.factor(x**2 - 1), numpy.arange(4).sum())\n"
        "print(round(scipy.optimize.brentq(lambda t: t * t - 2, 0, 2), 6))\n"
        "networkx.shortest_path(networkx.path_graph(3), 0, 2)"
    )
    assert ran.output == "(x - 1)*(x + 1) 6\n1.414214\n[0, 1, 2]\n"


def test_a_session_that_died_begins_anew_and_empty(run):
    one, two, three = run("x = 1", "import os\nos._exit(3)", "x")
    assert (one.status, two.status) == ("ok", "died")
    assert two.output == "the process ended with exit code 3\n" + GONE
    assert (three.status, three.error) == ("error", "NameError: name 'x' is not defined")


def test_a_program_without_an_end_is_ended(open_box, run):
    box = open_box(seconds=0.3)
    one, two = run("print('begun')\nwhile True: pass", "1 + 1", box=box)
    assert one.status == "timeout"
    assert (one.output, two.output) == (f"begun\nTimeoutError: took longer than 0.3 seconds\n{GONE}", "2\n")


@pytest.mark.parametrize(
    ("program", "status", "error"),
    [
        *(("raise SystemExit", "ok", ""), ("import sys; sys.exit(0)", "ok", "")),
        ("import sys; sys.exit('no')", "error", "SystemExit: no"),
        ("1 +", "error", "SyntaxError: invalid syntax"),
        ("x = bytearray(2**40)", "memory", "MemoryError"),
        ("import os; os.kill(os.getpid(), 11)", "died", "the process was ended by signal 11"),
        *(("input()", "error", "EOFError: EOF when reading a line"), ("", "ok", "")),
        (r"raise ValueError('\ud800')", "error", r"ValueError: \ud800"),
        (r"""import os; os.write(3, b'{"status": "error", "error": "\\ud800"}\n')""", "error", r"\ud800"),
    ],
)
def test_how_a_program_ends(run, program, status, error):
    [ran] = run(program)
    assert (ran.status, ran.error) == (status, error)


SHARED = """
import os, time
x = bytes(50 << 20).replace(b"\\0", b"x")
for _ in range(8):
    if os.fork() == 0:
        time.sleep(0.2); os._exit(0)
time.sleep(0.2)
"""
FIRST_THREAD_ENDED = """
import ctypes, os, threading, time
def go():
    while True:
        os.write(1, b"alive"); time.sleep(0.01)
if os.fork() == 0:
    threading.Thread(target=go).start()
    ctypes.CDLL(None).pthread_exit(None)
time.sleep(0.2)
"""
GO_ON = """
import contextlib, os, signal, time
with contextlib.suppress(ProcessLookupError):
    os.kill(-1, signal.SIGCONT)
time.sleep(0.1)
"""


def test_memory_that_processes_share_counts_once(run):
    assert [ran.status for ran in run(SHARED)] == ["ok"]


def test_a_process_ends_with_its_program_though_its_first_thread_has_before(run):
    first, second = run(FIRST_THREAD_ENDED, GO_ON)
    assert (first.status, first.output[:5]) == ("ok", "alive")
    assert (second.status, second.output) == ("ok", "")


@pytest.mark.slow
def test_every_session_draws_the_same_numbers(run):
    program = "import random, numpy\nrandom.random(), float(numpy.random.random()), hash('a')"
    [one], [two] = run(program), run(program)
    assert one.output == two.output


def test_many_sessions_at_once_do_not_meet_nor_wait_for_one_that_sleeps(open_box):
    box = open_box(seconds=100.0)

    async def one(number):
        async with box.session() as session:
            await session.run(f"x = {number}")
            return (await session.run("x * x")).output

    async def asleep():
        async with box.session() as session:
            await session.run("import time; time.sleep(100)")

    async def all_of_them():
        sleeper = asyncio.create_task(asleep())
        outputs = await asyncio.gather(*(one(number) for number in range(12)))
        assert not sleeper.done()
        sleeper.cancel()
        return outputs

    assert asyncio.run(all_of_them()) == [f"{number**2}\n" for number in range(12)]
