"""Who gave which answer in which round, and who took it over from whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from debate.config import DebateConfig
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
    cells = tuple(
        tuple(
            _cell(record, turns.get(TurnId(agent, round_)), numbers) for round_ in range(protocol.num_rounds)
        )
        for agent in range(protocol.num_agents)
    )
    copies = tuple(_copies(protocol, turns, numbers))
    return AdoptionView(cells, copies, len({number for number in numbers.values() if number is not None}))


def _cell(record: Record, turn: Turn | None, numbers: Mapping[TurnId, int | None]) -> AdoptionCell | None:
    if turn is None:
        return None
    return AdoptionCell(turn.id, turn.parsed.answer, numbers[turn.id], grade_of(record, turn))


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


def _copies(
    protocol: DebateConfig, turns: Mapping[TurnId, Turn], numbers: Mapping[TurnId, int | None]
) -> Iterator[Copy]:
    for turn in sorted(turns, key=lambda turn: (turn.round, turn.agent)):
        before = TurnId(turn.agent, solved_before(protocol, turn.round))
        answer = numbers[turn]
        if before not in turns or answer is None or answer == numbers[before]:
            continue
        for source in turns[turn].shown:
            others = source.agent != turn.agent and source.round < turn.round
            if others and source in numbers and numbers[source] == answer:
                yield Copy(source, turn)
