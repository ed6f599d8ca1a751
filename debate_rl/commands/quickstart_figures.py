"""The figures of the quick-start before and after training, as tables and sentences."""

from __future__ import annotations

import time
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from debate.seeds import derive_seed
from debate_rl.commands.console import with_interval
from debate_rl.config import Config
from debate_rl.evaluation.scores import Scores, difference
from debate_rl.formatting import share
from debate_rl.judge_attack.judging import judge_accuracy
from debate_rl.judge_attack.pairs import ATTACKED as ATTACK
from debate_rl.judge_attack.pairs import watched_judge
from debate_rl.metrics.intervals import Estimate, spread
from debate_rl.training.loop import evaluate, evaluate_first, train_steps
from debate_rl.training.open_or_resume import open_training
from debate_rl.training.run import Run

FIRST, WINNER, MAJORITY = "debate/accuracy/round_0", "debate/winner/accuracy", "direct/self_consistency"
ATTACKED = "judge/pairs/attacked"
Figures = dict[str, dict[str, object]]


class Snapshot(NamedTuple):
    """Held-out figures of one set of weights."""

    scores: Scores
    judge_greedy: Estimate
    judge_sampled: Estimate

    def of(self, name: str, minus: str | None = None) -> Estimate:
        """Return a figure over all problems, or its difference from another figure."""
        scores = self.scores
        figure = scores.estimate(name) if minus is None else difference(scores, name, scores, minus)
        assert figure is not None, name  # all graded problems have a value
        return figure

    @property
    def rounds(self) -> list[Estimate]:
        """Accuracy of all agents by round, (R,)."""
        count = sum(name.startswith("debate/accuracy/round_") for name in self.scores.values)
        return [self.of(f"debate/accuracy/round_{r}") for r in range(count)]

    @property
    def watched(self) -> bool:
        """True if the judge compared pairs under attack."""
        return ATTACKED in self.scores.values


def measured_run(config: Config, name: str, console: Console) -> dict[str, Any]:
    """Warm-start, evaluate, train and evaluate again. A finished run is only evaluated again."""
    started = time.process_time()
    with open_training(config) as session:
        plain = partial(console.print, soft_wrap=True, markup=False)
        say = session.tracker.say if console.is_terminal else plain
        parameters = sum(p.numel() for p in session.model.parameters())
        say(f"{name}: a model of {parameters:,} parameters, trained on the debate format by the warm start")
        before = _snapshot_before(session)
        say(f"after the warm start ({time.process_time() - started:.0f} CPU s): {_brief(before)}")
        if session.step == config.train.steps:
            say(f"{session.folder.path} already contains this finished run; it is only evaluated again")
        train_steps(session)
        after = snapshot(session)
    figures = figures_of(before, after, time.process_time() - started) | _hack_gap(session.folder.path)
    rows, title = _table(before, after)
    return {"figures": figures, "rows": rows, "title": title, "words": _in_words(figures, before, after)}


def snapshot(session: Run) -> Snapshot:
    """Evaluate the run's weights on its held-out problems."""
    config, problems = session.config, session.data.held_out
    if session.step not in session.evaluations and not evaluate_first(session):
        evaluate(session, session.step)

    def judged(*, greedy: bool) -> Estimate:
        part = f"judging pairs, {'greedy' if greedy else 'sampled'}"
        session.tracker.advance(part, 0, len(problems))
        family, seed = config.held_out.kind or config.env.kind, derive_seed(config.held_out.seed, "judge")
        found = judge_accuracy(
            session.policy, family, problems, config=config.debate, greedy=greedy, seed=seed
        )
        session.tracker.advance(part, len(problems), len(problems))
        return found

    greedy, sampled = judged(greedy=True), judged(greedy=False)
    return Snapshot(session.evaluations[session.step], greedy, sampled)


def _snapshot_before(session: Run) -> Snapshot:
    """Evaluate the warm-started weights, even if the run resumed from a later checkpoint."""
    if session.step == 0:
        return snapshot(session)
    step, session.step = session.step, 0
    with session.warm_started_weights():
        before = snapshot(session)
    session.step = step
    return before


def figures_of(before: Snapshot, after: Snapshot, cpu_seconds: float) -> Figures:
    """Return name -> {"value", "unit", "n", "low", "high"}; accuracies at T = 1 except for judges."""
    found: dict[str, Estimate] = {}
    tokens: Figures = {}
    for when, suffix, shot in (("before", "_before", before), ("after", "", after)):
        second = f"debate/accuracy/round_{min(1, len(shot.rounds) - 1)}"
        found |= {
            f"accuracy_round_0_{when}": shot.rounds[0],
            f"winner_accuracy_{when}": shot.of(WINNER),
            f"judge_accuracy_{when}": shot.judge_greedy,
            f"judge_accuracy_{when}_sampled": shot.judge_sampled,
            f"self_consistency_{when}": shot.of(MAJORITY),
            f"winner_minus_self_consistency{suffix}": shot.of(WINNER, MAJORITY),
            f"winner_minus_round_0{suffix}": shot.of(WINNER, FIRST),
            f"round_1_minus_round_0{suffix}": shot.of(second, FIRST),
        }
        if before.watched and after.watched:
            found[f"judge_attacked_{when}"] = shot.of(ATTACKED)
        for name, mode, n in (("debate", "debate", 1), ("self_consistency", "direct", shot.scores.samples)):
            for kind in ("generated", "prompt"):
                spent = shot.of(f"{mode}/{kind}_tokens").value
                tokens[f"{name}_{kind}_tokens_{when}"] = _row(spent, "tokens", n)
    rows = {name: _row(e.value, "share", e.n, e.low, e.high) for name, e in found.items()}
    valid = [shot.of("debate/valid_xml") for shot in (before, after)]
    rows["valid_xml"] = _row(min(estimate.value for estimate in valid), "share", valid[1].n)
    return rows | tokens | {"cpu_seconds": _row(cpu_seconds, "s", 1)}


def _hack_gap(run: Path) -> Figures:
    """Return how much more accuracy the judge loses to persuaders than the start judge. Empty at step 0."""
    watched = watched_judge(run)
    gaps = [] if watched is None or not watched.step else watched.figures
    found = next((one.gap for one in gaps if one.attack == ATTACK), None)
    return {} if found is None else {"hack_gap": _row(found.value, "share", found.n, found.low, found.high)}


def _row(
    value: float, unit: str, n: int, low: float | None = None, high: float | None = None
) -> dict[str, object]:
    """Return one figure. A bound that is unknown or infinite is None."""
    known = [bound if bound is not None and isfinite(bound) else None for bound in (low, high)]
    return {"value": value, "unit": unit, "n": n, "low": known[0], "high": known[1]}


def _brief(shot: Snapshot) -> str:
    rounds = " -> ".join(f"{e.value:.2f}" for e in shot.rounds)
    judged = f"{shot.judge_greedy.value:.2f} greedy, {shot.judge_sampled.value:.2f} sampled"
    return f"accuracy by round {rounds}, winner {shot.of(WINNER).value:.2f}, judge {judged}"


def _table(before: Snapshot, after: Snapshot) -> tuple[list[tuple[str, ...]], str]:
    """Return the rows of the figures before and after, with 95% intervals by problem, and their title."""
    shots = before, after
    samples = " / ".join(str(shot.scores.samples) for shot in shots)
    lines = [[(f"accuracy, round {r}", _cell(one)) for r, one in enumerate(shot.rounds)] for shot in shots]
    for shot, line in zip(shots, lines, strict=True):
        line += [
            ("winner accuracy", _cell(shot.of(WINNER))),
            (f"self-consistency, {samples} samples", _cell(shot.of(MAJORITY))),
            ("winner minus self-consistency", _cell(shot.of(WINNER, MAJORITY), sign="+")),
            ("judge accuracy on fixed pairs, greedy", _cell(shot.judge_greedy)),
            ("judge accuracy on fixed pairs, T = 1", _cell(shot.judge_sampled)),
        ]
        if before.watched and after.watched:
            line.append(("judge accuracy on attacked pairs, greedy", _cell(shot.of(ATTACKED))))
        line += [
            ("valid XML", f"{shot.of('debate/valid_xml').value:.2f}"),
            ("tokens of a debate: generated + read", _tokens(shot, "debate")),
            ("tokens of self-consistency", _tokens(shot, "direct")),
        ]
    rows = [(name, old, new) for (name, old), (_, new) in zip(*lines, strict=True)]
    return rows, f"held-out problems, sampled at T = 1 (n = {before.of(WINNER).clusters})"


def _cell(estimate: Estimate, *, sign: str = "") -> str:
    return f"{estimate.value:{sign}.2f}{spread(estimate, 2, (-1.0 if sign else 0.0, 1.0))}"


def _tokens(shot: Snapshot, mode: str) -> str:
    return " + ".join(f"{shot.of(f'{mode}/{kind}_tokens').value:.0f}" for kind in ("generated", "prompt"))


def _in_words(figures: Figures, before: Snapshot, after: Snapshot) -> str:
    """Return the figures as sentences."""
    moved = difference(after.scores, FIRST, before.scores, FIRST)
    assert moved is not None  # both have the same problems
    change = "debate RL changed this by" if moved.excludes_zero else "debate RL made no clear change:"
    first = _beside("one agent in round 0", after.of(WINNER, FIRST))
    majority = _beside("a majority at equal generated tokens", after.of(WINNER, MAJORITY))
    return (
        f"Before RL, one agent in round 0 was right on {share(before.of(FIRST).value)}; "
        f"{change} {_gain(moved)}. Now the winner of a debate is right {first}, and {majority}. "
        f"The run took {figures['cpu_seconds']['value']:.0f} CPU seconds."
    )


def _beside(other: str, lead: Estimate) -> str:
    """Return how much more often the winner is right. Name a direction only if the interval excludes 0."""
    if lead.excludes_zero:
        return f"{'more' if lead.value > 0 else 'less'} often than {other}, by {_gain(lead)}"
    return f"about as often as {other}: {_gain(lead)}"


def _gain(estimate: Estimate) -> str:
    return with_interval(estimate, signed=True, none="no interval")
