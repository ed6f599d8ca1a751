"""What was read of one run, and its main figures in a few plain sentences, which claim nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from debate_rl.formatting import counted, number
from debate_rl.reports.cells import Judged, percent_of, points_of
from debate_rl.reports.document import Behind, Paragraph
from debate_rl.reports.figures.figure import Figure


def read_text(judged: Judged) -> Paragraph:
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


def main_figures(judged: Judged) -> tuple[Paragraph, ...]:
    """Return the main figures, a paragraph each."""
    figures = {figure.name: figure for figure in judged.figures}
    return tuple(part for lines in (_accuracy, _winner, _position) for part in lines(judged, figures))


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
    yield Paragraph(f"{text}.", "", judged.behind(figure))


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
    line, auc = figures["winner/correlation"], figures["winner/auc"]
    if line.estimate is not None:
        text = f"Winning and being right correlate with r = {number(line.estimate.value)}"
        if auc.estimate is not None:
            text += (
                f"; a right answer beats a wrong one of its debate with chance {number(auc.estimate.value)}"
            )
        yield Paragraph(f"{text}.", "", judged.behind(line))


def _position(judged: Judged, figures: dict[str, Figure]) -> Iterator[Paragraph]:
    bias = figures["bias/position"].estimate
    if bias is not None:
        first = percent_of(replace(bias, value=bias.value + 0.5, low=bias.low + 0.5, high=bias.high + 0.5))
        votes = f"{counted(bias.n, 'vote')} between solutions that are equal in truth"
        yield Paragraph(f"Of {votes}, {first} are for the one shown first.")
