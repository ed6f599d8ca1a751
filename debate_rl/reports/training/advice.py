"""What is proposed to a run, less what its settings have already."""

from __future__ import annotations

import re

from debate_rl.reports.training.loading import Run

NOTHING_LEFT = "what is proposed for this is set already"
_WANTED = re.compile(r'(\w+\.\w+) (?:=|of) ("[^"]*"|[\d.e-]+)( or more)?')


def open_advice(run: Run | None, text: str) -> str:
    """Return the parts of a proposal, between commas and semicolons, without those that the run has set."""
    pieces = re.split("(, |; )", text)
    parts = zip(pieces[::2], [*pieces[1::2], ""], strict=True)
    kept = "".join(part + end for part, end in parts if run is None or not _is_set(run, part))
    return kept.removesuffix(", ").removesuffix("; ") or NOTHING_LEFT


def _is_set(run: Run, part: str) -> bool:
    wanted = _WANTED.search(part)
    if wanted is None:
        return False
    key, value, more = wanted.groups()
    if value.startswith('"'):
        return run.setting(key, str) == value.strip('"')
    has = run.setting(key, float)
    return has is not None and (has >= float(value) if more else has == float(value))
