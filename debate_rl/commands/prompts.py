"""``debate inspect prompts``: show the exact prompts of a recipe, and compare them with others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from debate import Problem
from debate_rl.commands.console import one_line, plain_console, write_json
from debate_rl.commands.options import JsonFile, named_and_set
from debate_rl.config import Config
from debate_rl.evaluation.prompts import SentPrompt, differences, sent_prompts, speech_of
from debate_rl.evaluation.suite import read_suite
from debate_rl.evaluation.tasks import Subject
from debate_rl.sampling.load_problems import load_trained, shown_with


def prompts(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN|CONFIG... [KEY=VALUE...]",
            help="Recipes or folders of runs. The first one is shown, and the others are compared with it.",
        ),
    ],
    suite: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Also compare with the prompts of each data set in this suite."),
    ] = None,
    question: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Use this problem; default: the first training problem."),
    ] = None,
    tokens: Annotated[bool, typer.Option("--tokens", help="Also print all tokens with their ids.")] = False,
    json: JsonFile = None,
) -> None:
    """Show each kind of prompt as the model receives it, and differences of training and evaluation."""
    names, overrides = named_and_set(what)
    if not names:
        raise ValueError("prompts: name a recipe or a run, as in debate inspect prompts gsm8k_smoke")
    say, first = plain_console().print, Subject(names[0], tuple(overrides))
    config = first.config
    problem, note = _problem(config, question)
    speech, missing = speech_of(config)
    ours = sent_prompts(config, shown_with(config, problem, config.shots.count_at(0)), speech)
    if note:
        say(note)
    if missing:
        why = one_line(missing)
        say(f"no tokenizer is available ({why}); prompts are shown without the chat template")
    for prompt in ours:
        say(_shown(prompt, tokens=tokens))
    found: dict[str, list[str]] = {}
    for pair, other, count in _others(first, names[1:], suite):
        theirs = speech if other.model == config.model else speech_of(other)[0]
        sent = sent_prompts(other, shown_with(other, problem, count), theirs)
        lines = found[pair] = list(differences(ours, sent))
        say(f"{pair}: {'different prompts' if lines else 'the same prompts'}")
        for line in lines:
            say(f"  {line}")
    if json is not None:
        write_json(json, {"prompts": [asdict(prompt) for prompt in ours], "differences": found})


def _others(first: Subject, names: Sequence[str], suite: str | None) -> Iterator[tuple[str, Config, int]]:
    """Yield each comparison with the first recipe: name, configuration, and number of examples."""
    yield "training and evaluation", first.config, first.config.shots.final
    for name in names:
        other = Subject(name, first.overrides).config
        yield f"{first.name} and {name}", other, other.shots.count_at(0)
    for one in read_suite(suite) if suite else ():
        _, config = first.opened(one)
        debate = config.debate.one_round(alone=True) if one.direct else config.debate
        changed = config.model_copy(update={"debate": debate})
        yield f"training and {one.name} of {suite}", changed, changed.shots.final


def _problem(config: Config, question: str | None) -> tuple[Problem, str]:
    """Return the given or the first training problem, with a note if a sample question replaces it."""
    if question is not None:
        return Problem("preview", question, "12"), ""
    try:
        return load_trained(config)[0], ""
    except (ValueError, OSError, ImportError) as error:
        note = f"the data cannot be read ({one_line(error)}); a sample question is used"
        return Problem("preview", "What is 7 + 5?", "12"), note


def _shown(prompt: SentPrompt, *, tokens: bool) -> str:
    """Return a prompt as lines: its purpose, its text, and its tokens if requested."""
    count = f", {len(prompt.tokens)} tokens" if prompt.tokens else ""
    how = ", ".join(f"{name} {value!r}" for name, value in prompt.settings.items() if value not in ((), 0))
    lines = [f"== {prompt.name}{count}: {how}", prompt.text, "=="]
    if tokens:
        pairs = zip(prompt.tokens, prompt.pieces, strict=True)
        lines.append(" ".join(f"{token}:{piece!r}" for token, piece in pairs))
    return "\n".join(lines)
