"""What was found in one run, in a few plain sentences."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from debate_rl.formatting import interval, number, percent
from debate_rl.reports.cells import Judged
from debate_rl.reports.document import Behind, Paragraph
from debate_rl.reports.figures.figure import Figure
from debate_rl.reports.figures.outcomes import LEAST_CORRELATION
from debate_rl.statistics import Estimate


def judgment_lead(judged: Judged) -> tuple[Paragraph, ...]:
    """Return what was read and what was found, a paragraph each."""
    figures = {figure.name: figure for figure in judged.figures}
    parts = (part for lines in (_accuracy, _winner, _position) for part in lines(judged, figures))
    return (_read(judged), *parts)


def _read(judged: Judged) -> Paragraph:
    """Return how many debates there are, of which steps."""
    study = judged.study
    count, problems = len(study.debates), len(study.problems)
    if not count:
        return Paragraph(f"{judged.run}: no debates are found", "warn")
    steps = study.debates["step"]
    low, high = int(steps.min()), int(steps.max())
    range_ = f"step {low}" if low == high else f"steps {low} to {high}"
    damage = f"; {judged.damaged:,} damaged lines" if judged.damaged else ""
    filtered = f", found by {judged.filter}" if judged.filter else ""
    text = f"{judged.run}: {count:,} debates of {problems:,} problems, {range_}{filtered}{damage}."
    return Paragraph(text, "warn" if judged.damaged else "", Behind(judged.run, judged.filter))


def _accuracy(judged: Judged, figures: dict[str, Figure]) -> Iterator[Paragraph]:
    figure = figures["judge/accuracy"]
    accuracy = figure.estimate
    if accuracy is None:
        yield Paragraph(f"Judges: no accuracy, because there is {figure.why}.", "warn")
        return
    text = (
        f"Judges vote for the right side in {percent_of(accuracy)} of {accuracy.n:,} votes on pairs with "
        "exactly one right side"
    )
    ties = figures["judge/ties"].estimate
    if ties and ties.value > 0:
        text += f" ({percent_of(ties, short=True)} are ties, which are not right)"
    strict, coverage = figures["judge/strict_accuracy"].estimate, figures["judge/coverage"].estimate
    if strict and coverage:
        text += f"; they cast {percent_of(coverage, short=True)} of the votes due there, and with no vote as "
        text += f"wrong {percent_of(strict, short=True)} are right"
    ending = _against_a_coin(accuracy)
    yield Paragraph(text + ending, "warn" if ending != "." else "", judged.behind(figure))


def _against_a_coin(accuracy: Estimate) -> str:
    if accuracy.high < 0.5:
        return ". A coin would do better."
    return ". A coin may do as well, as far as these debates tell." if accuracy.low <= 0.5 else "."


def _winner(judged: Judged, figures: dict[str, Figure]) -> Iterator[Paragraph]:
    right, lift = figures["winner/accuracy"], figures["winner/lift"]
    if right.estimate is None or lift.estimate is None:
        return
    yield Paragraph(
        f"The winner is right in {percent_of(right.estimate)} of {right.estimate.n:,} debates, "
        f"{points_of(lift.estimate)} against one answer of its round, drawn at random.",
        "",
        judged.behind(right),
    )
    line = figures["winner/correlation"]
    if line.estimate is not None:
        low = bool(line.flag)
        side = "below" if low else "not below"
        end = f": such votes reward truth little{_mixed(figures['winner/auc'])}" if low else "."
        r = number(line.estimate.value)
        yield Paragraph(
            f"Winning and being right correlate with r = {r}, {side} the line of {LEAST_CORRELATION}{end}",
            "warn" if low else "",
            judged.behind(line),
        )


def _mixed(auc: Figure) -> str:
    """Return what else a low correlation comes from: debates that are all right or all wrong."""
    if auc.estimate is None:
        return ", or nearly all answers of a debate are alike in truth."
    chance = number(auc.estimate.value)
    return (
        f", or debates are alike in truth. Elsewhere a right answer beats a wrong one with chance {chance}."
    )


def _position(judged: Judged, figures: dict[str, Figure]) -> Iterator[Paragraph]:
    bias = figures["bias/position"].estimate
    if bias is None:
        return
    known = bias.low > 0 or bias.high < 0
    side = "first" if bias.value > 0 else "second"
    size = f"{points_of(bias)} for the one shown first, of {bias.n:,} votes"
    if known:
        text = f"Between solutions that are equal in truth, judges prefer the one shown {side}: {size}."
    else:
        text = f"No preference for a position is found between solutions that are equal in truth: {size}."
    yield Paragraph(text, "warn" if known and abs(bias.value) >= 0.05 else "")


def percent_of(estimate: Estimate, *, short: bool = False) -> str:
    """Return a share in percent with its interval.

    >>> estimate = Estimate(0.7123, 0.66, 0.76, 100, 20)
    >>> percent_of(estimate), percent_of(estimate, short=True)
    ('71.2% (95% interval 66.0 to 76.0)', '71.2%')
    """
    text = percent(estimate.value)
    if short or not (isfinite(estimate.low) and isfinite(estimate.high)):
        return text
    low, high = max(0.0, 100 * estimate.low), min(100.0, 100 * estimate.high)
    return f"{text} (95% interval {interval(low, high, '{:.1f}'.format)})"


def points_of(estimate: Estimate) -> str:
    """Return a difference of shares in percentage points with its interval.

    >>> points_of(Estimate(0.05, -0.01, 0.11, 100, 20))
    '+5.0 points (-1.0 to +11.0)'
    """
    text = f"{100 * estimate.value:+.1f} points"
    bounds = interval(100 * estimate.low, 100 * estimate.high, "{:+.1f}".format)
    return f"{text} ({bounds})" if bounds else text
