"""Grades of finished debates, ``correct[agent][round]``, and a grader that works while the policy samples."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from debate import Debate
from envs import Environment, EnvironmentSpecError, GradeStatus
from rewards import Truth

Grades = tuple[tuple[Truth, ...], ...]
Keep = Callable[[Debate, Grades | None], None]
"""Keeps a debate; None where nothing has graded it yet."""


def grade_debate(
    environment: Environment, debate: Debate, tally: Counter[str] | None = None
) -> Grades | None:
    """Return the verdict on every solution; None for a problem of kind "open".

    True, False, "missing", or None where the grader gave no verdict (time-out, crash). ``tally`` counts what
    the table does not hold: statuses, verdicts of math-verify ("symbolic"), and "microseconds".
    """
    if debate.problem.kind == "open":
        return None
    rounds = debate.protocol.num_rounds
    table: list[list[Truth]] = [[None] * rounds for _ in debate.personas]
    for turn in debate.turns:
        if not turn.ballot:
            grade = environment.grade(debate.problem, turn.parsed.answer)
            table[turn.id.agent][turn.id.round] = grade.verdict
            if tally is not None:
                tally[GradeStatus(grade.status).value] += 1
                tally["symbolic"] += grade.method.startswith("math_verify")
                tally["microseconds"] += round(grade.seconds * 1e6)
    return tuple(tuple(row) for row in table)


@dataclass(frozen=True, slots=True)
class Graded:
    """A debate and the verdicts on its solutions, (N, R)."""

    debate: Debate
    correct: Grades


def graded(environment: Environment, debate: Debate) -> Graded:
    """Return the debate with its verdicts; EnvironmentSpecError for an open problem, which has no truth."""
    table = grade_debate(environment, debate)
    if table is None:
        raise EnvironmentSpecError(f"problem {debate.problem.id}: an open problem cannot be evaluated")
    return Graded(debate, table)


class BackgroundGrading:
    """Takes debates by index and grades them into ``done[index]``; ``keep`` gets each with its verdicts.

    A grader may take seconds over an answer, so it works in a thread, all of an evaluation in the same one.
    An environment with a true ``main_thread_only`` grades at once. Left by an error, what still waits is kept
    ungraded.
    """

    def __init__(self, environment: Environment, keep: Keep, done: dict[int, Graded]) -> None:
        self.done = done
        self._environment, self._keep = environment, keep
        self._beside = not getattr(environment, "main_thread_only", False)
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._waiting: deque[tuple[Future[None], Debate]] = deque()

    def take(self, index: int, debate: Debate) -> None:
        """Grade a debate, now or soon; an error of an earlier one is raised here, before more is sampled."""
        if not self._beside:
            self._mark(index, debate)
            return
        self._waiting.append((self._thread.submit(self._mark, index, debate), debate))
        while self._waiting and self._waiting[0][0].done():
            self._waiting.popleft()[0].result()

    def _mark(self, index: int, debate: Debate) -> None:
        self.done[index] = graded(self._environment, debate)
        self._keep(debate, self.done[index].correct)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                for future, _ in self._waiting:
                    future.result()
        finally:
            self._thread.shutdown(cancel_futures=True)
            for future, debate in self._waiting:
                if future.cancelled():
                    self._keep(debate, None)
