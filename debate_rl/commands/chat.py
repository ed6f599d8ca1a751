"""``debate solve chat RUN``: talk to a model, in a terminal or through a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from debate_rl.commands.console import plain_console, printed, write_json
from debate_rl.commands.options import JsonFile, Overrides, RecipeOrRun, SeedOption, WeightsOption
from debate_rl.config.recipes import open_run_or_recipe
from debate_rl.evaluation.asking import policy_of, weights_named
from debate_rl.strategies.solving import with_tools
from debate_rl.strategies.talk import Talk

RESET, QUIT = "/reset", "/quit"


def chat(
    what: RecipeOrRun,
    overrides: Overrides = None,
    weights: WeightsOption = "newest",
    max_tokens: Annotated[int, typer.Option(min=1, help="Tokens of a reply, at most.")] = 512,
    temperature: Annotated[float, typer.Option(min=0.0, help="Temperature of the replies.")] = 0.7,
    top_p: Annotated[float, typer.Option(help="Sample among the likely tokens of this mass.")] = 0.9,
    system: Annotated[str, typer.Option(metavar="TEXT", help="A system message before everything.")] = "",
    seed: SeedOption = 0,
    json: JsonFile = None,
) -> None:
    """Talk to a model: a line, a reply; /reset forgets what was said, /quit or the end of the input ends."""
    if not 0 < top_p <= 1:
        raise ValueError(f"--top-p {top_p:g}: needs more than 0 and at most 1")
    run, config = open_run_or_recipe(what, overrides or ())
    if config.model.tiny is not None or config.debate.prompts == "tiny":
        raise ValueError(
            f"chat: {what} is a tiny model that knows its own problems and no English; read its debates by "
            "debate inspect, give it a problem by debate solve play, or talk to a chat model"
        )
    with policy_of(with_tools(config, "none"), weights_named(run, weights, what)) as unopened:
        talk = Talk(unopened.open(), system, max_tokens, temperature, top_p, seed)
        for text in _said():
            if text == RESET:
                talk.messages.clear()
            else:
                plain_console().print(printed(talk.answer(text)))
    if json is not None:
        write_json(json, [{"role": one.role, "content": one.content} for one in talk.everything])


def _said() -> Iterator[str]:
    """Yield what is typed or piped, line by line, until the end or /quit; blank lines are nothing."""
    typed = sys.stdin.isatty() and sys.stdout.isatty()
    if typed:
        plain_console(stderr=True).print(f"{RESET} forgets what was said, {QUIT} ends")
    while True:
        if typed:
            try:
                line = input("> ")
            except EOFError:
                return
        elif not (line := sys.stdin.readline()):
            return
        if line.strip() == QUIT:
            return
        if line.strip():
            yield line.strip()
