"""``debate``: the table of commands, and the entry point. A user error is one line and exit code 2."""

from __future__ import annotations

import importlib.metadata
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module
from types import FrameType
from typing import Any, NamedTuple, NoReturn

from debate_rl.commands.console import (
    INTERRUPTED,
    TERMINATED,
    WRONG,
    Ended,
    one_line,
    quiet_pipe,
    refuse_shadows,
    refuse_torchrun,
    refuse_windows,
    take_any_encoding,
)
from debate_rl.training.stops import raise_from_signal

ABOUT = "Multi-agent debate reinforcement learning for reasoning models."
STOPPED = "stopped; the same command resumes a run from its newest checkpoint"


class Entry(NamedTuple):
    """A command: its group on the help page, its MODULE:FUNCTION in this package, and its description."""

    group: str
    where: str
    about: str


COMMANDS: dict[str, Entry] = {
    "quickstart": Entry("Train", "quickstart:quickstart", "train a tiny model by debate on a CPU"),
    "doctor": Entry("Train", "doctor:doctor", "check whether a recipe is ready to train"),
    "train": Entry("Train", "train:train", "train by RL or supervised learning, or resume a run"),
    "sweep": Entry("Train", "sweep:sweep", "train several settings over several seeds"),
    "traces": Entry("Train", "traces:traces", "collect right replies as training data"),
    "export": Entry("Train", "export:export", "export weights for transformers, peft and vLLM"),
    "eval": Entry("Evaluate", "eval:evaluate", "evaluate on held-out problems"),
    "eval ladder": Entry("Evaluate", "eval:ladder", "compare debate with cheaper methods at equal cost"),
    "eval passrate": Entry("Evaluate", "passrate:passrate", "measure how often a policy solves each problem"),
    "eval regrade": Entry("Evaluate", "regrade:regrade", "grade stored replies in other modes"),
    "judge": Entry("Evaluate", "judge:judge", "judge rollouts of any model by blind votes"),
    "solve": Entry("Ask", "solve:solve", "answer problems by a strategy"),
    "solve play": Entry("Ask", "play:play", "hold one debate, and show its votes and rewards"),
    "solve chat": Entry("Ask", "chat:chat", "chat with a model"),
    "sandbox": Entry("Ask", "sandbox:sandbox", "run programs in the sandbox"),
    "inspect": Entry("Look", "inspect:inspect", "show debates in the terminal, as lines or in a browser"),
    "inspect prompts": Entry("Look", "prompts:prompts", "show the exact prompts of a recipe"),
    "inspect tokens": Entry("Look", "tokens:tokens", "show one turn token by token"),
    "report": Entry("Look", "report:report", "report how judging and training went"),
    "replay": Entry("Look", "replay:replay", "recompute the rewards of stored debates"),
    "new": Entry("Train", "new:new", "write the skeleton of an environment, a reward rule or a recipe"),
    "keys": Entry("Look", "keys:keys", "list the keys of a recipe"),
}
EXAMPLES = r"""
quickstart
quickstart --family words --seed 1
doctor gsm8k_smoke --quick
doctor runs/mine --problems 100 --json -
train gsm8k_smoke run.dir=runs/mine
train runs/mine
train gsm8k_qwen3_8b_1gpu --plan --memory 80
train sft/tiny sft.epochs=3 learner.lr=1e-4
train aimo3/full stage=cot
sweep quickstart learner.lr=1e-4,3e-4 seeds=5
sweep math_features at_once=2 --table features.md
traces runs/mine --samples 4 --out traces/mine.jsonl
traces runs/one runs/two --winners --out traces/winners.jsonl
traces traces/mine.jsonl traces/winners.jsonl --per-problem 2 --out traces/all.jsonl
export runs/mine --out weights
export runs/mine --judge --out judge
eval runs/mine --weights all
eval runs/mine --on gsm8k --on svamp --table t.md
eval ladder runs/mine
eval ladder gsm8k_smoke --on gsm8k --problems 200 --rungs majority,self_correction,debate_winner
eval passrate gsm8k_qwen3_8b_1gpu --samples 8
eval passrate runs/mine --weights best --out rates.jsonl
eval regrade runs/mine --modes boxed,math_verify
eval regrade runs/mine --clip 'Question:,Q:,\n\n\n'
judge rollouts.jsonl --judge runs/mine
judge logs/sums.eval --judge judge --problems 100 --json votes.json
solve runs/mine "What is 3 + 4?"
solve runs/mine problems.jsonl --strategy swiss --hours 5 --out answers.jsonl
solve runs/mine - --strategy greedy
solve play runs/mine "What is 3 + 4?" --answer 7
solve chat runs/mine
solve chat runs/mine --temperature 0 --max-tokens 64
sandbox program.py
sandbox one.py two.py --session --seconds 5
inspect runs/mine
inspect runs/mine ls winner:wrong
inspect runs/mine --web
inspect ls --help
inspect prompts rlvr/tiny
inspect prompts gsm8k_qwen3_8b_1gpu debate.prompts=boxed --suite math
inspect tokens runs/mine 12.3 --turn 1.0
report runs/mine
report runs/one runs/two --out compared
replay runs/mine rewards.truth_weight=0.3
keys learner
keys temperature
new env my_task
new reward my_rule
new recipe my_recipe
"""
"""Example command lines, which the help page of a command shows."""
LOOKING = {
    "doctor",
    "eval regrade",
    "new",
    "sandbox",
    *(n for n, one in COMMANDS.items() if one.group == "Look"),
}
"""Commands that only read a run, so that a stopped command leaves nothing to resume."""
FIRST_SPEAKS_S = 20.0
"""Seconds that a rank with an error waits for rank 0 to print the same error."""
MOVED = {
    **dict.fromkeys(("run", "sft"), "train"),
    **dict.fromkeys(("play", "chat"), "solve"),
    **dict.fromkeys(("ladder", "passrate", "regrade"), "eval"),
    **dict.fromkeys(("prompts", "tokens"), "inspect"),
}
"""The command that replaces each former command."""


def named(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the command at the beginning of the words, and the remaining words.

    Raise ValueError if there is no such command.

    >>> named(["eval", "ladder", "RUN"]), named(["eval", "RUN"])
    (('eval ladder', ['RUN']), ('eval', ['RUN']))
    """
    for length in (2, 1):
        name = " ".join(words[:length])
        if name in COMMANDS:
            return name, [*words[length:]]
    first = words[0]
    if first in MOVED:
        now = f"{MOVED[first]} {first}" if f"{MOVED[first]} {first}" in COMMANDS else MOVED[first]
        raise ValueError(f"debate {first} is now debate {now}")
    near = get_close_matches(first, COMMANDS, 1)
    hint = f"did you mean {near[0]!r}?" if near else "debate --help lists them all"
    raise ValueError(f"unknown command {first!r}; {hint}")


def examples(name: str) -> list[str]:
    """Return example command lines of a command."""
    return [line for line in EXAMPLES.split("\n") if line and named(line.split())[0] == name]


def loaded(name: str) -> Any:
    """Return a command for typer."""
    from debate_rl.commands.options import Command, as_command

    module, _, function = COMMANDS[name].where.partition(":")
    found = import_module(f"debate_rl.commands.{module}")
    kind = getattr(found, "COMMAND", Command)
    dashes = name == "inspect"  # a filter may begin with a dash
    return as_command(getattr(found, function), examples(name), kind, ignore_unknown_options=dashes)


def help_page() -> str:
    """Return the list of commands, by group."""
    lines = ["Usage: debate COMMAND [ARGS]...", "", ABOUT]
    for group in dict.fromkeys(entry.group for entry in COMMANDS.values()):
        lines += ["", group]
        lines += [f"  {name:15} {one.about}" for name, one in COMMANDS.items() if one.group == group]
    ends = (
        "debate COMMAND --help lists options and examples. An error in a recipe or file prints one line and",
        "exits with code 2; DEBATE_TRACEBACK=1 prints the traceback. debate --version prints the version.",
    )
    return "\n".join([*lines, "", *ends])


def dispatch(words: Sequence[str]) -> None:
    """Execute a command line, and always raise SystemExit."""
    if not words or words[0] in ("-h", "--help"):
        print(help_page())
        sys.exit(0 if words else WRONG)
    if words[0] == "--version":
        print(f"debate {importlib.metadata.version('debate-rl')}")
        sys.exit(0)
    name, rest = named(words)
    loaded(name)(rest, prog_name=f"debate {name}")


def run(command: Callable[[Sequence[str]], Any] = dispatch) -> None:
    """Execute the command line of this process. Print a user error as one line on stderr."""
    # If a signal ends a round, some of its requests may not have started.
    warnings.filterwarnings("ignore", r"coroutine '.*' was never awaited", RuntimeWarning)
    warnings.formatwarning = lambda message, *_, **__: f"debate: note: {one_line(message)}\n"
    try:
        refuse_windows(sys.platform)
        refuse_shadows()
        refuse_torchrun(sys.argv[1:], os.environ)
        take_any_encoding()
        signal.signal(signal.SIGTERM, _terminate)
        with quiet_pipe():
            command(sys.argv[1:])
    except (ValueError, OSError, ImportError) as error:
        if os.environ.get("DEBATE_TRACEBACK"):
            raise
        # A FilterError has a second line, with a caret under the wrong character.
        _end(str(error) if type(error).__name__ == "FilterError" else one_line(error), WRONG)
    except Ended as ended:
        _end(ended.line, int(str(ended.code)))
    except KeyboardInterrupt:
        _end(_stopped(), INTERRUPTED)
    except SystemExit as ended:  # typer exits without a message after an interrupt
        if ended.code == INTERRUPTED:
            _end(_stopped(), INTERRUPTED)
        raise


def run_alone(function: Callable[..., None], name: str) -> None:
    """Run a function, such as an experiment, as a command line that prints errors as ``debate`` does."""
    from debate_rl.commands.options import as_command

    run(lambda words: as_command(function, ())(words, prog_name=name))


def _terminate(_signum: int, frame: FrameType | None) -> None:
    def stop() -> NoReturn:
        raise Ended(_stopped(), TERMINATED)

    raise_from_signal(frame, stop)


def _stopped() -> str:
    """Return the last line of a command that a signal stopped."""
    with suppress(ValueError, IndexError):
        if named(sys.argv[1:])[0] in LOOKING:
            return "stopped"
    return STOPPED


def _end(line: str, code: int) -> NoReturn:
    if os.environ.get("RANK", "0") == "0":  # under torchrun, rank 0 prints the error for all
        with suppress(OSError):  # stderr is closed
            print(f"debate: {line}", file=sys.stderr)
    elif code == WRONG:  # torchrun ends rank 0 as soon as another rank exits
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        time.sleep(FIRST_SPEAKS_S)
    sys.exit(code)


if __name__ == "__main__":
    run()
