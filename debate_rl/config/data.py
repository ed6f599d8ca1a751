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
    """A local JSONL, JSON or Parquet file instead of the data hub; or a folder or glob of such files, whose
    names may say their split as in train-00000-of-00002.parquet."""
    split: str = "train"
    """Split to train on; a local file whose rows name no split is read whole."""
    limit: int | None = Field(default=None, ge=1)
    """At most so many training problems, drawn with the run's seed."""
    levels: tuple[str | int, ...] | None = None
    """Keep these levels only."""
    subjects: tuple[str, ...] | None = None
    """Keep these subjects only."""
    fields: dict[str, str] | None = None
    """Names of the fields in a file of your own, e.g. {question = "problem", answer = "solution"}."""
    decontaminate: Literal["exact", "ngram"] | None = None
    """Leave out training problems that are the same as held-out ones but for case, blanks and dollar signs
    ("exact"), or that also share a run of 13 words with one ("ngram"); None trains on all, and warns."""
    max_prompt_tokens: int | None = Field(default=None, ge=1)
    """Leave out training problems whose first prompt has more tokens, and those that do not fit the context,
    and say how many they are; None leaves none out, and one that does not fit ends the start."""
    test_time_learning: bool = False
    """Whether held-out problems are trained on as well, which is refused without it: learning at test time.
    The start, run.json, evaluations and reports then say so."""
    mix: tuple[MixedSet, ...] | None = Field(default=None, min_length=1)
    """Several data sets in the place of ``kind``, ``path`` and what selects from them, each with a weight
    that may change with the step: tables [[env.mix]]."""
    difficulty: DifficultyConfig | None = None
    """Measured pass rates of the training problems: which are left out, and in which order they come."""

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
    """Another data set or family than the trained one; None is the same."""
    split: str = "test"
    """Split to evaluate on."""
    path: str | None = None
    """A local file, folder or glob, also that of ``env.path`` where it holds several splits; None takes the
    data set's own split, or a part of ``env.path`` where that is given."""
    levels: tuple[str | int, ...] | None = None
    """Keep these levels only; None takes ``env.levels`` unless ``kind`` names another data set."""
    subjects: tuple[str, ...] | None = None
    """Keep these subjects only; None takes ``env.subjects`` unless ``kind`` names another data set."""
    fields: dict[str, str] | None = None
    """Names of the fields in the held-out file, e.g. {question = "problem", answer = "solution"}; None takes
    ``env.fields`` unless ``kind`` names another data set."""
    limit: int = Field(default=100, ge=0)
    """How many problems; 0 turns held-out evaluation off."""
    seed: int = 0
    """Which problems are drawn; apart from the run's seed, so that runs are compared on the same ones."""
    direct: bool = False
    """Whether evaluations in training hold no debates: one agent alone solves each problem. So it is with one
    agent and one round anyway."""
    samples: int = Field(default=0, ge=0, le=10_000)
    """Direct solutions of each problem in these evaluations, at least."""


class HeldOutConfig(HeldOutSet):
    """The problems that are never trained on."""

    every: int = Field(default=50, ge=0)
    """Steps between evaluations in training, one before the first step and one at the end among them; 0 never
    evaluates."""
    judge_pairs: int = Field(default=0, ge=0, le=100_000)
    """Fixed pairs of a right and a wrong solution, plain and under attack, that the judge in training and the
    start judge are compared on at each evaluation (docs/judging.md); 0: none."""
    difficulty: str | None = None
    """A file of ``debate eval passrate --held-out``, for figures by measured pass rate."""
    strategies: tuple[str, ...] = ()
    """Strategies that ``debate train`` compares on these problems at its end, as ``debate eval --strategies``
    does: without programs, but for those that have tools, "tir" and "tir_majority"."""
    more: dict[str, HeldOutSet] = Field(default_factory=dict)
    """Further sets, evaluated at the same steps, by the name that their figures have: those of
    [held_out.more.aime] are ``eval/aime/direct/accuracy`` and the like."""

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
