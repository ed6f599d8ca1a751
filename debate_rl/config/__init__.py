"""The configuration of a run. Each table is a class with its own defaults; this module combines them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Self, TypeAlias, TypeVar

from pydantic import Field, ValidationError, model_validator

from debate.config import DebateConfig
from debate.ramps import settings_at
from debate.seeds import derive_seed
from debate.settings import Seeded, Settings
from debate_rl.config.data import (
    AdaptiveConfig,
    EnvConfig,
    HeldOutConfig,
    RunSize,
    SamplingConfig,
    SftConfig,
    ShotsConfig,
    check_judge_pairs,
)
from debate_rl.config.endpoints import EndpointConfig, RoleConfig, check_endpoint
from debate_rl.config.engine import EngineConfig
from debate_rl.config.grader import GraderConfig
from debate_rl.config.keys import check_key
from debate_rl.config.likelihood import LikelihoodConfig
from debate_rl.config.logging import LoggingConfig
from debate_rl.config.models import ModelConfig
from debate_rl.config.reward_checks import (
    check_keys,
    check_labels,
    check_likelihood,
    check_returns,
    check_rewards,
    check_seats,
)
from debate_rl.config.sandbox import SandboxConfig
from debate_rl.config.stages import (
    Action,
    StageConfig,
    Table,
    TargetConfig,
    check_stages,
    check_weights,
    merged,
)
from debate_rl.config.verifier import VerifierConfig
from debate_rl.config.warm_start import KINDS, WarmStartConfig, kinds_of_turns
from envs.families import FAMILIES
from learner.advantages import AdvantageConfig
from learner.update.config import LearnerConfig
from rewards import RewardConfig, check_scheme

Control: TypeAlias = Literal["none", "random_judge", "shuffled_votes", "own_answer", "random_reward"]
SharedControl: TypeAlias = Literal["flipped_votes", "shared_errors"]
RAMPED = ("debate", "rewards", "advantages")
"""Tables with numbers that may change during training."""
DATA = "data"
"""A value of ``run.allow_changes`` that allows changed problems, gold answers and files. Not a key."""


class RunConfig(Settings):
    """The folder of the run."""

    dir: str = Field(default="runs/debate", min_length=1)
    """The run folder, created if missing. A run with another configuration never overwrites it. Fields in
    braces are replaced by the name of the recipe ({recipe}) or by the value of a key ({seed},
    {learner.lr})."""
    allow_changes: tuple[str, ...] = ()
    """Keys or tables that may change when the run is resumed, such as ("learner.lr", "held_out"). "data"
    allows changed problems and gold answers. ``train.steps`` may always be raised if ``learner.schedule`` is
    constant."""


class TrainConfig(RunSize):
    """The size of a step and of the run."""

    renamed = {  # noqa: RUF012
        "problems_per_step": "batch_size",
        "debates_per_problem": "group_size",
        "lookahead": "async_level",
        "control_share": "control = {flipped_votes = 0.3}",
    }

    steps: int = Field(default=100, ge=0)  # pyright: ignore[reportIncompatibleVariableOverride]
    """Number of optimizer steps. If ``epochs`` is set, the maximum number."""
    group_size: int = Field(default=4, ge=1)
    """Debates per problem. They form the group for baselines. With ``train.adaptive``, the maximum number."""
    adaptive: AdaptiveConfig | None = None
    """Stop early on a problem that has enough right and enough wrong debates. None: always run ``group_size``
    debates."""
    dynamic_sampling: int = Field(default=0, ge=0)
    """Maximum number of extra problems per step that replace problems without a learning signal [DAPO]. A
    problem has a signal if at least one truth advantage is not 0. Without truth rewards, any advantage
    counts."""
    async_level: int = Field(default=0, ge=0, le=64)
    """Maximum number of updates by which the sampling weights may lag behind. 0 alternates sampling and
    learning; larger values overlap them and need ``model.policy = "vllm"``."""
    sample_batch_size: int = Field(default=128, ge=1)
    """Maximum number of requests per batch of the local policy."""
    max_live: int | None = Field(default=None, ge=1)
    """Maximum number of concurrent debates. None: all debates of a step."""
    save_every: int = Field(default=50, ge=0)
    """Steps between checkpoints. 0: no checkpoints by step. A checkpoint is always saved every 30 minutes and
    at the end."""
    over_memory: bool = False
    """Start even if memory would not suffice for replies that all reach the token limit."""
    keep_last: int = Field(default=3, ge=1)
    """Number of newest checkpoints to keep."""
    keep_best: str = "eval/debate/winner/accuracy"
    """Held-out metric that selects the checkpoint kept as ``checkpoints/best``. "" keeps only the newest
    checkpoints."""
    target: TargetConfig | None = None
    """End the run once the interval of a held-out metric lies above a value. None: run all steps."""
    hours: float | None = Field(default=None, gt=0)
    """Maximum wall time in hours, including loading and earlier launches. The run ends after the current
    step. None: no limit."""
    on_alarm: Action | dict[str, Action] = "warn"
    """Action when a collapse detector raises an alarm. "warn": log it. "checkpoint": also save a checkpoint.
    "stop": save and end the run. "rollback": return to the checkpoint before the alarm and halve the learning
    rate; a second alarm ends the run. A table sets the action per detector; detectors not in the table
    warn."""
    max_first_mismatch: float | None = Field(default=0.1, gt=0)
    """Maximum ``mismatch_kl`` of the first step, in nats. A larger value ends the run without a checkpoint:
    sampler and trainer probably differ in model, temperature or data type. None: no limit."""
    control: Control | dict[SharedControl, Annotated[float, Field(ge=0, le=1)]] = "none"
    """Control condition of an experiment. "random_judge": a coin toss decides each pair. "shuffled_votes":
    permute the outcomes of the step's votes. "own_answer": the solution with the judge's own answer wins.
    {flipped_votes = 0.3}: invert this fraction of votes. {shared_errors = 0.3}: invert all votes on this
    fraction of pairs of answers. "random_reward": keep the votes and replace truth by a coin toss per
    solution."""
    jitter: int = Field(default=0, ge=0)
    """Seed of a relative perturbation of the start weights by about 1e-6. Runs with different seeds show the
    effect of rounding. 0: no perturbation."""

    @property
    def chunk(self) -> int:
        """Maximum number of debates on one problem that run at the same time."""
        return self.adaptive.chunk if self.adaptive else self.group_size

    @property
    def draws_rewards(self) -> bool:
        """True if random rewards replace truth."""
        return self.control == "random_reward"

    @property
    def control_and_share(self) -> tuple[Control | SharedControl, float]:
        """The control condition and the fraction that it inverts."""
        return (self.control, 0.0) if isinstance(self.control, str) else next(iter(self.control.items()))


S = TypeVar("S", bound=Settings)


def _replaced(settings: S, path: Sequence[str], value: object) -> S:
    head, *rest = path
    return settings.model_copy(
        update={head: _replaced(getattr(settings, head), rest, value) if rest else value}
    )


def _named(table: Any) -> Any:
    """Return the fields that a table sets, or the value itself if it is not a settings object."""
    return table.model_dump(exclude_unset=True) if isinstance(table, Settings) else table


class Config(Seeded):
    """The configuration of a run, as written in a TOML recipe."""

    renamed = {"goal": "train.target"}  # noqa: RUF012

    seed: int = 0
    """Seed of every random draw of the run."""
    run: RunConfig = RunConfig()
    env: EnvConfig = EnvConfig()
    sampling: SamplingConfig = SamplingConfig()
    held_out: HeldOutConfig = HeldOutConfig()
    debate: DebateConfig = DebateConfig()
    shots: ShotsConfig = ShotsConfig()
    grader: GraderConfig = GraderConfig()
    endpoints: dict[str, EndpointConfig] = Field(default_factory=dict)
    """Models that are not trained. A table [endpoints.NAME] defines one under a name of your choice."""
    verifier: VerifierConfig = VerifierConfig()
    summarizer: RoleConfig = RoleConfig()
    remote: RoleConfig = RoleConfig()
    sandbox: SandboxConfig = SandboxConfig()
    rewards: RewardConfig = RewardConfig()
    advantages: AdvantageConfig = AdvantageConfig()
    likelihood: LikelihoodConfig = LikelihoodConfig()
    model: ModelConfig
    engine: EngineConfig = EngineConfig()
    warm_start: WarmStartConfig = WarmStartConfig()
    sft: SftConfig = SftConfig()
    learner: LearnerConfig = LearnerConfig()
    train: TrainConfig = TrainConfig()
    logging: LoggingConfig = LoggingConfig()
    stages: tuple[StageConfig, ...] | None = Field(default=None, min_length=1)
    """Stages of a curriculum, as tables [[stages]]. Each stage starts from the weights of the previous one.
    ``recipe = NAME`` takes the settings of a stage from that recipe."""

    @model_validator(mode="before")
    @classmethod
    def _large_batches_for_vllm(cls, data: Any) -> Any:
        """Change two defaults for vLLM: share prefixes between rows, and use larger forward passes."""
        tables = data if isinstance(data, dict) else {}
        model, learner = (_named(tables.get(name, {})) for name in ("model", "learner"))
        if not isinstance(model, dict) or not isinstance(learner, dict) or model.get("policy") != "vllm":
            return data
        return tables | {"learner": {"share_prefixes": True, "micro_batch_tokens": 16384} | learner}

    @model_validator(mode="before")
    @classmethod
    def _no_division_for_dr_grpo(cls, data: Any) -> Any:
        """Turn off division by the standard deviation for Dr. GRPO, unless a scale is set."""
        tables = data if isinstance(data, dict) else {}
        learner, advantages = (_named(tables.get(name, {})) for name in ("learner", "advantages"))
        if (
            not isinstance(learner, dict)
            or not isinstance(advantages, dict)
            or learner.get("loss") != "dr_grpo"
        ):
            return data
        streams = {name: advantages.get(name, {}) for name in ("truth", "judge", "likelihood", "mixed")}
        named = {name: _named(own) for name, own in streams.items()}
        unscaled = {name: {"scale": "none"} | own for name, own in named.items() if isinstance(own, dict)}
        return tables | {"advantages": advantages | unscaled}

    @model_validator(mode="after")
    def _possible(self) -> Self:
        for key in self.run.allow_changes:
            if key == DATA:
                continue
            try:
                check_key(type(self), key)
            except ValueError as error:
                raise ValueError(f"run.allow_changes: {error}") from error
        if self.rewards.judge_own != self.debate.judge_own:
            raise ValueError("rewards.judge_own and debate.judge_own must be equal")
        check_labels(self.rewards, self.verifier, self.train.control)
        for protocol in self.debate.protocols():  # what open problems need: open_training
            check_scheme(protocol, self.rewards, verifiable=True, coins=self.train.draws_rewards)
        check_rewards(self.rewards, self.advantages, self.verifier)
        check_returns(self.debate, self.rewards, self.advantages)
        check_keys(self.debate, self.advantages)
        if self.rewards.reads_likelihood:
            check_likelihood(self.learner, dynamic_sampling=self.train.dynamic_sampling)
        for role in ("verifier", "summarizer", "remote"):
            check_endpoint(f"{role}.endpoint", getattr(self, role).endpoint, self.endpoints)
        check_judge_pairs(self.held_out, self.debate)
        check_seats(self.debate, self.remote, self.model, self.warm_start)
        self._refuse_warm_start()
        for message in self._contradictions():
            raise ValueError(message)
        self._refuse_impossible_stages()
        return self

    def _refuse_impossible_stages(self) -> None:
        if self.stages is None:
            return
        check_stages(self.stages)
        ends = {"train.epochs": self.train.epochs, "train.target": self.train.target}
        if key := next((key for key, value in ends.items() if value is not None), None):
            raise ValueError(
                f"{key}: in a recipe with stages, each stage sets its own end; leave this key out"
            )
        if self.sft.data:
            raise ValueError("sft.data: each stage has its own replies in [stages.sft]; leave it out")
        for index in range(len(self.stages)):
            check_weights(index, self.of_stage(index).model, self.model)

    def of_stage(self, index: int, *, demotes: bool = False, **others: Table | int) -> Self:
        """Return the configuration of a stage's run, with the stage's changes and then ``others`` applied.

        If ``demotes`` is true, the stage may end with a return to the previous stage. ValueError names the
        stage and the key.
        """
        stage = (self.stages or ())[index]
        tables = merged(self.model_dump(exclude_unset=True, exclude={"stages"}), stage.tables())
        goal = stage.goal(demotes=demotes)
        if goal is not None:
            tables = merged(tables, {"train": {"target": goal.model_dump(exclude_none=True)}})
        try:
            return type(self).model_validate(tables | others)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join(str(part) for part in first["loc"])
            message = first["msg"].removeprefix("Value error, ")
            raise ValueError(f"stages.{index} ({stage.name}): {key}{': ' if key else ''}{message}") from error

    def _contradictions(self) -> Iterator[str]:
        """Yield an error message, with a fix, for each contradiction between keys of different tables."""
        train, vllm = self.train, self.model.vllm
        ahead, oldest, on_vllm = train.async_level, self.learner.max_staleness, self.model.policy == "vllm"
        if self.sampling.remembers and ahead:
            yield (
                f"train.async_level = {ahead}: draws the problems of later steps before the debates have "
                "ended that sampling.towards_half, rest_steps and retry_steps look at; set it to 0"
            )
        if self.env.mix and self.held_out.limit and self.held_out.kind is None:
            yield (
                "held_out.kind: with env.mix there is no one data set to hold out from; name one, or set "
                "held_out.limit = 0"
            )
        if ahead and not on_vllm:
            yield (
                f"train.async_level = {ahead}: needs an engine that samples; set "
                'model.policy = "vllm", or train.async_level = 0'
            )
        if oldest is not None and oldest < ahead:
            yield (
                f"train.async_level = {ahead} gives rows up to {ahead} steps old, and "
                f"learner.max_staleness = {oldest} would drop them; make it {ahead} or more"
            )
        for key in ("engines", "servers", "adapter_folder", "sleep"):
            value = getattr(vllm, key)
            if value and value != "auto" and not on_vllm:
                yield (
                    f"model.vllm.{key} = {json.dumps(value)}: is for vLLM alone; set model.policy = "
                    f'"vllm", or leave out model.vllm.{key}'
                )
        if vllm.adapter_folder is not None and not vllm.servers:
            yield (
                f"model.vllm.adapter_folder = {json.dumps(vllm.adapter_folder)}: is for servers that run "
                "already; name them in model.vllm.servers, or leave out model.vllm.adapter_folder"
            )
        if vllm.sleep is True and not self.vllm_within:
            yield (
                "model.vllm.sleep = true: an engine sleeps only within the learner's process, in turn with "
                'it; set it to "auto", or leave out train.async_level, model.vllm.engines and servers'
            )
        if self.summarizer.endpoint is not None and not (
            self.debate.summary.enabled or self.debate.compress.over is not None
        ):
            yield "summarizer.endpoint: is not used; set debate.summary.enabled or debate.compress.over"
        yield from self._impossible_groups()

    def _impossible_groups(self) -> Iterator[str]:
        """Yield a message for each setting of ``train.adaptive`` that no group of debates can meet."""
        adaptive, most = self.train.adaptive, self.train.group_size
        if adaptive is None:
            return
        wanted = adaptive.model_dump()
        if self.debate.num_agents == 1:
            wanted["right + train.adaptive.wrong"] = adaptive.right + adaptive.wrong
        for key, count in wanted.items():
            if count > most:
                yield (
                    f"train.adaptive.{key} = {count}: a problem has at most train.group_size = "
                    f"{most} debates; raise that, or lower train.adaptive.{key}"
                )

    def _refuse_warm_start(self) -> None:
        if not self.warm_start.steps:
            return
        if self.env.kind not in FAMILIES:
            raise ValueError(
                f"warm_start: has demonstrations of {', '.join(FAMILIES)}, not of env.kind = "
                f"{self.env.kind!r}; leave out warm_start, or choose one of these"
            )
        shown, had = self.warm_start.levels, map(str, self.env.levels or ())
        if shown and self.env.levels and (others := {*map(str, shown)} - {*had}):
            raise ValueError(f"warm_start.levels: not among env.levels: {', '.join(sorted(others))}")
        if self.debate.conversation and self.warm_start.debate_steps:
            raise ValueError(
                f"warm_start.debate_steps = {self.warm_start.debate_steps}: demonstrates single turns, not "
                f"conversations; set warm_start.debate_steps = 0, or debate.conversation = false"
            )
        if self.model.lora_rank:
            raise ValueError(
                f"warm_start changes all weights, but model.lora_rank = {self.model.lora_rank} trains an "
                f"adapter; set model.lora_rank = 0, or leave out warm_start"
            )

        held = kinds_of_turns(self.debate)
        if self.warm_start.debate_steps and not any(
            size for kind, size in zip(KINDS, self.warm_start.batch, strict=True) if kind in held
        ):
            raise ValueError(
                f"warm_start.batch: counts {', '.join(KINDS)}, and has none of what this debate can use "
                f"({', '.join(sorted(held))}); got {list(self.warm_start.batch)}"
            )

    @property
    def vllm_within(self) -> bool:
        """True if vLLM would run within the learner's process and alternate with the learner."""
        vllm = self.model.vllm
        return not (vllm.engines or vllm.servers or self.train.async_level)

    @property
    def verifier_name(self) -> str:
        """The verifier model, or the import path of a custom policy. "" if there is no verifier."""
        name = self.verifier.endpoint
        return "" if name is None else self.endpoints[name].name

    def at_step(self, step: int) -> Self:
        """Return the configuration at a step, with each ramp replaced by its current value."""
        tables = {name: settings_at(getattr(self, name), step) for name in RAMPED}
        return self.model_copy(update=tables)

    def with_chosen(self, chosen: Mapping[str, bool | float]) -> Self:
        """Return the configuration with each "auto" replaced by the chosen value."""
        config = self
        for key, value in chosen.items():
            config = _replaced(config, key.split("."), value)
        return config

    def resolved_learner(self, chosen: Mapping[str, bool | float] | None = None) -> LearnerConfig:
        """Return the learner's settings, with its seed, the constant of dr_grpo and the chosen values. Rows
        older than ``train.async_level`` are dropped, because only a fault can produce them.
        """
        whole = self.debate.max_tokens + self.debate.thinking_tokens
        oldest = self.learner.max_staleness
        return self.with_chosen(chosen or {}).learner.model_copy(
            update={
                "seed": derive_seed(self.seed, "learner", self.learner.seed),
                "max_tokens": self.learner.max_tokens or whole,
                "max_staleness": self.train.async_level + 1 if oldest is None else oldest,
            }
        )
