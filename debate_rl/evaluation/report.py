"""What one command evaluated: figures as rows, tables, JSON, Markdown and LaTeX, and the best checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Literal, TypeAlias

from debate_rl.evaluation.scores import KINDS, Scores, difference
from debate_rl.formatting import title
from debate_rl.metrics.features import verdict_costs
from debate_rl.metrics.held_out import COUNTS, LEADS, HeldOut
from debate_rl.metrics.intervals import Estimate, spread
from debate_rl.runs.provenance import problems_checksum

MAIN = (
    "direct/greedy_accuracy",
    "direct/accuracy",
    "direct/self_consistency",
    "debate/accuracy/round_0",
    "debate/winner/accuracy",
    "debate/majority",
)
"""The figures that are also shown by level and subject, and compared between evaluations."""
COSTS = ("missing", "truncated", "valid_xml", "stopped", "tools")
"""How figures begin that stand behind the accuracies."""
CUT_OFF = ("direct/truncated", "debate/truncated")
"""Reported with accuracies: a reply that its limit cuts off has no answer."""
WITHIN = {"share": (0.0, 1.0), "difference": (-1.0, 1.0), "tokens": (0.0, inf), "count": (0.0, inf)}
"""What figures of a unit can be."""
SMALL = 100
"""With fewer problems an interval is wide, and a difference between models mostly noise."""
IN_TRAINING = "in training"
"""The head of what a data set shares with the problems that were trained on."""
TEST_TIME = "test-time learning"
"""The head of whether a run is declared to train on the problems of a data set."""
CHOSEN_BY = ("debate/winner/accuracy", "direct/accuracy")
"""The figure that decides which checkpoint is best: the first of these that there is."""
Unit: TypeAlias = Literal["share", "tokens", "difference", "count"]


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: ``unit`` "share" (of 1), "tokens", ...; of some problems where ``group`` names them."""

    name: str
    estimate: Estimate
    unit: Unit = "share"
    group: str = ""

    @property
    def label(self) -> str:
        """The name, with the problems that it is of."""
        return f"{self.name} [{self.group}]" if self.group else self.name

    def plain(self) -> dict[str, object]:
        """Return the figure for a JSON file."""
        return {"name": self.label, "unit": self.unit, **plain_estimate(self.estimate)}


def plain_estimate(estimate: Estimate) -> dict[str, object]:
    """Return an estimate for a JSON file; a bound that is not finite is None."""
    low, high = (bound if isfinite(bound) else None for bound in (estimate.low, estimate.high))
    p: dict[str, object] = {} if estimate.p is None else {"p": estimate.p}
    return {"value": estimate.value, "low": low, "high": high, "n": estimate.n, **p}


def rows(scores: Scores) -> list[Row]:
    """Return all figures of an evaluation: by mode, their differences, then levels and subjects."""
    figures = [
        Row(name, estimate, _unit(name))
        for name in sorted(scores.values, key=_mode)
        if (estimate := scores.estimate(name)) is not None
    ]
    for name, (minuend, subtrahend) in LEADS.items():
        lead = difference(scores, minuend, scores, subtrahend)
        figures += [] if lead is None else [Row(name, lead, "difference")]
    for name, estimate in scores.agreement().items():
        figures.append(Row(f"verifier/{name}", estimate, "difference" if name == "kappa" else "share"))
    for kind in KINDS:
        groups = scores.groups(kind)
        for label, problems in groups.items() if len(groups) > 1 else ():
            for name in MAIN:
                if (estimate := scores.estimate(name, problems)) is not None:
                    figures.append(Row(name, estimate, group=f"{kind} {label}"))
    return figures


def _unit(name: str) -> Unit:
    if name.endswith("_tokens"):
        return "tokens"
    return "count" if name.endswith(COUNTS) else "share"


def _mode(name: str) -> tuple[int, int]:
    """Return where a figure stands: by mode, and accuracies before what they cost."""
    mode, _, figure = name.partition("/")
    costs = _unit(name) != "share" or figure.startswith(COSTS)
    return ("direct", "debate", "judge", "verifier").index(mode), int(costs)


def metrics(scores: Scores, data: str = "") -> dict[str, float]:
    """Return the figures over all problems as "eval/...", with their 95% bounds under "/low" and "/high".

    Those of a further held-out set have its name, ``data``: "eval/DATA/...". With one problem there
    are no bounds, nor where all problems have the same number of tokens.
    """
    counts = {"problems": len(scores.problems), "ungraded": scores.ungraded, "direct/samples": scores.samples}
    head = f"eval/{data}/" if data else "eval/"
    figures = {f"{head}{name}": float(count) for name, count in counts.items()}
    for row in rows(scores):
        if not row.group:
            estimate, name = row.estimate, f"{head}{row.name}"
            figures[name] = estimate.value
            if isfinite(estimate.low) and isfinite(estimate.high):
                figures |= {f"{name}/low": estimate.low, f"{name}/high": estimate.high}
    costs = verdict_costs(scores.asked) if scores.asked else {}
    return figures | {f"{head}{name}": value for name, value in costs.items()}


def held_out(scores: Scores, step: int, *, series: str = "", data: str = "") -> HeldOut:
    """Return the figures by problem, as they are kept of weights that had learnt from ``step`` steps."""
    return HeldOut(
        step=step,
        problems={id: problems_checksum([problem])[:16] for id, problem in scores.problems.items()},
        figures={
            name: {id: (sum(values), len(values)) for id, values in by_problem.items() if values}
            for name, by_problem in scores.values.items()
        },
        samples=scores.samples,
        ungraded=scores.ungraded,
        series=series,
        data=data,
    )


def cell(row: Row) -> str:
    """Return value and interval.

    >>> cell(Row("direct/accuracy", Estimate(0.5, 0.4, 0.6, n=10, clusters=10)))
    '0.500 ± 0.100'
    """
    sign, digits = ("+" if row.unit == "difference" else ""), 1 if row.unit == "tokens" else 3
    return f"{row.estimate.value:{sign}.{digits}f}{spread(row.estimate, digits, WITHIN[row.unit])}"


def plain_rows(evaluated: Mapping[str, Scores]) -> list[dict[str, object]]:
    """Return every figure for a JSON file, and the gains over the first evaluation, paired by problem."""
    (first, base), *others = evaluated.items()
    figures = [
        {"evaluation": name, **row.plain()} for name, scores in evaluated.items() for row in rows(scores)
    ]
    gains = (
        {"evaluation": name, "minus": first, **Row(figure, gain, "difference").plain()}
        for name, other in others
        for figure in other.values
        if (gain := _gain(figure, other, base)) is not None
    )
    return [*figures, *gains]


@dataclass(frozen=True, slots=True)
class Best:
    """The weights of a run with the highest figure on a data set, ``of`` so many that were evaluated."""

    data: str
    run: str
    evaluation: str
    figure: str
    estimate: Estimate
    of: int


@dataclass(slots=True)
class Results:
    """Figures by data set and evaluation, in the order of the tables.

    ``roles``: what each data set is there for. ``facts`` and ``failures`` belong to a data set and an
    evaluation: what else a table says of it, by head, and why there are no figures.
    """

    scores: dict[str, dict[str, Scores]] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    facts: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    failures: dict[tuple[str, str], Exception] = field(default_factory=dict)

    def add(self, data: str, evaluation: str, scores: Scores) -> None:
        """Add figures to the others of the data set."""
        self.scores.setdefault(data, {})[evaluation] = scores

    def sort(self, order: Sequence[tuple[str, str]]) -> None:
        """Bring data sets and evaluations into this order; others stay in front."""
        rank = {pair: number for number, pair in enumerate(order)}
        data = {name: number for number, name in reversed([*enumerate(dict.fromkeys(d for d, _ in order))])}
        self.scores = {
            name: dict(sorted(by_name.items(), key=lambda item: rank.get((name, item[0]), -1)))
            for name, by_name in sorted(self.scores.items(), key=lambda item: data.get(item[0], -1))
        }

    def forget(self, evaluation: str) -> None:
        """Take out what is known of an evaluation."""
        for by_name in self.scores.values():
            by_name.pop(evaluation, None)
        self.failures = {pair: error for pair, error in self.failures.items() if pair[1] != evaluation}

    def best(self) -> Iterator[Best]:
        """Yield the best checkpoint of each run on each data set, where several were evaluated."""
        for data, by_name in self.scores.items():
            runs = dict.fromkeys(name.rpartition("@")[0] for name in by_name if "@" in name)
            for run in runs:
                own = {name: each for name, each in by_name.items() if name.rpartition("@")[0] == run}
                if sum(not name.endswith("@start") for name in own) < 2:
                    continue
                for figure in CHOSEN_BY:
                    known = {name: found for name, each in own.items() if (found := each.estimate(figure))}
                    if known:
                        first = max(known, key=lambda name: known[name].value)
                        yield Best(data, run, first, figure, known[first], len(known))
                        break


def comparison(results: Results) -> list[list[str]]:
    """Return a table, heads first: a line for each data set and evaluation, with its gains over the first.

    Roles and overlaps are columns where there are any; an evaluation that failed has a line that says so.
    """
    every = [scores for by_name in results.scores.values() for scores in by_name.values()]
    known = dict.fromkeys(name for scores in every for name in scores.values)
    modes = [name for name in known if name.startswith("direct/accuracy [")]
    names = [name for name in (*MAIN, *modes, *CUT_OFF) if name in known]
    gained = _gained(names) if len(every) > len(results.scores) else ()
    about = _about(results)
    heads = ["", *about, "", "problems", *map(label_title, names)]
    table = [[*heads, *(f"{label_title(name)} gain" for name in gained)]]

    def add(data: str, name: str, *cells: str) -> None:
        table.append([data, *(of.get((data, name), "") for of in about.values()), name, *cells])

    for data, by_name in results.scores.items():
        base = next(iter(by_name.values()))
        for name, scores in by_name.items():
            values = [cell(Row(figure, e)) if (e := scores.estimate(figure)) else "" for figure in names]
            gains = ["" if scores is base else _gain_cell(figure, scores, base) for figure in gained]
            add(data, name, str(len(scores.problems)), *values, *gains)
    for data, name in results.failures:
        add(data, name, "failed", *[""] * len((*names, *gained)))
    return table


def _about(results: Results) -> dict[str, dict[tuple[str, str], str]]:
    """Return the columns of facts by head, each by data set and evaluation; none where there are none."""
    evaluated = [(data, name) for data, by_name in results.scores.items() for name in by_name]
    columns = {"role": {pair: results.roles.get(pair[0], "") for pair in (*evaluated, *results.failures)}}
    for head in dict.fromkeys(head for facts in results.facts.values() for head in facts):
        columns[head] = {pair: facts.get(head, "").partition(":")[0] for pair, facts in results.facts.items()}
    return {head: column for head, column in columns.items() if any(column.values())}


def _gained(names: Sequence[str]) -> Sequence[str]:
    """Return the figures whose gains are compared: those of debates, or where there are none the solutions'.

    >>> _gained(["direct/greedy_accuracy", "direct/accuracy"])
    ['direct/accuracy']
    """
    return [name for name in names if name in MAIN[-2:]] or [name for name in names if name == MAIN[1]]


def result_rows(results: Results) -> list[dict[str, object]]:
    """Return everything for a JSON file: figures with gains by data set, best checkpoints, and failures.

    ``of`` a best checkpoint: how many were evaluated on the data set.
    """
    roles = {data: {"role": role} if role else {} for data, role in results.roles.items()}
    figures = [
        {"data": data, **roles.get(data, {}), **results.facts.get((data, str(row["evaluation"])), {}), **row}
        for data, by_name in results.scores.items()
        for row in plain_rows(by_name)
    ]
    failures: list[dict[str, object]] = [
        {"data": data, **roles.get(data, {}), "evaluation": name, "name": "failed", "error": str(error)}
        for (data, name), error in results.failures.items()
    ]
    best: list[dict[str, object]] = []
    for one in results.best():
        figure = Row(f"best {one.figure}", one.estimate).plain()
        best.append({"data": one.data, "evaluation": one.evaluation, **figure, "of": one.of})
    return [*figures, *best, *failures]


def best_line(best: Best) -> str:
    """Return in words which checkpoint is best on a data set.

    >>> best_line(Best("gsm8k", "a", "a@40", "direct/accuracy", Estimate(0.5, 0.4, 0.6, 9, 9), 3))
    'best of a on gsm8k: a@40, direct accuracy 0.500 ± 0.100, the highest of 3 on these problems'
    """
    value = cell(Row(best.figure, best.estimate))
    head = f"best of {best.run} on {best.data}: {best.evaluation}"
    return f"{head}, {label_title(best.figure)} {value}, the highest of {best.of} on these problems"


def figures_table(evaluated: Mapping[str, Scores]) -> list[list[str]]:
    """Return a table of every figure, heads first: a column for each evaluation, gains over the first."""
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
    ]
    return [["", *columns, *heads], *lines]


def _gain(figure: str, scores: Scores, base: Scores) -> Estimate | None:
    """Return the gain of a share over all problems, paired by problem; None for any other figure."""
    known = figure in scores.values and not figure.endswith("_tokens")
    return difference(scores, figure, base, figure) if known else None


def partly_shared(scores: Scores, base: Scores) -> dict[int, list[str]]:
    """Return the figures whose gain is over fewer problems than one of the two has values of, by how many."""
    found: dict[int, list[str]] = {}
    for figure in scores.values:
        gain = _gain(figure, scores, base)
        of = max(sum(map(bool, one.values.get(figure, {}).values())) for one in (scores, base))
        if gain is not None and gain.clusters < of:
            found.setdefault(gain.clusters, []).append(figure)
    return found


def _gain_cell(figure: str, scores: Scores, base: Scores) -> str:
    gain = _gain(figure, scores, base)
    return "" if gain is None else cell(Row(figure, gain, "difference"))


def label_title(label: str) -> str:
    """Return the title of a figure; what stands in brackets, a level or a subject, stays as it is.

    >>> label_title("debate/accuracy/round_0 [subject a_b]"), label_title("debate/winner_minus_direct")
    ('debate accuracy, round 0 [subject a_b]', 'debate winner minus direct')
    """
    name, bracket, rest = label.partition(" [")
    return title(name) + bracket + rest


def as_text(tables: Mapping[str, Sequence[Sequence[str]]], kind: Literal["md", "tex"]) -> str:
    r"""Return tables by title, heads first, as Markdown or LaTeX (booktabs; the title is a comment).

    >>> print(as_text({"sums": [["a", "b"], ["x_1", "2"]]}, "tex").splitlines()[6])
     x\_1 & 2   \\
    """
    from tabulate import tabulate

    style = {"md": "github", "tex": "latex_booktabs"}[kind]
    mark = {"md": "## ", "tex": "% "}[kind]
    texts = (
        (f"{mark}{' '.join(title.split())}\n\n" if title else "")
        + tabulate(lines[1:], headers=lines[0], tablefmt=style, disable_numparse=True)
        for title, lines in tables.items()
    )
    return "\n\n".join(texts) + "\n"
