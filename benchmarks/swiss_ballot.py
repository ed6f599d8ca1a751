"""Final ballots of all pairs beside ballots by Swiss pairing: the winner's accuracy, and what a ballot costs.

    .venv/bin/python benchmarks/swiss_ballot.py --seeds 1 2 3 --json ballots.json
    .venv/bin/python benchmarks/swiss_ballot.py --simulate --json simulated.json

The quick-start's task and model with 8 agents and one round of solutions. Its warm start shows both kinds of
ballot, half of each, so that one model knows both; it then holds debates on held-out problems with either,
which have the same solutions. ``--steps 7`` trains it before that, under ballots of all and with half of the
quick-start's debates. Differences are paired by problem; tokens are those of the ballots alone.

With --simulate no model is asked: checks of solutions err independently of each other with a given chance,
and a judge prefers what it finds right, or either. That is what the pairing itself loses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any
from unittest.mock import patch

from report import Figure, parser, report

from debate import DebateConfig, Policy, Problem
from debate.hold_many import run_debates
from debate.policy import token_counts
from debate.swiss import Result, next_pairs
from debate_rl.config import Config
from debate_rl.config.recipes import load_config
from debate_rl.engines import open_policy
from debate_rl.evaluation.grading import agreement, grade_debate
from debate_rl.evaluation.scores import winner_of
from debate_rl.metrics.intervals import Estimate, clustered_mean
from debate_rl.runs.checkpoint import WARM_START
from debate_rl.runs.weights import named_weights
from debate_rl.sampling.load_problems import load_held_out
from debate_rl.training.loop import train
from debate_rl.training.open_or_resume import open_training
from debate_rl.warm_start import demonstrations
from envs import Environment
from rewards import RewardConfig, ballot_box, score_debate, valid_votes
from rewards.judge_rewards import decidable_votes
from rewards.votes import due_pairs

LABELS = ["K7", "Q2", "M4", "X9", "C3", "V5", "D6", "H8"]
BALLOTS = ("all", "swiss")


@dataclass(frozen=True, slots=True)
class Held:
    """Debates under one kind of ballot, by problem: whether the winner was right, and the ballots' tokens.

    ``solutions``: the share of right ones; ``votes``: of each on a decidable pair whether it was right.
    """

    right: dict[str, float]
    generated: dict[str, int]
    read: dict[str, int]
    solutions: dict[str, float]
    votes: dict[str, Sequence[bool]]


def main() -> None:
    arguments = parser(__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("--agents", type=int, default=8)
    arguments.add_argument("--seeds", type=int, nargs="+", default=[1])
    arguments.add_argument("--steps", type=int, default=0, help="of training behind the warm start")
    arguments.add_argument("--problems", type=int, default=300)
    arguments.add_argument("--home", type=Path, default=Path("runs/swiss_ballot"))
    arguments.add_argument("--simulate", action="store_true")
    args = arguments.parse_args()
    if args.simulate:
        figures = simulated(args.agents)
    else:
        held = {seed: of_model(args, seed) for seed in args.seeds}
        figures = [figure for seed, both in held.items() for figure in beside(f"seed_{seed}", both)]
        figures += beside("all_seeds", pooled(held))
    report(f"ballots of {args.agents} agents", figures, args.json)


def of_model(args: Any, seed: int) -> dict[str, Held]:
    """Return the debates of one model under both kinds of ballot; its runs are kept and read again."""
    labels = LABELS[: args.agents]
    start, run = (args.home / f"agents-{args.agents}-steps-{n}-seed-{seed}" for n in (0, args.steps))
    settings = [
        f"run.dir={start}",
        f"seed={seed}",
        f"train.steps={args.steps or 7}",
        "train.group_size=2",
        f"train.sample_batch_size={24 * 2 * args.agents}",
        "logging.progress=none",
        "held_out.every=0",
        f"held_out.limit={args.problems}",
        f"debate.num_agents={args.agents}",
        f"debate.handles={labels}",
        "debate.num_rounds=1",
        "debate.max_tokens=160",
        "model.tiny.context_tokens=512",
        "warm_start.batch=[24, 0, 10, 30]",
    ]
    config = load_config(Config, "quickstart", settings)
    assert config.model.tiny is not None
    pieces = [*(f"{label}:" for label in labels), *config.model.tiny.pieces[3:]]
    config = load_config(Config, "quickstart", [*settings, f"model.tiny.pieces={pieces!r}"])
    if not (start / WARM_START).is_dir():
        with patch.object(demonstrations, "Demonstrator", BothBallots), open_training(config):
            pass  # the warm start alone
    if args.steps and not (run / "checkpoints").is_dir():
        own = [f"run.dir={run}", f"warm_start.from_run={start}"]
        train(load_config(Config, "quickstart", [*settings, f"model.tiny.pieces={pieces!r}", *own]))
    [weights] = named_weights(run, "newest" if args.steps else "start")
    environment, problems = load_held_out(config)
    policy = open_policy(config, weights)
    return {kind: held(problems, policy, with_ballot(config.debate, kind), environment) for kind in BALLOTS}


class BothBallots(demonstrations.Demonstrator):
    """Shows ballots of both kinds, drawn for each demonstration."""

    def show(self, *args: Any, **options: Any) -> demonstrations.Demonstration:
        """Return a demonstration under one of the protocols."""
        self._config = with_ballot(self._config, self._rng.choice(BALLOTS))
        return super().show(*args, **options)


def with_ballot(protocol: DebateConfig, kind: str) -> DebateConfig:
    return protocol.model_copy(update={"ballot": kind})


def held(
    problems: Sequence[Problem], policy: Policy, protocol: DebateConfig, environment: Environment
) -> Held:
    """Return one debate on each problem; those of another ballot have the same solutions."""
    debates = run_debates(problems, policy, protocol, seed=0, max_live=32, agreed=agreement(environment))
    found = Held({}, {}, {}, {}, {})
    for debate in debates:
        id, winner = debate.problem.id, winner_of(debate, score_debate(debate, None, RewardConfig()))
        _, correct = grade_debate(environment, debate)
        assert correct is not None
        found.right[id] = float(correct[winner.agent][winner.round] is True)
        found.solutions[id] = fmean(row[-1] is True for row in correct)
        box = ballot_box(debate)
        votes = decidable_votes(due_pairs(box, valid_votes(box)), correct)
        found.votes[id] = [vote for vote in votes if vote is not None]
        counts = [token_counts(turn.completion) for turn in debate.turns if turn.ballot]
        found.read[id], found.generated[id] = map(sum, zip(*counts, strict=True))
    return found


def pooled(held: Mapping[int, Mapping[str, Held]]) -> dict[str, Held]:
    """Return the debates of all seeds together; a problem of two seeds counts as two."""

    def joined(kind: str, name: str) -> dict[str, Any]:
        return {f"{s}/{id}": v for s, both in held.items() for id, v in getattr(both[kind], name).items()}

    names = [one.name for one in fields(Held)]
    return {kind: Held(*(joined(kind, name) for name in names)) for kind in BALLOTS}


def beside(name: str, held: Mapping[str, Held]) -> list[Figure]:
    """Return the figures of both kinds of ballot on the same problems."""
    whole, swiss = held["all"], held["swiss"]
    ids = list(whole.right)
    figures = [figure(f"{name}/solutions", clustered_mean([whole.solutions[id] for id in ids], ids))]
    figures += compared(name, whole.right, swiss.right)
    for kind, one in held.items():
        votes = [(vote, id) for id in ids for vote in one.votes[id]]
        judged = clustered_mean([float(vote) for vote, _ in votes], [id for _, id in votes])
        figures.append(figure(f"{name}/judge/{kind}", judged))
    for kind in ("generated", "read"):
        spent = [fmean(getattr(one, kind).values()) for one in (whole, swiss)]
        figures += [
            Figure(f"{name}/{kind}/all", spent[0], "tokens", len(whole.right)),
            Figure(f"{name}/{kind}/swiss", spent[1], "tokens", len(whole.right)),
            Figure(f"{name}/{kind}/ratio", spent[1] / spent[0], "ratio", len(whole.right)),
        ]
    return figures


def compared(name: str, whole: Mapping[str, float], swiss: Mapping[str, float]) -> list[Figure]:
    """Return the accuracy of both winners and their difference, paired by problem."""
    ids = list(whole)
    gaps = [swiss[id] - whole[id] for id in ids]
    return [
        figure(f"{name}/winner/all", clustered_mean(list(whole.values()), ids)),
        figure(f"{name}/winner/swiss", clustered_mean(list(swiss.values()), ids)),
        figure(f"{name}/winner/swiss_minus_all", clustered_mean(gaps, ids, signed=True)),
    ]


def figure(name: str, estimate: Estimate) -> Figure:
    return Figure(name, estimate.value, "share", estimate.n, estimate.low, estimate.high)


def simulated(agents: int, count: int = 10_000) -> list[Figure]:
    """Return the winners of ballots whose checks err with a chance, where few and where half are right."""
    figures: list[Figure] = []
    for right, error in [(right, error) for right in (0.22, 0.5) for error in (0.01, 0.02, 0.05, 0.1, 0.2)]:
        whole, swiss = dict[str, float](), dict[str, float]()
        for number in range(count):
            rng, id = Random(number), str(number)
            answers = [_answer(right, rng) for _ in range(agents)]
            whole[id] = float(answers[_winner_of_all(answers, error, rng)] == 0)
            swiss[id] = float(answers[_winner_of_pairs(answers, error, number, rng)] == 0)
        figures += compared(f"right_{right}/error_{error}", whole, swiss)
    return figures


def _answer(right: float, rng: Random) -> int:
    """Return 0 for the right answer, 1 for the lure, which takes two wrong ones of three, or another one."""
    return 0 if rng.random() < right else 1 if rng.random() < 2 / 3 else rng.randrange(2, 20)


def _worth(answer: int, error: float, rng: Random) -> tuple[bool, float]:
    """Return what a judge ranks a solution by: whether its check finds it right, and by lot where equal."""
    return (answer == 0) != (rng.random() < error), rng.random()


def _winner_of_all(answers: Sequence[int], error: float, rng: Random) -> int:
    results: list[list[int]] = [[] for _ in answers]
    for judge in range(len(answers)):
        others = [agent for agent in range(len(answers)) if agent != judge]
        worth = {agent: _worth(answers[agent], error, rng) for agent in others}
        for first, second in combinations(others, 2):
            _count(results, (first, second), 1 if worth[first] > worth[second] else -1)
    return _best(results, rng)


def _winner_of_pairs(answers: Sequence[int], error: float, seed: int, rng: Random) -> int:
    said, results = dict[int, Result](), [list[int]() for _ in answers]
    while asked := next_pairs(answers, said, seed=seed):
        for judge, pair in asked.items():
            first, second = (_worth(answers[agent], error, rng) for agent in pair)
            said[judge] = (pair, 1 if first > second else -1)
            _count(results, *said[judge])
    return _best(results, rng)


def _count(results: list[list[int]], pair: tuple[int, int], outcome: int) -> None:
    results[pair[0]].append(outcome)
    results[pair[1]].append(-outcome)


def _best(results: Sequence[Sequence[int]], rng: Random) -> int:
    """Return the solution of the best margin, by lot where there are several, as a debate has it."""
    margins = [fmean(said) for said in results]
    return rng.choice([agent for agent, margin in enumerate(margins) if margin == max(margins)])


if __name__ == "__main__":
    main()
