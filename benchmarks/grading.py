"""How far the grader can be trusted, and what it costs, beside math-verify in the same run.

Every row of ``graded_answers.jsonl`` is graded under the settings that ``SETTINGS`` gives its source: no
choice by row. Disagreements are listed. "raw" gives math-verify the text as it is; "wrapped" gives it the
answer that ours extracted, as ``$...$``. Throughput is on distinct pairs of answer and gold answer, extracted
beforehand for both, with a cold cache; "whole_reply" has both read whole replies. Generated answers come last
(``grading_families``). About a minute.

    DEBATE_TEST_DATA=folder .venv/bin/python benchmarks/grading.py --json figures.json
"""

from __future__ import annotations

import argparse
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from runpy import run_path

from grading_families import families
from grading_throughput import Row, dollars, milliseconds, rows_of, seconds_of, throughput
from math_verify_process import MathVerify
from report import Figure, parser, report

from envs import Grade, Grader, GradeStatus, extract
from envs.types import GradeKind, Mode

OVER_S = 0.5
CASES = 40
"""Generated answers of each family; ``grading_families.py`` takes more."""
STORM = (30, 35, 40)  # exponents


@dataclass(frozen=True, slots=True)
class Setting:
    """What is fixed for one source."""

    mode: Mode = "lenient"
    kind: GradeKind = "auto"


SETTINGS: tuple[tuple[str, Setting], ...] = (
    ("lighteval:test_extractive_match.py::test_extraction_abc", Setting(kind="choice")),
    ("lighteval", Setting(mode="math_verify")),
    ("math-verify", Setting(mode="math_verify")),
    ("hendrycks", Setting(mode="hendrycks")),
    ("tinker-cookbook", Setting(mode="prm800k")),
    ("", Setting()),
)
"""The first entry whose text opens the row's source counts."""


@dataclass(frozen=True, slots=True)
class Timed:
    """Verdicts (None where nothing was graded) and their seconds, in the order of the rows."""

    verdicts: list[bool | None]
    seconds: list[float]


def main() -> None:
    """Print the disagreements, then the figures."""
    args = arguments()
    with Grader(workers=1) as grader, MathVerify() as library:
        grader.warm()
        figures = [
            *graded(rows_of(args.data, "graded_answers"), grader, library),
            *outputs(args.data, grader),
            *hostile(rows_of(args.data, "hostile_answers"), grader),
            *throughput(args.data, library),
            *families(grader, n=CASES),
        ]
    report(
        "grading: ours beside math-verify; ms: low is the median, high is p99",
        figures,
        args.json,
    )


def arguments() -> argparse.Namespace:
    result = parser("Agreement, safety and speed of the grader.")
    folder = os.environ.get("DEBATE_TEST_DATA")
    result.add_argument("--data", type=Path, default=folder, required=not folder, help="the data folder")
    args = result.parse_args()
    args.data = Path(args.data)
    return args


def setting_of(source: str) -> Setting:
    return next(setting for start, setting in SETTINGS if source.startswith(start))


def judged(row: Row, grader: Grader) -> Grade:
    """Return our grade of a row of graded answers, under its source's setting."""
    setting = setting_of(row["source"])
    if row["kind"] == "answer":
        return grader.same_answer(row["pred"], row["gold"], mode=setting.mode, kind=setting.kind)
    return grader.grade(row["pred"], row["gold"], mode=setting.mode, kind=setting.kind)


def graded(rows: Sequence[Row], grader: Grader, library: MathVerify) -> list[Figure]:
    """Return agreement and time of ours, math-verify raw and math-verify wrapped."""
    grades = [judged(row, grader) for row in rows]
    ours = Timed([known(grade) for grade in grades], [grade.seconds for grade in grades])
    raw = timed(library.ask(row["gold"], row["pred"]) for row in rows)
    wrapped = timed(library.ask(dollars(row["gold"]), dollars(answer_of(row))) for row in rows)
    list_disagreements(rows, grades)
    by_source(rows, {"ours": ours, "raw": raw, "wrapped": wrapped})
    figures = figures_of("graded", ours, rows)
    return [
        *figures,
        *figures_of("math_verify_raw", raw, rows),
        *figures_of("math_verify_wrapped", wrapped, rows),
    ]


def figures_of(name: str, found: Timed, rows: Sequence[Row]) -> list[Figure]:
    n = len(rows)
    agree = sum(right(v) == row["expected"] for v, row in zip(found.verdicts, rows, strict=True))
    false = sum(right(v) and not row["expected"] for v, row in zip(found.verdicts, rows, strict=True))
    return [
        Figure(f"{name}_agreement", agree / n, "share", n),
        Figure(f"{name}_false_positives", false, "rows", n),
        milliseconds(f"{name}_ms", found.seconds),
    ]


def timed(found: Iterable[tuple[bool | None, float]]) -> Timed:
    pairs = list(found)
    return Timed([verdict for verdict, _ in pairs], [seconds for _, seconds in pairs])


def known(grade: Grade) -> bool | None:
    return None if grade.status in (GradeStatus.TIMEOUT, GradeStatus.CRASH) else grade.verdict is True


def right(verdict: bool | None) -> bool:
    return verdict is True


def answer_of(row: Row) -> str:
    """Return what is to be compared: the answer, or what ours extracts from a reply, or the reply."""
    if row.get("kind") == "answer":
        return row["pred"]
    return extract(row["pred"], mode=setting_of(row["source"]).mode).answer or row["pred"]


def list_disagreements(rows: Sequence[Row], grades: Sequence[Grade]) -> None:
    print("disagreements with the labels of graded_answers.jsonl:")
    for row, grade in zip(rows, grades, strict=True):
        if right(known(grade)) != row["expected"]:
            expected = "right" if row["expected"] else "WRONG"
            print(
                f"  {row['id']} [{row['source']}] labelled {expected}, ours {grade.status} by {grade.method}"
            )
            print(f"      gold {row['gold'][-100:]!r}\n      reply {row['pred'][-100:]!r}")


def by_source(rows: Sequence[Row], columns: Mapping[str, Timed]) -> None:
    """Print rows and agreements of each source."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for place, row in enumerate(rows):
        counts[row["source"]]["rows"] += 1
        for name, found in columns.items():
            counts[row["source"]][name] += right(found.verdicts[place]) == row["expected"]
    print(f"{'source':<66} {'mode':<18} rows " + " ".join(f"{name:>8}" for name in columns))
    for source, count in sorted(counts.items()):
        numbers = " ".join(f"{count[name]:>8}" for name in columns)
        print(f"{source:<66} {setting_of(source).mode:<18} {count['rows']:>4} {numbers}")


def outputs(data: Path, grader: Grader) -> list[Figure]:
    """Return agreement with the labels of real solutions; disagreements are listed."""
    rows = [row for name in ("model_outputs_math", "model_outputs_gsm8k") for row in rows_of(data, name)]
    agree = 0
    for row in rows:
        grade = grader.grade(row["output"], row["gold"])
        agree += (same := (grade.status == GradeStatus.CORRECT) == row["expected"])
        if not same:
            print(f"outputs: labelled {row['expected']}, ours {grade.status}:")
            print(f"      gold {row['gold']!r}, answer {grade.extracted!r}")
    return [Figure("outputs_agreement", agree / len(rows), "share", len(rows))]


def hostile(rows: Sequence[Row], grader: Grader) -> list[Figure]:
    """Return how many hostile answers took longer than the limit allows, were called right or not graded.

    Those of the file come as replies, our own as answers. The storm is of relations that the library never
    comes back from; after it, the time of the first answer that needs the library is the recovery.
    """
    grades = [grader.grade(row["pred"], row["gold"]) for row in rows]
    grades += [grader.same_answer(answer, gold) for gold, answer in own_hostile()]
    grades += [grader.same_answer(f"(a+b+c+d+e)^{{{n}}} < 1", f"(a+b+c+d+2e)^{{{n}}} < 1") for n in STORM]
    doubled = (r"2\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}2\\4\end{pmatrix}")  # beyond the rules
    recovery = seconds_of(grader.same_answer, *doubled)
    over = sum(grade.seconds > grader.limit_s + OVER_S for grade in grades)
    called_right = sum(grade.status == GradeStatus.CORRECT for grade in grades)
    ungraded = sum(known(grade) is None for grade in grades[: -len(STORM)])
    return [
        Figure("hostile_over_limit", over, "rows", len(grades)),
        Figure("hostile_false_positives", called_right, "rows", len(grades)),
        Figure("hostile_ungraded", ungraded, "rows", len(grades) - len(STORM)),
        Figure("hostile_longest_s", max(grade.seconds for grade in grades), "s", len(grades)),
        Figure("recovery_after_storm_s", recovery, "s", 1),
    ]


def own_hostile() -> list[tuple[str, str]]:
    script = Path(__file__).parents[1] / "tests" / "unit" / "envs" / "grading" / "hostile.py"
    return run_path(str(script))["rows"]()


if __name__ == "__main__":
    main()
