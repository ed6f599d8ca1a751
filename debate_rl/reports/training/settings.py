"""The settings of the runs: what differs first, all of them folded, and those that a source warns of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from debate_rl.alarms.settings import risky
from debate_rl.reports.document import Cell, Paragraph, Part, Section, Table
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
    risks = tuple((Cell(run.name), *map(Cell, risk)) for run in runs for risk in risky(run.settings))
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
