"""How long the inspector's pages take in the server, and how large they are.

.venv/bin/python benchmarks/transcript_store.py --make 100000 /tmp/debates
.venv/bin/python benchmarks/inspector_pages.py --run /tmp/debates

``page_ms`` is the worst of the kinds' medians, as the Server-Timing header has them, ``page_kb`` the largest
page met. Every repeat asks for another debate, another step, or another page of the list. Without ``--run``,
pages of a small run that is made for it.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from urllib.parse import quote

from report import Figure, parser, report
from starlette.testclient import TestClient
from synthetic_run import make_run

from debate_rl.inspector.web import warm
from debate_rl.inspector.web.app import AccessPolicy, make_app
from debate_rl.inspector.web.site import Site
from transcripts import RunStore

SMALL = 2_000
FILTERS = ("winner:wrong", "winner:wrong cycle:yes step:>1", "flip:CW flip:WC -winner:right", "malformed:>2")
Draw = Callable[[], str]


def main() -> None:
    arguments = parser("How long the inspector's pages take.")
    arguments.add_argument("--run", type=Path, default=None, metavar="FOLDER", help="an existing run")
    arguments.add_argument("--repeats", type=int, default=15, help="pages of each kind")
    args = arguments.parse_args()
    with TemporaryDirectory() as passing:
        folder = args.run or Path(passing) / "run"
        if args.run is None:
            make_run(folder, SMALL, tell=lambda step: None)
        figures = measured(folder, args.repeats)
    report(f"pages of {folder.name}", figures, args.json)


def measured(folder: Path, repeats: int) -> list[Figure]:
    """Return the figures of each kind of page, and the worst of them."""
    warm()
    site = Site(folder)
    client = TestClient(make_app(site, AccessPolicy.of("127.0.0.1")), base_url="http://127.0.0.1")
    try:
        while client.get(f"/run/{quote(folder.name, safe='')}/").status_code == 202:
            pass
        kinds = _kinds(folder, random.Random(0))
        found = [_of_kind(client, kind, draw, repeats) for kind, draw in kinds.items()]
    finally:
        site.close()
    times, sizes = [time for time, _ in found], [size for _, size in found]
    debates = int(sizes[0].n)
    worst = max(times, key=lambda figure: figure.value)
    largest = max(sizes, key=lambda figure: figure.value)
    return [
        Figure("page_ms", worst.value, "ms", worst.n, worst.low, worst.high),
        Figure("page_kb", largest.value, "kB", debates),
        *times,
        *sizes,
    ]


def _of_kind(client: TestClient, kind: str, draw: Draw, repeats: int) -> tuple[Figure, Figure]:
    times: list[float] = []
    largest = 0
    client.get(draw())
    for _ in range(repeats):
        path = draw()
        answer = client.get(path)
        if answer.status_code != 200:
            sys.exit(f"{path}: {answer.status_code}")
        times.append(float(re.findall(r"dur=([\d.]+)", answer.headers["server-timing"])[0]))
        largest = max(largest, len(answer.content))
    return (
        Figure(f"{kind}_ms", median(times), "ms", repeats, min(times), max(times)),
        Figure(f"{kind}_kb", largest / 1000, "kB", repeats),
    )


def _kinds(folder: Path, rng: random.Random) -> dict[str, Draw]:
    """Return for each kind of page what draws the address of one."""
    with RunStore.open(folder) as store:
        [last] = store.debates(newest=True, limit=1)
        sizes = {row.step or 0: row.debates for row in store.steps()}
        problems = [row.problem.id for row in store.debates(limit=500)]
    base = f"/run/{quote(folder.name, safe='')}"

    def some() -> str:
        step = rng.choice(list(sizes))
        return f"{step}.{rng.randrange(sizes[step])}"

    def filtered() -> str:
        return f"{base}/debates?filter={quote(rng.choice(FILTERS))}&newest={rng.randrange(2)}"

    def turn() -> str:
        return f"{rng.randrange(3)}.{rng.randrange(3)}"

    return {
        "list": lambda: f"{base}/debates?newest=1&after={last.step}.{rng.randrange(1, last.index + 1)}",
        "filtered": filtered,
        "steps": lambda: f"{base}/",
        "group": lambda: f"{base}/group?step={rng.choice(list(sizes))}",
        "debate": lambda: f"{base}/debate/{some()}?filter={quote(FILTERS[0])}",
        "graph": lambda: f"{base}/debate/{some()}/graph",
        "why": lambda: f"{base}/debate/{some()}/why?turn={turn()}",
        "tokens": lambda: f"{base}/debate/{some()}/tokens?turn={turn()}",
        "adoption": lambda: f"{base}/debate/{some()}/adoption",
        "parse": lambda: f"{base}/debate/{some()}/parse",
        "across": lambda: f"{base}/across?problem={quote(rng.choice(problems), safe='')}",
    }


if __name__ == "__main__":
    main()
