"""Figures of played debates and solutions, by problem, so that they can be paired and grouped.

``Scores.estimate`` gives a figure with its 95% interval, which is clustered by problem and computed by
``debate_rl.metrics.intervals.clustered_mean``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from statistics import fmean
from typing import Literal, TypeAlias

from msgspec import UNSET

from debate import Completion, Debate, Problem, Turn
from debate.early_stop import may_stop
from debate.parsing.tags import is_well_formed
from debate.policy import token_counts
from debate.prompting.shown import speakers
from debate.seeds import derive_seed
from debate.types import WHOLE_RESPONSE, WITHOUT_TRUTH, TurnId
from debate_rl.evaluation.grading import IN_A_BOX, Graded, Grades
from debate_rl.evaluation.play import Played
from debate_rl.metrics.answers import (
    answers_by_round,
    best_of_k,
    consensus,
    graded_answers,
    pass_at_k,
    powers_to,
)
from debate_rl.metrics.debates import FORM_FAILURES, due_pairs_of, form_failures
from debate_rl.metrics.features import Compared, agreement, compared, scores_of, seat_figures, tool_figures
from debate_rl.metrics.intervals import Estimate, clustered_mean
from debate_rl.sampling.difficulty import BANDS
from envs.answers.keys import AnswerKey
from envs.instructions import ConstraintError, constraints_of, follows
from envs.types import Mode
from rewards import RewardConfig, Rewards, score_debate, voted_winner
from rewards.judge_rewards import decidable_votes
from rewards.truth import grades_of_solutions, is_right, score_of

Kind: TypeAlias = Literal["level", "subject", "pass rate"]
KINDS: tuple[Kind, ...] = ("level", "subject", "pass rate")
"""Properties of problems by which figures are also broken down."""
Values = Mapping[str, Sequence[float]]
"""The values of a figure, by problem id."""


@dataclass(frozen=True, slots=True)
class Scores:
    """The figures of one policy: ``values[figure][problem]``, each value a rate in [0, 1] or a token count.

    ``problems``: all problems with a verdict from the grader, by id.
    ``ungraded``: the number of problems without a verdict, which are left out and not counted as wrong.
    ``samples``: the number of solutions of a problem that cost the tokens of a debate, or of all solutions if
    there are no debates.
    ``mode``: the grading mode of every figure that does not name another mode.
    ``compared``: by problem, a verifier model's verdicts and the true grades of the same solutions.
    ``asked``: the verifier model's counts of requests and verdicts, from ``VerifierModel.take_tally``.
    ``bands``: the pass-rate band of each problem with a measured pass rate.
    """

    values: Mapping[str, Values]
    problems: Mapping[str, Problem]
    samples: int
    ungraded: int = 0
    mode: Mode = IN_A_BOX
    compared: Mapping[str, Sequence[Compared]] = field(default_factory=dict[str, "Sequence[Compared]"])
    bands: Mapping[str, str] = field(default_factory=dict[str, str])
    asked: Mapping[str, int] = field(default_factory=dict[str, int])

    def agreement(self) -> dict[str, Estimate]:
        """Return the agreement of a verifier model's verdicts with the truth, or {} if either is missing."""
        pairs = [(pair, problem) for problem, pairs in self.compared.items() for pair in pairs]
        return agreement([pair for pair, _ in pairs], [problem for _, problem in pairs])

    def estimate(self, name: str, only: frozenset[str] | None = None) -> Estimate | None:
        """Return the mean of a figure over the problems in ``only`` (None: all), or None without values."""
        counted = [
            (value, problem)
            for problem, values in self.values.get(name, {}).items()
            if only is None or problem in only
            for value in values
        ]
        return clustered_mean([v for v, _ in counted], [p for _, p in counted]) if counted else None

    def groups(self, kind: Kind) -> dict[str, frozenset[str]]:
        """Return the problem ids of each level, subject or pass-rate band, without unlabelled problems."""
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
    """Return figure ``name`` of ``scores`` minus figure ``minus`` of ``base``, paired by problem.

    Problems are paired if they differ at most in the examples shown. None without common problems.
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
    own = scores.problems.get(problem)
    return own and replace(own, shots=UNSET)


class _Sheet:
    """Collects values by figure and problem."""

    def __init__(self, key: AnswerKey) -> None:
        self.key = key
        self.values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        self.compared: dict[str, list[Compared]] = {}

    def put(self, problem: Problem, name: str, *values: float | bool) -> None:
        """Add values of one figure on a problem."""
        self.values[name][problem.id] += [float(value) for value in values]

    def debate(self, graded: Graded) -> None:
        """Add the figures of a debate."""
        debate, problem = graded.debate, graded.debate.problem
        self._verdicts(graded, "debate")
        if graded.truth is not None:
            self._rounds(graded)
            for right in decidable_votes(due_pairs_of(debate), graded.correct):
                self.put(problem, "judge/coverage", right is not None)
                self.put(problem, "judge/strict_accuracy", right is True)
                if right is not None:
                    self.put(problem, "judge/accuracy", right)
            self._tools("debate", [graded])
        self._cost(problem, "debate", _replies([graded]))

    def _rounds(self, graded: Graded) -> None:
        """Add the accuracy by round, of the winner and the last majority, and whether any agent was right."""
        debate, problem = graded.debate, graded.debate.problem
        rounds = debate.protocol.num_rounds
        by_round = answers_by_round(debate, graded.correct, self.key)
        for round_, answers in sorted(by_round.items()):
            self.put(problem, f"debate/accuracy/round_{round_}", *(answer.right for answer in answers))
            if round_ < rounds:
                self.put(problem, "debate/missing", *(answer.key is None for answer in answers))
        last = by_round[max(by_round)]
        self.put(problem, "debate/winner/accuracy", winner_is_right(debate, graded.correct, _rewards(graded)))
        kinds = form_failures(debate)
        for name in FORM_FAILURES:
            self.put(problem, f"debate/format/{name}", *(kind == name for kind in kinds))
        pairs = zip(debate.turns, kinds, strict=True)
        valid = (k in ("", "no_answer") and is_well_formed(turn.completion.stated) for turn, k in pairs)
        self.put(problem, "debate/valid_xml", *valid)
        self.put(problem, "debate/majority", consensus(last))
        self.put(problem, f"debate/pass@{len(last)}", any(answer.right for answer in last))
        for name, right in seat_figures(debate, graded.correct):
            self.put(problem, f"debate/{name}", right)
        spoken = [turn for turn in debate.turns if turn.id.round == rounds - 1]
        self._partial(problem, "debate/score", spoken)
        self._instructions(problem, "debate/instructions", spoken)

    def sizes(self, debates: Sequence[Debate]) -> None:
        """Add agents and rounds if these vary or debates may stop early, and whether each debate stopped."""
        stops = any(map(may_stop, debates))
        if not stops and len({(d.protocol.num_agents, d.protocol.num_rounds) for d in debates}) <= 1:
            return
        for debate in debates:
            self.put(debate.problem, "debate/agents", debate.protocol.num_agents)
            self.put(debate.problem, "debate/rounds", debate.protocol.num_rounds)
            if stops:
                self.put(debate.problem, "debate/stopped", debate.rounds_saved is not UNSET)

    def solutions(self, played: Played, group: Sequence[Graded]) -> None:
        """Add the accuracy and the cost of single solutions, and pass@k and cons@k for powers of 2."""
        problem = group[0].debate.problem
        self._cost(problem, "direct", _replies(group)[: played.samples])
        for one in group:
            self._verdicts(one, "direct")
        if problem.kind in WITHOUT_TRUTH:
            return
        known = [a for one in group for _, a in graded_answers(one.debate, one.correct, self.key)]
        answers = known[: played.solutions]
        count, right = len(answers), sum(answer.right for answer in answers)
        self.put(problem, "direct/accuracy", *(answer.right for answer in answers))
        self.put(problem, "direct/missing", *(answer.key is None for answer in answers))
        for k in powers_to(count)[1:] or [count]:
            self.put(problem, f"direct/pass@{k}", pass_at_k(count, right, k))
            majorities = (consensus(answers[start : start + k]) for start in range(0, count - k + 1, k))
            self.put(problem, f"direct/cons@{k}", fmean(majorities))
        if played.debates:
            self.put(problem, "direct/self_consistency", consensus(answers[: played.samples]))
        turns = [turn for one in group for turn in one.debate.turns][: played.solutions]
        self._instructions(problem, "direct/instructions", turns)
        self._partial(problem, "direct/score", turns, at_k=True)
        self._tools("direct", group)

    def _verdicts(self, graded: Graded, mode: Literal["debate", "direct"]) -> None:
        """Add a verifier model's verdicts on the solutions, and their comparison with the truth if known."""
        verdicts, problem = graded.verdicts, graded.debate.problem
        if verdicts is None:
            return
        for round_ in range(graded.debate.protocol.num_rounds):
            of = f"/round_{round_}" if mode == "debate" else ""
            found = scores_of(verdicts, round_)
            self.put(problem, f"verifier/{mode}/score{of}", *found)
            self.put(
                problem, f"verifier/{mode}/passed{of}", *(score >= verdicts.threshold for score in found)
            )
        self.compared.setdefault(problem.id, []).extend(compared(graded.debate, graded.truth, verdicts))
        if mode == "debate":
            winner = voted_winner(_rewards(graded).peer, seed=graded.debate.seed)
            score = None if winner is None else verdicts.score(winner)
            self.put(problem, "verifier/debate/score/winner", *(() if score is None else (score,)))

    def _tools(self, mode: Literal["debate", "direct"], parts: Sequence[Graded]) -> None:
        """Add the figures of the programs of the turns on one problem, if programs may run."""
        turns = [(turn, is_right(turn.id, part.correct)) for part in parts for turn in part.debate.turns]
        for name, values in tool_figures(turns).items():
            self.put(parts[0].debate.problem, f"{mode}/tools/{name}", *values)

    def _instructions(self, problem: Problem, name: str, turns: Sequence[Turn]) -> None:
        """Add whether each instruction was followed. Instructions of another environment are left out."""
        if problem.kind != "instructions":
            return
        try:
            constraints = constraints_of(problem.answer or "")
        except ConstraintError:
            return
        met = [outcome for turn in turns for outcome in follows(turn.parsed.answer or "", constraints)]
        if met:
            self.put(problem, name, *met)

    def _partial(self, problem: Problem, name: str, turns: Sequence[Turn], *, at_k: bool = False) -> None:
        """Add the partial score of each solution, if scores are measured, and with ``at_k`` also best-of-k.

        A missing solution has score 0.
        """
        known = [score_of(turn) for turn in turns]
        if problem.kind in WHOLE_RESPONSE or any(score is not None for score in known):
            scores = [score or 0.0 for score in known]
            self.put(problem, name, *scores)
            for k in powers_to(len(scores))[1:] if at_k else ():
                self.put(problem, f"{name}@{k}", best_of_k(scores, k))

    def _cost(self, problem: Problem, mode: str, replies: Sequence[Completion]) -> None:
        self.put(problem, f"{mode}/truncated", *(reply.stop_reason == "length" for reply in replies))
        prompt, generated = (sum(counts) for counts in zip(*map(token_counts, replies), strict=True))
        self.put(problem, f"{mode}/generated_tokens", generated)
        self.put(problem, f"{mode}/prompt_tokens", prompt)


def scores(played: Played, key: AnswerKey) -> Scores:
    """Return the figures of all played debates and solutions.

    ``key`` decides which wrong answers a majority counts as the same. A problem is left out if any of its
    answers, with any seed, has no verdict.
    """
    sheet = _Sheet(key)
    parts = (played.debates, played.greedy, *played.opening)
    ungraded = {
        one.debate.problem.id
        for part in parts
        for one in part
        if one.truth is not None
        for row in grades_of_solutions(one.debate, one.correct) or ()
        if None in row
    }
    debates = [one for one in played.debates if one.debate.problem.id not in ungraded]
    for one in debates:
        sheet.debate(one)
    sheet.sizes([one.debate for one in debates])
    problems: dict[str, Problem] = {}
    for group in played.opening:
        problem = group[0].debate.problem
        if problem.id not in ungraded:
            problems[problem.id] = problem
            sheet.solutions(played, group)
    for one in played.greedy:
        if one.debate.problem.id in problems and one.truth is not None:
            sheet.put(one.debate.problem, "direct/greedy_accuracy", one.correct[0][0] is True)
    return Scores(sheet.values, problems, played.samples, len(ungraded), compared=sheet.compared)


def _rewards(graded: Graded) -> Rewards:
    judge_own = graded.debate.protocol.judge_own
    return score_debate(graded.debate, graded.truth, RewardConfig(judge_own=judge_own))


def _replies(parts: Sequence[Graded]) -> list[Completion]:
    debates = [part.debate for part in parts]
    return [reply for one in debates for reply in (*(t.completion for t in one.turns), *one.auxiliary())]


def winner_is_right(debate: Debate, grades: Grades, rewards: Rewards) -> float:
    """Return 1.0 if the winner of a debate is right, otherwise 0.0."""
    return float(is_right(winner_of(debate, rewards), grades) is True)


def winner_of(debate: Debate, rewards: Rewards) -> TurnId:
    """Return the winner of the last round with votes; if none has votes, a random agent of the last round."""
    last = debate.protocol.num_rounds - 1
    drawn = Random(derive_seed(debate.seed, "no votes")).choice(speakers(debate.protocol, last))
    return voted_winner(rewards.peer, seed=debate.seed) or TurnId(drawn, last)
