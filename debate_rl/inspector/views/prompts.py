"""The prompts that were read in a debate, made again; a line where the record does not tell them exactly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from debate.files import read_json
from debate.prompting.rebuilding import HeldDebate, PromptUnknownError, held_debate
from debate.prompting.texts import SHIPPED, prompt_path
from debate.types import SUMMARIZER, Debate, Message, TurnId
from debate_rl.runs.provenance import prompts_checksum, prompts_key


@dataclass(frozen=True, slots=True)
class PromptView:
    """What a turn read: its messages; () where that cannot be told exactly, and ``why`` in one line."""

    turn: TurnId
    messages: tuple[Message, ...]
    why: str = ""


class DebatePrompts:
    """The prompts of a debate; ``run`` is the folder of its run, None where it was held here and now.

    ``note`` is about all of them: where they are from if the record does not tell, or why there are none.
    """

    def __init__(self, debate: Debate, run: Path | None) -> None:
        self.note = ""
        self._held: HeldDebate | None = None
        try:
            self.note = "" if run is None else _require_known(debate.protocol.prompts, run)
            self._held = held_debate(debate)
        except ValueError as error:
            self.note = f"the prompts cannot be told exactly: {error}"

    def of(self, turn: TurnId) -> PromptView:
        """Return what a turn read."""
        if self._held is None:
            return PromptView(turn, (), self.note)
        try:
            return PromptView(turn, self._held.prompt(turn).messages)
        except PromptUnknownError as error:
            return PromptView(turn, (), f"the prompt cannot be told exactly: {error}")

    def of_summary(self, round_: int) -> PromptView:
        """Return what the summariser of a round read."""
        return self.of(TurnId(SUMMARIZER, round_))


def _require_known(name: str, run: Path) -> str:
    """Return a note on the prompt set of a run's debate; PromptUnknownError where it is another today.

    A file of one's own is read only where its checksum is the one that the run wrote down.
    """
    facts = _facts(run)
    try:
        key = prompts_key(name)
        known = _table(facts.get("data")).get(key)
        if known is None and prompt_path(name).parent != SHIPPED:
            raise PromptUnknownError(f"the run does not tell what was in its prompt set {name!r}")
        now = prompts_checksum(name)
    except PromptUnknownError:
        raise
    except (OSError, ValueError) as error:
        raise PromptUnknownError(f"its prompt set {name!r} cannot be read here ({error})") from error
    if any(f"data: {key}" in _table(start.get("changed")) for start in _starts(facts)):
        raise PromptUnknownError(f"its prompt set {name!r} was changed while the run was made")
    if known not in (None, now):
        raise PromptUnknownError(f"its prompt set {name!r} is not what it was for the run")
    told = f"prompts as today's prompt set {name!r} makes them; the run does not tell which version it had"
    return "" if known else told


def _facts(run: Path) -> Mapping[str, Any]:
    try:
        return _table(read_json(run / "run.json"))
    except (OSError, ValueError):
        return {}


def _table(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _starts(facts: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    starts = facts.get("starts")
    return map(_table, cast("list[object]", starts) if isinstance(starts, list) else [])
