"""Output of ``debate eval``: tables that fit the terminal, notes, and files for a paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from debate.files import write_text
from debate_rl.commands.console import Lines, one_line, plain_console, print_table, write_json
from debate_rl.evaluation.report import MAIN, Row, cell, gain_of, plain_rows, rows
from debate_rl.evaluation.scores import Scores
from debate_rl.evaluation.tasks import IN_TRAINING, TEST_TIME, Evaluated
from debate_rl.formatting import counted, title
from debate_rl.metrics.intervals import Estimate

CUT_OFF = ("direct/truncated", "debate/truncated")
"""Figures shown next to accuracies, because a reply that is cut off at its limit has no answer."""
SMALL = 100
"""With fewer problems, intervals are wide and differences between models are mostly noise."""
CHOSEN_BY = ("debate/winner/accuracy", "direct/accuracy")
"""Figures that select the best checkpoint. The first available figure is used."""


def show(
    results: Sequence[Evaluated], *, json_file: str | None, table_file: str | None, compact: bool = False
) -> None:
    """Print a table for each data set and, if there are several, a table of all. Write the requested files.

    ``compact``: print only the table of all data sets. The files contain the other tables too.
    """
    evaluated, say = by_data(results), plain_console().print
    tables = {data: figures_table(by_name) for data, by_name in evaluated.items()}
    whole, sets_of = comparison(results), dict[str, list[str]]()
    for data, by_name in evaluated.items():
        if not compact:
            print_table(*_titled(data, tables[data], list(by_name)))
        for note in notes(by_name):
            sets_of.setdefault(note, []).append(data)
            if not compact:
                say(f"{one_line(data)}: {note}")
    if compact or len(evaluated) > 1:
        print_table(whole, "all", fixed=2)
    for note, sets in sets_of.items() if compact else ():
        head = "" if len(sets) == len(evaluated) else f"{'; '.join(sets)}: "
        say(one_line(f"{head}{note}"))
    for line in _closing(results):
        say(one_line(line))
    if json_file is not None:
        write_json(json_file, result_rows(results))
    if table_file is not None:
        write_tables(table_file, {"": whole, **tables})


def by_data(results: Sequence[Evaluated]) -> dict[str, dict[str, Scores]]:
    """Return the available figures by data set and evaluation."""
    found: dict[str, dict[str, Scores]] = {}
    for one in results:
        if one.scores is not None:
            found.setdefault(one.data, {})[one.name] = one.scores
    return found


def write_tables(file: str, tables: Mapping[str, Lines]) -> None:
    """Write tables, by title, to an .md or .tex file."""
    write_text(file, as_text(tables, Path(file).suffix[1:]))


def as_text(tables: Mapping[str, Lines], kind: str) -> str:
    r"""Return tables, by title, as Markdown or as LaTeX (booktabs, with the titles as comments).

    >>> print(as_text({"sums": [["a", "b"], ["x_1", "2"]]}, "tex").splitlines()[6])
     x\_1 & 2   \\
    """
    from tabulate import tabulate

    style, mark = {"md": ("github", "## "), "tex": ("latex_booktabs", "% ")}[kind]
    texts = (
        (f"{mark}{' '.join(title.split())}\n\n" if title else "")
        + tabulate(lines[1:], headers=lines[0], tablefmt=style, disable_numparse=True)
        for title, lines in tables.items()
    )
    return "\n\n".join(texts) + "\n"


def comparison(results: Sequence[Evaluated]) -> list[list[str]]:
    """Return a table with a line for each data set and evaluation, with gains over the first evaluation.

    It includes roles, overlaps and failures if there are any.
    """
    evaluated = by_data(results)
    known = dict.fromkeys(name for one in results if one.scores for name in one.scores.values)
    modes = [name for name in known if name.startswith("direct/accuracy [")]
    names = [name for name in (*MAIN, *modes, *CUT_OFF) if name in known]
    several = any(len(by_name) > 1 for by_name in evaluated.values())
    gained = [name for name in names if name in MAIN[-2:]] or [name for name in names if name == MAIN[1]]
    gained = gained if several else []
    facts = list(dict.fromkeys(head for one in results for head in one.facts))
    about = [*(["role"] if any(one.role for one in results) else []), *facts]
    gains = [f"{label_title(name)} gain" for name in gained]
    table = [["", *about, "", "problems", *map(label_title, names), *gains]]
    done = [one for data in evaluated for one in results if one.data == data and one.scores]
    for one in (*done, *(one for one in results if one.scores is None)):
        said = {"role": one.role, **{head: text.partition(":")[0] for head, text in one.facts.items()}}
        cells = ["failed", *[""] * (len(names) + len(gained))]
        if one.scores is not None:
            scores, base = one.scores, next(iter(evaluated[one.data].values()))
            values = [cell(Row(figure, e)) if (e := scores.estimate(figure)) else "" for figure in names]
            more = ["" if scores is base else _gain_cell(figure, scores, base) for figure in gained]
            cells = [str(len(scores.problems)), *values, *more]
        table.append([one.data, *(said.get(head, "") for head in about), one.name, *cells])
    return table


def figures_table(evaluated: Mapping[str, Scores]) -> list[list[str]]:
    """Return a table of all figures with a column for each evaluation, including gains over the first.

    Kinds of failures of form that never occurred are left out.
    """
    columns = {name: {row.label: row for row in rows(scores)} for name, scores in evaluated.items()}
    (_, base), *others = evaluated.items()
    heads = ["gain" if len(others) == 1 else f"gain of {name}" for name, _ in others]
    labels = dict.fromkeys(label for column in columns.values() for label in column)
    lines = [
        [
            label_title(label),
            *(cell(column[label]) if label in column else "" for column in columns.values()),
            *(_gain_cell(label, scores, base) for _, scores in others),
        ]
        for label in labels
        if not label.startswith("debate/format/")
        or any(c[label].estimate.value for c in columns.values() if label in c)
    ]
    return [["", *columns, *heads], *lines]


def _gain_cell(figure: str, scores: Scores, base: Scores) -> str:
    gain = gain_of(figure, scores, base)
    return "" if gain is None else cell(Row(figure, gain, "difference"))


def label_title(label: str) -> str:
    """Return the title of a figure. A level or a subject in brackets remains unchanged.

    >>> label_title("debate/accuracy/round_0 [subject a_b]"), label_title("debate/winner_minus_direct")
    ('debate accuracy, round 0 [subject a_b]', 'debate winner minus direct')
    """
    name, bracket, rest = label.partition(" [")
    return title(name) + bracket + rest


def result_rows(results: Sequence[Evaluated]) -> list[dict[str, object]]:
    """Return all results for a JSON file: figures, gains by data set, best checkpoints and failures.

    ``of``: the number of checkpoints evaluated on the data set.
    """
    roles = {one.data: {"role": one.role} if one.role else {} for one in results}
    facts = {(one.data, one.name): one.facts for one in results}
    figures = [
        {"data": data, **roles[data], **facts[data, str(row["evaluation"])], **row}
        for data, by_name in by_data(results).items()
        for row in plain_rows(by_name)
    ]
    best: list[dict[str, object]] = []
    for one in best_of(results):
        figure = Row(f"best {one.figure}", one.estimate).plain()
        best.append({"data": one.data, "evaluation": one.evaluation, **figure, "of": one.of})
    failures: list[dict[str, object]] = [
        {
            "data": one.data,
            **roles[one.data],
            "evaluation": one.name,
            "name": "failed",
            "error": str(one.error),
        }
        for one in results
        if one.error is not None
    ]
    return [*figures, *best, *failures]


class Best(NamedTuple):
    """The weights of a run with the highest figure on a data set, among ``of`` evaluated weights."""

    data: str
    run: str
    evaluation: str
    figure: str
    estimate: Estimate
    of: int


def best_of(results: Sequence[Evaluated]) -> Iterator[Best]:
    """Yield the best checkpoint of each run on each data set, if several checkpoints were evaluated."""
    for data, by_name in by_data(results).items():
        for run in dict.fromkeys(name.rpartition("@")[0] for name in by_name if "@" in name):
            own = {name: each for name, each in by_name.items() if name.rpartition("@")[0] == run}
            if sum(not name.endswith("@start") for name in own) < 2:
                continue
            for figure in CHOSEN_BY:
                known = {name: found for name, each in own.items() if (found := each.estimate(figure))}
                if known:
                    first = max(known, key=lambda name: known[name].value)
                    yield Best(data, run, first, figure, known[first], len(known))
                    break


def _closing(results: Sequence[Evaluated]) -> Iterator[str]:
    """Yield lines on best checkpoints, unknown overlaps, test-time learning, and failures."""
    for best in best_of(results):
        figure, value = label_title(best.figure), cell(Row(best.figure, best.estimate))
        head = f"best of {best.run} on {best.data}: {best.evaluation}"
        yield f"{head}, {figure} {value}, the highest of {best.of} evaluations on these problems"
    shared = (one.facts.get(IN_TRAINING, "") for one in results)
    for reason in dict.fromkeys(text for text in shared if ":" in text):
        yield f"overlap with training {reason}"
    declared = [(one.data, one.name) for one in results if TEST_TIME in one.facts]
    for data, run in dict.fromkeys((data, name.rpartition("@")[0] or name) for data, name in declared):
        yield f"test-time learning: {run} is trained on problems of {data}"
    failed = [f"{one.name} on {one.data}: {one_line(one.error)}" for one in results if one.error is not None]
    if failed:
        yield f"{len(failed)} of {len(results)} evaluations failed:"
    yield from failed


def notes(by_name: Mapping[str, Scores]) -> Iterator[str]:
    """Yield each note on the figures of a data set once, with the evaluations that it applies to."""
    first, base = next(iter(by_name.items()))
    yield "95% intervals are clustered by problem, differences paired by problem."
    if len(by_name) > 1:
        yield f"gains are relative to {one_line(first)}, over the problems with a value in both."
    names_of: dict[str, list[str]] = {}
    for name, scores in by_name.items():
        for note in _notes(scores, base):
            names_of.setdefault(note, []).append(name)
    for note, names in names_of.items():
        yield note if len(names) == len(by_name) else f"{', '.join(names)}: {note}"


def _notes(scores: Scores, base: Scores) -> Iterator[str]:
    sampled = f"{counted(scores.samples, 'direct solution')} per problem, and no debate."
    if "direct/self_consistency" in scores.values:
        majority = f"self-consistency is the majority of {scores.samples} direct solutions"
        sampled = f"{majority}, which cost as many generated tokens as a debate."
    yield f"{len(scores.problems)} problems, graded as {scores.mode}; {sampled}"
    common = base.problems.keys() & scores.problems
    others = sum(base.problems[id] != scores.problems[id] for id in common)
    if others:
        yield f"{others} problems have no gain: in the first evaluation, their ids name different problems."
    for count, figures in partly_shared(scores, base).items():
        names = ", ".join(map(label_title, figures))
        shared = counted(count, "problem")
        yield f"gain of {names}: over the {shared} with a value in both; columns are over all their problems."
    if scores.ungraded:
        yield f"{scores.ungraded} problems are left out: the grader gave no verdict on an answer."
    if len(scores.problems) < SMALL:
        yield f"fewer than {SMALL} problems: differences may be noise, so read the intervals first."


def partly_shared(scores: Scores, base: Scores) -> dict[int, list[str]]:
    """Return the figures whose gain covers only a part of the problems, by the number of problems covered."""
    found: dict[int, list[str]] = {}
    for figure in scores.values:
        gain = gain_of(figure, scores, base)
        of = max(sum(map(bool, one.values.get(figure, {}).values())) for one in (scores, base))
        if gain is not None and gain.clusters < of:
            found.setdefault(gain.clusters, []).append(figure)
    return found


def _titled(data: str, lines: Lines, names: Sequence[str]) -> tuple[Lines, str]:
    """Return a table and its title. If all evaluations belong to one run, only the title names it.

    >>> _titled("gsm8k", [["", "runs/a@start", "runs/a@7", "gain"]], ["runs/a@start", "runs/a@7"])
    ([['', 'start', 'after 7 steps', 'gain']], 'gsm8k, runs/a')
    """
    runs = {name.rpartition("@")[0] for name in names}
    if len(runs) > 1 or runs == {""}:
        return lines, data
    weights = {name: name.rpartition("@")[2] for name in names}
    short = {
        name: f"after {counted(int(step), 'step')}" if step.isdigit() else step
        for name, step in weights.items()
    }
    return [[short.get(head, head) for head in lines[0]], *lines[1:]], f"{data}, {runs.pop()}"
