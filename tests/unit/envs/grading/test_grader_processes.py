"""The processes behind the grader: hangs are killed, memory is bounded, and nobody is left behind."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from envs import Grader
from envs.grading.processes import Pool

ROOT = Path(__file__).parents[4]
HANG = ("(a+b+c+d+e)^{40} < 1", "(a+b+c+d+2e)^{40} < 1")
SYMBOLIC = (r"2\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}2\\4\end{pmatrix}")  # beyond the rules


@pytest.fixture(scope="module")
def grader():
    with Grader(workers=2, limit_s=1.5) as grader:
        grader.warm()
        yield grader


@pytest.mark.usefixtures("ends")
def test_a_hang_is_killed_and_not_called_wrong(grader):
    verdict = grader.same_answer(*HANG)
    assert verdict.status == "timeout"
    assert grader.same_answer(*SYMBOLIC).status == "correct"  # by the process that replaces it


@pytest.mark.slow
def test_memory_is_bounded():
    pool = Pool(size=1, limit_s=2.0, memory_mb=512)
    reply = pool.ask([("5", "7^{9999999999}")])
    assert reply.status in ("crash", "timeout", "different")
    assert pool.ask([("4", r"\sqrt{16}")]).status == "equal"
    pool.close()


def test_results_are_cached(grader):
    first = grader.same_answer("3 > x", "x < 3")
    again = grader.same_answer("3 > x", "x < 3")
    assert (first.status, again.status) == ("correct", "correct")
    assert again.seconds < 0.005


def test_threads_and_asyncio(grader):
    pairs = [(f"{n} > x", f"x < {n}") for n in range(2, 14)]
    with ThreadPoolExecutor(6) as threads:
        assert all(g.status == "correct" for g in threads.map(lambda pair: grader.same_answer(*pair), pairs))

    async def many():
        asked = (asyncio.to_thread(grader.same_answer, f"{n} > x", "x < 3") for n in (1, 2, 3))
        return await asyncio.gather(*asked)

    assert [g.status for g in asyncio.run(many())] == ["wrong", "wrong", "correct"]


@pytest.mark.slow
def test_a_worker_that_is_killed_from_outside_is_a_crash_and_is_replaced(grader):
    with Grader(workers=1) as own:
        own.warm()
        os.kill(own._pool._idle[0]._process.pid, signal.SIGKILL)
        assert own.same_answer(*SYMBOLIC).status == "crash"
        assert own.same_answer(*SYMBOLIC).status == "correct"


SCRIPT = """
from envs import same_answer
print(same_answer("2 > x", "x < 2").status, flush=True)
"""


def run_python(*args: str) -> subprocess.Popen[str]:
    pipes, env = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}, os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, *args], text=True, env=env, **pipes)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["script", "stdin", "thread"])
def test_works_without_a_main_guard(how, tmp_path):
    script = tmp_path / "script.py"
    body = SCRIPT
    if how == "thread":
        run = "t = threading.Thread(target=exec, args=(code, {}))\nt.start()\nt.join()\n"
        body = f"import threading\ncode = {SCRIPT!r}\n{run}"
    script.write_text(body)
    with run_python("-" if how == "stdin" else str(script)) as process:
        out, _ = process.communicate(body if how == "stdin" else None, timeout=60)
    assert (out.strip(), process.returncode) == ("correct", 0)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_process_outlives_a_killed_parent(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import threading, time\nfrom envs import Grader\n"
        "grader = Grader(workers=1, limit_s=60)\ngrader.warm()\n"
        f"threading.Thread(target=grader.same_answer, args={HANG!r}, daemon=True).start()\n"
        "time.sleep(0.3)\nprint(grader, flush=True)\ntime.sleep(60)\n"
    )
    with run_python(str(script)) as process:
        assert process.stdout is not None
        process.stdout.readline()
        family = descendants(process.pid)
        assert len(family) == 2  # the guard and its child, in the middle of a hang
        process.kill()
    deadline = time.monotonic() + 60
    while any(alive(pid) for pid in family) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(alive(pid) for pid in family)


def descendants(pid: int) -> list[int]:
    children = [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return children + [d for child in children for d in descendants(child)]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
