"""The verifier model of a run: a model that scores replies by a rubric. Its verdicts are no ground truth."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from debate.files import LARGEST_TOML, read_plain
from debate.settings import Settings
from envs.errors import DataError


class VerifierConfig(Settings):
    """A verifier model, and what it scores. Problems of kind "rubric" are rewarded by its verdicts."""

    endpoint: str | None = None
    """A name in [endpoints]: the model that scores. None: there is no verifier model."""
    rubric: str | None = Field(default=None, min_length=1)
    """What a reply is scored by; a row's own rubric comes first. None: for problems with a gold answer
    whether the final answer is correct, and for kind "rubric" the row must bring one."""
    rubric_file: str | None = None
    """A text file with the rubric."""
    beside_truth: bool = False
    """Whether solutions of problems with a gold answer are scored too. The agreement with truth is measured;
    nothing learns from these verdicts but judges, with ``rewards.judge_verdict_weight``."""
    diagnose: bool = False
    """Whether ``debate eval`` also asks of direct solutions to problems with a gold answer whether their
    approach is valid, and of the wrong ones why they are wrong, by fixed rubrics."""
    threshold: float = Field(default=0.5, gt=0, le=1)
    """The lowest score that passes."""
    samples: int = Field(default=1, ge=1, le=64)
    """Scores whose mean is a verdict; several need a temperature."""
    temperature: float = Field(default=0.0, ge=0)
    """Sampling temperature."""
    max_tokens: int = Field(default=1024, ge=1)
    """Most tokens of its reply, reasons included."""
    thinking_tokens: int = Field(default=0, ge=0)
    """Most tokens of its thinking; 0 for models that do not think."""
    cache: str | None = None
    """The file of what it has said, which runs may share; None is verdicts.jsonl next to the run's folder."""
    max_without: float = Field(default=0.5, ge=0, le=1)
    """A step or evaluation in which it gives no verdict on more than this share of the replies (and on 8 or
    more) ends the run, with the finished steps saved."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.endpoint is None:
            fields = type(self).model_fields
            if changed := [name for name in fields if getattr(self, name) != fields[name].default]:
                raise ValueError(f"{changed[0]}: is for a verifier model; name one as verifier.endpoint")
        if self.rubric is not None and self.rubric_file is not None:
            raise ValueError("rubric and rubric_file: are both set; leave out one")
        if self.samples > 1 and self.temperature == 0:
            raise ValueError(
                f"samples = {self.samples}: at temperature 0 all are the same; set verifier.temperature, or 1"
            )
        return self

    def own_rubric(self) -> str | None:
        """Return the rubric of the recipe; DataError where its file cannot be read."""
        if self.rubric_file is None:
            return self.rubric
        try:
            text = read_plain(Path(self.rubric_file), LARGEST_TOML).decode().strip()
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise DataError(f"verifier.rubric_file={self.rubric_file}: {why}") from error
        if not text:
            raise DataError(f"verifier.rubric_file={self.rubric_file}: is empty")
        return text
