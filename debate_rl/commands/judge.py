"""``debate judge FILE --judge RUN``: blind pairwise votes on the rollouts of any model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import typer

from debate_rl.commands.console import plain_console, print_table, progress_of, with_interval, write_json
from debate_rl.commands.options import JsonFile, KindOption, OutFolder, Overrides, SeedOption
from debate_rl.evaluation.asking import MAX_LIVE, judge_of, kept_folder, policy_of, requests_at_once
from debate_rl.evaluation.folder import identity, open_folder
from debate_rl.evaluation.report import plain_estimate
from debate_rl.formatting import counted
from debate_rl.judging.figures import TITLES, by_problem, figures, is_mixed
from debate_rl.judging.rollouts import Group, read_rollouts
from debate_rl.judging.voting import chosen, hold_votes
from debate_rl.metrics.intervals import Estimate
from debate_rl.strategies.selection import LONGEST, check_judge
from envs import load_environment
from envs.answers.keys import key_of


def judge(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Rollouts: JSON lines with a problem and a response, traces.jsonl of verifiers, or a log of "
            "Inspect AI (docs/solve.md).",
        ),
    ],
    judge: Annotated[
        str,
        typer.Option(
            "--judge",
            metavar="RUN|RECIPE|JUDGE",
            help="The model that votes; JUDGE is a folder from debate export --judge.",
        ),
    ],
    overrides: Overrides = None,
    problems: Annotated[
        int | None, typer.Option(min=1, help="Judge only the first N problems of the file.")
    ] = None,
    responses: Annotated[
        int,
        typer.Option(min=2, max=LONGEST, help="Judge at most N responses to each problem, the first ones."),
    ] = LONGEST,
    seed: SeedOption = 0,
    kind: KindOption = None,
    out: OutFolder = None,
    json: JsonFile = None,
) -> None:
    """Judge rollouts of any model by blind pairwise votes. To resume, repeat the command."""
    config, weights = judge_of(judge, overrides or ())
    check_judge(config.debate)
    rollouts = read_rollouts(Path(file), kind or "expression")
    groups, left_out = chosen(rollouts.groups[:problems], config.debate, responses)
    if not groups:
        raise ValueError(f"{file}: no problem has two responses, so there is nothing to compare")
    what = identity(config, [one.problem for one in groups], weights, (seed,)) | {"responses": _sum(groups)}
    run = Path(judge) if weights is not None else None
    folder = Path(out) if out is not None else kept_folder("judged", run, config, weights, what)
    environment = load_environment("gsm8k")
    with open_folder(folder, what), progress_of(str(folder)) as tell, policy_of(config, weights) as policy:
        hold = partial(hold_votes, max_live=config.train.max_live or requests_at_once(config) or MAX_LIVE)
        records = hold(groups, config.debate, policy, environment, folder, seed=seed, tell=tell)
    if not records:
        raise ValueError(
            f"{file}: every problem's prompts exceed the judge's context (debate.context_tokens)"
        )
    left_out = {**rollouts.left_out, **left_out}
    left_out |= (
        {"problems whose prompts exceed the judge's context": n} if (n := len(groups) - len(records)) else {}
    )
    key, mixed = key_of(environment), [record for record in records if is_mixed(record)]
    found = {"all": figures(records, key), "mixed": figures(mixed, key)}
    count = sum(len(record.debate.personas) for record in records)
    say = plain_console().print
    say(f"{file} ({rollouts.format}): {counted(len(records), 'problem')}, {counted(count, 'response')}")
    head = ["", "all problems", f"{len(mixed)} with right and wrong responses"]
    lines = [[title, *(_cell(of, name) for of in found.values())] for name, title in TITLES.items()]
    print_table([head, *(line for line in lines if any(line[1:]))], align="lll")
    say("Shares with 95% intervals clustered by problem.")
    valid = found["all"].get("votes_valid")
    if valid is not None and valid.value == 0:
        say("No vote counts: no reply of the judge has a valid comparison, so winners are drawn by lot.")
    for why, number in left_out.items():
        say(f"left out: {number} {why}")
    say(f"debate inspect {folder}")
    if json is not None:
        facts = {"file": file, "format": rollouts.format, "judge": judge, "seed": seed, "folder": str(folder)}
        counts = {"problems": len(records), "mixed": len(mixed), "responses": count, "left_out": left_out}
        plain = {name: {one: plain_estimate(of[one]) for one in of} for name, of in found.items()}
        write_json(json, {"schema": 1, **facts, **counts, "figures": plain, "votes": by_problem(records)})


def _cell(found: Mapping[str, Estimate], name: str) -> str:
    return with_interval(found[name], signed="minus" in name) if name in found else ""


def _sum(groups: Sequence[Group]) -> str:
    """Return a checksum of all responses and their grades."""
    return sha256(repr([one.responses for one in groups]).encode(errors="replace")).hexdigest()
