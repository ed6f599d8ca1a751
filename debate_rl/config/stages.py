"""Stages of a curriculum: what each changes, what it aims at, and the configuration of its run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self, TypeAlias, cast

from pydantic import Field, field_validator, model_validator

from debate.settings import Settings

FIGURE = re.compile(r"([a-z][a-z0-9_]*/)?(direct|debate|judge)/[a-z0-9_@/]+")
TABLES = (
    *("env", "sampling", "held_out", "debate", "shots", "grader", "verifier"),
    *("rewards", "advantages", "model", "learner", "train"),
)
"""The tables in which a stage may have other settings."""
OF_THE_WEIGHTS = ("name_or_path", "tiny", "chat", "dtype", "lora_rank", "lora_alpha", "lora_targets")
"""Keys of ``model`` that decide what the weights are of: no stage may change them."""
Table: TypeAlias = dict[str, Any]


class GoalConfig(Settings):
    """What ends a run that is a stage of a curriculum. ``debate train`` sets it; see ``stages``."""

    figure: str
    """A held-out figure, as ``debate eval`` names it: "debate/winner/accuracy", "direct/accuracy"; of a set
    of ``held_out.more`` with its name in front, "aime/direct/accuracy"."""
    target: float = Field(gt=0, le=1)
    """The run ends once the lower end of the figure's interval is at least this."""
    min_steps: int = Field(default=1, ge=1)
    """Steps before which it does not end."""
    demote_below: float | None = Field(default=None, ge=0, lt=1)
    """It also ends once the upper end of the interval is below this; None: never so."""

    @field_validator("figure")
    @classmethod
    def _held_out(cls, value: str) -> str:
        if not FIGURE.fullmatch(value):
            raise ValueError(f'{value!r} is not a held-out figure; name one, as "debate/winner/accuracy"')
        return value

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.demote_below is not None and self.demote_below >= self.target:
            raise ValueError(f"demote_below = {self.demote_below:g}: is not below target = {self.target:g}")
        return self


class StageConfig(GoalConfig):
    """A stage: its goal, its limits, and tables with the settings that differ in it, as [stages.debate]."""

    name: str
    """Its name: small letters, digits and _."""
    max_steps: int = Field(ge=1)
    """Steps after which it ends with or without its target."""
    at_limit: Literal["go_on", "stop"] = "go_on"
    """Whether the next stage begins where ``max_steps`` end without the target, or the curriculum ends."""
    demotions: int = Field(default=1, ge=0)
    """How often it may end by ``demote_below``, back to the stage before it; then it goes on to its limit."""
    env: Table = Field(default_factory=dict)
    """Settings of ``env`` in this stage; the tables below likewise."""
    sampling: Table = Field(default_factory=dict)
    held_out: Table = Field(default_factory=dict)
    debate: Table = Field(default_factory=dict)
    shots: Table = Field(default_factory=dict)
    grader: Table = Field(default_factory=dict)
    verifier: Table = Field(default_factory=dict)
    rewards: Table = Field(default_factory=dict)
    advantages: Table = Field(default_factory=dict)
    model: Table = Field(default_factory=dict)
    learner: Table = Field(default_factory=dict)
    train: Table = Field(default_factory=dict)

    @field_validator("name")
    @classmethod
    def _possible_name(cls, value: str) -> str:
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", value):
            raise ValueError(f"{value!r} is the name of a folder; use small letters, digits and _")
        return value

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.min_steps > self.max_steps:
            raise ValueError(f"min_steps = {self.min_steps} are more than max_steps = {self.max_steps}")
        for key in ("steps", "epochs", "target"):
            if key in self.train:
                raise ValueError(f"train.{key}: the stage itself says when it ends; leave it out")
        if self.held_out.get("every") == 0:
            raise ValueError("held_out.every = 0: no evaluation would show its target; set it above 0")
        if key := next((key for key in OF_THE_WEIGHTS if key in self.model), None):
            raise ValueError(
                f"model.{key}: a stage goes on with the weights of the one before, so it cannot change what "
                "they are of; set it in [model] for all stages"
            )
        return self

    def goal(self, *, demotes: bool) -> GoalConfig:
        """Return what ends a run of this stage; ``demotes``: whether it may go back to the stage before."""
        below = self.demote_below if demotes else None
        return GoalConfig(
            figure=self.figure, target=self.target, min_steps=self.min_steps, demote_below=below
        )

    def tables(self) -> dict[str, Table]:
        """Return the tables of settings that differ in this stage."""
        return {name: table for name in TABLES if (table := getattr(self, name))}


def merged(tables: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return tables with other values put in, key by key; a list is replaced as a whole.

    >>> merged({"debate": {"num_agents": 3, "num_rounds": 2}}, {"debate": {"num_rounds": 3}})
    {'debate': {'num_agents': 3, 'num_rounds': 3}}
    """
    result = dict(tables)
    for key, value in changes.items():
        inner = result.get(key)
        both = isinstance(inner, dict) and isinstance(value, dict)
        result[key] = merged(cast(Table, inner), cast(Table, value)) if both else value
    return result


def check_stages(stages: Sequence[StageConfig]) -> None:
    """ValueError for two stages of one name, and for a first stage that could go back to one before it."""
    names = [stage.name for stage in stages]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"stages: two are named {twice!r}; give each its own name")
    if stages[0].demote_below is not None:
        raise ValueError(f"stages.0.demote_below: no stage is before {stages[0].name!r}; leave it out")
