"""How the likelihood reward is computed: the part of a solution, the prompt, and the baseline."""

from __future__ import annotations

import re
from string import Template
from typing import Literal, Self

from pydantic import model_validator

from debate.settings import Settings

FIELDS = ("reasoning", "answer")


class LikelihoodConfig(Settings):
    """What the frozen reader reads, with ``rewards.likelihood_weight``. The question is never included."""

    prompt: str = "Reasoning: $reasoning\nAnswer: $answer\n"
    """Raw text with $reasoning, followed by $answer, the gold answer. The answer and the text after it are
    scored: the line break tells 4 from the beginning of 42."""
    reads: Literal["reasoning", "solution"] = "reasoning"
    """"reasoning": the solution up to its final answer, which truth rewards already. "solution": all of it,
    as in the source."""
    baseline: Literal["reference", "empty", "none"] = "reference"
    """What is subtracted from the score: the score of one solution of the frozen reference, sampled once per
    problem ("reference"); the score without reasoning ("empty"); or nothing ("none"). Group baselines cancel
    it, but it makes the logged metric comparable between problems."""

    @model_validator(mode="after")
    def _has_both(self) -> Self:
        if _fields(self.prompt) != FIELDS:
            raise ValueError(
                f"prompt: must contain $reasoning, then $answer, once each and no other field ($$ is a "
                f"dollar sign); got {self.prompt!r}"
            )
        return self

    def parts(self, reasoning: str, answer: str) -> tuple[str, str]:
        r"""Return the text before the answer, and the answer with the text after it.

        >>> LikelihoodConfig().parts("2 + 2 = 4", "4")
        ('Reasoning: 2 + 2 = 4\nAnswer: ', '4\n')
        """
        at = next(match for match in Template.pattern.finditer(self.prompt) if _name(match) == "answer")
        before, after = self.prompt[: at.start()], self.prompt[at.end() :]
        return Template(before).substitute(reasoning=reasoning), answer + Template(after).substitute()


def _fields(prompt: str) -> tuple[str, ...]:
    """Return the names of the fields in order, "" for a dollar sign without a name."""
    found = Template.pattern.finditer(prompt)
    return tuple(_name(match) for match in found if match["escaped"] is None)


def _name(match: re.Match[str]) -> str:
    return match["named"] or match["braced"] or ""
