"""A debate as a short transcript: text for ``print``, and HTML for notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from itertools import groupby

from debate.prompting.shown import holds_solutions
from debate.types import Debate, Turn, TurnId

WIDTH = 76
"""Characters of a solution on a line of a transcript."""
STYLE = (
    "<style>.debate-rl th, .debate-rl td { text-align: left; vertical-align: top; white-space: pre-wrap; "
    "overflow-wrap: anywhere; max-width: 26em }</style>"
)


def transcript(debate: Debate, notes: Mapping[TurnId, str] | None = None) -> str:
    """Return a debate in plain text: for each turn its answer, its votes and the beginning of its solution.

    ``notes``: a short text for each turn, such as its grade. Control characters are replaced by U+FFFD.
    """
    lines = [debate.problem.question]
    if debate.problem.answer is not None:
        lines.append(f"gold answer: {debate.problem.answer}")
    wide = max(len(_name(debate, turn)) for turn in debate.turns) if debate.turns else 0
    for round_, turns in groupby(debate.turns, lambda turn: turn.id.round):
        lines += ["", _heading(debate, round_)]
        for turn in turns:
            told = (_answer(turn), (notes or {}).get(turn.id, ""), *votes_of(debate, turn.id))
            lines.append(f"{_name(debate, turn):<{wide}}  {'  '.join(filter(None, told))}".rstrip())
            if text := " ".join(_solution(turn).split()):
                lines.append(f"    {text if len(text) <= WIDTH else f'{text[: WIDTH - 1]}…'}")
    return "".join(char if char.isprintable() or char == "\n" else "\ufffd" for char in "\n".join(lines))


def html_of(debate: Debate, notes: Mapping[TurnId, str] | None = None) -> str:
    """Return a debate as an HTML table: a row for each round and a column for each agent.

    Texts of the model are escaped. ``notes`` are as in ``transcript``.
    """
    gold = "" if debate.problem.answer is None else f"<br>gold answer: {escape(debate.problem.answer)}"
    rows: list[str] = []
    for round_, turns in groupby(debate.turns, lambda turn: turn.id.round):
        cells = {turn.id.agent: _cell(debate, turn, (notes or {}).get(turn.id, "")) for turn in turns}
        columns = (f"<td>{cells.get(agent, '')}</td>" for agent in range(debate.protocol.num_agents))
        rows.append(f"<tr><th>{_heading(debate, round_)}</th>{''.join(columns)}</tr>")
    head = f"<p><b>{escape(debate.problem.question)}</b>{gold}</p>"
    return f'{STYLE}{head}<table class="debate-rl">{"".join(rows)}</table>'


def votes_of(debate: Debate, turn: TurnId) -> Iterator[str]:
    """Yield the votes that a turn cast, in handles, such as "vote M4 > Q2"."""
    handles = {one.id: one.handle for one in debate.turns}
    for vote in debate.votes:
        if vote.judge == turn:
            left, right = handles.get(vote.left, "?"), handles.get(vote.right, "?")
            better, worse = (right, left) if vote.outcome == "right" else (left, right)
            yield f"vote {better} {'=' if vote.outcome == 'tie' else '>'} {worse}"


def _cell(debate: Debate, turn: Turn, note: str) -> str:
    head = f"<small>{escape(_name(debate, turn))}</small>"
    said = (f"<b>{escape(_answer(turn))}</b>", escape(note), *map(escape, votes_of(debate, turn.id)))
    solution = f"<br>{escape(_solution(turn).strip())}" if _solution(turn) else ""
    return f"{head}<br>{' · '.join(part for part in said if part not in ('', '<b></b>'))}{solution}"


def _heading(debate: Debate, round_: int) -> str:
    return f"round {round_}" if holds_solutions(debate.protocol, round_) else f"round {round_}: votes only"


def _name(debate: Debate, turn: Turn) -> str:
    return f"{turn.handle} {debate.personas[turn.id.agent].name}"


def _answer(turn: Turn) -> str:
    return "" if turn.ballot else turn.parsed.answer or "no answer"


def _solution(turn: Turn) -> str:
    span = turn.parsed.solution
    return "" if span is None or turn.ballot else span.of(turn.completion.text)
