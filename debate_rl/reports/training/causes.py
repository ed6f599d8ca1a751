"""Why wrong solutions are wrong, early and late, by the rules of ``envs.causes``, with examples to read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from debate_rl.formatting import printable
from debate_rl.metrics.intervals import Numbered, mean
from debate_rl.reports.cells import interval_cell, number_cell
from debate_rl.reports.document import Cell, Paragraph, Part, Section, Table
from debate_rl.reports.training.debates import MOST_WRONG, WrongSolution
from debate_rl.reports.training.distributions import ranges
from debate_rl.reports.training.loading import Run
from envs.causes.rules import CAUSES, CauseName

EXAMPLES, LONGEST = 3, 120
ABOUT = "misplaced answers, incoherent and cut replies, false arithmetic; the rest is not known"
MEANINGS: dict[CauseName, str] = {
    "extraction": "the right answer is stated, in another form or place than its grader looks for",
    "incoherent": "mostly one piece again and again, in circles, or of no script",
    "cut_off": "ended at its token limit without an answer",
    "arithmetic": "states a false equation of plain numbers",
    "not_known": "no rule can tell, as where a problem is misread",
}


def causes_section(runs: Sequence[Run]) -> Section:
    """Return the section of causes, from the sampled debates of each run."""
    parts: list[Part] = []
    for index, run in enumerate(runs, start=1):
        wrong = run.sample.wrong if run.sample else []
        if wrong:
            parts += [_table(run, index, wrong), _examples(run, index, wrong)]
        else:
            parts.append(
                Paragraph(f"{run.name}: no wrong solution among the debates that were read.", "warn")
            )
    return Section("causes", "Causes of wrong answers", tuple(parts), ABOUT)


def _table(run: Run, index: int, wrong: Sequence[WrongSolution]) -> Table:
    thirds = ranges(run)
    spans = [thirds[0], thirds[-1]] if len(thirds) > 1 else []
    rows = tuple(_row(run, cause, wrong, spans) for cause in CAUSES)
    columns = ("cause", "what it is", "solutions", "share of the wrong")
    columns += tuple(f"{name}: steps {first} to {last}" for name, first, last in spans)
    note = (
        f"Of {len(wrong):,} wrong solutions, one of a debate, from up to {MOST_WRONG} debates of a step. "
        "A cause is what is visible: the answer might be wrong without it. 95% intervals, by problem."
    )
    return Table(f"causes/{index}", f"Causes of wrong answers: {run.name}", columns, rows, note)


def _row(
    run: Run, cause: CauseName, wrong: Sequence[WrongSolution], spans: Sequence[tuple[str, int, int]]
) -> tuple[Cell, ...]:
    count = sum(one.cause == cause for one in wrong)
    behind = run.behind(f"cause:{cause}") if count else None
    parts = ([one for one in wrong if first <= one.step <= last] for _, first, last in spans)
    name = Cell(cause.replace("_", " "))
    counted = number_cell(count, behind=behind)
    return (
        name,
        Cell(MEANINGS[cause]),
        counted,
        _share(cause, wrong),
        *(_share(cause, part) for part in parts),
    )


def _share(cause: CauseName, wrong: Sequence[WrongSolution]) -> Cell:
    problems = np.array([*map(Numbered().__getitem__, (one.problem.id for one in wrong))])
    found = mean([float(one.cause == cause) for one in wrong], problems)
    if found is None:
        return number_cell(None)
    return interval_cell(found.value, max(0.0, found.low), min(1.0, found.high))


def _examples(run: Run, index: int, wrong: Sequence[WrongSolution]) -> Table:
    rows = tuple(
        (
            Cell(cause.replace("_", " ")),
            Cell(one.debate, behind=run.behind(f"id:{one.debate}")),
            Cell(_cut(one.problem.question)),
            Cell(_cut(one.problem.answer or "")),
            Cell("none" if one.answer is None else _cut(one.answer)),
            Cell(_cut(one.quote)),
        )
        for cause in CAUSES
        for one in islice(_one_a_problem(cause, wrong), EXAMPLES)
    )
    columns = ("cause", "debate", "question", "gold", "answer", "what shows it")
    return Table(f"causes/{index}/examples", f"Examples: {run.name}", columns, rows, folded=True)


def _one_a_problem(cause: CauseName, wrong: Sequence[WrongSolution]) -> Iterator[WrongSolution]:
    """Yield the newest wrong solution of this cause to each problem, the newest first."""
    seen: set[str] = set()
    for one in reversed(wrong):
        if one.cause == cause and one.problem.id not in seen:
            seen.add(one.problem.id)
            yield one


def _cut(text: str) -> str:
    line = printable(" ".join(text.split()))
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."
