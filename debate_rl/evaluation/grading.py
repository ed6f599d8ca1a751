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
"""Maximum number of characters before an answer that are searched for words that introduce it."""
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
    """Return a debate with the answers that ``mode`` finds and their scores, and the grades (N, R).

    A grade is True, False, "missing", or None without a verdict of the grader (time-out, crash). The grades
    are None for a problem of kind "open" or "rubric". ``tally`` counts statuses, answers decided by
    math-verify ("symbolic"), "microseconds", and the results of each mode of ``beside`` on the same
    solutions, as "right [mode]". Whether all boxed values of a solution count as its answer, or only the
    last, can depend on the gold answer. With ``hidden``, the stored answer does not depend on the gold
    answer: it is the answer that the mode finds.
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
    """Return only the grades of agents that learn."""
    if grades is None or not debate.protocol.seats:
        return grades
    return tuple(row for agent, row in enumerate(grades) if debate.protocol.learns(agent))


def grade_turn(environment: Environment, problem: Problem, turn: Turn, mode: Mode) -> Grade:
    """Return the grade of a turn's solution. Its ``extracted`` is the answer that the mode finds.

    The box of a tagged solution is read as in ``parse_turn``, and answers that another mode found before are
    ignored. A custom environment compares answers by its own rule; the mode only locates the answer.
    """
    if _is_found_by_mode(problem, turn, mode):
        return grade_text(environment, problem, solution_of(turn), mode)
    return _given(environment, problem, _tagged_answer(problem, turn))


def answer_of(environment: Environment, problem: Problem, turn: Turn, mode: Mode) -> str | None:
    """Return the answer that ``grade_turn`` would compare, without grading, or None without an answer."""
    if _is_found_by_mode(problem, turn, mode):
        return answer_in(environment, problem, solution_of(turn), mode)
    return _tagged_answer(problem, turn)


def answer_in(environment: Environment, problem: Problem, text: str, mode: Mode) -> str | None:
    """Return the answer that a mode finds in a text, without grading, or None without an answer."""
    own = own_environment(environment, problem)
    if isinstance(own, DataSetEnvironment):
        return own.find_answer(problem, text, mode=mode)
    return extract(text, mode=mode, choices=problem.choices).answer


def grade_text(environment: Environment, problem: Problem, text: str, mode: Mode) -> Grade:
    """Return the grade of the answer that a mode finds in a text. A custom environment compares it itself."""
    own = own_environment(environment, problem)
    if isinstance(own, DataSetEnvironment):
        return own.grade_reply(problem, text, mode=mode)
    return _given(own, problem, extract(text, mode=mode, choices=problem.choices).answer)


def own_environment(environment: Environment, problem: Problem) -> Environment:
    """Return the environment of a problem, which for a mixture is the one that the problem came from."""
    return environment.of(problem) if isinstance(environment, Mixture) else environment


def _is_found_by_mode(problem: Problem, turn: Turn, mode: Mode) -> bool:
    """Return whether the mode locates the answer. Otherwise it is the last box or the whole text."""
    return problem.kind not in WHOLE_RESPONSE and (mode != IN_A_BOX or turn.parsed.untagged is not UNSET)


def _tagged_answer(problem: Problem, turn: Turn) -> str | None:
    return turn.parsed.answer if problem.kind in WHOLE_RESPONSE else last_boxed(solution_of(turn))


def solution_of(turn: Turn) -> str:
    """Return the text of a turn's solution without thinking and programs, or "" without a solution."""
    span = turn.parsed.solution
    return span.of(turn.completion.stated) if span is not None else ""


def _given(environment: Environment, problem: Problem, answer: str | None) -> Grade:
    return replace(environment.grade(problem, answer), extracted=answer)


def stored_mode(mode: Mode) -> Mode | UnsetType:
    """Return the value of ``Record.mode``, which is stored only for modes other than the default."""
    return UNSET if mode == IN_A_BOX else mode


def reasoning_of(text: str, problem: Problem, mode: Mode = IN_A_BOX) -> str:
    r"""Return a solution up to the answer that the grader's mode finds, without the words that introduce it.

    Return the whole solution if there is no answer. Earlier mentions of the answer stay: they are reasoning.

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
    """Return the gold answer as it is scored (the first of several accepted texts), or None."""
    if problem.kind in WHOLE_RESPONSE | WITHOUT_TRUTH or problem.answer is None:
        return None
    return problem.answer.split("\n")[0] if problem.kind in ("text", "verbatim") else problem.answer


def agreement(environment: Environment, mode: Mode = IN_A_BOX) -> Agreed:
    """Return a function that checks, without grading, whether all turns of a round give the same answer.

    The answer of a solution is what ``mode`` finds. Two answers are the same if their keys are equal. A turn
    without an answer does not agree with any other turn.
    """
    key = key_of(environment)

    def agreed(problem: Problem, turns: Sequence[Turn]) -> bool:
        answers = [answer_of(environment, problem, turn, mode) for turn in turns]
        keys = {key(problem, answer) for answer in answers if answer is not None}
        return None not in answers and len(keys) == 1

    return agreed


@dataclass(frozen=True, slots=True)
class Pending:
    """Pending verdicts of a verifier model on the solutions of a debate that are not empty."""

    debate: Debate
    verifier: str
    threshold: float
    futures: Mapping[TurnId, Future[Verdict]]

    def verdicts(self) -> Verdicts:
        """Wait for all verdicts and return their table. VerifierError if the verifier model failed."""
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
    """A verifier model and its configuration. ``rubric``: the custom rubric, if any."""

    model: VerifierModel
    config: VerifierConfig
    rubric: str | None = None

    def begin(self, debate: Debate) -> Pending | None:
        """Start scoring a debate's solutions in the background. Return None if it scores none."""
        if not self.scores(debate.problem):
            return None
        from envs.rubrics.verdicts import CORRECTNESS

        rubric = self.rubric or CORRECTNESS  # used unless the problem has its own rubric
        texts = {turn.id: solution_text(debate.problem, turn) for turn in debate.turns if not turn.ballot}
        futures = {
            turn: self.model.score(debate.problem, text, rubric=rubric)
            for turn, text in texts.items()
            if text
        }
        return Pending(debate, self.model.name, self.config.threshold, futures)

    def scores(self, problem: Problem) -> bool:
        """Return whether the verifier model scores the solutions of a problem."""
        return problem.kind == "rubric" or (self.config.beside_truth and problem.kind != "open")

    def checked_tally(self) -> Counter[str]:
        """Return the counts since the last call. VerifierError if too few requests gave a verdict."""
        tally = self.model.take_tally()
        self.model.refuse_silent(tally)
        return tally


def open_verifying(config: Config) -> Verifying | None:
    """Return the verifier model of a configuration without loading it, or None if it has none."""
    model = open_verifier(config)
    return None if model is None else Verifying(model, config.verifier, config.verifier.own_rubric())


@contextmanager
def opened_verifying(config: Config, *, checked: bool = False) -> Iterator[Verifying | None]:
    """Yield the verifier model of a configuration and close it afterwards, or yield None without one.

    ``checked``: first check that the model replies.
    """
    verifying = open_verifying(config)
    if verifying is None:
        yield None
        return
    with closing(verifying.model):
        if checked:
            verifying.model.check()
        yield verifying


def asked_line(name: str, asked: Mapping[str, int]) -> str:
    """Return a line with a verifier model's numbers of requests, cached answers, tokens and verdicts.

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
    """Return the text of a turn's solution, or "" without one.

    If the whole response is the answer, a response that was cut off counts as no solution.
    """
    if problem.kind in WHOLE_RESPONSE:
        return (turn.parsed.answer or "").strip()
    span = turn.parsed.solution
    return span.of(turn.completion.text).strip() if span is not None else ""


@dataclass(frozen=True, slots=True)
class Graded:
    """A debate, the grades (N, R) of its solutions, and the verdicts of a verifier model if there is one.

    All grades are None for a problem of kind "rubric".
    """

    debate: Debate
    correct: Grades
    verdicts: Verdicts | None = None

    @property
    def truth(self) -> Grades | None:
        """The grades that a record stores: None for a problem without truth."""
        return None if self.debate.problem.kind in WITHOUT_TRUTH else self.correct


def graded(
    environment: Environment, debate: Debate, mode: Mode = IN_A_BOX, pending: Pending | None = None
) -> Graded:
    """Return a debate with its grades, after waiting for its ``pending`` verdicts.

    EnvironmentSpecError for an open problem, which has neither grades nor verdicts.
    """
    answered, table = grade_debate(environment, debate, mode=mode)
    verdicts = pending.verdicts() if pending is not None else None
    if table is None:
        if verdicts is None:
            raise EnvironmentSpecError(f"problem {debate.problem.id}: an open problem cannot be evaluated")
        table = tuple((None,) * len(row) for row in verdicts.scores)
    return Graded(answered, table, verdicts)


class BackgroundGrading:
    """Grades debates, stores the grades of debate i in ``done[i]``, and passes both to ``keep``.

    A grader may need seconds per answer, so all debates of an evaluation are graded in one background
    thread. An environment whose ``main_thread_only`` is true grades immediately instead. If the block ends
    with an error, debates that still wait are passed to ``keep`` ungraded. A verifier model starts scoring a
    debate when ``take`` receives it.
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
        """Grade a debate, now or later. An error in grading an earlier debate is raised here."""
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
