"""``debate train CONFIG [key=value ...]``."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from commands.config import load_config


def run_train(name: str, overrides: Sequence[str]) -> None:
    """Train, or go on with the run in the configured folder, and say where everything is."""
    from learner.config import Config
    from learner.train import train

    config = load_config(Config, name, overrides)
    console = Console()
    session = train(config)
    console.print(f"done: {session.step} steps in [bold]{session.folder.path}[/bold]")
    console.print(f"  metrics      {session.folder.metrics}")
    console.print(f"  transcripts  {session.folder.transcripts}")
    console.print(f"  checkpoints  {session.folder.checkpoints}")
