"""Help pages: examples, kinds of values in plain words, and a page for each action of ``debate inspect``."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from typer.core import TyperCommand, TyperGroup

HELP = {"help_option_names": ["-h", "--help"]}
KINDS = {"int": "N", "float": "X"}


def examples(*lines: str) -> str:
    """Return the end of a help page: what can be typed, a line each."""
    return "\n\n".join(
        (f"{'Examples' if len(lines) > 1 else 'Example'}:", *(f"debate {line}" for line in lines))
    )


class Command(TyperCommand):
    """A command whose page names kinds of values in plain words: FILE, N, TEXT, nothing for a switch."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return options and arguments, each with the word that its page has for its value."""
        return _in_plain_words(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of the command line; ValueError for a key of a recipe that has dashes before it."""
        if any("KEY=" in (param.metavar or "") for param in self.params):
            _refuse_dashes(args, known={name for param in self.params for name in param.opts})
        return super().parse_args(ctx, args)


class Group(TyperGroup):
    """All commands, with options named as theirs are."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options, each with the word that the page has for its value."""
        return _in_plain_words(super().get_params(ctx))


def _in_plain_words(params: list[Any]) -> list[Any]:
    for param in params:
        param.display_type_rich = partial(_kind, param)
    return params


def _kind(param: Any, ctx: Any) -> str | None:
    """Return what a page writes behind the name of an option; None for a switch and for an argument."""
    if param.param_type_name == "argument" or param.is_flag:
        return None
    if param.metavar is not None:
        return str(param.metavar)
    plain = str(param.display_type(ctx)).strip("<>")
    return plain if "|" in plain else KINDS.get(plain.split()[0], "TEXT")


class ActionPage(NamedTuple):
    """What the page of an action says: its arguments, what it does, and what can be typed."""

    arguments: str
    text: str
    examples: Sequence[str]


PAGES: Mapping[str, ActionPage] = {
    "ls": ActionPage(
        "[FILTER]",
        "List debates, all or those that a FILTER finds: votes, flags (docs/transcripts.md).",
        ("inspect runs/mine ls winner:wrong flip:CW", "inspect runs/mine ls --newest --limit 10"),
    ),
    "show": ActionPage(
        "ID...",
        "Show debates whole: problem, solutions, comparisons, grades and rewards. An ID is STEP.INDEX.",
        ("inspect runs/mine show 12.3", "inspect runs/mine show 12.3 --prompts"),
    ),
    "grep": ActionPage(
        "WORDS [FILTER]",
        "Find words that follow each other in replies, and print what stands around them.",
        ('inspect runs/mine grep "let me check" winner:wrong',),
    ),
    "stats": ActionPage(
        "[FILTER]",
        "Print the figures of each step, over all debates or those that a FILTER finds.",
        ("inspect runs/mine stats", "inspect runs/mine stats level:5"),
    ),
    "why": ActionPage(
        "ID",
        "Tell why a turn was rewarded as it was, from its votes to its advantage.",
        ("inspect runs/mine why 12.3 --turn 0.1",),
    ),
    "same": ActionPage(
        "PROBLEM [ID ID]",
        "List the debates of a problem, in training and in evaluations, or tell how two of them differ.",
        ("inspect runs/mine same gsm8k-17", "inspect runs/mine same gsm8k-17 3.0 12.4"),
    ),
    "fixture": ActionPage(
        "ID FILE",
        "Save a debate as a new file, and print a test of it.",
        ("inspect runs/mine fixture 12.3 debate.json",),
    ),
    "replays": ActionPage(
        "[NAME [ID]]",
        "List what debate replay kept under other schemes, show one of them, or one debate of it.",
        ("inspect runs/mine replays", "inspect runs/mine replays rewards.truth_weight=0.3-1a2b3c4d 12.3"),
    ),
    "evaluations": ActionPage(
        "",
        "List the evaluations of a run, those made in training too, with the command that opens each part.",
        ("inspect runs/mine evaluations", "inspect runs/mine/evaluations/step_000050-1a2b3c4d/debates"),
    ),
    "pairs": ActionPage(
        "[N]",
        "Tell how the judge in training and the start judge judge fixed pairs under attack, or one of them.",
        ("inspect runs/mine pairs", "inspect runs/mine pairs 3"),
    ),
}
_CHOSEN = "debate_rl.commands.helping.action"


class InspectCommand(Command):
    """``debate inspect``, which has a page for each action: ``debate inspect ls --help``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Note the action, for the help that is printed while options are read."""
        ctx.meta[_CHOSEN] = next((word for word in args if word in PAGES), None)
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the page of the action that was named, or of all."""
        action = ctx.meta.get(_CHOSEN)
        super(InspectCommand, self if action is None else self._page(action)).format_help(ctx, formatter)

    def _page(self, action: str) -> InspectCommand:
        """Return the command as an action takes it, with the options that it has a use for."""
        from debate_rl.commands.inspect_lines import OPTIONS

        page, about = copy.copy(self), PAGES[action]
        taken = {"run", "words", "json"} | {name for name, actions in OPTIONS.items() if action in actions}
        page.params = [copy.copy(param) for param in self.params if param.name in taken]
        for param in page.params:
            if param.name == "words":
                vars(param).update(metavar=f"{action} {about.arguments}", help=None)
        page.help, page.epilog = about.text, examples(*about.examples)
        return page


def _refuse_dashes(words: Sequence[str], known: set[str]) -> None:
    """ValueError for ``--KEY=VALUE`` or ``--KEY VALUE`` where KEY is no option and a key of a recipe.

    >>> _refuse_dashes(["RECIPE", "--plan", "--unknown=1"], known={"--plan"})
    """
    for number, word in enumerate(words):
        name, equals, value = word.partition("=")
        if word == "--":
            return
        if not word.startswith("--") or name in known:
            continue
        from debate_rl.config import Config
        from debate_rl.config.keys import key_type

        key = name.removeprefix("--")
        if key_type(Config, key.split(".")) is not None:
            value = value if equals else " ".join(words[number + 1 : number + 2])
            raise ValueError(f"{word}: a key of a recipe has no dashes; write {key}={value or 'VALUE'}")


def refuse_unknown(words: Sequence[str], command: Any) -> None:
    """Raise ValueError for a word that is written as an option and is none; a filter has one dash at most."""
    from debate.settings import did_you_mean

    known = [name for param in command.params for name in param.opts if name.startswith("--")]
    for word in words:
        if word.startswith("--"):
            name = word.partition("=")[0]
            raise ValueError(f"no option is named {name}; {did_you_mean(name, known, 'see --help')}")
