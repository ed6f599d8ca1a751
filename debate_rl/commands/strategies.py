"""Compare strategies at equal cost: ``debate eval --strategies a,b`` and ``debate eval ladder``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from debate import Policy
from debate_rl.commands.console import plain_console, print_table, progress_of, with_interval, write_json
from debate_rl.commands.options import listed
from debate_rl.engines import open_summarizer
from debate_rl.evaluation.asking import graded_problems, judge_of, policy_of
from debate_rl.evaluation.folder import FIGURES, KeptReplies, identity, open_folder
from debate_rl.evaluation.tasks import EvalTask
from debate_rl.formatting import percent, share
from debate_rl.inference.wrapped import engine_of
from debate_rl.strategies.equal_cost import (
    CONTENDERS,
    LADDER,
    Comparison,
    Contender,
    Measured,
    compare_strategies,
)
from debate_rl.strategies.solving import STRATEGIES, entry_named, with_tools
from debate_rl.strategies.work import Judge, SolvePlan

SAMPLES = 16
"""Default number of solutions per problem."""
GROUPS = {"all": [name for name, one in STRATEGIES.items() if not one.tools], "ladder": LADDER}
HEADS = ("strategy", "accuracy", "self-consistency, equal generated", "minus self-consistency")
HEADS += ("self-consistency, equal total", "minus self-consistency")
HEADS += ("oracle gap", "no answer", "generated", "read", "compared")


def contenders_named(text: str, table: Mapping[str, Contender] = CONTENDERS) -> dict[str, Contender]:
    """Return the contenders of a list a,b. "all": without tools. "ladder": the methods of the ladder.

    Raise ValueError for an unknown contender, or for an empty list.

    >>> [*contenders_named("greedy, majority")]
    ['greedy', 'majority']
    """
    names = GROUPS.get(text.strip()) or listed(text)
    if not names:
        raise ValueError("--strategies: name one or more, as in --strategies greedy,majority,swiss")
    return {name: entry_named(name, table, "--strategies") for name in names}


def compare(tasks: Sequence[EvalTask], names: str, *, judge: str | None, json: str | None) -> None:
    """Print a table for each evaluation, and write all figures as JSON."""
    contenders, rows = contenders_named(names), list[dict[str, object]]()
    for task in tasks:
        if task.damage is not None:
            plain_console().print(f"{task.label}: left out: {task.damage}")
            continue
        found, folder = compared(task, contenders, judge)
        show(found, f"{task.one.name}, {task.label}")
        write_json(folder / FIGURES, found.plain())
        rows.append({"data": task.one.name, "evaluation": task.label, **found.plain()})
    if json is not None:
        write_json(json, rows)


def compared(
    task: EvalTask, contenders: Mapping[str, Contender], judge: str | None = None
) -> tuple[Comparison, Path]:
    """Return the contenders' figures on an evaluation's problems, and the folder of their replies.

    All contenders share one model. Contenders with tools can also run programs.
    """
    config, seed = task.opened[1], task.options.seed
    environment, problems = graded_problems(config, task.one.key)
    judges = None if judge is None else judge_of(judge)
    what = identity(config, problems, task.weights, (seed,)) | {"strategies": True}
    what |= {"judge": judges and identity(judges[0], (), judges[1], ())}
    folder, always = task.folder(what), config.debate.tools != "none"
    runs = not always and any(one.tools for one in contenders.values())
    with ExitStack() as stack:
        stack.enter_context(open_folder(folder, what))
        tell = stack.enter_context(progress_of(folder))

        def kept(name: str, policy: Policy) -> Policy:
            return stack.enter_context(KeptReplies(policy, folder / f"{name}.jsonl", stay=True))

        @cache
        def summarizer() -> Policy | None:
            opened = open_summarizer(config)
            return None if opened is None else kept("replies_summarizer", opened)

        model = with_tools(config, "python") if runs else config
        opened = stack.enter_context(policy_of(model, task.weights)).open()
        asks = None
        if judges is not None:
            compares = stack.enter_context(policy_of(*judges)).open()
            asks = Judge(kept("replies_judge", compares), judges[0].debate)
        elif always:  # the judge's replies run no programs
            asks = Judge(kept("replies_judge", engine_of(opened)), config.debate)
        samples = task.options.samples or SAMPLES
        budget = {"samples": samples, "seed": seed, "summarizer": summarizer}
        found = compare_strategies(
            problems,
            contenders,
            SolvePlan.of(config, "majority", environment, **budget),
            kept("replies", engine_of(opened) if runs else opened),
            judge=asks,
            programs=kept("replies_tools", opened) if runs else None,
            progress=tell,
        )
    return found, folder


def show(found: Comparison, title: str | None = None) -> None:
    """Print a table of strategies with notes."""
    print_table([HEADS, *map(_cells, found.measured.values())], title)
    say = plain_console().print
    say(f"{len(found.problems)} problems, seed {found.seed}, {found.samples} solutions to select from.")
    say("95% intervals are clustered by problem, differences paired by problem.")
    say("A of N: accuracy A with N solutions, which cost the same generated tokens, or all tokens (total).")
    say("generated, read: tokens per problem, including the judge's; compared: ballots and selections.")
    for name, one in found.measured.items():
        if left := len(found.problems) - len(one.right):
            say(f"{name}: {left} problems are left out: the grader gave no verdict.")
        if one.unread:
            say(f"{name}: {one.unread:.1f} of {one.comparisons:.1f} comparisons per problem are unreadable.")
    for name, why in found.refused.items():
        say(f"{name}: left out: {why}")


def _cells(one: Measured) -> list[str]:
    cells = [one.name, with_interval(one.accuracy)]
    for budget in one.equal:
        samples, worth, less = one.compared(budget)
        cells += [f"{share(worth.value)} of {samples:,.1f}", with_interval(less, signed=True)]
    cells += [with_interval(one.oracle_gap, signed=True), percent(one.missing, 0)]
    return [*cells, f"{one.cost['generated']:,.0f}", f"{one.read:,.0f}", f"{one.comparisons:.1f}"]
