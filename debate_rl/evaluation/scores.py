"""What was played, as figures: values by problem, so that they can be compared in pairs and by groups.

Intervals are clustered by problem: debate_rl.metrics.intervals has the sources.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from statistics import fmean
from typing import Literal, TypeAlias

from msgspec import UNSET

from debate import Completion, Debate, Problem, Turn
from debate.early_stop import may_stop
from debate.parsing.wellformed import is_well_formed
from debate.policy import token_counts
from debate.prompting.shown import speakers
from debate.seeds import derive_seed
from debate.types import WHOLE_RESPONSE, WITHOUT_TRUTH, TurnId
from debate_rl.evaluation.grading import IN_A_BOX, Graded, Grades
from debate_rl.evaluation.play import Played
from debate_rl.metrics.answers import (
    Answer,
    answers_by_round,
    best_of_k,
    consensus,
    graded_answers,
    pass_at_k,
    powers_to,
)
from debate_rl.metrics.debates import are_valid, due_pairs_of
from debate_rl.metrics.features import seat_figures, tool_figures
from debate_rl.metrics.intervals import Estimate, clustered_mean
from debate_rl.metrics.verdicts import Compared, agreement, compared, scores_of
from debate_rl.sampling.difficulty import BANDS
from envs.answers.keys import AnswerKey
from envs.instructions import ConstraintError, constraints_of, follows
from envs.types import Mode
from rewards import RewardConfig, Rewards, score_debate, voted_winner
from rewards.judging import decidable_votes
from rewards.truth import grades_of_solutions, is_right, score_of

Kind: TypeAlias = Literal["level", "subject", "pass rate"]
KINDS: tuple[Kind, ...] = ("level", "subject", "pass rate")
"""What figures are also shown by."""
Values = Mapping[str, Sequence[float]]
"""A figure's values by problem."""


@dataclass(frozen=True, slots=True)
class Scores:
    """The figures of one policy: ``values[figure][problem]``, each value a rate in [0, 1] or a token count.

    ``problems`` are those that the grader gave a verdict on, all of them by id; ``ungraded`` counts what was
    left out, never as wrong. ``samples``: solutions of a problem that spend the tokens of a debate; without
    debates, all of them.
    """

    values: Mapping[str, Values]
    problems: Mapping[str, Problem]
    samples: int
    ungraded: int = 0
    mode: Mode = IN_A_BOX
    """The grader's, of every figure that names no other."""
    compared: Mapping[str, Sequence[Compared]] = field(default_factory=dict[str, "Sequence[Compared]"])
    """Verdicts of a verifier model beside the truth on the same solutions, by problem."""

    bands: Mapping[str, str] = field(default_factory=dict[str, str])
    """The stratum of measured pass rates that a problem lies in, by problem, where these were measured."""

    asked: Mapping[str, int] = field(default_factory=dict[str, int])
    """What a verifier model was asked, as ``VerifierModel.take_tally`` counts it."""

    def agreement(self) -> dict[str, Estimate]:
        """Return how far a verifier model's verdicts agree with truth; nothing without both."""
        pairs = [(pair, problem) for problem, pairs in self.compared.items() for pair in pairs]
        return agreement([pair for pair, _ in pairs], [problem for _, problem in pairs])

    def estimate(self, name: str, only: frozenset[str] | None = None) -> Estimate | None:
        """Return the mean of a figure, over some of the problems; None where it has no value there."""
        counted = [
            (value, problem)
            for problem, values in self.values.get(name, {}).items()
            if only is None or problem in only
            for value in values
        ]
        return clustered_mean([v for v, _ in counted], [p for _, p in counted]) if counted else None

    def groups(self, kind: Kind) -> dict[str, frozenset[str]]:
        """Return the problems of each level, subject or pass rate, by its name; none where none has one."""
        groups: dict[str, set[str]] = defaultdict(set)
        for name, problem in self.problems.items():
            labels = {"level": problem.level, "subject": problem.source.partition("/")[2]}
            label = self.bands.get(name, "") if kind == "pass rate" else labels[kind]
            if label:
                groups[label].add(name)
        ranks = {name: rank for rank, (_, name) in enumerate(BANDS)} if kind == "pass rate" else {}
        order = sorted(groups, key=lambda label: (ranks.get(label, 0), label))
        return {label: frozenset(groups[label]) for label in order}


def difference(scores: Scores, name: str, base: Scores, minus: str) -> Estimate | None:
    """Return figure ``name`` of one minus figure ``minus`` of the other, paired by the problems of both.

    Two problems of the same id are one only where all else is the same too, but for the examples shown.
    """
    left, right = scores.values.get(name, {}), base.values.get(minus, {})
    shared = [
        problem
        for problem in left
        if left[problem] and right.get(problem) and _bare(scores, problem) == _bare(base, problem)
    ]
    if not shared:
        return None
    gaps = [fmean(left[problem]) - fmean(right[problem]) for problem in shared]
    return clustered_mean(gaps, shared, signed=True)


def _bare(scores: Scores, problem: str) -> Problem | None:
    """Return a problem without its examples."""
    own = scores.problems.get(problem)
    return own and replace(own, shots=UNSET)


@dataclass(slots=True)
class _Sheet:
    """Collects values by figure and problem."""

    values: dict[str, dict[str, list[float]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    compared: dict[str, list[Compared]] = field(default_factory=dict[str, "list[Compared]"])

    def put(self, problem: str, name: str, *values: float | bool) -> None:
        """Take values of one figure."""
        self.values[name][problem] += [float(value) for value in values]


def scores(played: Played, key: AnswerKey) -> Scores:
    """Return the figures of what was played; ``key`` says which wrong answers a majority counts together."""
    sheet, ungraded = _Sheet(), _ungraded(played)
    for debated in played.debates:
        if debated.debate.problem.id not in ungraded:
            _verdict_figures(sheet, debated, "debate")
            if debated.truth is not None:
                _debate_figures(sheet, debated, key)
                _judge_figures(sheet, debated)
                _tool_figures(sheet, "debate", (debated,))
            _cost(sheet, debated.debate.problem.id, "debate", _replies([debated]))
    held = (debated.debate for debated in played.debates)
    _size_figures(sheet, [debate for debate in held if debate.problem.id not in ungraded])
    problems: dict[str, Problem] = {}
    for opening, further in zip(played.opening, played.further, strict=True):
        problem = opening[0].debate.problem
        if problem.id not in ungraded:
            problems[problem.id] = problem
            _solution_figures(sheet, played, opening, further, key)
    for graded in played.greedy:
        if graded.debate.problem.id in problems and graded.truth is not None:
            sheet.put(graded.debate.problem.id, "direct/greedy_accuracy", graded.correct[0][0] is True)
    return Scores(sheet.values, problems, played.samples, len(ungraded), compared=sheet.compared)


def _solution_figures(
    sheet: _Sheet, played: Played, opening: Sequence[Graded], further: Sequence[Graded], key: AnswerKey
) -> None:
    """What the solutions to a problem are worth one by one, and what they cost."""
    problem = opening[0].debate.problem
    _cost(sheet, problem.id, "direct", _replies(opening)[: played.samples])
    for one in (*opening, *further):
        _verdict_figures(sheet, one, "direct")
    if problem.kind in WITHOUT_TRUTH:
        return
    answers = _answers((*opening, *further), key)[: played.solutions]
    _direct_figures(sheet, problem.id, answers)
    if played.debates:
        sheet.put(problem.id, "direct/self_consistency", consensus(answers[: played.samples]))
    if problem.kind == "instructions":
        alone = [turn for one in (*opening, *further) for turn in one.debate.turns][: played.solutions]
        _instruction_figures(sheet, problem, "direct/instructions", alone)
    solved = [turn for one in (*opening, *further) for turn in one.debate.turns][: played.solutions]
    _partial_figures(sheet, problem, "direct/score", solved, at_k=True)
    _tool_figures(sheet, "direct", (*opening, *further))


def _ungraded(played: Played) -> set[str]:
    """Return the problems of which some answer, of whatever seed, has no verdict."""
    parts = (played.debates, played.greedy, *played.opening, *played.further)
    return {
        graded.debate.problem.id
        for part in parts
        for graded in part
        if graded.truth is not None
        and any(
            grade is None for row in grades_of_solutions(graded.debate, graded.correct) or () for grade in row
        )
    }


def _answers(opening: Sequence[Graded], key: AnswerKey) -> list[Answer]:
    return [answer for graded in opening for _, answer in graded_answers(graded.debate, graded.correct, key)]


def _debate_figures(sheet: _Sheet, graded: Graded, key: AnswerKey) -> None:
    """Accuracy by round, of the winner, of the last round's majority; whether any agent was right."""
    debate, problem = graded.debate, graded.debate.problem.id
    by_round = answers_by_round(debate, graded.correct, key)
    for round_, answers in sorted(by_round.items()):
        sheet.put(problem, f"debate/accuracy/round_{round_}", *(answer.right for answer in answers))
        if round_ < debate.protocol.num_rounds:
            sheet.put(problem, "debate/missing", *(answer.key is None for answer in answers))
    last = by_round[max(by_round)]
    rewards = score_debate(debate, graded.correct, RewardConfig(judge_own=debate.protocol.judge_own))
    sheet.put(problem, "debate/winner/accuracy", winner_is_right(debate, graded.correct, rewards))
    pairs = zip(debate.turns, are_valid(debate), strict=True)
    valid = (right and is_well_formed(turn.completion.stated) for turn, right in pairs)
    sheet.put(problem, "debate/valid_xml", *valid)
    sheet.put(problem, "debate/majority", consensus(last))
    sheet.put(problem, f"debate/pass@{len(last)}", any(answer.right for answer in last))
    for name, right in seat_figures(debate, graded.correct):
        sheet.put(problem, f"debate/{name}", right)
    spoken = [turn for turn in debate.turns if turn.id.round == debate.protocol.num_rounds - 1]
    _partial_figures(sheet, debate.problem, "debate/score", spoken)
    if debate.problem.kind == "instructions":
        _instruction_figures(sheet, debate.problem, "debate/instructions", spoken)


def _size_figures(sheet: _Sheet, debates: Sequence[Debate]) -> None:
    """Agents and rounds, where debates differ in them or may stop; whether each stopped, where one may."""
    stops = any(map(may_stop, debates))
    if not stops and len({(d.protocol.num_agents, d.protocol.num_rounds) for d in debates}) <= 1:
        return
    for debate in debates:
        sheet.put(debate.problem.id, "debate/agents", debate.protocol.num_agents)
        sheet.put(debate.problem.id, "debate/rounds", debate.protocol.num_rounds)
        if stops:
            sheet.put(debate.problem.id, "debate/stopped", debate.rounds_saved is not UNSET)


def _direct_figures(sheet: _Sheet, problem: str, answers: Sequence[Answer]) -> None:
    """Accuracy of single samples; pass@k and cons@k for the powers of 2."""
    count, right = len(answers), sum(answer.right for answer in answers)
    sheet.put(problem, "direct/accuracy", *(answer.right for answer in answers))
    sheet.put(problem, "direct/missing", *(answer.key is None for answer in answers))
    for k in powers_to(count)[1:] or [count]:
        sheet.put(problem, f"direct/pass@{k}", pass_at_k(count, right, k))
        majorities = (consensus(answers[start : start + k]) for start in range(0, count - k + 1, k))
        sheet.put(problem, f"direct/cons@{k}", fmean(majorities))


def _verdict_figures(sheet: _Sheet, graded: Graded, mode: Literal["debate", "direct"]) -> None:
    """What a verifier model says of the solutions, and beside the truth where there is any."""
    verdicts, problem = graded.verdicts, graded.debate.problem.id
    if verdicts is None:
        return
    for round_ in range(graded.debate.protocol.num_rounds):
        of = f"/round_{round_}" if mode == "debate" else ""
        found = scores_of(verdicts, round_)
        sheet.put(problem, f"verifier/{mode}/score{of}", *found)
        sheet.put(problem, f"verifier/{mode}/passed{of}", *(score >= verdicts.threshold for score in found))
    sheet.compared.setdefault(problem, []).extend(compared(graded.debate, graded.truth, verdicts))
    if mode == "debate":
        rewards = score_debate(
            graded.debate, graded.truth, RewardConfig(judge_own=graded.debate.protocol.judge_own)
        )
        winner = voted_winner(rewards.peer, seed=graded.debate.seed)
        score = None if winner is None else verdicts.score(winner)
        sheet.put(problem, "verifier/debate/score/winner", *(() if score is None else (score,)))


def _tool_figures(sheet: _Sheet, mode: Literal["debate", "direct"], parts: Sequence[Graded]) -> None:
    """Programs of the turns on one problem, where any may run."""
    turns = [(turn, is_right(turn.id, part.correct)) for part in parts for turn in part.debate.turns]
    for name, values in tool_figures(turns).items():
        sheet.put(parts[0].debate.problem.id, f"{mode}/tools/{name}", *values)


def _instruction_figures(sheet: _Sheet, problem: Problem, name: str, turns: Iterable[Turn]) -> None:
    """Each instruction followed or not."""
    met = [outcome for turn in turns for outcome in followed(problem, turn)]
    if met:
        sheet.put(problem.id, name, *met)


def _partial_figures(
    sheet: _Sheet, problem: Problem, name: str, turns: Iterable[Turn], *, at_k: bool = False
) -> None:
    """How much of each solution is right, where that is measured, and of the best of k of them.

    Of a missing solution nothing is right.
    """
    known = [score_of(turn) for turn in turns]
    if problem.kind in WHOLE_RESPONSE or any(score is not None for score in known):
        scores = [score or 0.0 for score in known]
        sheet.put(problem.id, name, *scores)
        for k in powers_to(len(scores))[1:] if at_k else ():
            sheet.put(problem.id, f"{name}@{k}", best_of_k(scores, k))


def followed(problem: Problem, turn: Turn) -> tuple[bool, ...]:
    """Return for each instruction of the problem whether the turn's response follows it; none if missing.

    Nothing for a problem of another environment, which grades responses by something else than constraints.
    """
    try:
        constraints = constraints_of(problem.answer or "")
    except ConstraintError:
        return ()
    return follows(turn.parsed.answer or "", constraints)


def winner_is_right(debate: Debate, grades: Grades, rewards: Rewards) -> float:
    """Return 1.0 when the winner is right."""
    return float(is_right(winner_of(debate, rewards), grades) is True)


def winner_of(debate: Debate, rewards: Rewards) -> TurnId:
    """Return the winner of the last judged round; without any vote an agent of the last round is drawn."""
    last = debate.protocol.num_rounds - 1
    drawn = Random(derive_seed(debate.seed, "no votes")).choice(speakers(debate.protocol, last))
    return voted_winner(rewards.peer, seed=debate.seed) or TurnId(drawn, last)


def _judge_figures(sheet: _Sheet, graded: Graded) -> None:
    """Votes on pairs of which exactly one side is right, and how many of the due ones there are."""
    for right in decidable_votes(due_pairs_of(graded.debate), graded.correct):
        problem = graded.debate.problem.id
        sheet.put(problem, "judge/coverage", right is not None)
        sheet.put(problem, "judge/strict_accuracy", right is True)
        if right is not None:
            sheet.put(problem, "judge/accuracy", right)


def _replies(parts: Sequence[Graded]) -> list[Completion]:
    debates = [part.debate for part in parts]
    return [
        reply for one in debates for reply in (*(turn.completion for turn in one.turns), *one.auxiliary())
    ]


def _cost(sheet: _Sheet, problem: str, mode: str, replies: Sequence[Completion]) -> None:
    sheet.put(problem, f"{mode}/truncated", *(reply.stop_reason == "length" for reply in replies))
    prompt, generated = (sum(counts) for counts in zip(*map(token_counts, replies), strict=True))
    sheet.put(problem, f"{mode}/generated_tokens", generated)
    sheet.put(problem, f"{mode}/prompt_tokens", prompt)
