"""What a training run says to the first screen of a report: did it learn, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from shlex import quote

from debate_rl.alarms import alarms
from debate_rl.alarms.settings import open_advice
from debate_rl.formatting import interval, printable, short
from debate_rl.metrics.held_out import DIRECT, FIGURES, JUDGE, WINNER, before_after, sentence
from debate_rl.metrics.intervals import Estimate, thirds
from debate_rl.reports.document import Behind, Chart, Links, Paragraph, Series
from debate_rl.reports.findings import Finding, Look
from debate_rl.reports.training.hypotheses import ranked
from debate_rl.reports.training.loading import Run
from debate_rl.reports.training.measures import LEAST, change

Found = Mapping[str, Finding]
"""The findings of one run, by kind."""
LATE_WRONG, WRONG_VOTES = "accuracy.last_round:0", "judge.accuracy:<0.5"


def training_looks(run: Run, name: str) -> Iterator[Look]:
    """Yield the looks at held-out figures and at accuracy in training, of the run of this name."""
    changed = before_after(run.held_out)
    for kind, figure, filter in (
        ("judge/held_out", JUDGE, WRONG_VOTES),
        ("learned/held_out", DIRECT, LATE_WRONG),
    ):
        gained = changed.gains.get(figure) if changed else None
        if gained is not None:
            numbers = sentence(run.held_out, figure).split(": ")[1]
            text = f"on held-out problems {numbers.removesuffix('.')}"
            found, behind = gained.difference, _late(run, filter)
            yield Look(kind, name, found, gained.values, found.clusters, text, behind)
    moved = change(run.curves.of("accuracy")[1])
    if moved is not None:
        known = Estimate(moved.value, moved.low, moved.high, moved.n, moved.n, moved.p)
        text = training_text(run)
        yield Look("learned/training", name, known, moved.n, moved.n, text, _late(run, LATE_WRONG))


def _late(run: Run, filter: str) -> Behind | None:
    """Return the link to debates of the last third of the stored steps."""
    if run.stored is None:
        return None
    late = thirds(range(run.stored[0], run.stored[1] + 1))[-1]
    return run.behind(f"step:{late[0]}..{late[-1]} {filter}")


def training_text(run: Run) -> str:
    """Return how accuracy on the problems trained on moved, without a verdict."""
    moved = change(run.curves.of("accuracy")[1])
    if moved is None:
        return "accuracy in training is not known"
    text = f"accuracy in training went from {short(moved.early)} in the first third of {moved.n} steps to "
    text += f"{short(moved.late)} in the last"
    if moved.n < LEAST:
        return f"{text}; an interval takes {LEAST} steps"
    return f"{text} (difference {interval(moved.low, moved.high, '{:+.3f}'.format, none='of unknown width')})"


def learned(run: Run, found: Found) -> tuple[str, list[Paragraph]]:
    """Return the verdict in a word and the sentences: held-out figures, or else what training says."""
    told = found.get("learned/held_out")
    if told is None:
        said = found.get("learned/training")
        text = training_text(run)
        first = Paragraph("On held-out problems: there are not two evaluations to compare.", "warn")
        second = Paragraph(f"{text[:1].upper()}{text[1:]}.", said.tone if said else "", run.behind())
        return "not known", [first, second]
    parts = [Paragraph(sentence(run.held_out), told.tone, run.behind())]
    changed = before_after(run.held_out)
    if changed and WINNER in changed.gains:
        parts.append(Paragraph(sentence(run.held_out, WINNER)))
    return learned_word(told), parts


def learned_word(told: Finding) -> str:
    """Return whether it learned, in a word or two."""
    if told.state == "found":
        return "yes" if told.tone == "good" else "no, it got worse"
    if told.state == "too few":
        return f"cannot be told from {told.look.problems} problems"
    return told.doubt or "no change can be told"


def learning_chart(run: Run) -> Chart | None:
    """Return the small chart of held-out accuracy by step, or else that of training; None of neither."""
    series = tuple(found for name in (DIRECT, WINNER) if (found := _held_out(run, name)) is not None)
    if series:
        title, x_label, note = "Held-out accuracy", "after steps", "Band: 95% interval."
    else:
        steps, values = run.curves.of("accuracy")
        if len(values) < 2:
            return None
        title, x_label, note = "Accuracy on the problems trained on", "step", ""
        series = (Series("accuracy", tuple(map(float, steps)), tuple(map(float, values))),)
    return Chart("learned", title, x_label, "accuracy", series, note=note, small=True)


def _held_out(run: Run, name: str) -> Series | None:
    points = [(one.step, found) for one in run.held_out if (found := one.estimate(name)) is not None]
    if len(points) < 2:
        return None
    low, high = (
        tuple(end if isfinite(end) else None for end in ends)
        for ends in ([max(0.0, e.low) for _, e in points], [min(1.0, e.high) for _, e in points])
    )
    x, y = tuple(float(step) for step, _ in points), tuple(found.value for _, found in points)
    return Series(FIGURES[name], x, y, low, high)


def training_advice(run: Run, found: Found) -> list[Paragraph]:
    """Return what the training says to do, the most urgent first, each with the command to type."""
    return [*_alarms(run), *_held_out_advice(run, found), *_stalled(run, found)]


def _alarms(run: Run) -> Iterator[Paragraph]:
    for reading in alarms(run.readings)[:1]:
        alarm = reading.alarm
        assert alarm is not None
        fix = open_advice(run.settings, reading.detector.fix)
        text = f"Alarm at step {alarm.step}: {alarm.why}. Proposed: {fix}."
        yield Paragraph(text, "bad", None, _list(run, reading.detector.debates.format(step=alarm.step)))


def _held_out_advice(run: Run, found: Found) -> Iterator[Paragraph]:
    told = found.get("learned/held_out")
    if told is None and run.settings:
        text = "Find out whether it learned: evaluate what was kept, from the start on."
        yield Paragraph(text, "warn", None, f"debate eval {quote(printable(str(run.path)))} --weights all")
    elif told is not None and told.tone == "bad":
        advice = open_advice(run.settings, told.look.about.advice)
        command = Links().command(told.look.behind) if told.look.behind else ""
        yield Paragraph(f"{advice[:1].upper()}{advice[1:]}.", "bad", None, command)


def _stalled(run: Run, found: Found) -> Iterator[Paragraph]:
    """The hypothesis with the most signs, where no learning was found."""
    told = found.get("learned/held_out") or found.get("learned/training")
    if told is None or told.tone == "good":
        return
    for item in ranked(run)[:1]:
        if item.crossed:
            signs, fix = (
                f"{item.crossed} of {item.known} signs",
                open_advice(run.settings, item.hypothesis.fix),
            )
            text, behind = f"{item.hypothesis.name} ({signs}): {fix}.", item.hypothesis.filter
            yield Paragraph(text, "", None, _list(run, behind))


def _list(run: Run, filter: str) -> str:
    return Links().command(Behind(str(run.path), filter))
