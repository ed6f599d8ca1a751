"""The settings of the runs: what differs first, all of them folded, and those that a source warns of."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from debate_rl.reports.document import Cell, Paragraph, Part, Section, Table
from debate_rl.reports.training.alarms import DEBATE, MARKOVIAN, RLVR
from debate_rl.reports.training.loading import Run

MOST_KEYS, LONGEST = 1000, 160
APART = ("run.dir", "run.allow_changes")
"""Keys that say where a run is, and not how it was done."""


def settings_section(runs: Sequence[Run]) -> Section:
    """Return the section: the differing settings, the risky ones, and all."""
    parts: list[Part] = []
    differing = [key for key in all_keys(runs) if _differs(runs, key) and key not in APART]
    known = [run for run in runs if run.settings]
    if len(known) > 1:
        text = "" if differing else "Every setting is the same in all runs."
        parts.append(_table("settings/differing", "Settings that differ", runs, differing, text, False))
    risks = tuple((Cell(run.name), *map(Cell, risk)) for run in runs for risk in risky(run))
    columns = ("run", "setting", "rule", "source")
    note = "Each line is a rule of a source that warns of such a setting, and no proof that it did harm here."
    if risks:
        parts.append(Table("settings/risky", "Settings that a source warns of", columns, risks, note))
    elif known:
        parts.append(Paragraph("No setting is one that the sources warn of.", "good"))
    parts.append(_table("settings/all", "All settings", runs, all_keys(runs), "", True))
    parts += [Paragraph(f"{run.name}: no settings were kept.", "warn") for run in runs if not run.settings]
    return Section("settings", "Settings", tuple(parts), "what was set, and what a source warns of")


def all_keys(runs: Sequence[Run]) -> list[str]:
    """Return the keys of all runs, in the order in which they are first met; at most 1,000."""
    return [*dict.fromkeys(key for run in runs for key in run.settings)][:MOST_KEYS]


def _differs(runs: Sequence[Run], key: str) -> bool:
    return len({setting_text(run.settings.get(key)) for run in runs if run.settings}) > 1


def _table(name: str, title: str, runs: Sequence[Run], keys: Sequence[str], note: str, folded: bool) -> Table:
    rows = tuple(
        (Cell(key), *(Cell(setting_text(run.settings.get(key), key in run.settings)) for run in runs))
        for key in keys
    )
    return Table(name, title, ("setting", *(run.name for run in runs)), rows, note, folded)


def setting_text(value: Any, there: bool = True) -> str:
    """Return a setting as text, cut to 160 characters.

    >>> setting_text(1e-5), setting_text([1, 2]), setting_text("grpo"), setting_text(None, False)
    ('1e-05', '[1, 2]', 'grpo', '-')
    """
    if not there:
        return "-"
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def risky(run: Run) -> Iterator[tuple[str, str, str]]:
    """Yield (setting, rule, source) of each setting that a source warns of."""
    yield from _risky_learner(run)
    yield from _risky_sizes(run)


def _risky_learner(run: Run) -> Iterator[tuple[str, str, str]]:
    lr, beta = run.setting("learner.lr", float), run.setting("learner.beta", float)
    eps, warmup = run.setting("learner.adam_eps", float), run.setting("learner.warmup_steps", int)
    rank, norm = run.setting("model.lora_rank", int), run.setting("learner.max_grad_norm", float)
    tiny = any(key.startswith("model.tiny") for key in run.settings)
    if lr is not None and not tiny and rank == 0 and lr >= 2e-5:
        rule = "full weights: 2e-5 and 5e-5 collapsed a 1.7B model, 5e-6 to 1e-5 trained it"
        yield f"learner.lr = {lr:g}", rule, RLVR
    if lr is not None and not tiny and rank and lr > 5e-5:
        yield f"learner.lr = {lr:g}", "LoRA: 1e-5 to 5e-5; 1e-4 was too much", MARKOVIAN
    if beta is not None and 0 < beta < 1e-3 and lr is not None and lr >= 5e-6:
        rule = "beta of 1e-4 at lr 5e-6: KL maximum 9748, entropy 0.008; 1e-3 held"
        yield f"learner.beta = {beta:g}", rule, RLVR
    if beta == 0 and run.setting("learner.keep_reference") is not True:
        rule = "no reference: drift is neither held nor measured (no kl_mean)"
        yield "learner.beta = 0", rule, RLVR
    weight = run.setting("rewards.likelihood_weight", float) or 0.0
    if weight and run.setting("learner.loss", str) == "ppo":
        rule = "PPO with a likelihood reward: ratio 21.75, log-probability -1.8 to -41, reasoning of 4444"
        yield "learner.loss = ppo", rule, MARKOVIAN
    if weight >= 1:
        rule = "a weight of 1 from the first step on; 0.1 to 0.5 advised, raised by a ramp"
        yield f"rewards.likelihood_weight = {weight:g}", rule, MARKOVIAN
    if eps is not None and eps <= 1e-7 and not warmup:
        rule = "Adam's eps of 1e-7 without a warm-up: KL of 2685 within 8 steps"
        yield f"learner.adam_eps = {eps:g}", rule, RLVR
    if norm is not None and (norm == 0 or norm > 10):
        yield f"learner.max_grad_norm = {norm:g}", "cut gradients at 1.0", MARKOVIAN


def _risky_sizes(run: Run) -> Iterator[tuple[str, str, str]]:
    problems, debates = run.setting("train.batch_size", int), run.group_size
    if problems is not None and debates is not None and problems * debates < 16:
        rule = "small batches: 12 answers a step was too few for a baseline, 32 advised"
        yield f"{problems} x {debates} debates a step", rule, MARKOVIAN
    if run.setting("held_out.every", int) == 0 or run.setting("held_out.limit", int) == 0:
        rule = "never evaluated: nobody can tell when it was at its best"
        yield "held_out.every or held_out.limit = 0", rule, MARKOVIAN
    penalty = run.setting("rewards.format_penalty", float)
    if penalty is not None and penalty < -0.5:
        rule = "a format penalty over 0.5 lets the form dominate the content"
        yield f"rewards.format_penalty = {penalty:g}", rule, DEBATE
    agents, tokens = run.setting("debate.num_agents", int), run.setting("rewards.truth_weight", float)
    if agents is not None and agents > 1 and tokens == 0:
        rule = "votes alone: where few solve it, praise goes to wrong work; mix in half truth"
        yield "rewards.truth_weight = 0", rule, DEBATE
