"""Which claims about debate hold for a model, on a ladder with two controls.

python -m experiments.ladder runs/mine --problems 300 --json claims.json
"""

from __future__ import annotations

from typing import Annotated

import typer

from debate_rl.commands.console import plain_console, print_table, text_table, wide_console, with_interval
from debate_rl.commands.ladder import climbed, show_tables, write_figures
from debate_rl.commands.main import run_alone
from debate_rl.commands.options import JsonFile
from debate_rl.evaluation.report import plain_estimate
from debate_rl.metrics.intervals import Estimate
from experiments.ladder.claims import Claim, claims_of, plain_claim
from experiments.ladder.controls import EVERY
from experiments.ladder.rounds import round_figures, rounds_by_problem

ROUNDS = ("rung", "corrected", "misled", "conformity")
CARD = ("claim", "outcome", "difference", "p", "what would change it")


def claims(
    what: Annotated[
        list[str],
        typer.Argument(metavar="RUN|RECIPE [KEY=VALUE...]", help="As of debate eval ladder."),
    ],
    rungs: Annotated[str, typer.Option(metavar="A,B", help="Only these rungs; default: all.")] = "",
    samples: Annotated[int, typer.Option(min=1, help="Solutions that are selected from.")] = 16,
    on: Annotated[
        str | None, typer.Option(metavar="NAME[=FILE]", help="Use this data set in place of held_out's.")
    ] = None,
    problems: Annotated[int | None, typer.Option(min=1, help="So many problems.")] = None,
    weights: Annotated[str, typer.Option(help="Of a run: newest, best, start, or a step.")] = "newest",
    judge: Annotated[
        str | None, typer.Option(metavar="RUN|RECIPE|JUDGE", help="Who compares solutions.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of all that is sampled.")] = 0,
    out: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Keep replies and figures in this folder.")
    ] = None,
    json: JsonFile = None,
) -> None:
    """Climb the ladder with its controls, and say which claims hold: experiments/ladder/README.md."""
    found, folder = climbed(what, rungs, on, problems, samples, weights, judge, seed, out, EVERY)
    steps = {name: rounds_by_problem(found, one) for name, one in found.climbed.items()}
    card, rounds = claims_of(found, steps), {name: round_figures(each) for name, each in steps.items()}
    show_tables(found)
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
    write_figures(
        found.plain() | {"rounds": plain, "claims": [plain_claim(one) for one in card]}, folder, json
    )


def _share(one: Estimate | None) -> str:
    return "–" if one is None else f"{with_interval(one)} of {one.n}"


def _cells(claim: Claim) -> tuple[str, ...]:
    difference = "–" if claim.difference is None else with_interval(claim.difference, signed=True)
    p = "–" if claim.p is None else f"{claim.p:.3f}".removeprefix("0") if claim.p >= 0.001 else "<.001"
    return claim.claim, claim.outcome, difference, p, claim.why if claim.p is None else claim.change


if __name__ == "__main__":
    run_alone(claims, "python -m experiments.ladder")
