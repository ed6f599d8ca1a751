"""Why a turn was paid what it was paid, with a way to each turn that it was compared with."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import Response

from inspector.views import debate_view
from inspector.views.reward import config_of, why
from inspector.web.debate_page import in_debate, opened
from inspector.web.page import Asked
from inspector.web.views_pages import chosen_turn, picker

if TYPE_CHECKING:
    from learner.config import Config

MOST = 40
"""Votes, opponents or members of a group that are listed."""


def explained(asked: Asked) -> Response:
    """Show the chain of a turn: votes, rewards, baselines, advantage."""
    store, record = asked.store, opened(asked)
    view = debate_view(asked.id, record)
    chosen = chosen_turn(asked, view)
    config, note = _config(store.run)
    return in_debate(
        asked,
        "why",
        why=why(store, config, asked.id, chosen, note=note),
        turn=view.turn(chosen),
        most=MOST,
        **picker(view, "why", chosen),
    )


def _config(run: Path) -> tuple[Config | None, str]:
    """Return a run's configuration, read again when its file changes."""
    try:
        found = (run / "config.toml").stat()
    except OSError:
        return config_of(run)
    return _kept(run, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=64)
def _kept(run: Path, changed: int, size: int) -> tuple[Config | None, str]:
    return config_of(run)
