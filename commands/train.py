"""``debate train CONFIG [key=value ...]``."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

from rich.console import Console

from commands.config import load_config
from commands.errors import stops_told


def run_train(name: str, overrides: Sequence[str]) -> None:
    """Train, or go on with the run in the configured folder, and say where everything is."""
    from learner.config import Config
    from learner.estimate import estimate
    from learner.session import open_session
    from learner.train import train_steps

    config = load_config(Config, name, overrides)
    say = Console(markup=False, highlight=False, soft_wrap=True).print
    with stops_told(), open_session(config) as session:
        if session.step < config.train.steps and config.logging.progress != "none":
            told = estimate(config, session.model, session.policy, session.data.train[0])
            Console(stderr=True, markup=False, highlight=False, soft_wrap=True).print(*told, sep="\n")
        train_steps(session)
    say(f"done: {session.step} steps in {session.folder.path}")
    say(f"  metrics      {session.folder.metrics}")
    say(f"  transcripts  {session.folder.transcripts}")
    say(f"  checkpoints  {session.folder.checkpoints}")
    folder = quote(str(session.folder.path))
    say(f"  look         debate inspect {folder}; debate report {folder}")
