"""Rebuild the prompts of a stored debate with the code that built them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from msgspec import UNSET

from debate.prompting.fitting import Cut
from debate.prompting.prompt import Past, Prompt, agent_prompt, next_prompt, summary_prompt
from debate.prompting.rendering import Entry
from debate.prompting.seating import Seating, public_entries, seat_debate
from debate.prompting.shown import asks_pairs, groups_shown, rounds_shown, speakers
from debate.types import SUMMARIZER, Debate, Message, Summary, Turn, TurnId

Reader: TypeAlias = Turn | Summary


_OTHERS = "the prompt showed other turns than the debate's protocol and seed give"


class PromptUnknownError(ValueError):
    """A prompt cannot be rebuilt exactly from the stored debate. The message gives the reason in one line."""


@dataclass(frozen=True, slots=True)
class HeldDebate:
    """A finished debate with its seating and what others may see of its turns, (round, N)."""

    debate: Debate
    seating: Seating
    past: Past

    def prompt(self, turn: TurnId) -> Prompt:
        """Return the prompt of a turn, or of a round's summary. PromptUnknownError if it cannot be rebuilt.

        In a conversation, the prompt has all earlier messages, including the agent's own replies.
        """
        prompt = self._own_prompt(turn)
        if not self.debate.protocol.conversation:
            return prompt
        before: list[Message] = []
        for round_ in range(turn.round):
            earlier = TurnId(turn.agent, round_)
            reply = self.debate.turn(earlier).completion.text
            before += [*self._own_prompt(earlier).messages, Message("assistant", reply)]
        return replace(prompt, messages=(*before, *prompt.messages))

    def _own_prompt(self, turn: TurnId) -> Prompt:
        """Return the prompt built for a turn: the whole prompt, or the newest message of a conversation."""
        reader = self._reader(turn)
        cut = self._cut(reader, turn)
        if isinstance(reader, Summary):
            prompt = summary_prompt(self.seating, self.past, turn.round, cut)
        elif self.debate.protocol.conversation:
            prompt = next_prompt(self.seating, self.past, turn.agent, turn.round, cut)
        else:
            summary = self._summary(turn.round)
            asked = asks_pairs(self.debate.protocol, turn.round)
            pair = [one.agent for one in reader.compared] if asked else None
            prompt = agent_prompt(
                self.seating, self.past, turn.agent, turn.round, cut, summary=summary, pair=pair
            )
        _require_same(prompt, reader)
        return prompt

    def _reader(self, turn: TurnId) -> Reader:
        summaries = ((TurnId(SUMMARIZER, summary.round), summary) for summary in self.debate.summaries)
        readers: dict[TurnId, Reader] = {one.id: one for one in self.debate.turns} | dict(summaries)
        if turn not in readers:
            raise PromptUnknownError("the debate has no such turn")
        return readers[turn]

    def _summary(self, round_: int) -> Summary | None:
        """Return the summary shown in a round instead of turns.

        PromptUnknownError if it covers unexpected turns.
        """
        summary = next((one for one in self.debate.summaries if one.round == round_), None)
        agents = range(self.debate.protocol.num_agents)
        rounds = rounds_shown(round_, self.debate.protocol.history_rounds)
        if summary and not all(one.agent in agents and one.round in rounds for one in summary.shown):
            raise PromptUnknownError(_OTHERS)
        return summary

    def _cut(self, reader: Reader, turn: TurnId) -> Cut:
        """Return how much of the history was cut.

        Rounds are derived from ``shown``, the length of texts from ``cut_length``.
        """
        groups = groups_shown(self.debate.protocol, turn.round, turn.agent)
        if any(number >= len(self.past) for group in groups for number in group):
            raise PromptUnknownError("some turns that the prompt showed are not stored")
        shown = {one.round for one in reader.shown}
        left = sum(shown.isdisjoint(group) for group in groups)
        length = None if reader.cut_length is UNSET else reader.cut_length
        return Cut(max(0, left), length)


def held_debate(debate: Debate) -> HeldDebate:
    """Return a debate whose prompts can be rebuilt. PromptUnknownError if none of them can.

    The personas are those stored with the debate. ValueError if the prompt set cannot be read.
    """
    seating = seat_debate(debate.problem, debate.protocol, debate.seed, personas=debate.personas)
    handles = dict(enumerate(seating.handles))
    if any(turn.handle != handles.get(turn.id.agent) for turn in debate.turns):
        raise PromptUnknownError("the debate's handles are not those drawn by its seed")
    if len(debate.personas) != len(handles):
        raise PromptUnknownError("the debate does not have one persona for each agent")
    return HeldDebate(debate, seating, _past(debate, seating))


def _past(debate: Debate, seating: Seating) -> Past:
    """Return what others may see of the rounds before the first incomplete round."""
    short = debate.compressions or ()
    turns = {turn.id: turn for turn in debate.turns}
    past: list[list[Entry]] = []
    for round_ in range(debate.protocol.num_rounds):
        ids = [TurnId(agent, round_) for agent in speakers(debate.protocol, round_)]
        if any(turn not in turns for turn in ids):
            break
        past.append(public_entries(seating, [turns[turn] for turn in ids], short))
    return past


def _require_same(prompt: Prompt, reader: Reader) -> None:
    """Raise PromptUnknownError if the prompt does not show what is stored as shown."""
    compared = prompt.compared if isinstance(reader, Summary) else reader.compared
    if (prompt.shown, prompt.compared) != (reader.shown, compared):
        raise PromptUnknownError(_OTHERS)
    if prompt.cut != reader.cut:
        raise PromptUnknownError(
            f"{reader.cut} texts of the prompt were cut, and their lengths are not stored (the run is of an "
            f"earlier version)"
        )
