"""The part of a stored debate that a branch keeps; all other turns are regenerated."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass

from debate.config import DebateConfig
from debate.types import Compression, Debate, Summary, Swapped, Turn, TurnId, Vote

BEFORE_ALL = TurnId(0, -1)


@dataclass(frozen=True, slots=True)
class Kept:
    """A stored debate that is kept up to ``turn``; later turns are regenerated.

    Turns that speak at the same time as ``turn`` did not read it, so they are kept too. ``again``: ``turn``
    itself is also regenerated. Without a debate, nothing is kept.
    """

    debate: Debate | None = None
    turn: TurnId = BEFORE_ALL
    again: bool = False

    def turns(self, asked: Iterable[int], round_: int, spoken: Sequence[Turn]) -> list[Turn]:
        """Return the kept turns of the agents that speak next. ``spoken``: the turns of the round so far."""
        after = round_ > self.turn.round or any(turn.id == self.turn for turn in spoken)
        if self.debate is None or after:
            return []
        wanted = {TurnId(agent, round_) for agent in asked} - ({self.turn} if self.again else set())
        return [turn for turn in self.debate.turns if turn.id in wanted]

    def summary(self, round_: int) -> Summary | None:
        """Return the stored summary shown in a round, if there was one."""
        stored = () if self.debate is None else self.debate.summaries
        return next((one for one in stored if one.round == round_), None)

    def compressions(self, turns: Iterable[Turn]) -> list[Compression]:
        """Return the stored compressions of these kept turns, without that of ``turn``."""
        ids = {turn.id for turn in turns} - {self.turn}
        stored = None if self.debate is None else self.debate.compressions
        return [one for one in stored or () if one.turn in ids]

    def swapped(self, turns: Container[TurnId]) -> list[Swapped]:
        """Return the stored ballots of these turns in swapped order."""
        stored = None if self.debate is None else self.debate.swapped
        return [one for one in stored or () if one.turn in turns]

    def votes(self, turn: TurnId) -> Iterator[Vote]:
        """Yield the votes of a turn as stored, which may differ from its text."""
        stored = () if self.debate is None else self.debate.votes
        return (vote for vote in stored if vote.judge == turn)


NOTHING = Kept()


def whole_protocol(debate: Debate) -> DebateConfig:
    """Return the protocol with all rounds, also of a debate that stopped early.

    It may stop at the same round again, or at a later one.
    """
    if not debate.rounds_saved:
        return debate.protocol
    held = debate.protocol.num_rounds
    return debate.protocol.model_copy(update={"num_rounds": held + debate.rounds_saved, "min_rounds": held})
