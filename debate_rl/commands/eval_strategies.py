"""``debate eval --strategies a,b``: strategies beside each other, and self-consistency."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from debate_rl.commands.console import plain_console, text_table, wide_console, write_json
from debate_rl.commands.eval_sets import EvalTask, policy_of, progress_of

if TYPE_CHECKING:
    from debate import Policy
    from debate_rl.config import Config
    from debate_rl.strategies.solving import SolvePlan
    from debate_rl.strategies.table import Contender, StrategyRow
    from debate_rl.strategies.types import Judge
    from envs import Environment

SAMPLES = 16
"""Solutions of each problem where ``--samples`` says no other number."""
HEADS = ("strategy", "accuracy", "self-consistency", "difference", "generated", "read", "compared")


def strategies_named(text: str) -> list[str]:
    """Return the strategies of a list a,b; "all" are all of them. ValueError for an unknown one, or none.

    >>> strategies_named("greedy, majority")
    ['greedy', 'majority']
    """
    from debate_rl.strategies.catalog import STRATEGIES, entry_named

    if text.strip() == "all":
        return [name for name, entry in STRATEGIES.items() if not entry.tools]
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in names:
        entry_named(name)
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
    from debate_rl.evaluation.folder import default_folder, identity, open_folder
    from debate_rl.problems import load_held_out
    from debate_rl.strategies.catalog import STRATEGIES, check_asked
    from debate_rl.strategies.table import strategy_rows
    from envs import DataError

    run, config = task.opened
    environment, problems = load_held_out(config, key=task.one.key)
    if not problems:
        raise DataError(
            "held_out: there are no problems to evaluate on; set held_out.limit and held_out.kind"
        )
    if known := next((one.id for one in problems if one.kind in ("open", "rubric")), None):
        raise DataError(f"{known}: has no gold answer, and no strategy is right or wrong on it")
    judges = None if judge is None else _opened(judge)
    for name in names:
        asks = judges[0].debate if judges and STRATEGIES[name].compares else None
        check_asked(name, _plan(name, config, environment, task).sketched(problems[0], asks))
    what = identity(config, problems, task.weights, (0,)) | {"strategies": True, "judge": judge}
    home = run / "evaluations" if run else Path("evaluations") / Path(config.run.dir).name
    out = task.options.out
    folder = Path(out) if out else default_folder(home, task.weights, what)
    with ExitStack() as stack:
        stack.enter_context(open_folder(folder, what))
        tell = stack.enter_context(progress_of(str(folder)))
        speakers = _Speakers(stack, folder, config, task.weights, judges)
        contenders = [speakers.contender(_plan(name, config, environment, task)) for name in names]
        pool = speakers.contender(_plan("majority", config, environment, task))
        return strategy_rows(problems, contenders, pool, progress=tell), len(problems)


def _opened(judge: str) -> tuple[Config, Path | None]:
    from debate_rl.commands.solve import weights_named
    from debate_rl.config.recipes import open_run_or_recipe

    run, config = open_run_or_recipe(judge, ())
    return config, weights_named(run, "newest", judge)


def _plan(name: str, config: Config, environment: Environment, task: EvalTask) -> SolvePlan:
    from debate_rl.strategies.catalog import STRATEGIES
    from debate_rl.strategies.solving import SolvePlan, requests_of, running_programs

    used = running_programs(config) if STRATEGIES[name].tools else config
    return SolvePlan(
        name,
        used.debate,
        environment,
        samples=task.options.samples or SAMPLES,
        mode=config.grader.final,
        requests=requests_of(config),
    )


class _Speakers:
    """The policies of a table, each opened once, their replies kept in the folder of the evaluation."""

    def __init__(
        self,
        stack: ExitStack,
        folder: Path,
        config: Config,
        weights: Path | None,
        judge: tuple[Config, Path | None] | None,
    ) -> None:
        self._stack, self._folder = stack, folder
        self._config, self._weights, self._judge = config, weights, judge
        self._open: dict[str, Policy] = {}
        self._inner: dict[str, Policy] = {}

    def contender(self, plan: SolvePlan) -> Contender:
        """Return a strategy with whom it asks."""
        from debate_rl.strategies.catalog import STRATEGIES
        from debate_rl.strategies.solving import running_programs
        from debate_rl.strategies.table import Contender
        from debate_rl.strategies.types import Judge

        entry = STRATEGIES[plan.strategy]
        config = running_programs(self._config) if entry.tools else self._config
        tools = "_tools" if entry.tools else ""
        policy = self._policy(f"replies{tools}", config, self._weights)
        if self._judge is None or not entry.compares:
            return Contender(plan, policy, self._without_programs() if entry.compares else None)
        judged = self._policy("replies_judge", *self._judge)
        return Contender(plan, policy, Judge(judged, self._judge[0].debate))

    def _without_programs(self) -> Judge | None:
        """Return the model as a judge that runs no programs; None where it runs none anyway."""
        from debate.policies.tools import engine_of
        from debate_rl.evaluation.kept_replies import KeptReplies
        from debate_rl.strategies.types import Judge

        if self._config.debate.tools == "none":
            return None
        name = "replies_judge"
        if name not in self._open:
            engine = engine_of(self._inner["replies"])
            kept = KeptReplies(engine, self._folder / f"{name}.jsonl", stay=True)
            self._open[name] = self._stack.enter_context(kept)
        return Judge(self._open[name], self._config.debate)

    def _policy(self, name: str, config: Config, weights: Path | None) -> Policy:
        from debate_rl.evaluation.kept_replies import KeptReplies

        if name not in self._open:
            unopened = self._stack.enter_context(policy_of(config, weights))
            inner = self._inner[name] = unopened.open()
            kept = KeptReplies(inner, self._folder / f"{name}.jsonl", stay=True)
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
