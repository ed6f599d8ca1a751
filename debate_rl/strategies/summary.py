"""What a list of answers was worth and what it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from debate_rl.formatting import counted, duration, share
from debate_rl.metrics.intervals import clustered_mean
from debate_rl.strategies.answers_file import Line

HOUR = 3600.0


def summary(lines: Sequence[Line], *, seconds: float, solved: int) -> dict[str, Any]:
    """Return the figures of answers, of which ``solved`` were found in these wall ``seconds``.

    ``right`` is over the graded ones, with a 95% interval where there are two or more; ``per_hour`` and
    ``tokens_per_second`` are of this command alone, and None where it found nothing.
    """
    graded = [line for line in lines if line.right is not None]
    asked = [line for line in lines if not line.refused]
    newest = asked[len(asked) - min(solved, len(asked)) :]
    generated = sum(line.tokens_generated for line in newest)
    right: dict[str, float | int] | None = None
    if graded:
        estimate = clustered_mean(
            [float(line.right is True) for line in graded], [line.id for line in graded]
        )
        right = {"value": estimate.value, "n": len(graded)}
        if len(graded) > 1:
            right |= {"low": max(0.0, estimate.low), "high": min(1.0, estimate.high)}
    return {
        "problems": len(lines),
        "answered": sum(line.answer is not None for line in lines),
        "refused": len(lines) - len(asked),
        "right": right,
        "ended": dict(Counter(line.ended for line in asked)),
        "tokens_generated": sum(line.tokens_generated for line in lines),
        "tokens_read": sum(line.tokens_read for line in lines),
        "seconds": round(seconds, 3),
        "per_hour": round(len(newest) * HOUR / seconds, 3) if newest and seconds > 0 else None,
        "tokens_per_second": round(generated / seconds, 3) if generated and seconds > 0 else None,
    }


def summary_lines(figures: Mapping[str, Any]) -> list[str]:
    """Return the figures in words.

    >>> lines = [Line("p", "", "", "4", True, tokens_generated=30), Line("q", "", "", None, False)]
    >>> summary_lines(summary(lines, seconds=2.0, solved=2))[0]
    '2 problems: 1 answered, .50 right of 2 graded (.00 to 1.00)'
    """
    right, refused = figures["right"], figures["refused"]
    of = ""
    if right is not None:
        bounds = f" ({share(right['low'])} to {share(right['high'])})" if "low" in right else ""
        of = f", {share(right['value'])} right of {right['n']} graded{bounds}"
    head = f"{counted(figures['problems'], 'problem')}: {figures['answered']} answered{of}"
    cost = f"{figures['tokens_generated']:,} tokens generated, {figures['tokens_read']:,} read"
    lines = [head + (f", {refused} refused" if refused else ""), cost]
    if figures["per_hour"]:
        speed = f"{figures['per_hour']:,.0f} problems an hour"
        lines[1] += f"; {duration(figures['seconds'])} here: {speed}"
    return lines
