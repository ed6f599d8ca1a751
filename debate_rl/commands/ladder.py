"""``debate eval ladder RUN|RECIPE``: what debate adds to cheaper ways at equal cost, and a card of claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from debate_rl.commands.console import NARROW, plain_console, text_table, wide_console, write_json
from debate_rl.commands.options import JsonFile

if TYPE_CHECKING:
    from debate import Policy
    from debate_rl.config import Config
    from debate_rl.evaluation.kept_replies import Clock
    from debate_rl.ladder.claims import Claim
    from debate_rl.ladder.climbing import KeptJudge, Ladder
    from debate_rl.ladder.figures import RungFigures
    from debate_rl.metrics.intervals import Estimate

COSTS = ("rung", "accuracy", "oracle gap", "no answer", "generated", "read", "ms")
EQUAL = ("rung", "equal generated", "less it", "equal total", "less it", "equal seconds", "less it")
ROUNDS = ("rung", "corrected", "misled", "conformity")
CARD = ("claim", "outcome", "difference", "p", "what would change it")


def ladder(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN|RECIPE [KEY=VALUE...]",
            help="A run, or a recipe with its model as it is, a served one too.",
        ),
    ],
    rungs: Annotated[
        str, typer.Option(metavar="A,B", help="Only these rungs (docs/ladder.md); default: all.")
    ] = "",
    samples: Annotated[int, typer.Option(min=1, help="Solutions that are selected from.")] = 16,
    on: Annotated[
        str | None, typer.Option(metavar="NAME[=FILE]", help="Use this data set in place of held_out's.")
    ] = None,
    problems: Annotated[
        int | None, typer.Option(min=1, help="So many problems; default: held_out.limit.")
    ] = None,
    weights: Annotated[
        str, typer.Option(help="Of a run: newest, best, start, or the step of a checkpoint.")
    ] = "newest",
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="RUN|RECIPE|JUDGE",
            help="Who compares solutions; JUDGE: a folder by debate export --judge; default: the same model.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of all that is sampled.")] = 0,
    out: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Keep replies and figures in this folder.")
    ] = None,
    json: JsonFile = None,
) -> None:
    """Compare debate with cheaper methods at equal cost; say which claims hold; run it again to continue."""
    names = rungs_named(rungs)
    name, *overrides = _words(what)
    overrides += _held_out(on, problems)
    found, folder = _climb((name, overrides), names, samples, weights, judge, seed, out)
    _show(found, folder, json)


def _words(what: Sequence[str]) -> list[str]:
    """Return the subject and its settings; ValueError for none, or several."""
    names = [word for word in what if "=" not in word]
    if len(names) != 1:
        raise ValueError("ladder: name one run or recipe, as in debate eval ladder runs/mine")
    return [names[0], *(word for word in what if "=" in word)]


def _held_out(on: str | None, problems: int | None) -> list[str]:
    from debate_rl.commands.eval_tasks import in_place

    limit = [] if problems is None else [f"held_out.limit={problems}"]
    return [*(in_place(on) if on is not None else ()), *limit]


def rungs_named(text: str) -> list[str]:
    """Return the rungs of a list a,b, in the order of the ladder; all for "". ValueError for an unknown one.

    >>> rungs_named("swiss, greedy")
    ['greedy', 'swiss']
    """
    from debate.settings import did_you_mean
    from debate_rl.ladder.rungs import RUNGS

    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in RUNGS:
            valid = f"valid: {', '.join(RUNGS)}"
            raise ValueError(f"--rungs {name}: is not known; {did_you_mean(name, RUNGS, valid)}")
    return [name for name in RUNGS if name in names or not names]


def _climb(
    subject: tuple[str, Sequence[str]],
    names: Sequence[str],
    samples: int,
    weights: str,
    judge: str | None,
    seed: int,
    out: str | None,
) -> tuple[Ladder, Path]:
    from debate_rl.commands.eval_tasks import policy_of, progress_of
    from debate_rl.commands.eval_strategies import graded_problems
    from debate_rl.commands.solve import judge_of, weights_named
    from debate_rl.config.recipes import open_run_or_recipe
    from debate_rl.evaluation.folder import default_folder, identity, open_folder
    from debate_rl.evaluation.kept_replies import KeptReplies
    from debate_rl.ladder.climbing import climb
    from debate_rl.problems import HELD_OUT
    from debate_rl.strategies.solving import SolvePlan, requests_of

    run, config = open_run_or_recipe(*subject)
    path = weights_named(run, weights, subject[0])
    environment, found = graded_problems(config, HELD_OUT)
    judges = None if judge is None else judge_of(judge)[1:]
    plan = SolvePlan(
        "majority",  # each rung names its own
        config.debate,
        environment,
        samples=samples,
        seed=seed,
        mode=config.grader.final,
        requests=requests_of(config),
    )
    what = identity(config, found, path, (seed,)) | {"ladder": True}
    what |= {"judge": judges and identity(judges[0], (), judges[1], ())}
    home = run / "evaluations" if run else Path("evaluations") / Path(config.run.dir).name
    folder = Path(out) if out else default_folder(home, path, what)
    with ExitStack() as stack:
        stack.enter_context(open_folder(folder, what))
        tell = stack.enter_context(progress_of(str(folder)))
        speaker = stack.enter_context(policy_of(config, path)).open()
        policy = stack.enter_context(KeptReplies(speaker, folder / "replies.jsonl", stay=True))
        asks = _judge(stack, folder, config, speaker, policy.clock, judges)
        plan = replace(plan, summarizer=_summarizer(stack, folder, config, policy.clock))
        return climb(found, names, plan, policy, judge=asks, progress=tell), folder


def _judge(
    stack: ExitStack,
    folder: Path,
    config: Config,
    speaker: Policy,
    clock: Clock,
    named: tuple[Config, Path | None] | None,
) -> KeptJudge | None:
    """Return who compares solutions, its replies kept; None where it is the model itself.

    No programs run in what a judge writes.
    """
    from debate_rl.commands.eval_tasks import policy_of
    from debate_rl.evaluation.kept_replies import KeptReplies
    from debate_rl.inference.tools import engine_of
    from debate_rl.ladder.climbing import KeptJudge

    if named is None and config.debate.tools == "none":
        return None
    judge = engine_of(speaker) if named is None else stack.enter_context(policy_of(*named)).open()
    kept = KeptReplies(judge, folder / "replies_judge.jsonl", stay=True, clock=clock)
    return KeptJudge(stack.enter_context(kept), (config if named is None else named[0]).debate)


def _summarizer(stack: ExitStack, folder: Path, config: Config, clock: Clock) -> Callable[[], Policy | None]:
    """Return what opens a recipe's summariser, once, its replies kept."""
    from debate_rl.engines import open_summarizer
    from debate_rl.evaluation.kept_replies import KeptReplies

    @cache
    def opened() -> Policy | None:
        policy = open_summarizer(config)
        if policy is None:
            return None
        kept = KeptReplies(policy, folder / "replies_summarizer.jsonl", stay=True, clock=clock)
        return stack.enter_context(kept)

    return opened


def _show(found: Ladder, folder: Path, json: str | None) -> None:
    """Print three tables and the card, and write the figures into the folder."""
    from debate_rl.evaluation.folder import FIGURES
    from debate_rl.ladder.claims import claims_of, plain_claim
    from debate_rl.ladder.figures import figures_of, plain_rung

    rungs = {name: figures_of(one) for name, one in found.climbed.items()}
    claims = claims_of(found)
    _print(COSTS, [_cost_cells(found, name, one) for name, one in rungs.items()], "what it costs")
    _print(EQUAL, [_equal_cells(name, one) for name, one in rungs.items()], "compared with self-consistency")
    _print(ROUNDS, [cells for name, one in rungs.items() if (cells := _round_cells(name, one))], "rounds")
    _print(CARD, [_card_cells(claim) for claim in claims], "claims", align="llrrl")
    say = plain_console().print
    tested = sum(claim.outcome != "not tested" for claim in claims)
    say(f"{len(found.problems)} problems, seed {found.seed}, {found.samples} solutions to select from.")
    say("95% intervals are clustered by problem, differences paired by problem;")
    say(f"p is adjusted for {tested} claims that were tested (Holm; those about seconds among themselves),")
    say("and where it is below .05 a claim holds (above 0) or fails (below 0); else it is not shown.")
    say("equal: self-consistency with as many solutions as cost the same; less it: the rung less that.")
    if any(each.short for one in rungs.values() for each in one.compared.values()):
        say("+: the cost would buy more solutions than were drawn.")
    for name, one in found.climbed.items():
        if left := len(found.problems) - len(one.right):
            say(f"{name}: no verdict of the grader on {left} of the problems, which are left out.")
    for name, why in found.refused.items():
        say(f"{name}: not climbed: {why}")
    figures = {
        "problems": len(found.problems),
        "seed": found.seed,
        "samples": found.samples,
        "one_solution": {**found.each, "missing": found.missing},
        "rungs": [plain_rung(one, rungs[name]) for name, one in found.climbed.items()],
        "refused": dict(found.refused),
        "claims": [plain_claim(claim) for claim in claims],
    }
    write_json(folder / FIGURES, figures)
    if json is not None:
        write_json(json, figures)


def _print(heads: Sequence[str], rows: Sequence[Sequence[str]], title: str, *, align: str = "lr") -> None:
    if not rows:
        return
    width = sum(max(len(line[at]) for line in (heads, *rows)) + 3 for at in range(len(heads)))
    table = text_table(heads, rows, align=align, title=title, title_justify="left", **NARROW)
    table.columns[0].no_wrap = heads != CARD
    wide_console(width + 1).print(table)


def _cost_cells(found: Ladder, name: str, one: RungFigures) -> tuple[str, ...]:
    from debate_rl.formatting import percent

    climbed = found.climbed[name]
    return (
        name,
        _share(one.accuracy),
        _signed(one.oracle_gap),
        percent(climbed.missing, 0),
        f"{climbed.cost['generated']:,.0f}",
        f"{climbed.read:,.0f}",
        f"{1000 * climbed.cost['seconds']:,.1f}",
    )


def _equal_cells(name: str, one: RungFigures) -> tuple[str, ...]:
    from debate_rl.formatting import share

    cells = [name]
    for found in one.compared.values():
        more = "+" * found.short
        cells += [
            f"{share(found.self_consistency.value)} of {found.samples:,.1f}{more}",
            _signed(found.difference),
        ]
    return tuple(cells)


def _round_cells(name: str, one: RungFigures) -> tuple[str, ...] | None:
    parts = (one.corrected, one.misled, one.conformity)
    if not any(parts):
        return None
    return (name, *("–" if part is None else f"{_share(part)} of {part.n}" for part in parts))


def _card_cells(claim: Claim) -> tuple[str, ...]:
    difference = "–" if claim.difference is None else _signed(claim.difference)
    p = "–" if claim.p is None else f"{claim.p:.3f}".removeprefix("0") if claim.p >= 0.001 else "<.001"
    return claim.claim, claim.outcome, difference, p, claim.why if claim.p is None else claim.change


def _share(estimate: Estimate) -> str:
    from debate_rl.formatting import interval, share

    bounds = interval(max(0.0, estimate.low), min(1.0, estimate.high), share)
    return f"{share(estimate.value)} ({bounds})" if bounds else share(estimate.value)


def _signed(estimate: Estimate) -> str:
    from debate_rl.formatting import interval, signed_share

    bounds = interval(max(-1.0, estimate.low), min(1.0, estimate.high), signed_share)
    return f"{signed_share(estimate.value)} ({bounds})" if bounds else signed_share(estimate.value)
