"""The facts about a debate that the index stores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean
from typing import Any, NamedTuple, get_type_hints

from debate.policy import token_counts
from debate.types import Vote
from rewards import STREAMS, Correct, Rewards, ballot_box, valid_votes, voted_winner
from rewards.graph import condorcet_winner, cycles, last_voted_round, majorities
from rewards.judge_rewards import judge_counts
from rewards.peer import margins
from rewards.truth import (
    flips,
    grade_of,
    grades_of_solutions,
    is_right,
    of_truth_alone,
    right_share,
    round_accuracy,
)
from rewards.types import Stream, Truth, known_values
from rewards.votes import due_pairs
from transcripts.record import Record

WINNERS = ("none", "right", "wrong", "ungraded")
"""The possible winners of a debate. The index stores positions in this tuple."""


class ProblemFacts(NamedTuple):
    """Facts shared by the debates of a problem. The question is cut to its first 200 characters."""

    id: str
    source: str
    level: str
    kind: str
    gold: str | None
    question: str


class Facts(NamedTuple):
    """The numbers of one debate, described in docs/transcripts.md. None: there is no such value.

    Each mean is stored with the number of items it was taken over, because a step's figure is the mean over
    all its turns or votes.
    """

    seed: int
    policy_version: int
    agents: int
    rounds: int
    rounds_saved: int
    winner: int
    winner_agent: int | None
    accuracy: float | None
    accuracy_round_0: float | None
    accuracy_last_round: float | None
    graded_round_0: int
    graded_last_round: int
    missing: int
    ungraded: int
    agreement: float | None
    votes: int
    ties: int
    cycle: int
    condorcet: int | None
    judge_accuracy: float | None
    decidable_votes: int
    malformed: int
    truncated: int
    tokens: int
    flip_cc: int
    flip_cw: int
    flip_wc: int
    flip_ww: int
    reward_peer: float | None
    reward_truth: float | None
    reward_judge: float | None
    reward_format: float | None
    reward_peer_n: int
    reward_truth_n: int
    reward_judge_n: int
    reward_format_n: int
    advantage_generator: float | None
    advantage_judge: float | None
    seconds: float | None


REALS = frozenset(name for name, kind in get_type_hints(Facts).items() if kind == float | None)
"""The facts that are not integers. Each may be missing."""


class IndexEntry(NamedTuple):
    """The full index entry of one debate."""

    facts: Facts
    problem: ProblemFacts
    personas: tuple[str, ...]
    answers: tuple[str, ...]


def facts_of(record: Record) -> IndexEntry:
    """Return the index entry of a record. LookupError or ValueError if it does not fit its protocol."""
    debate, rewards, correct = record.debate, record.rewards, record.correct
    agents, rounds = debate.protocol.num_agents, debate.protocol.num_rounds
    solutions = [turn for turn in debate.turns if not turn.ballot]
    last = [turn.parsed.answer for turn in solutions if turn.id.round == rounds - 1]
    given = [answer for answer in last if answer is not None]
    cells: list[Truth] = [cell for row in correct or () for cell in row]
    unanswered = sum(turn.parsed.answer is None for turn in solutions)
    graded = grades_of_solutions(debate, correct)
    box = ballot_box(debate)
    votes = valid_votes(box)
    cycle, condorcet = _graph(votes, agents)
    judged = judge_counts(due_pairs(box, votes), correct)
    peer = rewards.peer if rewards else margins(votes, agents, rounds)
    winner, winner_agent = _winner(peer, correct, debate.seed)
    facts = Facts(
        seed=debate.seed,
        policy_version=debate.policy_version,
        agents=agents,
        rounds=rounds,
        rounds_saved=debate.rounds_saved or 0,
        winner=winner,
        winner_agent=winner_agent,
        accuracy=right_share(cells),
        accuracy_round_0=round_accuracy(correct, 0),
        accuracy_last_round=round_accuracy(correct, -1),
        graded_round_0=_graded(correct, 0),
        graded_last_round=_graded(correct, -1),
        missing=unanswered if correct is None else cells.count("missing"),
        ungraded=sum(grade_of(turn.id, correct) is None for turn in solutions),
        agreement=max(Counter(given).values()) / len(last) if given else None,
        votes=len(votes),
        ties=sum(vote.outcome == "tie" for vote in votes),
        cycle=cycle,
        condorcet=condorcet,
        judge_accuracy=judged.accuracy,
        decidable_votes=judged.votes,
        malformed=sum(len(turn.parsed.failures) for turn in debate.turns),
        truncated=sum(turn.completion.stop_reason == "length" for turn in debate.turns),
        tokens=sum(
            token_counts(reply)[1] for reply in (*(t.completion for t in debate.turns), *debate.auxiliary())
        ),
        **{f"flip_{name}": count for name, count in flips(graded).items()},
        **_reward_facts(rewards and of_truth_alone(rewards, correct, record.verdicts or None)),
        **_advantage_facts(record),
        seconds=record.timing.seconds if record.timing else None,
    )
    personas = tuple(persona.name for persona in debate.personas)
    of, question = debate.problem, debate.problem.question[:200]
    problem = ProblemFacts(of.id, of.source, of.level, of.kind, of.answer, question)
    return IndexEntry(facts, problem, personas, tuple(sorted(set(given))))


def _winner(peer: Stream, correct: Correct, seed: int) -> tuple[int, int | None]:
    """Return the winner's kind, as a position in WINNERS, and its agent."""
    winner = voted_winner(peer, seed=seed)
    if winner is None:
        return 0, None
    right = is_right(winner, correct)
    return WINNERS.index("ungraded" if right is None else "right" if right else "wrong"), winner.agent


def _graded(correct: Correct, round_: int) -> int:
    return sum(row[round_] is not None for row in correct or () if row)


def _graph(votes: Sequence[Vote], agents: int) -> tuple[int, int | None]:
    """Return whether there is a cycle, and whether the last round has a Condorcet winner (None: no votes)."""
    edges, last = majorities(votes), last_voted_round(votes)
    best = None if last is None else int(condorcet_winner(edges, last, agents) is not None)
    return int(bool(cycles(edges))), best


def _reward_facts(rewards: Rewards | None) -> dict[str, Any]:
    """Return the mean reward of each stream over the turns that have one, and the number of these turns."""
    known = {name: known_values(getattr(rewards, name)) if rewards else [] for name in STREAMS}
    means = {f"reward_{name}": fmean(values) if values else None for name, values in known.items()}
    return means | {f"reward_{name}_n": len(values) for name, values in known.items()}


def _advantage_facts(record: Record) -> dict[str, Any]:
    """Return the mean advantage of the solutions and of the comparisons, over the turns that have one."""
    found: dict[str, Any] = {}
    for name in ("generator", "judge"):
        values = [value for part in record.advantages if (value := getattr(part, name)) is not None]
        found[f"advantage_{name}"] = fmean(values) if values else None
    return found
