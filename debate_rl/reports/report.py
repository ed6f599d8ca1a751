"""Make a whole report: read debates, build sections, and answer the questions of the first screen.

The questions: Did it learn? Can the judge be trusted, and is it getting worse? What to look at or change
next?
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from shlex import quote
from typing import TypeAlias

from debate_rl.alarms import alarms
from debate_rl.alarms.settings import open_advice
from debate_rl.curriculum.record import read_curriculum, stage_runs
from debate_rl.formatting import counted, interval, printable, share, short
from debate_rl.metrics.held_out import DIRECT, FIGURES, JUDGE, WINNER, sentence
from debate_rl.metrics.intervals import Estimate
from debate_rl.reports.diagnosis import ranked
from debate_rl.reports.document import (
    Answer,
    Behind,
    Cell,
    Chart,
    Document,
    Judged,
    Paragraph,
    Section,
    Series,
    percent_of,
    row,
    table_of,
)
from debate_rl.reports.figures import TABLES, figures_of
from debate_rl.reports.findings import WRONG_VOTES, WRONG_WINNER, Finding, Look, findings, judgment_looks
from debate_rl.reports.judgment import comparison_section, group_parts, judgment_sections, read_text
from debate_rl.reports.rows import Study
from debate_rl.reports.run import LEAST, Run
from debate_rl.reports.training import debates_of, sections_of
from transcripts import RunStore, TranscriptError
from transcripts.frames import annotation_rows

MOST_ADVICE = 2
LATE_WRONG = "accuracy.last_round:0"
URGENCY = ("bad", "warn", "", "good")
Said: TypeAlias = tuple[str, list[Paragraph]]
"""An answer in one word, and its sentences."""
Found: TypeAlias = Mapping[str, Finding]
"""The findings of one run, by kind."""


def judge_run(name: str, filter: str = "", *, tell: Callable[[int], object] = lambda total: None) -> Judged:
    """Return the debates of a run that match a filter. ``tell`` is called with the count after each debate.

    TranscriptError if there is no run, no debate matches, or one of them cannot be read.
    """
    study = Study()
    with RunStore.open(name) as run:
        damage, total = run.damage, run.count(filter)
        for id, record in run.records(filter):
            try:
                study.add(record, id)
            except (LookupError, ValueError) as error:  # the record does not fit its protocol
                raise TranscriptError(f"{name}: debate {id} cannot be read: {error!r}") from error
            tell(total)
        by_hand, faults = list(annotation_rows(run, filter)), run.annotations().faults
    if not total:
        condition = f" that {filter} finds" if filter else ""
        why = f"; damaged: {damage[0]}" if damage else ""
        raise TranscriptError(f"{name}: contains no debates{condition}{why}")
    return Judged(name, study, figures_of(study), filter, len(damage) + len(faults), by_hand)


def whole_report(
    runs: Sequence[Judged], *, trained: Sequence[Run] = (), more: Sequence[Section] = ()
) -> Document:
    """Return the report on one or several runs.

    ``trained``: those of the runs with training metrics. ``more``: sections at the end.
    """
    of_run = {str(run.path): run for run in trained}
    paths = {judged.run: of_run[str(Path(judged.run))] for judged in runs if str(Path(judged.run)) in of_run}
    looks = [look for judged in runs for look in judgment_looks(judged)]
    looks += [look for name, run in paths.items() for look in training_looks(run, name)]
    found, several = findings(looks), len(runs) > 1
    sections: list[Section] = [comparison_section(runs)] if several else []
    for index, judged in enumerate(runs, start=1):
        sections += judgment_sections(judged, found, prefix=f"run-{index}-" if several else "")
    return Document(
        f"Report on {len(runs)} runs" if several else f"Report on {runs[0].run}",
        tuple(map(read_text, runs)),
        (*sections, *(sections_of(trained) if trained else ()), *more),
        answers(runs, paths, found),
        tuple(finding.plain() for finding in found),
    )


def with_stages(names: Sequence[str]) -> list[str]:
    """Return the folders of runs, with each curriculum replaced by the folders of its stages so far."""
    begun = ([str(one) for one in stage_runs(Path(n)) if (one / "config.toml").is_file()] for n in names)
    return [run for name, stages in zip(names, begun, strict=True) for run in (stages or [name])]


def stages_sections(names: Sequence[str]) -> list[Section]:
    """Return a section for each curriculum among the folders, with a row for every visit of a stage."""
    sections: list[Section] = []
    for number, name in enumerate(names, start=1):
        rows: list[tuple[Cell, ...]] = []
        record = read_curriculum(Path(name))
        for visit in record.visits if record is not None else ():
            began = visit.start.rpartition("/")[2] or "the recipe's weights"
            steps = str(visit.steps) if visit.end else "running"
            held_out = share(visit.value), interval(visit.low, visit.high, share, none="none")
            rows.append(
                row(visit.folder, began, steps, visit.figure, *held_out, visit.end or "not yet", visit.why)
            )
        if record is not None:
            table = table_of("stages-{at}", rows, at=number, run=name)
            about = "each stage starts from the weights of another; in order"
            sections.append(Section(f"curriculum-{number}", f"Curriculum {name}", (table,), about))
    return sections


def answers(
    runs: Sequence[Judged], trained: Mapping[str, Run], found: Sequence[Finding]
) -> tuple[Answer, ...]:
    """Return the three answers. With several runs, an answer has a sentence per run and no chart."""
    said: dict[str, list[Said]] = {name: [] for name in TABLES["answer"]}
    for judged in runs:
        of_run = {finding.look.kind: finding for finding in found if finding.look.run == judged.run}
        run = trained.get(judged.run)
        said["learned"].append(learned(judged, run, of_run))
        said["judge"].append(_judge(judged, of_run))
        said["next"].append(("", _next(judged, run, of_run)))
    if len(runs) > 1:  # for each run: its name, the answer in a word, and the first sentence
        lines = {
            name: tuple(
                replace(text[0], text=f"{run.run}: {word}{'. ' if word else ''}{text[0].text}")
                for run, (word, text) in zip(runs, answered, strict=True)
            )
            for name, answered in said.items()
        }
        return tuple(Answer(name, TABLES["answer"][name], "", text) for name, text in lines.items())
    run = trained.get(runs[0].run)
    charts = {part.name: part for part in group_parts(runs[0]) if isinstance(part, Chart)}
    judge = charts.get("accuracy-by-step")
    pictures = {"learned": run and learning_chart(run)}
    pictures["judge"] = judge and replace(judge, name="judge", small=True, behind=None)
    return tuple(
        Answer(name, TABLES["answer"][name], word, tuple(text), pictures.get(name))
        for name, [(word, text)] in said.items()
    )


def training_looks(run: Run, name: str) -> Iterator[Look]:
    """Yield the comparisons of held-out figures and training accuracy of a run. ``name``: the run's name."""

    def late(filter: str) -> Behind | None:
        """Return the link to the debates of the last third of the stored steps (of two steps, the last)."""
        if not run.thirds:
            return None
        _, first, last = run.thirds[-1]
        return run.behind(f"step:{first if len(run.thirds) > 1 else last}..{last} {filter}")

    kinds = (("judge/held_out", JUDGE, WRONG_VOTES), ("learned/held_out", DIRECT, LATE_WRONG))
    for kind, figure, filter in kinds:
        gained = run.paired(figure)
        if gained is not None:
            numbers = sentence(run.held_out, figure).split(": ")[1]
            text = f"on held-out problems {numbers.removesuffix('.')}"
            found = gained.difference
            yield Look(kind, name, found, gained.values, found.clusters, text, late(filter))
    moved = run.change("accuracy")
    if moved is not None:
        known = Estimate(moved.value, moved.low, moved.high, moved.n, moved.n, moved.p)
        text = _training_text(run)
        yield Look("learned/training", name, known, moved.n, moved.n, text, late(LATE_WRONG))


def _training_text(run: Run) -> str:
    moved = run.change("accuracy")
    if moved is None:
        return "training accuracy is unknown"
    text = f"training accuracy went from {short(moved.early)} in the first third of {moved.n} steps to "
    text += f"{short(moved.late)} in the last third"
    if moved.n < LEAST:
        return f"{text}; an interval needs {LEAST} steps"
    return f"{text} (difference {interval(moved.low, moved.high, '{:+.3f}'.format, none='of unknown width')})"


def learned(judged: Judged, run: Run | None, found: Found) -> Said:
    """Return the verdict in a word with its sentences, from held-out figures or else training metrics."""
    if run is None:
        return "unknown", [Paragraph("The report has read only debates.")]
    whole = [Paragraph("The filter does not affect this answer.")] if judged.filter else []
    held_out = found.get("learned/held_out")
    if held_out is None:
        said, text = found.get("learned/training"), _training_text(run)
        first = Paragraph("On held-out problems, there are not two evaluations to compare.", "warn")
        second = Paragraph(f"{text[:1].upper()}{text[1:]}.", said.tone if said else "", run.behind())
        return "unknown", [first, second, *whole]
    parts = [Paragraph(sentence(run.held_out), held_out.tone, run.behind())]
    parts += [Paragraph(sentence(run.held_out, WINNER))] if run.paired(WINNER) else []
    if held_out.state == "found":
        word = "yes" if held_out.tone == "good" else "no, it got worse"
    elif held_out.state == "too few":
        word = f"unclear: only {counted(held_out.look.problems, 'problem')}"
    else:
        word = held_out.doubt or "no clear change"
    return word, [*parts, *whole]


def learning_chart(run: Run) -> Chart | None:
    """Return the small chart of held-out accuracy by step, or else of training accuracy, or None."""
    series: list[Series] = []
    for name in (DIRECT, WINNER):
        points = [(one.step, found) for one in run.held_out if (found := one.estimate(name)) is not None]
        low, high = (
            tuple(end if isfinite(end) else None for end in ends)
            for ends in ([max(0.0, e.low) for _, e in points], [min(1.0, e.high) for _, e in points])
        )
        x, y = tuple(float(step) for step, _ in points), tuple(found.value for _, found in points)
        series += [Series(FIGURES[name], x, y, low, high)] if len(points) > 1 else []
    title, x_label, note = "Held-out accuracy", "after steps", "Band: 95% interval."
    if not series:
        steps, values = run.curves.of("accuracy")
        if len(values) < 2:
            return None
        title, x_label, note = "Accuracy on training problems", "step", ""
        series = [Series("accuracy", tuple(map(float, steps)), tuple(map(float, values)))]
    return Chart("learned", title, x_label, "accuracy", tuple(series), note=note, small=True)


def _judge(judged: Judged, found: Found) -> Said:
    """Return whether judges beat chance and whether their accuracy changes. Bad news comes first."""
    figure = {figure.name: figure for figure in judged.figures}["judge/accuracy"]
    estimate, coin = figure.estimate, found["judge/coin"]
    if estimate is None:
        return "unknown", [Paragraph(f"There is {figure.why}.", "warn")]
    share = f"{percent_of(estimate)} of {counted(estimate.n, 'vote')} on pairs with exactly one right side"
    right = Paragraph(f"Judges are right in {share}.", coin.tone or "warn", judged.behind(figure.filter))
    parts = [right, change := _change(found)]
    if coin.state == "found":
        word = "better than chance" if estimate.value > 0.5 else "no"
    elif coin.state == "too few":
        word = "too few votes to tell"
    else:
        word = "not clearly better than chance"
    faults = (found.get(kind) for kind in ("judge/blind_fault", "judge/weak_fault"))
    if fault := next((one for one in faults if one and one.tone), None):
        word += ", but not on one kind of fault" if fault.tone == "bad" else ", but less on one kind of fault"
        parts.insert(1, fault.paragraph())
    word += {"bad": ", and getting worse", "warn": ", and possibly getting worse"}.get(change.tone, "")
    return word, sorted(parts, key=lambda part: ("bad", "warn", "good", "").index(part.tone or "good"))


def _change(found: Found) -> Paragraph:
    """Return the sentence on whether the judge changed: of a finding, else of a fall that is not sure."""
    looks = [found[kind] for kind in ("judge/held_out", "judge/change") if kind in found]
    if said := next((one for one in looks if one.state == "found"), None):
        return said.paragraph()
    if falls := next(
        (one for one in looks if one.doubt == "not sure" and one.words == one.look.about.down), None
    ):
        return replace(falls.paragraph(), tone="warn")  # its interval is below 0
    if enough := next((one for one in looks if one.state != "too few"), None):
        return enough.paragraph()
    if not looks:
        return Paragraph("Change over time is unknown: all votes are from one step.")
    look = looks[-1].look
    least = f"at least {look.about.cases} votes on {look.about.problems} problems at each end"
    return Paragraph(f"A change over time needs {least}: {look.detail}.")


def _next(judged: Judged, run: Run | None, found: Found) -> list[Paragraph]:
    """Return proposals, most urgent first, each with a command."""
    advice = list(_training_advice(run, found)) if run else []
    wrong = [one for one in found.values() if one.tone in ("bad", "warn") and "learned" not in one.look.kind]
    settings = run.settings if run else {}
    for words in dict.fromkeys(one.words[0] for one in wrong):  # one proposal per kind
        first = next(one for one in wrong if one.words[0] == words)
        behind = first.look.behind or Behind(judged.run, judged.filter)
        text = f"{words}: {open_advice(settings, first.look.about.advice)}."
        advice.append(Paragraph(text, first.tone, None, behind.command))
    advice.sort(key=lambda part: URGENCY.index(part.tone))
    if not advice:
        won = any(figure.name == "winner/accuracy" and figure.estimate for figure in judged.figures)
        which, filter = "without a right answer", "accuracy:0"
        if won:
            which, filter = "whose winner is wrong although another answer was right", WRONG_WINNER
        command = Behind(judged.run, filter).command
        advice = [Paragraph(f"No alarm and no bad finding. Read debates {which}.", "", None, command)]
    return advice[:MOST_ADVICE]


def _training_advice(run: Run, found: Found) -> Iterator[Paragraph]:
    """Yield proposals from the first alarm, the held-out figures and, without progress, a hypothesis."""
    held_out = found.get("learned/held_out")
    for reading in alarms(run.readings)[:1]:
        alarm, fix = reading.alarm, open_advice(run.settings, reading.detector.fix)
        assert alarm is not None
        text = f"Alarm at step {alarm.step}: {alarm.why}. Proposed: {fix}."
        yield Paragraph(text, "bad", None, Behind(str(run.path), debates_of(reading)).command)
    if held_out is None and run.settings:
        text = "Find out whether it learned: evaluate the start weights and all kept checkpoints."
        yield Paragraph(text, "warn", None, f"debate eval {quote(printable(str(run.path)))} --weights all")
    elif held_out is not None and held_out.tone == "bad":
        advice = open_advice(run.settings, held_out.look.about.advice)
        command = held_out.look.behind.command if held_out.look.behind else ""
        yield Paragraph(f"{advice[:1].upper()}{advice[1:]}.", "bad", None, command)
    last, first = held_out or found.get("learned/training"), ranked(run)[0]
    if last is not None and last.tone != "good" and first.crossed:
        fix = open_advice(run.settings, first.fix)
        text = f"{first.name} ({first.crossed} of {first.known} signs): {fix}."
        yield Paragraph(text, "", None, Behind(str(run.path), first.debates).command)
