"""Which claims about debate hold for a model, on a ladder with two controls.

python -m experiments.ladder runs/mine --problems 300 --json claims.json
"""

from __future__ import annotations

from typing import Annotated

import typer

from debate_rl.commands.console import (
    plain_console,
    print_table,
    text_table,
    wide_console,
    with_interval,
    write_json,
)
from debate_rl.commands.eval import Named, subjects_of
from debate_rl.commands.main import run_alone
from debate_rl.commands.options import (
    JsonFile,
    JudgeOption,
    OnOption,
    OutFolder,
    ProblemsOption,
    SeedOption,
    WeightsOption,
)
from debate_rl.commands.strategies import SAMPLES, compared, contenders_named, show
from debate_rl.evaluation.folder import FIGURES
from debate_rl.evaluation.report import plain_estimate
from debate_rl.evaluation.tasks import EvalOptions, tasks_of
from debate_rl.metrics.intervals import Estimate
from experiments.ladder.claims import Claim, claims_of, plain_claim
from experiments.ladder.controls import CLIMBED, EVERY
from experiments.ladder.rounds import round_figures, rounds_by_problem

ROUNDS = ("rung", "corrected", "misled", "conformity")
CARD = ("claim", "outcome", "difference", "p", "what would change it")


def claims(
    what: Named,
    rungs: Annotated[str, typer.Option(metavar="A,B", help="Only these rungs; default: all.")] = "",
    samples: Annotated[int, typer.Option(min=1, help="Number of solutions to select from.")] = SAMPLES,
    on: OnOption = None,
    problems: ProblemsOption = None,
    weights: WeightsOption = "newest",
    judge: JudgeOption = None,
    seed: SeedOption = 0,
    out: OutFolder = None,
    json: JsonFile = None,
) -> None:
    """Climb the ladder with its controls, and say which claims hold: experiments/ladder/README.md."""
    contenders = contenders_named(rungs or ",".join(CLIMBED), EVERY)
    options = EvalOptions(tuple(on or ()), seed, samples=samples, out=out)
    tasks = tasks_of(subjects_of(what, problems, weights, options), weights, options)
    if len(tasks) != 1:
        raise ValueError("ladder: name one run or recipe, and one data set")
    found, folder = compared(tasks[0], contenders, judge)
    steps = {name: rounds_by_problem(found, one) for name, one in found.measured.items()}
    card, rounds = claims_of(found, steps), {name: round_figures(each) for name, each in steps.items()}
    show(found)
    lines = [(name, *map(_share, each.values())) for name, each in rounds.items() if any(each.values())]
    if lines:
        print_table([ROUNDS, *lines], "rounds")
    wide_console(160).print(text_table(CARD, map(_cells, card), align="llrrl", title="claims"))
    say = plain_console().print
    tested = sum(claim.outcome != "not tested" for claim in card)
    say(f"p is adjusted for the {tested} claims that were tested (Holm); where it is below .05")
    say("a claim holds (above 0) or fails (below 0); else it is not shown.")
    plain = {
        rung: {name: one and plain_estimate(one) for name, one in each.items()}
        for rung, each in rounds.items()
    }
    figures = found.plain() | {"rounds": plain, "claims": [plain_claim(one) for one in card]}
    for file in (folder / FIGURES, *([json] if json is not None else [])):
        write_json(file, figures)


def _share(one: Estimate | None) -> str:
    return "–" if one is None else f"{with_interval(one)} of {one.n}"


def _cells(claim: Claim) -> tuple[str, ...]:
    difference = "–" if claim.difference is None else with_interval(claim.difference, signed=True)
    p = "–" if claim.p is None else f"{claim.p:.3f}".removeprefix("0") if claim.p >= 0.001 else "<.001"
    return claim.claim, claim.outcome, difference, p, claim.why if claim.p is None else claim.change


if __name__ == "__main__":
    run_alone(claims, "python -m experiments.ladder")
