"""The transcript records of a step's debates, and the ledger of labels that a run has used."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import UNSET

from debate import Debate
from debate_rl.evaluation.grading import IN_A_BOX, Grades, stored_mode
from debate_rl.metrics.features import label_counts
from debate_rl.metrics.step_log import read_rows, rewind
from debate_rl.rollouts.worker import Rollout
from envs.types import Mode
from learner.advantages import TurnAdvantage
from learner.types import agent_order
from rewards import Credit, Rewards
from rewards.labels import OF_TRUTH
from rewards.types import Likelihoods, Verdicts
from transcripts import Record, Timing, TurnAdvantages
from transcripts.append import LineFile


def step_records(
    step: int,
    debates: Sequence[Debate],
    correct: Sequence[Grades | None],
    rewards: Sequence[Rewards],
    advantages: Sequence[TurnAdvantage | None],
    timings: Sequence[Timing] | None = None,
    groups: Sequence[str] | None = None,
    mode: Mode = IN_A_BOX,
    verdicts: Sequence[Verdicts | None] | None = None,
    likelihoods: Sequence[Likelihoods] = (),
    credits: Sequence[Credit] = (),
) -> list[Record]:
    """Return the records of a step. ``advantages``: one per turn, in the order of ``transitions_of``.

    ``groups``: the group name of each debate (None: the id of its problem). ``mode``: the grading mode.
    ``credits``: the source of each debate's reward, which records leave out if it is truth.
    """
    nothing = [None] * len(debates)
    return [
        Record(
            *(debate, step, name, table, reward, parts, timing),
            *(stored_mode(mode), said or UNSET, read or UNSET),
            UNSET if credit is None or credit == OF_TRUTH else credit,
        )
        for debate, name, table, reward, parts, timing, said, read, credit in zip(
            debates,
            groups or [debate.problem.id for debate in debates],
            correct,
            rewards,
            advantages_by_debate(debates, advantages),
            timings or nothing,
            verdicts or nothing,
            likelihoods or nothing,
            credits or nothing,
            strict=True,
        )
    ]


def of_groups(records: Sequence[Record], count: int | None) -> list[Record]:
    """Return the records of the first ``count`` groups of a step, in order, or all records for None."""
    chosen = list(dict.fromkeys(record.group for record in records))[:count]
    return [record for record in records if record.group in chosen]


def advantages_by_debate(
    debates: Sequence[Debate], advantages: Sequence[TurnAdvantage | None]
) -> Iterator[tuple[TurnAdvantages, ...]]:
    """Yield each debate's advantages in the order of its turns. Turns without a signal are left out."""
    rest = iter(advantages)
    for debate in debates:
        of_turns = {index: next(rest) for index in agent_order(debate)}
        yield tuple(
            TurnAdvantages(
                *(turn.id, part.generator, part.judge, part.format, part.peer, part.truth),
                UNSET if part.critic is None else part.critic,
            )
            for index, turn in enumerate(debate.turns)
            if (part := of_turns.get(index)) is not None
        )


class LabelLedger:
    """The ledger labels.jsonl: problems whose labels were used before ``step``, in the order of first use.

    A run that resumes from a checkpoint drops the lines of later steps, which it repeats. A run in which all
    problems have labels writes no ledger.
    """

    def __init__(self, path: Path, step: int) -> None:
        self._path = path
        rewind(path, step)
        self.used: list[str] = []
        for number, row in enumerate(read_rows(path) if path.exists() else (), start=1):
            if not isinstance(name := row.get("problem"), str):
                raise ValueError(f"{path}:{number}: not a line of {path.stem}: problem {name!r} is not an id")
            self.used.append(name)
        self.used = list(dict.fromkeys(self.used))

    def use(self, step: int, played: Rollout) -> dict[str, float]:
        """Record the labels that a step uses, and return its metrics."""
        pairs = zip(played.debates, played.credits, strict=True)
        labelled = [debate.problem.id for debate, credit in pairs if "truth" in (credit.truth, credit.judge)]
        known = set(self.used)
        new = [id for id in dict.fromkeys(labelled) if id not in known]
        self.used += new
        if new:
            with LineFile(self._path) as file:
                for id in new:
                    file.write(json.dumps({"step": step, "problem": id}).encode("ascii"))
        counts = label_counts(played.credits, played.correct, played.groups)
        return {"labels/used": float(len(self.used)), **counts.metrics()}
