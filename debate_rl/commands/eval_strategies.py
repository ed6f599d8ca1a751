"""``debate eval --strategies a,b``: strategies beside each other, and self-consistency."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from debate import Policy
from debate_rl.commands.console import plain_console, print_table, progress_of, write_json
from debate_rl.commands.options import listed
from debate_rl.config import Config
from debate_rl.evaluation.asking import KeptPolicies, graded_problems, judge_of, policy_of
from debate_rl.evaluation.folder import identity, open_folder
from debate_rl.evaluation.report import Row, cell
from debate_rl.evaluation.tasks import EvalTask
from debate_rl.inference.tools import engine_of
from debate_rl.strategies.equal_cost import Contender, StrategyRow, strategy_rows
from debate_rl.strategies.solving import STRATEGIES, SolvePlan, strategy_named, with_tools
from debate_rl.strategies.work import Judge
from envs import Environment

SAMPLES = 16
"""Solutions of each problem where ``--samples`` says no other number."""
HEADS = ("strategy", "accuracy", "self-consistency", "difference", "generated", "read", "compared")


def strategies_named(text: str) -> list[str]:
    """Return the strategies of a list a,b; "all" are all of them. ValueError for an unknown one, or none.

    >>> strategies_named("greedy, majority")
    ['greedy', 'majority']
    """
    if text.strip() == "all":
        return [name for name, entry in STRATEGIES.items() if not entry.tools]
    names = list(dict.fromkeys(listed(text)))
    for name in names:
        strategy_named(name)
    if not names:
        raise ValueError("--strategies: name one or more, as in --strategies greedy,majority,swiss")
    return names


def evaluate_strategies(
    tasks: Sequence[EvalTask], names: Sequence[str], *, judge: str | None, json: str | None
) -> None:
    """Print one table for each evaluation, and write all of them as JSON."""
    rows: list[dict[str, object]] = []
    for task in tasks:
        found, problems = _rows(task, names, judge)
        _show(task, found, problems)
        rows += [{"data": task.one.name, "evaluation": task.label, **row.plain()} for row in found]
    if json is not None:
        write_json(json, rows)


def _rows(task: EvalTask, names: Sequence[str], judge: str | None) -> tuple[list[StrategyRow], int]:
    config = task.opened[1]
    environment, problems = graded_problems(config, task.one.key)
    judges = None if judge is None else judge_of(judge)
    for name in names:
        asks = judges[0].debate if judges and STRATEGIES[name].compares else None
        _plan(name, config, environment, task).check(problems, asks)
    what = identity(config, problems, task.weights, (0,)) | {"strategies": True}
    what |= {"judge": judges and identity(judges[0], (), judges[1], ())}
    folder = task.folder(what)
    with ExitStack() as stack:
        stack.enter_context(open_folder(folder, what))
        tell = stack.enter_context(progress_of(str(folder)))
        runs = any(STRATEGIES[name].tools for name in names)
        model = with_tools(config, "python") if runs else config
        policy = stack.enter_context(policy_of(model, task.weights)).open()
        kept, other = KeptPolicies(stack, folder), None
        if judges is not None and any(STRATEGIES[name].compares for name in names):
            compares = stack.enter_context(policy_of(*judges)).open()
            other = Judge(kept.of("replies_judge", compares), judges[0].debate)

        def contender(name: str) -> Contender:
            plan = _plan(name, config, environment, task)
            return _contender(plan, config, policy, other, kept)

        rows = strategy_rows(problems, [*map(contender, names)], contender("majority"), progress=tell)
        return rows, len(problems)


def _contender(
    plan: SolvePlan, config: Config, policy: Policy, judge: Judge | None, kept: KeptPolicies
) -> Contender:
    """Return a strategy with whom it asks; one model serves all, with programs where they run."""
    entry, always = STRATEGIES[plan.strategy], config.debate.tools != "none"
    engine = engine_of(policy)
    name = "replies_tools" if entry.tools and not always else "replies"
    speaker = kept.of(name, policy if entry.tools or always else engine)
    if judge is None and always:
        judge = Judge(kept.of("replies_judge", engine), config.debate)
    return Contender(plan, speaker, judge if entry.compares else None)


def _plan(name: str, config: Config, environment: Environment, task: EvalTask) -> SolvePlan:
    used = with_tools(config, "python") if STRATEGIES[name].tools else config
    return SolvePlan.of(used, name, environment, samples=task.options.samples or SAMPLES)


def _show(task: EvalTask, rows: Sequence[StrategyRow], problems: int) -> None:
    lines = [
        (
            row.strategy,
            cell(Row("", row.accuracy)),
            f"{cell(Row('', row.self_consistency))} of {row.samples}",
            cell(Row("", row.difference, "difference")),
            f"{row.generated:,.0f}",
            f"{row.read:,.0f}",
            f"{row.comparisons:.1f}",
        )
        for row in rows
    ]
    print_table([HEADS, *lines], f"{task.one.name}, {task.label}")
    say = plain_console().print
    say(f"{problems} problems; 95% intervals are clustered by problem, differences paired by problem.")
    say("self-consistency: the majority of as many direct solutions as spend the same generated tokens.")
    say("generated, read: tokens of a problem, the judge's among them; compared: ballots and selections.")
    for row in rows:
        if row.unread:
            say(f"{row.strategy}: {row.unread:.1f} of {row.comparisons:.1f} comparisons could not be read.")
