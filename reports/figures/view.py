"""One stored debate as the measures see it: who was shown what, in which order, and which votes count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any

from debate.types import Problem
from envs.answers.keys import plain_key
from rewards.types import Rewards
from rewards.winner import last_judged_round, voted_winner
from transcripts.index.facts import margins, text
from transcripts.index.graph import Pair, PlainVote, Turn, beats, comparable, valid_votes

RIGHT = "\0right"
"""The key of every right answer, however it is written."""


@dataclass(frozen=True, slots=True)
class Due:
    """A pair that a judge could compare; ``first`` was shown before ``second``.

    ``outcome``: +1 the first won, -1 the second did, 0 a tie, None without a valid vote.
    """

    judge: Turn
    first: Turn
    second: Turn
    outcome: int | None


@dataclass(frozen=True)
class View:
    """A debate; turns are (agent, round), ``record`` is the JSON of its line."""

    record: Mapping[str, Any]
    debate: int
    personas: tuple[int, ...]

    @cached_property
    def agents(self) -> int:
        """N."""
        return self.record["debate"]["protocol"]["num_agents"]

    @cached_property
    def rounds(self) -> int:
        """R, the final ballot not counted."""
        return self.record["debate"]["protocol"]["num_rounds"]

    @cached_property
    def shown(self) -> dict[Turn, list[Turn]]:
        """The turns that each turn's author could compare, in the order shown."""
        body = self.record["debate"]
        own = bool(body["protocol"]["judge_own"])
        turns = body["turns"]
        return {tuple(t["id"]): [*comparable(t, own, body["protocol"]).items()] for t in turns}

    @cached_property
    def votes(self) -> list[PlainVote]:
        """The votes that count."""
        body = self.record["debate"]
        return valid_votes(body["turns"], body["votes"], body["protocol"])

    @cached_property
    def due(self) -> list[Due]:
        """Every pair that a judge could compare."""
        return list(self._due())

    def _due(self) -> Iterator[Due]:
        cast = {(vote.judge, vote.first, vote.second): vote.verdict for vote in self.votes}
        for judge, shown in self.shown.items():
            for first, second in combinations(shown, 2):
                swap = second < first
                verdict = cast.get((judge, *((second, first) if swap else (first, second))))
                yield Due(judge, first, second, verdict if verdict is None or not swap else -verdict)

    @cached_property
    def edges(self) -> set[Pair]:
        """(winner, loser) of each strict majority."""
        return beats(self.votes)

    def grade(self, turn: Turn) -> int:
        """Return 1 for a right solution, 0 for a wrong or missing one, -1 for one that was not graded."""
        correct = self.record["correct"]
        grade = correct[turn[0]][turn[1]] if correct is not None else None
        return -1 if grade is None else int(grade is True)

    @cached_property
    def solutions(self) -> dict[Turn, Mapping[str, Any]]:
        """The turns that hold a solution."""
        turns = self.record["debate"]["turns"]
        return {tuple(turn["id"]): turn for turn in turns if not turn.get("ballot", False)}

    def answer(self, turn: Turn) -> str | None:
        """Return a text that is equal for equal answers; None where there is none."""
        solution = self.solutions.get(turn)
        written = text(solution["parsed"]["answer"]) if solution else None
        if self.grade(turn) == 1:
            return RIGHT
        return None if written is None else _key(written)

    def size(self, turn: Turn) -> int:
        """Return the characters of a solution, at least 1; of the whole reply where none could be read."""
        solution = self.solutions.get(turn)
        if solution is None:
            return 1
        span = solution["parsed"]["solution"]
        whole = solution["completion"]["text"]
        length = sum(map(len, whole)) if isinstance(whole, list) else len(whole)
        return max(1, span[1] - span[0] if span else length)

    @cached_property
    def peer(self) -> Sequence[Sequence[float | None]]:
        """(N, R): peer rewards; the margins where the debate was not scored."""
        rewards = self.record["rewards"]
        return rewards["peer"] if rewards else margins(self.votes, self.agents, self.rounds)

    @cached_property
    def judged_round(self) -> int | None:
        """The last round whose solutions were voted on."""
        return last_judged_round(self._scores)

    @cached_property
    def winner(self) -> int | None:
        """The voted winner of the last judged round; None without votes."""
        return voted_winner(self._scores, self.judged_round, seed=self.record["debate"]["seed"])

    @property
    def _scores(self) -> Rewards:
        return Rewards(self.peer, (), (), ())  # type: ignore[arg-type]  # lists serve as tuples here


_PLAIN = Problem("", "")


@lru_cache(maxsize=1 << 14)
def _key(written: str) -> str:
    return plain_key(_PLAIN, written)
