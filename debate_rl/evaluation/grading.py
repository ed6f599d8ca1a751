"""Grades of finished debates, ``correct[agent][round]``, by the grader and by a verifier model."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from msgspec import UNSET, UnsetType

from debate import Debate, Problem, Turn
from debate.early_stop import Agreed
from debate.parsing import last_boxed
from debate.prompting.shown import holds_solutions
from debate.types import WHOLE_RESPONSE, WITHOUT_TRUTH, TurnId
from debate_rl.config import Config
from debate_rl.config.verifier import VerifierConfig
from debate_rl.engines import open_verifier
from envs import Environment, EnvironmentSpecError, Grade, GradeStatus, extract
from envs.answers.keys import key_of
from envs.grading.extraction import last_box
from envs.registry import DataSetEnvironment, Mixture
from envs.types import FAULTS, Mode
from rewards import Truth
from rewards.types import Score, Verdicts

if TYPE_CHECKING:
    from envs.rubrics.model import VerifierModel
    from envs.rubrics.verdicts import Verdict

Grades = tuple[tuple[Truth, ...], ...]
IN_A_BOX: Final[Mode] = "boxed"
LONGEST_LEAD = 80
"""Characters before an answer in which the words that lead to it are looked for."""
_LEAD = re.compile(
    r"(?:[\s$*{(\[:#]|\\[(\[]|\\(?:f?boxed|text|mathbf)|\b(?:so|thus|hence|therefore|and|the|final|answer|is)\b,?)+\Z",
    re.IGNORECASE,
)


def grade_debate(
    environment: Environment,
    debate: Debate,
    tally: Counter[str] | None = None,
    *,
    mode: Mode = IN_A_BOX,
    beside: Sequence[Mode] = (),
    hidden: bool = False,
) -> tuple[Debate, Grades | None]:
    """Return a debate with the answers that ``mode`` finds, their scores, and its verdicts, (N, R).

    A verdict is True, False, "missing", or None if the grader gave none (time-out, crash); there are none
    for a problem of kind "open" or "rubric". ``tally`` counts what the table does not hold: statuses,
    verdicts of math-verify ("symbolic"), "microseconds", and for each mode of ``beside`` what it says of
    the same solutions, as "right [mode]". ``hidden``: nothing else may depend on the gold answer, which can
    decide whether an answer is all boxes of a solution or the last one; then it is what the mode finds.
    """
    problem = debate.problem
    if problem.kind in WITHOUT_TRUTH:
        return debate, None
    table: list[list[Truth]] = [[None] * debate.protocol.num_rounds for _ in debate.personas]
    turns = list(debate.turns)
    for index, turn in enumerate(turns):
        if not turn.ballot:
            grade = grade_turn(environment, problem, turn, mode)
            table[turn.id.agent][turn.id.round] = grade.verdict
            answer = answer_of(environment, problem, turn, mode) if hidden else grade.extracted
            score = grade.score if grade.parts or grade.share is not None else None
            if turn.parsed.answer != answer or score is not None or turn.score is not UNSET:
                parsed = replace(turn.parsed, answer=answer)
                turns[index] = replace(turn, parsed=parsed, score=UNSET if score is None else score)
            if tally is not None:
                tally[GradeStatus(grade.status).value] += 1
                tally["symbolic"] += any(
                    part.startswith("math_verify") for part in grade.method.split("/", 1)
                )
                tally["microseconds"] += round(grade.seconds * 1e6)
                for other in beside:
                    verdict = grade_turn(environment, problem, turn, other).verdict
                    tally[f"right [{other}]"] += verdict is True
                    tally[f"missing [{other}]"] += verdict == "missing"
                    tally[f"graded [{other}]"] += verdict is not None
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
    if _is_found_by_mode(problem, turn, mode):
        return grade_text(environment, problem, solution_of(turn), mode)
    return _given(environment, problem, _tagged_answer(problem, turn))


def answer_of(environment: Environment, problem: Problem, turn: Turn, mode: Mode) -> str | None:
    """Return the answer that ``grade_turn`` compares; None if there is none. Nothing is graded."""
    if _is_found_by_mode(problem, turn, mode):
        return answer_in(environment, problem, solution_of(turn), mode)
    return _tagged_answer(problem, turn)


def answer_in(environment: Environment, problem: Problem, text: str, mode: Mode) -> str | None:
    """Return the answer that a mode finds in a text; None if there is none. Nothing is graded."""
    own = own_environment(environment, problem)
    if isinstance(own, DataSetEnvironment):
        return own.find_answer(problem, text, mode=mode)
    return extract(text, mode=mode, choices=problem.choices).answer


def grade_text(environment: Environment, problem: Problem, text: str, mode: Mode) -> Grade:
    """Return the grade of the answer that a mode finds in a text; an environment of one's own compares."""
    own = own_environment(environment, problem)
    if isinstance(own, DataSetEnvironment):
        return own.grade_reply(problem, text, mode=mode)
    return _given(own, problem, extract(text, mode=mode, choices=problem.choices).answer)


def own_environment(environment: Environment, problem: Problem) -> Environment:
    """Return what a problem of a mixture came from, and any other environment as it is."""
    return environment.of(problem) if isinstance(environment, Mixture) else environment


def _is_found_by_mode(problem: Problem, turn: Turn, mode: Mode) -> bool:
    """Return whether a mode looks for the answer; else it is the box of the solution, or all of it."""
    return problem.kind not in WHOLE_RESPONSE and (mode != IN_A_BOX or turn.parsed.untagged is not UNSET)


def _tagged_answer(problem: Problem, turn: Turn) -> str | None:
    return turn.parsed.answer if problem.kind in WHOLE_RESPONSE else last_boxed(solution_of(turn))


def solution_of(turn: Turn) -> str:
    """Return the text of a turn's solution; "" if it has none. Thinking and programs are no part of it."""
    span = turn.parsed.solution
    return span.of(turn.completion.stated) if span is not None else ""


def _given(environment: Environment, problem: Problem, answer: str | None) -> Grade:
    return replace(environment.grade(problem, answer), extracted=answer)


def stored_mode(mode: Mode) -> Mode | UnsetType:
    """Return ``Record.mode``: stored only where answers are not the boxes of their sections."""
    return UNSET if mode == IN_A_BOX else mode


def reasoning_of(text: str, problem: Problem, mode: Mode = IN_A_BOX) -> str:
    r"""Return a solution up to where the grader's mode finds its answer, and without what leads to it.

    All of it if there is no answer. What the reasoning states of the answer before stays: it is reasoning.

    >>> reasoning_of(r"3 + 4 = 7. So the answer is \boxed{7}.", Problem("p", "3 + 4?", "7"))
    '3 + 4 = 7.'
    """
    if mode == IN_A_BOX:
        span = last_box(text)
    else:
        letters = "".join(chr(ord("A") + index) for index in range(len(problem.choices)))
        span = extract(text, mode=mode, letters=letters, choices=problem.choices).span
    if span is None:
        return text
    near = max(span.start - LONGEST_LEAD, 0)
    return text[:near] + _LEAD.sub("", text[near : span.start])


def gold_of(problem: Problem) -> str | None:
    """Return the gold answer as it is scored, the first where several texts are accepted; None without it."""
    if problem.kind in WHOLE_RESPONSE | WITHOUT_TRUTH or problem.answer is None:
        return None
    return problem.answer.split("\n")[0] if problem.kind in ("text", "verbatim") else problem.answer


def agreement(environment: Environment, mode: Mode = IN_A_BOX) -> Agreed:
    """Return what tells whether all turns of a round give one answer; nothing is graded for it.

    An answer is what ``mode`` finds in a solution, the same where its key is; a turn without one agrees with
    nobody.
    """
    key = key_of(environment)

    def agreed(problem: Problem, turns: Sequence[Turn]) -> bool:
        answers = [answer_of(environment, problem, turn, mode) for turn in turns]
        keys = {key(problem, answer) for answer in answers if answer is not None}
        return None not in answers and len(keys) == 1

    return agreed


@dataclass(frozen=True, slots=True)
class Pending:
    """Verdicts of a verifier model that are being waited for, on a debate's solutions that have a text."""

    debate: Debate
    verifier: str
    threshold: float
    futures: Mapping[TurnId, Future[Verdict]]

    def verdicts(self) -> Verdicts:
        """Return the table once all are there; VerifierError if the verifier model is gone."""
        protocol = self.debate.protocol
        empty: list[Score] = [
            "missing" if holds_solutions(protocol, round_) else None for round_ in range(protocol.num_rounds)
        ]
        rows = [list(empty) for _ in self.debate.personas]
        for turn, future in self.futures.items():
            rows[turn.agent][turn.round] = future.result().score
        return Verdicts(self.verifier, self.threshold, tuple(map(tuple, rows)))


@dataclass(frozen=True, slots=True)
class Verifying:
    """A verifier model with what a run's configuration says of it; ``rubric``: the recipe's own."""

    model: VerifierModel
    config: VerifierConfig
    rubric: str | None = None

    def begin(self, debate: Debate) -> Pending | None:
        """Have a debate's solutions scored while others are held; None if none of it is to be."""
        if not self.scores(debate.problem):
            return None
        from envs.rubrics.verdicts import CORRECTNESS

        rubric = self.rubric or CORRECTNESS  # a problem of kind "rubric" has its own, or there is this one
        texts = {turn.id: solution_text(debate.problem, turn) for turn in debate.turns if not turn.ballot}
        futures = {
            turn: self.model.score(debate.problem, text, rubric=rubric)
            for turn, text in texts.items()
            if text
        }
        return Pending(debate, self.model.name, self.config.threshold, futures)

    def scores(self, problem: Problem) -> bool:
        """Return whether solutions of a problem are to be scored."""
        return problem.kind == "rubric" or (self.config.beside_truth and problem.kind != "open")

    def checked_tally(self) -> Counter[str]:
        """Return what was counted since the last call; VerifierError if too little came of it."""
        tally = self.model.take_tally()
        self.model.refuse_silent(tally)
        return tally


def open_verifying(config: Config) -> Verifying | None:
    """Return the verifier model of a configuration, not yet loaded; None if it has none."""
    model = open_verifier(config)
    return None if model is None else Verifying(model, config.verifier, config.verifier.own_rubric())


@contextmanager
def opened_verifying(config: Config, *, checked: bool = False) -> Iterator[Verifying | None]:
    """Yield the verifier model of a configuration, and close it; or None. ``checked``: it has answered."""
    verifying = open_verifying(config)
    if verifying is None:
        yield None
        return
    with closing(verifying.model):
        if checked:
            verifying.model.check()
        yield verifying


def asked_line(name: str, asked: Mapping[str, int]) -> str:
    """Return in one line what a verifier model was asked and the result of it.

    >>> asked_line("m", {"requests": 8, "cached": 2, "tokens": 960, "verdicts": 9, "several": 1})[:70]
    'verifier model m (no ground truth): 8 requests, 2 answers cached, 960 '
    """
    faults = {fault: count for fault in FAULTS if (count := asked.get(fault, 0))}
    words = ", ".join(f"{count} {fault}" for fault, count in faults.items())
    tokens = asked.get("prompt_tokens", 0) + asked.get("tokens", 0)
    return (
        f"verifier model {name} (no ground truth): {asked.get('requests', 0):,} requests, "
        f"{asked.get('cached', 0):,} answers cached, {tokens:,} tokens; "
        f"{asked.get('verdicts', 0):,} verdicts, {sum(faults.values())} without{words and f' ({words})'}"
    )


def solution_text(problem: Problem, turn: Turn) -> str:
    """Return a turn's solution; "" without one, and if it is cut off and all of it is the answer."""
    if problem.kind in WHOLE_RESPONSE:
        return (turn.parsed.answer or "").strip()
    span = turn.parsed.solution
    return span.of(turn.completion.text).strip() if span is not None else ""


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


def graded(
    environment: Environment, debate: Debate, mode: Mode = IN_A_BOX, pending: Pending | None = None
) -> Graded:
    """Return the debate with its grades and, once they are there, its ``pending`` verdicts.

    EnvironmentSpecError for an open problem, which has neither.
    """
    answered, table = grade_debate(environment, debate, mode=mode)
    verdicts = pending.verdicts() if pending is not None else None
    if table is None:
        if verdicts is None:
            raise EnvironmentSpecError(f"problem {debate.problem.id}: an open problem cannot be evaluated")
        table = tuple((None,) * len(row) for row in verdicts.scores)
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
        keep: Callable[[Debate, Graded | None], None],
        done: dict[int, Graded],
        mode: Mode = IN_A_BOX,
        verifying: Verifying | None = None,
    ) -> None:
        self.done = done
        self._environment, self._keep, self._verifying = environment, keep, verifying
        self._mode: Mode = mode
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._waiting: deque[tuple[Future[None], Debate]] = deque()

    def take(self, index: int, debate: Debate) -> None:
        """Grade a debate, now or soon; an error of an earlier one is raised here, before more is sampled."""
        pending = self._verifying.begin(debate) if self._verifying else None
        if getattr(self._environment, "main_thread_only", False):
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
