"""The other views of a debate: answers, malformed parts, tokens, votes, why a reward, the fixture."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import Response

from debate.types import TurnId
from debate_rl.inspector.views import (
    DebateView,
    RoundGraph,
    adoption_view,
    debate_view,
    parse_forensics,
    reparsed,
    token_view,
    vote_graphs,
)
from debate_rl.inspector.views.fixture import fixture_text
from debate_rl.inspector.views.prompts import DebatePrompts, PromptView
from debate_rl.inspector.views.reward import config_of, evaluation_of, why
from debate_rl.inspector.web.debate_page import in_debate, is_evaluated, read_record
from debate_rl.inspector.web.drawing import Drawing, draw
from debate_rl.inspector.web.page import PageRequest
from debate_rl.inspector.web.rendering import Clip, clip
from debate_rl.inspector.web.site import NotFound
from transcripts.record import named

if TYPE_CHECKING:
    from debate_rl.config import Config

MOST_TOKENS, MOST_FAILURES, MOST_TURNS = 700, 60, 60
TONES = 4
"""Shades of an advantage, up and down."""


def chosen_turn(request: PageRequest, view: DebateView) -> TurnId:
    """Return the turn of the address, or the winner's, or the first; NotFound where there is no such turn."""
    turn = request.turn() or view.winner or next((turn.id for turn in view.spoken()), None)
    if turn is None or view.turn(turn) is None:
        missing = "there is no turn in it" if turn is None else f"no turn {named(turn)} in it"
        raise NotFound(f"debate {request.id}: {missing}")
    return turn


def picker(view: DebateView, kind: str, chosen: TurnId) -> dict[str, object]:
    """Return the turns to choose from: all, or of a large debate those of the same agent or round."""
    turns = list(view.spoken())
    if len(turns) > MOST_TURNS:
        turns = [turn for turn in turns if turn.id.round == chosen.round or turn.id.agent == chosen.agent]
    numbers = sorted({turn.id.round for turn in turns})
    rounds = [
        (view.round_name(number).capitalize(), [turn for turn in turns if turn.id.round == number])
        for number in numbers
    ]
    return {"picked": chosen, "choices": rounds, "pick_view": kind, "turn": view.turn(chosen)}


def adoption(request: PageRequest) -> Response:
    """Show the answers of each agent by round, equal ones alike, and who took over whose."""
    record = read_record(request)
    view, answers = debate_view(request.id, record), adoption_view(record)
    copies: dict[TurnId, list[TurnId]] = {}
    for copy in answers.copies:
        copies.setdefault(copy.target, []).append(copy.source)
    rounds = [view.round_name(number).capitalize() for number in range(view.rounds)]
    return in_debate(request, "adoption", view, adoption=answers, copies=copies, rounds=rounds)


def parse(request: PageRequest) -> Response:
    """Show what is malformed, where, by which rule, and what today's parser reads."""
    record = read_record(request)
    changes = [(turn.id, changed) for turn in record.debate.turns if (changed := reparsed(record, turn))]
    malformed = parse_forensics(record)
    return in_debate(
        request,
        "parse",
        debate_view(request.id, record),
        turns=malformed[:MOST_FAILURES],
        left_out=max(0, len(malformed) - MOST_FAILURES),
        most=MOST_FAILURES,
        changes=changes[:MOST_FAILURES],
        compared=len(record.debate.turns),
    )


def tokens(request: PageRequest) -> Response:
    """Show one turn token by token, a page of it at a time."""
    record = read_record(request, tokens=True)
    view = debate_view(request.id, record)
    chosen = chosen_turn(request, view)
    shown = token_view(record, chosen, evaluation=evaluation_of(request.store.run))
    start = min(request.whole_number("from") or 0, max(0, len(shown.tokens) - 1))
    part = shown.tokens[start : start + MOST_TOKENS]
    largest = max((abs(token.advantage) for token in shown.tokens if token.advantage), default=0.0)
    return in_debate(
        request,
        "tokens",
        view,
        shown=shown,
        shades=[(token, tone(token.advantage, largest)) for token in part],
        start=start,
        after=start + len(part) if start + len(part) < len(shown.tokens) else None,
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


def graph(request: PageRequest) -> Response:
    """Show the votes of each round, or of one where there are very many."""
    record = read_record(request)
    view, graphs = debate_view(request.id, record), vote_graphs(record)
    round_ = request.whole_number("round")
    if round_ is None and sum(len(graph.arrows) + len(graph.solutions) ** 2 for graph in graphs) > MOST_CELLS:
        round_ = graphs[-1].round
    rounds = [shown_round(graph, view) for graph in graphs]
    return in_debate(
        request,
        "graph",
        view,
        graphs=[shown for shown in rounds if round_ in (None, shown.graph.round)],
        others=[shown for shown in rounds if round_ not in (None, shown.graph.round)],
        listed=MOST_LISTED,
        graded={turn.id: turn.grade for turn in view.spoken()},
    )


def shown_round(graph: RoundGraph, view: DebateView) -> ShownRound:
    """Return a round's votes as a page shows them."""
    left_out = max(0, len(graph.arrows) - MOST_LISTED)
    return ShownRound(graph, view.round_name(graph.round).capitalize(), draw(graph), left_out)


MOST_REASONS = 40
"""Votes, opponents or members of a group that are listed."""


def explained(request: PageRequest) -> Response:
    """Show the chain of a turn: votes, rewards, baselines, advantage."""
    store, view = request.store, debate_view(request.id, read_record(request))
    if is_evaluated(request):
        raise NotFound(f"debate {request.id} is of an evaluation: nothing was rewarded in it")
    chosen = chosen_turn(request, view)
    config, note = _config(store.run)
    reasons = why(store, config, request.id, chosen, note=note)
    return in_debate(request, "why", view, why=reasons, most=MOST_REASONS, **picker(view, "why", chosen))


def _config(run: Path) -> tuple[Config | None, str]:
    """Return a run's configuration, read again when its file changes."""
    try:
        file = (run / "config.toml").stat()
    except OSError:
        return config_of(run)
    return _config_at(run, file.st_mtime_ns, file.st_size)


@lru_cache(maxsize=64)
def _config_at(run: Path, changed: int, size: int) -> tuple[Config | None, str]:
    return config_of(run)


MOST_OF_A_PROMPT = 60_000


@dataclass(frozen=True, slots=True)
class ShownPrompt:
    """A prompt as a page shows it: whose, its messages by role, why there are none, and its text as sent.

    ``unseen``: what is known of a text that cannot be shown.
    """

    reader: str
    messages: tuple[tuple[str, Clip], ...]
    why: str
    title: str
    sent: Clip | None
    unseen: str


def prompt(request: PageRequest) -> Response:
    """Show what a turn read, and what the summariser of its round read."""
    record = read_record(request, tokens=True)
    view = debate_view(request.id, record)
    chosen = chosen_turn(request, view)
    prompts = DebatePrompts(record.debate, request.store.run)
    shown = [_shown_prompt("", prompts.of(chosen))]
    if any(summary.round == chosen.round for summary in view.summaries):
        shown.append(_shown_prompt("Summariser: ", prompts.of_summary(chosen.round)))
    return in_debate(
        request, "prompt", view, prompts=shown, note=prompts.note, **picker(view, "prompt", chosen)
    )


def _shown_prompt(reader: str, read: PromptView) -> ShownPrompt:
    messages = tuple((message.role, clip(message.content, MOST_OF_A_PROMPT)) for message in read.messages)
    sent = clip(read.text, MOST_OF_A_PROMPT) if read.text else None
    return ShownPrompt(reader, messages, read.why, read.title, sent, read.unseen)


def download(request: PageRequest) -> Response:
    """Answer with the fixture's JSON."""
    record = read_record(request)
    config, _ = config_of(request.store.run)
    name = f"debate_{record.step}_{int(request.id.rpartition('.')[2])}.json"
    content = fixture_text(record, config, source=f"{request.name} {request.id}")
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type="application/json", headers=headers)
