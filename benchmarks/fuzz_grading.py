"""Ten minutes of coverage-guided fuzzing of the extractor and the exact path, and how their time grows.

Whatever raises stops the run with its input. Growth: pieces of answers, alone and in pairs, repeated to two
sizes; the exponent is log2 of the ratio of times when the text doubles, so 1 is linear (about four minutes).
Atheris is no dependency: install it beside the benchmarks.

    .venv-bench/bin/python -m pip install atheris
    .venv-bench/bin/python benchmarks/fuzz_grading.py --seconds 600 --json figures.json
"""

from __future__ import annotations

import itertools
import sys
import time
from importlib import import_module
from math import log2
from pathlib import Path
from subprocess import run
from tempfile import TemporaryDirectory
from typing import Any

from report import Figure, parser, report

from envs.answers.words import letter_of
from envs.grading.exact import exact, pairs_to_check
from envs.grading.extraction import extract
from envs.grading.limits import heavier
from envs.types import MODES

GOLDS = (
    "5",
    "x+1",
    r"\frac{1}{2}",
    r"\text{odd}",
    "(1,2)",
    "1,2,3",
    "50%",
    "12_5",
    r"\{1,2\}",
    "x < 3",
    "[0,1)",
)
PIECES = (
    *(
        r"\boxed{",
        "}",
        "{",
        "####",
        "answer is ",
        "The final answer is ",
        "I hope it is correct.",
        "<think>",
        "</think>",
    ),
    *(
        "5",
        " ",
        "-",
        "\n",
        "$",
        "$$",
        r"\(",
        r"\)",
        r"\frac{1}{2}",
        ",",
        "1,200",
        "%",
        r"\text{ cm}",
        "or ",
        "and ",
        "=",
    ),
    *(
        "x",
        "^",
        "\\",
        "|",
        ".",
        "/",
        "!",
        "(",
        ")",
        "[",
        "_",
        r"\pm",
        r"\sqrt",
        "&",
        r"\\",
        "~",
        "*",
        "°",
        "1 000 ",
        "A",
    ),
    *(
        r"\begin{pmatrix}",
        r"\end{pmatrix}",
        r"\overline{3}",
        "x=",
        "a, ",
        "Q: ",
        "\nQuestion:",
        "'",
        "th",
        "e",
        "\x00",
    ),
)
SMALL, LARGE = 20_000, 40_000
FLOOR_S = 0.005  # less than this at the larger size is noise


def main() -> None:
    """Print the growth, then fuzz."""
    args = parser("Fuzzing and growth of extraction and the exact path.")
    args.add_argument("--seconds", type=int, default=600)
    args.add_argument(
        "--in-process", action="store_true", help="fuzz here: what the script starts itself with"
    )
    options = args.parse_args()
    if options.in_process:
        fuzz(options.seconds)
        return
    figures = [growth(), fuzzed(options.seconds)] if options.seconds else [growth()]
    report("fuzzing of extraction and the exact path", figures, options.json)


def read_everything(text: str) -> None:
    """Run a text through all that touches model text in this process."""
    for mode in MODES:
        extract(text, mode=mode)
    extract(text, letters="ABCD")
    letter_of(text, ("1", "2", "A", "x"))
    for gold in GOLDS:
        exact(text, gold)
        pairs_to_check(text, gold)
        heavier(text, gold)


def growth() -> Figure:
    """Return the largest exponent over all pieces and pairs of pieces, and say which."""
    worst, which = 0.0, ""
    pairs = [*((piece,) for piece in PIECES), *itertools.product(PIECES, repeat=2)]
    for pair in pairs:
        small, large = (seconds("".join(pair), size) for size in (SMALL, LARGE))
        if large > FLOOR_S and small > 0 and log2(large / small) > worst:
            small, large = (min(seconds("".join(pair), size) for _ in range(3)) for size in (SMALL, LARGE))
            if (exponent := log2(large / small)) > worst:
                worst, which = exponent, f"{pair!r}, {large * 1000:.0f} ms for {LARGE} characters"
    print(f"steepest growth: {which}")
    return Figure("largest_growth_exponent", worst, "power", len(pairs))


def seconds(piece: str, size: int) -> float:
    text = piece * (size // len(piece))
    started = time.process_time()
    for mode in MODES:
        extract(text, mode=mode)
    letter_of(text)
    exact(text, "5")
    return time.process_time() - started


def fuzzed(seconds: int) -> Figure:
    """Return how many inputs were tried without an exception; raise on one."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--in-process", "--seconds", str(seconds)]
        done = run(command, cwd=folder, stderr=-1, text=True, check=False)
        crashes = [path.name for path in Path(folder).glob("crash-*")]
    lines = [line for line in done.stderr.splitlines() if line.startswith("Done ")]
    if done.returncode or crashes or not lines:
        raise SystemExit(done.stderr[-3000:])
    return Figure("fuzzed_inputs", int(lines[-1].split()[1]), "inputs", seconds)


def fuzz(seconds: int) -> None:
    atheris: Any = import_module("atheris")
    atheris.instrument_all()

    def one(data: bytes) -> None:
        provider = atheris.FuzzedDataProvider(data)
        pieces = [
            PIECES[provider.ConsumeIntInRange(0, len(PIECES) - 1)]
            for _ in range(provider.ConsumeIntInRange(0, 30))
        ]
        read_everything("".join(pieces) + provider.ConsumeUnicode(300))

    atheris.Setup(
        [sys.argv[0], f"-max_total_time={seconds}", "-max_len=600", "-len_control=0", "-timeout=5"], one
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
