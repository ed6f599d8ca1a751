"""Settings of the likelihood reward: the part of a solution, the prompt, and the baseline."""

from __future__ import annotations

import re
from string import Template
from typing import Literal, Self

from pydantic import model_validator

from debate.settings import Settings

FIELDS = ("reasoning", "answer")


class LikelihoodConfig(Settings):
    """Input of the frozen model that computes the likelihood reward. The question is not part of it."""

    prompt: str = "Reasoning: $reasoning\nAnswer: $answer\n"
    """Raw text with $reasoning and then $answer, the gold answer. The score covers the answer and the text
    after it; the line break distinguishes 4 from the beginning of 42."""
    reads: Literal["reasoning", "solution"] = "reasoning"
    """"reasoning": the solution without its final answer. "solution": the whole solution, as in the paper."""
    baseline: Literal["reference", "empty", "none"] = "reference"
    """Score to subtract. "reference": the score of one solution per problem, sampled from the frozen
    reference. "empty": the score without reasoning. "none": 0. It makes the logged metric comparable between
    problems; group baselines cancel it."""

    @model_validator(mode="after")
    def _has_both(self) -> Self:
        if _fields(self.prompt) != FIELDS:
            raise ValueError(
                f"prompt: must contain $reasoning and then $answer, each once, and no other field ($$ is a "
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
    """Return the field names in order. A dollar sign without a name gives ""."""
    found = Template.pattern.finditer(prompt)
    return tuple(_name(match) for match in found if match["escaped"] is None)


def _name(match: re.Match[str]) -> str:
    return match["named"] or match["braced"] or ""
