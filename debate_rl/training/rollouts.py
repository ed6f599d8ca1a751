"""The debates of a step, held, graded and rewarded, and their records; silent problems are replaced."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import isfinite
from typing import NamedTuple

from msgspec import UNSET

from debate import Debate, DebateConfig, Problem, run_debates
from debate.seeds import derive_seed
from debate.types import Policy, TurnId
from debate_rl.config import Config
from debate_rl.evaluation.grading import (
    IN_A_BOX,
    Grades,
    Pending,
    Verifying,
    agreement,
    grade_debate,
    of_learners,
    stored_mode,
)
from debate_rl.problems import Problems
from debate_rl.training.adaptive import group_names, has_enough
from debate_rl.training.controls import controlled
from debate_rl.training.sampler import Draw
from debate_rl.training.step_problems import refills, silent_groups
from debate_rl.training.stops import Stops
from envs.answers.keys import AnswerKey, key_of
from envs.registry import key_by_itself
from envs.types import Mode
from learner.advantages import TurnAdvantage
from learner.types import Transition, agent_order, group_indices, transitions_of
from rewards import STREAMS, Credit, RewardConfig, Rewards, score_debates
from rewards.labels import OF_TRUTH, is_labelled
from rewards.likelihood import Likelihoods, with_likelihood
from rewards.types import OPTIONAL_STREAMS, Verdicts, stream_named
from transcripts import Record, Timing, TurnAdvantages


class Clock:
    """Wall seconds by phase: ``lap`` adds the time since the last lap to a phase; ``lapped`` hears of it."""

    def __init__(self, lapped: Callable[[str], None] | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self._lapped = lapped
        self._last = time.perf_counter()

    def lap(self, phase: str) -> None:
        """End a phase."""
        now = time.perf_counter()
        self.seconds[f"seconds/{phase}"] = self.seconds.get(f"seconds/{phase}", 0.0) + now - self._last
        self._last = now
        if self._lapped is not None:
            self._lapped(phase)


class Held(NamedTuple):
    """A debate that was held, when it ended, its grades (N, R), and the verdicts of a verifier model."""

    timing: Timing
    debate: Debate
    correct: Grades | None
    verdicts: Verdicts | None


@dataclass(slots=True)
class Rollout:
    """Debates with their truth and rewards; those of one group, the debates of one problem, stand together.

    ``groups`` names the group of each debate. ``graded`` counts the grader's statuses, ``not_finite`` the
    rewards that were not finite and became None. ``verified`` counts what a verifier model was asked.
    ``likelihoods``: of the gold answers, once they were read. ``credits``: what each debate was rewarded by.
    """

    groups: list[str]
    debates: list[Debate]
    timings: list[Timing]
    correct: list[Grades | None]
    rewards: list[Rewards] = field(default_factory=list)
    graded: Counter[str] = field(default_factory=Counter)
    not_finite: int = 0
    verdicts: list[Verdicts | None] = field(default_factory=list)
    verified: Counter[str] = field(default_factory=Counter)
    likelihoods: list[Likelihoods] = field(default_factory=list)
    credits: list[Credit] = field(default_factory=list)

    def add(self, other: Rollout) -> None:
        """Take in further problems."""
        self.groups += other.groups
        self.debates += other.debates
        self.timings += other.timings
        self.correct += other.correct
        self.rewards += other.rewards
        self.graded += other.graded
        self.not_finite += other.not_finite
        self.verdicts += other.verdicts
        self.verified += other.verified
        self.credits += other.credits

    def take_likelihoods(self, likelihoods: list[Likelihoods], scheme: RewardConfig) -> None:
        """Reward what a reader made of the debates, under the scheme of the step."""
        self.likelihoods = likelihoods
        known = [
            read if credit.truth == "truth" else None
            for read, credit in zip(likelihoods, self.credits, strict=True)
        ]
        pairs = zip(self.rewards, known, strict=True)
        self.rewards = [with_likelihood(rewards, read, scheme) for rewards, read in pairs]

    def visible(self) -> list[Grades | None]:
        """Return the grades that what is learnt may depend on: those of problems with a label."""
        pairs = zip(self.correct, self.credits, strict=True)
        return [grades if credit.truth == "truth" else None for grades, credit in pairs]

    def transitions(self) -> list[Transition]:
        """Return the turns of seats that learn with their rewards, a group for each problem."""
        return transitions_of(self.debates, self.rewards, group_indices(self.groups))


@dataclass
class RolloutWorker:
    """Holds, grades and scores the debates of a run's steps.

    What is drawn in them is a function of the run's seed, the step's number and its problems.
    """

    config: Config
    data: Problems
    policy: Policy
    stops: Stops = field(default_factory=Stops)
    verifying: Verifying | None = None
    summarizer: Policy | None = None

    def roll_out(
        self, step: int, draw: Callable[[int], Draw], ema: Mapping[str, float], clock: Clock
    ) -> Rollout:
        """Hold a step's debates, and in the place of silent problems up to ``train.dynamic_sampling`` others.

        ``draw`` returns the problems of a step. ``ema``: the running means by which one is judged silent.
        """
        drawn = draw(step)
        whole = self._play([self.data.train[index] for index in drawn.problems], step, (), clock)
        if not self.config.train.dynamic_sampling:
            return whole

        def refill(chosen: list[Problem], number: int) -> tuple[Rollout, int]:
            given = self._play(chosen, step, ("refill", number), clock)
            return given, self._silent(given, step, ema)

        spare = [self.data.train[index] for index in drawn.spare]
        for given in refills(self._silent(whole, step, ema), spare, refill):
            whole.add(given)
        return whole

    def published(self, version: int, ema: Mapping[str, float]) -> None:
        """Take note that the policy has new weights."""

    def close(self) -> None:
        """Nothing is open."""

    def _silent(self, rollout: Rollout, step: int, ema: Mapping[str, float]) -> int:
        """Return how many problems of a step's rollout have no signal."""
        return silent_groups(rollout.transitions(), self.config.at_step(step), ema)

    def _play(
        self, problems: Sequence[Problem], step: int, part: tuple[str | int, ...], clock: Clock
    ) -> Rollout:
        """Hold the debates of a part of a step, grade and score them; ``part`` is in their seeds."""
        config = self.config
        rollout = self._hold(self._shown(problems, step), step, part, clock)
        key: AnswerKey = key_of(self.data.environment)
        dealt = derive_seed(config.seed, "control", step, *part)
        rollout.debates = controlled(
            rollout.debates,
            config.train.control,
            key=key,
            seed=dealt,
            run_seed=config.seed,
            share=config.train.control_share or 0.0,
        )
        scored, rollout.credits = score_debates(
            rollout.debates,
            rollout.correct,
            rollout.groups,
            config.rewards.at_step(step),
            seed=config.seed,
            verdicts=rollout.verdicts,
            key=key_by_itself,
            coins=config.train.draws_rewards,
        )
        for rewards, bad in map(finite, scored):
            rollout.rewards.append(rewards)
            rollout.not_finite += bad
        clock.lap("reward")
        return rollout

    def _shown(self, problems: Sequence[Problem], step: int) -> list[Problem]:
        """Return the problems with as many examples as a step shows."""
        count = self.config.shots.count_at(step)
        return [
            problem if problem.shots is UNSET else replace(problem, shots=problem.shots[:count] or UNSET)
            for problem in problems
        ]

    def _hold(
        self, problems: Sequence[Problem], step: int, part: tuple[str | int, ...], clock: Clock
    ) -> Rollout:
        """Hold and grade the debates of some problems: of each a chunk at a time, until it has enough."""
        train, grader, since = self.config.train, self.config.grader, time.monotonic()
        debate = self.config.at_step(step).debate
        name, mode = ("debates", step, *part), grader.mode_at(step)
        most, chunk = train.group_size, train.adaptive.chunk or train.group_size
        held: list[list[Held]] = [[] for _ in problems]
        tally: Counter[str] = Counter()
        for start in range(0, most, chunk):
            lacking = [
                place
                for place, of in enumerate(held)
                if not has_enough([of_learners(one.debate, self._seen(one)) for one in of], train.adaptive)
            ]
            numbers = [place * most + j for place in lacking for j in range(start, min(start + chunk, most))]
            ended = self._debates(problems, numbers, debate, name, since, mode)
            clock.lap("rollout")
            for number, (one, timing, pending) in zip(numbers, ended, strict=True):
                graded = grade_debate(
                    self.data.environment,
                    one,
                    tally,
                    mode=mode,
                    beside=grader.beside,
                    hidden=not self._labelled(one.problem),
                )
                clock.lap("reward")
                held[number // most].append(Held(timing, *graded, self._verdicts(pending)))
                if pending is not None:
                    clock.lap("verify")
            clock.lap("reward")
        groups = [group for group, of in zip(group_names(problems), held, strict=True) for _ in of]
        timings, debates, correct, verdicts = zip(*chain.from_iterable(held), strict=True)
        verified = self.verifying.checked_tally() if self.verifying else Counter[str]()
        return Rollout(
            groups,
            list(debates),
            list(timings),
            list(correct),
            graded=tally,
            verdicts=list(verdicts),
            verified=verified,
        )

    def _seen(self, held: Held) -> Grades | None:
        """Return the grades of a debate on which it may depend how many are held: none without a label."""
        return held.correct if self._labelled(held.debate.problem) else None

    def _labelled(self, problem: Problem) -> bool:
        return is_labelled(problem, self.config.rewards, self.config.seed)

    def _verdicts(self, pending: Pending | None) -> Verdicts | None:
        """Wait for a debate's verdicts; a stop may end the wait."""
        if pending is None:
            return None
        with self.stops.interruptible():
            return pending.verdicts()

    def _debates(
        self,
        problems: Sequence[Problem],
        numbers: Sequence[int],
        debate: DebateConfig,
        name: tuple[str | int, ...],
        since: float,
        mode: Mode,
    ) -> list[tuple[Debate, Timing, Pending | None]]:
        """Hold the debates of these numbers; debate j of problem i has i K + j, whatever else is held.

        A verifier model begins with each as it ends.
        """
        config = self.config
        timings: list[Timing] = [Timing(0.0, 0.0)] * len(numbers)
        pending: list[Pending | None] = [None] * len(numbers)

        def ended(index: int, debate: Debate) -> None:
            timings[index] = Timing(time.time(), time.monotonic() - since)
            pending[index] = self.verifying.begin(debate) if self.verifying else None

        debates = run_debates(
            [problems[number // config.train.group_size] for number in numbers],
            self.policy,
            debate,
            seed=derive_seed(config.seed, *name),
            numbers=numbers,
            max_live=config.train.max_live,
            summarizer=self.summarizer,
            agreed=agreement(self.data.environment, mode),
            on_debate=ended,
            within=self.stops.interruptible(),
        )
        return list(zip(debates, timings, pending, strict=True))


def finite(rewards: Rewards) -> tuple[Rewards, int]:
    """Return the rewards with None for each that is not finite, and how many there were.

    >>> rewards, dropped = finite(Rewards(((float("nan"), 1.0),), ((0.0,),), ((None,),), ((0.0,),)))
    >>> rewards.peer, rewards.truth, dropped
    (((None, 1.0),), ((0.0,),), 1)

    Streams that are there only under some schemes are looked at as well.
    """
    names = (*STREAMS, *(name for name in OPTIONAL_STREAMS if getattr(rewards, name) is not UNSET))
    streams = {name: stream_named(rewards, name) for name in names}
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
    groups: Sequence[str] | None = None,
    mode: Mode = IN_A_BOX,
    verdicts: Sequence[Verdicts | None] | None = None,
    likelihoods: Sequence[Likelihoods] = (),
    credits: Sequence[Credit] = (),
) -> list[Record]:
    """Return a step's records; ``advantages``: of the turns in the order of ``transitions_of``.

    ``groups``: the name of each debate's group; None is its problem's id. ``mode``: the grader's.
    ``verdicts``: those of a verifier model. ``likelihoods``: of the gold answers, where they were read.
    ``credits``: what each was rewarded by; where that is its truth, its record does not say so.
    """
    given = [UNSET if one == OF_TRUTH else one for one in credits] or [UNSET] * len(debates)
    of_debates = advantages_by_debate(debates, advantages)
    names = groups or [debate.problem.id for debate in debates]
    return [
        Record(
            *(debate, step, name, table, reward, parts, timing),
            *(stored_mode(mode), said or UNSET, read or UNSET, credit),
        )
        for debate, name, table, reward, parts, timing, said, read, credit in zip(
            debates,
            names,
            correct,
            rewards,
            of_debates,
            timings or [None] * len(debates),
            verdicts or [None] * len(debates),
            likelihoods or [None] * len(debates),
            given,
            strict=True,
        )
    ]


def of_groups(records: Sequence[Record], count: int | None) -> list[Record]:
    """Return the records of the first ``count`` groups of a step, in order; all for None."""
    chosen = list(dict.fromkeys(record.group for record in records))[:count]
    return [record for record in records if record.group in chosen]


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
            if (part := of_turns.get(index)) is not None
        )


def _stored(turn: TurnId, part: TurnAdvantage) -> TurnAdvantages:
    critic = UNSET if part.critic is None else part.critic
    return TurnAdvantages(turn, part.generator, part.judge, part.format, part.peer, part.truth, critic)
