"""Every strategy on the quick-start's model: accuracy, tokens, and time beside the engine's own.

.venv/bin/debate quickstart && .venv/bin/python benchmarks/strategies.py runs/quickstart-pair_sum-0

Each strategy stands beside self-consistency: the majority of as many solutions as spend its tokens. Time: the
CPU time of the engine within a strategy by all of the strategy's (``time_beside_engine``), and that of the
engine for the same requests in one go (``time_beside_one_go``), which knows nothing of waves and ballots;
medians of 5. Both are taken twice: with the quick-start's model, whose replies of 11 tokens take the engine
half a millisecond each, and with a random one of 10 M parameters on six problems. GenSelect asks the model
for what it never learnt here: what it writes is no selection, and the vote decides.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from report import Figure, parser, report

from debate import Completion, SampleRequest
from debate_rl.config.models import ModelConfig
from debate_rl.config.recipes import open_run_or_recipe
from debate_rl.engines import open_policy
from debate_rl.inference.local import LocalPolicy
from debate_rl.metrics.intervals import Estimate
from debate_rl.runs.weights import newest_weights
from debate_rl.sampling.load_problems import load_held_out
from debate_rl.strategies.equal_cost import CONTENDERS, Measured, compare_strategies
from debate_rl.strategies.solving import STRATEGIES, solve_all
from debate_rl.strategies.work import SolvePlan

REPEATS = 5


class Engine:
    """What the local policies of this script were asked, and the CPU time that they took for it."""

    def __init__(self) -> None:
        self.requests, self.seconds = list[SampleRequest](), 0.0
        self._answer = LocalPolicy.sample_all

    def sample_all(self, policy: LocalPolicy, requests: Sequence[SampleRequest]) -> list[Completion]:
        """Answer requests, and keep them and the time."""
        started = time.process_time()
        try:
            return self._answer(policy, requests)
        finally:
            self.seconds += time.process_time() - started
            self.requests += requests


def main() -> None:
    arguments = parser(__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("run", help="the folder of a finished quick-start on pair_sum")
    arguments.add_argument("--problems", type=int, default=300)
    arguments.add_argument("--samples", type=int, default=16)
    arguments.add_argument("--only", nargs="*", default=[n for n, e in STRATEGIES.items() if not e.tools])
    args = arguments.parse_args()
    run, config = open_run_or_recipe(args.run, (f"held_out.limit={args.problems}",))
    assert run is not None
    engine = Engine()
    LocalPolicy.sample_all = lambda policy, requests: engine.sample_all(policy, requests)  # type: ignore[method-assign]
    policy = open_policy(config, newest_weights(Path(run)))
    assert isinstance(policy, LocalPolicy)
    environment, problems = load_held_out(config)

    def plan(name: str) -> SolvePlan:
        return SolvePlan.of(config, name, environment, samples=args.samples)

    contenders = {name: CONTENDERS[name] for name in args.only}
    figures: list[Figure] = []
    for one in compare_strategies(problems, contenders, plan("majority"), policy).measured.values():
        figures += figures_of(one)
    for name in args.only:
        figures += beside_the_engine(name, plan(name), policy, engine, problems[: min(100, args.problems)])
    larger = open_policy(config.model_copy(update={"model": of_size(config.model)}), None)
    assert isinstance(larger, LocalPolicy)
    for name in args.only:
        figures += beside_the_engine(f"{name}/10m", plan(name), larger, engine, problems[:6])
    report(f"{args.run}: strategies on {len(problems)} held-out problems", figures, args.json)


def of_size(model: ModelConfig) -> ModelConfig:
    """Return a model of about 10 M parameters in the place of the quick-start's."""
    assert model.tiny is not None
    sizes = {"hidden_size": 384, "layers": 6, "heads": 6, "intermediate_size": 1024}
    return model.model_copy(update={"tiny": model.tiny.model_copy(update=sizes)})


def figures_of(one: Measured) -> list[Figure]:
    """Return the figures of a strategy; self-consistency has as many generated tokens."""

    def figure(name: str, estimate: Estimate) -> Figure:
        return Figure(f"{one.name}/{name}", estimate.value, "share", estimate.n, estimate.low, estimate.high)

    samples, worth, less = one.compared("generated")
    unread, n = one.unread / one.comparisons if one.comparisons else 0.0, one.accuracy.n
    return [
        figure("accuracy", one.accuracy),
        figure("self_consistency", worth),
        figure("difference", less),
        Figure(f"{one.name}/equal_samples", samples, "solutions", n),
        Figure(f"{one.name}/generated", one.cost["generated"], "tokens", n),
        Figure(f"{one.name}/read", one.read, "tokens", n),
        Figure(f"{one.name}/unread", unread, "share", n),
    ]


def beside_the_engine(
    name: str, plan: SolvePlan, policy: LocalPolicy, engine: Engine, problems: Any
) -> list[Figure]:
    """Return the engine's CPU time by the strategy's: within it, and for the same requests in one go."""
    within: list[float] = []
    one_go: list[float] = []
    for _ in range(REPEATS):
        engine.requests, engine.seconds = [], 0.0
        started = time.process_time()
        solve_all(problems, plan, policy)
        own = time.process_time() - started
        within.append(engine.seconds / own)
        asked = sorted(engine.requests, key=lambda one: (one.turn.round, one.debate, one.turn.agent))
        engine.seconds = 0.0
        policy.sample_all(asked)
        one_go.append(engine.seconds / own)
    return [
        Figure(f"{name}/{figure}", median(ratios), "ratio", REPEATS, min(ratios), max(ratios))
        for figure, ratios in (("time_beside_engine", within), ("time_beside_one_go", one_go))
    ]


if __name__ == "__main__":
    main()
