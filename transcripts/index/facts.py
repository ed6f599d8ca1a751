"""What the index holds of a debate, read from its line without building the whole record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast, get_type_hints

from rewards import voted_winner
from rewards.truth import flips, is_right, right_share, round_accuracy
from transcripts.index.graph import PlainVote, beats, has_condorcet, has_cycle, valid_votes

MOST = 64
"""Agents and rounds that a protocol can have, as ``debate.DebateConfig`` says."""
WINNERS = ("none", "right", "wrong", "ungraded")
"""What the winner of a debate can be, by the number that the index holds."""


FACTS_VERSION = 1
"""Of the meaning of what follows. Lines keep their facts; those of another version are read again."""


class ProblemFacts(NamedTuple):
    """What debates of one problem share; the question is cut to its first 200 characters."""

    id: str
    source: str
    level: str
    kind: str
    gold: str | None
    question: str


class Facts(NamedTuple):
    """The numbers of one debate; docs/transcripts.md says what each is. None: there is no such value."""

    seed: int
    version: int
    agents: int
    rounds: int
    winner: int
    winner_agent: int | None
    correct: float | None
    correct_first: float | None
    correct_last: float | None
    missing: int
    ungraded: int
    agreement: float | None
    votes: int
    ties: int
    cycle: int
    condorcet: int | None
    judge: float | None
    malformed: int
    truncated: int
    tokens: int
    cc: int
    cw: int
    wc: int
    ww: int
    peer: float | None
    truth: float | None
    judging: float | None
    format: float | None
    seconds: float | None


ALWAYS = tuple(name for name, kind in get_type_hints(Facts).items() if kind is int)
"""The facts that every debate has, all of them whole numbers."""


class Found(NamedTuple):
    """All that the index holds of one line."""

    facts: Facts
    problem: ProblemFacts
    personas: tuple[str, ...]
    answers: frozenset[str]


def facts_of(record: Mapping[str, Any]) -> Found:
    """Return the facts of a line of any schema; LookupError, TypeError or ValueError where it is damaged."""
    debate, rewards = record["debate"], record["rewards"]
    protocol, turns, correct = debate["protocol"], debate["turns"], record["correct"]
    agents, rounds = protocol["num_agents"], protocol["num_rounds"]
    if not (1 <= agents <= MOST and 1 <= rounds <= MOST):
        raise ValueError(f"{agents} agents and {rounds} rounds are more than a debate can have")
    solved = [turn for turn in turns if not turn.get("ballot", False)]
    final = [text(turn["parsed"]["answer"]) for turn in solved if turn["id"][1] == rounds - 1]
    votes = valid_votes(turns, debate["votes"], protocol)
    edges = beats(votes)
    peer = rewards["peer"] if rewards else margins(votes, agents, rounds)
    winner = _winner(peer, correct, debate["seed"])
    timing = record.get("timing")
    facts = Facts(
        seed=debate["seed"],
        version=debate["policy_version"],
        agents=agents,
        rounds=rounds,
        winner=winner[0],
        winner_agent=winner[1],
        correct=right_share(cell for row in correct or () for cell in row),
        correct_first=round_accuracy(correct, 0),
        correct_last=round_accuracy(correct, -1),
        missing=_missing(solved, correct),
        ungraded=_ungraded(solved, correct),
        agreement=_agreement(final),
        votes=len(votes),
        ties=sum(vote.verdict == 0 for vote in votes),
        cycle=has_cycle(edges),
        condorcet=_condorcet(votes, edges, agents),
        judge=_judge_share(votes, correct),
        malformed=sum(len(turn["parsed"]["failures"]) for turn in turns),
        truncated=sum(turn["completion"]["stop_reason"] == "length" for turn in turns),
        tokens=sum(_count(one["completion"]) for one in (*turns, *debate.get("summaries", ()))),
        **flips(correct),
        peer=_mean(rewards, "peer"),
        truth=_mean(rewards, "truth"),
        judging=_mean(rewards, "judge"),
        format=_mean(rewards, "format"),
        seconds=timing["seconds"] if timing else None,
    )
    personas = tuple(text(persona["name"]) or "" for persona in debate["personas"])
    answers = frozenset(answer for answer in final if answer is not None)
    return Found(facts, _problem(debate["problem"]), personas, answers)


def to_json(found: Found) -> list[Any]:
    """Return the facts as a line keeps them, so that an index is built without reading the texts."""
    return [FACTS_VERSION, [*found.facts], [*found.problem], [*found.personas], sorted(found.answers)]


def from_json(kept: Any) -> Found | None:
    """Return the facts that a line kept; None where there are none, or of another version."""
    if not isinstance(kept, list) or len(kept) != 5 or kept[0] != FACTS_VERSION:  # type: ignore[reportUnknownArgumentType]
        return None
    try:
        _, facts, problem, personas, answers = cast("list[Any]", kept)
        found = Found(Facts(*facts), ProblemFacts(*problem), tuple(personas), frozenset(answers))
        return found if isinstance(personas, list) and is_ours(found) else None
    except TypeError:
        return None


def is_ours(found: Found) -> bool:
    """Return whether facts are such as we write: a line or an index may be of anybody's making."""
    gold = found.problem.gold
    texts = (*found.problem._replace(gold="" if gold is None else gold), *found.personas, *found.answers)
    whole = all(isinstance(value, str) and value == text(value) for value in texts)
    counted = all(isinstance(getattr(found.facts, name), int) for name in ALWAYS)
    others = all(
        value is None or isinstance(value, int | float) for value in cast("tuple[Any, ...]", found.facts)
    )
    return whole and counted and others and 0 <= found.facts.winner < len(WINNERS)


def text(value: str | list[str] | None) -> str | None:
    r"""Return a stored text as SQLite can hold it: pieces joined, half characters replaced.

    >>> text(["a\ud83d", "\ude00"])
    'a??'
    """
    if isinstance(value, list):
        value = "".join(value)
    if value is None or value.isascii():
        return value
    return value.encode("utf-8", "replace").decode("utf-8")


def _problem(problem: Mapping[str, Any]) -> ProblemFacts:
    names = ("id", "source", "level", "kind")
    id, source, level, kind = (text(problem[name]) or "" for name in names)
    question = (text(problem["question"]) or "")[:200]
    return ProblemFacts(id, source, level, kind, text(problem["answer"]), question)


def _winner(peer: Sequence[Sequence[float | None]], correct: Any, seed: int) -> tuple[int, int | None]:
    """Return what the voted winner is (a place in WINNERS) and who."""
    winner = voted_winner(peer, seed=seed)
    if winner is None:
        return 0, None
    right = is_right(winner, correct)
    return WINNERS.index("ungraded" if right is None else "right" if right else "wrong"), winner.agent


def margins(votes: Sequence[PlainVote], agents: int, rounds: int) -> list[list[float | None]]:
    """Return (N, R): wins minus losses over votes received, for debates that were not scored."""
    net: Counter[tuple[int, int]] = Counter()
    received: Counter[tuple[int, int]] = Counter()
    for vote in votes:
        net[vote.first] += vote.verdict
        net[vote.second] -= vote.verdict
        received.update((vote.first, vote.second))
    table = range(rounds)
    return [[net[a, r] / received[a, r] if received[a, r] else None for r in table] for a in range(agents)]


def _missing(solved: Sequence[Mapping[str, Any]], correct: Any) -> int:
    if correct is None:
        return sum(turn["parsed"]["answer"] is None for turn in solved)
    return sum(cell == "missing" for row in correct for cell in row)


def _ungraded(solved: Sequence[Mapping[str, Any]], correct: Any) -> int:
    if correct is None:
        return len(solved)
    return sum(cell is None for row in correct for cell in row)


def _agreement(final: Sequence[str | None]) -> float | None:
    """Return the share of the agents that gave the commonest final answer; None where none gave any."""
    given = Counter(answer for answer in final if answer is not None)
    return max(given.values()) / len(final) if given else None


def _condorcet(votes: Sequence[PlainVote], edges: set[Any], agents: int) -> int | None:
    rounds = [vote.first[1] for vote in votes]
    return has_condorcet(edges, max(rounds), agents) if rounds else None


def _judge_share(votes: Sequence[PlainVote], correct: Any) -> float | None:
    """Return the share of right votes among those on pairs of which exactly one side is right."""
    right: list[bool] = []
    table: Any = correct
    for vote in votes if correct is not None else ():
        grades: list[Any] = [table[agent][round_] for agent, round_ in (vote.first, vote.second)]
        better = (grades[0] is True) - (grades[1] is True)
        if better and None not in grades:
            right.append(vote.verdict == better)
    return sum(right) / len(right) if right else None


def _mean(rewards: Mapping[str, Any] | None, stream: str) -> float | None:
    values = [value for row in rewards[stream] for value in row if value is not None] if rewards else []
    return sum(values) / len(values) if values else None


def _count(completion: Mapping[str, Any]) -> int:
    """Return the generated tokens of a completion: as many as there are ids, or what was told."""
    return len(completion.get("tokens", ())) or completion.get("token_count") or 0
