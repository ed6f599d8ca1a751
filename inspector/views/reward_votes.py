"""The rewards of one turn explained: votes received, the grade, the fine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp

from debate.types import Debate, TurnId, Vote
from inspector.views.reward_numbers import Sources, added, arithmetic, written
from inspector.views.reward_types import (
    FormatWhy,
    NamingVote,
    Opponent,
    PeerWhy,
    Result,
    TruthWhy,
)
from rewards import RewardConfig, ballot_box, drop_reasons
from rewards.graph import components, vote_graph
from rewards.peer import peer_rule
from rewards.votes import sign
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
    box = ballot_box(debate, judge_own=config is None or config.judge_own)
    return Votes(debate, tuple(drop_reasons(box)), frozenset(box.due()))


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


def format_why(record: Record, votes: Votes, turn: TurnId, numbers: Sources) -> FormatWhy:
    """Return why a turn was fined, or not."""
    said = record.debate.turn(turn)
    counted = sum(vote.judge == turn for vote in votes.counted)
    due = turn in votes.due
    told = "comparisons were due and no vote counts: rewards.format_penalty"
    if not due or counted:
        told = f"votes that count: {counted}, so no fine" if due else "no comparison was due"
    return FormatWhy(
        due=due,
        comparable=said.compared,
        counted=counted,
        failures=tuple((failure.reason.value, failure.detail) for failure in said.parsed.failures),
        reward=numbers.reward("format", turn, arithmetic, told),
    )
