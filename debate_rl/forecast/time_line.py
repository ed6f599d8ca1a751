"""The line about the time of a run, the same for ``--plan`` and for a start: what is left, and by what."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Any

from debate_rl.forecast.cards import Card, card_of, least_seconds
from debate_rl.forecast.plan import Plan
from debate_rl.forecast.speed import Speed, evaluation_seconds, evaluations_of, limit_of, probe, seconds_of
from debate_rl.formatting import counted, duration
from debate_rl.metrics.step_log import read_metrics, step_seconds
from debate_rl.models import resolve_device
from debate_rl.runs.folder import RunFolder
from debate_rl.runs.weights import load_run_model

UNTIMED = (
    "nothing was timed on that card; --plan on its machine gives a bound, and --plan RUN the time of a run"
)


def time_line(needs: Plan, run: Path | None, *, here: bool, model: Any = None) -> str:
    """Return the line about the time of the steps and evaluations that are left.

    It rests on the steps that the run has done, else on a probe of the model, else on a bound. ``here``:
    whether the run is planned for this machine, so that something can be timed. ``model``: the run's own,
    where it is loaded already; None loads a tiny one, and times the machine in the place of another.
    """
    if run is not None and (line := _measured(needs, run)):
        return line
    if not here and (card := card_of(needs.there)) is not None:
        return _by_sheet(needs, card)
    if needs.config.model.policy is not None:
        return "  time    not known: --plan RUN estimates it from the finished steps of a run with vLLM"
    if not here:
        return f"  time    not known: {UNTIMED}"
    config, (speed, about, by) = needs.config, timed_here(needs, model)
    took = seconds_of(needs.load, speed, config, adapter=config.model.lora_rank > 0)
    each = evaluation_seconds(needs.load, speed, config, needs.held_out) if needs.held_out else 0.0
    parts = f" (sampling {duration(took.sampling)}, learning {duration(took.learning)})"
    return line_of(needs, needs.done, took.sampling + took.learning, each, about, by, parts=parts)


def timed_here(needs: Plan, model: Any = None) -> tuple[Speed, str, str]:
    """Return the speed of a model on this machine, whether it is that or the most, and what it rests on."""
    if model is None and needs.config.model.tiny is not None:
        model = load_run_model(needs.config)[0]
    if model is not None:
        return probe(model, needs.load), "about", "by a short probe of this model"
    speed = limit_of(needs.model, needs.load, resolve_device(needs.config.model.device))
    return speed, "at least", "by matrix products and memory timed on this machine; this model was not run"


def _measured(needs: Plan, run: Path) -> str:
    """Return the line from what the steps of a run took; "" where it has none."""
    metrics = RunFolder(run).metrics
    rows = read_metrics(metrics) if metrics.exists() else []
    if not rows:
        return ""
    evaluated = [value for row in rows if (value := row.get("seconds/evaluate"))]
    each, by = fmean(evaluated or [0.0]), f"by the {counted(len(rows), 'step')} done"
    return line_of(needs, len(rows), fmean(map(step_seconds, rows)), each, "about", by)


def _by_sheet(needs: Plan, card: Card) -> str:
    """Return the line about a card that is not here."""
    step, each = least_seconds(needs.config, needs.model, needs.load, needs.held_out, card)
    return line_of(needs, needs.done, step, each, "at least", sheet_of(card))


def sheet_of(card: Card) -> str:
    """Return what a time on a card that is not here rests on."""
    return f"by the peak of an {card.name}'s data sheet; nothing was run there"


def line_of(
    needs: Plan, done: int, step: float, evaluation: float, about: str, by: str, *, parts: str = ""
) -> str:
    """Return the line, given the seconds of a step and of an evaluation. ``parts``: of a step."""
    left = max(needs.config.train.steps - done, 0)
    if not left:
        return f"  time    none: {counted(done, 'step')} of {needs.config.train.steps} are done"
    count = evaluations_of(needs.config, needs.held_out, done=done) if evaluation else 0
    each = f"{counted(left, 'step')} of {duration(step)}{parts}"
    also = f", {counted(count, 'evaluation')} of {duration(evaluation)}" if count else ""
    whole = duration(left * step + count * evaluation)
    return f"  time    {about} {whole}{' left' if done else ''}: {each}{also}; {by}"
