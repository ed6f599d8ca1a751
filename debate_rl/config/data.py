"""The data of a run: training and held-out problems, examples in prompts, and replies to learn."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import ceil
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, field_validator, model_validator

from debate.config import DebateConfig
from debate.prompting.shown import rounds_held
from debate.ramps import Points, Ramp, Share, Weight, Within, check_steps, value_at, values_of
from debate.settings import Seeded, Settings

Order: TypeAlias = Literal["random", "easy_first", "hard_first", "format_first"]
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
OF_FIGURES = ("direct", "debate", "judge", "problems", "ungraded")
"""Prefixes of the names of held-out figures."""


class _Split(Settings):
    split: str = "train"
    """Split of the data set. A local file without splits is read whole."""


class Files(_Split):
    """Rows of files or of a data set."""

    path: str | None = None
    """A local JSONL, JSON or Parquet file in place of the data hub, or a folder or glob of such files. File
    names may name the split, as in train-00000-of-00002.parquet."""
    fields: dict[str, str] | None = None
    """Names of the fields in a file of your own, e.g. {question = "problem", answer = "solution"}."""


class RunSize(Settings):
    """The length of a run and the size of its steps."""

    steps: int | None = Field(default=None, ge=0)
    """Optimizer steps. With ``epochs``, the maximum."""
    epochs: float | None = Field(default=None, gt=0)
    """Passes over the training problems, or over the replies, rounded to whole steps. None: as many as
    ``steps`` take."""
    batch_size: int = Field(default=8, ge=1)
    """Problems per step, each debated ``group_size`` times, or replies per step."""


class Levels(Settings):
    """A choice of levels."""

    levels: tuple[str | int, ...] | None = None
    """Keep only these levels."""


class Selection(_Split, Levels):
    """A choice of rows."""

    limit: int | None = Field(default=None, ge=1)
    """Maximum number of problems (or replies), drawn with the run's seed."""


class ProblemSet(Selection, Files):
    """Problems of one data set."""

    kind: str | None = None
    """A data set or synthetic family by name, or your own environment as "package.module:Class"."""
    subjects: tuple[str, ...] | None = None
    """Keep only these subjects."""


class MixedSet(ProblemSet):
    """One data set of a mixture of training problems."""

    name: str
    """Name of the set in metrics: lower-case letters, digits and _."""
    kind: str  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]
    """A data set or synthetic family by name, or your own environment as "package.module:Class"."""
    weight: Weight = 1.0
    """Share of a step's problems, relative to the other weights: a number, or points [[step, weight], ...]
    joined by straight lines."""

    @field_validator("name")
    @classmethod
    def _possible_name(cls, value: str) -> str:
        if not NAME.fullmatch(value):
            raise ValueError(f"{value!r} becomes part of metric names; use lower-case letters, digits and _")
        return value


def knots(ramps: Sequence[Ramp]) -> list[int]:
    """Return step 0 and the steps at which ramps bend. Between two of them every ramp is linear."""
    return sorted({0, *(step for ramp in ramps if isinstance(ramp, Points) for step, _ in ramp)})


def check_mix(mix: Sequence[MixedSet]) -> None:
    """Raise ValueError for two sets of one name, and for a step at which all weights are 0.

    Weights are linear between knots and never negative, so all are 0 between two knots only if all are 0 at
    both.
    """
    names = [one.name for one in mix]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"env.mix: two sets are named {twice!r}; give each its own name")
    weights = [one.weight for one in mix]
    for step in knots(weights):
        if not any(value_at(weight, step) for weight in weights):
            raise ValueError(f"env.mix: all weights are 0 at step {step}; give one set a weight above 0")


class DifficultyConfig(Settings):
    """How a run uses the pass rates that ``debate eval passrate`` measured on training problems."""

    path: str
    """A file written by ``debate eval passrate``."""
    at_least: Share = 0.0
    """Drop problems with a lower pass rate, such as those never solved. May change with the step."""
    at_most: Share = 1.0
    """Drop problems with a higher pass rate, such as those always solved. May change with the step."""
    order: Order = "random"
    """Order of an epoch: shuffled, from high to low pass rate ("easy_first"), from low to high, or by the
    fraction of missing answers."""
    unmeasured: Literal["refuse", "keep", "leave_out"] = "refuse"
    """What to do with training problems that the file lacks."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        for step in knots((self.at_least, self.at_most)):
            low, high = value_at(self.at_least, step), value_at(self.at_most, step)
            if low > high:
                raise ValueError(
                    f"env.difficulty.at_least = {low:g} is above at_most = {high:g} at step {step}, so no "
                    f"problem would be left"
                )
        return self

    @property
    def changes(self) -> bool:
        """Whether the bounds change with the step."""
        return isinstance(self.at_least, Points) or isinstance(self.at_most, Points)


class EnvConfig(ProblemSet):
    """The training problems."""

    renamed = {"test_time_learning": 'decontaminate = "never"'}  # noqa: RUF012

    kind: str = "gsm8k"  # pyright: ignore[reportIncompatibleVariableOverride]
    """A data set or synthetic family by name, or your own environment as "package.module:Class"."""
    decontaminate: Literal["exact", "ngram", "never"] | None = None
    """Drop training problems that equal held-out ones up to case, spaces and dollar signs ("exact"), or that
    also share 13 consecutive words with one ("ngram"). None refuses to start if questions are equal, and
    warns of shared words. "never" trains on held-out problems on purpose (test-time learning): the startup
    message, run.json, evaluations and reports then say so."""
    max_prompt_tokens: int | None = Field(default=None, ge=1)
    """Drop training problems whose first prompt has more tokens, or does not fit the context. The number
    dropped is printed. None drops no problem; a problem that does not fit is then an error at startup."""
    mix: tuple[MixedSet, ...] | None = Field(default=None, min_length=1)
    """Tables [[env.mix]]: several data sets in place of ``kind`` and ``path``, each with a weight that may
    change with the step."""
    difficulty: DifficultyConfig | None = None
    """Measured pass rates of the training problems: which to drop, and in which order to draw."""

    @property
    def test_time_learning(self) -> bool:
        """Whether the run trains on held-out problems on purpose."""
        return self.decontaminate == "never"

    @model_validator(mode="after")
    def _sets_or_one(self) -> Self:
        if self.mix is None:
            return self
        check_mix(self.mix)
        for key in OF_ONE_SET:
            if getattr(self, key) != type(self).model_fields[key].default:
                raise ValueError(
                    f"env.{key}: applies to a single data set; with env.mix, set it in each [[env.mix]]"
                )
        return self


OF_ONE_SET = tuple(ProblemSet.model_fields)
"""Keys of ``env`` that each set of a mixture has for itself."""


class HeldOutSet(ProblemSet, Seeded):
    """Problems that are never trained on, and how they are evaluated."""

    kind: str | None = None
    """Data set or family to evaluate on. None: that of training, with its levels, subjects and fields unless
    they are set here."""
    split: str = "test"
    """Split to evaluate on."""
    path: str | None = None
    """A local file, folder or glob; may be ``env.path`` if that holds several splits. None: the data set's
    own split, or a part of ``env.path`` if that is set."""
    limit: int = Field(default=100, ge=0)  # pyright: ignore[reportIncompatibleVariableOverride]
    """Number of problems. 0 turns held-out evaluation off."""
    seed: int = 0
    """Seed of the draw of problems, separate from the run's seed so that runs are compared on the same
    ones."""
    direct: bool = False
    """Evaluate single-agent solutions instead of debates during training. With one agent and one round this
    is always so."""
    samples: int = Field(default=0, ge=0, le=10_000)
    """Minimum number of direct solutions per problem in these evaluations."""


class HeldOutConfig(HeldOutSet):
    """The problems that are never trained on."""

    every: int = Field(default=50, ge=0)
    """Steps between evaluations during training; one comes before the first step and one after the last. 0:
    never."""
    judge_pairs: int = Field(default=0, ge=0, le=100_000)
    """Number of fixed pairs of a right and a wrong solution, plain and under attack, on which each evaluation
    compares the current judge with the start judge (docs/report.md). 0: none."""
    difficulty: str | None = None
    """File of measured pass rates of the held-out problems. If set, evaluations also report accuracy by pass
    rate."""
    strategies: tuple[str, ...] = ()
    """Strategies compared on these problems at the end of the run, as by ``debate eval --strategies``. Only
    "tir" and "tir_majority" run programs."""
    more: dict[str, HeldOutSet] = Field(default_factory=dict)
    """Further sets, evaluated at the same steps. Metrics of [held_out.more.aime] are named
    ``eval/aime/direct/accuracy`` and so on."""

    @field_validator("more")
    @classmethod
    def _possible_names(cls, value: dict[str, HeldOutSet]) -> dict[str, HeldOutSet]:
        for name in value:
            if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name) or name in OF_FIGURES:
                raise ValueError(
                    f"{name!r} becomes part of metric names; use lower-case letters, digits and _, but none "
                    f"of "
                    f"{', '.join(OF_FIGURES)}"
                )
        return value

    def due(self, done: int, steps: int) -> bool:
        """Return whether to evaluate after ``done`` of the steps.

        >>> [done for done in range(6) if HeldOutConfig(every=2).due(done, 5)]
        [0, 2, 4, 5]
        """
        return self.every > 0 and steps > 0 and (done % self.every == 0 or done == steps)


def check_judge_pairs(held_out: HeldOutConfig, debate: DebateConfig) -> None:
    """Raise ValueError if no evaluation would show the pairs, or no agent could judge them."""
    if not held_out.judge_pairs:
        return
    ways = {
        "held_out.limit = 0": (not held_out.limit, "there are no problems to make pairs of"),
        "held_out.every = 0": (not held_out.every, "nothing is evaluated in training"),
        f"debate.num_agents = {debate.num_agents}": (
            debate.num_agents < 3,
            "a judge needs two others to compare",
        ),
        "debate.history_rounds = 0": (debate.history_rounds == 0, "a judge is shown no work to compare"),
        f"debate.num_rounds = {debate.num_rounds}": (rounds_held(debate) < 2, "nobody judges anything"),
    }
    for setting, (impossible, why) in ways.items():
        if impossible:
            raise ValueError(
                f"held_out.judge_pairs = {held_out.judge_pairs}: with {setting} {why}; set it to 0"
            )


class ShotsConfig(Files):
    """Solved examples before a problem in first-round prompts."""

    renamed = {"until": "a point of shots.count, as in [[0, 4], [100, 0]]"}  # noqa: RUF012

    count: Annotated[float | Points, Within(0, 64)] = 0
    """Solved examples before each problem in the first round. 0: none. Points such as [[0, 4], [100, 0]] fade
    them out, rounded up; evaluations use the last number."""
    path: str | None = None
    """A file of rows with question, answer and solution, or a shipped one: "arithmetic", "mathematics". None
    takes ``split`` of the training data set."""
    draw: Literal["fixed", "each"] = "fixed"
    """The same examples for all problems, or new ones for each. Drawn with the run's seed."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        for key in ("path", "fields"):
            if not self.count and getattr(self, key):
                raise ValueError(
                    f"{key}: {getattr(self, key)!r} only has an effect with shots.count, which is 0"
                )
        return self

    def count_at(self, step: int) -> int:
        """Return the number of examples at a step of training.

        >>> [ShotsConfig(count=[[0, 4], [8, 0]]).count_at(step) for step in range(9)]
        [4, 4, 3, 3, 2, 2, 1, 1, 0]
        """
        return ceil(value_at(self.count, step) - 1e-9)

    @property
    def most(self) -> int:
        """The maximum number of examples at any step."""
        return ceil(max(values_of(self.count)))

    @property
    def final(self) -> int:
        """The number of examples in evaluations, which is the same before, during and after training."""
        return ceil(values_of(self.count)[-1])


class SftConfig(Selection, RunSize):
    """Supervised training: the replies and their number; off without ``data``."""

    data: tuple[str, ...] = ()
    """Files of replies (JSON lines, JSON or Parquet, such as those of ``debate traces``), and data sets with
    written solutions by name, such as "numinamath_cot" or "openmathreasoning"."""
    per_problem: int | None = Field(default=None, ge=1)
    """Maximum number of replies per problem; the first ones are kept."""
    max_tokens: int = Field(default=4096, ge=2)
    """Drop examples with more tokens than this in prompt and reply together. The number of dropped examples
    is printed."""
    epochs: float = Field(default=2.0, gt=0)  # pyright: ignore[reportIncompatibleVariableOverride]
    """Passes over the replies, rounded to whole steps."""
    steps: int | None = Field(default=None, ge=1)
    """Maximum number of steps. None: as many as the epochs take."""
    batch_size: int = Field(default=32, ge=1)
    """Replies per step; a step is one update."""
    held_back: int = Field(default=0, ge=0)
    """Number of replies held back for ``eval/sft/loss``. All other replies to their problems are held back
    too."""
    other_prompts: bool = False
    """Accept replies that a teacher gave to another prompt family than ``debate.prompts``."""

    @field_validator("data")
    @classmethod
    def _named_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not name or value.count(name) > 1:
                raise ValueError(f"{name!r} is {'empty' if not name else 'named twice'}")
        return value


class AdaptiveConfig(Settings):
    """The number of debates per problem: until enough are right and enough are wrong."""

    chunk: int = Field(ge=1)
    """Debates per problem held at a time, until the problem has enough right and wrong ones or
    ``train.group_size`` in all."""
    right: int = Field(default=2, ge=1)
    """Number of right debates that is enough. A debate is right if any solution of its last round is
    right."""
    wrong: int = Field(default=2, ge=1)
    """Number of wrong debates that is enough. A debate is wrong if any answer of its last round is wrong or
    missing. A debate of several agents can therefore be both right and wrong."""


class SamplingConfig(Settings):
    """Gates that decide whether a step draws a problem; none by default."""

    renamed = {  # noqa: RUF012
        "measured_at_least": "env.difficulty.at_least",
        "measured_at_most": "env.difficulty.at_most",
    }

    levels: tuple[tuple[int, tuple[str | int, ...]], ...] | None = Field(default=None, min_length=1)
    """Levels by step, such as [[0, [1, 2]], [100, [3, 4, 5]]]: from each step on, only these. Problems
    without a level always pass."""
    towards_half: bool = False
    """Admit a problem with probability max(0.1, 4 p (1 - p)), where p is its recent pass rate in this run
    (exponential average with weight 0.5): problems solved half of the time come most often. Problems not
    drawn yet always pass."""
    rest_steps: int = Field(default=0, ge=0)
    """Steps for which a drawn problem is not drawn again."""
    retry_steps: int = Field(default=0, ge=0)
    """Steps for which a problem is set aside if its last debates were all right or all wrong."""

    @field_validator("levels")
    @classmethod
    def _ascending(
        cls, value: tuple[tuple[int, tuple[str | int, ...]], ...] | None
    ) -> tuple[tuple[int, tuple[str | int, ...]], ...] | None:
        if value is not None:
            check_steps([step for step, _ in value])
        for step, levels in value or ():
            if not levels:
                raise ValueError(f"names no level from step {step} on")
        return value

    @property
    def remembers(self) -> bool:
        """Whether a gate depends on results of earlier steps."""
        return self.towards_half or self.rest_steps > 0 or self.retry_steps > 0
