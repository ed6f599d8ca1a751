"""How right the grader is on generated answers, by kind: equal ones refused, different ones accepted.

No file is needed: ``answer_forms`` says how answers are drawn; the same seed draws the same ones. Replies
that were written by hand stand apart.

    .venv/bin/python benchmarks/grading_families.py --cases 800 --json figures.json
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from answer_families import NUMBERS, SHAPES
from answer_families_formulas import FORMULAS
from answer_families_mixed import MIXED
from answer_families_replies import REPLIES
from answer_families_sets import RELATIONS, SETS
from answer_forms import Case, Family, cases
from answers_by_hand import BY_HAND
from report import Figure, parser, report
from rich.console import Console
from rich.table import Table

from envs import Grader, GradeStatus

ANSWERS: Mapping[str, Family] = {**NUMBERS, **SHAPES, **FORMULAS, **SETS, **RELATIONS, **MIXED}
SEED = 15


def main() -> None:
    """Print the table by kind, then the figures."""
    options = parser("Agreement of the grader with generated answers.")
    options.add_argument("--cases", type=int, default=100, help="of each family, half of them equal")
    options.add_argument("--seed", type=int, default=SEED)
    args = options.parse_args()
    with Grader(workers=1) as grader:
        figures = families(grader, n=args.cases, seed=args.seed)
    report("generated answers", figures, args.json)


def families(grader: Grader, *, n: int, seed: int = SEED) -> list[Figure]:
    """Print right and wrong by kind; return the shares of equal answers refused, and how many others pass."""
    table = Table(title=f"generated answers by kind, seed {seed}")
    for column in ("kind", "equal", "refused", "different", "accepted"):
        table.add_column(column, justify="left" if column == "kind" else "right")
    figures: list[Figure] = []
    for name, drawn in (
        ("families", (*cases(ANSWERS, n=n, seed=seed), *cases(REPLIES, n=n, seed=seed, whole=True))),
        ("by_hand", BY_HAND),
    ):
        figures += _figures(name, _counted(grader, drawn), table)
        table.add_section()
    Console(width=110).print(table)
    return figures


def is_accepted(grader: Grader, case: Case) -> bool:
    """Whether a generated answer, or the answer of a reply, is graded as correct."""
    ask = grader.grade if case.whole else grader.same_answer
    kind = "choice" if case.family == "choice" else "auto"
    return ask(case.answer, case.gold, kind=kind).status == GradeStatus.CORRECT


def _counted(grader: Grader, drawn: Iterable[Case]) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = {}
    for case in drawn:
        count = counts.setdefault(case.family, Counter())
        accepted = is_accepted(grader, case)
        count["equal" if case.same else "different"] += 1
        count["refused"] += case.same and not accepted
        count["accepted"] += accepted and not case.same
    return counts


def _figures(name: str, counts: Mapping[str, Counter[str]], table: Table) -> list[Figure]:
    total: Counter[str] = sum(counts.values(), Counter())
    for family, count in counts.items():
        table.add_row(family, *(str(count[key]) for key in ("equal", "refused", "different", "accepted")))
    return [
        Figure(f"{name}_false_negatives", total["refused"] / total["equal"], "share", total["equal"]),
        Figure(f"{name}_false_positives", total["accepted"], "answers", total["different"]),
    ]


if __name__ == "__main__":
    main()
