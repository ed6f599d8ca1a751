"""Our checks of instructions beside the published decisions on published responses.

    benchmarks/instructions.py --problems FILE --results FILE [--responses FILE] [--loose] [--json FILE]

``--problems`` has IFEval's or IFBench's rows (prompt, instruction_id_list, kwargs), ``--results`` what their
own evaluation wrote (prompt, follow_instruction_list), ``--responses`` the responses where the results have
none. All three are in the repositories of the benchmarks: for IFBench data/IFBench_test.jsonl,
eval/eval_results_strict.jsonl and data/sample_output.jsonl of allenai/IFBench.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from report import Figure, parser, report

from envs.instructions import constraints_of, follows
from envs.instructions.constraints import write_constraints

Row = Mapping[str, Any]


def rows_of(path: Path) -> list[Row]:
    """Return the rows of a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def decisions(
    problems: list[Row], results: list[Row], responses: list[Row], *, loose: bool
) -> Iterator[tuple[str, bool, bool]]:
    """Yield (instruction, ours, published) of every result whose prompt is among the problems."""
    asked = {row["prompt"]: row for row in problems}
    said = {row["prompt"]: row["response"] for row in responses}
    for result in results:
        problem = asked.get(result["prompt"])
        if problem is None:
            continue
        ids = problem["instruction_id_list"]
        response = result.get("response") or said[result["prompt"]]
        constraints = constraints_of(write_constraints(ids, problem["kwargs"]))
        ours = follows(response, constraints, loose=loose)
        yield from zip(ids, ours, result["follow_instruction_list"], strict=True)


def figures_of(found: list[tuple[str, bool, bool]], seconds: float) -> list[Figure]:
    """Return agreement, how much is followed by either count, and the time of a decision."""
    count = len(found)
    same, ours, theirs = (sum(part) for part in zip(*((a == b, a, b) for _, a, b in found), strict=True))
    return [
        Figure("agreement", same / count, "share", count),
        Figure("followed, ours", ours / count, "share", count),
        Figure("followed, published", theirs / count, "share", count),
        Figure("a decision", 1000 * seconds / count, "ms", count),
    ]


def main() -> None:
    """Print the figures and each kind of difference."""
    options = parser((__doc__ or "").partition("\n")[0])
    for name, needed in (("problems", True), ("results", True), ("responses", False)):
        options.add_argument(f"--{name}", type=Path, required=needed, metavar="FILE")
    options.add_argument("--loose", action="store_true", help="the upper bound over eight readings")
    given = options.parse_args()
    responses = rows_of(given.responses) if given.responses else []
    started = time.perf_counter()
    found = list(decisions(rows_of(given.problems), rows_of(given.results), responses, loose=given.loose))
    report("instructions", figures_of(found, time.perf_counter() - started), given.json)
    differing = Counter((id_, ours) for id_, ours, published in found if ours != published)
    for (id_, ours), count in sorted(differing.items()):
        print(f"{count} of {id_}: ours {'followed' if ours else 'not followed'}")


if __name__ == "__main__":
    main()
