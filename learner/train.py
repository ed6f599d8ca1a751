"""The loop: problems -> debates -> truth -> rewards -> advantages -> rows -> new weights.

Everything a step does is a pure function of the configuration, the weights and the step's number, so the same
seed gives the same run, and a run that stopped goes on from its newest checkpoint.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from debate import Debate, run_debates
from debate.seeds import derive_seed
from envs.sameness import key_of
from learner.advantages import turn_advantages
from learner.config import Config
from learner.controls import controlled
from learner.curriculum import problems_of_step
from learner.debate_metrics import debate_metrics
from learner.grading import grade_debate
from learner.records import step_records
from learner.rows import make_rows
from learner.session import Session, open_session
from learner.stops import Stopped
from learner.trainer_state import generators_kept_on
from learner.types import TrajectoryGroup, group_debates
from rewards import Rewards, score_debate
from transcripts import write_step


def train(config: Config) -> Session:
    """Train from a configuration, or go on with the run in its folder; return the session at its end."""
    with open_session(config) as session:
        train_steps(session)
    return session


def train_steps(session: Session) -> None:
    """Do the steps that are left of the run.

    At a signal the debates that are being held are given up, a step that is being learnt from is finished,
    what is finished is saved, and Stopped is raised.
    """
    try:
        for step in range(session.step, session.config.train.steps):
            with session.stops.held():
                session.finish_step(step, train_step(session, step))
    except Stopped as stop:
        if not stop.at_once:
            session.keep(stop)
        raise


def train_step(session: Session, step: int) -> dict[str, float]:
    """Do one step of the run and return its metrics."""
    config, clock = session.config, Clock()
    size = config.train.problems_per_step
    problems = problems_of_step(session.data.train, step, size=size, seed=config.seed)
    repeated = [problem for problem in problems for _ in range(config.train.debates_per_problem)]
    seed = derive_seed(config.seed, "debates", step)
    with generators_kept_on(Stopped), session.stops.at_once():
        live = config.train.max_live
        debates = run_debates(repeated, session.policy, config.debate, seed=seed, max_live=live)
    clock.lap("rollout")

    graded: Counter[str] = Counter()
    key = key_of(session.data.environment)
    dealt = derive_seed(config.seed, "control", step)
    debates = controlled(debates, config.train.control, key=key, seed=dealt)
    correct = [grade_debate(session.data.environment, debate, graded) for debate in debates]
    rewards = [score_debate(d, c, config.rewards) for d, c in zip(debates, correct, strict=True)]
    groups = _groups(debates, rewards, config.train.debates_per_problem)
    advantages = turn_advantages(groups, config.rewards, config.advantages, session.ema)
    clock.lap("reward")

    rows = make_rows(groups, advantages)
    learnt = session.learner.step(rows)
    session.publish(step + 1)
    clock.lap("learn")

    records = step_records(step, debates, correct, rewards, advantages)
    write_step(session.folder.transcripts, step, records, tokens=config.logging.transcript_tokens)
    session.show(step, records)
    clock.lap("record")
    figures = debate_metrics(debates, correct, rewards, grader=graded, key=key) | advantages.metrics | learnt
    speed = {"tokens_per_second": figures["tokens/generated"] / clock.seconds["seconds/rollout"]}
    return figures | speed | clock.seconds


def _groups(debates: Sequence[Debate], rewards: Sequence[Rewards], size: int) -> list[TrajectoryGroup]:
    """Return one group for each problem: ``size`` debates that stand together."""
    starts = range(0, len(debates), size)
    return [group_debates(debates[i : i + size], rewards[i : i + size]) for i in starts]


class Clock:
    """Wall seconds by phase: ``lap`` gives the time since the last lap to a phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, phase: str) -> None:
        """End a phase."""
        now = time.perf_counter()
        self.seconds[f"seconds/{phase}"] = now - self._last
        self._last = now
