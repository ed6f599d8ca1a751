"""A run folder of synthetic debates of realistic variety, for figures and tests: no model speaks in it.

Words are drawn from a vocabulary of tens of thousands by Zipf's law, formulas among them; votes and grades
are drawn, and rewards computed from them by the reward rules themselves.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from debate import Completion, Debate, DebateConfig, Problem, Turn, Vote
from debate.personas import PERSONAS
from debate.types import Ballot, FailureReason, ParsedTurn, ParseFailure, Span, TurnId
from debate_rl.rollouts.records import advantages_by_debate
from learner.advantages import AdvantageConfig, turn_advantages
from learner.types import group_indices, transitions_of
from rewards import RewardConfig, Rewards, Truth, score_debate
from transcripts import Record, write_step
from transcripts.record import Timing

PROTOCOL = DebateConfig(num_agents=3, num_rounds=3)
REWARDS = RewardConfig()
PER_STEP, PER_PROBLEM = 256, 4
CONFIG = """# Nothing was trained: synthetic debates, paid by these rules.
[run]
dir = "synthetic"

[model]
name_or_path = "none"

[debate]
num_agents = 3
num_rounds = 3

[train]
group_size = 4
"""
WORDS, CHUNK = 40_000, 1 << 20
HANDLES = ("K7", "Q2", "M4")
LEVELS = tuple(f"Level {n}" for n in range(1, 6))
SOURCES = ("gsm8k", "MATH/algebra", "MATH/geometry", "aime", "MATH/number theory")
SYLLABLES = (
    *("ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "qui", "ro", "su", "ta"),
    *("ve", "wi", "xo", "yu", "zan", "ter", "lim", "ing", "ed", "al", "ous", "gral"),
)
FORMULAS = (r"\frac{{{a}}}{{{b}}}", "{a} + {b} = {c}", r"\sqrt{{{a}}}", "x^{{{a}}} - {b}", r"{a} \cdot {b}")


class Prose:
    """Draws text: a stream of words by Zipf's law, a formula now and then."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        words = {"".join(rng.choices(SYLLABLES, k=1 + rng.randrange(4))) for _ in range(3 * WORDS)}
        self._words = np.array(rng.sample(sorted(words), min(WORDS, len(words))), dtype=object)
        shares = 1.0 / np.arange(1, len(self._words) + 1) ** 1.05
        self._edges = np.cumsum(shares / shares.sum())
        self._draws, self._rng = np.random.default_rng(seed), rng
        self._stream: list[str] = []
        self._at = 0

    def text(self, words: int) -> str:
        """Return about so many words."""
        if self._at + words > len(self._stream):
            places = np.searchsorted(self._edges, self._draws.random(CHUNK))
            self._stream = self._words[np.minimum(places, len(self._words) - 1)].tolist()
            self._at = 0
        found = self._stream[self._at : self._at + words]
        self._at += words
        for place in range(12, len(found), 25):
            a, b = self._rng.randrange(100), self._rng.randrange(2, 100)
            found[place] = self._rng.choice(FORMULAS).format(a=a, b=b, c=a + b) + ".\n"
        return " ".join(found)


def make_run(
    folder: Path, debates: int, *, seed: int = 0, words: int = 118, tell: Callable[[int], None] = print
) -> None:
    """Write a run of so many debates, sealed but for its last step; ``words`` in a solution."""
    prose, rng = Prose(seed), random.Random(seed)
    problems = [_problem(number, prose, rng) for number in range(max(PER_STEP // PER_PROBLEM, debates // 16))]
    steps = range(-(-debates // PER_STEP))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(CONFIG, encoding="utf-8")
    for step in steps:
        count = min(PER_STEP, debates - step * PER_STEP)
        drawn = rng.sample(problems, -(-count // PER_PROBLEM))
        of_step = [problem for problem in drawn for _ in range(PER_PROBLEM)][:count]
        records = _paid([_debate(step, prose, rng, problem, words) for problem in of_step])
        write_step(folder / "transcripts", step, records, tokens=False, seal=step < len(steps) - 1)
        if step % 40 == 0:
            tell(step)


def _problem(number: int, prose: Prose, rng: random.Random) -> Problem:
    source = rng.choice(SOURCES)
    gold = str(rng.randrange(1000))
    return Problem(f"{source}/{number}", prose.text(40), gold, source, rng.choice(LEVELS), "number")


def _paid(records: list[tuple[Record, Rewards]]) -> list[Record]:
    """Return a step's debates with their advantages."""
    debates = [one.debate for one, _ in records]
    groups = group_indices([debate.problem.id for debate in debates], PER_PROBLEM)
    transitions = transitions_of(debates, [rewards for _, rewards in records], groups)
    found = turn_advantages(transitions, REWARDS, AdvantageConfig(), {}, counted=False)
    parts = advantages_by_debate(debates, found.turns)
    return [replace(one, advantages=part) for (one, _), part in zip(records, parts, strict=True)]


def _debate(
    step: int, prose: Prose, rng: random.Random, problem: Problem, words: int
) -> tuple[Record, Rewards]:
    skill = rng.random()
    personas = tuple(rng.sample(PERSONAS, 3))
    table: list[list[Truth]] = [[_grade(rng, skill) for _ in range(3)] for _ in range(3)]
    turns = [turn for r in range(4) for turn in _round(r, prose, rng, table, problem, words, step)]
    votes = tuple(
        Vote(turn.id, target(b.left, turn), target(b.right, turn), b.outcome, b.span)
        for turn in turns
        for b in turn.parsed.ballots
    )
    debate = Debate(problem, personas, tuple(turns), votes, rng.getrandbits(62), step, PROTOCOL)
    correct = tuple(tuple(row) for row in table)
    rewards = score_debate(debate, correct, REWARDS)
    timing = Timing(1.7e9 + 60 * step, rng.uniform(20, 50))
    numbers = rewards
    return Record(debate, step, problem.id, correct, numbers, timing=timing), rewards


def target(handle: str, turn: Turn) -> TurnId:
    """Return the turn that a handle means in a judge's turn."""
    return TurnId(HANDLES.index(handle), turn.id.round - 1)


def _grade(rng: random.Random, skill: float) -> Truth:
    return "missing" if rng.random() < 0.02 else rng.random() < skill


def _round(
    round_: int,
    prose: Prose,
    rng: random.Random,
    table: list[list[Truth]],
    problem: Problem,
    words: int,
    step: int,
) -> Iterator[Turn]:
    for agent in range(3):
        grade = None if round_ == 3 else table[agent][round_]
        answer = _answer(grade, problem, rng)
        solution = "" if round_ == 3 else f"<solution>{prose.text(words)} \\boxed{{{answer}}}</solution>\n"
        reason = f"<evaluation>{prose.text(words // 3)}</evaluation>\n" if round_ else ""
        ballots, lines = _ballots(agent, rng, len(solution) + len(reason)) if round_ else ((), "")
        cut = rng.random() < 0.03
        failures = (ParseFailure(FailureReason.NOT_A_COMPARISON, "K7 ~ Q2"),) if rng.random() < 0.02 else ()
        text = solution + reason + lines
        tokens = len(text) // 4
        completion = Completion(
            (), (), (), text, "length" if cut else "stop", step, prompt_count=600 + tokens, token_count=tokens
        )
        spans = Span(10, max(10, len(solution) - 12)) if solution else None
        parsed = ParsedTurn(spans, answer=answer, ballots=ballots, failures=failures)
        shown = tuple(TurnId(seat, round_ - 1) for seat in range(3)) if round_ else ()
        compared = tuple(one for one in shown if one.agent != agent)
        yield Turn(TurnId(agent, round_), HANDLES[agent], shown, completion, parsed, compared, 0, round_ == 3)


def _answer(grade: Truth, problem: Problem, rng: random.Random) -> str | None:
    if grade is None or grade == "missing":
        return None
    return problem.answer if grade is True else str(rng.randrange(1000))


def _ballots(agent: int, rng: random.Random, start: int) -> tuple[tuple[Ballot, ...], str]:
    left, right = rng.sample([handle for seat, handle in enumerate(HANDLES) if seat != agent], 2)
    sign, outcome = rng.choice([(">", "left"), (">", "left"), ("<", "right"), ("<", "right"), ("=", "tie")])
    line = f"{left} {sign} {right}"
    ballot = Ballot(left, right, outcome, Span(start + 12, start + 12 + len(line)))  # type: ignore[arg-type]
    return (ballot,), f"<comparison>{line}</comparison>"
