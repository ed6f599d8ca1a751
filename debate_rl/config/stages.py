"""Stages of a curriculum: their settings, their targets, and the configurations of their runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Self, TypeAlias, cast

from pydantic import Field, field_validator, model_validator

from debate.settings import Settings
from debate_rl.config.models import ModelConfig

TABLES = (
    *("env", "sampling", "held_out", "debate", "shots", "grader", "verifier"),
    *("rewards", "advantages", "likelihood", "model", "warm_start", "sft", "learner", "train"),
)
"""Tables in which a stage may have its own settings."""
OF_THE_WEIGHTS = ("name_or_path", "tiny", "chat", "dtype", "lora_rank", "lora_alpha")
"""Keys of ``model`` that determine the shape and type of the weights. All stages share them."""
Action: TypeAlias = Literal["warn", "checkpoint", "stop", "rollback"]
FIGURE = re.compile(r"(eval/)?([a-z][a-z0-9_]*/)?(direct|debate|judge)/[a-z0-9_@/]+")
Table: TypeAlias = dict[str, Any]


class TargetConfig(Settings):
    """A condition on a held-out metric that ends a run."""

    metric: str
    """A held-out metric with an interval, such as "eval/debate/accuracy/round_0" or "eval/direct/accuracy". A
    set in ``held_out.more`` has metrics such as "eval/aime/direct/accuracy"."""
    value: float
    """End the run once the lower end of the metric's 95% interval reaches this."""
    min_steps: int = Field(default=0, ge=0)
    """Minimum number of steps before the metric can end the run."""
    demote_below: float | None = Field(default=None, ge=0, lt=1)
    """Also end the run once the upper end of the interval is below this. None: no lower bound."""

    @property
    def figure(self) -> str:
        """The name of the metric in ``debate eval``."""
        return self.metric.removeprefix("eval/")

    @field_validator("metric")
    @classmethod
    def _held_out(cls, value: str) -> str:
        if not FIGURE.fullmatch(value):
            raise ValueError(f'{value!r} is not a held-out metric; use one such as "debate/winner/accuracy"')
        return value

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.demote_below is not None and self.demote_below >= self.value:
            raise ValueError(f"demote_below = {self.demote_below:g}: must be below target = {self.value:g}")
        return self


class StageConfig(Settings):
    """A stage of a curriculum: its end, and its own settings in tables such as [stages.debate]. It learns
    from debates, or from replies if [stages.sft] sets ``data``.
    """

    name: str
    """Name of the stage: lower-case letters, digits and _."""
    figure: str | None = None
    """A held-out metric that ends the stage, by its name in ``debate eval``, such as
    "debate/winner/accuracy", or "aime/direct/accuracy" for a set in ``held_out.more``. None: only
    ``max_steps`` ends the stage."""
    target: float | None = Field(default=None, gt=0, le=1)
    """End the stage once the lower end of the metric's interval reaches this."""
    min_steps: int = Field(default=1, ge=1)
    """Minimum number of steps before the metric can end the stage."""
    max_steps: int | None = Field(default=None, ge=1)
    """Maximum number of steps. Required for a stage that learns from debates. None: ``sft.epochs`` and
    ``sft.steps`` set the length."""
    at_limit: Literal["go_on", "stop"] = "go_on"
    """What to do at ``max_steps`` if the target is not reached: start the next stage ("go_on") or end the
    curriculum ("stop")."""
    demote_below: float | None = Field(default=None, ge=0, lt=1)
    """End the stage and repeat the previous one once the upper end of the interval is below this. None: never
    repeat."""
    demotions: int = Field(default=1, ge=0)
    """Maximum number of times that ``demote_below`` can end the stage."""
    env: Table = Field(default_factory=dict)
    """Settings of ``env`` that this stage changes."""
    sampling: Table = Field(default_factory=dict)
    held_out: Table = Field(default_factory=dict)
    debate: Table = Field(default_factory=dict)
    shots: Table = Field(default_factory=dict)
    grader: Table = Field(default_factory=dict)
    verifier: Table = Field(default_factory=dict)
    rewards: Table = Field(default_factory=dict)
    advantages: Table = Field(default_factory=dict)
    likelihood: Table = Field(default_factory=dict)
    model: Table = Field(default_factory=dict)
    warm_start: Table = Field(default_factory=dict)
    sft: Table = Field(default_factory=dict)
    learner: Table = Field(default_factory=dict)
    train: Table = Field(default_factory=dict)

    @field_validator("name")
    @classmethod
    def _possible_name(cls, value: str) -> str:
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", value):
            raise ValueError(f"{value!r} must be a valid folder name; use lower-case letters, digits and _")
        return value

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.max_steps is None and not self.supervised:
            raise ValueError("max_steps: is required for a stage that learns from debates")
        if self.max_steps is not None and self.min_steps > self.max_steps:
            raise ValueError(f"min_steps = {self.min_steps} is more than max_steps = {self.max_steps}")
        if (self.figure is None) != (self.target is None):
            raise ValueError("figure and target: set both or neither")
        if self.demote_below is not None and self.figure is None:
            raise ValueError(f"demote_below = {self.demote_below:g}: needs a figure; set figure and target")
        for key in ("steps", "epochs", "target"):
            if key in self.train:
                raise ValueError(f"train.{key}: the stage decides when it ends; leave it out")
        if self.figure is not None and self.held_out.get("every") == 0:
            raise ValueError("held_out.every = 0: no evaluation would measure the target; set it above 0")
        self.goal(demotes=True)
        return self

    @property
    def supervised(self) -> bool:
        """True if the stage learns from replies instead of debates."""
        return bool(self.sft.get("data"))

    def goal(self, *, demotes: bool) -> TargetConfig | None:
        """Return the target that ends a run of this stage, or None if it has no target. If ``demotes`` is
        true, the stage may end with a return to the previous stage.
        """
        if self.figure is None or self.target is None:
            return None
        below = self.demote_below if demotes else None
        return TargetConfig(
            metric=self.figure, value=self.target, min_steps=self.min_steps, demote_below=below
        )

    def tables(self) -> dict[str, Table]:
        """Return the settings that the stage changes, by table, including its number of steps."""
        tables: dict[str, Table] = {name: table for name in TABLES if (table := getattr(self, name))}
        if self.supervised:
            return merged(tables, {} if self.max_steps is None else {"sft": {"steps": self.max_steps}})
        return merged(tables, {"train": {"steps": self.max_steps}})


def with_recipes(tables: dict[str, Any], read: Callable[[object, str], Mapping[str, Any]]) -> dict[str, Any]:
    """Return the tables of a recipe, with each stage merged over the recipe that it names.

    ``read`` returns a recipe's tables, given its name and the key that contains the name. The recipe's
    ``train.steps`` becomes ``max_steps``. Tables that a stage cannot have, such as ``run``, are ignored. Keys
    in ``OF_THE_WEIGHTS`` must equal those of [model] and are dropped; an override of [model] thus affects all
    stages.
    """
    stages, model = tables.get("stages"), tables.get("model")
    if not isinstance(stages, list):
        return tables
    whole = cast(Table, model) if isinstance(model, dict) else {}
    return tables | {
        "stages": [
            _over_recipe(stage, read, index, whole)
            if isinstance(stage, dict) and "recipe" in stage
            else stage
            for index, stage in enumerate(cast("list[Any]", stages))
        ]
    }


def _over_recipe(
    stage: Table, read: Callable[[object, str], Mapping[str, Any]], index: int, model: Table
) -> Table:
    own, key = {name: value for name, value in stage.items() if name != "recipe"}, f"stages.{index}.recipe"
    under = read(stage["recipe"], key)
    if "stages" in under:
        raise ValueError(f"{key}: {stage['recipe']!r} has stages of its own; name a recipe of one stage")
    found: dict[str, Any] = {name: under[name] for name in TABLES if name in under}
    if isinstance(other := found.get("model"), dict):
        found["model"] = _beside_weights(index, cast(Table, other), model)
    train = dict(found.get("train", {}))
    if (steps := train.pop("steps", None)) is not None and not found.get("sft", {}).get("data"):
        own.setdefault("max_steps", steps)
    return merged(found | {"train": train}, own)


def merged(tables: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested tables with ``changes`` merged in. Lists are replaced.

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
    """Raise ValueError if two stages have the same name or the first stage sets ``demote_below``."""
    names = [stage.name for stage in stages]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"stages: two are named {twice!r}; give each its own name")
    if stages[0].demote_below is not None:
        raise ValueError(f"stages.0.demote_below: {stages[0].name!r} is the first stage; leave it out")


def _beside_weights(index: int, own: Table, model: Table) -> Table:
    """Return a stage's table ``model`` without ``OF_THE_WEIGHTS``. Raise ValueError if these keys differ."""
    fields = ModelConfig.model_fields
    for key in OF_THE_WEIGHTS:
        if key in own and own[key] != model.get(key, fields[key].default):
            raise _other_weights(index, key)
    return {key: value for key, value in own.items() if key not in OF_THE_WEIGHTS}


def check_weights(index: int, own: ModelConfig, model: ModelConfig) -> None:
    """Raise ValueError if a stage's model does not fit the weights of the previous stage."""
    for key in OF_THE_WEIGHTS:
        if getattr(own, key) != getattr(model, key):
            raise _other_weights(index, key)


def _other_weights(index: int, key: str) -> ValueError:
    return ValueError(
        f"stages.{index}: model.{key}: a stage starts from the weights of the previous one and "
        "cannot change this key; set it in [model] for all stages"
    )
