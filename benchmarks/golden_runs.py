"""Runs whose every number must survive a change of the code: to compare two versions of it.

Each case trains a tiny model and leaves what a run produced as plain text in ``--out``: metrics without
times, figures of evaluations, debates with tokens, log-probabilities, rewards and advantages, and a digest of
every tensor of every checkpoint. Run the script of each version on the same machine, then compare:

    .venv/bin/python OLD/benchmarks/golden_runs.py --tree OLD --out golden/old
    .venv/bin/python NEW/benchmarks/golden_runs.py --tree NEW --out golden/new
    diff -r golden/old golden/new && echo equal

``--tree`` is a checkout; its packages are imported in place of the installed ones. ``killed`` is the case
``quickstart``, ended by kill -9 in its second step and resumed: their folders are equal too. Seven minutes on
one core.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

HOME = Path(__file__).resolve().parents[1]
TIMED = re.compile(
    r"^(seconds/.*|tokens_per_second|time|timing|ended|cpu_seconds|wall_seconds|seconds|wall_.*)$"
)
SHORT = ("warm_start.solve_steps=60", "warm_start.debate_steps=120", "held_out.limit=20", "train.steps=3")
QUICKSTART = ("train", "quickstart", *SHORT, "held_out.every=2", "train.save_every=1")
Command = Sequence[str]


def cases(recipes: Path) -> dict[str, list[Command]]:
    """Return the commands of each case, which run in a folder of its own."""
    small = ("held_out.limit=20",)
    return {
        "quickstart": [QUICKSTART],
        "critique": [("train", "seeds/critique_tiny", *SHORT, "train.batch_size=4")],
        "zero_sum": [("train", "zero_sum_tiny", *SHORT, "train.batch_size=6")],
        "rlvr": [
            ("train", "rlvr/tiny", *SHORT[1:3], "train.steps=4", "train.save_every=2", "held_out.every=2"),
        ],
        "sft": [
            ("traces", "../rlvr/run", "env.limit=80", "--samples", "4", "--out", "traces.jsonl"),
            ("train", "sft/tiny", "sft.data=['traces.jsonl']", "sft.epochs=2", "sft.held_back=2", *small),
        ],
        "curriculum": [("train", str(shortened(recipes, "curriculum/tiny", 2)), *small)],
        "aimo3": [("train", str(shortened(recipes, "aimo3/tiny", 3)), *small, "train.batch_size=2")],
        "ranks": [("torchrun", *QUICKSTART)],
        "killed": [("kill", *QUICKSTART), QUICKSTART],
    }


def shortened(recipes: Path, name: str, steps: int) -> Path:
    """Write a recipe of stages whose stages and warm start have a few steps, and return its file."""
    text = (HOME / "configs" / f"{name}.toml").read_text(encoding="utf-8")
    text = re.sub(r"max_steps = \d+", f"max_steps = {steps}", text)
    text = re.sub(r"(solve_steps|debate_steps) = \d+", r"\1 = 20", text)
    path = recipes / f"{name.replace('/', '_')}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def main() -> None:
    """Run the cases that are asked for, and write what each produced."""
    parser = argparse.ArgumentParser(description="Runs whose numbers must survive a change.")
    parser.add_argument("--tree", type=Path, default=HOME, help="the checkout whose packages run")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="+", default=None, help="some cases")
    parser.add_argument("--digest", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.digest:
        write_results(args.digest, args.out)
        return
    args.out.mkdir(parents=True, exist_ok=True)
    out = args.out.resolve()
    environment = os.environ | {
        "PYTHONPATH": str(args.tree.resolve()),
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    for name, commands in cases(out / "work" / "recipes").items():
        if args.only and name not in args.only:
            continue
        folder, started = out / "work" / name, time.monotonic()
        for old in (folder, out / name):
            shutil.rmtree(old, ignore_errors=True)
        folder.mkdir(parents=True)
        for command in commands:
            run(command, folder, environment)
        me = [sys.executable, __file__, "--digest", str(folder / "run"), "--out", str(out / name)]
        subprocess.run(me, check=True, env=environment)
        print(f"{name}: {time.monotonic() - started:.0f} s", flush=True)


def run(command: Command, folder: Path, environment: dict[str, str]) -> None:
    """Run one command in ``folder``; "kill" ends it by SIGKILL once a checkpoint is there."""
    first, *rest = command
    launched = [sys.executable, "-m"]
    if first == "torchrun":
        launched += ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    elif first != "kill":
        rest = [*command]
    into = [] if rest[0] == "traces" else ["run.dir=run"]
    with (folder / "log").open("a", encoding="utf-8") as log:
        process = subprocess.Popen(
            [*launched, "debate_rl", *rest, *into],
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        if first == "kill":
            wait_for(folder / "run" / "checkpoints", process)
            process.send_signal(signal.SIGKILL)
        elif process.wait() != 0:
            raise SystemExit(f"{' '.join(rest)} failed; see {log.name}")
    process.wait()


def wait_for(folder: Path, process: subprocess.Popen[bytes]) -> None:
    """Return when the first checkpoint is whole and the next step has had a moment."""
    while not [*folder.glob("step_*/manifest.json")]:
        if process.poll() is not None:
            raise SystemExit(f"the run ended before {folder} had a checkpoint")
        time.sleep(0.02)
    time.sleep(0.3)


def write_results(run_folder: Path, out: Path) -> None:
    """Write what a run produced: a file for each of its files, comparable by ``diff``."""
    for kind, pattern, lines_of in (
        ("metrics", "**/metrics.jsonl", json_lines),
        ("figures", "**/figures.json", json_lines),
        ("pairs", "**/judge_pairs/*.jsonl", json_lines),
        ("tensors", "**/*.safetensors", tensor_lines),
    ):
        for path in sorted(run_folder.glob(pattern)):
            write(out / kind / path.relative_to(run_folder), lines_of(path))
    folders = {path.parent for path in run_folder.glob("**/step_*.jsonl.zst") if path.parent.name != "tokens"}
    for folder in sorted(folders):
        write(out / "debates" / folder.relative_to(run_folder), debate_lines(folder))


def write(path: Path, lines: Iterator[str]) -> None:
    path = path.with_name(path.name + ".txt")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def json_lines(path: Path) -> Iterator[str]:
    """Yield every value of a file of JSON, one to a line, without what differs from run to run."""
    text = path.read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines() if path.suffix == ".jsonl" else [text]):
        yield from flat(json.loads(line), str(number))


def flat(value: Any, name: str) -> Iterator[str]:
    """Yield a line for every value within a value; lists of numbers have one line."""
    value = value.tolist() if hasattr(value, "tolist") else value
    fields = getattr(value, "__struct_fields__", None) or getattr(value, "__dataclass_fields__", None)
    if fields is not None:
        value = {field: getattr(value, field) for field in fields}
    if isinstance(value, dict):
        for key in sorted(value, key=str):
            if not TIMED.match(str(key)):
                yield from flat(value[key], f"{name} {key}")
    elif isinstance(value, list | tuple) and not all(isinstance(one, int | float) for one in value):
        for number, one in enumerate(value):
            yield from flat(one, f"{name} {number}")
    else:
        yield f"{name} {value!r}"


def tensor_lines(path: Path) -> Iterator[str]:
    """Yield the name, type, shape and digest of every tensor of a file."""
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        for name in sorted(file.keys()):
            tensor = file.get_tensor(name).contiguous()
            digest = hashlib.sha256(tensor.numpy().tobytes()).hexdigest()[:16]
            yield f"{name} {tensor.dtype} {tuple(tensor.shape)} {digest}"


def debate_lines(folder: Path) -> Iterator[str]:
    """Yield every value of the debates of a folder, as the version's own reader has them."""
    from transcripts import read_records

    records = sorted(read_records(folder), key=lambda record: (record.step, record.group, record.debate.seed))
    for number, record in enumerate(records):
        yield from flat(record, str(number))


if __name__ == "__main__":
    main()
