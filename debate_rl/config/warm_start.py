"""Settings of the warm start, and which kinds of demonstrations a protocol has a use for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self, TypeAlias

from pydantic import Field, field_validator, model_validator

from debate.protocols import GAMES
from debate.settings import Settings

if TYPE_CHECKING:
    from debate import DebateConfig

Kind: TypeAlias = Literal["solve", "debate", "ballot", "drill"]
KINDS: tuple[Kind, ...] = ("solve", "debate", "drill", "ballot")


class WarmStartConfig(Settings):
    """The warm start of a tiny model; off unless it has steps."""

    from_run: str | None = None
    """Begin with weights of another run: "runs/one" takes its warm start, or what supervised training made of
    it; "runs/one@best", "runs/one@newest" and "runs/one@120" take those of a checkpoint."""
    levels: tuple[int | str, ...] | None = Field(default=None, min_length=1)
    """Levels of the problems shown; None: all that there are. What is not shown is left to learn."""
    solve_steps: int = Field(default=0, ge=0)
    """First steps, on right solutions of round 0 alone: checking is learnt faster once solving is."""
    debate_steps: int = Field(default=0, ge=0)
    """Steps on all kinds of turns that follow."""
    solve_batch: int = Field(default=96, ge=1)
    """Demonstrations in each of the first steps."""
    batch: tuple[int, int, int, int] = (32, 40, 24, 8)
    """Turns of round 0, later turns, drills and ballots in each step that follows."""
    right: tuple[float, ...] = (0.6, 0.4, 0.5)
    """How often each persona's demonstrations solve the problem."""
    lure: tuple[float, ...] = (0.3, 0.5, 0.4)
    """How often they fall for the family's lure: the habit that is planted for RL to unlearn."""
    adopt: float = Field(default=0.9, ge=0, le=1)
    """How often a later turn takes over a right solution it sees."""
    lie: float = Field(default=0.15, ge=0, le=1)
    """How often a wrong solution shown states the target as its result."""
    invent: float = Field(default=0.15, ge=0, le=1)
    """How often a wrong solution shown gives numbers that the problem does not have."""
    misjudge: float = Field(default=0.0, ge=0, le=1)
    """How often a demonstrated check, drills aside, falls for the lure itself and finds it right."""
    decidable: float = Field(default=0.6, ge=0, le=1)
    """How often exactly one of the compared solutions is right."""

    boxed: float = Field(default=1.0, ge=0, le=1)
    """How often a solution of a prompt family boxes its answer; else it says "The answer is"."""
    ramble: float = Field(default=0.0, ge=0, le=1)
    """How often it adds another question, which the family's stop strings end; with 0 the model never
    learns to end a reply."""

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
            raise ValueError("needs a probability in 0..1 for each persona, at least one")
        return value

    @model_validator(mode="after")
    def _one_or_the_other(self) -> Self:
        for agent in range(len(self.right) * len(self.lure)):
            right, lure = self.right[agent % len(self.right)], self.lure[agent % len(self.lure)]
            if right + lure > 1 + 1e-9:
                raise ValueError(
                    f"right and lure are shares of the same demonstrations, and those of one persona are "
                    f"{right:g} + {lure:g} > 1: lower one of them"
                )
        return self

    @property
    def steps(self) -> int:
        """All steps."""
        return self.solve_steps + self.debate_steps


def kinds_of_turns(config: DebateConfig) -> frozenset[Kind]:
    """Return the kinds of demonstrations that a protocol has a use for: no checks where nobody compares.

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
