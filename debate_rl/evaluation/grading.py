"""Grades of finished debates, ``correct[agent][round]``, and a grader that works while the policy samples."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Final, Self

from msgspec import UNSET, UnsetType

from debate import Debate, Problem, Turn
from debate.parsing import last_boxed
from debate.types import WHOLE_RESPONSE, WITHOUT_TRUTH
from debate_rl.evaluation.verifying import Pending, Verifying
from envs import Environment, EnvironmentSpecError, Grade, GradeStatus, extract
from envs.mixture import Mixture
from envs.registry import DataSetEnvironment
from envs.types import Mode
from rewards import Truth
from rewards.types import Verdicts

Grades = tuple[tuple[Truth, ...], ...]
IN_A_BOX: Final[Mode] = "boxed"


def grade_debate(
    environment: Environment,
    debate: Debate,
    tally: Counter[str] | None = None,
    *,
    mode: Mode = IN_A_BOX,
    beside: Sequence[Mode] = (),
    hidden: bool = False,
) -> tuple[Debate, Grades | None]:
    """Return a debate with what ``mode`` finds as its answers and their scores, and its verdicts, (N, R).

    A verdict is True, False, "missing", or None where the grader gave none (time-out, crash); there are none
    for a problem of kind "open" or "rubric". ``tally`` counts what the table does not hold: statuses,
    verdicts of math-verify ("symbolic"), "microseconds", and for each mode of ``beside`` what it says of
    the same solutions, as "right [mode]". ``hidden``: nothing else may depend on the gold answer, which can
    decide whether an answer is all boxes of a solution or the last one; then it is what the mode finds.
    """
    if debate.problem.kind in WITHOUT_TRUTH:
        return debate, None
    table: list[list[Truth]] = [[None] * debate.protocol.num_rounds for _ in debate.personas]
    turns = list(debate.turns)
    for index, turn in enumerate(turns):
        if not turn.ballot:
            grade = grade_turn(environment, debate.problem, turn, mode)
            table[turn.id.agent][turn.id.round] = grade.verdict
            answer = answer_of(environment, debate.problem, turn, mode) if hidden else grade.extracted
            turns[index] = _with_grade(turn, replace(grade, extracted=answer))
            if tally is not None:
                _count(tally, grade)
                for other in beside:
                    _count_beside(tally, other, grade_turn(environment, debate.problem, turn, other))
    return replace(debate, turns=tuple(turns)), tuple(map(tuple, table))


def of_learners(debate: Debate, grades: Grades | None) -> Grades | None:
    """Return the grades of the agents that learn."""
    if grades is None or not debate.protocol.seats:
        return grades
    return tuple(row for agent, row in enumerate(grades) if debate.protocol.learns(agent))


def grade_turn(environment: Environment, problem: Problem, turn: Turn, mode: Mode) -> Grade:
    """Return the grade of a turn's solution; ``extracted`` is the answer that the mode finds in it.

    A tagged solution's box is read as ``parse_turn`` does; what another mode found before does not count. An
    environment of one's own compares as it does; a mode says only where its answer is.
    """
    if not _is_found_by_mode(problem, turn, mode):
        return _given(environment, problem, _tagged_answer(problem, turn))
    return grade_text(environment, problem, _solution(turn), mode)


def answer_of(environment: Environment, problem: Problem, turn: Turn, mode: Mode) -> str | None:
    """Return the answer that ``grade_turn`` compares; None where there is none. Nothing is graded."""
    if not _is_found_by_mode(problem, turn, mode):
        return _tagged_answer(problem, turn)
    return answer_in(environment, problem, _solution(turn), mode)


def answer_in(environment: Environment, problem: Problem, text: str, mode: Mode) -> str | None:
    """Return the answer that a mode finds in a text; None where there is none. Nothing is graded."""
    own = _own_environment(environment, problem)
    if isinstance(own, DataSetEnvironment):
        return own.find_answer(problem, text, mode=mode)
    return extract(text, mode=mode, choices=problem.choices).answer


def _is_found_by_mode(problem: Problem, turn: Turn, mode: Mode) -> bool:
    """Return whether a mode looks for the answer; else it is the box of the solution, or all of it."""
    return problem.kind not in WHOLE_RESPONSE and (mode != IN_A_BOX or turn.parsed.untagged is not UNSET)


def _tagged_answer(problem: Problem, turn: Turn) -> str | None:
    return turn.parsed.answer if problem.kind in WHOLE_RESPONSE else last_boxed(_solution(turn))


def _solution(turn: Turn) -> str:
    """Return the text of a turn's solution, "" without one."""
    span = turn.parsed.solution
    return span.of(turn.completion.stated) if span is not None else ""


def _given(environment: Environment, problem: Problem, answer: str | None) -> Grade:
    return replace(environment.grade(problem, answer), extracted=answer)


def grade_text(environment: Environment, problem: Problem, text: str, mode: Mode) -> Grade:
    """Return the grade of the answer that a mode finds in a text; an environment of one's own compares."""
    environment = _own_environment(environment, problem)
    if isinstance(environment, DataSetEnvironment):
        return environment.grade_reply(problem, text, mode=mode)
    found = extract(text, mode=mode, choices=problem.choices).answer
    return replace(environment.grade(problem, found), extracted=found)


def _own_environment(environment: Environment, problem: Problem) -> Environment:
    """Return what a problem of a mixture came from, and any other environment as it is."""
    return environment.of(problem) if isinstance(environment, Mixture) else environment


def stored_mode(mode: Mode) -> Mode | UnsetType:
    """Return ``Record.mode``: stored only where answers are not the boxes of their sections."""
    return UNSET if mode == IN_A_BOX else mode


def _with_grade(turn: Turn, grade: Grade) -> Turn:
    """Return the turn with the answer that was graded, and its score where the grade measures one."""
    score = grade.score if grade.parts or grade.share is not None else None
    if turn.parsed.answer == grade.extracted and score is None and turn.score is UNSET:
        return turn
    parsed = replace(turn.parsed, answer=grade.extracted)
    return replace(turn, parsed=parsed, score=UNSET if score is None else score)


def _count(tally: Counter[str], grade: Grade) -> None:
    tally[GradeStatus(grade.status).value] += 1
    tally["symbolic"] += any(part.startswith("math_verify") for part in grade.method.split("/", 1))
    tally["microseconds"] += round(grade.seconds * 1e6)


def _count_beside(tally: Counter[str], mode: Mode, grade: Grade) -> None:
    for name, counts in (("right", True), ("missing", "missing")):
        tally[f"{name} [{mode}]"] += grade.verdict == counts
    tally[f"graded [{mode}]"] += grade.verdict is not None


@dataclass(frozen=True, slots=True)
class Graded:
    """A debate, the grades of its solutions, (N, R), and what a verifier model says of them, if one is asked.

    A problem of kind "rubric" has no grades: all are None.
    """

    debate: Debate
    correct: Grades
    verdicts: Verdicts | None = None

    @property
    def truth(self) -> Grades | None:
        """The grades as a record has them: None for a problem without truth."""
        return None if self.debate.problem.kind in WITHOUT_TRUTH else self.correct


Keep = Callable[[Debate, Graded | None], None]
"""Keeps a debate; None where nothing has graded it yet."""


def graded(
    environment: Environment, debate: Debate, mode: Mode = IN_A_BOX, pending: Pending | None = None
) -> Graded:
    """Return the debate with its grades and, once they are there, its ``pending`` verdicts.

    EnvironmentSpecError for an open problem, which has neither.
    """
    answered, table = grade_debate(environment, debate, mode=mode)
    verdicts = pending.verdicts() if pending is not None else None
    if table is None and verdicts is not None:
        return Graded(answered, tuple((None,) * len(row) for row in verdicts.scores), verdicts)
    if table is None:
        raise EnvironmentSpecError(f"problem {debate.problem.id}: an open problem cannot be evaluated")
    return Graded(answered, table, verdicts)


class BackgroundGrading:
    """Takes debates by index and grades them into ``done[index]``; ``keep`` gets each with its verdicts.

    A grader may take seconds over an answer, so it works in a thread, all of an evaluation in the same one.
    An environment with a true ``main_thread_only`` grades at once. Left by an error, what still waits is kept
    ungraded. A verifier model begins with a debate when it is taken.
    """

    def __init__(
        self,
        environment: Environment,
        keep: Keep,
        done: dict[int, Graded],
        mode: Mode = IN_A_BOX,
        verifying: Verifying | None = None,
    ) -> None:
        self.done = done
        self._environment, self._keep = environment, keep
        self._mode: Mode = mode
        self._verifying = verifying
        self._beside = not getattr(environment, "main_thread_only", False)
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._waiting: deque[tuple[Future[None], Debate]] = deque()

    def take(self, index: int, debate: Debate) -> None:
        """Grade a debate, now or soon; an error of an earlier one is raised here, before more is sampled."""
        pending = self._verifying.begin(debate) if self._verifying else None
        if not self._beside:
            self._mark(index, debate, pending)
            return
        self._waiting.append((self._thread.submit(self._mark, index, debate, pending), debate))
        while self._waiting and self._waiting[0][0].done():
            self._waiting.popleft()[0].result()

    def _mark(self, index: int, debate: Debate, pending: Pending | None) -> None:
        done = self.done[index] = graded(self._environment, debate, self._mode, pending)
        self._keep(done.debate, done)

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
