"""``debate eval --strategies a,b``: strategies beside each other, and self-consistency."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from debate_rl.commands.console import plain_console, text_table, wide_console, write_json
from debate_rl.commands.eval_sets import EvalTask, policy_of, progress_of

if TYPE_CHECKING:
    from debate import DebateConfig, Policy, Problem
    from debate_rl.config import Config
    from debate_rl.strategies.equal_cost import Contender, StrategyRow
    from debate_rl.strategies.solving import SolvePlan
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
    from debate_rl.strategies.solving import STRATEGIES, strategy_named

    if text.strip() == "all":
        return [name for name, entry in STRATEGIES.items() if not entry.tools]
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
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
    from debate_rl.commands.solve import judge_of
    from debate_rl.evaluation.folder import default_folder, identity, open_folder
    from debate_rl.strategies.equal_cost import strategy_rows
    from debate_rl.strategies.solving import STRATEGIES, with_tools

    run, config = task.opened
    environment, problems = graded_problems(config, task.one.key)
    judges = None if judge is None else judge_of(judge)[1:]
    for name in names:
        asks = judges[0].debate if judges and STRATEGIES[name].compares else None
        _plan(name, config, environment, task).check(problems, asks)
    what = identity(config, problems, task.weights, (0,)) | {"strategies": True}
    what |= {"judge": judges and identity(judges[0], (), judges[1], ())}
    home = run / "evaluations" if run else Path("evaluations") / Path(config.run.dir).name
    out = task.options.out
    folder = Path(out) if out else default_folder(home, task.weights, what)
    with ExitStack() as stack:
        stack.enter_context(open_folder(folder, what))
        tell = stack.enter_context(progress_of(str(folder)))
        runs = any(STRATEGIES[name].tools for name in names)
        model = stack.enter_context(policy_of(with_tools(config, "python") if runs else config, task.weights))
        speakers = _Speakers(stack, folder, config, model.open())
        if judges is not None and any(STRATEGIES[name].compares for name in names):
            speakers.judged_by(stack.enter_context(policy_of(*judges)).open(), judges[0].debate)
        contenders = [speakers.contender(_plan(name, config, environment, task)) for name in names]
        pool = speakers.contender(_plan("majority", config, environment, task))
        return strategy_rows(problems, contenders, pool, progress=tell), len(problems)


def graded_problems(config: Config, key: str) -> tuple[Environment, tuple[Problem, ...]]:
    """Return what grades the held-out problems, and them; DataError for none, or one without a gold answer.

    ``key``: where the data set was named.
    """
    from debate_rl.problems import load_held_out
    from envs import DataError

    environment, problems = load_held_out(config, key=key)
    if not problems:
        raise DataError(
            "held_out: there are no problems to evaluate on; set held_out.limit and held_out.kind"
        )
    if known := next((one.id for one in problems if one.kind in ("open", "rubric")), None):
        raise DataError(f"{known}: has no gold answer, and no strategy is right or wrong on it")
    return environment, problems


def _plan(name: str, config: Config, environment: Environment, task: EvalTask) -> SolvePlan:
    from debate_rl.strategies.solving import STRATEGIES, SolvePlan, with_tools

    used = with_tools(config, "python") if STRATEGIES[name].tools else config
    return SolvePlan.of(used, name, environment, samples=task.options.samples or SAMPLES)


class _Speakers:
    """The policies of a table, their replies kept in the folder of the evaluation; one model serves all."""

    def __init__(self, stack: ExitStack, folder: Path, config: Config, policy: Policy) -> None:
        self._stack, self._folder, self._config = stack, folder, config
        self._policy = policy
        self._judge: Judge | None = None
        self._open: dict[str, Policy] = {}

    def judged_by(self, judge: Policy, protocol: DebateConfig) -> None:
        """Have another model compare."""
        from debate_rl.strategies.work import Judge

        self._judge = Judge(self._kept("replies_judge", judge), protocol)

    def contender(self, plan: SolvePlan) -> Contender:
        """Return a strategy with whom it asks."""
        from debate_rl.inference.tools import engine_of
        from debate_rl.strategies.equal_cost import Contender
        from debate_rl.strategies.solving import STRATEGIES
        from debate_rl.strategies.work import Judge

        entry, always = STRATEGIES[plan.strategy], self._config.debate.tools != "none"
        engine, judge = engine_of(self._policy), self._judge
        name = "replies_tools" if entry.tools and not always else "replies"
        policy = self._kept(name, self._policy if entry.tools or always else engine)
        if judge is None and always:
            judge = Judge(self._kept("replies_judge", engine), self._config.debate)
        return Contender(plan, policy, judge if entry.compares else None)

    def _kept(self, name: str, policy: Policy) -> Policy:
        from debate_rl.evaluation.folder import KeptReplies

        if name not in self._open:
            kept = KeptReplies(policy, self._folder / f"{name}.jsonl", stay=True)
            self._open[name] = self._stack.enter_context(kept)
        return self._open[name]


def _show(task: EvalTask, rows: Sequence[StrategyRow], problems: int) -> None:
    from debate_rl.evaluation.report import Row, cell

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
    wide_console(120).print(text_table(HEADS, lines, title=f"{task.one.name}, {task.label}"))
    say = plain_console().print
    say(f"{problems} problems; 95% intervals are clustered by problem, differences paired by problem.")
    say("self-consistency: the majority of as many direct solutions as spend the same generated tokens.")
    say("generated, read: tokens of a problem, the judge's among them; compared: ballots and selections.")
    for row in rows:
        if row.unread:
            say(f"{row.strategy}: {row.unread:.1f} of {row.comparisons:.1f} comparisons could not be read.")
