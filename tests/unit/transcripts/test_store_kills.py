"""A writer killed at every point and at drawn times: what it acknowledged is there, readers never fail."""

import os
import signal
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from transcripts import RunStore, ShardWriter, read_records
from transcripts.files import shard_paths
from transcripts.store import seal_before, seal_shard

STEPS, RECORDS, KILLS = 2, 4, 60
POINTS = ("write", "fsync", "ftruncate", "pwrite", "replace", "unlink")


def go_on(run: Path, make: Callable, acknowledge: Callable[[str], None]) -> None:
    """Write what is missing of the steps, as a run or an evaluation that was cut off does, and seal them."""
    for step in range(STEPS):
        path = run / "transcripts" / f"step_{step:06d}.jsonl"
        seal_before(run / "transcripts", step)
        if path.with_name(f"{path.name}.zst").exists():
            continue
        have = len(list(read_records(path, on_torn=lambda _: None))) if path.exists() else 0
        with ShardWriter(run / "transcripts", step) as writer:
            for place, record in enumerate(make(step)[:RECORDS]):
                if place >= have:
                    writer.write(record)
                    acknowledge(f"{step}.{place}")
        seal_shard(path)
    seal_before(run / "transcripts", STEPS)


def forked(work: Callable[[Callable[[str], None]], None]) -> tuple[int, int]:
    """Do some work in its own process; return its number and where it acknowledges."""
    out, into = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        os.close(into)
        return child, out
    code = 1
    try:
        os.close(out)
        tell = os.write  # before it is armed

        def acknowledge(id: str) -> None:
            tell(into, f"{id}\n".encode())

        work(acknowledge)
        code = 0
    finally:
        os._exit(code)


def ended(child: int, out: int) -> tuple[list[str], int]:
    """Return what a process acknowledged, and how it ended."""
    _, status = os.waitpid(child, 0)
    with os.fdopen(out) as pipe:
        return pipe.read().split(), os.waitstatus_to_exitcode(status)


def arm(point: str, nth: int, how: str) -> None:
    """Kill this process at the nth call of a function of ``os``: before it, after it, or half-way."""
    real, left = getattr(os, point), [nth]

    def call(*arguments, **named):
        left[0] -= 1
        if left[0] == 0 and how == "after":
            real(*arguments, **named)
        if left[0] == 0 and how == "half" and point == "write":
            real(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **named)

    setattr(os, point, call)


def check(run: Path, make: Callable, acknowledged: set[str], story: object) -> None:
    """Check that all that was acknowledged is there as it was written, and that the store reads it."""
    torn: list[str] = []
    found = list(read_records(run, on_torn=torn.append)) if (run / "transcripts").exists() else []
    places: dict[int, int] = {}
    for record in found:
        place = places[record.step] = places.get(record.step, -1) + 1
        assert record == make(record.step)[place], story
    assert acknowledged <= {f"{step}.{n}" for step, last in places.items() for n in range(last + 1)}, story
    assert len(torn) <= 1, story
    if found:
        with RunStore.open(run) as store:
            assert (store.count(), store.damage) == (len(found), []), story


@pytest.mark.slow
def test_a_writer_killed_at_any_point_loses_nothing(tmp_path, step_records):
    for step in range(STEPS):
        step_records(step)  # made once, before anything forks
    kills, acknowledged = 0, set()
    for point in POINTS:
        for how in ("before", "half", "after") if point == "write" else ("before", "after"):
            nth = 0
            while True:
                nth += 1 if point != "write" else 1 + nth // 4
                run = tmp_path / f"{point}-{how}-{nth}"

                def work(acknowledge, run=run, point=point, nth=nth, how=how):
                    arm(point, nth, how)
                    go_on(run, step_records, acknowledge)

                told, code = ended(*forked(work))
                check(run, step_records, set(told), (point, how, nth))
                if code == 0:
                    break
                kills += 1
                assert code == -signal.SIGKILL
                acknowledged = set(told)
                told, code = ended(*forked(partial(go_on, run, step_records)))
                assert code == 0, (point, how, nth)
                check(run, step_records, acknowledged | set(told), (point, how, nth))
                assert [p.suffix for p in shard_paths(run)] == [".zst"] * STEPS
                assert not list((run / "transcripts").rglob(".*")), (point, how, nth)
                assert len(list(read_records(run))) == STEPS * RECORDS
    assert kills >= 50, kills
