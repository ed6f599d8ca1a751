"""The debates of a step, held, graded and rewarded, and their records; silent problems are replaced."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite

from debate import Debate, Problem, run_debates
from debate.seeds import derive_seed
from debate.types import Policy, TurnId
from debate_rl.config import Config
from debate_rl.evaluation.grading import Grades, grade_debate
from debate_rl.problems import Problems
from debate_rl.training.controls import controlled
from debate_rl.training.step_problems import problems_from, refills, silent_groups, spare_problems
from debate_rl.training.stops import Stops
from envs.answers.keys import AnswerKey, key_of
from learner.advantages import TurnAdvantage
from learner.types import Transition, agent_order, group_indices, transitions_of
from rewards import STREAMS, Rewards, score_debate
from transcripts import Record, Timing, TurnAdvantages


class Clock:
    """Wall seconds by phase: ``lap`` adds the time since the last lap to a phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, phase: str) -> None:
        """End a phase."""
        now = time.perf_counter()
        self.seconds[f"seconds/{phase}"] = self.seconds.get(f"seconds/{phase}", 0.0) + now - self._last
        self._last = now


@dataclass(slots=True)
class Rollout:
    """Debates with their truth and rewards; the ``group_size`` debates of one problem stand together.

    ``graded`` counts the grader's statuses, ``not_finite`` the rewards that were not finite and became None.
    """

    group_size: int
    debates: list[Debate]
    timings: list[Timing]
    correct: list[Grades | None] = field(default_factory=list)
    rewards: list[Rewards] = field(default_factory=list)
    graded: Counter[str] = field(default_factory=Counter)
    not_finite: int = 0

    def add(self, other: Rollout) -> None:
        """Take in further problems."""
        self.debates += other.debates
        self.timings += other.timings
        self.correct += other.correct
        self.rewards += other.rewards
        self.graded += other.graded
        self.not_finite += other.not_finite

    def transitions(self) -> list[Transition]:
        """Return all turns with their rewards, a group for each problem."""
        groups = group_indices([debate.problem.id for debate in self.debates], self.group_size)
        return transitions_of(self.debates, self.rewards, groups)


@dataclass
class RolloutWorker:
    """Holds, grades and scores the debates of a run's steps.

    Which problems they are about and what is drawn in them is a function of the run's seed, the step's number
    and its ``position``, the problems drawn before it.
    """

    config: Config
    data: Problems
    policy: Policy
    stops: Stops = field(default_factory=Stops)

    def roll_out(self, step: int, position: int, ema: Mapping[str, float], clock: Clock) -> Rollout:
        """Hold a step's debates, and in the place of silent problems up to ``train.dynamic_sampling`` others.

        ``ema``: the running means by which a problem is found to be silent.
        """
        train, seed = self.config.train, self.config.seed
        problems = problems_from(self.data.train, position, size=train.problems_per_step, seed=seed)
        whole = self._play(problems, ("debates", step), clock)
        if not train.dynamic_sampling:
            return whole

        def refill(chosen: list[Problem], number: int) -> tuple[Rollout, int]:
            given = self._play(chosen, ("debates", step, "refill", number), clock)
            return given, self._silent(given, ema)

        spare = spare_problems(self.data.train, problems, size=train.dynamic_sampling, seed=seed, step=step)
        for given in refills(self._silent(whole, ema), spare, refill):
            whole.add(given)
        return whole

    def published(self, version: int, ema: Mapping[str, float]) -> None:
        """Take note that the policy has new weights."""

    def close(self) -> None:
        """Nothing is open."""

    def _silent(self, rollout: Rollout, ema: Mapping[str, float]) -> int:
        """Return how many problems of a rollout have no signal."""
        return silent_groups(rollout.transitions(), self.config, ema)

    def _play(self, problems: Sequence[Problem], name: tuple[str | int, ...], clock: Clock) -> Rollout:
        """Hold the debates of some problems, grade and score them; ``name`` makes their seeds their own."""
        config, size, environment = self.config, self.config.train.debates_per_problem, self.data.environment
        repeated = [problem for problem in problems for _ in range(size)]
        timings, ended = _timings(len(repeated))
        debates = run_debates(
            repeated,
            self.policy,
            config.debate,
            seed=derive_seed(config.seed, *name),
            max_live=config.train.max_live,
            on_debate=ended,
            within=self.stops.interruptible(),
        )
        clock.lap("rollout")
        key: AnswerKey = key_of(environment)
        dealt = derive_seed(config.seed, "control", *name[1:])
        debates = controlled(debates, config.train.control, key=key, seed=dealt)
        rollout = Rollout(size, debates, timings)
        rollout.correct = [grade_debate(environment, debate, rollout.graded) for debate in debates]
        for debate, correct in zip(debates, rollout.correct, strict=True):
            rewards, bad = finite(score_debate(debate, correct, config.rewards))
            rollout.rewards.append(rewards)
            rollout.not_finite += bad
        clock.lap("reward")
        return rollout


def _timings(count: int) -> tuple[list[Timing], Callable[[int, Debate], None]]:
    """Return the times of ``count`` debates that begin now, and what to call as each ends."""
    began, clock = time.time(), time.monotonic()
    timings = [Timing(began, 0.0)] * count

    def ended(index: int, debate: Debate) -> None:
        seconds = time.monotonic() - clock
        timings[index] = Timing(began + seconds, seconds)

    return timings, ended


def finite(rewards: Rewards) -> tuple[Rewards, int]:
    """Return the rewards with None for each that is not finite, and how many there were.

    >>> finite(Rewards(((float("nan"), 1.0),), ((0.0,),), ((None,),), ((0.0,),)))
    (Rewards(peer=((None, 1.0),), truth=((0.0,),), judge=((None,),), format=((0.0,),), counters=()), 1)
    """
    streams = {name: getattr(rewards, name) for name in STREAMS}
    given = [value for stream in streams.values() for row in stream for value in row if value is not None]
    bad = len(given) - sum(map(isfinite, given))
    if not bad:
        return rewards, 0
    good = {
        name: tuple(tuple(v if v is None or isfinite(v) else None for v in row) for row in stream)
        for name, stream in streams.items()
    }
    return replace(rewards, **good), bad


def step_records(
    step: int,
    debates: Sequence[Debate],
    correct: Sequence[Grades | None],
    rewards: Sequence[Rewards],
    advantages: Sequence[TurnAdvantage | None],
    timings: Sequence[Timing] | None = None,
) -> list[Record]:
    """Return a step's records; ``advantages``: of the turns in the order of ``transitions_of``."""
    of_debates = advantages_by_debate(debates, advantages)
    return [
        Record(debate, step, debate.problem.id, table, reward, parts, timing)
        for debate, table, reward, parts, timing in zip(
            debates, correct, rewards, of_debates, timings or [None] * len(debates), strict=True
        )
    ]


def advantages_by_debate(
    debates: Sequence[Debate], advantages: Sequence[TurnAdvantage | None]
) -> Iterator[tuple[TurnAdvantages, ...]]:
    """Yield each debate's advantages in the order of its turns, those without signal left out."""
    rest = iter(advantages)
    for debate in debates:
        of_turns = {index: next(rest) for index in agent_order(debate)}
        yield tuple(
            _stored(turn.id, part)
            for index, turn in enumerate(debate.turns)
            if (part := of_turns[index]) is not None
        )


def _stored(turn: TurnId, part: TurnAdvantage) -> TurnAdvantages:
    return TurnAdvantages(turn, part.generator, part.judge, part.format, part.peer, part.truth)
