"""Settings of the warm start, and the kinds of demonstrations for each protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self, TypeAlias

from pydantic import Field, field_validator, model_validator

from debate.protocols import GAMES
from debate_rl.config.data import Levels

if TYPE_CHECKING:
    from debate import DebateConfig

Kind: TypeAlias = Literal["solve", "debate", "ballot", "drill"]
KINDS: tuple[Kind, ...] = ("solve", "debate", "drill", "ballot")


class WarmStartConfig(Levels):
    """The warm start of a tiny model; off without steps."""

    from_run: str | None = None
    """Start from weights of another run: "runs/one" takes its warm start or supervised weights;
    "runs/one@best", "runs/one@newest" and "runs/one@120" take a checkpoint."""
    levels: tuple[int | str, ...] | None = Field(default=None, min_length=1)
    """Levels of the problems demonstrated. None: all."""
    solve_steps: int = Field(default=0, ge=0)
    """Number of first steps, which learn right solutions of round 0 only: checking is learnt faster after
    solving."""
    debate_steps: int = Field(default=0, ge=0)
    """Number of further steps after ``solve_steps``. They train on all kinds of turns."""
    solve_batch: int = Field(default=96, ge=1)
    """Demonstrations per step of ``solve_steps``."""
    batch: tuple[int, int, int, int] = (32, 40, 24, 8)
    """Turns of round 0, later turns, drills and ballots per step of ``debate_steps``."""
    right: tuple[float, ...] = (0.6, 0.4, 0.5)
    """Fraction of each persona's demonstrations that solve the problem."""
    lure: tuple[float, ...] = (0.3, 0.5, 0.4)
    """Fraction of each persona's demonstrations that fall for the family's lure, the planted habit that RL
    should remove."""
    adopt: float = Field(default=0.9, ge=0, le=1)
    """Fraction of later turns that adopt a right solution they read."""
    lie: float = Field(default=0.15, ge=0, le=1)
    """Fraction of wrong solutions shown that state the target as their result."""
    invent: float = Field(default=0.15, ge=0, le=1)
    """Fraction of wrong solutions shown that use numbers absent from the problem."""
    misjudge: float = Field(default=0.0, ge=0, le=1)
    """Fraction of demonstrated checks, drills excluded, that fall for the lure and accept it."""
    decidable: float = Field(default=0.6, ge=0, le=1)
    """Fraction of demonstrated comparisons with exactly one right solution."""

    boxed: float = Field(default=1.0, ge=0, le=1)
    """Fraction of solutions of a prompt family that box the answer; the others say "The answer is"."""
    ramble: float = Field(default=0.0, ge=0, le=1)
    """Fraction of solutions that add another question, which the family's stop strings cut off. With 0 the
    model never learns to end a reply."""

    @field_validator("batch")
    @classmethod
    def _some_demonstrations(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if min(value) < 0 or not any(value):
            raise ValueError("needs four counts of 0 or more, and one of them above 0")
        return value

    @field_validator("right", "lure")
    @classmethod
    def _probabilities(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if not value or not all(0 <= share <= 1 for share in value):
            raise ValueError("needs at least one probability in 0..1, for the personas in turn")
        return value

    @model_validator(mode="after")
    def _one_or_the_other(self) -> Self:
        for agent in range(len(self.right) * len(self.lure)):
            right, lure = self.right[agent % len(self.right)], self.lure[agent % len(self.lure)]
            if right + lure > 1 + 1e-9:
                raise ValueError(
                    f"right and lure are fractions of the same demonstrations, but for one persona they are "
                    f"{right:g} + {lure:g} > 1; lower one of them"
                )
        return self

    @property
    def steps(self) -> int:
        """All steps."""
        return self.solve_steps + self.debate_steps


def kinds_of_turns(config: DebateConfig) -> frozenset[Kind]:
    """Return the kinds of demonstrations that a protocol needs: no checks if nobody compares.

    >>> from debate import DebateConfig
    >>> sorted(kinds_of_turns(DebateConfig(num_agents=1, num_rounds=1)))
    ['solve']
    """
    compares = config.history_rounds != 0 and config.num_agents - (not config.judge_own) >= 2
    kinds: set[Kind] = {"solve"}
    if config.num_rounds > 1 or config.protocol in GAMES:
        kinds.add("debate")
    if compares and (config.num_rounds > 1 or config.final_ballot):
        kinds.add("drill")
    if compares and config.final_ballot:
        kinds.add("ballot")
    return frozenset(kinds)
