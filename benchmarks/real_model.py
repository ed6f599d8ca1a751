"""SmolLM2-135M-Instruct learns by debate: gains over several seeds, and controls of equal cost.

``debate quickstart --model smollm2`` supervises the form and trains by debate. The other arms start from the
weights after the form. All but the supervised one generate about as many tokens as the debates. All seeds
share the held-out problems. Their wordings never occur in training. Seed 1 chose the recipe.
The plan is in experiments/results/real_model.md.

Each finished run leaves one file in ``--kept``, so seeds and arms can be measured one after another. One seed
takes about five hours on two cores.

    .venv/bin/python benchmarks/real_model.py --seeds 2 3 4 --json real_model.json
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from report import Figure, over_seeds, over_seeds_and_problems, parser, report

from debate_rl.config import Config
from debate_rl.config.recipes import load_config
from debate_rl.metrics.held_out import DIRECT, JUDGE, WINNER, HeldOut, evaluations_of
from debate_rl.preflight.votes import votes_by_round
from envs.registry import key_by_itself
from transcripts import RunStore

BASE, FORM, DEBATE, PLAIN, VOTES, SUPERVISED = "base", "form", "debate", "plain", "votes", "supervised"
ONE_AGENT = ("debate.num_agents=1", "debate.num_rounds=1", "train.batch_size=8", "train.group_size=52")
DEBATES = ("smollm2/debate", "held_out.every=0")
CONTROLS: Mapping[str, Sequence[str]] = {
    PLAIN: (*DEBATES, *ONE_AGENT),
    SUPERVISED: ("smollm2/form", "sft.limit=320"),
    VOTES: (*DEBATES, "rewards.truth_weight=0", "advantages.lambda_judge=0"),
    "last_majority": (*DEBATES, "rewards.pseudo=last_majority"),
    "ttrl": (*DEBATES, *ONE_AGENT, "rewards.pseudo=majority"),
    "labels": (*DEBATES, *ONE_AGENT, "env.limit=12"),
}
"""The recipe of each control, and what it changes."""
OTHER_PROBLEMS = 1000
"""Added to the seed of further supervised steps, so that they have other problems than the form."""
FIRST, LATER, LAST = "debate/accuracy/round_0", "debate/accuracy/round_1", "debate/majority"
MAJORITY, VALID = "direct/self_consistency", "debate/valid_xml"
KEPT = (DIRECT, MAJORITY, FIRST, LATER, LAST, WINNER, JUDGE, VALID)
Kept = dict[str, Any]


def main() -> None:
    known = parser("SmolLM2 learns by debate: gains and controls over several seeds.")
    known.add_argument("--seeds", type=int, nargs="*", default=[2, 3, 4], help="none: only report")
    known.add_argument("--arms", nargs="*", default=list(CONTROLS), choices=list(CONTROLS))
    known.add_argument("--out", type=Path, default=Path("runs/real_model"), help="folder of the runs")
    known.add_argument("--kept", type=Path, default=Path("experiments/results/real_model"))
    args = known.parse_args()
    for seed in args.seeds:
        measure(seed, args.arms, args.out.resolve(), args.kept.resolve())
    kept = [json.loads(path.read_text("utf-8")) for path in sorted(args.kept.glob("*.json"))]
    report("SmolLM2-135M-Instruct on word problems", [*figures(kept)], args.json)


def measure(seed: int, arms: Sequence[str], out: Path, kept: Path) -> None:
    """Train and evaluate what is missing of a seed."""
    out.mkdir(parents=True, exist_ok=True)
    kept.mkdir(parents=True, exist_ok=True)
    home = out / f"runs/quickstart-smollm2-{seed}"
    if not (kept / f"{DEBATE}-{seed}.json").exists():
        debate(out, "quickstart", "--model", "smollm2", "--seed", str(seed))
        start, *_, end = evaluations_of(home / DEBATE / "held_out.jsonl")
        keep(kept, FORM, seed, start, **spent(home / FORM))
        keep(kept, DEBATE, seed, end, votes=votes(home / DEBATE), **spent(home / DEBATE))
    for arm in arms:
        if (kept / f"{arm}-{seed}.json").exists():
            continue
        recipe, *changes = CONTROLS[arm]
        own = seed + OTHER_PROBLEMS * (arm == SUPERVISED)
        start = f"warm_start.from_run={home / FORM}"
        debate(out, "train", recipe, f"run.dir={home / arm}", f"seed={own}", start, *changes, *model(home))
        evaluated = home / f"{arm}-evaluated"
        protocol = ("debate.num_agents=3", "debate.num_rounds=2")
        debate(out, "eval", str(home / arm), *protocol, "--weights", "newest", "--out", str(evaluated))
        [end] = evaluations_of(evaluated / "held_out.jsonl")
        keep(kept, arm, seed, end, **spent(home / arm))
    if not [*kept.glob(f"{BASE}-*.json")]:
        debate(out, "eval", "smollm2/form", *model(home), "--out", str(out / BASE))
        [before] = evaluations_of(out / BASE / "held_out.jsonl")
        keep(kept, BASE, seed, before)


def debate(where: Path, *words: str) -> None:
    """Run a command of the package in a folder."""
    print("debate", *words, flush=True)
    paths = os.pathsep.join(path for path in (str(Path.cwd()), os.environ.get("PYTHONPATH")) if path)
    subprocess.run(
        [sys.executable, "-m", "debate_rl", *words],
        cwd=where,
        env={**os.environ, "PYTHONPATH": paths},
        check=True,
    )


def model(home: Path) -> list[str]:
    """Return the key of the model that the quick-start found."""
    return [f"model.name_or_path={load_config(Config, str(home / FORM / 'config.toml')).model.name_or_path}"]


def spent(run: Path) -> dict[str, float]:
    """Return a run's wall time in seconds, and the tokens that its steps generated and the learner read."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text("utf-8").splitlines()]
    names = {"generated": "tokens/generated", "read": "read_tokens"}
    found: dict[str, float] = {key: sum(row.get(name, 0) for row in rows) for key, name in names.items()}
    return found | {"seconds": json.loads((run / "run.json").read_text("utf-8"))["wall_seconds"]}


def votes(run: Path) -> list[dict[str, Any]]:
    """Return the accuracy of votes, of the more frequent answer and of majorities in the run's debates."""
    with RunStore.open(run) as store:
        records = [record for _, record in store.records()]
    found = votes_by_round(
        [record.debate for record in records],
        [record.correct for record in records],
        key_by_itself,
        [(record.step, record.debate.problem.id) for record in records],
    )
    return [
        {
            "round": one.round,
            **{
                name: [estimate.value, estimate.low, estimate.high, estimate.n]
                for name, estimate in (("p_v", one.votes), ("p_c", one.crowd), ("p_m", one.majority))
            },
        }
        for one in found
    ]


def keep(folder: Path, arm: str, seed: int, found: HeldOut, **more: Any) -> None:
    """Write the figures of each problem, and what an arm spent."""
    means = {name: {id: round(mean, 4) for id, mean in found.means(name).items()} for name in KEPT}
    whole = {"arm": arm, "seed": seed, **more, "means": means}
    (folder / f"{arm}-{seed}.json").write_text(json.dumps(whole) + "\n", encoding="utf-8")


def figures(kept: Sequence[Kept]) -> Iterator[Figure]:
    """Yield accuracies of all arms, their gains over the form, and differences between arms."""
    of = {(one["arm"], one["seed"]): one["means"] for one in kept}
    arms = list(dict.fromkeys(arm for arm, _ in of))

    def over(name: str, arm: str, figure: str, minus: tuple[str, str] | None = None) -> Iterator[Figure]:
        values: dict[tuple[int, int], dict[str, float]] = {}
        for seed in sorted({seed for _, seed in of}):
            own = of.get((arm, seed), {}).get(figure, {})
            if minus is not None:
                other = of.get((minus[0], seed), {}).get(minus[1], {})
                own = {id: value - other[id] for id, value in own.items() if id in other}
            if own:
                values[seed, 0] = own
        if values:
            yield from over_seeds_and_problems(name, values, signed=minus is not None)

    yield from over("form_valid", FORM, VALID)
    for name, arm, figure in (("solo_gain", PLAIN, DIRECT), ("debate_gain", DEBATE, WINNER)):
        for one in over(name, arm, figure, (FORM, figure)):
            yield one
            yield Figure(f"{name}_low", one.low if one.low is not None else float("nan"), "share", one.n)
    yield from over("winner_minus_self_consistency", DEBATE, WINNER, (DEBATE, MAJORITY))
    yield from over("judge_accuracy", DEBATE, JUDGE)
    took = {(one["arm"], one["seed"]): one["seconds"] for one in kept if "seconds" in one}
    both = (seed for arm, seed in took if arm == DEBATE and (FORM, seed) in took)
    seconds = {(seed, 0): took[FORM, seed] + took[DEBATE, seed] for seed in both}
    yield from over_seeds("seconds", seconds, "s") if seconds else ()
    for arm in arms:
        for figure in KEPT:
            yield from over(f"{arm}: {figure}", arm, figure)
        if arm != FORM:
            for figure in (DIRECT, WINNER):
                yield from over(f"{arm} - {FORM}: {figure}", arm, figure, (FORM, figure))
    for other in CONTROLS:
        for figure in (DIRECT, WINNER):
            yield from over(f"{DEBATE} - {other}: {figure}", DEBATE, figure, (other, figure))


if __name__ == "__main__":
    main()
