"""The votes of a debate, round by round: who beat whom, and what truth says of each vote."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from inspector.terminal.columns import padded
from inspector.terminal.panels.names import of_round, who
from inspector.terminal.style import DOUBT, FAINT, STRONG, TRUTHS, heading, letter, line
from inspector.views.debate import DebateView
from inspector.views.graph import Arrow, RoundGraph
from learner.formatting import one_line

CELL, NAME, FEW = 6, 26, 6
SIGNS = "✓ right  ✗ wrong  ? undecidable  = tie  ↻ in a cycle  – does not count"


def vote_lines(view: DebateView, graphs: Sequence[RoundGraph]) -> list[Text | str]:
    """Return the matrix and the votes of each judged round, the last one first."""
    if not graphs:
        return [line(("no votes were cast, and no line of one could be read", FAINT))]
    lines: list[Text | str] = [line((SIGNS, FAINT))]
    for graph in reversed(graphs):
        lines += ["", heading(f"votes on round {graph.round + 1}", _sum(graph)), *_outcome(graph)]
        lines += [*_matrix(view, graph), *(_arrow(graph, arrow) for arrow in graph.arrows)]
        for unread in graph.unread:
            words = one_line(unread.line, 200)
            told = f"– judge {unread.judge.agent + 1}: not read, {unread.reason.replace('_', ' ')}"
            lines.append(line((told, DOUBT), (f"  {words}", FAINT)))
    return lines


def _sum(graph: RoundGraph) -> str:
    count = [arrow for arrow in graph.arrows if arrow.counts]
    decided = [arrow for arrow in count if arrow.truth != "undecidable"]
    right = sum(arrow.truth == "right" for arrow in decided)
    judged = f", {right} of {len(decided)} right where truth decides" if decided else ""
    return f"{len(count)} of {len(graph.arrows)} votes count{judged}"


def _outcome(graph: RoundGraph) -> list[Text]:
    told = [
        "↻ cycle of " + ", ".join(of_round(turn, graph.round) for turn in cycle) for cycle in graph.cycles
    ]
    if graph.condorcet is not None:
        told.append(f"{of_round(graph.condorcet, graph.round)} beats every other")
    return [line((words, STRONG)) for words in told]


def _matrix(view: DebateView, graph: RoundGraph) -> list[Text]:
    """Return the rows of the matrix: wins of the row's solution over the column's."""
    names = [of_round(turn, graph.round) for turn in graph.solutions]
    width = max(CELL if len(names) <= FEW else CELL - 2, *(len(name) + 1 for name in names))
    heads = "".join(padded(name, width, left=False) for name in names)
    rows = [line((padded("beats (wins; = ties)", NAME) + heads, FAINT))]
    for place, turn in enumerate(graph.solutions):
        shown = view.turn(turn)
        sign, style = letter(shown.correct if shown else "")
        name = who(view, turn.agent) if turn.round == graph.round else names[place]
        row = line((sign, style), " ", padded(name, NAME - 2))
        for other in range(len(graph.solutions)):
            row.append(padded(_wins(graph, place, other), width, left=False), FAINT if place == other else "")
        rows.append(row)
    return rows


def _wins(graph: RoundGraph, place: int, other: int) -> str:
    if place == other:
        return "·"
    ties = graph.ties[place][other]
    wins = graph.matrix[place][other] - ties / 2
    return f"{wins:g}" + ("=" * ties if ties <= 2 else f"+{ties}=")


def _arrow(graph: RoundGraph, arrow: Arrow) -> Text:
    sign, style = TRUTHS[arrow.truth] if arrow.counts else ("–", FAINT)
    winner, loser = of_round(arrow.winner, graph.round), of_round(arrow.loser, graph.round)
    vote = f"{winner} {'=' if arrow.tie else '>'} {loser}"
    judge = f"judge {arrow.judge.agent + 1}"
    note = f"  does not count: {arrow.dropped.replace('_', ' ')}" if arrow.dropped else ""
    circle = "  ↻" if arrow.in_cycle else ""
    return line(
        (sign, style),
        f" {padded(judge, 9)} {padded(vote, 8)}",
        (circle, STRONG),
        (note, DOUBT),
        ("  " + one_line(arrow.line, 200), FAINT),
    )


def chosen_votes(graphs: Sequence[RoundGraph], view: DebateView, agent: int, round_: int) -> list[Text | str]:
    """Return the votes that a turn gave and got, for the side of a wide screen."""
    given = [(g, a) for g in graphs for a in g.arrows if a.judge.agent == agent and a.judge.round == round_]
    got = [
        (g, a)
        for g in graphs
        for a in g.arrows
        if any(side.agent == agent and side.round == round_ for side in (a.winner, a.loser))
    ]
    lines: list[Text | str] = [heading("votes on this turn", "" if got else "none")]
    lines += [_arrow(graph, arrow) for graph, arrow in got]
    lines += ["", heading("votes by this turn", "" if given else "none")]
    for graph, arrow in given:
        lines.append(_arrow(graph, arrow))
    return [*lines, ""]
