"""``debate quickstart``: train a tiny model by debate from scratch, and show what it learned."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from debate.files import read_json
from debate_rl.commands.console import text_table, write_json
from debate_rl.commands.options import JsonFile, Overrides, SeedOption
from debate_rl.config import Config
from debate_rl.config.data import check_judge_pairs
from debate_rl.config.recipes import load_config
from debate_rl.judge_attack.judging import check_judged
from debate_rl.runs.checkpoint import MANIFEST, checkpoints, step_of
from debate_rl.runs.folder import changed_settings
from debate_rl.runs.provenance import ChangeRules, checksum, refusal, source_commit, versions
from envs.families import FAMILIES

PAIRS = 100
"""Number of fixed pairs on which the judge under attack is compared with the start judge."""
KEPT = "quickstart.json"
"""The file in the run folder that stores the figures."""
PRETRAINED = "stories"
"""The problem family of pretrained models."""
RECIPES = {"pair_sum": "quickstart", "words": "quickstart_words"}
PROBLEMS = {
    "pair_sum": "Target 19. Numbers 3 8 5 11 2 9.",
    "words": "Tom has 8 apples. Tom gets 4 more. Tom loses 3. How many apples?",
    PRETRAINED: "Mia has 12 shells. Mia finds 9 more. How many shells does Mia have now?",
}
HEADS = ("", "after the warm start", "after debate RL")


def quickstart(
    family: Annotated[str, typer.Option(help="Synthetic problems: pair_sum or words.")] = "pair_sum",
    model: Annotated[
        str | None,
        typer.Option(
            help="Train a pretrained model on English word problems: smollm2, a hub id or a folder."
        ),
    ] = None,
    seed: SeedOption = 0,
    json: JsonFile = None,
    overrides: Overrides = None,
) -> None:
    """Train a tiny model by debate on a CPU, in minutes, and show what it learned."""
    console = Console()
    if model is not None:
        family, config = PRETRAINED, _pretrained(model, seed, overrides or (), console)
    else:
        config = _config_of(family, seed, overrides or ())
    folder, name = Path(config.run.dir), f"{family}, seed {seed}"
    measured = _kept(folder, config)
    if measured is None:
        steps = f"{config.train.steps} steps of debate RL"
        console.print(f"{name}: a warm start and {steps}, with an evaluation before and after the steps")
        from debate_rl.commands.quickstart_figures import measured_run  # torch takes seconds to load

        measured = measured_run(config, name, console)
        write_json(folder / KEPT, {"of": _measured_on(folder, config), **measured})
    else:
        held = f"{folder} already contains this finished run; these are its figures from {KEPT}."
        console.print(f"{held} To train again, choose another --seed.", soft_wrap=True, markup=False)
    console.print(text_table(HEADS, measured["rows"], title=measured["title"]))
    console.print(measured["words"], soft_wrap=True)
    console.print(_next_commands(family, folder), soft_wrap=True, markup=False)
    if json is not None:
        write_json(json, [{"name": name, **values} for name, values in measured["figures"].items()])


def _pretrained(model: str, seed: int, overrides: Sequence[str], console: Console) -> Config:
    """Train a pretrained model on the debate format, unless already done. Return the RL configuration."""
    from debate_rl.curriculum.train import train_run  # loads torch
    from debate_rl.smollm2 import find_smollm2
    from learner.update.ranks import ALONE

    say = partial(console.print, soft_wrap=True, markup=False)
    home = f"runs/quickstart-{Path(model).name.lower()}-{seed}"
    keys = [f"model.name_or_path={find_smollm2(say) if model == 'smollm2' else model}", f"seed={seed}"]
    form = load_config(Config, "smollm2/form", [*keys, f"run.dir={home}/form", *overrides])
    train_run(form, ALONE, say, say)
    of_debates = [f"run.dir={home}/debate", f"warm_start.from_run={form.run.dir}"]
    return load_config(Config, "smollm2/debate", [*keys, *of_debates, *overrides])


def _config_of(family: str, seed: int, overrides: Sequence[str]) -> Config:
    """Return the configuration of the run. Raise ValueError if the quick-start cannot evaluate it."""
    if family not in RECIPES:
        raise ValueError(f"--family {family}: unknown; valid: {', '.join(RECIPES)}")
    folder = f"run.dir=runs/quickstart-{family}-{seed}"
    config = load_config(Config, RECIPES[family], [folder, f"seed={seed}", *overrides])
    check_judged(config.debate)
    if not config.held_out.limit:
        raise ValueError("held_out.limit=0: the quick-start evaluates on held-out problems; use 1 or more")
    if (kind := config.held_out.kind or config.env.kind) not in FAMILIES:
        families = " or ".join(FAMILIES)
        raise ValueError(
            f"held_out.kind={kind}: the judge pairs of the quick-start need problems of {families}"
        )
    return _watching(config)


def _watching(config: Config) -> Config:
    """Add judge pairs, unless the configuration sets their number or does not allow judge pairs."""
    if "judge_pairs" in config.held_out.model_fields_set:
        return config
    held_out = config.held_out.model_copy(update={"judge_pairs": min(PAIRS, config.held_out.limit)})
    try:
        check_judge_pairs(held_out, config.debate)
    except ValueError:
        return config
    return config.model_copy(update={"held_out": held_out})


def _measured_on(run: Path, config: Config) -> dict[str, str] | None:
    """Return the checksum of a finished run's last weights and the code version. None before the end."""
    saved = [path for path in checkpoints(run / "checkpoints") if step_of(path) == config.train.steps]
    if not saved:
        return None
    code = f"{versions().get('debate-rl')} {source_commit()}"
    return {"weights": checksum(saved[-1] / MANIFEST), "code": code}


def _kept(run: Path, config: Config) -> dict[str, Any] | None:
    """Return the stored figures of a run if configuration, weights and code are the same."""
    if not (run / KEPT).is_file() or not (run / "config.toml").is_file():
        return None
    if refusal(changed_settings(run, config), ChangeRules()):
        return None  # opening the run raises the error
    try:
        kept = read_json(run / KEPT)
        measured = {name: kept[name] for name in ("figures", "rows", "title", "words")}
    except (ValueError, LookupError, TypeError):
        return None
    of = _measured_on(run, config)
    return measured if of is not None and of == kept.get("of") else None


def _next_commands(family: str, folder: Path) -> str:
    """Return commands to try next, with the program's path if its name alone is not found."""
    called = sys.argv[0]
    debate = called if Path(called).name == "debate" and shutil.which("debate") is None else "debate"
    lines = [
        "Try next:",
        f"  {debate} inspect {folder}",
        f"  {debate} report {folder}",
        f'  {debate} solve play {folder} "{PROBLEMS[family]}"',
    ]
    if family != PRETRAINED:
        other = "words" if family == "pair_sum" else "pair_sum"
        votes_alone = "rewards.truth_weight=0 advantages.lambda_judge=0 run.dir=runs/peer-only"
        lines += [f"  {debate} quickstart --family {other}", f"  {debate} quickstart {votes_alone}"]
    return "\n".join(lines)
