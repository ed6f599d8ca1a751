"""The groups of a step as a table: a row for each agent of each debate, as GRPO compares them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from debate_rl.formatting import shorten
from rewards import ballot_box, valid_votes
from rewards.judge_rewards import JudgeCounts, judge_counts
from rewards.votes import due_pairs
from transcripts import Record
from transcripts.record import turn_rows

MOST_ROWS = 64
"""Maximum number of rows of a table. Groups are left out as a whole, except the first, which is cut."""
QUESTION, ANSWER = 400, 100
"""Maximum numbers of characters."""
ABOUT = ("step", "problem", "question", "gold", "debate", "agent", "persona")
VOTES = ("advantage of votes", "votes right", "votes decidable")
GroupTable: TypeAlias = tuple[list[str], list[list[Any]]]
"""Names of columns, and rows."""


def agent_votes(record: Record) -> list[JudgeCounts]:
    """Return for each agent how many of its votes are right, valid and due, on decidable pairs."""
    box = ballot_box(record.debate)
    pairs = due_pairs(box, valid_votes(box))
    agents = range(len(record.debate.personas))
    return [
        judge_counts([pair for pair in pairs if pair.judge.agent == agent], record.correct)
        for agent in agents
    ]


def group_table(records: Sequence[Record], chosen: Sequence[int]) -> GroupTable:
    """Return the groups of the chosen debates, in the order of the step.

    ``records``: the debates of a step. ``chosen``: indices into them. Each round of solutions has an answer,
    a grade ("right", "wrong", "missing", "ungraded") and an advantage; a missing value is None.
    """
    wanted = dict.fromkeys(records[index].debate.problem.id for index in chosen)
    rounds = max((record.debate.protocol.num_rounds for record in records), default=0)
    solved = [f"{what} {round_}" for round_ in range(rounds) for what in ("answer", "grade", "advantage")]
    columns, rows = [*ABOUT, *solved, *VOTES], list[list[Any]]()
    for problem in wanted:
        group = [
            row
            for index, record in enumerate(records)
            if record.debate.problem.id == problem
            for row in _rows(f"{record.step}.{index}", record, columns)
        ]
        if rows and len(rows) + len(group) > MOST_ROWS:
            break
        rows += group
    return columns, rows[:MOST_ROWS]


def _rows(id: str, record: Record, columns: Sequence[str]) -> list[list[Any]]:
    problem = record.debate.problem
    about = {
        "step": record.step,
        "problem": problem.id,
        "question": shorten(problem.question, QUESTION),
        "gold": shorten(problem.answer or "", ANSWER),
        "debate": id,
    }
    agents = [
        about | {"votes right": counts.right, "votes decidable": counts.votes}
        for counts in agent_votes(record)
    ]
    for turn in turn_rows(id, record):
        row, round_ = agents[turn["agent"]], turn["round"]
        row |= {"agent": turn["agent"], "persona": turn["persona"]}
        if turn["ballot"]:
            row["advantage of votes"] = turn["advantage_judge"]
            continue
        row[f"answer {round_}"] = turn["answer"] and shorten(turn["answer"], ANSWER)
        row |= {f"grade {round_}": turn["grade"], f"advantage {round_}": turn["advantage_generator"]}
    return [[row.get(column) for column in columns] for row in agents]
