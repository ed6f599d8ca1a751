"""One stored debate as the measures see it: who was shown what, in which order, and which votes count."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from debate.types import Problem, Turn, TurnId, Vote
from envs.answers.keys import plain_key
from envs.causes.rules import fault_of
from rewards import ballot_box, valid_votes, voted_winner
from rewards.graph import Edge, majorities
from rewards.peer import margins
from rewards.truth import is_right
from rewards.types import Stream
from rewards.votes import BallotBox, DuePair, due_pairs
from transcripts import Record
from transcripts.causes import wrong_reply

RIGHT = "\0right"
"""The key of every right answer, however it is written."""


@dataclass(frozen=True)
class JudgedDebate:
    """A debate, with its index among those of a study and the codes of its personas."""

    record: Record
    index: int
    personas: tuple[int, ...]

    @cached_property
    def agents(self) -> int:
        """N."""
        return self.record.debate.protocol.num_agents

    @cached_property
    def rounds(self) -> int:
        """R, the final ballot not counted."""
        return self.record.debate.protocol.num_rounds

    @cached_property
    def box(self) -> BallotBox:
        """Who could compare what, and the votes as cast."""
        return ballot_box(self.record.debate)

    @cached_property
    def votes(self) -> tuple[Vote, ...]:
        """The votes that count."""
        return valid_votes(self.box)

    @cached_property
    def due(self) -> list[DuePair]:
        """Every pair that a judge could compare."""
        return due_pairs(self.box, self.votes)

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """(winner, loser) of each strict majority."""
        return majorities(self.votes)

    def grade(self, turn: TurnId) -> int:
        """Return 1 for a right solution, 0 for a wrong or missing one, -1 for one that was not graded."""
        right = is_right(turn, self.record.correct)
        return -1 if right is None else int(right)

    @cached_property
    def solutions(self) -> dict[TurnId, Turn]:
        """The turns that hold a solution."""
        return {turn.id: turn for turn in self.record.debate.turns if not turn.ballot}

    def fault(self, turn: TurnId) -> str:
        """Return what can be seen to be wrong in a wrong solution."""
        said = self.solutions.get(turn)
        reply = said and wrong_reply(self.record, said)
        return fault_of(reply, said.parsed.answer) if said and reply else "no answer"

    def answer(self, turn: TurnId) -> str | None:
        """Return a text that is equal for equal answers; None where there is none."""
        solution = self.solutions.get(turn)
        if self.grade(turn) == 1:
            return RIGHT
        written = solution.parsed.answer if solution else None
        return None if written is None else _key(written)

    def size(self, turn: TurnId) -> int:
        """Return the characters of a solution, at least 1; of the whole reply where none could be read."""
        solution = self.solutions.get(turn)
        if solution is None:
            return 1
        span = solution.parsed.solution
        return max(1, span.end - span.start if span else len(solution.completion.text))

    @cached_property
    def peer(self) -> Stream:
        """(N, R): peer rewards; the margins where the debate was not scored."""
        rewards = self.record.rewards
        return rewards.peer if rewards else margins(self.votes, self.agents, self.rounds)

    @cached_property
    def winner(self) -> TurnId | None:
        """The winner of the last judged round; None without votes."""
        return voted_winner(self.peer, seed=self.record.debate.seed)


_PLAIN = Problem("", "")


@lru_cache(maxsize=1 << 14)
def _key(written: str) -> str:
    return plain_key(_PLAIN, written)
