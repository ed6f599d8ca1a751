"""``debate train CONFIG [key=value ...]``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from debate_rl.commands.arguments import Overrides
from debate_rl.commands.console import plain_console
from debate_rl.commands.errors import end_on_stop

if TYPE_CHECKING:
    from debate_rl.config import Config


def train(
    config: Annotated[
        str,
        typer.Argument(
            metavar="RECIPE|RUN", help="A TOML recipe, e.g. gsm8k_smoke, or the folder of a run to resume."
        ),
    ],
    overrides: Overrides = None,
) -> None:
    """Train; the same command again, or with the run's folder, goes on with a run that stopped."""
    from shlex import quote

    from debate_rl.formatting import counted

    settings = _settings(config, overrides or ())
    size, quiet = settings.train, settings.logging.progress == "none"
    tell = plain_console(stderr=True, quiet=quiet).print
    debates = f"{size.problems_per_step} problems x {size.debates_per_problem} debates"
    tell(f"{settings.run.dir}: {size.steps} steps of {debates}; loading the model")

    from debate_rl.training.estimate import estimate  # torch takes seconds to load
    from debate_rl.training.session import open_session
    from debate_rl.training.train import train_steps

    with end_on_stop(), open_session(settings) as session:
        if session.step:
            tell(f"resuming after {session.step} of {size.steps} steps")
        if session.step < size.steps and not quiet:
            problem, held = session.data.train[0], len(session.data.held_out)
            tell(*estimate(settings, session.model, session.policy, problem, held_out=held), sep="\n")
        if session.evaluates_first:
            tell(
                f"evaluating {counted(len(session.data.held_out), 'held-out problem')} before the first step"
            )
        train_steps(session)
    from debate_rl.tracking.held_out import read_held_out, sentences

    say = plain_console().print
    if kept := read_held_out(session.folder.path):
        say(*sentences(kept), sep="\n")
    say(f"done: {session.step} steps in {session.folder.path}")
    say(f"  metrics      {session.folder.metrics}")
    say(f"  transcripts  {session.folder.transcripts}")
    say(f"  checkpoints  {session.folder.checkpoints}")
    folder = quote(str(session.folder.path))
    say(f"  look         debate inspect {folder}; debate report {folder}")


def _settings(name: str, overrides: Sequence[str]) -> Config:
    """Return the configuration of a recipe, or of a run: it goes on where its folder lies now."""
    from debate_rl.config.recipes import open_run_or_recipe, parse_override

    run, settings = open_run_or_recipe(name, overrides)
    if run is None or any(parse_override(text)[0] == ["run", "dir"] for text in overrides):
        return settings
    return settings.model_copy(update={"run": settings.run.model_copy(update={"dir": name})})
