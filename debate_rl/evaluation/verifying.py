"""Debates before a verifier model: what it is to score of them, and the table of its verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass

from debate import Debate, Problem, Turn
from debate.prompting.shown import holds_solutions
from debate.types import WHOLE_RESPONSE, TurnId
from debate_rl.config import Config
from debate_rl.config.verifier import VerifierConfig
from debate_rl.engines import open_verifier
from envs.rubrics.model import VerifierModel
from envs.rubrics.prompts import CORRECTNESS
from envs.rubrics.verdicts import FAULTS, Verdict
from rewards.types import Score, Verdicts


@dataclass(frozen=True, slots=True)
class Pending:
    """Verdicts that are being waited for, on a debate's solutions that have a text."""

    debate: Debate
    verifier: str
    threshold: float
    futures: Mapping[TurnId, Future[Verdict]]

    def verdicts(self) -> Verdicts:
        """Return the table once all are there; VerifierError where the verifier model is gone."""
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
    """A verifier model with what a run's configuration says of it."""

    model: VerifierModel
    config: VerifierConfig
    rubric: str | None = None
    """The recipe's own."""

    def begin(self, debate: Debate) -> Pending | None:
        """Have a debate's solutions scored while others are held; None where none of it is to be."""
        if not self.scores(debate.problem):
            return None
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
        if problem.kind == "rubric":
            return True
        return self.config.beside_truth and problem.kind != "open"

    def checked_tally(self) -> Counter[str]:
        """Return what was counted since the last call; VerifierError where too little came of it."""
        tally = self.model.take_tally()
        self.model.refuse_silent(tally, self.config.max_without)
        return tally


def open_verifying(config: Config) -> Verifying | None:
    """Return the verifier model of a configuration, not yet loaded; None where it has none."""
    model = open_verifier(config)
    return None if model is None else Verifying(model, config.verifier, config.verifier.own_rubric())


def asked_line(name: str, asked: Mapping[str, int]) -> str:
    """Return in one line what a verifier model was asked and what came of it.

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


@contextmanager
def opened_verifying(config: Config) -> Iterator[Verifying | None]:
    """Yield the verifier model of a configuration, not yet loaded, and close it; or None."""
    verifying = open_verifying(config)
    if verifying is None:
        yield None
        return
    with closing(verifying.model):
        yield verifying


@contextmanager
def checked_verifying(config: Config) -> Iterator[Verifying | None]:
    """Yield the verifier model of a configuration, once it has answered something, and close it; or None."""
    with opened_verifying(config) as verifying:
        if verifying is not None:
            verifying.model.check()
        yield verifying


def solution_text(problem: Problem, turn: Turn) -> str:
    """Return a turn's solution; "" without one, and where it is cut off and all of it is the answer."""
    if problem.kind in WHOLE_RESPONSE:
        return (turn.parsed.answer or "").strip()
    span = turn.parsed.solution
    return span.of(turn.completion.text).strip() if span is not None else ""
