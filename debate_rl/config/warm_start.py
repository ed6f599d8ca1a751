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
    """Supervised warm start of a tiny model. Off if both numbers of steps are 0."""

    from_run: str | None = None
    """Start from the weights of another run. "runs/one": its weights after the warm start or supervised
    training. "runs/one@best", "runs/one@newest" or "runs/one@120": one of its checkpoints."""
    levels: tuple[int | str, ...] | None = Field(default=None, min_length=1)
    """Levels of the demonstrated problems. None: all levels."""
    solve_steps: int = Field(default=0, ge=0)
    """Number of steps on right solutions of round 0 only. Models learn to check faster if they can solve."""
    debate_steps: int = Field(default=0, ge=0)
    """Number of steps on all kinds of turns, after ``solve_steps``."""
    solve_batch: int = Field(default=96, ge=1)
    """Demonstrations per step of ``solve_steps``."""
    batch: tuple[int, int, int, int] = (32, 40, 24, 8)
    """Demonstrations per step of ``debate_steps``: turns of round 0, later turns, drills (single checks) and
    ballots."""
    right: tuple[float, ...] = (0.6, 0.4, 0.5)
    """Fraction of right demonstrations, for each persona."""
    lure: tuple[float, ...] = (0.3, 0.5, 0.4)
    """Fraction of demonstrations that follow the family's lure, a planted wrong habit for RL to remove, for
    each persona."""
    adopt: float = Field(default=0.9, ge=0, le=1)
    """Fraction of later turns that adopt another agent's right solution."""
    lie: float = Field(default=0.15, ge=0, le=1)
    """Fraction of wrong solutions in prompts that state the target as their result."""
    invent: float = Field(default=0.15, ge=0, le=1)
    """Fraction of wrong solutions in prompts that use numbers absent from the problem."""
    misjudge: float = Field(default=0.0, ge=0, le=1)
    """Fraction of demonstrated checks that accept the lure. Drills are excluded."""
    decidable: float = Field(default=0.6, ge=0, le=1)
    """Fraction of demonstrated comparisons in which exactly one solution is right."""

    boxed: float = Field(default=1.0, ge=0, le=1)
    """With a prompt family, the fraction of solutions that box the answer. The others say "The answer is"."""
    ramble: float = Field(default=0.0, ge=0, le=1)
    """With a prompt family, the fraction of solutions followed by another question, which stop strings cut
    off."""

    @field_validator("batch")
    @classmethod
    def _some_demonstrations(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if min(value) < 0 or not any(value):
            raise ValueError("must be four counts of 0 or more, at least one of them above 0")
        return value

    @field_validator("right", "lure")
    @classmethod
    def _probabilities(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if not value or not all(0 <= share <= 1 for share in value):
            raise ValueError(
                "must be a list of one or more probabilities in 0..1, used by the personas in turn"
            )
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
        """The total number of steps."""
        return self.solve_steps + self.debate_steps


def kinds_of_turns(config: DebateConfig) -> frozenset[Kind]:
    """Return the kinds of demonstrations that a protocol needs. Without comparisons it needs no checks.

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
