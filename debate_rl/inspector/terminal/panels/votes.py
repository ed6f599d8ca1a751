"""The votes of a debate round by round, the answers by round, and how agents and turns are called."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from debate.types import TurnId
from debate_rl.formatting import one_line
from debate_rl.inspector.terminal.grid import round_name
from debate_rl.inspector.terminal.style import DOUBT, FAINT, STRONG, TRUTHS, heading, letter, line, padded
from debate_rl.inspector.views.adoption import AdoptionCell, AdoptionView, Copy
from debate_rl.inspector.views.debate import DebateView
from debate_rl.inspector.views.graph import Arrow, RoundGraph


def who(view: DebateView, agent: int, most: int = 24) -> str:
    """Return an agent's number and persona."""
    return f"{agent + 1} {one_line(view.personas[agent].name, most)}"


def of_round(turn: TurnId, round_: int) -> str:
    """Return a turn's agent, with its round where it is another than expected.

    >>> of_round(TurnId(0, 1), 1), of_round(TurnId(0, 0), 1)
    ('1', '1 (round 1)')
    """
    return str(turn.agent + 1) if turn.round == round_ else f"{turn.agent + 1} (round {turn.round + 1})"


def spelled(turn: TurnId) -> str:
    """Return a turn in words.

    >>> spelled(TurnId(0, 1))
    'agent 1 in round 2'
    """
    return f"agent {turn.agent + 1} in round {turn.round + 1}"


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


WHO, ANSWER = 20, 18


def adoption_lines(view: DebateView, found: AdoptionView) -> list[Text | str]:
    """Return the map of answers, equal letters for equal answers, and the answers taken over."""
    heads = "".join(padded(round_name(view, round_), ANSWER) for round_ in range(view.rounds))
    lines: list[Text | str] = [
        heading("answers", f"{found.numbers} different; equal letters are equal answers"),
        line((" " * WHO + heads, FAINT)),
    ]
    for agent, row in enumerate(found.cells):
        shown = line(padded(who(view, agent), WHO - 1), " ")
        for one in row:
            shown.append_text(_cell(one))
        lines.append(shown)
    lines += ["", heading("taken over", _note(found))]
    return [*lines, *(line(_copied(view, copy)) for copy in found.copies)]


def _cell(one: AdoptionCell | None) -> Text:
    if one is None:
        return line(" " * ANSWER)
    sign, style = letter(one.correct)
    answer = "no answer" if one.answer is None else one_line(one.answer, 60)
    return line((padded(f"{name_of(one.number)} {sign} {answer}", ANSWER - 1), style), " ")


def name_of(number: int | None) -> str:
    """Return the letter of an answer.

    >>> name_of(0), name_of(27), name_of(None)
    ('a', 'b1', '–')
    """
    if number is None:
        return "–"
    return chr(ord("a") + number % 26) + (str(number // 26) if number >= 26 else "")


def _note(found: AdoptionView) -> str:
    if not found.copies:
        return "nobody gave a new answer that another had shown"
    return "new answers that another's turn in the prompt had given"


def _copied(view: DebateView, copy: Copy) -> str:
    source, target = view.turn(copy.source), view.turn(copy.target)
    answer = "" if target is None or target.answer is None else f": {one_line(target.answer, 60)}"
    marks = [letter(turn.correct)[0] if turn else "" for turn in (source, target)]
    return f"{spelled(copy.target)} ({marks[1]}) took it from {spelled(copy.source)} ({marks[0]}){answer}"
