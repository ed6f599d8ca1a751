"""A recipe that trains in a second, and the command line called in this process."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache, reduce
from pathlib import Path
from typing import Any

import pytest
import tomli_w

HOME = Path(__file__).parents[2]
BENCH = HOME / ".venv-bench"

UNCOMPARED = {"format": {"baseline": "none", "scale": "none"}}
"""No reply of a model without training has its votes: against each other they teach nothing."""
TINY: dict[str, Any] = {
    "env": {"kind": "pair_sum", "levels": [1], "limit": 20},
    "held_out": {"limit": 2, "every": 0},
    "debate": {
        "num_agents": 3,
        "num_rounds": 2,
        "max_tokens": 24,
        "prompts": "tiny",
        "handles": ["K7", "Q2", "M4"],
    },
    "rewards": {"truth_weight": 0.5},
    "advantages": UNCOMPARED,
    "model": {
        "device": "cpu",
        "chat": True,
        "tiny": {
            **{"hidden_size": 16, "layers": 1, "heads": 2, "intermediate_size": 24},
            **{"context_tokens": 512, "fallback": "bytes"},
        },
    },
    "learner": {"warmup_steps": 1},
    "train": {"steps": 2, "batch_size": 2, "group_size": 2, "save_every": 1},
}
BY_VLLM: dict[str, Any] = {
    "env": {"kind": "pair_sum", "levels": [1], "limit": 40},
    "held_out": {"every": 0},
    "debate": {"num_rounds": 2, "max_tokens": 24, "prompts": "tiny"},
    "advantages": UNCOMPARED,
    "model": {"policy": "vllm", "device": "cpu", "vllm": {"enforce_eager": True}},
    "learner": {"lr": 1e-2, "warmup_steps": 0},
    "train": {"batch_size": 4, "group_size": 4, "save_every": 1},
    "logging": {"progress": "none"},
}
"""A recipe that samples by vLLM on a CPU, but for its model: ``WHOLE``, or an adapter."""
WHOLE = {"tiny": {"context_tokens": 512, "pieces": [" 1", "."]}}
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(HOME)}
"""What another process of this Python has in its environment."""
ON_A_CPU = {
    "PATH": "/usr/bin:/bin",
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": str(HOME),
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "TORCH_COMPILE_DISABLE": "1",
    "HF_HUB_OFFLINE": "1",
}
"""What vLLM wants in its environment."""


class BenchPython:
    """The interpreter that has vLLM."""

    def start(self, *words: object, cwd: Path, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [BENCH / "bin/python", *map(str, words)],
            cwd=cwd,
            env=ON_A_CPU | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *words: object, cwd: Path, timeout_s: float = 500) -> subprocess.CompletedProcess[str]:
        with self.start(*words, cwd=cwd) as process:
            try:
                out, err = process.communicate(timeout=timeout_s)
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def debate(self, *words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
        return self.run("-m", "debate_rl.commands.main", *words, cwd=cwd)


def python(*words: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run this Python in another process, and return its exit code and output."""
    return subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=cwd,
        env=ENVIRONMENT | environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def start(*words: object, cwd: Path, **environment: str) -> subprocess.Popen[str]:
    """Start this Python in another process, which is killed by whoever wants it."""
    return subprocess.Popen(
        [sys.executable, *map(str, words)],
        cwd=cwd,
        env=ENVIRONMENT | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def write_recipe(path: Path, *tables: dict[str, Any]) -> Path:
    """Write a recipe of these tables, later ones over earlier ones."""
    path.write_text(tomli_w.dumps(reduce(merged, tables)))
    return path


def steps_of(run: Path) -> list[dict[str, float]]:
    """Return the figures of a run's finished steps."""
    path = run / "metrics.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def wait_until(true: Callable[[], bool], process: subprocess.Popen[str] | None = None) -> None:
    """Wait, however slow the machine is, until something is true; it is an error if a process ends first."""
    while not true():
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.02)


def children(pid: int, words: str) -> list[int]:
    """Return the processes that one has started with these words in their command, the first one first."""
    command = ["ps", "-wweo", "pid,ppid,args"]  # -ww: whole lines, whatever COLUMNS says
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [line.split(None, 2) for line in listed[1:]]
    return sorted(int(own) for own, parent, said in rows if int(parent) == pid and words in said)


def running(pids: Iterable[int]) -> list[int]:
    """Return those of these processes that still run."""
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def records(folder: Path) -> dict[str, Any]:
    """Return the records of a run's debates by their names, tokens included."""
    from transcripts import RunStore

    with RunStore.open(folder) as store:
        return dict(store.records(tokens=True))


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return a table with changes, tables within it included."""
    both = {key: base[key] for key in base.keys() & changes.keys() if isinstance(base[key], dict)}
    return base | changes | {key: merged(both[key], changes[key] or {}) for key in both}


def weights_of(session: Any) -> dict[str, Any]:
    """Return a copy of a session's weights."""
    return {name: value.clone() for name, value in session.model.state_dict().items()}


def same_weights(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether two tables of tensors are equal to the bit."""
    return one.keys() == other.keys() and all(one[name].equal(other[name]) for name in one)


def untimed(run: Path) -> list[dict[str, Any]]:
    """Return the metrics of a run but for its times."""
    from debate_rl.metrics.step_log import read_metrics

    timed = ("seconds/", "tokens_per_second", "time")
    rows = read_metrics(run / "metrics.jsonl")
    return [{name: value for name, value in row.items() if not name.startswith(timed)} for row in rows]


def left_by(run: Path) -> dict[str, Any]:
    """Return what a run leaves: final weights and state, metrics but for their times, every debate."""
    from debate_rl.runs.checkpoint import checkpoints

    newest = checkpoints(run / "checkpoints")[-1]
    [weights] = (newest / "model").glob("*.safetensors")
    logs = {path.name: path.read_bytes() for path in run.glob("*.jsonl") if "superseded" not in path.name}
    state = json.loads((newest / "state.json").read_text())
    return {"state": state, "weights": weights.read_bytes(), "debates": records(run), **logs} | {
        "metrics.jsonl": untimed(run)
    }


def train_killed(config: Any, last: int) -> None:
    """Train as a process does that is killed in step ``last``, with its debates written and nothing after."""
    from debate_rl.training import loop

    def step(session: Any, at: int, *rest: Any) -> dict[str, float]:
        figures = loop.train_step(session, at, *rest)
        if at == last:
            raise KeyboardInterrupt  # not by a signal: nothing is saved
        return figures

    killed = dataclasses.replace(loop.DEBATES, step=step)
    with pytest.raises(KeyboardInterrupt), loop.open_training(config) as session:
        loop.train_steps(session, killed)


def votes_for(handles: Sequence[str], *words: str) -> list[str]:
    """Return a judge's replies to each ordered pair of handles: each word as evaluation, and the vote."""
    return [
        f"{f'<evaluation>{word}</evaluation>' if word else ''}<comparison>{a} > {b}</comparison>"
        for word in words
        for a in handles
        for b in handles
        if a != b
    ]


def model_that_says(pieces: Sequence[str]) -> dict[str, Any]:
    """Return the table of a random model so small that these pieces are most of what it says."""
    tiny = {"hidden_size": 16, "layers": 1, "heads": 2, "intermediate_size": 24}
    words = {"context_tokens": 512, "fallback": "none", "pieces": [*pieces]}
    return {"device": "cpu", "chat": True, "tiny": {**tiny, "init_std": 0.3, **words}}


@pytest.fixture(scope="session")
def bench_python() -> BenchPython:
    """Return what runs programs where vLLM is; without it the test is skipped."""
    if not list(BENCH.glob("lib/python*/site-packages/vllm")):
        pytest.skip("no vLLM in .venv-bench; make bench")
    return BenchPython()


@pytest.fixture(scope="module")  # as long as it is open, no other test can run an event loop
def browser():
    """Return a Chromium; without it or playwright the test is skipped."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("no Chromium on the PATH")
    with api.sync_playwright() as playwright:
        words = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        chromium = playwright.chromium.launch(executable_path=found, args=words)
        yield chromium
        chromium.close()


@pytest.fixture
def base_model(tmp_path, make_tiny) -> Path:
    """Return the folder of a tiny model and its tokenizer, "base" in the test's own folder."""
    for one in make_tiny(hidden_size=64, heads=2, pieces=(" 1", ".")):
        one.save_pretrained(tmp_path / "base")
    return tmp_path / "base"


@pytest.fixture(scope="session")
def tiny_recipe(tmp_path_factory) -> str:
    """The path of the recipe; its run folder is runs/debate in the working directory."""
    return str(write_recipe(tmp_path_factory.mktemp("recipe") / "tiny.toml", TINY))


@pytest.fixture(scope="session")
def made_runs(tmp_path_factory):
    """Return run(name) -> (folder, configuration) of the finished run of ``protocol_runs.RUNS``."""
    from debate_rl.config import Config
    from debate_rl.training.loop import train

    from .protocol_runs import COMMON, RUNS

    home = tmp_path_factory.mktemp("protocols")

    @cache
    def run(name):
        own = {"run": {"dir": str(home / name)}}
        config = Config.model_validate(merged(merged(COMMON, RUNS[name]), own))
        train(config)
        return home / name, config

    return run


@pytest.fixture
def protocol_run(made_runs, monkeypatch):
    """Return the same, where the models of endpoints, which are code, may be loaded."""
    monkeypatch.setenv("DEBATE_OWN_CODE", "1")
    return made_runs


@pytest.fixture(scope="session")
def tiny_run(tiny_recipe, tmp_path_factory) -> Path:
    """A run of two steps of four debates; peer rewards have running means, and no reply has its votes."""
    from debate_rl.config import Config
    from debate_rl.config.recipes import load_config
    from debate_rl.training.loop import train

    run = tmp_path_factory.mktemp("runs") / "run"
    quiet = ["logging.progress=none", 'advantages.peer.baseline="rae"']
    train(load_config(Config, tiny_recipe, [f"run.dir={run}", *quiet]))
    return run


@pytest.fixture(scope="module")
def folder(tiny_run, tmp_path_factory) -> Path:
    """A folder with a copy of that run, for one file of tests."""
    where = tmp_path_factory.mktemp("copies")
    shutil.copytree(tiny_run, where / "run", symlinks=True)
    return where
