"""How answers spread: who was right and then wrong, and whether the agent shown first is followed."""

from __future__ import annotations

from collections.abc import Iterator

from debate_rl.reports.figures import robust
from debate_rl.reports.figures.figure import Figure, figure
from debate_rl.reports.figures.study import Study


def cascade_figures(study: Study) -> Iterator[Figure]:
    """Yield the flip matrix as shares of all steps, two conditional ones, and the first agent's excess."""
    table, clusters = study.flips, study.clusters(study.flips)
    counts = {name: table[name].astype(float) for name in ("cc", "cw", "wc", "ww")}
    every = sum(counts.values())
    why = "no agent was graded in two rounds in a row"
    for name, count in counts.items():
        found = robust.ratio(count, every, clusters)
        yield figure(f"flips/{name.upper()}", found, "(flip:CC OR flip:CW OR flip:WC OR flip:WW)", why)
    vulnerable = robust.ratio(counts["cw"], counts["cc"] + counts["cw"], clusters)
    yield figure("cascade/vulnerability", vulnerable, "(flip:CC OR flip:CW)", "no agent was right before")
    recovered = robust.ratio(counts["wc"], counts["wc"] + counts["ww"], clusters)
    yield figure("cascade/recovery", recovered, "(flip:WC OR flip:WW)", "no agent was wrong before")
    adopted = robust.mean(study.adoptions["excess"], study.clusters(study.adoptions), signed=True)
    yield figure("cascade/first_listed", adopted, None, "nobody took an answer from some of the others")
