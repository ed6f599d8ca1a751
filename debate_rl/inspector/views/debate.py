"""One debate as a grid of turns, with texts, grades, rewards and advantages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from msgspec import UNSET

from debate.config import Seat
from debate.personas import Persona
from debate.policy import token_counts
from debate.programs import claimed_outputs
from debate.prompting.shown import solved_before
from debate.types import Completion, ParsedTurn, ParseFailure, Problem, Span, StopReason, Turn, TurnId
from debate_rl.formatting import round_name
from envs.causes.rules import WrongReply, cause_of
from rewards import STREAMS, Truth, ballot_box, valid_votes, voted_winner
from rewards.peer import margins
from rewards.truth import grade_of
from rewards.types import value_of
from rewards.winner import best_voted, last_judged_round
from transcripts import Record
from transcripts.causes import wrong_reply
from transcripts.record import PARTS, check_record

PieceKind: TypeAlias = Literal["thinking", "solution", "evaluation", "comparison", "other"]
Grade: TypeAlias = Literal["right", "wrong", "missing", "ungraded", ""]
"""The grade of an answer; "" for a final ballot, which has no answer."""
StreamValues: TypeAlias = Mapping[str, float | None]
"""Values by stream. None: no signal, which differs from a value of 0."""
ADVANTAGES = PARTS[:3]
"""The advantages of tokens: generator, judge, format. The other ``PARTS`` are parts of generator."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Characters ``start`` to ``end`` of a completion's text. Tags of sections are "other"."""

    kind: PieceKind
    start: int
    end: int

    def of(self, text: str) -> str:
        """Return the characters of the piece."""
        return text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class TurnView:
    """One turn. ``answer``: as written. ``pieces`` cover ``text`` exactly, in order.

    ``shown``: the turns in its prompt. ``compared``: the turns that it could compare. ``tokens``: the number
    of generated tokens, or None. ``wrong``: the solution, if it was graded wrong or missing. ``verdict``: a
    verifier model's verdict as text. ``programs``: the results of its programs as text. ``targets``: the
    handles of the criticised agents in a turn of criticism, else None. ``compressed``: the text that others
    read instead of a long solution; with ``compression_failed``, the beginning of the solution. ``rewards``:
    by ``STREAMS``.
    ``advantages``: by ``PARTS``.
    """

    id: TurnId
    persona: str
    handle: str
    ballot: bool
    grade: Grade
    answer: str | None
    text: str
    pieces: tuple[Piece, ...]
    shown: tuple[TurnId, ...]
    compared: tuple[TurnId, ...]
    cut: int
    rewards: StreamValues
    advantages: StreamValues
    stop_reason: StopReason
    tokens: int | None
    failures: tuple[ParseFailure, ...]
    wrong: WrongReply | None = None
    verdict: str = ""
    programs: str = ""
    targets: tuple[str, ...] | None = None
    compressed: str | None = None
    compression_failed: bool = False

    @property
    def cause(self) -> str:
        """Why the solution is wrong, with evidence, or "" if it is not wrong or no rule applies."""
        cause = None if self.wrong is None else cause_of(self.wrong)
        if self.wrong is None or cause is None or cause.name == "not_known":
            return ""
        shown = f": {cause.where.of(self.wrong.solution)}" if cause.where else ""
        return f"{cause.name.replace('_', ' ')}{shown}"


@dataclass(frozen=True, slots=True)
class SummaryView:
    """The summary that prompts of a round showed instead of the turns ``shown``."""

    round: int
    text: str
    shown: tuple[TurnId, ...]
    completion: str
    tokens: int | None


@dataclass(frozen=True, slots=True)
class DebateView:
    """One debate. ``turns[agent][round]``: (N, R), or (N, R + 1) with a ballot; None for a missing turn.

    ``winner``: the winner's turn, or None without votes. ``tied``: the turns that it was drawn from, or ().
    ``judged_round``: the last judged round. ``scored``: whether rewards were stored; otherwise margins decide
    the winner. ``rounds_saved``: as in ``Debate``, 0 without an early stop.
    """

    id: str
    step: int
    group: str
    problem: Problem
    personas: tuple[Persona, ...]
    handles: tuple[str, ...]
    agents: int
    rounds: int
    turns: tuple[tuple[TurnView | None, ...], ...]
    winner: TurnId | None
    tied: tuple[TurnId, ...]
    judged_round: int | None
    scored: bool
    summaries: tuple[SummaryView, ...]
    seed: int
    policy_version: int
    seconds: float | None
    rounds_saved: int = 0
    seats: tuple[Seat, ...] = ()

    def who(self, agent: int) -> str:
        """Return an agent's name: ``K7 Skeptic``, or ``K7 Skeptic (frozen)`` for a frozen seat."""
        seat = self.seats[agent] if self.seats else "learning"
        badge = "" if seat == "learning" else f" ({seat})"
        return f"{self.handles[agent]} {self.personas[agent].name}".strip() + badge

    def size(self) -> str:
        """Return the size as text, such as ``3 agents, 2 rounds``, and whether the debate stopped early."""
        held = f"{self.agents} agents, {self.rounds} rounds"
        return f"{held} (stopped: all agree, {self.rounds_saved} saved)" if self.rounds_saved else held

    def round_name(self, round_: int) -> str:
        """Return the name of a round: ``round 0``, ``round 1, criticism``, or ``final ballot``."""
        turns = (row[round_] for row in self.turns if 0 <= round_ < len(row))
        critics = any(turn is not None and turn.targets is not None for turn in turns)
        return round_name(round_, self.rounds) + (", criticism" if critics else "")

    def placed(self, turn: TurnId) -> str:
        """Return a turn's name with only the handle: ``K7, round 0``."""
        return f"{self.handles[turn.agent]}, {self.round_name(turn.round)}"

    def spelled(self, turn: TurnId) -> str:
        """Return a turn's full name: ``K7 Skeptic, round 0``."""
        return f"{self.who(turn.agent)}, {self.round_name(turn.round)}"

    def handle(self, turn: TurnId, round_: int | None = None) -> str:
        """Return the handle of a turn, with its round unless the round is ``round_``."""
        return self.handles[turn.agent] if round_ in (None, turn.round) else self.placed(turn)

    def lot(self) -> str:
        """Return the candidates if the winner was drawn (``drawn among K7, M4``), else ""."""
        handles = ", ".join(self.handles[turn.agent] for turn in self.tied)
        return f"drawn among {handles}" if handles else ""

    def turn(self, turn: TurnId) -> TurnView | None:
        """Return a turn by its id, or None."""
        inside = 0 <= turn.agent < len(self.turns) and 0 <= turn.round < len(self.turns[turn.agent])
        return self.turns[turn.agent][turn.round] if inside else None

    def spoken(self) -> Iterator[TurnView]:
        """Yield the turns in the order of the debate: by round, then by agent."""
        for column in zip(*self.turns, strict=True):
            yield from (turn for turn in column if turn is not None)


def debate_view(id: str, record: Record) -> DebateView:
    """Return the view of a debate. ValueError if it is not a debate (``check_record``)."""
    check_record(record)
    debate, protocol = record.debate, record.debate.protocol
    turns = {turn.id: turn_view(record, turn) for turn in debate.turns}
    agents, rounds = range(protocol.num_agents), range(1 + max((turn.round for turn in turns), default=-1))
    size = (protocol.num_agents, protocol.num_rounds)  # without rewards, margins give the winner
    peer = record.rewards.peer if record.rewards else margins(valid_votes(ballot_box(debate)), *size)
    best = best_voted(peer)
    return DebateView(
        id=id,
        step=record.step,
        group=record.group,
        problem=debate.problem,
        personas=debate.personas,
        handles=handles_of(record),
        agents=protocol.num_agents,
        rounds=protocol.num_rounds,
        turns=tuple(tuple(turns.get(TurnId(agent, round_)) for round_ in rounds) for agent in agents),
        winner=voted_winner(peer, seed=debate.seed),
        tied=best if len(best) > 1 else (),
        judged_round=last_judged_round(peer),
        scored=record.rewards is not None,
        summaries=tuple(
            SummaryView(part.round, part.text, part.shown, part.completion.text, generated(part.completion))
            for part in debate.summaries
        ),
        seed=debate.seed,
        policy_version=debate.policy_version,
        seconds=record.timing.seconds if record.timing else None,
        rounds_saved=debate.rounds_saved or 0,
        seats=protocol.seats,
    )


def handles_of(record: Record) -> tuple[str, ...]:
    """Return the handle of each agent, (N,); "" for an agent that never spoke."""
    handles = {turn.id.agent: turn.handle for turn in record.debate.turns}
    return tuple(handles.get(agent, "") for agent in range(record.debate.protocol.num_agents))


def turn_view(record: Record, turn: Turn) -> TurnView:
    """Return the view of one turn of a checked record."""
    text = turn.completion.text
    parts = next((parts for parts in record.advantages if parts.turn == turn.id), None)
    short = next((one for one in record.debate.compressions or () if one.turn == turn.id), None)
    return TurnView(
        id=turn.id,
        persona=record.debate.personas[turn.id.agent].name,
        handle=turn.handle,
        ballot=turn.ballot,
        grade="" if turn.ballot else grade_name(grade_of(turn.id, record.correct)),
        answer=None if turn.ballot else turn.parsed.answer,
        text=text,
        pieces=pieces_of(turn.parsed, len(text)),
        shown=turn.shown,
        compared=turn.compared,
        cut=turn.cut,
        rewards={name: value_of(getattr(record.rewards, name, ()), turn.id) for name in STREAMS},
        advantages={name: getattr(parts, name, None) for name in PARTS},
        stop_reason=turn.completion.stop_reason,
        tokens=generated(turn.completion),
        failures=turn.parsed.failures,
        wrong=wrong_reply(record, turn),
        verdict="" if turn.ballot else verdict_text(record, turn.id),
        programs=programs_text(turn.completion),
        targets=turn.parsed.targets,
        compressed=short and short.text,
        compression_failed=short is not None and short.failed,
    )


def verdict_text(record: Record, turn: TurnId) -> str:
    """Return a verifier model's verdict as text, marked as no ground truth, or "" without a verdict."""
    if record.verdicts is UNSET:
        return ""
    score, by = value_of(record.verdicts.scores, turn), f"by the verifier model {record.verdicts.verifier}"
    if score == "missing":
        return ""
    if score is None:
        return f"no verdict {by}"
    passes = "passes" if record.verdicts.passes(turn) else "does not pass"
    return f"verdict {score:g}, {passes}, {by}: no ground truth"


def programs_text(completion: Completion) -> str:
    """Return the results of a reply's programs and claimed outputs, in the order of lines, or ""."""
    if completion.calls is UNSET:
        return ""
    text = completion.text
    said = [(call.code.start, call.status) for call in completion.calls]
    said += [(at, "claimed output") for at in claimed_outputs(text, completion.calls)]
    return ", ".join(f"line {text.count(chr(10), 0, at) + 1} {what}" for at, what in sorted(said))


def grade_name(grade: Truth) -> Grade:
    """Return the name of a grade.

    >>> grade_name(True), grade_name("missing"), grade_name(None)
    ('right', 'missing', 'ungraded')
    """
    names: dict[Truth, Grade] = {None: "ungraded", "missing": "missing", True: "right", False: "wrong"}
    return names[grade]


def generated(completion: Completion) -> int | None:
    """Return the number of generated tokens, or None if unknown."""
    return token_counts(completion)[1] or completion.token_count


def pieces_of(parsed: ParsedTurn, length: int) -> tuple[Piece, ...]:
    """Return the non-empty pieces of a text of this length: sections in order, and "other" between them.

    Parts of a stored span outside the text, or within an earlier section, are left out.

    >>> from debate.types import Span
    >>> [(p.kind, p.start, p.end) for p in pieces_of(ParsedTurn(solution=Span(2, 5)), 6)]
    [('other', 0, 2), ('solution', 2, 5), ('other', 5, 6)]
    """
    kinds: tuple[PieceKind, ...] = ("thinking", "solution", "evaluation", "comparison")
    spans: list[tuple[Span, PieceKind]] = [(getattr(parsed, kind), kind) for kind in kinds]
    pieces: list[Piece] = []
    at = 0
    for span, kind in sorted(one for one in spans if one[0] is not None):
        start, end = max(at, span.start), min(length, span.end)
        if start < end:
            pieces += [Piece("other", at, start)] if at < start else []
            pieces.append(Piece(kind, start, end))
            at = end
    return tuple(pieces if at >= length else [*pieces, Piece("other", at, length)])


@dataclass(frozen=True, slots=True)
class AdoptionCell:
    """One answer as written. Equal answers have the same ``number`` (from 0), and so do all right answers."""

    id: TurnId
    answer: str | None
    number: int | None
    grade: Grade

    @property
    def letter(self) -> str:
        """The letter of the answer, the same for equal answers: A to Z, then A2."""
        number = self.number
        if number is None:
            return "–"
        return chr(ord("A") + number % 26) + (str(1 + number // 26) if number >= 26 else "")


@dataclass(frozen=True, slots=True)
class Copy:
    """An adoption: ``target`` changed its answer to that of ``source``, a turn of another in its prompt."""

    source: TurnId
    target: TurnId


@dataclass(frozen=True, slots=True)
class AdoptionView:
    """Answers, ``cells[agent][round]``, (N, R), None for a missing turn. ``numbers``: how many differ."""

    cells: tuple[tuple[AdoptionCell | None, ...], ...]
    copies: tuple[Copy, ...]
    numbers: int


def adoption_view(record: Record) -> AdoptionView:
    """Return the answers of a debate. ValueError if it is not a debate (``check_record``).

    Answers are equal by the same rule as in the judgment figures.
    """
    from debate_rl.reports.rows import JudgedDebate  # loads scipy, which most views do not need

    check_record(record)
    protocol, judged = record.debate.protocol, JudgedDebate(record)
    turns = {turn.id: turn for turn in record.debate.turns if not turn.ballot}
    known: dict[str, int] = {}
    numbers: dict[TurnId, int | None] = {}
    for turn in sorted(turns, key=lambda turn: (turn.round, turn.agent)):
        answer = judged.answer(turn)
        numbers[turn] = None if answer is None else known.setdefault(answer, len(known))

    def cell(id: TurnId) -> AdoptionCell | None:
        grade = grade_name(grade_of(id, record.correct))
        return AdoptionCell(id, turns[id].parsed.answer, numbers[id], grade) if id in turns else None

    agents, rounds = range(protocol.num_agents), range(protocol.num_rounds)
    copies: list[Copy] = []
    for turn, number in numbers.items():
        before = TurnId(turn.agent, solved_before(protocol, turn.round))
        if before in turns and number is not None and number != numbers[before]:
            others = (one for one in turns[turn].shown if one.agent != turn.agent and one.round < turn.round)
            copies += [Copy(source, turn) for source in others if numbers.get(source) == number]
    cells = tuple(tuple(cell(TurnId(agent, round_)) for round_ in rounds) for agent in agents)
    return AdoptionView(cells, tuple(copies), len(known))
