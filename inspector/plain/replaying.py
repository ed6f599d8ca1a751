"""Replays of a run as lines: which there are, what changed under the other scheme, one debate of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inspector.plain.forms import as_json as json_of
from inspector.plain.paper import Paper, fitted, widths_of
from inspector.views.checked import named
from inspector.views.replays import DebateReplay, ReplayComparison, ReplayName, StreamChange
from learner.formatting import fixed, percent, safe
from learner.replay.reading import PARTS

SHARES, MEANS = ("flipped", "gained", "lost"), ("old", "new", "moved")


def print_replays(found: Sequence[ReplayName], paper: Paper, *, as_json: bool = False) -> None:
    """Print the replays, a line each."""
    if as_json:
        for one in found:
            paper.json(json_of(one))
        return
    for one in found:
        told = f"{one.changed} of {one.debates} debates change" if not one.problem else one.problem
        paper.line(f"{safe(one.name)}: {safe(told)}")
    if not found:
        paper.line("no replays; debate replay RUN KEY=VALUE makes one")


def print_replay(found: ReplayComparison, paper: Paper, *, as_json: bool = False) -> None:
    """Print a replay's figures, by stream, and by stream, persona and round, and the debates to open."""
    if as_json:
        paper.json({"schema": 1, **json_of(found), "folder": str(found.folder)})
        return
    paper.line(paper.paint(f"replay {safe(found.name)}: {safe(' '.join(found.overrides))}", "bold"))
    shown = f", of {safe(found.filter)}" if found.filter else ""
    paper.line(f"{found.changed} of {found.debates} debates{shown} have other advantages")
    paper.line(f"{found.differ} of {found.checked} were not stored as the run's own scheme gives them")
    if found.damaged_lines:
        paper.line(f"{found.damaged_lines} lines could not be read; their groups lack a debate")
    for line in _table([*found.streams, *found.cells]):
        paper.line(line)
    named_ids = ", ".join(f"{safe(one.id)} ({one.change:.3g})" for one in found.most_changed)
    paper.line(f"these change most (sum of |new - old|): {named_ids or 'none'}")


def _table(changes: Sequence[StreamChange]) -> Iterator[str]:
    rows: list[Sequence[str]] = [("stream", "persona", "round", "turns", *SHARES, *MEANS)]
    rows += [_cells(one) for one in changes]
    widths = widths_of(rows)
    for row in rows:
        cells = zip(row, widths, strict=True)
        yield "  ".join(fitted(cell, width, right=place > 2) for place, (cell, width) in enumerate(cells))


def _cells(one: StreamChange) -> tuple[str, ...]:
    """Return a row; rounds count from 1 for people."""
    where = (
        "all" if one.persona is None else safe(one.persona),
        "all" if one.round is None else one.round + 1,
    )
    shares = (percent(getattr(one, name)) for name in SHARES)
    means = (fixed(getattr(one, name), "+.3f", none="-") for name in MEANS)
    return safe(one.stream), where[0], str(where[1]), str(one.turns), *shares, *means


def print_debate_replay(found: DebateReplay, paper: Paper, *, as_json: bool = False) -> None:
    """Print one debate under both schemes: the advantages of each turn, old and new."""
    if as_json:
        paper.json({"schema": 1, **json_of(found)})
        return
    paper.line(paper.paint(f"debate {safe(found.id)}: {safe(found.problem)}", "bold"))
    rows: list[Sequence[str]] = [("turn", "persona", *PARTS)]
    for turn in found.turns:
        cells = (_pair(*turn.advantages[name]) for name in PARTS)
        rows.append((named(turn.turn), safe(turn.persona), *cells))
    widths = widths_of(rows)
    for row in rows:
        paper.line("  ".join(map(fitted, row, widths)).rstrip())
    paper.line(f"sum of |new - old| over generator, judge and format: {found.change:.3g}")
    if found.differs:
        paper.line("what is stored is not what the run's own scheme gives")


def _pair(old: float | None, new: float | None) -> str:
    before, after = fixed(old, "+.3f", none="-"), fixed(new, "+.3f", none="-")
    return before if old == new else f"{before} -> {after}"
