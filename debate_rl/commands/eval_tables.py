"""What ``debate eval`` shows: tables that fit the terminal, notes, and files for a paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, cast

from debate.files import write_text
from debate_rl.commands.console import Lines, one_line, plain_console, print_table, write_json
from debate_rl.evaluation.report import (
    IN_TRAINING,
    SMALL,
    TEST_TIME,
    Results,
    as_text,
    best_line,
    comparison,
    figures_table,
    label_title,
    partly_shared,
    result_rows,
)
from debate_rl.evaluation.scores import Scores
from debate_rl.formatting import counted


def show(results: Results, *, json_file: str | None, table_file: str | None, compact: bool = False) -> None:
    """Print a table for each data set, and one of all where there are several; write the files asked for.

    ``compact``: the one of all alone; the others are in the files.
    """
    evaluated = results.scores
    tables = {data: figures_table(by_name) for data, by_name in evaluated.items()}
    whole, say = comparison(results), plain_console().print
    for data, by_name in evaluated.items() if not compact else ():
        title, table = _titled(data, tables[data], list(by_name))
        print_table(table, title)
        for note in notes(by_name):
            say(f"{one_line(data)}: {note}")
    if compact or len(evaluated) > 1:
        print_table(whole, "all", fixed=2)
    if compact:
        _say_notes(evaluated)
    for line in _closing(results):
        say(one_line(line))
    if json_file is not None:
        write_json(json_file, result_rows(results))
    if table_file is not None:
        write_tables(table_file, {"": whole, **tables})


def write_tables(file: str, tables: Mapping[str, Lines]) -> None:
    """Write tables by title to an .md or .tex file."""
    write_text(file, as_text(tables, cast(Literal["md", "tex"], Path(file).suffix[1:])))


def _say_notes(evaluated: Mapping[str, Mapping[str, Scores]]) -> None:
    """Print the notes on all data sets, each once, with its sets where it is not of all."""
    sets_of: dict[str, list[str]] = {}
    for data, by_name in evaluated.items():
        for note in notes(by_name):
            sets_of.setdefault(note, []).append(data)
    for note, sets in sets_of.items():
        head = "" if len(sets) == len(evaluated) else f"{'; '.join(sets)}: "
        plain_console().print(one_line(f"{head}{note}"))


def _closing(results: Results) -> Iterator[str]:
    """Yield the best checkpoints, overlaps that are not known, and what failed."""
    yield from map(best_line, results.best())
    shared = (facts.get(IN_TRAINING, "") for facts in results.facts.values())
    for reason in dict.fromkeys(text for text in shared if ":" in text):
        yield f"overlap with training {reason}"
    declared = ((data, name) for (data, name), facts in results.facts.items() if TEST_TIME in facts)
    for data, run in dict.fromkeys((data, name.rpartition("@")[0] or name) for data, name in declared):
        yield f"test-time learning: {run} is trained on problems of {data}"
    if results.failures:
        done = sum(map(len, results.scores.values()))
        yield f"{len(results.failures)} of {done + len(results.failures)} evaluations failed:"
    for (data, name), error in results.failures.items():
        yield f"{name} on {data}: {one_line(error)}"


def notes(by_name: Mapping[str, Scores]) -> Iterator[str]:
    """Yield the notes to the figures of a data set, each once, with its evaluations."""
    first, base = next(iter(by_name.items()))
    yield "95% intervals are clustered by problem, differences paired by problem."
    if len(by_name) > 1:
        yield f"a gain is over the problems with a value in both, against {one_line(first)}."
    names_of: dict[str, list[str]] = {}
    for name, scores in by_name.items():
        for note in _notes(scores, base):
            names_of.setdefault(note, []).append(name)
    for note, names in names_of.items():
        yield note if len(names) == len(by_name) else f"{', '.join(names)}: {note}"


def _notes(scores: Scores, base: Scores) -> Iterator[str]:
    yield f"{len(scores.problems)} problems, graded as {scores.mode}; {_sampled(scores)}"
    common = base.problems.keys() & scores.problems
    others = sum(base.problems[id] != scores.problems[id] for id in common)
    if others:
        yield f"{others} problems have the id of another problem of the first evaluation, and no gain."
    for count, figures in partly_shared(scores, base).items():
        names = ", ".join(map(label_title, figures))
        shared = counted(count, "problem")
        yield f"gain of {names}: over the {shared} with a value in both; each column is over all of its own."
    if scores.ungraded:
        yield f"{scores.ungraded} problems are left out: the grader gave no verdict on an answer."
    if len(scores.problems) < SMALL:
        yield f"fewer than {SMALL} problems: read the intervals before any difference."


def _sampled(scores: Scores) -> str:
    """Return what was sampled of each problem."""
    if "direct/self_consistency" in scores.values:
        majority = f"self-consistency is the majority of {scores.samples} direct solutions"
        return f"{majority}, which spend the generated tokens of a debate."
    return f"{counted(scores.samples, 'direct solution')} of each by one agent alone, and no debate."


def _titled(data: str, lines: Lines, names: Sequence[str]) -> tuple[str, Lines]:
    """Return title and table; where all evaluations are of one run, it stands in the title alone.

    >>> _titled("gsm8k", [["", "runs/a@start", "runs/a@7", "gain"]], ["runs/a@start", "runs/a@7"])
    ('gsm8k, runs/a', [['', 'start', 'after 7 steps', 'gain']])
    """
    runs = {name.rpartition("@")[0] for name in names}
    if len(runs) > 1 or runs == {""}:
        return data, lines
    weights = {name: name.rpartition("@")[2] for name in names}
    short = {
        name: f"after {counted(int(step), 'step')}" if step.isdigit() else step
        for name, step in weights.items()
    }
    return f"{data}, {runs.pop()}", [[short.get(head, head) for head in lines[0]], *lines[1:]]
