"""The rewards of one turn explained: votes received, the grade, votes given, the format penalty."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from debate.ramps import number
from debate.types import Debate, Problem, TurnId, Vote
from debate_rl.inspector.views.debate import verdict_text
from debate_rl.inspector.views.reward_step import Numbers
from debate_rl.inspector.views.reward_types import (
    FormatWhy,
    GivenVote,
    JudgeWhy,
    NamingVote,
    Number,
    Opponent,
    PeerWhy,
    Result,
    TruthWhy,
    added,
    written,
)
from envs.errors import MissingPackageError
from envs.instructions import ConstraintError, constraints_of, follows
from rewards import ballot_box, drop_reasons
from rewards.consistency import consistencies
from rewards.graph import Results, results_by_opponent, total
from rewards.judging import VoteValue, values_of_votes
from rewards.peer import fitted_together, preference
from rewards.truth import TRUTH_SETTINGS, counts_partly, grade_of, score_of, truth_turns
from rewards.types import value_of
from rewards.votes import sign


@dataclass(frozen=True, slots=True)
class Votes:
    """The votes of a debate, each with why it does not count, the valid ones, and who had to compare."""

    debate: Debate
    cast: tuple[tuple[Vote, str], ...]
    counted: tuple[Vote, ...]
    due: frozenset[TurnId]

    def line(self, vote: Vote) -> str:
        """Return the words from which a vote was read, "" where they are not known."""
        return "" if vote.span is None else vote.span.of(self.debate.turn(vote.judge).completion.text)


def votes_of(numbers: Numbers) -> Votes:
    """Return a debate's votes; where its scheme is not known, own work counts if it was asked for."""
    debate, scheme = numbers.record.debate, numbers.scheme
    box = ballot_box(debate, judge_own=scheme is None or scheme.judge_own)
    cast = tuple(zip(debate.votes, drop_reasons(box), strict=True))
    return Votes(debate, cast, tuple(vote for vote, reason in cast if not reason), frozenset(box.due()))


def peer_why(numbers: Numbers, votes: Votes) -> PeerWhy:
    """Return why a turn has its peer reward."""
    rule = "" if numbers.scheme is None else numbers.scheme.peer
    row = results_by_opponent(votes.counted).get(numbers.turn, {})
    opponents = tuple(_opponents(numbers, votes, row, rule))
    results = total(row)
    source = _RULES.get(rule, f"{rule} gives the value itself") if row else _NOT_NAMED
    return PeerWhy(
        rule=rule,
        votes=tuple(_naming(votes, numbers.turn)),
        won=results.won,
        lost=results.lost,
        ties=results.tied,
        opponents=opponents,
        reward=numbers.reward("peer", source, _peer_formula(rule, results, opponents) if row else ""),
    )


_NOT_NAMED = "no valid vote names this turn"
_RULES = {
    "": "",
    "margin": "(won - lost) / (won + lost + ties)",
    "copeland": "mean over opponents of the sign of won less lost",
    "win_rate": "(won + ties / 2) / (won + lost + ties)",
    "net_wins": "won - lost",
    "bradley_terry": "log-strengths of a connected part are centred: less the sum of the others'",
}


def _naming(votes: Votes, turn: TurnId) -> Iterator[NamingVote]:
    for vote, reason in votes.cast:
        if turn in (vote.left, vote.right):
            other = vote.right if vote.left == turn else vote.left
            persona = votes.debate.personas[vote.judge.agent].name
            result = _result(vote, turn)
            yield NamingVote(vote.judge, persona, other, result, votes.line(vote), not reason, reason)


def _result(vote: Vote, turn: TurnId) -> Result:
    """Return how a vote went for one of its sides."""
    if vote.outcome == "tie":
        return "tie"
    return "won" if (vote.outcome == "left") == (vote.left == turn) else "lost"


def _opponents(
    numbers: Numbers, votes: Votes, row: Mapping[TurnId, Results], rule: str
) -> Iterator[Opponent]:
    """Yield the turns that the rule set a turn against; Bradley-Terry fits all of a connected part."""
    together = fitted_together(votes.counted) if rule == "bradley_terry" and row else ()
    met = next((part for part in together if numbers.turn in part), sorted(row))
    scores = numbers.step.rewards.peer if numbers.step is not None else ()
    own = value_of(scores, numbers.turn)
    for other in met:
        if other != numbers.turn:
            results, score = row.get(other, Results()), value_of(scores, other)
            beats = preference(own or 0.0, score or 0.0) if together else None
            yield Opponent(other, *results, sign(results.net), score, beats)


def _peer_formula(rule: str, results: Results, opponents: Sequence[Opponent]) -> str:
    """Return the arithmetic of a rule; "" for a rule of the user."""
    won, lost, ties = results
    if rule == "margin":
        return f"({won} - {lost}) / ({won} + {lost} + {ties})"
    if rule == "win_rate":
        return f"({won} + {ties} / 2) / ({won} + {lost} + {ties})"
    if rule == "net_wins":
        return f"{won} - {lost}"
    if rule == "copeland":
        return f"({added([other.sign for other in opponents])}) / {len(opponents)}"
    if rule == "bradley_terry":
        return f"-({added([other.score or 0.0 for other in opponents])})"
    return ""


def truth_why(numbers: Numbers) -> TruthWhy:
    """Return why a turn has its truth reward."""
    record = numbers.record
    paid = numbers.credit.grades_of_truth(record.correct)
    grade = grade_of(numbers.turn, paid)
    setting = TRUTH_SETTINGS[grade]
    source = f"rewards.{setting}" if setting else _why_no_truth(numbers)
    turn, formula = record.debate.turn(numbers.turn), ""
    if setting and numbers.scheme is not None and not _is_rewarded(numbers):
        setting, source = "", 'not the last round, by rewards.truth_rounds = "last"'
    score, scheme = score_of(turn) if numbers.credit.truth == "truth" else None, numbers.scheme
    if scheme is not None and score is not None and counts_partly(grade, scheme, score):
        source = f'a score of {score:g}, by rewards.truth_credit = "partial"'
        formula = f"{scheme.truth_wrong:g} + {score:g} * ({scheme.truth_correct:g} - {scheme.truth_wrong:g})"
    verdict = verdict_text(record, numbers.turn)
    if record.correct is None and verdict:
        source = f"a {verdict}" if verdict.startswith("verdict") else verdict
    reward = numbers.reward("truth", source, formula)
    answer, problem = turn.parsed.answer, record.debate.problem
    parts = instructions_followed(problem, answer)
    by, audit = graded_by(numbers), grade_of(numbers.turn, record.correct)
    return TruthWhy(answer, problem.answer, grade, setting, reward, score, parts, verdict, by, audit)


NO_LABEL = "no label"


def graded_by(numbers: Numbers) -> str:
    """Return what stood for the gold answer in the turn's grade; "" where nothing did."""
    credit, turn = numbers.credit, numbers.turn
    if credit.truth in ("truth", "none"):
        return NO_LABEL if credit.truth == "none" else ""
    if credit.truth == "coin":
        return "a coin"
    said = credit.labels[turn.round] if turn.round < len(credit.labels) else None
    return NO_LABEL if said is None else f"the pseudo-label {said} ({credit.truth})"


def _why_no_truth(numbers: Numbers) -> str:
    """Return why a turn has no grade that is rewarded."""
    if numbers.credit.truth == "none":
        return "the problem has no label: rewards.labels"
    if numbers.credit.truth != "truth":
        return f'no answer became the pseudo-label: rewards.pseudo = "{numbers.credit.truth}"'
    if numbers.record.correct is None:
        return "the problem has no gold answer"
    return "the answer was not graded, which is not wrong"


def _is_rewarded(numbers: Numbers) -> bool:
    """Return whether the truth of a turn's round is rewarded under its scheme."""
    scheme, box = numbers.scheme, ballot_box(numbers.record.debate)
    return scheme is None or numbers.turn in truth_turns(box, scheme)


def instructions_followed(problem: Problem, answer: str | None) -> tuple[tuple[str, bool], ...]:
    """Return each instruction of a problem and whether the answer follows it; nothing where none is known."""
    if problem.kind != "instructions" or problem.answer is None or answer is None:
        return ()
    try:
        constraints = constraints_of(problem.answer)
        met = follows(answer, constraints)
    except (ConstraintError, MissingPackageError):  # of another environment, or without a detector here
        return ()
    return tuple((constraint.id, one) for constraint, one in zip(constraints, met, strict=True))


def judge_why(numbers: Numbers, votes: Votes) -> JudgeWhy:
    """Return why a turn has its judge reward."""
    correct, scheme = numbers.credit.grades_of_judges(numbers.record.correct), numbers.scheme
    weight = None if scheme is None else scheme.judge_weight_of_truth(verifiable=correct is not None)
    worth: dict[int, VoteValue] = {}
    if scheme is not None:
        values = values_of_votes(votes.counted, correct, scheme, numbers.record.verdicts or None)
        worth = dict(zip(map(id, votes.counted), values, strict=True))
    given = tuple(
        _given(numbers, votes, vote, reason, None if reason else worth.get(id(vote)))
        for vote, reason in votes.cast
        if vote.judge == numbers.turn
    )
    rewarded = [vote.value.value for vote in given if vote.value.value is not None]
    formula = f"({added(rewarded)}) / {len(rewarded)}" if rewarded else ""
    source = _judge_source(given, weight)
    if (twice := _twice(numbers)) is not None:
        formula = f"{formula or '0'} + {twice}"
        source += ", and its consistency with a second ballot: rewards.swap_weight"
    return JudgeWhy(weight, given, numbers.reward("judge", source, formula))


def _twice(numbers: Numbers) -> str | None:
    """Return what consistency with a second ballot adds, as a formula; None where it adds nothing."""
    weight = 0.0 if numbers.scheme is None else number(numbers.scheme.swap_weight)
    own = numbers.scheme is not None and numbers.scheme.judge_own
    found = consistencies(numbers.record.debate, judge_own=own).get(numbers.turn) if weight else None
    return None if found is None else f"{written(weight)} * {written(found)}"


def _judge_source(given: Sequence[GivenVote], weight: float | None) -> str:
    if not any(vote.counts for vote in given):
        return "the turn gave no valid vote"
    if weight is not None and all(vote.value.value is None for vote in given):
        return "no vote has a value: see each vote"
    return "mean value of the votes that have one"


def _given(numbers: Numbers, votes: Votes, vote: Vote, reason: str, worth: VoteValue | None) -> GivenVote:
    correct, line = numbers.credit.grades_of_judges(numbers.record.correct), votes.line(vote)
    grades = grade_of(vote.left, correct), grade_of(vote.right, correct)
    parts = (None, None, None) if worth is None else worth[:3]
    said = None if worth is None else worth.verdict
    value = _worth(numbers, worth, reason)
    return GivenVote(
        vote.left,
        vote.right,
        vote.outcome,
        line,
        not reason,
        reason,
        grades,
        *parts,
        value=value,
        verdict=said,
    )


def _worth(numbers: Numbers, worth: VoteValue | None, reason: str) -> Number:
    scheme, known = numbers.scheme, numbers.credit.grades_of_judges(numbers.record.correct)
    verifiable = known is not None
    if reason:
        return Number(source=f"does not count: {reason}")
    if scheme is None or worth is None:
        return Number(source="not known without a configuration")
    weight, of_verdict = (
        scheme.judge_weight_of_truth(verifiable=verifiable),
        number(scheme.judge_verdict_weight),
    )
    if worth.value is None:
        return Number(source=_why_worthless(weight))
    formula, source = _own_worth(worth, weight) if of_verdict < 1 else ("", "")
    if worth.verdict is None:
        return Number(float(worth.value), formula, source=source)
    said = written(worth.verdict)
    if not formula:
        return Number(float(worth.value), said, source="a verifier model's preference")
    whole = f"{written(of_verdict)} * {said} + (1 - {written(of_verdict)}) * ({formula})"
    return Number(float(worth.value), whole, source=f"a verifier model's preference beside {source}")


def _own_worth(worth: VoteValue, weight: float) -> tuple[str, str]:
    """Return the formula of truth and consensus, and what it is of; "" where there is neither."""
    truth, consensus = worth.truth, worth.consensus
    if truth is not None and consensus is not None:
        formula = f"{written(weight)} * {written(truth)} + (1 - {written(weight)}) * {written(consensus)}"
        return formula, "truth and the consensus of the others, weighted"
    if truth is not None:
        return written(truth), "truth"
    return ("", "") if consensus is None else (written(consensus), "the others' consensus")


def _why_worthless(weight: float) -> str:
    truth = "not exactly one side is right"
    consensus = "the other judges of the pair balance, or there are none"
    return truth if weight == 1 else consensus if weight == 0 else f"{truth}, and {consensus}"


def format_why(numbers: Numbers, votes: Votes) -> FormatWhy:
    """Return why a turn has a format penalty, or has none."""
    turn = numbers.record.debate.turn(numbers.turn)
    counted = sum(vote.judge == numbers.turn for vote in votes.counted)
    due = numbers.turn in votes.due
    source = "comparisons were due and no vote is valid: rewards.format_penalty"
    if not due or counted:
        source = f"valid votes: {counted}, so no format penalty" if due else "no comparison was due"
    failures = tuple((failure.reason.value, failure.detail) for failure in turn.parsed.failures)
    return FormatWhy(due, turn.compared, counted, failures, numbers.reward("format", source))
