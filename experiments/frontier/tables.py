"""The tables of a frontier, and its figures as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

from debate_rl.metrics.intervals import Estimate
from experiments.frontier.labels import Worth, accuracies
from experiments.frontier.results import Cell, OfSeed, difference, less
from experiments.frontier.rules import Rule, told, ttrl_of

Table = list[tuple[str, ...]]


def arm_table(cells: Sequence[Cell]) -> Table:
    """Return a row for each cell: p_v, p_m, figures at the end, and gains."""
    heads = (
        *("prior", "signal", "steps", "p_v", "p_m"),
        *("first answer", "gained", "winner", "winner gained", "less TTRL"),
    )
    return [heads, *(_row(one, cells) for one in cells)]


def _row(cell: Cell, cells: Sequence[Cell]) -> tuple[str, ...]:
    other = ttrl_of(cell, cells)
    beside = less(cell, other) if other is not None and other is not cell else None
    winners = [one.winner[-1][1] for one in cell.seeds.values() if one.winner]
    return (
        *(cell.prior, cell.signal, str(cell.steps), _share(cell.p_v()), _share(cell.p_m())),
        *(_share(fmean(accuracies(cell))), _told(cell.gain)),
        *(_share(fmean(winners) if winners else None), _told(cell.winner_gain), _told(beside)),
    )


def cost_table(cells: Sequence[Cell]) -> Table:
    """Return what each cell took, in the mean of its seeds: labels that counted, tokens of training, and what
    its judge gained or lost.
    """
    rows: Table = [("prior", "signal", "steps", "labels", "tokens generated", "tokens read", "judge gained")]
    for cell in cells:
        ones = list(cell.seeds.values())
        took = ([one.labels for one in ones], [one.generated for one in ones], [one.read for one in ones])
        means = (f"{fmean(each):,.0f}" for each in took)
        rows.append((cell.prior, cell.signal, str(cell.steps), *means, _told(cell.judge_gain)))
    return rows


def filled(table: Table) -> Table:
    """Return a table without the columns that are blank in all rows.

    >>> filled([("prior", "signal"), ("", "votes"), ("", "ttrl")])
    [('signal',), ('votes',), ('ttrl',)]
    """
    kept = [place for place in range(len(table[0])) if any(row[place] for row in table[1:])]
    return [tuple(row[place] for place in kept) for row in table]


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _told(estimate: Estimate | None) -> str:
    return "" if estimate is None else told(estimate)


def start_table(cells: Sequence[Cell]) -> Table:
    """Return p_v, p_c and p_m by round before training and of what training showed, of each cell."""
    shares = ("p_v", "p_c", "p_m")
    rows: Table = [("prior", "signal", "round", "pairs before", *shares, "pairs in training", *shares)]
    for cell in cells:
        for round_, before in cell.start.items():
            shown = [one.shown[round_] for one in cell.seeds.values() if round_ in one.shown]
            means = [fmean(getattr(one, name) for one in shown) if shown else None for name in shares]
            seen = (str(sum(one.pairs for one in shown)), *map(_share, means))
            own = (str(before.pairs), *(_share(getattr(before, name)) for name in shares))
            rows.append((cell.prior, cell.signal, str(round_), *own, *seen))
    return rows


def rule_table(rules: Sequence[Rule]) -> Table:
    """Return each rule with its verdict, and how many of its cells contradict it or are unclear."""
    rows = ((one, (one.tested, one.against, one.unsure)) for one in rules)
    return [
        ("rule", "claim", "verdict", "cells", "against", "too wide"),
        *((one.name, one.claim, one.verdict, *(str(len(each)) for each in counts)) for one, counts in rows),
    ]


def worth_lines(worths: Sequence[Worth]) -> list[str]:
    """Return in words how many labels signals are worth."""
    return [_worth_line(one) for one in worths]


def _worth_line(one: Worth) -> str:
    name = " ".join(word for word in (one.prior, one.signal) if word)
    return f"{name} without labels: {one.text}"


def trace_table(cells: Sequence[Cell]) -> Table:
    """Return of the longest runs peak and end of first answers and winners, in the mean of the seeds."""
    most = max((one.steps for one in cells), default=0)
    rows: Table = [
        ("prior", "signal", "steps", "first answer: start", "peak", "end", "winner: start", "peak", "end")
    ]
    for cell in (one for one in cells if one.steps == most):
        traces = [
            [one.first for one in cell.seeds.values()],
            [one.winner for one in cell.seeds.values() if one.winner],
        ]
        rows.append((cell.prior, cell.signal, str(most), *(text for each in traces for text in _ends(each))))
    return rows


def _ends(traces: Sequence[Sequence[tuple[int, float]]]) -> tuple[str, str, str]:
    if not traces:
        return "", "", ""
    mean = [fmean(trace[place][1] for trace in traces) for place in range(min(map(len, traces)))]
    return f"{mean[0]:.3f}", f"{max(mean):.3f}", f"{mean[-1]:.3f}"


def plain(cells: Sequence[Cell], rules: Sequence[Rule], worths: Sequence[Worth]) -> dict[str, Any]:
    """Return all of it for a JSON file."""
    return {
        "cells": [_plain_cell(one, cells) for one in cells],
        "rules": [asdict(one) | {"verdict": one.verdict} for one in rules],
        "worth": [asdict(one) for one in worths],
    }


def _plain_cell(cell: Cell, cells: Sequence[Cell]) -> dict[str, Any]:
    other = ttrl_of(cell, cells)
    other = None if other is cell else other
    beside = {} if other is None else difference(cell, other)
    estimates: Mapping[str, Estimate | None] = {
        "gain": cell.gain,
        "winner_gain": cell.winner_gain,
        "judge_gain": cell.judge_gain,
        "less_ttrl": None if other is None else less(cell, other),
    }
    return {
        **{name: getattr(cell, name) for name in ("prior", "signal", "control", "steps")},
        "start": {round_: one.model_dump() for round_, one in cell.start.items()},
        **{name: None if one is None else asdict(one) for name, one in estimates.items()},
        "jitter_sd": cell.jitter_sd,
        "seeds": {seed: _plain_seed(one, beside.get(seed)) for seed, one in cell.seeds.items()},
    }


def _plain_seed(one: OfSeed, beside: Estimate | None) -> dict[str, Any]:
    names = ("first", "winner", "generated", "read", "labels", "gains")
    shown = {round_: judged.model_dump() for round_, judged in one.shown.items()}
    estimates = {
        "gain": one.gain,
        "winner_gain": one.winner_gain,
        "judge_gain": one.judge_gain,
        "less_ttrl": beside,
    }
    values = {name: None if found is None else found.value for name, found in estimates.items()}
    return {**values, **{name: getattr(one, name) for name in names}, "shown": shown}
