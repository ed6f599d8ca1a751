"""Settings of the verifier model, which scores replies by a rubric. Its verdicts are not ground truth."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from debate.config import WriterConfig
from debate.files import LARGEST_TOML, read_plain
from debate_rl.config.endpoints import RoleConfig
from envs.errors import DataError


class VerifierConfig(RoleConfig, WriterConfig):
    """A model that scores replies. Its verdicts are the rewards of problems of kind "rubric"."""

    renamed = {"rubric_file": 'rubric, as in verifier.rubric = "@FILE"'}  # noqa: RUF012

    rubric: str | None = Field(default=None, min_length=1)
    """Rubric for problems that have none of their own. "@FILE" reads it from a text file. None: score whether
    the final answer equals the gold answer; every problem of kind "rubric" must then have its own rubric."""
    beside_truth: bool = False
    """Also score solutions of problems with a gold answer, to measure agreement with truth. Of the rewards,
    only ``rewards.judge_verdict_weight`` uses these scores."""
    diagnose: bool = False
    """In ``debate eval``, also ask by fixed rubrics if the approach of each single-agent solution is valid,
    and why a wrong solution is wrong."""
    threshold: float = Field(default=0.5, gt=0, le=1)
    """Minimum score to pass."""
    samples: int = Field(default=1, ge=1, le=64)
    """Number of sampled scores to average. Values above 1 need a temperature above 0."""
    temperature: float = Field(default=0.0, ge=0)
    """Sampling temperature of the verifier."""
    thinking_tokens: int = Field(default=0, ge=0)  # pyright: ignore[reportIncompatibleVariableOverride]
    """Maximum number of thinking tokens. Use 0 for models without thinking."""
    cache: str | None = None
    """Cache file for verdicts, which runs can share. None: verdicts.jsonl next to the run folder."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.endpoint is None:
            fields = type(self).model_fields
            if changed := [name for name in fields if getattr(self, name) != fields[name].default]:
                raise ValueError(f"{changed[0]}: only applies to a verifier model; set verifier.endpoint")
        if self.samples > 1 and self.temperature == 0:
            raise ValueError(
                f"samples = {self.samples}: samples do not differ at temperature 0; set "
                f"verifier.temperature, or use 1"
            )
        return self

    @property
    def rubric_file(self) -> str | None:
        """The file of the rubric, or None."""
        return self.rubric[1:] if self.rubric is not None and self.rubric.startswith("@") else None

    def own_rubric(self) -> str | None:
        """Return the recipe's rubric. Raise DataError if its file cannot be read."""
        if self.rubric_file is None:
            return self.rubric
        try:
            text = read_plain(Path(self.rubric_file), LARGEST_TOML).decode().strip()
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise DataError(f"verifier.rubric=@{self.rubric_file}: {why}") from error
        if not text:
            raise DataError(f"verifier.rubric=@{self.rubric_file}: is empty")
        return text
