"""The lines of each panel, read where they are needed: called in a thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from rich.text import Text

from debate.types import TurnId
from debate_rl.inspector.terminal.opened import Opened
from debate_rl.inspector.terminal.panels.rewards import replay_lines, token_lines, why_lines
from debate_rl.inspector.terminal.panels.turn import parse_lines, problem_lines, turn_lines
from debate_rl.inspector.terminal.panels.votes import adoption_lines, vote_lines
from debate_rl.inspector.views.across import read
from debate_rl.inspector.views.adoption import adoption_view
from debate_rl.inspector.views.checked import open_debate
from debate_rl.inspector.views.debate import DebateView, debate_view
from debate_rl.inspector.views.graph import RoundGraph, vote_graphs
from debate_rl.inspector.views.parsing import parse_forensics, reparsed
from debate_rl.inspector.views.replays import read_replay, replays
from debate_rl.inspector.views.tokens import token_view
from transcripts import Record

Shown = Sequence[Text | str]


@dataclass(frozen=True, slots=True)
class Debate:
    """One debate that was read: the record without its token arrays, and what every panel needs of it."""

    opened: Opened
    id: str
    record: Record
    view: DebateView
    graphs: tuple[RoundGraph, ...]


def read_debate(opened: Opened, id: str) -> Debate:
    """Read a debate by its id, or an evaluation's by its ref; TranscriptError where it cannot be shown."""
    record = read(opened.store, id)
    return Debate(opened, id, record, debate_view(id, record), vote_graphs(record))


def parse_panel(debate: Debate, turn: TurnId, folded: bool) -> Shown:
    """What is malformed."""
    found = parse_forensics(debate.record)
    held = [one for one in debate.record.debate.turns if one.id == turn]
    changes = reparsed(debate.record, held[0]) if held else ()
    return parse_lines(
        debate.view,
        next((one for one in found if one.id == turn), None),
        changes,
        [one for one in found if one.id != turn],
    )


def token_panel(debate: Debate, turn: TurnId, folded: bool) -> Shown:
    """The turn token by token."""
    return token_lines(token_view(open_debate(debate.opened.store, debate.id, tokens=True), turn))


def why_panel(debate: Debate, turn: TurnId, folded: bool) -> Shown:
    """Why the turn was rewarded as it was."""
    from debate_rl.inspector.views.reward import config_of, why

    config, _ = config_of(debate.opened.store.run)
    return why_lines(why(debate.opened.store, config, debate.id, turn))


def replay_panel(debate: Debate, turn: TurnId, folded: bool) -> Shown:
    """What other schemes would have given."""
    run = debate.opened.store.run
    found = [(one, read_replay(run, one.name)) for one in replays(run) if not one.problem]
    return replay_lines(
        debate.view, [(one.name, one.overrides, replay.debate(debate.id)) for one, replay in found]
    )


class Panel(NamedTuple):
    """What the lower half can show: its title, what it tells, and what reads its lines."""

    title: str
    about: str
    read: Callable[[Debate, TurnId, bool], Shown]


PANELS: Final[dict[str, Panel]] = {
    "m": Panel(
        "message",
        "message, by sections",
        lambda on, turn, folded: turn_lines(on.view, on.view.turn(turn), folded=folded),
    ),
    "v": Panel(
        "votes",
        "votes by round: who beat whom, and what truth says",
        lambda on, turn, folded: vote_lines(on.view, on.graphs),
    ),
    "w": Panel("why this reward", "why this reward: from the votes to the advantage", why_panel),
    "p": Panel("parsing", "parsing: what is malformed, and why", parse_panel),
    "a": Panel(
        "answers",
        "answers by round, and who took one over from whom",
        lambda on, turn, folded: adoption_lines(on.view, adoption_view(on.record)),
    ),
    "k": Panel("tokens", "tokens with advantages, and their sums by section", token_panel),
    "r": Panel("replays", "replays: what other schemes would have given", replay_panel),
    "i": Panel(
        "problem",
        "the problem in full, the agents, seed and version",
        lambda on, turn, folded: problem_lines(on.view),
    ),
}
"""The panels by their key."""
