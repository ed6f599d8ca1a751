"""The panels of a debate, and what reads the lines of each, in a thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from rich.text import Text

from debate.types import TurnId
from debate_rl.inspector.terminal.panels.rewards import replay_lines, token_lines, why_lines
from debate_rl.inspector.terminal.panels.turn import parse_lines, problem_lines, prompt_lines, turn_lines
from debate_rl.inspector.terminal.panels.votes import adoption_lines, vote_lines
from debate_rl.inspector.terminal.screen import OpenRun
from debate_rl.inspector.views.across import read
from debate_rl.inspector.views.adoption import adoption_view
from debate_rl.inspector.views.debate import DebateView, debate_view
from debate_rl.inspector.views.graph import RoundGraph, vote_graphs
from debate_rl.inspector.views.parsing import parse_forensics, reparsed
from debate_rl.inspector.views.prompts import DebatePrompts
from debate_rl.inspector.views.replays import read_replay, replays
from debate_rl.inspector.views.tokens import token_view
from transcripts import Record

Shown = Sequence[Text | str]


@dataclass(frozen=True, slots=True)
class OpenDebate:
    """One debate that was read: the record without its token arrays, and what every panel needs of it."""

    run: OpenRun
    id: str
    record: Record
    view: DebateView
    graphs: tuple[RoundGraph, ...]


def read_debate(run: OpenRun, id: str) -> OpenDebate:
    """Read a debate by its id, or an evaluation's by its ref; TranscriptError where it cannot be shown."""
    record = read(run.store, id)
    return OpenDebate(run, id, record, debate_view(id, record), vote_graphs(record))


def parse_panel(debate: OpenDebate, turn: TurnId, folded: bool) -> Shown:
    """What is malformed."""
    malformed = parse_forensics(debate.record)
    parsed = [other for other in debate.record.debate.turns if other.id == turn]
    changes = reparsed(debate.record, parsed[0]) if parsed else ()
    return parse_lines(
        debate.view,
        next((forensics for forensics in malformed if forensics.id == turn), None),
        changes,
        [forensics for forensics in malformed if forensics.id != turn],
    )


def token_panel(debate: OpenDebate, turn: TurnId, folded: bool) -> Shown:
    """The turn token by token."""
    from debate_rl.inspector.views.reward import evaluation_of

    store = debate.run.store
    record = store.debate(debate.id, tokens=True)
    return token_lines(token_view(record, turn, evaluation=evaluation_of(store.run)))


def why_panel(debate: OpenDebate, turn: TurnId, folded: bool) -> Shown:
    """Why the turn was rewarded as it was."""
    from debate_rl.inspector.views.reward import config_of, why

    config, note = config_of(debate.run.store.run)
    return why_lines(why(debate.run.store, config, debate.id, turn, note=note))


def replay_panel(debate: OpenDebate, turn: TurnId, folded: bool) -> Shown:
    """What other schemes would have given."""
    run = debate.run.store.run
    readable = [read_replay(run, listed.name) for listed in replays(run) if not listed.problem]
    return replay_lines(debate.view, [(replay, replay.debate(debate.id)) for replay in readable])


def prompt_panel(debate: OpenDebate, turn: TurnId, folded: bool) -> Shown:
    """What the turn read, and behind it what the summariser of its round read."""
    store = debate.run.store
    prompts = DebatePrompts(read(store, debate.id, tokens=True).debate, store.run)
    summed = any(summary.round == turn.round for summary in debate.view.summaries)
    return prompt_lines(prompts.note, prompts.of(turn), prompts.of_summary(turn.round) if summed else None)


class Panel(NamedTuple):
    """What the lower half can show: its title, what it is about, and what reads its lines."""

    title: str
    about: str
    read: Callable[[OpenDebate, TurnId, bool], Shown]


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
    "P": Panel("prompt", "the prompt that the turn read", prompt_panel),
    "i": Panel(
        "problem",
        "the problem in full, the agents, seed and version",
        lambda on, turn, folded: problem_lines(on.view),
    ),
}
"""The panels by their key."""
