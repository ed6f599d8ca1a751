"""End a debate before its last round once its agents agree.

ReConcile also ends a discussion at a consensus or after a maximum number of rounds [Chen et al. 2023, arXiv
2309.13007].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec import UNSET

from debate.config import DebateConfig
from debate.prompting.shown import holds_solutions
from debate.types import Debate, Problem, Turn

Agreed: TypeAlias = Callable[[Problem, Sequence[Turn]], bool]
"""Returns whether the turns of one round, (N,), all give the same answer to the problem. It never raises."""


def same_as_written(problem: Problem, turns: Sequence[Turn]) -> bool:
    """Return whether all boxed answers have the same text; False if any turn has no answer."""
    answers = {turn.parsed.answer for turn in turns}
    return len(answers) == 1 and None not in answers


def stops(config: DebateConfig, problem: Problem, turns: Sequence[Turn], agreed: Agreed) -> bool:
    """Return whether the debate ends with this round's turns, (N,), before ``num_rounds`` rounds are held."""
    round_, least = turns[0].id.round, config.min_rounds
    if least is None or not least <= round_ + 1 < config.num_rounds:
        return False
    return holds_solutions(config, round_) and agreed(problem, turns)


def stopped_after(config: DebateConfig, rounds: int) -> DebateConfig:
    """Return the protocol of a debate that stopped early: ``num_rounds`` is the number of rounds held.

    >>> stopped_after(DebateConfig(num_rounds=4, min_rounds=1), 2).num_rounds
    2
    """
    return config.model_copy(update={"num_rounds": rounds, "min_rounds": None})


def may_stop(debate: Debate) -> bool:
    """Return whether early stopping was allowed in a debate, whether or not the debate stopped."""
    return debate.rounds_saved is not UNSET or debate.protocol.min_rounds is not None


def solutions_saved(debate: Debate) -> list[int]:
    """Return the rounds of solutions that were skipped because the debate stopped early."""
    held, saved = debate.protocol.num_rounds, debate.rounds_saved or 0
    whole = debate.protocol.model_copy(update={"num_rounds": held + saved})
    return [round_ for round_ in range(held, held + saved) if holds_solutions(whole, round_)]


def is_of_protocol(debate: Debate, config: DebateConfig) -> bool:
    """Return whether a debate followed this protocol, to its end or to an allowed early stop."""
    config = config.of_level(debate.problem.level)
    if debate.rounds_saved is UNSET:
        return debate.protocol == config
    rounds = debate.protocol.num_rounds
    possible = config.min_rounds is not None and config.min_rounds <= rounds < config.num_rounds
    same = debate.protocol == stopped_after(config, rounds)
    return possible and same and rounds + debate.rounds_saved == config.num_rounds
