"""``debate quickstart``: from nothing to a tiny model that learned by debate, with its figures."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from functools import partial
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from rich.console import Console

from debate_rl.commands.console import text_table, write_json
from debate_rl.commands.options import JsonFile, Overrides

if TYPE_CHECKING:
    from debate_rl.config import Config
    from debate_rl.evaluation.scores import Scores
    from debate_rl.metrics.intervals import Estimate
    from debate_rl.training.run import Run

FIRST, WINNER, MAJORITY = "debate/accuracy/round_0", "debate/winner/accuracy", "direct/self_consistency"
ATTACKED = "judge/pairs/attacked"
PAIRS = 100
"""Fixed pairs on which the judge is compared with the start judge under attack."""
HEADS = ("", "after the warm start", "after debate RL")
KEPT = "quickstart.json"
"""The file in the run folder that keeps what was measured."""
RECIPES = {"pair_sum": "quickstart", "words": "quickstart_words"}


def quickstart(
    family: Annotated[str, typer.Option(help="Synthetic problems: pair_sum or words.")] = "pair_sum",
    seed: Annotated[int, typer.Option(help="Seed of the run.")] = 0,
    json: JsonFile = None,
    overrides: Overrides = None,
) -> None:
    """Train a tiny model by debate from nothing, on a CPU, in minutes; show what it learned."""
    console, config = Console(), _config_of(family, seed, overrides or ())
    folder = Path(config.run.dir)
    measured = _kept(folder, config)
    if measured is None:
        measured = _measured_run(config, f"{family}, seed {seed}", console)
        write_json(folder / KEPT, {"of": _measured_on(folder, config), **measured._asdict()})
    else:
        held = f"{folder} holds this run, finished, and these are its figures ({KEPT}); another --seed trains"
        console.print(f"{held} another", soft_wrap=True, markup=False)
    console.print(text_table(HEADS, measured.rows, title=measured.title))
    console.print(measured.words, soft_wrap=True)
    console.print(_next_commands(family, folder), soft_wrap=True, markup=False)
    if json is not None:
        write_json(json, [{"name": name, **values} for name, values in measured.figures.items()])


def _config_of(family: str, seed: int, overrides: Sequence[str]) -> Config:
    """Return the configuration of the run; ValueError for an unknown family, or where it has no figures."""
    from debate_rl.config import Config
    from debate_rl.config.recipes import load_config

    if family not in RECIPES:
        raise ValueError(f"--family {family}: unknown; valid: {', '.join(RECIPES)}")
    folder = f"run.dir=runs/quickstart-{family}-{seed}"
    config = load_config(Config, RECIPES[family], [folder, f"seed={seed}", *overrides])
    _refuse_unmeasured(config)
    return _watching(config)


class Measured(NamedTuple):
    """What the quick-start prints: ``rows`` of its table, below ``HEADS``, and the figures behind them."""

    figures: dict[str, dict[str, object]]
    rows: list[tuple[str, ...]]
    title: str
    words: str


def _measured_on(run: Path, config: Config) -> dict[str, str] | None:
    """Return what the figures of a finished run rest on: its last weights, and the code; None before them."""
    from debate_rl.runs.checkpoint import MANIFEST, checkpoints, step_of
    from debate_rl.runs.provenance import checksum, source_commit, versions

    saved = [path for path in checkpoints(run / "checkpoints") if step_of(path) == config.train.steps]
    if not saved:
        return None
    code = f"{versions().get('debate-rl')} {source_commit()}"
    return {"weights": checksum(saved[-1] / MANIFEST), "code": code}


def _kept(run: Path, config: Config) -> Measured | None:
    """Return what was measured of a run of this very configuration, its weights and this code, if it was."""
    from debate.files import read_json
    from debate_rl.runs.folder import changed_settings
    from debate_rl.runs.provenance import ChangeRules, refusal

    if not (run / KEPT).is_file() or not (run / "config.toml").is_file():
        return None
    if refusal(changed_settings(run, config), ChangeRules()):
        return None  # opening the run says what is wrong
    try:
        kept = read_json(run / KEPT)
        measured = Measured(**{name: kept[name] for name in Measured._fields})
    except (ValueError, LookupError, TypeError):
        return None
    of = _measured_on(run, config)
    return measured if of is not None and of == kept.get("of") else None


def _measured_run(config: Config, name: str, console: Console) -> Measured:
    """Warm-start, evaluate, train, evaluate again; a finished run in the folder is only evaluated anew."""
    steps = f"{config.train.steps} steps of training by debate"
    console.print(f"{name}: a warm start, {steps}, and a measurement before and after")

    from debate_rl.training.loop import train_steps
    from debate_rl.training.run import open_training  # torch takes seconds to load

    started = time.process_time()
    with open_training(config) as session:
        say = (
            session.tracker.say
            if console.is_terminal
            else partial(console.print, soft_wrap=True, markup=False)
        )
        parameters = sum(p.numel() for p in session.model.parameters())
        say(f"{name}: a Qwen3 model of {parameters:,} parameters, warm-started")
        before = _snapshot_before(session)
        spent = time.process_time() - started
        say(f"after the warm start ({spent:.0f} CPU s): {_brief(before)}")
        if session.step == config.train.steps:
            say(f"{session.folder.path} holds this run, finished: it is only measured again")
        train_steps(session)
        after = snapshot(session)
    figures = figures_of(before, after, time.process_time() - started) | _hack_gap(session.folder.path)
    return Measured(figures, *_table(before, after), _in_words(figures, before, after))


class Snapshot(NamedTuple):
    """Held-out figures of one set of weights."""

    scores: Scores
    judge_greedy: Estimate
    judge_sampled: Estimate

    def of(self, name: str, minus: str | None = None) -> Estimate:
        """Return a figure over all problems, or what it is above another."""
        from debate_rl.evaluation.scores import difference

        scores = self.scores
        figure = scores.estimate(name) if minus is None else difference(scores, name, scores, minus)
        assert figure is not None, name  # every problem that was graded has a value of it
        return figure

    @property
    def rounds(self) -> list[Estimate]:
        """Accuracy of all agents by round, (R,)."""
        count = sum(name.startswith("debate/accuracy/round_") for name in self.scores.values)
        return [self.of(f"debate/accuracy/round_{r}") for r in range(count)]


def _refuse_unmeasured(config: Config) -> None:
    """Raise ValueError before minutes of work whose figures could not be had."""
    from debate_rl.judge_attack.judging import check_judged
    from envs.families import FAMILIES

    check_judged(config.debate)
    if not config.held_out.limit:
        raise ValueError("held_out.limit=0: the quick-start measures on held-out problems; use 1 or more")
    if _family(config) not in FAMILIES:
        raise ValueError(
            f"the judge's pairs are made of held-out problems of {' or '.join(FAMILIES)}; "
            f"these are of {_family(config)!r}"
        )


def _watching(config: Config) -> Config:
    """Return the configuration with pairs under attack, unless it says how many, or there cannot be any."""
    from debate_rl.config.data import check_judge_pairs

    if "judge_pairs" in config.held_out.model_fields_set:
        return config
    held_out = config.held_out.model_copy(update={"judge_pairs": min(PAIRS, config.held_out.limit)})
    try:
        check_judge_pairs(held_out, config.debate)
    except ValueError:
        return config
    return config.model_copy(update={"held_out": held_out})


def _family(config: Config) -> str:
    return config.held_out.kind or config.env.kind


def snapshot(session: Run) -> Snapshot:
    """Evaluate the session's weights on its held-out problems."""
    from debate.seeds import derive_seed
    from debate_rl.judge_attack.judging import judge_accuracy
    from debate_rl.training.loop import evaluate, evaluate_first

    config = session.config
    if session.step not in session.evaluations and not evaluate_first(session):
        evaluate(session, session.step)

    def judged(*, greedy: bool) -> Estimate:
        part, count = f"judging pairs, {'greedy' if greedy else 'sampled'}", len(session.data.held_out)
        session.tracker.advance(part, 0, count)
        found = judge_accuracy(
            session.policy,
            _family(config),
            session.data.held_out,
            config=config.debate,
            greedy=greedy,
            seed=derive_seed(config.held_out.seed, "judge"),
        )
        session.tracker.advance(part, count, count)
        return found

    greedy, sampled = judged(greedy=True), judged(greedy=False)
    return Snapshot(session.evaluations[session.step], greedy, sampled)


def _snapshot_before(session: Run) -> Snapshot:
    """Evaluate the warm-started weights, also when the session resumes from a later checkpoint."""
    if session.step == 0:
        return snapshot(session)
    step, session.step = session.step, 0
    with session.warm_started_weights():
        before = snapshot(session)
    session.step = step
    return before


def figures_of(before: Snapshot, after: Snapshot, cpu_seconds: float) -> dict[str, dict[str, object]]:
    """Return name -> {"value", "unit", "n", "low", "high"}; accuracies at T = 1 but for judges."""
    shots = {"before": before, "after": after}
    estimates = {f"accuracy_round_0_{when}": shot.rounds[0] for when, shot in shots.items()}
    estimates |= {f"winner_accuracy_{when}": shot.of(WINNER) for when, shot in shots.items()}
    estimates |= {f"judge_accuracy_{when}": shot.judge_greedy for when, shot in shots.items()}
    estimates |= {f"judge_accuracy_{when}_sampled": shot.judge_sampled for when, shot in shots.items()}
    if _watched(*shots.values()):
        estimates |= {f"judge_attacked_{when}": shot.of(ATTACKED) for when, shot in shots.items()}
    estimates |= {f"self_consistency_{when}": shot.of(MAJORITY) for when, shot in shots.items()}
    for suffix, shot in (("_before", before), ("", after)):
        second = f"debate/accuracy/round_{min(1, len(shot.rounds) - 1)}"
        estimates |= {
            f"winner_minus_self_consistency{suffix}": shot.of(WINNER, MAJORITY),
            f"winner_minus_round_0{suffix}": shot.of(WINNER, FIRST),
            f"round_1_minus_round_0{suffix}": shot.of(second, FIRST),
        }
    rows = {name: _row(e.value, "share", e.n, e.low, e.high) for name, e in estimates.items()}
    valid = [shot.of("debate/valid_xml") for shot in (before, after)]
    rows["valid_xml"] = _row(min(estimate.value for estimate in valid), "share", valid[1].n)
    for when, shot in shots.items():
        for name, mode, n in (("debate", "debate", 1), ("self_consistency", "direct", shot.scores.samples)):
            for kind in ("generated", "prompt"):
                spent = shot.of(f"{mode}/{kind}_tokens").value
                rows[f"{name}_{kind}_tokens_{when}"] = _row(spent, "tokens", n)
    rows["cpu_seconds"] = _row(cpu_seconds, "s", 1)
    return rows


def _watched(*shots: Snapshot) -> bool:
    """Whether the judge was asked about pairs under attack."""
    return all(ATTACKED in shot.scores.values for shot in shots)


def _hack_gap(run: Path) -> dict[str, dict[str, object]]:
    """Return what persuaders cost the judge more than the start judge; nothing of a run without steps."""
    from debate_rl.judge_attack.pairs import ATTACKED, watched_judge

    watched = watched_judge(run)
    gaps = [] if watched is None or not watched.step else watched.figures
    found = next((one.gap for one in gaps if one.attack == ATTACKED), None)
    return {} if found is None else {"hack_gap": _row(found.value, "share", found.n, found.low, found.high)}


def _row(
    value: float, unit: str, n: int, low: float | None = None, high: float | None = None
) -> dict[str, object]:
    """Return one figure; a bound that is unknown or infinite is None."""
    known = [bound if bound is not None and isfinite(bound) else None for bound in (low, high)]
    return {"value": value, "unit": unit, "n": n, "low": known[0], "high": known[1]}


def _brief(shot: Snapshot) -> str:
    rounds = " -> ".join(f"{e.value:.2f}" for e in shot.rounds)
    judged = f"{shot.judge_greedy.value:.2f} greedy, {shot.judge_sampled.value:.2f} sampled"
    return f"accuracy by round {rounds}, winner {shot.of(WINNER).value:.2f}, judge {judged}"


def _table(before: Snapshot, after: Snapshot) -> tuple[list[tuple[str, ...]], str]:
    """Return the rows of the figures before and after, with 95% intervals by problem, and their title."""
    shots = before, after
    rounds = zip(before.rounds, after.rounds, strict=True)
    samples = " / ".join(str(shot.scores.samples) for shot in shots)
    rows: list[tuple[str, ...]] = [
        *((f"accuracy, round {number}", *map(_cell, pair)) for number, pair in enumerate(rounds)),
        ("winner accuracy", *(_cell(shot.of(WINNER)) for shot in shots)),
        (f"self-consistency, {samples} samples", *(_cell(shot.of(MAJORITY)) for shot in shots)),
        ("winner minus self-consistency", *(_cell(shot.of(WINNER, MAJORITY), sign="+") for shot in shots)),
        ("judge accuracy on fixed pairs, greedy", *(_cell(shot.judge_greedy) for shot in shots)),
        ("judge accuracy on fixed pairs, T = 1", *(_cell(shot.judge_sampled) for shot in shots)),
        *(
            [("judge accuracy on attacked pairs, greedy", *(_cell(shot.of(ATTACKED)) for shot in shots))]
            if _watched(*shots)
            else []
        ),
        ("valid XML", *(f"{shot.of('debate/valid_xml').value:.2f}" for shot in shots)),
        ("tokens of a debate: generated + read", *(_tokens(shot, "debate") for shot in shots)),
        ("tokens of self-consistency", *(_tokens(shot, "direct") for shot in shots)),
    ]
    return rows, f"held-out problems, sampled at T = 1 (n = {before.of(WINNER).clusters})"


def _cell(estimate: Estimate, *, sign: str = "") -> str:
    from debate_rl.metrics.intervals import spread

    return f"{estimate.value:{sign}.2f}{spread(estimate, 2, (-1.0 if sign else 0.0, 1.0))}"


def _tokens(shot: Snapshot, mode: str) -> str:
    return " + ".join(f"{shot.of(f'{mode}/{kind}_tokens').value:.0f}" for kind in ("generated", "prompt"))


def _in_words(figures: dict[str, dict[str, object]], before: Snapshot, after: Snapshot) -> str:
    """Return what the figures say, gain or no gain."""
    from debate_rl.evaluation.scores import difference
    from debate_rl.formatting import share

    moved = difference(after.scores, FIRST, before.scores, FIRST)
    assert moved is not None  # both are of the same problems
    change = "debate RL moved it by" if moved.told else "no change by debate RL can be told:"
    first = _beside("one agent in round 0", after.of(WINNER, FIRST))
    majority = _beside("a majority at equal generated tokens", after.of(WINNER, MAJORITY))
    return (
        f"The warm start planted an accuracy of {share(before.of(FIRST).value)}, one agent in round 0; "
        f"{change} {_with_bounds(moved)}. Now the winner of a debate is right {first}, and {majority}. "
        f"{figures['cpu_seconds']['value']:.0f} CPU seconds."
    )


def _beside(other: str, lead: Estimate) -> str:
    """Return how much more often the winner is right than another; a direction only where it can be told."""
    if lead.told:
        return f"{'more' if lead.value > 0 else 'less'} often than {other}, by {_with_bounds(lead)}"
    return f"as often as {other}, as far as can be told: {_with_bounds(lead)}"


def _with_bounds(gain: Estimate) -> str:
    from debate_rl.formatting import interval, signed_share

    bounds = interval(max(gain.low, -1.0), min(gain.high, 1.0), signed_share, none="no interval")
    return f"{signed_share(gain.value)} ({bounds})"


def _next_commands(family: str, folder: Path) -> str:
    problem = {
        "pair_sum": "Target 19. Numbers 3 8 5 11 2 9.",
        "words": "Tom has 8 apples. Tom gets 4 more. Tom loses 3. How many apples?",
    }[family]
    other = "words" if family == "pair_sum" else "pair_sum"
    debate = _program(sys.argv[0])
    return "\n".join(
        (
            "Try next:",
            f"  {debate} inspect {folder}",
            f"  {debate} report {folder}",
            f'  {debate} solve play {folder} "{problem}"',
            f"  {debate} quickstart --family {other}",
            f"  {debate} quickstart rewards.truth_weight=0 advantages.lambda_judge=0 run.dir=runs/peer-only",
        )
    )


def _program(called: str) -> str:
    """Return how to call the command line again: as it was called, where its name alone is not found."""
    return called if Path(called).name == "debate" and shutil.which("debate") is None else "debate"
