"""How large the code is, how long functions are, what imports cost, how many files two ways through it use.

.venv/bin/python benchmarks/structure.py --json structure.json
"""

from __future__ import annotations

import ast
import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from types import FrameType

from report import Figure, parser, report

HOME = Path(__file__).resolve().parents[1]
PACKAGES = ("debate", "envs", "rewards", "transcripts", "learner", "debate_rl")
SMALL = 60
REPEATS = 5
RECIPE = """\
[env]
kind = "pair_sum"
limit = 20
[held_out]
every = 0
[debate]
num_rounds = 2
max_tokens = 24
prompts = "tiny"
[model]
device = "cpu"
chat = true
[model.tiny]
hidden_size = 16
layers = 1
heads = 2
intermediate_size = 24
context_tokens = 512
fallback = "bytes"
[logging]
progress = "none"
[train]
steps = 2
batch_size = 2
group_size = 2
"""


def main() -> None:
    args = parser("Lines, functions, imports and files in use.").parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        in_use = [*weights_files(), page_files()]
    figures = [*sizes(), *functions(), *surface(), *imports(), *in_use]
    report("the six packages; imports: range in low and high", figures, args.json)


def sizes() -> Iterator[Figure]:
    """Yield lines and files of each package, then of all, and how many files are small."""
    lines = {name: [len(_text(file).splitlines()) for file in _files(name)] for name in PACKAGES}
    for name, counts in lines.items():
        yield Figure(f"{name}/lines", sum(counts), "lines", len(counts))
    every = [count for counts in lines.values() for count in counts]
    yield Figure("lines", sum(every), "lines", len(every))
    yield Figure(f"files_under_{SMALL}_lines", sum(count < SMALL for count in every), "files", len(every))


def surface() -> Iterator[Figure]:
    """Yield the number of keys, commands and words of documentation, and the lines outside the packages."""
    from debate_rl.commands.main import COMMANDS
    from debate_rl.config import Config
    from debate_rl.config.keys import listed_keys

    yield Figure("keys", len(listed_keys(Config)), "keys", 1)
    yield Figure("commands", len({name.split()[0] for name in COMMANDS}), "commands", 1)
    pages = sorted((HOME / "docs").glob("*.md"))
    yield Figure("docs/words", sum(len(_text(page).split()) for page in pages), "words", len(pages))
    for name in ("tests", "experiments", "benchmarks"):
        files = _files(name)
        yield Figure(
            f"{name}/lines", sum(len(_text(file).splitlines()) for file in files), "lines", len(files)
        )


def functions() -> Iterator[Figure]:
    """Yield how long functions are, without their docstrings."""
    trees = [ast.parse(_text(file)) for name in PACKAGES for file in _files(name)]
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    lengths = sorted(_length(node) for tree in trees for node in ast.walk(tree) if isinstance(node, kinds))
    count = len(lengths)
    yield Figure("function/median", median(lengths), "lines", count)
    yield Figure("function/90th_percentile", lengths[int(0.9 * count)], "lines", count)
    yield Figure("function/longest", lengths[-1], "lines", count)


def _length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = function.body[0]
    words = ast.get_docstring(function, clean=False) is not None
    docstring = (first.end_lineno or 0) - first.lineno + 1 if words else 0
    return (function.end_lineno or 0) - function.lineno + 1 - docstring


def imports() -> Iterator[Figure]:
    """Yield the seconds that a fresh interpreter spends on importing each package."""
    code = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
    for name in (*PACKAGES[:-1], "debate_rl.commands.main"):
        call = [sys.executable, "-c", code.format(name)]
        path = {**os.environ, "PYTHONPATH": str(HOME)}
        took = [float(subprocess.check_output(call, env=path, text=True)) for _ in range(REPEATS)]
        yield Figure(f"{name}/import_s", median(took), "s", REPEATS, min(took), max(took))


def weights_files() -> Iterator[Figure]:
    """Yield how many files run between a problem and new weights, in the second step of a tiny run, and how
    many files such a run has loaded.
    """
    from debate_rl.config import Config
    from debate_rl.config.recipes import load_config
    from debate_rl.training.loop import train_step
    from debate_rl.training.open_or_resume import open_training

    Path("tiny.toml").write_text(RECIPE, encoding="utf-8")
    with open_training(load_config(Config, "tiny.toml", ["run.dir=run"])) as session:
        train_step(session, 0)
        files = files_run(lambda: train_step(session, 1))
    yield Figure("problem_to_weights", len(files), "files", 1)
    folders = tuple(f"{HOME / name}{os.sep}" for name in PACKAGES)
    origins = {getattr(module, "__file__", None) or "" for module in list(sys.modules.values())}
    yield Figure("step/files_loaded", sum(name.startswith(folders) for name in origins), "files", 1)


def page_files() -> Figure:
    """Return how many files run between a vote's text and its page in the browser's application.

    The vote is parsed, rewarded and written as a record; then the graph of its debate is asked for.
    """
    from debate import DebateConfig, Problem, parse_turn, run_debates
    from debate.policies import Answers, scripted_debaters
    from rewards import RewardConfig, score_debate
    from transcripts import Record, write_step

    policy = scripted_debaters({"sum": Answers("4", ("5",))}, solve=(1.0, 0.0, 0.0), judge=1.0)
    problem = Problem("sum", "What is 2 + 2?", answer="4", kind="number")
    [debate] = run_debates([problem], policy, DebateConfig(num_rounds=1), seed=0)
    ballots = [turn for turn in debate.turns if turn.id.round == 1]
    handles = [turn.handle for turn in ballots]

    def write() -> None:
        parse_turn(ballots[0].completion.text, handles=handles, own=handles[0], due=True)
        grades = ((True,), (False,), (False,))
        rewards = score_debate(debate, grades, RewardConfig())
        write_step(Path("votes/transcripts"), 0, [Record(debate, 0, "sum", grades, rewards)], seal=True)

    files = {*files_run(write), *files_run(_page_of(Path("votes")))}
    return Figure("vote_to_page", len(files), "files", 1)


def _page_of(run: Path) -> Callable[[], None]:
    from starlette.testclient import TestClient

    from debate_rl.inspector.web.app import AccessPolicy, make_app
    from debate_rl.inspector.web.site import Site

    def page() -> None:
        site = Site(run)
        client = TestClient(make_app(site, AccessPolicy.of("127.0.0.1")), base_url="http://127.0.0.1")
        client.get(f"/run/{site.runs()[0].name}/debate/0.0/graph").raise_for_status()

    return page


def files_run(work: Callable[[], object]) -> Sequence[str]:
    """Return the product files of which a function was called, in any thread."""
    seen: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            seen.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    folders = tuple(f"{HOME / name}{os.sep}" for name in PACKAGES)
    return sorted(name for name in seen if name.startswith(folders))


def _files(package: str) -> list[Path]:
    return sorted((HOME / package).rglob("*.py"))


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


if __name__ == "__main__":
    main()
