"""Tables of rows for computing figures, filled from one stored debate after another.

Grades: 1 right, 0 wrong or missing, -1 ungraded.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import combinations, permutations
from math import log, nan
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from debate.types import Problem, TurnId
from debate_rl.metrics.answers import consensus, graded_answers
from debate_rl.metrics.intervals import Codes, Numbered
from debate_rl.reports.estimators import auc, circular_triads, kendall_tau_b, kendall_zeta, slater_distance
from envs.answers.keys import plain_key
from envs.causes.rules import fault_of
from rewards import ballot_box, valid_votes, voted_winner
from rewards.graph import condorcet_winner, cycles, last_voted_round, majorities
from rewards.judge_rewards import better_side
from rewards.peer import margins
from rewards.truth import FLIPS, flips, grades_of_solutions, is_right
from rewards.types import Stream
from rewards.votes import FOR_LEFT, DuePair, due_pairs
from rewards.winner import best_voted
from transcripts import Record
from transcripts.causes import wrong_reply

RIGHT = "\0right"
"""The key of every right answer, in any notation."""
NO_VOTE = 2
"""The outcome of a due pair without a valid vote."""
SLATER_MOST = 8
"""Maximum number of solutions for which the Slater distance is computed."""
_PLAIN = Problem("", "")
_key = lru_cache(maxsize=1 << 14)(lambda written: plain_key(_PLAIN, written))
Row = tuple[float, ...]


class JudgedDebate:
    """The parts of a debate that figures need: due comparisons, valid votes, and the winner.

    ``due``: every pair that a judge could compare. ``edges``: (winner, loser) of each strict majority.
    ``peer`` (N, R): peer rewards, or margins if the debate was not scored.
    """

    def __init__(self, record: Record) -> None:
        debate, protocol = record.debate, record.debate.protocol
        self.record = record
        self.agents, self.rounds = protocol.num_agents, protocol.num_rounds
        self.solutions = {turn.id: turn for turn in debate.turns if not turn.ballot}
        self.box = ballot_box(debate)
        self.votes = valid_votes(self.box)
        self.due, self.edges = due_pairs(self.box, self.votes), majorities(self.votes)
        peer = record.rewards.peer if record.rewards else margins(self.votes, self.agents, self.rounds)
        self.peer: Stream = peer
        self.winner = voted_winner(self.peer, seed=debate.seed)

    def grade(self, turn: TurnId) -> int:
        """Return 1 for a right solution, 0 for a wrong or missing one, -1 for an ungraded one."""
        right = is_right(turn, self.record.correct)
        return -1 if right is None else int(right)

    def fault(self, turn: TurnId) -> str:
        """Return the visible fault of a wrong solution."""
        said = self.solutions.get(turn)
        reply = said and wrong_reply(self.record, said)
        return fault_of(reply, said.parsed.answer) if said and reply else "no answer"

    def answer(self, turn: TurnId) -> str | None:
        """Return a key that is equal for equal answers, or None without an answer."""
        if self.grade(turn) == 1:
            return RIGHT
        solution = self.solutions.get(turn)
        written = solution.parsed.answer if solution else None
        return None if written is None else _key(written)

    def size(self, turn: TurnId) -> int:
        """Return the number of characters of a solution, or of the reply without one; at least 1."""
        solution = self.solutions.get(turn)
        span = solution and solution.parsed.solution
        whole = len(solution.completion.text) if solution else 1
        return max(1, span.end - span.start if span else whole)


class Columns:
    """A table. A column is written "name:code", with a type code of ``array``: "b", "h", "i", "f".

    >>> table = Columns("debate:i right:b")
    >>> table.add(0, 1)
    >>> table.add(0, -1)
    >>> table["right"], len(table)
    (array([ 1, -1], dtype=int8), 2)
    """

    def __init__(self, types: str) -> None:
        pairs = (pair.split(":") for pair in types.split())
        self._columns: dict[str, array[Any]] = {name: array(code) for name, code in pairs}

    def add(self, *values: float) -> None:
        """Add a row, in the order of the columns."""
        for column, value in zip(self._columns.values(), values, strict=True):
            column.append(value)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a copy of a column, (rows,)."""
        column = self._columns[name]
        return np.array(column, dtype=np.dtype(column.typecode))

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))


class Rows(NamedTuple):
    """The rows (n,) of a figure that is a mean: values, which of the values count, and their problems."""

    values: NDArray[Any]
    counted: NDArray[np.bool_]
    clusters: Codes

    def of(self, inside: NDArray[np.bool_]) -> Rows:
        """Return the rows where ``inside`` is true."""
        return Rows(self.values[inside], self.counted[inside], self.clusters[inside])


class Study:
    """The rows of all debates so far. Each table has a column ``debate``, an index into ``debates``.

    ``problems``, ``personas``, ``levels``, ``sources`` and ``faults`` map the numbers in the tables to texts;
    ``ids`` has the id of each debate. A vote takes about 20 bytes and a debate 100, so 100,000 debates take
    tens of megabytes.
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.problems, self.personas, self.levels, self.sources = (Numbered() for _ in range(4))
        self.faults, self.ids = Numbered(), list[str]()
        self.debates = Columns("problem:i step:i level:i source:i final:b")
        pairs = "debate:i round:b agent:b persona:h first:b second:b better:b own:b outcome:b length:f"
        self.pairs = Columns(f"{pairs} self:b fault:h")
        self.swaps = Columns("debate:i kind:b")
        counts = "debate:i right:b graded:b rights:b drawn:b"
        self.winners = Columns(f"{counts} majority:f auc:f tau:f score:f")
        self.flips = Columns(" ".join(("debate:i", *(f"{name}:h" for name in FLIPS))))
        self.adoptions = Columns("debate:i excess:f")
        self.graphs = Columns("debate:i cycle:b condorcet:b")
        self.rounds = Columns("debate:i circular:i triads:i zeta:f slater:f")
        self.talk = Columns("debate:i entropy:f given:f dyads:h")
        self._rounds: set[int] = set()
        for record in records:
            self.add(record)

    def add(self, record: Record, id: str = "") -> None:
        """Add the rows of a record."""
        judged, index = JudgedDebate(record), len(self.debates)
        personas = [self.personas[persona.name] for persona in record.debate.personas]
        problem, winner = record.debate.problem, judged.winner
        level, source = self.levels[problem.level], self.sources[problem.source]
        final = winner is not None and winner.round == judged.rounds - 1
        self._rounds.add(judged.rounds)
        self.debates.add(self.problems[problem.id], record.step, level, source, final)
        self.ids.append(id)
        for row in _pairs(judged, personas, self.faults):
            self.pairs.add(index, *row)
        tables = (self.swaps, self.winners, self.adoptions, self.rounds, self.talk)
        for table, rows in zip(tables, (_swaps, _winner, _adoptions, _rounds, _talk), strict=True):
            for row in rows(judged):
                table.add(index, *row)
        counts = flips(grades_of_solutions(record.debate, record.correct))
        if any(counts.values()):  # an agent was graded in two consecutive rounds
            self.flips.add(index, *counts.values())
        last = last_voted_round(judged.votes)
        if last is not None:
            best = condorcet_winner(judged.edges, last, judged.agents)
            self.graphs.add(index, bool(cycles(judged.edges)), best is not None)

    @property
    def num_rounds(self) -> int | None:
        """The number of rounds of every debate, or None if debates differ."""
        return min(self._rounds) if len(self._rounds) == 1 else None

    def clusters(self, table: Columns) -> Codes:
        """Return the problem of each row of a table."""
        return self.of_debate("problem", table).astype(np.int64)

    def of_debate(self, name: str, table: Columns) -> NDArray[Any]:
        """Return a column of ``debates`` for each row of a table."""
        return self.debates[name][table["debate"]]


def _pairs(debate: JudgedDebate, personas: list[int], faults: Numbered) -> Iterator[Row]:
    """Yield the due pairs. ``length``: ln(first / second). ``self``: the grade of the judge's own answer.

    ``better``: as in rewards.judge_rewards.better_side. ``own``: 1 if the first solution is the judge's own,
    -1 if the second one is, else 0. ``fault``: the fault of the wrong side of a decidable pair, else -1.
    """
    seen: dict[TurnId, int] = {}
    for pair in debate.due:
        agent, round_ = pair.judge
        better = better_side(pair.first, pair.second, debate.record.correct)
        wrong = {1: pair.second, -1: pair.first}.get(better)
        if wrong is not None and wrong not in seen:
            seen[wrong] = faults[debate.fault(wrong)]
        yield (
            round_,
            agent,
            personas[agent],
            debate.grade(pair.first),
            debate.grade(pair.second),
            better,
            (pair.first.agent == agent) - (pair.second.agent == agent),
            NO_VOTE if pair.verdict is None else pair.verdict,
            log(debate.size(pair.first) / debate.size(pair.second)),
            debate.grade(TurnId(agent, min(round_, debate.rounds) - 1)),
            -1 if wrong is None else seen[wrong],
        )


def _swaps(debate: JudgedDebate) -> Iterator[Row]:
    """Yield a row per pair that two judges saw in opposite orders: 0 consistent, 1 primacy, -1 recency."""
    by_pair: dict[frozenset[TurnId], list[DuePair]] = defaultdict(list)
    for pair in debate.due:
        if pair.verdict:
            by_pair[frozenset((pair.first, pair.second))].append(pair)
    for votes in by_pair.values():
        for first, second in combinations(votes, 2):
            if first.first != second.first:
                yield ((first.verdict if first.verdict == second.verdict else 0) or 0,)


def _winner(debate: JudgedDebate) -> Iterator[Row]:
    """Yield the graded winner of the last judged round.

    Values are nan if scores cannot be compared with truth. ``majority``: the chance that the round's most
    frequent answer is right, with random ties.
    """
    winner, record = debate.winner, debate.record
    if winner is None or debate.grade(winner) < 0:
        return
    round_ = winner.round
    grades = [debate.grade(TurnId(agent, round_)) for agent in range(debate.agents)]
    scores = [row[round_] for row in debate.peer]
    pairs = zip(scores, grades, strict=True)
    known = [(score, grade) for score, grade in pairs if grade >= 0 and score is not None]
    answers = [answer for at, answer in graded_answers(record.debate, record.correct) if at == round_]
    score = scores[winner.agent]
    yield (
        grades[winner.agent],
        sum(grade >= 0 for grade in grades),
        sum(grade == 1 for grade in grades),
        len(best_voted(debate.peer)) > 1,
        consensus(answers),
        auc(known),
        kendall_tau_b(known),
        nan if score is None else score,
    )


def _adoptions(debate: JudgedDebate) -> Iterator[Row]:
    """Yield each answer that was adopted from some, but not all, of the other agents in the prompt.

    ``excess``: 1 if the agent shown first gave that answer, else 0, minus the fraction of all shown agents
    that gave it.
    """
    for turn, shown in debate.box.comparable.items():
        agent, round_ = turn
        others = [debate.answer(other) for other in shown if other.agent != agent]
        if not 0 < round_ < debate.rounds or len(others) < 2:
            continue
        now, before = debate.answer(turn), debate.answer(TurnId(agent, round_ - 1))
        share = fmean(other == now for other in others)
        if now is not None and now != before and 0 < share < 1:
            yield ((others[0] == now) - share,)


def _rounds(debate: JudgedDebate) -> Iterator[Row]:
    """Yield each round with a strict majority on at least one pair. Undefined values are nan."""
    rounds: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for winner, loser in debate.edges:
        if winner.round == loser.round:
            rounds[winner.round].add((winner.agent, loser.agent))
    for edges in rounds.values():
        slater = slater_distance(frozenset(edges)) if debate.agents <= SLATER_MOST else nan
        yield *circular_triads(edges), kendall_zeta(edges, debate.agents), slater


def _talk(debate: JudgedDebate) -> Iterator[Row]:
    """Yield the entropy of the last answers divided by ln N, and the mutual favours of two agents.

    A favour is the mean of a judge's votes (+1, 0, -1) for an agent on pairs equal in truth. ``given``: the
    sum of the products of both favours over the ``dyads``, pairs of agents with both favours.
    """
    votes: dict[tuple[int, int], list[int]] = defaultdict(list)
    for vote in debate.votes:
        judge, left, right = vote.judge.agent, vote.left.agent, vote.right.agent
        if judge not in (left, right) and debate.grade(vote.left) == debate.grade(vote.right):
            votes[judge, left].append(FOR_LEFT[vote.outcome])
            votes[judge, right].append(-FOR_LEFT[vote.outcome])
    favours = {key: fmean(votes[key]) for key in permutations(range(debate.agents), 2) if key in votes}
    both = [favours[a, b] * favours[b, a] for a, b in favours if a < b and (b, a) in favours]
    last = (debate.answer(TurnId(agent, debate.rounds - 1)) for agent in range(debate.agents))
    given = [key for key in last if key is not None]
    shares = [count / len(given) for count in Counter(given).values()]
    entropy = -sum(share * log(share) for share in shares) / log(len(given)) if len(given) > 1 else nan
    yield entropy, sum(both), len(both)
