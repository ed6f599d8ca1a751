"""The rewards of one turn explained: votes received, the grade, votes given, the fine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp

from debate.types import Debate, TurnId, Vote
from inspector.views.reward_numbers import Sources, added, arithmetic, written
from inspector.views.reward_types import (
    FormatWhy,
    GivenVote,
    JudgeWhy,
    NamingVote,
    Number,
    Opponent,
    PeerWhy,
    Result,
    TruthWhy,
)
from rewards import RewardConfig, drop_reasons
from rewards.graph import components, vote_graph
from rewards.judge import VoteValue, vote_values
from rewards.peer import peer_rule
from rewards.poll import poll_of_debate
from rewards.votes import net_votes, pair_of, sign, verdict
from transcripts import Correct, Record


@dataclass(frozen=True)
class Votes:
    """The votes of a debate as cast, and of each why it does not count ("": it counts)."""

    debate: Debate
    reasons: tuple[str, ...]
    due: frozenset[TurnId]

    @cached_property
    def counted(self) -> tuple[Vote, ...]:
        """The votes that count."""
        return tuple(vote for vote, reason in self.cast if not reason)

    @property
    def cast(self) -> list[tuple[Vote, str]]:
        """All votes with their reasons."""
        return list(zip(self.debate.votes, self.reasons, strict=True))

    def line(self, vote: Vote) -> str:
        """Return the words from which a vote was read, "" where they are not known."""
        return "" if vote.span is None else vote.span.of(self.debate.turn(vote.judge).completion.text)


def votes_of(debate: Debate, config: RewardConfig | None) -> Votes:
    """Return a debate's votes under a scheme; without one, own work counts where it was asked for."""
    poll = poll_of_debate(debate, judge_own=config is None or config.judge_own)
    return Votes(debate, tuple(drop_reasons(poll)), frozenset(poll.due()))


def peer_why(votes: Votes, turn: TurnId, config: RewardConfig | None, numbers: Sources) -> PeerWhy:
    """Return why a turn has its peer reward."""
    named = tuple(
        _naming(votes, vote, why, turn) for vote, why in votes.cast if turn in (vote.left, vote.right)
    )
    results = [one.result for one in named if one.counts]
    won, lost, ties = (results.count(result) for result in ("won", "lost", "tie"))
    scores = {} if config is None else _scores(votes.counted, config)
    opponents = _opponents(votes.counted, turn, "" if config is None else config.peer, scores)
    formula = "" if config is None else _peer_formula(config.peer, (won, lost, ties), opponents)
    source = _peer_source(config, bool(results))
    return PeerWhy(
        rule="" if config is None else config.peer,
        votes=named,
        won=won,
        lost=lost,
        ties=ties,
        opponents=opponents,
        reward=numbers.reward("peer", turn, formula if results else "", source),
    )


def _scores(votes: Sequence[Vote], config: RewardConfig) -> Mapping[TurnId, float]:
    return peer_rule(config.peer)(votes, alpha=config.bradley_terry_alpha)


def _peer_source(config: RewardConfig | None, any_votes: bool) -> str:
    if not any_votes:
        return "no vote that counts names this turn"
    told = {
        "": "",
        "margin": "(won - lost) / (won + lost + ties)",
        "copeland": "mean over opponents of the sign of won less lost",
        "bradley_terry": "log-strengths of a connected part are centred: less the sum of the others'",
    }
    rule = "" if config is None else config.peer
    return told.get(rule, f"{rule} gives the value itself")


def _naming(votes: Votes, vote: Vote, reason: str, turn: TurnId) -> NamingVote:
    other = vote.right if vote.left == turn else vote.left
    persona = votes.debate.personas[vote.judge.agent].name
    result = result_for(turn, vote)
    return NamingVote(vote.judge, persona, other, result, votes.line(vote), not reason, reason)


def result_for(turn: TurnId, vote: Vote) -> Result:
    """Return how a vote went for one of its sides."""
    if vote.outcome == "tie":
        return "tie"
    return "won" if (vote.outcome == "left") == (vote.left == turn) else "lost"


def _opponents(
    votes: Sequence[Vote], turn: TurnId, rule: str, scores: Mapping[TurnId, float]
) -> tuple[Opponent, ...]:
    met = sorted(
        {side for vote in votes for side in (vote.left, vote.right) if turn in (vote.left, vote.right)}
    )
    if rule == "bradley_terry" and turn in scores:
        met = next(part for part in components(vote_graph(votes)) if turn in part)
    return tuple(_opponent(votes, turn, other, rule, scores) for other in met if other != turn)


def _opponent(
    votes: Sequence[Vote], turn: TurnId, other: TurnId, rule: str, scores: Mapping[TurnId, float]
) -> Opponent:
    results = [result_for(turn, vote) for vote in votes if {vote.left, vote.right} == {turn, other}]
    won, lost, ties = (results.count(result) for result in ("won", "lost", "tie"))
    beats = 1 / (1 + exp(scores[other] - scores[turn])) if rule == "bradley_terry" else None
    return Opponent(other, won, lost, ties, sign(won - lost), scores.get(other), beats)


def _peer_formula(rule: str, counts: tuple[int, int, int], opponents: Sequence[Opponent]) -> str:
    """Return the arithmetic of a rule; "" for a rule of one's own."""
    won, lost, ties = counts
    if rule == "margin":
        return f"({won} - {lost}) / ({won} + {lost} + {ties})"
    if rule == "copeland":
        return f"({added([one.sign for one in opponents])}) / {len(opponents)}"
    if rule == "bradley_terry":
        return f"-({added([one.score or 0.0 for one in opponents])})"
    return ""


SETTINGS: dict[Correct, str] = {
    True: "truth_correct",
    False: "truth_wrong",
    "missing": "truth_missing",
    None: "",
}
"""Which key of ``rewards`` pays which grade."""


def truth_why(record: Record, turn: TurnId, config: RewardConfig | None, numbers: Sources) -> TruthWhy:
    """Return why a turn has its truth reward."""
    debate = record.debate
    grade = grade_of(record, turn)
    setting = SETTINGS[grade]
    source = f"rewards.{setting}" if setting else "the problem has no answer"
    if not setting and record.correct is not None:
        source = "the answer was not graded, which is not wrong"
    formula = written(getattr(config, setting)) if config is not None and setting else ""
    return TruthWhy(
        answer=debate.turn(turn).parsed.answer,
        gold=debate.problem.answer,
        grade=grade,
        setting=setting,
        reward=numbers.reward("truth", turn, formula, source),
    )


def grade_of(record: Record, turn: TurnId) -> Correct:
    """Return the grade of a turn, None where it has none."""
    table = record.correct or ()
    row = table[turn.agent] if 0 <= turn.agent < len(table) else ()
    return row[turn.round] if 0 <= turn.round < len(row) else None


def judge_why(
    record: Record, votes: Votes, turn: TurnId, config: RewardConfig | None, numbers: Sources
) -> JudgeWhy:
    """Return why a turn has its judge reward."""
    weight = None if config is None else config.judge_weight_of_truth(verifiable=record.correct is not None)
    worth: dict[int, VoteValue] = {}
    if weight is not None:
        values = vote_values(votes.counted, record.correct, truth_weight=weight)
        worth = {id(vote): value for vote, value in zip(votes.counted, values, strict=True)}
    given = tuple(
        _given(record, votes, vote, reason, weight, None if reason else worth.get(id(vote)))
        for vote, reason in votes.cast
        if vote.judge == turn
    )
    paid = [one.value.value for one in given if one.value.value is not None]
    formula = f"({added(paid)}) / {len(paid)}" if paid else ""
    return JudgeWhy(weight, given, numbers.reward("judge", turn, formula, _judge_source(given, weight)))


def _judge_source(given: Sequence[GivenVote], weight: float | None) -> str:
    if not any(one.counts for one in given):
        return "the turn gave no vote that counts"
    if weight is not None and all(one.value.value is None for one in given):
        return "no vote has a value: see each vote"
    return "mean value of the votes that have one"


def _given(
    record: Record,
    votes: Votes,
    vote: Vote,
    reason: str,
    weight: float | None,
    worth: VoteValue | None,
) -> GivenVote:
    sides = grade_of(record, vote.left), grade_of(record, vote.right)
    consensual = not reason and weight is not None and weight < 1
    return GivenVote(
        left=vote.left,
        right=vote.right,
        outcome=vote.outcome,
        line=votes.line(vote),
        counts=not reason,
        why_not=reason,
        left_right=sides,
        truth=None if worth is None else worth.truth,
        others=_others(votes.counted, vote) if consensual else None,
        consensus=None if worth is None else worth.consensus,
        value=_worth(weight, worth, reason),
    )


def _others(votes: Sequence[Vote], vote: Vote) -> int:
    """Return the net votes of the other judges for the vote's left side."""
    net = net_votes(votes)[pair_of(vote)] - verdict(vote)
    return net if pair_of(vote)[0] == vote.left else -net


def _worth(weight: float | None, worth: VoteValue | None, reason: str) -> Number:
    if reason:
        return Number(source=f"does not count: {reason}")
    if weight is None or worth is None:
        return Number(source="not known without a configuration")
    if worth.value is None:
        return Number(source=_why_worthless(weight))
    truth, consensus = worth.truth, worth.consensus
    if truth is not None and consensus is not None:
        formula = f"{written(weight)} * {written(truth)} + (1 - {written(weight)}) * {written(consensus)}"
        return Number(float(worth.value), formula, source="truth and the consensus of the others, weighed")
    part = written(truth if truth is not None else consensus)
    return Number(float(worth.value), part, source="truth" if truth is not None else "the others' consensus")


def _why_worthless(weight: float) -> str:
    truth = "not exactly one side is right"
    consensus = "the other judges of the pair balance, or there are none"
    return truth if weight == 1 else consensus if weight == 0 else f"{truth}, and {consensus}"


def format_why(record: Record, votes: Votes, turn: TurnId, numbers: Sources) -> FormatWhy:
    """Return why a turn was fined, or not."""
    said = record.debate.turn(turn)
    counted = sum(vote.judge == turn for vote in votes.counted)
    due = turn in votes.due
    told = "comparisons were due and no vote counts: rewards.format_penalty"
    if not due or counted:
        told = f"{counted} votes count: no fine" if due else "no comparison was due"
    return FormatWhy(
        due=due,
        comparable=said.compared,
        counted=counted,
        failures=tuple((failure.reason.value, failure.detail) for failure in said.parsed.failures),
        reward=numbers.reward("format", turn, arithmetic, told),
    )
