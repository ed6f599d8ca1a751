"""``debate traces``: collect right replies as training data, and convert debates for other tools."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from debate.prompting.fitting import ContextBudget, context_budget
from debate_rl.commands.console import plain_console, progress_of, write_json
from debate_rl.commands.options import JsonFile, SeedOption, WeightsOption, listed, named_and_set, positive
from debate_rl.config.recipes import open_run_or_recipe
from debate_rl.engines import counting_policy
from debate_rl.evaluation.asking import MAX_LIVE, kept_folder, policy_of, requests_at_once, weights_named
from debate_rl.evaluation.folder import identity, open_folder
from debate_rl.evaluation.play import EvalPlan, play
from debate_rl.formatting import share
from debate_rl.sampling.load_problems import load_run_problems
from debate_rl.sft.exchange import store_debates, write_episodes, write_inspect_log
from debate_rl.sft.harvests import (
    Harvest,
    Trace,
    chosen,
    debate_turns,
    foreign,
    lengths,
    provenance,
    read_traces,
    refuse_unanswered,
    selections,
    solutions,
    winners,
    write_traces,
)
from transcripts import read_records

BIAS = "  only right replies are kept, so problems that the teacher rarely solves are rare or absent"
ONE_SIDED = "  problems that the teacher always or never solves have no such list"


def traces(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="RECIPE|RUN|FILE... [KEY=VALUE...]",
            help="A recipe or run (its model replies), or trace files. With --winners or --debates: runs.",
        ),
    ],
    out: Annotated[str, typer.Option(metavar="FILE", help="The file of traces to write (JSON Lines).")],
    samples: Annotated[
        int, typer.Option(callback=positive, help="Number of replies to sample per problem.")
    ] = 1,
    seed: SeedOption = 0,
    weights: WeightsOption = "newest",
    take_winners: Annotated[
        bool, typer.Option("--winners", help="Take the winning solutions of the stored debates of runs.")
    ] = False,
    debates: Annotated[
        bool,
        typer.Option("--debates", help="Take every right turn of the stored debates of runs."),
    ] = False,
    genselect: Annotated[
        bool,
        typer.Option(
            "--genselect",
            help="Take lists of right and wrong solutions, with replies that name a right solution.",
        ),
    ] = False,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="replies: traces to train on; verifiers, inspect: the stored debates of runs for these "
            "tools; run: a run folder with the debates of a traces.jsonl of verifiers.",
        ),
    ] = "replies",
    per_problem: Annotated[
        int | None, typer.Option(callback=positive, help="Keep at most this many traces per problem.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(callback=positive, help="Leave out replies with more tokens.")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Compare lengths with these traces of the model to be trained."),
    ] = None,
    levels: Annotated[str, typer.Option(metavar="A,B", help="Keep only these levels.")] = "",
    json: JsonFile = None,
) -> None:
    """Collect right replies to training problems, as data for debate train. The same command resumes."""
    own = read_traces([Path(against)]) if against is not None else []
    names, overrides = named_and_set(what)
    if not names:
        raise ValueError("traces: name a recipe, a run, or files of traces")
    if form != "replies":
        _exchange(form, [Path(name) for name in names], Path(out))
        return
    if take_winners and debates:
        raise ValueError("--winners --debates: --debates includes the winners; give only one of them")
    stored = take_winners or debates
    if genselect and (stored or samples < 2):
        raise ValueError("--genselect: needs sampled solutions (--samples 2 or more), not stored ones")
    harvest: Harvest | None = None
    if stored:
        harvest = Harvest()
        for name in names:
            harvest.merge((winners if take_winners else debate_turns)(Path(name)))
    elif not all(Path(name).suffix.lower() in (".jsonl", ".json", ".parquet") for name in names):
        if len(names) > 1:
            raise ValueError(f"traces: {names[1]}: sample one teacher at a time, and then merge the files")
        harvest = _sampled(names[0], overrides, samples, seed, weights, genselect=genselect)
    elif genselect:
        raise ValueError(f"--genselect: {names[0]} is a file of traces; name a recipe or a run")
    rows = harvest.traces if harvest is not None else read_traces([Path(name) for name in names])
    kept, lost = chosen(rows, per_problem=per_problem, max_tokens=max_tokens, levels=listed(levels))
    if not kept:
        raise ValueError(f"{', '.join(names)}: no right reply is left; nothing was written to {out}")
    write_traces(Path(out), kept)
    say = plain_console().print
    figures: dict[str, object] = {"file": out, "traces": len(kept), "left_out": dict(lost)}
    if harvest is not None:
        figures |= _say_yield(harvest, genselect=genselect)
    if lost:
        say(f"  left out: {', '.join(f'{count:,} {why}' for why, count in lost.items())}")
    for name, low, middle, high in lengths(kept):
        say(f"  {name}: median {middle:,.0f}, 10% below {low:,.0f}, 10% above {high:,.0f}")
        figures[name] = {"p10": low, "median": middle, "p90": high}
    if own:
        figures["against"] = _say_style(kept, own, str(against))
    problems = len({str(row.get("question") or row.get("messages")) for row in kept})
    say(f"{len(kept):,} traces of {problems:,} problems in {out}")
    if json is not None:
        write_json(json, figures)


def _exchange(form: str, names: Sequence[Path], out: Path) -> None:
    """Write the stored debates of runs in the format of another tool, or store debates of verifiers."""
    suffix = {"verifiers": ".jsonl", "inspect": ".eval", "run": ""}.get(form)
    if suffix is None:
        raise ValueError(f"--format {form}: unknown; choose replies, verifiers, inspect or run")
    if out.suffix != suffix:
        raise ValueError(f"--out {out}: for --format {form} the name must end with {suffix or 'no suffix'}")
    if form == "run":
        if len(names) > 1:
            raise ValueError(f"traces: {names[1]}: --format run reads one file")
        count = store_debates(out, names[0])
    else:
        records = (record for run in names for record in read_records(run))
        count = {"verifiers": write_episodes, "inspect": write_inspect_log}[form](out, records)
    plain_console().print(f"{count:,} debates in {out}")


def _say_style(kept: Sequence[Trace], own: Sequence[Trace], against: str) -> dict[str, object]:
    """Compare the lengths of traces with those of the model to be trained. Print and return the medians."""
    figures: dict[str, object] = {"file": against}
    for name, theirs, ours, apart in foreign(kept, own):
        warning = "; very different lengths, so training may harm what the model can do" if apart else ""
        plain_console().print(
            f"  {name} compared with {against}: median {theirs:,.0f} and {ours:,.0f}{warning}"
        )
        figures[name] = {"median": theirs, "own": ours, "foreign": apart}
    return figures


def _say_yield(harvest: Harvest, *, genselect: bool) -> dict[str, object]:
    """Print how many replies are right, by level, and return the figures.

    With ``genselect``: how many lists have both right and wrong solutions.
    """
    say = plain_console().print
    for level, asked, kept in harvest.rows():
        whole = "lists of right and wrong solutions" if genselect else "right"
        name = whole if level == "all" else f"  level {level}"
        say(f"{name}: {kept:,} of {asked:,} ({share(kept / asked if asked else 0.0)})")
    if harvest.cut:
        say(f"  {harvest.cut:,} right replies reached their token limit, and are left out")
    if harvest.ungraded:
        say(f"  {harvest.ungraded:,} replies have no verdict, and are left out")
    say(ONE_SIDED if genselect else BIAS)
    rows = {level: {"replies": asked, "kept": kept} for level, asked, kept in harvest.rows()}
    return {"yield": rows, "problems": harvest.problems, "cut": harvest.cut, "ungraded": harvest.ungraded}


def _sampled(
    name: str, overrides: Sequence[str], samples: int, seed: int, weights: str, *, genselect: bool
) -> Harvest:
    """Return a teacher's replies to training problems. Stored replies are not sampled again."""
    run, config = open_run_or_recipe(name, overrides)
    path = weights_named(run, weights, name)
    data = load_run_problems(config)
    refuse_unanswered(data.train)
    plan = EvalPlan(
        data.train,
        data.environment,
        config.debate,
        (seed,),
        config.train.max_live or MAX_LIVE,
        samples,
        requests=requests_at_once(config),
        direct=True,
        mode=config.grader.final,
        tokens=False,
    )
    what = identity(config, data.train, path, plan.seeds, direct=True)
    folder = kept_folder("traces", run, config, path, what)
    teller = plain_console(stderr=True).print
    teller(f"{samples * len(data.train):,} replies, {samples} to each of {len(data.train):,} problems")
    source = provenance(config, path, seed=seed)
    with open_folder(folder, what), progress_of(str(folder)) as tell, policy_of(config, path) as policy:
        played = play(plan, policy, folder, tell=tell)
        if genselect:
            counts = config.model.policy in (None, "vllm")
            budget = (
                context_budget(counting_policy(config), config.debate) if counts else ContextBudget(None, len)
            )
            return selections(played.opening, config.debate, source, budget=budget, seed=seed)
    return solutions((one for group in played.opening for one in group), source)
