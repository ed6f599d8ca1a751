"""Hold, grade and reward the debates of a step, and replace problems without a signal.

Seeds: debate j of problem i in a step with groups of K has the number i K + j, and its seed is
``debate.seeds.debate_seed(derive_seed(config.seed, "debates", step), number, problem)``. Replacements of
problems without a signal add "refill" and the number of the refill to the step's seed.

Dynamic sampling (DAPO, arXiv 2503.14476) drops problems whose answers are all right or all wrong, and samples
until the batch is full. Here, a problem has no signal ("silent") if the deciding streams give every turn the
advantage 0. If a group has truth rewards, the truth stream alone decides, because peer scores have no
baseline by default and rarely tie in all debates. A spare problem replaces each silent problem, up to
``train.dynamic_sampling`` per step.

Adaptive sampling (``train.adaptive``) holds the debates of a problem in chunks until enough debates are right
and enough are wrong. A debate is right if at least one solution of its last round is right, and wrong if at
least one is wrong or missing; a debate of several agents may be both. Solutions without a verdict count as
neither.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields, replace
from itertools import chain, groupby
from statistics import fmean
from typing import NamedTuple

from msgspec import UNSET

from debate import Debate, DebateConfig, Problem, run_debates
from debate.seeds import derive_seed
from debate.types import Policy
from debate_rl.config import AdaptiveConfig, Config, TrainConfig
from debate_rl.evaluation.grading import Grades, Pending, Verifying, agreement, grade_debate, of_learners
from debate_rl.evaluation.play import counted_replies, turns_of
from debate_rl.sampling.draw_problems import Draw
from debate_rl.sampling.load_problems import Problems
from envs.answers.keys import key_of
from envs.registry import key_by_itself
from envs.types import Mode
from learner.advantages import TurnAdvantage, turn_advantages
from learner.types import Transition, group_indices, transitions_of
from rewards import Credit, RewardConfig, Rewards, Truth, score_debates
from rewards.labels import is_labelled
from rewards.nan_rewards import drop_nan_rewards
from rewards.score import with_likelihood
from rewards.truth import right_share
from rewards.types import Likelihoods, Verdicts
from transcripts import Timing


class Clock:
    """Wall time in seconds by phase. ``lap`` adds the time since the last lap to a phase."""

    def __init__(self, lapped: Callable[[str], None] | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self._lapped = lapped
        self._last = time.perf_counter()

    def lap(self, phase: str) -> None:
        """Add the time since the last lap to a phase, and report the phase."""
        now = time.perf_counter()
        self.seconds[f"seconds/{phase}"] = self.seconds.get(f"seconds/{phase}", 0.0) + now - self._last
        self._last = now
        if self._lapped is not None:
            self._lapped(phase)


class Held(NamedTuple):
    """A finished debate with its end time, its grades (N, R), and the verdicts of a verifier model."""

    timing: Timing
    debate: Debate
    correct: Grades | None
    verdicts: Verdicts | None


@dataclass
class Rollout:
    """Debates with their grades and rewards. Debates of the same problem form a group and are adjacent.

    ``groups``: the group name of each debate. ``graded``: counts of the grader's statuses. ``not_finite``:
    number of rewards that became None because they were not finite. ``verified``: counts of requests to a
    verifier model. ``likelihoods`` of the gold answers, if computed. ``credits``: sources of the rewards.
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
        """Append the debates of further problems."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))

    def take_likelihoods(self, likelihoods: list[Likelihoods], scheme: RewardConfig) -> None:
        """Store the likelihoods of the gold answers, and add their rewards under the step's scheme."""
        self.likelihoods = likelihoods
        rows = zip(self.rewards, likelihoods, self.credits, strict=True)
        self.rewards = [
            with_likelihood(rewards, read if credit.truth == "truth" else None, scheme)
            for rewards, read, credit in rows
        ]

    def visible(self) -> list[Grades | None]:
        """Return the grades that training may use: the grades of problems with a label."""
        pairs = zip(self.correct, self.credits, strict=True)
        return [grades if credit.truth == "truth" else None for grades, credit in pairs]

    def of_learners(self) -> list[Grades | None]:
        """Return the grades of the agents that learn."""
        return [of_learners(*pair) for pair in zip(self.debates, self.correct, strict=True)]

    def last_grades(self) -> Iterator[tuple[str, list[Truth]]]:
        """Yield the problem's id and the final grades of the learning agents for each debate.

        Problems without a label have no grades.
        """
        for debate, table in zip(self.debates, self.visible(), strict=True):
            yield debate.problem.id, [row[-1] for row in of_learners(debate, table) or ()]

    def transitions(self) -> list[Transition]:
        """Return the turns of learning seats with their rewards. The turns on a problem form a group."""
        return transitions_of(self.debates, self.rewards, group_indices(self.groups))


@dataclass
class RolloutWorker:
    """Holds, grades and scores the debates of a run's steps.

    All random draws are functions of the run's seed, the number of the step and its problems.
    ``interruptible``: returns a context manager for code that a signal may interrupt. ``advance`` is called
    with the number of turns held and their total number.
    """

    config: Config
    data: Problems
    policy: Policy
    interruptible: Callable[[], AbstractContextManager[None]] = nullcontext
    verifying: Verifying | None = None
    summarizer: Policy | None = None
    advance: Callable[[int, int], None] = lambda *_: None

    def roll_out(
        self, step: int, draw: Callable[[int], Draw], ema: Mapping[str, float], clock: Clock
    ) -> Rollout:
        """Hold the debates of a step, with up to ``train.dynamic_sampling`` replacements of silent problems.

        ``draw``: returns the problems of a step. ``ema``: the running means used by advantages.
        """
        drawn = draw(step)
        whole = given = self._play([self.data.train[index] for index in drawn.problems], step, (), clock)
        if not self.config.train.dynamic_sampling:
            return whole
        spare = [self.data.train[index] for index in drawn.spare]
        now, missing, number = self.config.at_step(step), 0, 0
        while True:
            missing += silent_groups(given.transitions(), now, ema)
            chosen, spare = spare[:missing], spare[missing:]
            if not chosen:
                return whole
            given = self._play(chosen, step, ("refill", number), clock)
            whole.add(given)
            missing, number = missing - len(chosen), number + 1

    def published(self, version: int, ema: Mapping[str, float]) -> None:
        """Do nothing, because the policy already has the new weights."""

    def close(self) -> None:
        """Do nothing, because there is nothing to close."""

    def _play(
        self, problems: Sequence[Problem], step: int, part: tuple[str | int, ...], clock: Clock
    ) -> Rollout:
        """Hold, grade and reward the debates of one part of a step. ``part`` is part of their seeds."""
        config = self.config
        rollout = self._hold(shown_at(config, problems, step), step, part, clock)
        control, share = config.train.control_and_share
        if control != "none":
            from debate_rl.rollouts.controls import controlled

            rollout.debates = controlled(
                rollout.debates,
                control,
                key=key_of(self.data.environment),
                seed=derive_seed(config.seed, "control", step, *part),
                run_seed=config.seed,
                share=share,
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
        for rewards, bad in map(drop_nan_rewards, scored):
            rollout.rewards.append(rewards)
            rollout.not_finite += bad
        clock.lap("reward")
        return rollout

    def _hold(
        self, problems: Sequence[Problem], step: int, part: tuple[str | int, ...], clock: Clock
    ) -> Rollout:
        """Hold and grade debates in chunks per problem until every problem has enough debates."""
        train, grader, since = self.config.train, self.config.grader, time.monotonic()
        debate = self.config.at_step(step).debate
        name, mode = ("debates", step, *part), grader.mode_at(step)
        most, chunk = train.group_size, train.chunk
        held: list[list[Held]] = [[] for _ in problems]
        tally: Counter[str] = Counter()
        for start in range(0, most, chunk):
            lacking = [place for place, of in enumerate(held) if not self._has_enough(of)]
            numbers = [place * most + j for place in lacking for j in range(start, min(start + chunk, most))]
            ended = self._debates(problems, numbers, debate, name, since, mode)
            clock.lap("rollout")
            for number, (one, timing, pending) in zip(numbers, ended, strict=True):
                hidden = not self._labelled(one.problem)
                graded = grade_debate(
                    self.data.environment, one, tally, mode=mode, beside=grader.beside, hidden=hidden
                )
                clock.lap("reward")
                verdicts = None
                if pending is not None:
                    with self.interruptible():
                        verdicts = pending.verdicts()
                    clock.lap("verify")
                held[number // most].append(Held(timing, *graded, verdicts))
            clock.lap("reward")
        groups = [group for group, of in zip(group_names(problems), held, strict=True) for _ in of]
        timings, debates, correct, verdicts = map(list, zip(*chain.from_iterable(held), strict=True))
        verified = self.verifying.checked_tally() if self.verifying else Counter[str]()
        return Rollout(groups, debates, timings, correct, graded=tally, verdicts=verdicts, verified=verified)

    def _has_enough(self, held: Sequence[Held]) -> bool:
        """Return True if a problem has enough debates. Ignore the grades of an unlabelled problem."""
        tables = [
            of_learners(one.debate, one.correct if self._labelled(one.debate.problem) else None)
            for one in held
        ]
        wanted = self.config.train.adaptive
        return wanted is not None and has_enough(tables, wanted)

    def _labelled(self, problem: Problem) -> bool:
        return is_labelled(problem, self.config.rewards, self.config.seed)

    def _debates(
        self,
        problems: Sequence[Problem],
        numbers: Sequence[int],
        debate: DebateConfig,
        name: tuple[str | int, ...],
        since: float,
        mode: Mode,
    ) -> list[tuple[Debate, Timing, Pending | None]]:
        """Hold the debates with these numbers. Debate j of problem i always has the number i K + j.

        A verifier model starts to score each debate when the debate ends.
        """
        config = self.config
        timings: list[Timing] = [Timing(0.0, 0.0)] * len(numbers)
        pending: list[Pending | None] = [None] * len(numbers)

        def ended(index: int, debate: Debate) -> None:
            timings[index] = Timing(time.time(), time.monotonic() - since)
            pending[index] = self.verifying.begin(debate) if self.verifying else None

        turns = len(numbers) * turns_of(debate)
        self.advance(0, turns)
        with counted_replies(self.policy, lambda done: self.advance(min(done, turns - 1), turns)) as speaker:
            debates = run_debates(
                [problems[number // config.train.group_size] for number in numbers],
                speaker,
                debate,
                seed=derive_seed(config.seed, *name),
                numbers=numbers,
                max_live=config.train.max_live,
                summarizer=self.summarizer,
                agreed=agreement(self.data.environment, mode),
                on_debate=ended,
                within=self.interruptible(),
            )
        self.advance(turns, turns)
        return list(zip(debates, timings, pending, strict=True))


def shown_at(config: Config, problems: Sequence[Problem], step: int) -> list[Problem]:
    """Return the problems with the number of examples of a step."""
    count = config.shots.count_at(step)
    return [
        problem if problem.shots is UNSET else replace(problem, shots=problem.shots[:count] or UNSET)
        for problem in problems
    ]


def has_enough(tables: Sequence[Grades | None], wanted: AdaptiveConfig) -> bool:
    """Return True if enough debates of a problem are right and enough are wrong. ``tables``: their grades.

    >>> right, both = ((False, True),), ((True, True), (True, "missing"))
    >>> has_enough([right, both], AdaptiveConfig(chunk=1, right=2, wrong=1))
    True
    >>> has_enough([right, both], AdaptiveConfig(chunk=1, right=2, wrong=2))
    False
    """
    last = [{row[-1] for row in table} for table in tables if table is not None]
    right = sum(True in grades for grades in last)
    wrong = sum(not grades.isdisjoint({False, "missing"}) for grades in last)
    return right >= wanted.right and wrong >= wanted.wrong


def group_names(problems: Sequence[Problem]) -> list[str]:
    """Return the group name of each problem of a step: its id, with a number if the id is repeated.

    >>> group_names([Problem("p", "?"), Problem("q", "?"), Problem("p", "?")])
    ['p', 'q', 'p (2)']
    """
    seen: Counter[str] = Counter()
    names: list[str] = []
    for problem in problems:
        seen[problem.id] += 1
        count = seen[problem.id]
        names.append(problem.id if count == 1 else f"{problem.id} ({count})")
    return names


def adaptive_metrics(
    groups: Sequence[str], correct: Sequence[Grades | None], train: TrainConfig
) -> dict[str, float]:
    """Return the debates per problem, the fraction saved, and the accuracy of the first chunks.

    Entry i of each argument belongs to debate i. The number of debates of a problem depends on their grades,
    so the mean over all debates is biased. The mean over the first chunk, which has a fixed size, is not.
    """
    tables = [
        [table for _, table in members]
        for _, members in groupby(zip(groups, correct, strict=True), key=lambda pair: pair[0])
    ]
    sizes = [len(group) for group in tables]
    first = [
        right_share(row[-1] for table in group[: train.chunk] for row in table or ()) for group in tables
    ]
    known = [share for share in first if share is not None]
    return {
        "sampling/group_size/mean": fmean(sizes),
        "sampling/group_size/min": float(min(sizes)),
        "sampling/group_size/max": float(max(sizes)),
        "sampling/saved": 1 - sum(sizes) / (len(sizes) * train.group_size),
    } | ({"sampling/accuracy": fmean(known)} if known else {})


def silent_groups(transitions: Sequence[Transition], config: Config, ema: Mapping[str, float]) -> int:
    """Return the number of groups without a signal. Running means do not change."""
    silent = 0
    for _, members in groupby(transitions, key=lambda transition: transition.group):
        group = list(members)
        advantages = turn_advantages(group, config.rewards, config.advantages, dict(ema)).turns
        silent += not groups_with_signal(group, advantages, config)
    return silent


def groups_with_signal(
    transitions: Sequence[Transition], advantages: Sequence[TurnAdvantage | None], config: Config
) -> set[int]:
    """Return the groups with a signal: at least one nonzero advantage from a deciding stream."""
    with_truth = {transition.group for transition in transitions if transition.truth is not None}
    return {
        transition.group
        for transition, part in zip(transitions, advantages, strict=True)
        if part is not None
        and any(getattr(part, name) for name in _deciding(config, truth=transition.group in with_truth))
    }


def _deciding(config: Config, *, truth: bool) -> Sequence[str]:
    """Return the parts of an advantage that decide whether a group has a signal.

    ``truth``: True if the group has truth.
    """
    rewards = config.rewards
    alone = (
        rewards.peer_weight != "routed" and rewards.mix == "advantages"
    )  # routed: votes replace missing truth
    counts = rewards.truth_weight and config.advantages.lambda_gen and alone
    return ("truth",) if truth and counts else ("generator", "judge", "format")
