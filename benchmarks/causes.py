"""What the rules for causes of wrong answers say of real outputs with known grades, right and wrong.

    python benchmarks/causes.py /path/to/data [--show arithmetic]

The folder has ``model_outputs_gsm8k.jsonl`` and ``model_outputs_math.jsonl`` with question, gold, output and
expected. Wrong outputs are taken as they are, right ones as if a form had been wanted that they lack.
``--show`` prints what a cause was found by, to be read by hand.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from debate import Problem
from debate.types import Kind
from envs.causes.rules import CAUSES, Cause, WrongReply, cause_of

FILES: dict[str, Kind] = {"model_outputs_gsm8k": "number", "model_outputs_math": "expression"}


def found_in(data: Path) -> Iterator[tuple[str, bool, WrongReply, Cause]]:
    """Yield the file, whether the output is right, the reply and its cause."""
    for name, kind in FILES.items():
        for number, line in enumerate((data / f"{name}.jsonl").read_text().splitlines()):
            row = json.loads(line)
            problem = Problem(f"{name}/{number}", row["question"], answer=row["gold"], kind=kind)
            reply = WrongReply(problem, row["output"], missing=row["expected"], cut=False)
            yield name, row["expected"], reply, cause_of(reply)


def main() -> None:
    """Print the counts, or what there is to read of one cause."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--show", choices=CAUSES)
    arguments = parser.parse_args()
    counts: Counter[tuple[str, bool, str]] = Counter()
    for name, right, reply, cause in found_in(arguments.data):
        counts[name, right, cause.name] += 1
        if cause.name == arguments.show and not right:
            shown = cause.where.of(reply.solution) if cause.where else reply.solution[-300:]
            print(f"{reply.problem.id}: {shown!r} (gold {reply.problem.answer})")
    for name in FILES:
        for right in (False, True):
            told = ", ".join(f"{cause} {counts[name, right, cause]}" for cause in CAUSES)
            print(f"{name}, {'right' if right else 'wrong'}: {told}")


if __name__ == "__main__":
    main()
