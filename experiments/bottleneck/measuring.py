"""How much of the answer goes through the reasoning: what a reader makes of it alone, whole and corrupted.

The reader does not see the question, so where it answers right the reasoning is enough. Where it answers as
well once the reasoning is corrupted, the reasoning did not carry the answer [arXiv 2404.18988, section 5].
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from debate.seeds import derive_seed
from debate.types import Message, Problem, SampleRequest, TurnId
from debate_rl.config import Config
from debate_rl.evaluation.grading import gold_of, reasoning_of, solution_of
from debate_rl.inference.local import LocalPolicy
from debate_rl.likelihood import AnswerRows, as_it_is, mean_logprobs
from debate_rl.metrics.intervals import Estimate, clustered_mean
from envs.registry import environment_of
from envs.types import Mode
from experiments.bottleneck.corruption import CORRUPTIONS
from learner.update.forward import compute_type
from transcripts import Record

SHARES = (0.2, 0.5, 1.0)
"""How much is corrupted; of the paper's 20, 40, 60, 80 and 100% the least, the middle and all."""
LONGEST_ANSWER = 32
"""Tokens of an answer that the reader writes."""


@dataclass(frozen=True, slots=True)
class Solution:
    """What a reader is shown of a solution, and whether its own answer was right (None: not graded)."""

    problem: Problem
    text: str
    right: bool | None


@dataclass(frozen=True, slots=True)
class Line:
    """One way to show the reasoning; a share of 0 is as it was written.

    ``accuracy``: of the answer that the reader writes after it; ``logprob``: mean log-probability of a token
    of the gold answer, in nats. ``*_drop``: the paired difference to the whole reasoning; None for that.
    """

    corruption: str
    share: float
    accuracy: Estimate
    logprob: Estimate
    accuracy_drop: Estimate | None = None
    logprob_drop: Estimate | None = None


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """What a reader made of some solutions.

    ``own``: accuracy of the solutions' own answers; None if none was graded. ``left_out``: solutions that
    did not fit the reader's context in some form.
    """

    own: Estimate | None
    lines: tuple[Line, ...]
    left_out: int


def solutions_of(records: Iterable[Record], config: Config, *, problems: int) -> list[Solution]:
    """Return the last round's solutions to the first problems with a gold answer."""
    mode = config.grader.final
    whole = config.likelihood.reads == "solution"
    chosen: dict[str, list[Solution]] = {}
    for record in records:
        problem = record.debate.problem
        if gold_of(problem) is None or (problem.id not in chosen and len(chosen) == problems):
            continue
        chosen.setdefault(problem.id, []).extend(_last(record, mode, whole=whole))
    return [solution for of_problem in chosen.values() for solution in of_problem]


def _last(record: Record, mode: Mode, *, whole: bool) -> Iterator[Solution]:
    debate = record.debate
    last = max((turn.id.round for turn in debate.turns if not turn.ballot), default=0)
    for turn in debate.turns:
        if turn.id.round == last and not turn.ballot:
            grade = record.correct[turn.id.agent][last] if record.correct is not None else None
            text = solution_of(turn)
            shown = text if whole else reasoning_of(text, debate.problem, mode)
            yield Solution(debate.problem, shown, None if grade is None else grade is True)


def measure(
    solutions: Sequence[Solution], model: Any, tokenizer: Any, config: Config, *, seed: int = 0
) -> Bottleneck:
    """Return what the model, as reader, makes of solutions; ValueError if none can be read."""
    reader = _Reader(model, tokenizer, config)
    ways = [("", 0.0), *((name, share) for name in CORRUPTIONS for share in SHARES)]
    shown = [(one, [corrupted(one, way, index, seed) for way in ways]) for index, one in enumerate(solutions)]
    fitting = [(one, texts) for one, texts in shown if all(reader.fits(one.problem, text) for text in texts)]
    if not fitting:
        raise ValueError("no solution of a problem with a gold answer fits the reader's context")
    problems = [one.problem for one, _ in fitting]
    readings = [
        reader.read(list(zip(problems, texts, strict=True)))
        for texts in zip(*(texts for _, texts in fitting), strict=True)
    ]
    ids = [problem.id for problem in problems]
    lines = [_line(*way, read, readings[0], ids) for way, read in zip(ways, readings, strict=True)]
    graded = [(float(one.right), one.problem.id) for one, _ in fitting if one.right is not None]
    own = clustered_mean([right for right, _ in graded], [id for _, id in graded]) if graded else None
    return Bottleneck(own, tuple(lines), len(solutions) - len(fitting))


def corrupted(solution: Solution, way: tuple[str, float], index: int, seed: int) -> str:
    """Return the reasoning of a solution as one way has it; the same for the same seed and index."""
    name, share = way
    if not name:
        return solution.text
    rng = Random(derive_seed(seed, "bottleneck", solution.problem.id, index, name, str(share)))
    return CORRUPTIONS[name](solution.text, share, rng)


@dataclass(frozen=True, slots=True)
class _Read:
    """Of each solution: 1.0 if the reader's answer is right, and the gold answer's log-probability."""

    right: list[float]
    logprobs: list[float]


def _line(name: str, share: float, read: _Read, whole: _Read, ids: Sequence[str]) -> Line:
    """Return a line of the table; differences are paired by solution, intervals clustered by problem."""
    right = clustered_mean(read.right, ids)
    logprob = clustered_mean(read.logprobs, ids, signed=True)
    if read is whole:
        return Line(name, share, right, logprob)
    drops = (
        clustered_mean([a - b for a, b in zip(now, before, strict=True)], ids, signed=True)
        for now, before in ((read.right, whole.right), (read.logprobs, whole.logprobs))
    )
    return Line(name, share, right, logprob, *drops)


class _Reader:
    """A model that reads reasoning: it scores the gold answer after it, and writes its own."""

    def __init__(self, model: Any, tokenizer: Any, config: Config) -> None:
        self._model, self._config = model, config
        self._rows = AnswerRows(model, tokenizer, config.likelihood)
        self._compute = compute_type(model, config.learner.compute)
        self._writer = LocalPolicy(
            model,
            tokenizer,
            chat=False,
            raw_prompt=as_it_is,
            batch_size=config.train.sample_batch_size,
            compute=self._compute,
        )

    def fits(self, problem: Problem, text: str) -> bool:
        """Return whether the prompt fits the context with the gold answer, and with the reader's own."""
        row = self._rows.row(problem, text)
        return row is not None and len(row.input_ids) + LONGEST_ANSWER <= self._rows.context

    def read(self, texts: Sequence[tuple[Problem, str]]) -> _Read:
        """Return what the reader makes of texts that fit."""
        rows = [row for problem, text in texts if (row := self._rows.row(problem, text)) is not None]
        most = self._config.learner.micro_batch_tokens
        logprobs = mean_logprobs(self._model, rows, max_tokens=most, compute=self._compute)
        return _Read([self._right(*one) for one in zip(texts, self._answers(texts), strict=True)], logprobs)

    def _answers(self, texts: Sequence[tuple[Problem, str]]) -> list[str]:
        """Return what the reader writes after each text, greedily, up to what follows an answer."""
        requests = [
            SampleRequest(
                (Message("user", self._config.likelihood.parts(text, "")[0].rstrip(" ")),),
                temperature=0.0,
                max_tokens=LONGEST_ANSWER,
                stop=tuple(filter(None, (self._config.likelihood.parts("", "")[1],))),
                seed=0,
                debate=f"{index:06d}",
                turn=TurnId(0, 0),
            )
            for index, (_, text) in enumerate(texts)
        ]
        return [completion.text for completion in self._writer.sample_all(requests)]

    def _right(self, shown: tuple[Problem, str], answer: str) -> float:
        end = self._config.likelihood.parts("", "")[1]
        given = answer.partition(end)[0] if end else answer
        return float(environment_of(shown[0]).grade(shown[0], given.strip()).verdict is True)
