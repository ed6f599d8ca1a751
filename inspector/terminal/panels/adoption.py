"""Who gave which answer in which round, and who took it over from whom."""

from __future__ import annotations

from rich.text import Text

from inspector.terminal.columns import padded
from inspector.terminal.grid import round_name
from inspector.terminal.panels.names import spelled, who
from inspector.terminal.style import FAINT, heading, letter, line
from inspector.views.adoption import AdoptionCell, AdoptionView, Copy
from inspector.views.debate import DebateView
from learner.formatting import one_line

NAME, CELL = 20, 18


def adoption_lines(view: DebateView, found: AdoptionView) -> list[Text | str]:
    """Return the map of answers, equal letters for equal answers, and the answers taken over."""
    heads = "".join(padded(round_name(view, round_), CELL) for round_ in range(view.rounds))
    lines: list[Text | str] = [
        heading("answers", f"{found.numbers} different; equal letters are equal answers"),
        line((" " * NAME + heads, FAINT)),
    ]
    for agent, row in enumerate(found.cells):
        shown = line(padded(who(view, agent), NAME - 1), " ")
        for one in row:
            shown.append_text(_cell(one))
        lines.append(shown)
    lines += ["", heading("taken over", _note(found))]
    return [*lines, *(line(_copied(view, copy)) for copy in found.copies)]


def _cell(one: AdoptionCell | None) -> Text:
    if one is None:
        return line(" " * CELL)
    sign, style = letter(one.correct)
    answer = "no answer" if one.answer is None else one_line(one.answer, 60)
    return line((padded(f"{name_of(one.number)} {sign} {answer}", CELL - 1), style), " ")


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
