"""What programs do for answers, where agents may run any: how many, how they end, what they decide."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from msgspec import UNSET

from debate.types import Call, Debate, Turn
from debate_rl.metrics.means import mean_of
from rewards import Correct
from rewards.truth import is_right

FIGURES = ("calls", "failed", "timeouts", "share", "only_with_code")


def tool_metrics(debates: Sequence[Debate], correct: Sequence[Correct]) -> dict[str, float]:
    """Return the figures of the programs in a batch; nothing where no turn could run any."""
    problems: dict[str, list[tuple[Turn, bool | None]]] = defaultdict(list)
    for debate, table in zip(debates, correct, strict=True):
        problems[debate.problem.id] += [(turn, is_right(turn.id, table)) for turn in debate.turns]
    values: dict[str, list[float]] = defaultdict(list)
    for turns in problems.values():
        for name, found in tool_figures(turns).items():
            values[name] += found
    return {name: mean for one in FIGURES for name, mean in mean_of(f"tools/{one}", values[one]).items()}


def tool_figures(turns: Iterable[tuple[Turn, bool | None]]) -> dict[str, list[float]]:
    """Return the values of each figure over a problem's turns, each right or not (None: ungraded).

    ``calls``: programs of each turn; ``failed``, ``timeouts``: of each program; ``share``: of each graded
    answer whether its turn ran one; ``only_with_code``: of the problem whether an answer was right, and only
    such whose turn ran one. A program that was refused did not run.
    """
    could = [(turn, right) for turn, right in turns if turn.completion.calls is not UNSET]
    if not could:
        return {}
    ran = [calls_run(turn) for turn, _ in could]
    programs = [call for calls in ran for call in calls]
    answers = [
        (bool(calls), right)
        for (turn, right), calls in zip(could, ran, strict=True)
        if right is not None and not turn.ballot
    ]
    right = {used for used, is_so in answers if is_so}
    return {
        "calls": [float(len(calls)) for calls in ran],
        "failed": [float(call.status != "ok") for call in programs],
        "timeouts": [float(call.status == "timeout") for call in programs],
        "share": [float(used) for used, _ in answers],
        "only_with_code": [float(right == {True})] if answers else [],
    }


def calls_run(turn: Turn) -> list[Call]:
    """Return the programs of a turn that ran."""
    return [call for call in turn.completion.calls or () if call.status != "refused"]
