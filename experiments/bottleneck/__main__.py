"""What a reader makes of the reasoning alone, whole and corrupted.

python -m experiments.bottleneck runs/mine --problems 300 --json b.json
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from math import inf
from typing import TYPE_CHECKING, Annotated

import typer

from debate_rl.commands.console import plain_console, text_table, wide_console, write_json
from debate_rl.commands.main import run_alone
from debate_rl.commands.options import JsonFile
from debate_rl.formatting import json_number

if TYPE_CHECKING:
    from debate_rl.metrics.intervals import Estimate
    from debate_rl.replay.regrading import Records
    from experiments.bottleneck.measuring import Bottleneck, Line
    from transcripts import Record


def bottleneck(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The folder of a run.")],
    evaluation: Annotated[
        str,
        typer.Option(metavar="NAME", help="Solutions of this folder of RUN/evaluations; default: the last."),
    ] = "",
    reader: Annotated[
        str,
        typer.Option(
            metavar="WEIGHTS",
            help="Who reads: start (the model as training began with it), newest, best, or a step.",
        ),
    ] = "start",
    problems: Annotated[int, typer.Option(help="Read solutions to this many problems.")] = 100,
    json: JsonFile = None,
) -> None:
    """Measure how well a reader that does not see the question answers from stored reasoning alone.

    The reasoning is shown as it was written, and corrupted in five ways: experiments/bottleneck/README.md.
    """
    from debate_rl.config.recipes import open_run_or_recipe
    from debate_rl.replay.regrading import sources_of
    from debate_rl.runs.weights import load_kept, named_weights
    from experiments.bottleneck.measuring import measure, solutions_of

    if problems < 2:
        raise ValueError(f"--problems {problems}: an interval needs 2 or more")
    folder, config = open_run_or_recipe(run, ())
    if folder is None:
        raise ValueError(f"{run}: is a recipe, whose model has not said anything; name the folder of a run")
    kept = folder / "evaluations"
    path = kept / evaluation if evaluation else folder
    if evaluation and not path.is_dir():
        raise ValueError(f"--evaluation {evaluation}: {kept} has no such folder")
    source = sources_of(path)[-1]
    begun = reader == "start" and not (config.warm_start.steps or config.warm_start.from_run)
    weights = None if begun else named_weights(folder, reader)[0]
    solutions = solutions_of(_records(source.parts), config, problems=problems)
    model, tokenizer = load_kept(config, weights)
    found = measure(solutions, model, tokenizer, config, seed=config.seed)
    _show(found, f"{source.name}, read by the weights {reader!r}")
    if json is not None:
        write_json(json, {"solutions": source.name, "reader": reader, **_plain(found)})


def _records(parts: tuple[tuple[str, Records], ...]) -> Iterator[Record]:
    """Return the stored debates; of an evaluation without any the solutions of one agent alone."""
    named = dict(reversed(parts))
    return named.get("debate", named.get("direct", parts[-1][1]))()


def _show(found: Bottleneck, of: str) -> None:
    console = plain_console()
    whole = found.lines[0]
    console.print(f"solutions of {of}: {whole.accuracy.n} of {whole.accuracy.clusters} problems")
    if found.own is not None:
        console.print(f"their own answers are right: {_figure(found.own)}")
    if found.left_out:
        console.print(f"left out, as they do not fit the reader's context: {found.left_out}")
    heads = ("reasoning", "share", "answer right", "minus whole", "gold log-probability", "minus whole")
    rows = (_row(line) for line in found.lines)
    wide_console(110).print(text_table(heads, rows))


def _row(line: Line) -> tuple[str, ...]:
    share = f"{line.share:.0%}" if line.corruption else ""
    drops = (_figure(line.accuracy_drop), _figure(line.logprob_drop))
    return (
        line.corruption or "whole",
        share,
        _figure(line.accuracy),
        drops[0],
        _figure(line.logprob),
        drops[1],
    )


def _figure(estimate: Estimate | None) -> str:
    from debate_rl.metrics.intervals import spread

    return "" if estimate is None else f"{estimate.value:.2f}{spread(estimate, 2, (-inf, inf))}"


def _plain(found: Bottleneck) -> dict[str, object]:
    """Return the figures as JSON has them; a bound that is not finite is none."""
    plain = asdict(found)
    return {
        "own": _finite(plain["own"]),
        "left_out": found.left_out,
        "lines": [
            {name: _finite(value) if isinstance(value, dict) else value for name, value in line.items()}
            for line in plain["lines"]
        ],
    }


def _finite(estimate: dict[str, object] | None) -> dict[str, object] | None:
    if estimate is None:
        return None
    return {name: json_number(value) for name, value in estimate.items()}


if __name__ == "__main__":
    run_alone(bottleneck, "python -m experiments.bottleneck")
