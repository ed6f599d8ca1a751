"""How fast debates are found, read, shown and replayed, and what recording them costs.

.venv/bin/python benchmarks/transcript_store.py --make 100000 /tmp/debates   # minutes; about 1.4 GB of text
.venv/bin/python benchmarks/transcript_store.py /tmp/debates --quickstart runs/quickstart-pair_sum-0

Times are medians with the lowest and the highest in low and high; of several filters the slowest one's. The
memory is the peak of this process, building both indices and the replay included; ``recording_share`` is the
share of the steps' time that a quick-start's run spent on recording, ``replay_100k_s`` is for a change of
``rewards.truth_weight``, ``page_ms`` and ``page_kb`` are of ``inspector_pages.py``. ``read_vs_orjson`` is the
time of reading whole records over that of ``orjson.loads`` on their lines: 300 debates of 3 x 3 and a ballot.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import orjson
from inspector_pages import measured
from report import Figure, parser, report

from debate_rl.replay.scheme import Scheme, replay_run
from debate_rl.replay.summary import Summary, write_debates
from learner.advantages import AdvantageConfig
from rewards import RewardConfig
from transcripts import RunStore, read_records
from transcripts.codec import from_line, to_line

FILTERS = (
    "winner:wrong",
    "winner:wrong cycle:yes step:>200",
    "problem:gsm8k/17",
    'persona:"Devil\'s Advocate" malformed:>0',
    "malformed:>2",
    "flip:CW flip:WC -winner:right",
    "answer:42",
    "reward.peer:>0.5 OR judge.accuracy:none",
    "accuracy.last_round:1 winner:wrong",
    "source:MATH* level:5",
)
SEARCHES = (
    'text:"boxed"',
    r'text:"\boxed{42}"',
    r'text:"\sqrt{17}" winner:wrong',
    "text:bace",
    "text:diceba text:fo",
    "text:limba*",
    "text:nosuchword",
)
REPEATS, PAGES = 7, 15


def main() -> None:
    arguments = parser("How fast debates are found and read.")
    arguments.add_argument("folder", type=Path, help="a run folder, or where --make makes one")
    arguments.add_argument("--make", type=int, metavar="N", help="make a run of so many synthetic debates")
    arguments.add_argument("--quickstart", type=Path, metavar="RUN", help="a run of the quick-start")
    args = arguments.parse_args()
    if args.make is not None:
        from synthetic_run import make_run

        make_run(args.folder, args.make, tell=lambda step: print(f"step {step}", file=sys.stderr, flush=True))
        return
    found, pages = of_run(args.folder), measured(args.folder.resolve(), PAGES)[:2]
    figures = [*found, *pages, *of_codec(), *of_recording(args.quickstart)]
    report(f"transcripts: {args.folder}", figures, args.json)


def of_run(folder: Path) -> list[Figure]:
    """Return the figures of a run's store; both indices are built again first."""
    figures = building(folder)
    with RunStore.open(folder) as store:
        found = [of_times("open_ms", lambda: first_page(folder))]
        found.append(slowest("filter50_ms", FILTERS, store))
        found.append(slowest("fulltext_ms", SEARCHES, store))
        drawn = iter(some_ids(store, 200))
        found.append(of_times("one_debate_ms", lambda: store.debate(next(drawn)), 200))
        found.append(of_replay(store))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [*found, Figure("memory_mb", memory, "MiB", 1), *figures]


def some_ids(store: RunStore, count: int) -> list[str]:
    """Return ids of debates drawn from all of the run."""
    rng, [last] = random.Random(0), store.debates(newest=True, limit=1)
    steps = [rng.randrange(last.step + 1) for _ in range(count)]
    return [f"{step}.{rng.randrange(store.count(f'step:{step}'))}" for step in steps]


def of_replay(store: RunStore) -> Figure:
    """Return what a replay with another weight of truth takes for 100,000 debates, its file included."""
    own, other = (Scheme(RewardConfig(truth_weight=w), AdvantageConfig(), 4) for w in (0.5, 0.3))
    summary, started = Summary(), time.perf_counter()
    with TemporaryDirectory() as folder:
        write_debates(Path(folder), summary.counting(replay_run(store, own, other)))
    seconds = time.perf_counter() - started
    return Figure("replay_100k_s", 100_000 * seconds / summary.debates, "s", summary.debates)


def of_codec(debates: int = 300, words: int = 10) -> list[Figure]:
    """Return what a record takes to write and to read; ``words`` in a solution make lines of 12 kB."""
    from synthetic_run import make_run

    with TemporaryDirectory() as folder:
        make_run(Path(folder), debates, words=words, tell=lambda step: None)
        records = list(read_records(folder))
    lines = [to_line(record) for record in records]

    works = {
        "write_ms": (to_line, records),
        "read_ms": (from_line, lines),
        "orjson_ms": (orjson.loads, lines),
    }
    found = {name: _for_one(name, work, items) for name, (work, items) in works.items()}
    ratio = found["read_ms"].value / found["orjson_ms"].value
    return [*found.values(), Figure("read_vs_orjson", ratio, "times", debates)]


def _for_one(name: str, work: Callable[[Any], object], items: Sequence[Any]) -> Figure:
    """Return the median time of some work on one of the items, in milliseconds."""
    whole = of_times(name, lambda: [work(item) for item in items])
    return replace(whole, value=whole.value / len(items), n=len(items), low=None, high=None)


def first_page(folder: Path) -> None:
    """Open a run and read its first page."""
    with RunStore.open(folder) as store:
        store.debates(newest=True)


def building(folder: Path) -> list[Figure]:
    """Return how long both indices take from nothing, and their sizes."""
    with RunStore.open(folder, refresh=False) as store:
        home = store.folder
    names = ("index.sqlite", "fulltext.sqlite")
    for name in names:
        (home / name).unlink(missing_ok=True)
    started = time.perf_counter()
    with RunStore.open(folder) as store:
        built = time.perf_counter()
        store.index_text()
        searched = time.perf_counter()
        count = store.count()
    sizes = [Figure(f"{Path(n).stem}_mb", (home / n).stat().st_size / 2**20, "MiB", count) for n in names]
    kept = sum(path.stat().st_size for path in (folder / "transcripts").glob("step_*")) / 2**20
    return [
        Figure("index_rebuild_s", built - started, "s", count),
        Figure("fulltext_rebuild_s", searched - built, "s", count),
        Figure("shards_mb", kept, "MiB", count),
        *sizes,
    ]


def slowest(name: str, filters: Sequence[str], store: RunStore) -> Figure:
    """Return the figure of the filter whose first 50 take longest."""
    each = [of_times(name, lambda text=text: store.debates(text)) for text in filters]
    for text, figure in zip(filters, each, strict=True):
        print(f"{figure.value:8.2f} ms  {text}", file=sys.stderr)
    return max(each, key=lambda figure: figure.value)


def of_times(name: str, work: Callable[[], object], repeats: int = REPEATS) -> Figure:
    """Return the median time of some work, in milliseconds."""
    times: list[float] = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        times.append(1000 * (time.perf_counter() - started))
    return Figure(name, median(times), "ms", repeats, min(times), max(times))


def of_recording(run: Path | None) -> list[Figure]:
    """Return the share of its steps' time that a run spent on recording."""
    if run is None:
        return []
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    phases = ("rollout", "reward", "learn", "record")
    spent = {phase: sum(row[f"seconds/{phase}"] for row in rows) for phase in phases}
    return [Figure("recording_share", spent["record"] / sum(spent.values()), "share", len(rows))]


if __name__ == "__main__":
    main()
