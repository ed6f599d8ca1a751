"""Figures by step from stored debates: some from the index of all debates, some from a sample of debates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from math import isfinite
from pathlib import Path

import numpy as np

from debate_rl.alarms.curves import STREAMS, Curves, Steps, joined
from envs.causes.rules import is_repeated
from rewards import ballot_box, valid_votes, voted_winner
from rewards.peer import margins
from rewards.truth import is_right, round_accuracy
from rewards.votes import due_pairs
from transcripts import DebateRow, Record, RunStore, TranscriptError

PAGE = 2000
MOST_DEBATES, MOST_STEPS = 2000, 100
INDEXED = {
    **{"accuracy": "accuracy", "accuracy/round_0": "accuracy_round_0", "judge/accuracy": "judge_accuracy"},
    **{"votes/valid": "votes", "votes/ties": "ties"},
    **{f"reward/{stream}/mean": f"reward_{stream}" for stream in STREAMS},
}
"""Each figure, with the fact of the index that it averages (for votes: sums)."""
SUMS = ("votes/", "sample/first/", "sample/agent_")
DAMAGE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""Errors of a damaged or foreign record."""
Look = Callable[[int, str, Record], None]  # takes the step and the id of a debate, and the debate
NOTHING = frozenset(("", "n/a", "na", "none", "nothing", "null", "-", "...", "…", "tbd"))


@dataclass(slots=True)
class Stored:
    """Figures of the stored debates.

    ``debates`` counts all of them, ``read`` those that were read, ``skipped`` the unreadable ones. ``steps``:
    the lowest and the highest step with debates. ``notes``: what is missing or damaged.
    """

    curves: Curves = field(default_factory=Curves)
    debates: int = 0
    steps: tuple[int, int] | None = None
    read: int = 0
    skipped: int = 0
    notes: list[str] = field(default_factory=list[str])


def read_stored(path: Path, look: Look | None = None) -> Stored:
    """Return the figures of a run's stored debates. ``look`` is called with each debate that is read.

    About 2,000 debates are read, from up to 100 evenly spaced steps.
    """
    stored = Stored()
    try:
        with RunStore.open(path) as store:
            means, after = _Means(), None
            while page := store.debates(after=after, limit=PAGE):
                for row in page:
                    _add_row(means, row)
                stored.debates, after = stored.debates + len(page), page[-1].id
            if not stored.debates:
                stored.notes.append("no stored debates: figures that need them are left out")
                return stored
            indexed = means.curves()
            stored.steps = int(indexed.steps[0]), int(indexed.steps[-1])
            stored.curves = joined([indexed, _sampled(store, indexed.steps, stored, look)])
            if store.damage:
                damage = f"{len(store.damage)} damaged lines in the transcripts: {store.damage[0]}"
                stored.notes.append(damage)
    except (TranscriptError, OSError, *DAMAGE) as error:
        stored.notes.append(f"stored debates are left out: {' '.join(str(error).split())[:200]}")
    if stored.skipped:
        stored.notes.append(f"{stored.skipped} steps of the sample could not be read completely")
    return stored


class _Means:
    def __init__(self) -> None:
        self._values: dict[str, dict[int, tuple[float, int]]] = defaultdict(dict)

    def add(self, name: str, step: int, value: float | None) -> None:
        if value is not None and isfinite(value):
            total, count = self._values[name].get(step, (0.0, 0))
            self._values[name][step] = total + value, count + 1

    def curves(self) -> Curves:
        """Return means by step, or sums for names that begin with one of ``SUMS``."""
        steps = sorted({step for of_step in self._values.values() for step in of_step})
        values = {name: np.full(len(steps), np.nan) for name in self._values}
        for name, of_step in self._values.items():
            for row, step in enumerate(steps):
                if step in of_step:
                    total, count = of_step[step]
                    values[name][row] = total / (1 if name.startswith(SUMS) else count)
        return Curves(np.array(steps, dtype=np.int64), values)


def _add_row(means: _Means, row: DebateRow) -> None:
    """Add figures of the index under their names in metrics.jsonl."""
    facts, step = row.facts, row.step
    for name, fact in INDEXED.items():
        means.add(name, step, getattr(facts, fact))
    right = facts.accuracy_last_round
    means.add(f"accuracy/round_{max(0, facts.rounds + facts.rounds_saved - 1)}", step, right)
    if row.winner in ("right", "wrong"):
        means.add("winner/accuracy", step, float(row.winner == "right"))
    if facts.agents > 1:  # one alone agrees with itself
        means.add("agreement", step, facts.agreement)
        if facts.agreement is not None and right is not None:
            means.add("wrong_consensus", step, float(facts.agreement == 1 and right == 0))
    if facts.votes:
        means.add("graph/cycles", step, float(facts.cycle))


def _sampled(store: RunStore, steps: Steps, stored: Stored, look: Look | None) -> Curves:
    means, chosen = _Means(), steps
    if len(steps) > MOST_STEPS:  # evenly, first and last among them
        chosen = steps[np.unique(np.linspace(0, len(steps) - 1, MOST_STEPS).round().astype(int))]
    most = max(1, MOST_DEBATES // max(1, len(chosen)))
    for step in chosen.tolist():
        try:
            for id, record in islice(store.records(f"step:{step}"), most):
                _add_votes(means, step, record)
                for turn in record.debate.turns:
                    text, solution = turn.completion.text, turn.parsed.solution
                    means.add("sample/repeated", step, float(is_repeated(text)))
                    means.add("sample/empty", step, float(is_empty(solution.of(text))) if solution else None)
                if look is not None:
                    look(step, id, record)
                stored.read += 1
            for row in store.debates(f"step:{step}", limit=1):
                for completion in store.tokens(row.id).values():
                    forced = set(completion.forced)
                    for index, value in enumerate(completion.logprobs):
                        means.add("sample/logprob", step, None if index in forced else value)
        except (TranscriptError, OSError, *DAMAGE):
            stored.skipped += 1
    return means.curves()


def _add_votes(means: _Means, step: int, record: Record) -> None:
    """Add who is voted for, and the praise and the truth of the winner."""
    protocol, box = record.debate.protocol, ballot_box(record.debate)
    votes = valid_votes(box)
    for pair in due_pairs(box, votes):
        if pair.verdict:
            first, second = pair.verdict > 0, pair.verdict < 0
            agents = (f"agent_{pair.first.agent}", first), (f"agent_{pair.second.agent}", second)
            for whom, won in (("first", first), *agents):
                means.add(f"sample/{whom}/votes", step, 1.0)
                means.add(f"sample/{whom}/wins", step, float(won))
    rewards = record.rewards
    peer = rewards.peer if rewards else margins(votes, protocol.num_agents, protocol.num_rounds)
    winner = voted_winner(peer, seed=record.debate.seed)
    right = None if winner is None else is_right(winner, record.correct)
    if winner is None or right is None:
        return
    accuracy, praise = round_accuracy(record.correct, winner.round), peer[winner.agent][winner.round]
    if accuracy is not None:  # the index does not know of which round the winner is
        means.add("winner/lift", step, right - accuracy)
    if praise is not None:
        means.add("sample/winner_peer", step, (1.0 + praise) / 2)
        means.add("sample/winner_accuracy", step, float(right))


def is_empty(section: str) -> bool:
    """Return whether a section is blank or only a word for nothing, such as "N/A".

    >>> is_empty(" N/A. "), is_empty("No error: 4 is right.")
    (True, False)
    """
    text = section.strip()
    return len(text) < 20 and text.strip(".").lower() in NOTHING
