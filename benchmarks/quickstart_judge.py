"""What a quick-start's judges miss: votes on decidable pairs by what is wrong with the wrong side.

.venv/bin/debate quickstart && .venv/bin/python benchmarks/quickstart_judge.py runs/quickstart-pair_sum-0

A solution of pair-sum is a sum. It is wrong where the sum is, where it misses the target, or where a number
is not in the list: the last is what a judge that adds up, and does not look the numbers up, cannot see.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from report import Figure, parser, report

from debate.types import TurnId, Vote
from debate_rl.metrics.intervals import clustered_mean
from rewards import ballot_box, valid_votes
from rewards.truth import is_right
from transcripts import Record, RunStore

SUM = re.compile(r"(\d+) \+ (\d+) = (\d+)")


def main() -> None:
    arguments = parser(__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("run", type=Path, help="the folder of a finished quick-start on pair_sum")
    args = arguments.parse_args()
    votes: dict[tuple[str, str], list[tuple[float, str]]] = defaultdict(list)
    with RunStore.open(args.run) as run:
        middle = (max(row.step or 0 for row in run.steps()) + 1) // 2
        for id, record in run.records():
            half = "first" if int(id.partition(".")[0]) < middle else "second"
            for vote, wrong in decidable(record):
                right = float(prefers_other(vote, wrong))
                votes[half, fault(record, wrong)].append((right, record.debate.problem.id))
    figures: list[Figure] = []
    for (half, name), given in sorted(votes.items()):
        rights, problems = zip(*given, strict=True)
        found = clustered_mean(rights, problems)
        figures.append(
            Figure(f"{half}_half/{name}/accuracy", found.value, "share", len(given), found.low, found.high)
        )
    report(f"{args.run}: votes on decidable pairs, by what is wrong with the wrong side", figures, args.json)


def decidable(record: Record) -> Iterator[tuple[Vote, TurnId]]:
    """Yield the valid votes with exactly one right side, and the side that is wrong."""
    for vote in valid_votes(ballot_box(record.debate)):
        sides = {side: is_right(side, record.correct) for side in (vote.left, vote.right)}
        if set(sides.values()) == {True, False}:
            yield vote, next(side for side, right in sides.items() if not right)


def prefers_other(vote: Vote, wrong: TurnId) -> bool:
    """Return whether a vote is for the other side; a tie is not."""
    return vote.outcome == ("right" if vote.left == wrong else "left")


def fault(record: Record, turn: TurnId) -> str:
    """Return what is wrong with a solution."""
    found = SUM.search(record.debate.turn(turn).completion.text)
    if found is None:
        return "no_sum"
    first, second, total = found.groups()
    if int(first) + int(second) != int(total):
        return "wrong_sum"
    numbers = record.debate.problem.question.partition("Numbers")[2].strip(" .").split()
    if first == second or not {first, second} <= set(numbers):
        return "number_not_in_the_list"
    return "misses_the_target"


if __name__ == "__main__":
    main()
