"""Which problems a run trains on, and which it never does."""

from __future__ import annotations

import re
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from debate.config import DebateConfig
from debate.prompting.shown import rounds_held
from debate.settings import Settings
from debate_rl.config.sampling import DifficultyConfig, MixedSet, check_mix

OF_FIGURES = ("direct", "debate", "judge", "problems", "ungraded")
"""What the names of held-out figures begin with."""


class EnvConfig(Settings):
    """Which problems, and the truth about them."""

    kind: str = "gsm8k"
    """A data set or synthetic family by name, or your own environment as "package.module:Class"."""
    path: str | None = None
    """A local JSONL, JSON or Parquet file in place of the data hub, or a folder or glob of such files. File
    names may name the split, as in train-00000-of-00002.parquet."""
    split: str = "train"
    """Split to train on. A local file without splits is read whole."""
    limit: int | None = Field(default=None, ge=1)
    """Maximum number of training problems, drawn with the run's seed."""
    levels: tuple[str | int, ...] | None = None
    """Keep only these levels."""
    subjects: tuple[str, ...] | None = None
    """Keep only these subjects."""
    fields: dict[str, str] | None = None
    """Names of the fields in a file of your own, e.g. {question = "problem", answer = "solution"}."""
    decontaminate: Literal["exact", "ngram"] | None = None
    """Drop training problems that equal held-out ones up to case, spaces and dollar signs ("exact"), or that
    also share 13 consecutive words with one ("ngram"). None keeps all, with a warning."""
    max_prompt_tokens: int | None = Field(default=None, ge=1)
    """Drop training problems whose first prompt has more tokens, or does not fit the context. The number
    dropped is printed. None drops none, and a problem that does not fit is an error at startup."""
    test_time_learning: bool = False
    """Allow training on held-out problems, which is refused otherwise. The startup message, run.json,
    evaluations and reports then say so."""
    mix: tuple[MixedSet, ...] | None = Field(default=None, min_length=1)
    """Tables [[env.mix]]: several data sets in place of ``kind`` and ``path``, each with a weight that may
    change with the step."""
    difficulty: DifficultyConfig | None = None
    """Measured pass rates of the training problems: which to drop, and in which order to draw."""

    @model_validator(mode="after")
    def _sets_or_one(self) -> Self:
        if self.mix is None:
            return self
        check_mix(self.mix)
        for key in OF_ONE_SET:
            if getattr(self, key) != type(self).model_fields[key].default:
                raise ValueError(f"env.{key}: is of one data set; with env.mix give it to each [[env.mix]]")
        return self


OF_ONE_SET = ("kind", "path", "split", "limit", "levels", "subjects", "fields")
"""Keys of ``env`` that each set of a mixture has for itself."""


class HeldOutSet(Settings):
    """Problems that are never trained on, and how they are evaluated."""

    kind: str | None = None
    """Data set or family to evaluate on. None: that of training."""
    split: str = "test"
    """Split to evaluate on."""
    path: str | None = None
    """A local file, folder or glob; may be ``env.path`` if that holds several splits. None: the data set's
    own split, or a part of ``env.path`` if that is set."""
    levels: tuple[str | int, ...] | None = None
    """Keep only these levels. None: those of ``env.levels``, unless ``kind`` names another data set."""
    subjects: tuple[str, ...] | None = None
    """Keep only these subjects. None: those of ``env.subjects``, unless ``kind`` names another data set."""
    fields: dict[str, str] | None = None
    """Names of the fields in the file. None: those of ``env.fields``, unless ``kind`` names another data
    set."""
    limit: int = Field(default=100, ge=0)
    """Number of problems. 0 turns held-out evaluation off."""
    seed: int = 0
    """Seed of the draw of problems, separate from the run's seed so that runs are compared on the same
    ones."""
    direct: bool = False
    """Evaluate single-agent solutions in place of debates during training. Always so with one agent and one
    round."""
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
    """File of measured pass rates of the held-out problems: evaluations also break accuracy down by pass
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
                    f"{name!r} is the name of figures; use small letters, digits and _, and none of "
                    f"{', '.join(OF_FIGURES)}"
                )
        return value

    def due(self, done: int, steps: int) -> bool:
        """Return whether weights that have done so many of the steps are evaluated.

        >>> [done for done in range(6) if HeldOutConfig(every=2).due(done, 5)]
        [0, 2, 4, 5]
        """
        return self.every > 0 and steps > 0 and (done % self.every == 0 or done == steps)


def check_judge_pairs(held_out: HeldOutConfig, debate: DebateConfig) -> None:
    """ValueError where pairs are to be judged that no evaluation would show, or no agent could judge."""
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
