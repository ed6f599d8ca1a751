"""``debate train CONFIG [key=value ...]``."""

from __future__ import annotations

from typing import Annotated

import typer

from debate_rl.commands.arguments import Overrides
from debate_rl.commands.console import plain_console
from debate_rl.commands.errors import end_on_stop


def train(
    config: Annotated[str, typer.Argument(help="A TOML recipe, e.g. configs/gsm8k_smoke.toml.")],
    overrides: Overrides = None,
) -> None:
    """Train; run the same command again to continue a run that stopped."""
    from shlex import quote

    from debate_rl.config import Config
    from debate_rl.config.recipes import load_config
    from debate_rl.training.estimate import estimate
    from debate_rl.training.session import open_session
    from debate_rl.training.train import train_steps

    settings = load_config(Config, config, overrides or ())
    with end_on_stop(), open_session(settings) as session:
        if session.step < settings.train.steps and settings.logging.progress != "none":
            lines = estimate(settings, session.model, session.policy, session.data.train[0])
            plain_console(stderr=True).print(*lines, sep="\n")
        train_steps(session)
    say = plain_console().print
    say(f"done: {session.step} steps in {session.folder.path}")
    say(f"  metrics      {session.folder.metrics}")
    say(f"  transcripts  {session.folder.transcripts}")
    say(f"  checkpoints  {session.folder.checkpoints}")
    folder = quote(str(session.folder.path))
    say(f"  look         debate inspect {folder}; debate report {folder}")
