"""The other views of a debate: answers, malformed parts, tokens, votes, why a reward, the fixture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import Response

from debate.types import TurnId
from debate_rl.inspector.views import (
    DebateView,
    FieldChange,
    RoundGraph,
    TokenPiece,
    TurnForensics,
    adoption_view,
    debate_view,
    parse_forensics,
    reparsed,
    token_view,
    vote_graphs,
)
from debate_rl.inspector.views.fixture import fixture_text
from debate_rl.inspector.views.reward import config_of, why
from debate_rl.inspector.web.debate_page import in_debate, opened
from debate_rl.inspector.web.drawing import Drawing, draw
from debate_rl.inspector.web.page import Asked
from debate_rl.inspector.web.site import Unknown

if TYPE_CHECKING:
    from debate_rl.config import Config

MOST_TOKENS, MOST_FAILURES, MOST_TURNS = 700, 60, 60
TONES = 4
"""Shades of an advantage, up and down."""


@dataclass(frozen=True, slots=True)
class Shade:
    """A token with the class of its colour."""

    token: TokenPiece
    tone: str


def chosen_turn(asked: Asked, view: DebateView) -> TurnId:
    """Return the turn of the address, or the winner's, or the first; Unknown where there is no such turn."""
    wanted = asked.turn() or view.winner or next((turn.id for turn in view.spoken()), None)
    if wanted is None or view.turn(wanted) is None:
        named = "there is no turn in it" if wanted is None else f"no turn {wanted.agent}.{wanted.round} in it"
        raise Unknown(f"debate {asked.id}: {named}")
    return wanted


def picker(view: DebateView, kind: str, chosen: TurnId) -> dict[str, object]:
    """Return the turns to choose from: all, or of a large debate those of the same agent or round."""
    turns = list(view.spoken())
    if len(turns) > MOST_TURNS:
        turns = [one for one in turns if one.id.round == chosen.round or one.id.agent == chosen.agent]
    numbers = sorted({one.id.round for one in turns})
    rounds = [
        (view.round_name(number).capitalize(), [one for one in turns if one.id.round == number])
        for number in numbers
    ]
    return {"picked": chosen, "choices": rounds, "pick_view": kind, "view": view}


def adoption(asked: Asked) -> Response:
    """Show the answers of each agent by round, equal ones alike, and who took over whose."""
    record = opened(asked)
    view, found = debate_view(asked.id, record), adoption_view(record)
    copies: dict[TurnId, list[TurnId]] = {}
    for copy in found.copies:
        copies.setdefault(copy.target, []).append(copy.source)
    rounds = [view.round_name(number).capitalize() for number in range(view.rounds)]
    return in_debate(
        asked,
        "adoption",
        view=view,
        found=found,
        copies=copies,
        rounds=rounds,
    )


def parse(asked: Asked) -> Response:
    """Show what is malformed, where, by which rule, and what today's parser reads."""
    record = opened(asked)
    view = debate_view(asked.id, record)
    changes: list[tuple[TurnId, Sequence[FieldChange]]] = [
        (turn.id, changed) for turn in record.debate.turns if (changed := reparsed(record, turn))
    ]
    found: list[TurnForensics] = [*parse_forensics(record)]
    return in_debate(
        asked,
        "parse",
        view=view,
        turns=found[:MOST_FAILURES],
        left_out=max(0, len(found) - MOST_FAILURES),
        most=MOST_FAILURES,
        changes=changes[:MOST_FAILURES],
        compared=len(record.debate.turns),
    )


def tokens(asked: Asked) -> Response:
    """Show one turn token by token, a page of it at a time."""
    record = opened(asked, tokens=True)
    view = debate_view(asked.id, record)
    chosen = chosen_turn(asked, view)
    found = token_view(record, chosen)
    start = min(asked.whole_number("from") or 0, max(0, len(found.tokens) - 1))
    part = found.tokens[start : start + MOST_TOKENS]
    largest = max((abs(one.advantage) for one in found.tokens if one.advantage), default=0.0)
    return in_debate(
        asked,
        "tokens",
        found=found,
        turn=view.turn(chosen),
        shades=[Shade(one, tone(one.advantage, largest)) for one in part],
        start=start,
        after=start + len(part) if start + len(part) < len(found.tokens) else None,
        before=max(0, start - MOST_TOKENS) if start else None,
        **picker(view, "tokens", chosen),
    )


def tone(advantage: float | None, largest: float) -> str:
    """Return the class of a token's colour: up or down, and how far of the turn's largest.

    >>> tone(1.0, 1.0), tone(-0.2, 1.0), tone(0.0, 1.0), tone(None, 1.0)
    ('up4', 'down1', 'even', 'unheld')
    """
    if advantage is None:
        return "unheld"
    if advantage == 0 or not largest:
        return "even"
    step = min(TONES, 1 + int(TONES * abs(advantage) / largest))
    return f"{'up' if advantage > 0 else 'down'}{step}"


MOST_CELLS = 700
"""Arrows and cells of matrices that a page has; of more, it has one round."""
MOST_LISTED = 120


@dataclass(frozen=True, slots=True)
class ShownRound:
    """A round's votes with their drawing; ``left_out``: votes that the list leaves out."""

    graph: RoundGraph
    name: str
    drawing: Drawing
    left_out: int


def graph(asked: Asked) -> Response:
    """Show the votes of each round, or of one where there are very many."""
    record = opened(asked)
    view, graphs = debate_view(asked.id, record), vote_graphs(record)
    wanted = asked.whole_number("round")
    if sum(_cells(one) for one in graphs) > MOST_CELLS and wanted is None:
        wanted = graphs[-1].round
    shown = [one for one in graphs if wanted is None or one.round == wanted]
    return in_debate(
        asked,
        "graph",
        view=view,
        graphs=[shown_round(one, view) for one in shown],
        others=[(one.round, view.round_name(one.round).capitalize()) for one in graphs if one not in shown],
        listed=MOST_LISTED,
        graded={turn.id: turn.grade for turn in view.spoken()},
    )


def shown_round(graph: RoundGraph, view: DebateView) -> ShownRound:
    """Return a round's votes as a page shows them."""
    left_out = max(0, len(graph.arrows) - MOST_LISTED)
    return ShownRound(graph, view.round_name(graph.round).capitalize(), draw(graph), left_out)


def _cells(graph: RoundGraph) -> int:
    return len(graph.arrows) + len(graph.solutions) ** 2


MOST_REASONS = 40
"""Votes, opponents or members of a group that are listed."""


def explained(asked: Asked) -> Response:
    """Show the chain of a turn: votes, rewards, baselines, advantage."""
    store, record = asked.store, opened(asked)
    view = debate_view(asked.id, record)
    chosen = chosen_turn(asked, view)
    config, note = _config(store.run)
    return in_debate(
        asked,
        "why",
        why=why(store, config, asked.id, chosen, note=note),
        turn=view.turn(chosen),
        most=MOST_REASONS,
        **picker(view, "why", chosen),
    )


def _config(run: Path) -> tuple[Config | None, str]:
    """Return a run's configuration, read again when its file changes."""
    try:
        found = (run / "config.toml").stat()
    except OSError:
        return config_of(run)
    return _kept(run, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=64)
def _kept(run: Path, changed: int, size: int) -> tuple[Config | None, str]:
    return config_of(run)


def download(asked: Asked) -> Response:
    """Answer with the fixture's JSON."""
    record = opened(asked)
    config, _ = config_of(asked.store.run)
    name = f"debate_{record.step}_{int(asked.id.partition('.')[2])}.json"
    content = fixture_text(record, config, source=f"{asked.name} {asked.id}")
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type="application/json", headers=headers)
