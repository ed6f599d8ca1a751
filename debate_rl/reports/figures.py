"""Figures of judgment, with intervals clustered by problem. tables.toml describes each figure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib.resources import files
from math import log
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray

from debate_rl.metrics import intervals
from debate_rl.metrics.intervals import Codes, Estimate, Numbered, Numbers
from debate_rl.reports.estimators import NotEstimable, correlation, logistic, slope
from debate_rl.reports.rows import NO_VOTE, Rows, Study
from transcripts import Record
from transcripts.filters.presets import PRESETS

TABLES: dict[str, Any] = tomllib.loads(
    Template((files("debate_rl.reports") / "tables.toml").read_text(encoding="utf-8")).substitute(
        {name: preset.filter for name, preset in PRESETS.items()}
    )
)
"""The contents of tables.toml, in which ``$NAME`` stands for a preset filter."""
GROUPS = ("persona", "fault", "round", "agent", "length", "step", "level", "subject")
"""Groups for accuracy, strict accuracy and coverage, as in ``judge/accuracy/round/1``."""
DECIDED = "judge.accuracy:>=0"
"""The filter of debates with a vote on a decidable pair, which has exactly one right side."""
GRADED = "(winner:right OR winner:wrong)"
MOST_LABELS, MOST_PERSONAS = 40, 20
"""Maximum number of groups of one kind, largest first; maximum number of personas with coefficients."""
STEP_BINS = 10
LENGTHS = ("less than half", "shorter", "about as long", "longer", "more than twice")
"""Length of the right solution relative to the wrong one, with edges at 1/2, 1/1.2, 1.2 and 2."""
LENGTH_EDGES = (-log(2), -log(1.2), log(1.2), log(2))
LEAST_CORRELATION = 0.3
"""Minimum correlation of winner and truth. Below it, votes are too unreliable as a reward."""
PER = 100.0
"""The number of steps per unit of a slope."""
Where = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure. ``why``: the reason if there is no estimate.

    ``filter``: the filter of its debates (docs/transcripts.md), "" for all, None if no filter can express
    them. ``flag``: a warning.
    """

    name: str
    estimate: Estimate | None
    filter: str | None
    why: str = ""
    flag: str = ""

    @property
    def about(self) -> dict[str, Any]:
        """The figure's row in tables.toml: its description and its source ("-" for none)."""
        return about(self.name)

    @property
    def range(self) -> tuple[float, float]:
        """The smallest and the largest possible value."""
        low, high = self.about.get("range", (0.0, 1.0))
        return low, high


def about(name: str) -> dict[str, Any]:
    """Return a figure's row in tables.toml."""
    name = re.sub(rf"^(judge/\w+)/({'|'.join(GROUPS)})/.*$", r"\1/<group>/<label>", name, flags=re.DOTALL)
    name = re.sub(r"^(regression/persona)/.*$", r"\1/<label>", name, flags=re.DOTALL)
    return TABLES["meaning"][name]


def judgment_figures(records: Iterable[Record]) -> list[Figure]:
    """Return every figure of docs/report.md, in order, after one pass over the records."""
    return figures_of(Study(records))


def figures_of(study: Study) -> list[Figure]:
    """Return every figure of the rows read so far."""
    parts = (accuracy_figures, _biases, _regression, winner_figures, cascade_figures, _graphs, _collusion)
    return [figure for part in parts for figure in part(study)]


def _figure(name: str, estimate: Estimate | None, *, why: str = "", flag: str = "") -> Figure:
    row = about(name)
    return Figure(
        name, estimate, row.get("debates"), "" if estimate else why or row.get("why", "no such cases"), flag
    )


def pair_rows(study: Study) -> dict[str, Rows]:
    """Return the decidable pairs as rows of accuracy, strict accuracy, coverage and ties."""
    table = study.pairs
    decidable = table["better"] != 0
    outcome, clusters = table["outcome"][decidable], study.clusters(table)[decidable]
    right, voted = outcome == table["better"][decidable], outcome != NO_VOTE
    due = np.ones(len(outcome), dtype=bool)
    return {
        "judge/accuracy": Rows(right, voted, clusters),
        "judge/strict_accuracy": Rows(right, due, clusters),
        "judge/coverage": Rows(voted, due, clusters),
        "judge/ties": Rows(outcome == 0, voted, clusters),
    }


def accuracy_figures(study: Study) -> Iterator[Figure]:
    """Yield accuracy, strict accuracy, coverage and ties, then the first three by group."""
    rows = pair_rows(study)
    yield from (_figure(name, intervals.ratio(*of)) for name, of in rows.items())
    for group, inside, filter in _groups(study):
        for name in ("judge/accuracy", "judge/strict_accuracy", "judge/coverage"):
            figure = _figure(f"{name}/{group}", intervals.ratio(*rows[name].of(inside)))
            yield replace(figure, filter=filter if name == "judge/accuracy" else None)


def _groups(study: Study) -> Iterator[tuple[str, Where, str | None]]:
    """Yield each group of the decidable pairs: its name, its pairs, and the filter of its debates."""
    table, decidable = study.pairs, study.pairs["better"] != 0
    level, source, step = (study.of_debate(name, table)[decidable] for name in ("level", "source", "step"))
    # "persona:" finds all debates with the persona, also those without its vote
    yield from _labelled("persona", [*study.personas], table["persona"][decidable])
    yield from _labelled("fault", [*study.faults], table["fault"][decidable])
    for kind in ("round", "agent"):
        numbers = table[kind][decidable]
        yield from ((f"{kind}/{number}", numbers == number, None) for number in np.unique(numbers).tolist())
    bins = np.digitize((table["length"] * table["better"])[decidable], LENGTH_EDGES)
    yield from ((f"length/{LENGTHS[index]}", bins == index, None) for index in np.unique(bins).tolist())
    low, high = (int(step.min()), int(step.max())) if len(step) else (0, 0)
    width = -(-(high - low + 1) // STEP_BINS)
    for start in range(low, low + STEP_BINS * width, width):
        inside, end = (step >= start) & (step < start + width), min(start + width - 1, high)
        label = f"{start}..{end}" if end > start else str(start)
        if inside.any():
            yield f"step/{label}", inside, f"step:{label} {DECIDED}"
    yield from _labelled("level", [*study.levels], level, "level")
    subjects = Numbered()  # the part of a source after the first slash
    of_source = np.array([subjects[text.partition("/")[2]] for text in study.sources], dtype=np.int64)
    for name, inside, _ in _labelled("subject", [*subjects], of_source[source]):
        texts = [text for text in study.sources if text.partition("/")[2] == name.partition("/")[2]]
        terms = " OR ".join(f"source:{_quoted(text)}" for text in texts)
        yield name, inside, f"({terms}) {DECIDED}" if len(texts) > 1 else f"{terms} {DECIDED}"


def _labelled(
    kind: str, texts: list[str], codes: NDArray[np.signedinteger], field: str = ""
) -> Iterator[tuple[str, Where, str | None]]:
    counts = np.bincount(codes, minlength=len(texts))
    for code in sorted(np.argsort(-counts, kind="stable")[:MOST_LABELS].tolist(), key=texts.__getitem__):
        if counts[code] and texts[code]:
            filter = f"{field}:{_quoted(texts[code])} {DECIDED}" if field else None
            yield f"{kind}/{texts[code]}", codes == code, filter


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def less_half(chosen: Where, clusters: Codes) -> Estimate | None:
    """Return a rate minus 1/2, with the interval of the rate minus 1/2."""
    rate, apart = intervals.mean(chosen, clusters), intervals.mean(chosen - 0.5, clusters, signed=True)
    if rate is None or apart is None:
        return None
    return replace(apart, low=rate.low - 0.5, high=rate.high - 0.5)


def own_work(study: Study) -> tuple[Where, Where, Codes]:
    """Return three columns (n,), one row per vote between a right and a wrong solution.

    The columns: whether the vote prefers the wrong solution, whether the wrong solution is the judge's own,
    and the problem. Votes on the judge's own wrong solution are compared with votes on pairs of others. In
    both cases, the judge's own answer is wrong.
    """
    table, clusters = study.pairs, study.clusters(study.pairs)
    wrong, own = -table["better"], table["own"]
    used = (table["outcome"] != NO_VOTE) & (wrong != 0)
    used &= ((own != 0) & (own == wrong)) | ((own == 0) & (table["self"] == 0))
    return (table["outcome"] == wrong)[used], (own != 0)[used], clusters[used]


def _biases(study: Study) -> Iterator[Figure]:
    """Yield biases on pairs equal in truth, figures of swapped pairs, and regression coefficients."""
    table = study.pairs
    equal = (np.abs(table["outcome"]) == 1) & (table["first"] == table["second"]) & (table["first"] >= 0)
    clusters, won, length = study.clusters(table)[equal], table["outcome"][equal] == 1, table["length"][equal]
    yield _figure("bias/position", less_half(won, clusters))
    longer, apart = won == (length > 0), length != 0
    yield _figure("bias/length", less_half(longer[apart], clusters[apart]))
    yield _figure("bias/self_preference", intervals.difference(*own_work(study)))
    kind, clusters = study.swaps["kind"], study.clusters(study.swaps)
    for name, value in (("consistency", 0), ("primacy", 1), ("recency", -1)):
        yield _figure(f"swaps/{name}", intervals.mean(kind == value, clusters))


def _regression(study: Study) -> Iterator[Figure]:
    """Yield logit P(first wins) on position, truth, own work, length and persona, over decided votes.

    If all votes of a persona have the same outcome, no coefficient has a finite estimate, so the regression
    is repeated without personas.
    """
    table = study.pairs
    used = (np.abs(table["outcome"]) == 1) & (table["first"] >= 0) & (table["second"] >= 0)
    columns: dict[str, NDArray[Any]] = {
        "correctness": table["first"][used] - table["second"][used],
        "own": table["own"][used],
        "length": table["length"][used],
    }
    absent = [name for name, column in columns.items() if not len(column) or np.ptp(column) == 0]
    varying = {name: column for name, column in columns.items() if name not in absent}
    without = {"position": np.ones(int(used.sum()), dtype=np.int8)} | varying
    # a column for each persona except the last; the effects of all personas sum to 0
    codes, texts = table["persona"][used], [*study.personas]
    present = sorted(np.unique(codes).tolist(), key=texts.__getitem__)
    coded = present[:-1] if len(present) <= MOST_PERSONAS else []
    last = (codes == present[-1]).astype(np.int8) if present else 0
    personas = {f"persona/{texts[code]}": (codes == code).astype(np.int8) - last for code in coded}
    design = without | personas
    won, clusters = table["outcome"][used] == 1, study.clusters(table)[used]
    found: dict[str, Estimate] = {}
    reasons = dict.fromkeys(absent, "not estimable: it does not vary")
    for fitted in (design, without) if len(without) < len(design) else (design,):
        try:
            found = dict(zip(fitted, logistic([*fitted.values()], won, clusters), strict=True))
            break
        except NotEstimable as error:
            reasons = dict.fromkeys(fitted, f"not estimable: {error}") | reasons
    flag = "without personas" if found and len(found) < len(design) else ""
    for name in (*design, *absent):
        marked = flag if name in found else ""
        yield _figure(f"regression/{name}", found.get(name), why=reasons.get(name, ""), flag=marked)


def winner_rows(study: Study) -> dict[str, Rows]:
    """Return the graded winners as rows of accuracy, its differences, and whether the winner was random."""
    table, clusters = study.winners, study.clusters(study.winners)
    right, rights = table["right"].astype(float), table["rights"].astype(float)
    share, every = rights / table["graded"], np.ones(len(right), dtype=bool)
    return {
        "winner/accuracy": Rows(right, every, clusters),
        "winner/lift": Rows(right - share, every, clusters),
        "winner/mixed_accuracy": Rows(right, (share > 0) & (share < 1), clusters),
        "winner/oracle_gap": Rows((rights > 0) - right, every, clusters),
        "winner/minus_majority": Rows(right - table["majority"], every, clusters),
        "winner/drawn": Rows(table["drawn"].astype(float), every, clusters),
    }


def winner_figures(study: Study) -> Iterator[Figure]:
    """Yield winner accuracy, its differences, and how well scores rank answers by truth."""
    table, clusters = study.winners, study.clusters(study.winners)
    # with a final ballot, the last judged round is the last round ("accuracy.last_round")
    final = bool(study.of_debate("final", table).all())
    mixed = f"{GRADED} accuracy.last_round:>0 accuracy.last_round:<1" if final else None
    for name, rows in winner_rows(study).items():
        figure = _figure(name, intervals.ratio(*rows, signed=not name.endswith(("accuracy", "drawn"))))
        yield replace(figure, filter=mixed) if name == "winner/mixed_accuracy" else figure
    yield _figure("winner/auc", _mean_of_known(table["auc"], clusters))
    yield _figure("winner/tau_b", _mean_of_known(table["tau"], clusters, signed=True))
    right, rights, graded = (table[name].astype(float) for name in ("right", "rights", "graded"))
    ones = np.ones(len(right))
    linked = correlation(np.stack([graded, ones, rights, ones, rights, right]), clusters)
    flag = f"below {LEAST_CORRELATION}" if linked and linked.high < LEAST_CORRELATION else ""
    yield _figure("winner/correlation", linked, flag=flag)


def _mean_of_known(values: Numbers, clusters: Codes, *, signed: bool = False) -> Estimate | None:
    return intervals.ratio(values, ~np.isnan(values), clusters, signed=signed)


def cascade_figures(study: Study) -> Iterator[Figure]:
    """Yield the flip matrix, two conditional rates, and the excess adoption from the agent shown first."""
    table, clusters = study.flips, study.clusters(study.flips)
    counts = {name: table[name].astype(float) for name in ("cc", "cw", "wc", "ww")}
    for name, count in counts.items():
        yield _figure(f"flip/{name.upper()}", intervals.ratio(count, sum(counts.values()), clusters))
    right, wrong = counts["cc"] + counts["cw"], counts["wc"] + counts["ww"]
    yield _figure("cascade/vulnerability", intervals.ratio(counts["cw"], right, clusters))
    yield _figure("cascade/recovery", intervals.ratio(counts["wc"], wrong, clusters))
    adopted = intervals.mean(study.adoptions["excess"], study.clusters(study.adoptions), signed=True)
    yield _figure("cascade/first_listed", adopted)


def _graphs(study: Study) -> Iterator[Figure]:
    table, clusters = study.graphs, study.clusters(study.graphs)
    yield _figure("graph/cycles", intervals.mean(table["cycle"], clusters))
    yield _figure("graph/condorcet", intervals.mean(table["condorcet"], clusters))
    rounds, clusters = study.rounds, study.clusters(study.rounds)
    yield _figure("graph/circular_triads", intervals.ratio(rounds["circular"], rounds["triads"], clusters))
    for name in ("zeta", "slater"):
        yield _figure(f"graph/{name}", _mean_of_known(rounds[name], clusters))


def _collusion(study: Study) -> Iterator[Figure]:
    """Yield the slopes of the winner's peer reward and accuracy, their difference, reciprocity, and entropy.

    The mean over all peer rewards is not informative, because peer rewards of a debate sum to zero.
    """
    table, clusters = study.winners, study.clusters(study.winners)
    steps = study.of_debate("step", table) / PER
    peer, right = (1.0 + table["score"]) / 2, table["right"].astype(float)
    for name, values in (("peer", peer), ("truth", right), ("gap", peer - right)):
        yield _figure(f"collusion/{name}_trend", slope(steps, values, clusters))
    talk, clusters = study.talk, study.clusters(study.talk)
    returned = intervals.ratio(talk["given"], talk["dyads"], clusters, signed=True)
    yield _figure("collusion/reciprocity", returned)
    known = ~np.isnan(talk["entropy"])
    entropy, clusters = talk["entropy"][known], clusters[known]
    yield _figure("collusion/entropy", intervals.mean(entropy, clusters))
    trend = slope((study.of_debate("step", talk) / PER)[known], entropy, clusters)
    yield _figure("collusion/entropy_trend", trend)
