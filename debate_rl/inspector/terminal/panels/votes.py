"""The votes of a debate round by round, and the answers by round."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from debate.types import TurnId
from debate_rl.formatting import one_line, padded
from debate_rl.inspector.terminal.style import DOUBT, FAINT, STRONG, heading, line, sign
from debate_rl.inspector.views.adoption import AdoptionCell, AdoptionView, Copy
from debate_rl.inspector.views.debate import DebateView
from debate_rl.inspector.views.graph import Arrow, RoundGraph

CELL, NAME, FEW = 6, 26, 6
SIGNS = "✓ right  ✗ wrong  ? undecidable  = tie  ↻ in a cycle  – does not count"


def vote_lines(view: DebateView, graphs: Sequence[RoundGraph]) -> list[Text | str]:
    """Return the matrix and the votes of each judged round, the last one first."""
    if not graphs:
        return [line(("no votes were cast, and there is no malformed line of one", FAINT))]
    lines: list[Text | str] = [line((SIGNS, FAINT))]
    for graph in reversed(graphs):
        lines += ["", heading(f"votes on round {graph.round}", _sum(graph)), *_outcome(view, graph)]
        lines += [*_matrix(view, graph), *(_arrow(view, graph, arrow) for arrow in graph.arrows)]
        for unread in graph.unread:
            reason = f"– {_handle(view, unread.judge)}: no vote, {unread.reason.replace('_', ' ')}"
            lines.append(line((reason, DOUBT), (f"  {one_line(unread.line, 200)}", FAINT)))
    return lines


def _sum(graph: RoundGraph) -> str:
    valid = [arrow for arrow in graph.arrows if arrow.counts]
    decided = [arrow for arrow in valid if arrow.truth != "undecidable"]
    right = sum(arrow.truth == "right" for arrow in decided)
    judged = f", {right} of {len(decided)} decidable are right" if decided else ""
    return f"{len(valid)} of {len(graph.arrows)} votes are valid{judged}"


def _handle(view: DebateView, turn: TurnId, round_: int | None = None) -> str:
    """Return the handle of a turn, with its round where it is another than expected."""
    expected = round_ in (None, turn.round)
    return one_line(view.handles[turn.agent] if expected else view.placed(turn), 20)


def _outcome(view: DebateView, graph: RoundGraph) -> list[Text]:
    texts = [
        "↻ cycle: " + ", ".join(_handle(view, turn, graph.round) for turn in cycle) for cycle in graph.cycles
    ]
    if graph.condorcet is not None:
        texts.append(f"{_handle(view, graph.condorcet, graph.round)} beats every other")
    return [line((text, STRONG)) for text in texts]


def _matrix(view: DebateView, graph: RoundGraph) -> list[Text]:
    """Return the rows of the matrix: wins of the row's solution over the column's."""
    names = [_handle(view, turn, graph.round) for turn in graph.solutions]
    width = max(CELL if len(names) <= FEW else CELL - 2, *(len(name) + 1 for name in names))
    heads = "".join(padded(name, width, left=False) for name in names)
    rows = [line((padded("beats (wins; = ties)", NAME) + heads, FAINT))]
    for index, turn in enumerate(graph.solutions):
        shown = view.turn(turn)
        name = one_line(view.who(turn.agent), 40) if turn.round == graph.round else names[index]
        row = line(sign(shown.grade if shown else ""), " ", padded(name, NAME - 2))
        for other in range(len(graph.solutions)):
            row.append(padded(graph.wins(index, other), width, left=False), FAINT if index == other else "")
        rows.append(row)
    return rows


def _arrow(view: DebateView, graph: RoundGraph, arrow: Arrow) -> Text:
    winner, loser = (_handle(view, turn, graph.round) for turn in (arrow.winner, arrow.loser))
    vote = f"{winner} {'=' if arrow.tie else '>'} {loser}"
    note = f"  does not count: {arrow.dropped.replace('_', ' ')}" if arrow.dropped else ""
    return line(
        sign(arrow.truth) if arrow.counts else ("–", FAINT),
        f" {padded(_handle(view, arrow.judge), 4)} {padded(vote, 8)}",
        ("  ↻" if arrow.in_cycle else "", STRONG),
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
    lines += [_arrow(view, graph, arrow) for graph, arrow in got]
    lines += ["", heading("votes by this turn", "" if given else "none")]
    return [*lines, *(_arrow(view, graph, arrow) for graph, arrow in given), ""]


WHO, ANSWER = 20, 18


def adoption_lines(view: DebateView, adoption: AdoptionView) -> list[Text | str]:
    """Return the map of answers, equal letters for equal answers, and the answers taken over."""
    heads = "".join(padded(view.round_name(round_), ANSWER) for round_ in range(view.rounds))
    lines: list[Text | str] = [
        heading("answers", f"{adoption.numbers} different; equal letters are equal answers"),
        line((" " * WHO + heads, FAINT)),
    ]
    for agent, row in enumerate(adoption.cells):
        shown = line(padded(one_line(view.who(agent), 40), WHO - 1), " ")
        for cell in row:
            shown.append_text(_cell(cell))
        lines.append(shown)
    lines += ["", heading("taken over", _note(adoption))]
    return [*lines, *(line(_copied(view, copy)) for copy in adoption.copies)]


def _cell(cell: AdoptionCell | None) -> Text:
    if cell is None:
        return line(" " * ANSWER)
    mark, style = sign(cell.grade)
    answer = "" if cell.answer is None else one_line(cell.answer, 60)
    return line((padded(f"{cell.letter} {mark} {answer}", ANSWER - 1), style), " ")


def _note(adoption: AdoptionView) -> str:
    if not adoption.copies:
        return "nobody gave a new answer that another had shown"
    return "new answers that another's turn in the prompt had given"


def _copied(view: DebateView, copy: Copy) -> str:
    source, target = view.turn(copy.source), view.turn(copy.target)
    answer = "" if target is None or target.answer is None else f": {one_line(target.answer, 60)}"
    marks = [sign(turn.grade)[0] if turn else "" for turn in (source, target)]
    first, second = (one_line(view.spelled(turn), 60) for turn in (copy.target, copy.source))
    return f"{first} ({marks[1]}) took it from {second} ({marks[0]}){answer}"
