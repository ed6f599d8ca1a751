"""How fast the parts are on one thread: parsing, scoring, sampling and learning with the quick-start's model.

OMP_NUM_THREADS=1 .venv/bin/python benchmarks/speed.py --json speed.json
"""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from statistics import median

from report import Figure, parser, report

from debate import Debate, parse_turn, run_debates
from debate.types import Outcome
from debate_rl.config import Config
from debate_rl.config.recipes import load_config
from debate_rl.engines import make_policy
from debate_rl.sampling.load_problems import load_run_problems
from learner.advantages import AdvantageConfig, turn_advantages
from learner.rows import make_rows
from learner.types import transitions_of
from learner.update.learner import Learner
from rewards import RewardConfig, score_debate, score_votes

REPEATS = 5


def main() -> None:
    args = parser("How fast the parts are on one thread.").parse_args()
    figures = [*parsing(), *scoring(), *rollouts_and_learning()]
    report("one thread; CPU time, median of 5, range in low and high", figures, args.json)


def rate(name: str, unit: str, amount: float, work: Callable[[], object]) -> Figure:
    """Return ``amount`` per CPU second of ``work``."""
    rates: list[float] = []
    for _ in range(REPEATS):
        started = time.process_time()
        work()
        rates.append(amount / (time.process_time() - started))
    return Figure(name, median(rates), unit, REPEATS, min(rates), max(rates))


def parsing() -> list[Figure]:
    """Return the seconds for one megabyte of hostile text, for each kind of text."""
    figures: list[Figure] = []
    for name, unit in {
        "less_than": "<",
        "tags": "<solution>",
        "votes": "K7 > Q2\n",
        "boxes": "\\boxed{",
    }.items():
        text = "<comparison>" + unit * (1_000_000 // len(unit))
        started = time.process_time()
        parse_turn(text, handles=("K7", "Q2", "M4"), own="M4", due=True)
        figures.append(Figure(f"parse_1mb_{name}_s", time.process_time() - started, "s", 1))
    return figures


def scoring() -> list[Figure]:
    """Return debates a second through ``score_votes`` under each peer rule, N = 3, R = 3, with a ballot."""
    rng = Random(0)
    outcomes: tuple[Outcome, ...] = ("left", "right", "tie")
    seats = [(0, 1, 2), (1, 0, 2), (2, 0, 1)]
    held: list[list[tuple[int, int, int, int, Outcome]]] = [
        [(judge, r, a, b, rng.choice(outcomes)) for r in (1, 2, 3) for judge, a, b in seats]
        for _ in range(500)
    ]
    correct = [[rng.random() < 0.5 for _ in range(3)] for _ in range(3)]
    schemes = {rule: RewardConfig(peer=rule) for rule in ("margin", "copeland", "bradley_terry")}

    def score(scheme: RewardConfig) -> Callable[[], object]:
        return lambda: [score_votes(3, 3, votes, correct, scheme) for votes in held]

    return [rate(f"score_{rule}", "debates/s", len(held), score(s)) for rule, s in schemes.items()]


def rollouts_and_learning() -> list[Figure]:
    """Return generated tokens a second of whole debates, and padded tokens a second of learner steps."""
    config = load_config(Config, "quickstart")
    problems = load_run_problems(config).train[:48]
    model, _, policy = make_policy(config)
    debates = run_debates(problems, policy, config.debate, seed=0)
    generated = sum(len(turn.completion.tokens) for debate in debates for turn in debate.turns)
    held = rate(
        "rollout", "tokens/s", generated, lambda: run_debates(problems, policy, config.debate, seed=0)
    )
    rows = make_rows(*_with_advantages(debates), config.advantages)
    learner = Learner(model, config.resolved_learner(), total_steps=1000)
    padded = learner.step(rows)["read_tokens"]
    return [held, rate("learn", "read tokens/s", padded, lambda: learner.step(rows))]


def _with_advantages(debates: list[Debate]):
    rewards = [score_debate(debate, [[None] * 2] * 3, RewardConfig()) for debate in debates]
    transitions = transitions_of(debates, rewards, range(len(debates)))
    return transitions, turn_advantages(transitions, RewardConfig(), AdvantageConfig(), {}).turns


if __name__ == "__main__":
    main()
