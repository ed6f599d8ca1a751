"""What a strategy is given and what it returns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from debate import Completion, DebateConfig, Policy, Problem, Turn
from debate_rl.evaluation.grading import IN_A_BOX
from debate_rl.inference.tools import engine_of
from envs import Environment
from envs.types import Mode

End: TypeAlias = Literal["done", "settled", "tokens", "seconds"]
"""Why a strategy ended: it asked for all that it wanted, the rest could not have changed its answer, or a
part of its budget was spent."""


@dataclass(frozen=True, slots=True)
class Judge:
    """Who compares solutions: the policy, and the protocol whose ballots it knows."""

    policy: Policy
    protocol: DebateConfig


@dataclass(frozen=True, slots=True)
class Asked:
    """One problem as a strategy is asked it.

    ``protocol``: how solutions are asked for, and for strategies of debates how these are held. ``samples``:
    solutions at most. ``tokens``: generated tokens at most, the judge's among them; ``seconds``: wall time.
    None: no limit. ``judge``: who compares; None is the policy itself. ``summarizer`` returns who writes the
    summaries of debates, and is called for each debate that has any; None: the policy. ``environment`` and
    ``mode`` say which answer a solution gives and which answers are the same. ``name``: what requests call
    the problem, unique among those that share the policy at a time.
    """

    problem: Problem
    policy: Policy
    protocol: DebateConfig
    environment: Environment
    samples: int = 16
    tokens: int | None = None
    seconds: float | None = None
    seed: int = 0
    judge: Judge | None = None
    mode: Mode = IN_A_BOX
    summarizer: Callable[[], Policy | None] | None = None
    name: str = "000000:"

    @property
    def judged_by(self) -> Judge:
        """Who compares solutions; no programs run in what it writes."""
        return self.judge or Judge(engine_of(self.policy), self.protocol)


@dataclass(frozen=True, slots=True)
class Solution:
    """One solution: its turn, the text of it, and the answer that it gives; None where it gives none."""

    turn: Turn
    text: str
    answer: str | None

    @property
    def completion(self) -> Completion:
        """The reply that it was read from."""
        return self.turn.completion


@dataclass(frozen=True, slots=True)
class Share:
    """An answer with its share, in [0, 1], of what the strategy counts: solutions, or their weights."""

    answer: str
    share: float


@dataclass(frozen=True, slots=True)
class Answered:
    """What a strategy says: the answer, with the solution that gives it, and what it cost.

    ``answer`` None: nothing that was read gives one. ``shares``: the largest first. ``samples``: solutions
    that came; ``comparisons``: ballots and selections that came, ``unread`` how many of them could not be
    read. ``tokens_read`` counts the prompts of all requests, ``tokens_generated`` their replies; a reply that
    the clock cut off (``cut_off`` of them) is in neither. ``turn``: the turn of the solution. ``turns``:
    every solution that came, of all rounds.
    """

    answer: str | None
    shares: tuple[Share, ...]
    solution: str
    samples: int
    tokens_read: int
    tokens_generated: int
    seconds: float
    ended: End
    comparisons: int = 0
    unread: int = 0
    cut_off: int = 0
    turn: Turn | None = None
    turns: tuple[Turn, ...] = ()


Strategy: TypeAlias = Callable[[Asked], Awaitable[Answered]]
"""A way to one answer. It is called within a seat of the policy."""
