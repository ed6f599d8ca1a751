"""Who gave which answer in which round, and who took it over from whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from debate.prompting.shown import solved_before
from debate.types import Turn, TurnId
from debate_rl.inspector.views.debate import Grade, grade_of
from transcripts import Record
from transcripts.record import check_record


@dataclass(frozen=True, slots=True)
class AdoptionCell:
    """One answer as written. ``number`` is the same for equal answers, all right ones being one.

    Numbers count from 0 in the order of the debate: by round, then by agent. None without
    an answer.
    """

    id: TurnId
    answer: str | None
    number: int | None
    grade: Grade

    @property
    def letter(self) -> str:
        """The letter of the answer, equal for equal answers: A to Z, then A2."""
        number = self.number
        if number is None:
            return "–"
        return chr(ord("A") + number % 26) + (str(1 + number // 26) if number >= 26 else "")


@dataclass(frozen=True, slots=True)
class Copy:
    """A new answer of ``target``, other than its author's of the round before, that ``source`` had given.

    The prompt of ``target`` showed ``source``, another agent's turn.
    """

    source: TurnId
    target: TurnId


@dataclass(frozen=True, slots=True)
class AdoptionView:
    """``cells[agent][round]``, (N, R), None where no turn was held; ``numbers``: how many answers differ."""

    cells: tuple[tuple[AdoptionCell | None, ...], ...]
    copies: tuple[Copy, ...]
    numbers: int


def adoption_view(record: Record) -> AdoptionView:
    """Return the answers of a debate; ValueError where it is not one (``check_record``)."""
    check_record(record)
    protocol = record.debate.protocol
    turns = {turn.id: turn for turn in record.debate.turns if not turn.ballot}
    numbers = _numbers(record, turns)

    def cell(id: TurnId) -> AdoptionCell | None:
        turn = turns.get(id)
        return turn and AdoptionCell(id, turn.parsed.answer, numbers[id], grade_of(record, turn))

    cells = tuple(
        tuple(cell(TurnId(agent, round_)) for round_ in range(protocol.num_rounds))
        for agent in range(protocol.num_agents)
    )
    copies: list[Copy] = []
    for turn, answer in numbers.items():
        before = TurnId(turn.agent, solved_before(protocol, turn.round))
        if before in turns and answer is not None and answer != numbers[before]:
            others = (one for one in turns[turn].shown if one.agent != turn.agent and one.round < turn.round)
            copies += [Copy(source, turn) for source in others if numbers.get(source) == answer]
    return AdoptionView(cells, tuple(copies), len({one for one in numbers.values() if one is not None}))


def _numbers(record: Record, turns: Mapping[TurnId, Turn]) -> dict[TurnId, int | None]:
    """Return the number of each answer, equal where the judgment measures take answers for the same."""
    # loads scipy, which most views do without
    from debate_rl.reports.rows import JudgedDebate

    judged = JudgedDebate(record)
    known: dict[str, int] = {}
    numbers: dict[TurnId, int | None] = {}
    for turn in sorted(turns, key=lambda turn: (turn.round, turn.agent)):
        answer = judged.answer(turn)
        numbers[turn] = None if answer is None else known.setdefault(answer, len(known))
    return numbers
