"""How many problems there are, and which of them have prompts short enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from debate import Policy, Problem
from debate.prompting.fitting import PromptTooLongError
from debate.prompting.prompt import check_fits, opening_tokens
from debate_rl.config import Config
from debate_rl.engines import counting_policy

MOST_COUNTED = 40
"""Levels or sources whose problems are counted; of more (the difficulties of a large set) none are."""


def counts(problems: Sequence[Problem]) -> dict[str, object]:
    """Return how many problems there are, in all and by level and source, each in order."""
    found: dict[str, object] = {"problems": len(problems)}
    for head, of in (("levels", "level"), ("sources", "source")):
        numbers = Counter(str(getattr(problem, of)) for problem in problems)
        if 1 < len(numbers) <= MOST_COUNTED:
            found[head] = {key: numbers[key] for key in sorted(numbers)}
    return found


def with_short_prompts(problems: Sequence[Problem], config: Config, most: int) -> tuple[Problem, ...]:
    """Return the problems whose first prompt has at most ``most`` tokens, and that fit the context."""
    policy = counting_policy(config)
    return tuple(problem for problem in problems if _fits(problem, policy, config, most))


def _fits(problem: Problem, policy: Policy, config: Config, most: int) -> bool:
    if opening_tokens(problem, policy, config.debate) > most:
        return False
    try:
        check_fits(problem, policy, config.debate)
    except PromptTooLongError:
        return False
    return True
