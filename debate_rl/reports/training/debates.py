"""What reports read of some stored debates: rewards, texts, judgment rows, causes of wrong solutions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import isfinite
from random import Random

from debate import Debate, Problem
from debate_rl.alarms.metrics_file import STREAMS
from debate_rl.reports.figures.study import Study
from envs.causes.rules import CauseName, cause_of
from rewards import Rewards
from transcripts import Record
from transcripts.causes import wrong_replies

MOST_WRONG = 20
"""Debates of a step of which one wrong solution is asked for its cause."""


@dataclass(frozen=True, slots=True)
class WrongSolution:
    """A wrong solution: in which debate, to what problem, its answer, why it is wrong, and what shows it."""

    step: int
    debate: str
    problem: Problem
    answer: str | None
    cause: CauseName
    quote: str


@dataclass(slots=True)
class Sample:
    """What was read of some debates, evenly over the steps.

    ``rewards`` by stream: (step, value) of each turn; ``study`` the judgment rows; ``texts`` by problem id:
    (step, text in round 0); ``wrong``: wrong solutions with their causes, one of a debate, up to 20 of a
    step.
    """

    study: Study = field(default_factory=Study)
    rewards: dict[str, list[tuple[int, float]]] = field(default_factory=dict[str, list[tuple[int, float]]])
    texts: dict[str, list[tuple[int, str]]] = field(default_factory=dict[str, list[tuple[int, str]]])
    wrong: list[WrongSolution] = field(default_factory=list[WrongSolution])
    asked: Counter[int] = field(default_factory=Counter[int])

    def look(self, step: int, id: str, record: Record) -> None:
        """Take what a debate says."""
        self.study.add(record)
        self._add_texts(record.debate, step)
        self._add_rewards(record.rewards, step)
        if self.asked[step] < MOST_WRONG:
            self._add_cause(step, id, record)

    def _add_cause(self, step: int, id: str, record: Record) -> None:
        """Add the cause of one wrong solution of a debate, drawn by its seed."""
        wrong = list(wrong_replies(record))
        if not wrong:
            return
        turn, reply = Random(record.debate.seed).choice(wrong)
        cause = cause_of(reply)
        quote = cause.where.of(reply.solution) if cause.where else ""
        answer, problem = turn.parsed.answer, record.debate.problem
        self.wrong.append(WrongSolution(step, id, problem, answer, cause.name, quote))
        self.asked[step] += 1

    def _add_texts(self, debate: Debate, step: int) -> None:
        for turn in debate.turns:
            texts = self.texts.setdefault(debate.problem.id, []) if turn.id.round == 0 else None
            if texts is not None and len(texts) < 20:
                texts.append((step, turn.completion.text[:1000]))

    def _add_rewards(self, rewards: Rewards | None, step: int) -> None:
        for stream in STREAMS if rewards else ():
            for row in getattr(rewards, stream):
                for value in row:
                    if value is not None and isfinite(value):
                        self.rewards.setdefault(stream, []).append((step, float(value)))
