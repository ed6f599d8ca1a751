"""Settings of the data: training and held-out problems, few-shot examples, and supervised replies."""

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
"""Prefixes in the names of held-out metrics."""


class _Split(Settings):
    split: str = "train"
    """Split of the data set. Ignored for a local file without splits."""


class Files(_Split):
    """Rows of files or of a data set."""

    path: str | None = None
    """A local JSONL, JSON or Parquet file, or a folder or glob of such files. File names may contain the
    split, as in train-00000-of-00002.parquet. None: download the data set."""
    fields: dict[str, str] | None = None
    """Field names in your own files, such as {question = "problem", answer = "solution"}."""


class RunSize(Settings):
    """The length of a run and the size of its steps."""

    steps: int | None = Field(default=None, ge=0)
    """Optimizer steps. With ``epochs``, the maximum."""
    epochs: float | None = Field(default=None, gt=0)
    """Passes over the training problems or replies, rounded to whole steps. None: only ``steps`` sets the
    length."""
    batch_size: int = Field(default=8, ge=1)
    """Problems per step. Each problem gets ``group_size`` debates."""


class Levels(Settings):
    """A selection of levels."""

    levels: tuple[str | int, ...] | None = None
    """Keep only these levels."""


class Selection(_Split, Levels):
    """A selection of rows."""

    limit: int | None = Field(default=None, ge=1)
    """Maximum number of problems (or replies), drawn with the run's seed."""


class ProblemSet(Selection, Files):
    """A selection of problems from one data set."""

    kind: str | None = None
    """A data set or synthetic family by name, or your own environment as "package.module:Class"."""
    subjects: tuple[str, ...] | None = None
    """Keep only these subjects."""


class MixedSet(ProblemSet):
    """One data set in a mixture of training problems."""

    name: str
    """Name of the set in metrics: lower-case letters, digits and _."""
    kind: str  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]
    """A data set or synthetic family by name, or your own environment as "package.module:Class"."""
    weight: Weight = 1.0
    """Weight of this data set in each step, relative to the other weights: a number, or points [[step,
    weight], ...] with linear interpolation."""

    @field_validator("name")
    @classmethod
    def _possible_name(cls, value: str) -> str:
        if not NAME.fullmatch(value):
            raise ValueError(f"{value!r} becomes part of metric names; use lower-case letters, digits and _")
        return value


def knots(ramps: Sequence[Ramp]) -> list[int]:
    """Return step 0 and all steps at which a ramp changes its slope."""
    return sorted({0, *(step for ramp in ramps if isinstance(ramp, Points) for step, _ in ramp)})


def check_mix(mix: Sequence[MixedSet]) -> None:
    """Raise ValueError if two sets have the same name, or if all weights are 0 at some step.

    It is enough to check the knots: weights are linear between knots and never negative.
    """
    names = [one.name for one in mix]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"env.mix: two sets are named {twice!r}; give each its own name")
    weights = [one.weight for one in mix]
    for step in knots(weights):
        if not any(value_at(weight, step) for weight in weights):
            raise ValueError(f"env.mix: all weights are 0 at step {step}; give one set a weight above 0")


class DifficultyConfig(Settings):
    """Use of the pass rates that ``debate eval passrate`` measured on the training problems."""

    path: str
    """A file written by ``debate eval passrate``."""
    at_least: Share = 0.0
    """Minimum pass rate. Above 0, problems that were never solved are dropped. May change during training."""
    at_most: Share = 1.0
    """Maximum pass rate. Below 1, problems that were always solved are dropped. May change during
    training."""
    order: Order = "random"
    """Order of the problems in an epoch: shuffled, by falling pass rate ("easy_first"), by rising pass rate,
    or by the fraction of missing answers."""
    unmeasured: Literal["refuse", "keep", "leave_out"] = "refuse"
    """What to do with training problems that are not in the file."""

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
        """True if the bounds change during training."""
        return isinstance(self.at_least, Points) or isinstance(self.at_most, Points)


class EnvConfig(ProblemSet):
    """The training problems."""

    renamed = {"test_time_learning": 'decontaminate = "never"'}  # noqa: RUF012

    kind: str = "gsm8k"  # pyright: ignore[reportIncompatibleVariableOverride]
    """A data set or synthetic family by name, or your own environment as "package.module:Class"."""
    decontaminate: Literal["exact", "ngram", "never"] | None = None
    """"exact" drops training problems that equal a held-out problem, ignoring case, spaces and dollar signs.
    "ngram" also drops problems that share 13 consecutive words with one. None refuses to start if problems
    are equal and warns of shared words. "never" trains on held-out problems on purpose (test-time learning);
    the startup message, run.json, evaluations and reports say so."""
    max_prompt_tokens: int | None = Field(default=None, ge=1)
    """Drop training problems with a longer first prompt or one that does not fit the context, and print their
    number. None: a prompt that does not fit the context is an error at startup."""
    mix: tuple[MixedSet, ...] | None = Field(default=None, min_length=1)
    """A mixture of data sets as tables [[env.mix]], which replaces ``kind`` and ``path``. Weights may change
    during training."""
    difficulty: DifficultyConfig | None = None
    """Use of measured pass rates to drop and order the training problems."""

    @property
    def test_time_learning(self) -> bool:
        """True if the run trains on held-out problems on purpose."""
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
"""Keys of ``env`` that each data set of a mixture sets separately."""


class HeldOutSet(ProblemSet, Seeded):
    """A set of held-out problems, and its evaluation."""

    kind: str | None = None
    """Data set or family to evaluate on. None: the training data set, with the same levels, subjects and
    fields unless set here."""
    split: str = "test"
    """Split to evaluate on."""
    path: str | None = None
    """A local file, folder or glob. It may equal ``env.path`` if that has several splits. None: ``split`` of
    the data set, or a part of ``env.path`` if that is set."""
    limit: int = Field(default=100, ge=0)  # pyright: ignore[reportIncompatibleVariableOverride]
    """Number of problems. 0 turns held-out evaluation off."""
    seed: int = 0
    """Seed that selects the problems. It is separate from the run's seed, so runs are compared on the same
    problems."""
    direct: bool = False
    """During training, evaluate single-agent solutions instead of debates. Always true with one agent and one
    round."""
    samples: int = Field(default=0, ge=0, le=10_000)
    """Minimum number of single-agent solutions per problem in these evaluations."""


class HeldOutConfig(HeldOutSet):
    """The held-out problems and their evaluation."""

    every: int = Field(default=50, ge=0)
    """Steps between evaluations. The run also evaluates before the first and after the last step. 0: never
    evaluate."""
    judge_pairs: int = Field(default=0, ge=0, le=100_000)
    """Number of fixed pairs of a right and a wrong solution. On these pairs, with and without attacks, each
    evaluation compares the current judge with the start judge (docs/report.md). 0: no comparison."""
    difficulty: str | None = None
    """File with measured pass rates of the held-out problems. Evaluations then also report accuracy by pass
    rate."""
    strategies: tuple[str, ...] = ()
    """Strategies to compare on these problems at the end of the run (see ``debate eval --strategies``). Only
    "tir" and "tir_majority" run programs."""
    more: dict[str, HeldOutSet] = Field(default_factory=dict)
    """Further held-out sets, evaluated at the same steps. A set [held_out.more.aime] has metrics such as
    ``eval/aime/direct/accuracy``."""

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
        """Return True if an evaluation is due after ``done`` steps.

        >>> [done for done in range(6) if HeldOutConfig(every=2).due(done, 5)]
        [0, 2, 4, 5]
        """
        return self.every > 0 and steps > 0 and (done % self.every == 0 or done == steps)


def check_judge_pairs(held_out: HeldOutConfig, debate: DebateConfig) -> None:
    """Raise ValueError if ``judge_pairs`` is set but nothing could judge or evaluate the pairs."""
    if not held_out.judge_pairs:
        return
    ways = {
        "held_out.limit = 0": (not held_out.limit, "there are no problems for the pairs"),
        "held_out.every = 0": (not held_out.every, "no evaluation takes place during training"),
        f"debate.num_agents = {debate.num_agents}": (
            debate.num_agents < 3,
            "a judge needs two other agents to compare",
        ),
        "debate.history_rounds = 0": (debate.history_rounds == 0, "a judge sees no solutions to compare"),
        f"debate.num_rounds = {debate.num_rounds}": (rounds_held(debate) < 2, "no agent judges"),
    }
    for setting, (impossible, why) in ways.items():
        if impossible:
            raise ValueError(
                f"held_out.judge_pairs = {held_out.judge_pairs}: with {setting} {why}; set it to 0"
            )


class ShotsConfig(Files):
    """Solved examples in first-round prompts (few-shot prompting)."""

    renamed = {"until": "a point of shots.count, as in [[0, 4], [100, 0]]"}  # noqa: RUF012

    count: Annotated[float | Points, Within(0, 64)] = 0
    """Number of solved examples before each problem in the first round. Points such as [[0, 4], [100, 0]]
    fade them out, rounded up; evaluations use the last number."""
    path: str | None = None
    """A file with questions, answers and solutions, or a shipped one: "arithmetic" or "mathematics". None:
    use ``split`` of the training data set."""
    draw: Literal["fixed", "each"] = "fixed"
    """"fixed": the same examples for all problems. "each": different examples for each problem. The run's
    seed selects them."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        for key in ("path", "fields"):
            if not self.count and getattr(self, key):
                raise ValueError(f"{key}: {getattr(self, key)!r} has no effect with shots.count = 0")
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
        """The number of examples in all evaluations."""
        return ceil(values_of(self.count)[-1])


class SftConfig(Selection, RunSize):
    """Supervised training on stored replies. Off if ``data`` is empty."""

    data: tuple[str, ...] = ()
    """Files of replies (JSON lines, JSON or Parquet; ``debate traces`` writes such files), or names of data
    sets with solutions, such as "numinamath_cot" and "openmathreasoning"."""
    per_problem: int | None = Field(default=None, ge=1)
    """Maximum number of replies per problem. Later replies to the problem are dropped."""
    max_tokens: int = Field(default=4096, ge=2)
    """Maximum tokens of prompt and reply together. Longer examples are dropped, and their number is
    printed."""
    epochs: float = Field(default=2.0, gt=0)  # pyright: ignore[reportIncompatibleVariableOverride]
    """Passes over the replies, rounded to whole steps."""
    steps: int | None = Field(default=None, ge=1)
    """Maximum number of steps. None: only ``epochs`` sets the length."""
    batch_size: int = Field(default=32, ge=1)
    """Replies per step. A step is one update."""
    held_back: int = Field(default=0, ge=0)
    """Number of replies to keep out of training and use for ``eval/sft/loss``. Other replies to the same
    problems are not trained on either."""
    other_prompts: bool = False
    """Accept replies to prompts of another prompt family than ``debate.prompts``."""

    @field_validator("data")
    @classmethod
    def _named_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not name or value.count(name) > 1:
                raise ValueError(f"{name!r} is {'empty' if not name else 'named twice'}")
        return value


class AdaptiveConfig(Settings):
    """Early stopping for problems that have enough right and enough wrong debates."""

    chunk: int = Field(ge=1)
    """Debates per problem that run at the same time. Another chunk follows until the problem has enough right
    and wrong debates, or ``train.group_size`` debates in total."""
    right: int = Field(default=2, ge=1)
    """Required number of right debates. A debate is right if any solution of its last round is right."""
    wrong: int = Field(default=2, ge=1)
    """Required number of wrong debates. A debate is wrong if any answer of its last round is wrong or
    missing. A debate of several agents can be both right and wrong."""


class SamplingConfig(Settings):
    """Rules that decide which problems a step may draw. By default, it may draw any."""

    renamed = {  # noqa: RUF012
        "measured_at_least": "env.difficulty.at_least",
        "measured_at_most": "env.difficulty.at_most",
    }

    levels: tuple[tuple[int, tuple[str | int, ...]], ...] | None = Field(default=None, min_length=1)
    """Levels that may be drawn from each step on, such as [[0, [1, 2]], [100, [3, 4, 5]]]. Problems without a
    level may always be drawn."""
    towards_half: bool = False
    """Prefer problems that are solved about half of the time. A problem is accepted with probability max(0.1,
    4 p (1 - p)), where p is its pass rate in this run, as an exponential average with weight 0.5. New
    problems are always accepted."""
    rest_steps: int = Field(default=0, ge=0)
    """Number of steps before a problem can be drawn again."""
    retry_steps: int = Field(default=0, ge=0)
    """Number of steps before a problem can be drawn again if its last debates were all right or all wrong."""

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
        """True if a rule depends on the results of earlier steps."""
        return self.towards_half or self.rest_steps > 0 or self.retry_steps > 0
