"""The first screen of a report: did it learn, can the judge be trusted, what to look at or change next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from shlex import quote
from typing import TypeAlias

from debate_rl.alarms import alarms
from debate_rl.alarms.settings import open_advice
from debate_rl.formatting import counted, interval, printable, short
from debate_rl.metrics.held_out import DIRECT, FIGURES, JUDGE, WINNER, before_after, sentence
from debate_rl.metrics.intervals import Estimate
from debate_rl.reports.diagnosis import debates_of, ranked
from debate_rl.reports.document import Answer, Behind, Chart, Judged, Links, Paragraph, Series, percent_of
from debate_rl.reports.findings import WRONG_VOTES, WRONG_WINNER, Finding, Look
from debate_rl.reports.judgment import group_parts
from debate_rl.reports.measures import LEAST, change_of
from debate_rl.reports.run import Run

QUESTIONS = {
    "learned": "Did it learn?",
    "judge": "Can the judge be trusted, and is it getting worse?",
    "next": "What to look at or change next?",
}
MOST_ADVICE = 2
LATE_WRONG = "accuracy.last_round:0"
URGENCY = ("bad", "warn", "", "good")
Said: TypeAlias = tuple[str, list[Paragraph]]
"""An answer in a word, and its sentences."""
Found: TypeAlias = Mapping[str, Finding]
"""The findings of one run, by kind."""


def answers(
    runs: Sequence[Judged], trained: Mapping[str, Run], found: Sequence[Finding]
) -> tuple[Answer, ...]:
    """Return the three answers; those of several runs stand below each other, without pictures."""
    said: dict[str, list[tuple[str, Said]]] = {name: [] for name in QUESTIONS}
    for judged in runs:
        of_run = {finding.look.kind: finding for finding in found if finding.look.run == judged.run}
        run = trained.get(judged.run)
        said["learned"].append((judged.run, learned(judged, run, of_run)))
        said["judge"].append((judged.run, _judge(judged, of_run)))
        said["next"].append((judged.run, ("", _next(judged, run, of_run))))
    if len(runs) > 1:  # the first sentence of each run, with its name and the answer in a word
        return tuple(
            Answer(name, QUESTIONS[name], "", tuple(_named(run, *one) for run, one in said[name]))
            for name in QUESTIONS
        )
    run = trained.get(runs[0].run)
    pictures = {"learned": run and learning_chart(run), "judge": _judge_chart(runs[0])}
    return tuple(
        Answer(name, QUESTIONS[name], word, tuple(text), pictures.get(name))
        for name in QUESTIONS
        for _, (word, text) in said[name]
    )


def _named(run: str, word: str, text: Sequence[Paragraph]) -> Paragraph:
    return replace(text[0], text=f"{run}: {word}. {text[0].text}" if word else f"{run}: {text[0].text}")


def _judge_chart(judged: Judged) -> Chart | None:
    """Return judge accuracy by step, small; None of one step."""
    charts = (part for part in group_parts(judged) if part.name == "accuracy-by-step")  # type: ignore[union-attr]
    chart = next(charts, None)
    return replace(chart, name="judge", small=True, behind=None) if isinstance(chart, Chart) else None


def training_looks(run: Run, name: str) -> Iterator[Look]:
    """Yield the looks at held-out figures and at accuracy in training, of the run of this name."""
    changed = before_after(run.held_out)
    kinds = (("judge/held_out", JUDGE, WRONG_VOTES), ("learned/held_out", DIRECT, LATE_WRONG))
    for kind, figure, filter in kinds:
        gained = changed.gains.get(figure) if changed else None
        if gained is not None:
            numbers = sentence(run.held_out, figure).split(": ")[1]
            text = f"on held-out problems {numbers.removesuffix('.')}"
            found = gained.difference
            yield Look(kind, name, found, gained.values, found.clusters, text, _late(run, filter))
    moved = change_of(run, "accuracy")
    if moved is not None:
        known = Estimate(moved.value, moved.low, moved.high, moved.n, moved.n, moved.p)
        text = _training_text(run)
        yield Look("learned/training", name, known, moved.n, moved.n, text, _late(run, LATE_WRONG))


def _late(run: Run, filter: str) -> Behind | None:
    """Return the link to debates of the last third of the stored steps."""
    if not run.thirds:
        return None
    _, first, last = run.thirds[-1]
    if len(run.thirds) == 1:  # of two steps the last
        first = last
    return run.behind(f"step:{first}..{last} {filter}")


def _training_text(run: Run) -> str:
    """Return how accuracy on the problems trained on moved, without a verdict."""
    moved = change_of(run, "accuracy")
    if moved is None:
        return "accuracy in training is not known"
    text = f"accuracy in training went from {short(moved.early)} in the first third of {moved.n} steps to "
    text += f"{short(moved.late)} in the last"
    if moved.n < LEAST:
        return f"{text}; an interval takes {LEAST} steps"
    return f"{text} (difference {interval(moved.low, moved.high, '{:+.3f}'.format, none='of unknown width')})"


def learned(judged: Judged, run: Run | None, found: Found) -> Said:
    """Return the verdict in a word and the sentences: held-out figures, or else what training says."""
    if run is None:
        return "not known", [Paragraph("Nothing but debates was read.")]
    whole = [Paragraph("This is of the whole run: a filter chooses debates alone.")] if judged.filter else []
    told = found.get("learned/held_out")
    if told is None:
        said, text = found.get("learned/training"), _training_text(run)
        first = Paragraph("On held-out problems: there are not two evaluations to compare.", "warn")
        second = Paragraph(f"{text[:1].upper()}{text[1:]}.", said.tone if said else "", run.behind())
        return "not known", [first, second, *whole]
    parts = [Paragraph(sentence(run.held_out), told.tone, run.behind())]
    changed = before_after(run.held_out)
    if changed and WINNER in changed.gains:
        parts.append(Paragraph(sentence(run.held_out, WINNER)))
    if told.state == "found":
        word = "yes" if told.tone == "good" else "no, it got worse"
    elif told.state == "too few":
        word = f"cannot be told from {told.look.problems} problems"
    else:
        word = told.doubt or "no change can be told"
    return word, [*parts, *whole]


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


def _judge(judged: Judged, found: Found) -> Said:
    """Return whether judges beat a coin, and whether that changes: what is bad first."""
    figure = {figure.name: figure for figure in judged.figures}["judge/accuracy"]
    estimate, coin = figure.estimate, found["judge/coin"]
    if estimate is None:
        return "not known", [Paragraph(f"There is {figure.why}.", "warn")]
    share = f"{percent_of(estimate)} of {counted(estimate.n, 'vote')} on pairs with exactly one right side"
    behind = judged.behind(figure.filter)
    parts = [
        Paragraph(f"Judges are right in {share}.", coin.tone or "warn", behind),
        change := _change(found),
    ]
    if coin.state == "found":
        word = "better than a coin" if estimate.value > 0.5 else "no"
    elif coin.state == "too few":
        word = "too few votes to tell"
    else:
        word = "no better than a coin, as far as can be told"
    faults = (found.get(kind) for kind in ("judge/blind_fault", "judge/weak_fault"))
    if fault := next((one for one in faults if one and one.tone), None):
        word += ", but not on one kind of fault" if fault.tone == "bad" else ", less so on one kind of fault"
        parts.insert(1, fault.paragraph())
    word += {"bad": ", and getting worse", "warn": ", and perhaps getting worse"}.get(change.tone, "")
    return word, sorted(parts, key=lambda part: ("bad", "warn", "good", "").index(part.tone or "good"))


def _change(found: Found) -> Paragraph:
    """Return the sentence on whether the judge changed, of the best look that has cases enough."""
    looks = [found[kind] for kind in ("judge/held_out", "judge/change") if kind in found]
    told = [one for one in looks if one.state == "found"] or [one for one in looks if one.state != "too few"]
    if told:
        said, estimate = told[0].paragraph(), told[0].look.estimate
        falling = told[0].doubt == "not sure" and estimate is not None and estimate.value < 0
        return replace(said, tone="warn") if falling else said
    if not looks:
        return Paragraph("Whether that changes cannot be told: all votes are of one step.")
    look = looks[-1].look
    least = f"{look.about.cases} votes on {look.about.problems} problems each"
    return Paragraph(f"Whether that changes takes {least}: {look.detail}.")


def _next(judged: Judged, run: Run | None, found: Found) -> list[Paragraph]:
    """Return what to do, the most urgent first, each with the command to type."""
    advice = [*_alarms(run), *_evaluate(run, found), *_stalled(run, found)] if run else []
    wrong = [one for one in found.values() if one.tone in ("bad", "warn") and "learned" not in one.look.kind]
    settings = run.settings if run else {}
    for words in dict.fromkeys(one.words[0] for one in wrong):  # one of each, the first
        first = next(one for one in wrong if one.words[0] == words)
        behind = first.look.behind or Behind(judged.run, judged.filter)
        text = f"{words}: {open_advice(settings, first.look.about.advice)}."
        advice.append(Paragraph(text, first.tone, None, Links().command(behind)))
    advice.sort(key=lambda part: URGENCY.index(part.tone))
    if not advice:
        won = any(figure.name == "winner/accuracy" and figure.estimate for figure in judged.figures)
        which, filter = "without a right answer", "accuracy:0"
        if won:
            which, filter = "whose winner is wrong although a right answer was there", WRONG_WINNER
        command = Links().command(Behind(judged.run, filter))
        advice = [Paragraph(f"Nothing stands out. Read debates {which}.", "", None, command)]
    return advice[:MOST_ADVICE]


def _alarms(run: Run) -> Iterator[Paragraph]:
    for reading in alarms(run.readings)[:1]:
        alarm, fix = reading.alarm, open_advice(run.settings, reading.detector.fix)
        assert alarm is not None
        text = f"Alarm at step {alarm.step}: {alarm.why}. Proposed: {fix}."
        yield Paragraph(text, "bad", None, Links().command(Behind(str(run.path), debates_of(reading))))


def _evaluate(run: Run, found: Found) -> Iterator[Paragraph]:
    told = found.get("learned/held_out")
    if told is None and run.settings:
        text = "Find out whether it learned: evaluate what was kept, from the start on."
        yield Paragraph(text, "warn", None, f"debate eval {quote(printable(str(run.path)))} --weights all")
    elif told is not None and told.tone == "bad":
        advice = open_advice(run.settings, told.look.about.advice)
        command = Links().command(told.look.behind) if told.look.behind else ""
        yield Paragraph(f"{advice[:1].upper()}{advice[1:]}.", "bad", None, command)


def _stalled(run: Run, found: Found) -> Iterator[Paragraph]:
    """Yield the hypothesis with the most signs, where no learning was found."""
    told = found.get("learned/held_out") or found.get("learned/training")
    if told is None or told.tone == "good":
        return
    for one in ranked(run)[:1]:
        if one.crossed:
            fix = open_advice(run.settings, one.fix)
            text = f"{one.name} ({one.crossed} of {one.known} signs): {fix}."
            yield Paragraph(text, "", None, Links().command(Behind(str(run.path), one.debates)))
