"""The first screen of a report: did it learn, can the judge be trusted, what to look at or change next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from debate_rl.alarms.settings import open_advice
from debate_rl.formatting import counted
from debate_rl.reports.cells import Judged, percent_of
from debate_rl.reports.document import Answer, Behind, Chart, Links, Paragraph, Table
from debate_rl.reports.findings import Finding
from debate_rl.reports.judgment.groups import group_parts
from debate_rl.reports.judgment.sections import put_in, simulation_section
from debate_rl.reports.simulation import read_setting
from debate_rl.reports.training.answers import learned, learning_chart, training_advice
from debate_rl.reports.training.loading import Run

QUESTIONS = {
    "learned": "Did it learn?",
    "judge": "Can the judge be trusted, and is it getting worse?",
    "next": "What to look at or change next?",
}
MOST_ADVICE = 2
WRONG_WINNER = (
    "whose winner is wrong although a right answer was there",
    "winner:wrong accuracy.last_round:>0",
)
WRONG = "without a right answer", "accuracy:0"
"""Debates worth reading where nothing stands out, in words and as a filter: with winners, and without any."""
CHANGES = ("judge/held_out", "judge/change")
"""What tells whether the judge changes, the better one first."""
FAULTS = ("judge/blind_fault", "judge/weak_fault")
Said = tuple[str, list[Paragraph]]
"""An answer in a word, and its sentences."""
Found = Mapping[str, Finding]
"""The findings of one run, by kind."""


def answers(
    runs: Sequence[Judged], trained: Mapping[str, Run], found: Sequence[Finding]
) -> tuple[Answer, ...]:
    """Return the three answers; those of several runs stand below each other, without pictures."""
    said: dict[str, list[tuple[str, Said]]] = {name: [] for name in QUESTIONS}
    for judged in runs:
        of_run = {finding.look.kind: finding for finding in found if finding.look.run == judged.run}
        run = trained.get(judged.run)
        said["learned"].append((judged.run, _learned(judged, run, of_run)))
        said["judge"].append((judged.run, _judge(judged, of_run)))
        said["next"].append((judged.run, ("", _next(judged, run, of_run))))
    pictures = _pictures(runs[0], trained.get(runs[0].run)) if len(runs) == 1 else {}
    return tuple(
        _answer(name, said[name], pictures.get(name)) if len(runs) == 1 else _of_several(name, said[name])
        for name in QUESTIONS
    )


def _answer(name: str, said: Sequence[tuple[str, Said]], picture: Chart | Table | None) -> Answer:
    [(_, (word, text))] = said
    return Answer(name, QUESTIONS[name], word, tuple(text), picture)


def _of_several(name: str, said: Sequence[tuple[str, Said]]) -> Answer:
    """Return the first sentence of each run, with its name and the answer in a word."""
    lines = [
        replace(text[0], text=f"{run}: {word}. {text[0].text}" if word else f"{run}: {text[0].text}")
        for run, (word, text) in said
    ]
    return Answer(name, QUESTIONS[name], "", tuple(lines))


def _pictures(judged: Judged, run: Run | None) -> dict[str, Chart | Table | None]:
    charts = (part for part in group_parts(judged) if isinstance(part, Chart))
    by_step = next((chart for chart in charts if chart.name == "accuracy-by-step"), None)
    judging = by_step and replace(by_step, name="judge", small=True, behind=None)
    setting = read_setting(Path(judged.run))
    simulated = put_in(simulation_section(judged, setting.judges.expected)) if setting else None
    return {"learned": simulated or (run and learning_chart(run)), "judge": judging}


def _learned(judged: Judged, run: Run | None, found: Found) -> Said:
    if read_setting(Path(judged.run)) is not None:
        text = "Judges of known accuracy were simulated: see what was put in, and what was found of it."
        return "nothing was trained", [Paragraph(text)]
    if run is None:
        return "not known", [Paragraph("Nothing but debates was read.")]
    word, text = learned(run, found)
    whole = [Paragraph("This is of the whole run: a filter chooses debates alone.")] if judged.filter else []
    return word, [*text, *whole]


def _judge(judged: Judged, found: Found) -> Said:
    """Return whether judges beat a coin, and whether that changes: what is bad first."""
    accuracy = {figure.name: figure for figure in judged.figures}["judge/accuracy"]
    if accuracy.estimate is None:
        return "not known", [Paragraph(f"There is {accuracy.why}.", "warn")]
    coin, estimate = found["judge/coin"], accuracy.estimate
    share = f"{percent_of(estimate)} of {counted(estimate.n, 'vote')} on pairs with exactly one right side"
    first = Paragraph(f"Judges are right in {share}.", coin.tone or "warn", judged.behind(accuracy))
    word = {
        "found": "better than a coin" if estimate.value > 0.5 else "no",
        "too few": "too few votes to tell",
    }
    said = word.get(coin.state, "no better than a coin, as far as can be told")
    change = _change(found)
    parts = [first, change]
    if fault := next((one for kind in FAULTS if (one := found.get(kind)) and one.tone), None):
        said += ", but not on one kind of fault" if fault.tone == "bad" else ", less so on one kind of fault"
        parts.insert(1, fault.paragraph())
    said += {"bad": ", and getting worse", "warn": ", and perhaps getting worse"}.get(change.tone, "")
    return said, sorted(parts, key=lambda part: ("bad", "warn", "good", "").index(part.tone or "good"))


def _change(found: Found) -> Paragraph:
    """Return the sentence on whether the judge changed, of the best look that has cases enough."""
    looks = [found[kind] for kind in CHANGES if kind in found]
    told = [one for one in looks if one.state == "found"] or [one for one in looks if one.state != "too few"]
    if told:
        said, estimate = told[0].paragraph(), told[0].look.estimate
        falling = told[0].doubt == "not sure" and estimate is not None and estimate.value < 0
        return replace(said, tone="warn") if falling else said
    if not looks:
        return Paragraph("Whether that changes cannot be told: all votes are of one step.")
    look = looks[-1]
    least = f"{look.look.about.cases} votes on {look.look.about.problems} problems each"
    return Paragraph(f"Whether that changes takes {least}: {look.look.detail}.")


def _next(judged: Judged, run: Run | None, found: Found) -> list[Paragraph]:
    """Return what to do, the most urgent first, each with the command to type."""
    training = training_advice(run, found) if run else []
    wrong = [one for one in found.values() if one.tone in ("bad", "warn") and "learned" not in one.look.kind]
    judging = {one.words[0]: _advice(judged, run, one) for one in reversed(wrong)}  # one of each, the first
    advice = [*training, *reversed(judging.values())]
    advice.sort(key=lambda part: ("bad", "warn", "", "good").index(part.tone))
    if not advice:
        won = any(figure.name == "winner/accuracy" and figure.estimate for figure in judged.figures)
        which, filter = WRONG_WINNER if won else WRONG
        look = f"Nothing stands out. Read debates {which}."
        advice = [Paragraph(look, "", None, Links().command(Behind(judged.run, filter)))]
    return advice[:MOST_ADVICE]


def _advice(judged: Judged, run: Run | None, finding: Finding) -> Paragraph:
    behind = finding.look.behind or Behind(judged.run, judged.filter)
    text = f"{finding.words[0]}: {open_advice(run.settings if run else {}, finding.look.about.advice)}."
    return Paragraph(text, finding.tone, None, Links().command(behind))
