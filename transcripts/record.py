"""The stored record of a debate: enough to inspect it, and to recompute its rewards and advantages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from debate.config import MOST_ROUNDS
from debate.policy import token_counts
from debate.prompting.shown import holds_solutions
from debate.show import html_of, transcript
from debate.types import Debate, TurnId
from debate.values import Value
from rewards.labels import Credit
from rewards.truth import GRADES, grade_of, of_truth_alone, score_of
from rewards.types import (
    NO_REWARDS,
    OPTIONAL_STREAMS,
    STREAMS,
    Likelihoods,
    Rewards,
    Truth,
    Verdicts,
    stream_named,
    value_of,
)


class TurnAdvantages(Value, frozen=True):
    """The weights of one turn's tokens in the loss. None if the stream gave the turn no signal.

    ``peer`` and ``truth``, including their weights, are parts of the sum ``generator``. They are also None if
    the rewards were mixed before the baseline. ``critic``: the weight of criticism, if it had any signal.
    """

    turn: TurnId
    generator: float | None = None
    judge: float | None = None
    format: float | None = None
    peer: float | None = None
    truth: float | None = None
    critic: float | UnsetType = UNSET


PARTS = ("generator", "judge", "format", "peer", "truth")
"""The advantages of a turn, by field name."""


class Timing(Value, frozen=True):
    """When a debate ended, in seconds since 1970, and how many ``seconds`` after the start of its rollout."""

    ended: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Record:
    """One debate of one training step.

    ``group`` names the problem's group within the step, which its K debates share. ``correct`` is (N, R), or
    None for a problem without an answer. ``rewards`` is None if nothing was scored. ``timing`` differs
    between runs and is ignored by ``==``. ``mode``: the grader's mode, if it found the turns' answers, which
    otherwise come from the boxes in their sections. ``verdicts``: a verifier model's verdicts, if there are
    any; they are not ground truth. ``likelihoods``: the likelihoods of the gold answer after each solution,
    if a scheme rewards them. ``credit``: the source of the rewards, if it was not ``correct`` alone.
    """

    debate: Debate
    step: Annotated[int, Meta(ge=0, lt=2**31)]
    group: str
    correct: tuple[tuple[Truth, ...], ...] | None = None
    rewards: Rewards | None = None
    advantages: tuple[TurnAdvantages, ...] = ()
    timing: Timing | None = field(default=None, compare=False)
    mode: str | UnsetType = UNSET
    verdicts: Verdicts | UnsetType = UNSET
    likelihoods: Likelihoods | UnsetType = UNSET
    credit: Credit | UnsetType = UNSET

    def __repr__(self) -> str:
        return f"<Record of step {self.step}, group {self.group!r}: {self.debate!r}>"

    def __str__(self) -> str:
        return transcript(self.debate, self._notes())

    def _repr_html_(self) -> str:
        return html_of(self.debate, self._notes())

    def _notes(self) -> dict[TurnId, str]:
        """Return each turn's grade and rewards in words."""
        notes = dict[TurnId, str]()
        for turn in self.debate.turns:
            grade = None if turn.ballot else GRADES[grade_of(turn.id, self.correct)]
            paid = {name: value_of(getattr(self.rewards or NO_REWARDS, name), turn.id) for name in STREAMS}
            parts = (f"{name} {value:+.2f}" for name, value in paid.items() if value)
            notes[turn.id] = "  ".join((*filter(None, [grade]), *parts))
        return notes


def check_record(record: Record) -> None:
    """Raise ValueError, with field and value, if turns, votes or tables do not fit the protocol."""
    for problem in _problems(record):
        raise ValueError(problem)


def _problems(record: Record) -> Iterator[str]:
    debate = record.debate
    agents, rounds = debate.protocol.num_agents, debate.protocol.num_rounds
    if len(debate.personas) != agents:
        yield f"debate.personas: {len(debate.personas)} of them, but the protocol has {agents} agents"
    if debate.rounds_saved is not UNSET and not 1 <= debate.rounds_saved <= MOST_ROUNDS - rounds:
        yield (
            f"debate.rounds_saved: {debate.rounds_saved}, but a debate that stopped after {rounds} "
            f"rounds must have saved 1 or more, and may have {MOST_ROUNDS} rounds in total"
        )
    yield from _turn_problems(record)
    known = {turn.id for turn in debate.turns}
    for index, vote in enumerate(debate.votes):
        for name, turn in (("judge", vote.judge), ("left", vote.left), ("right", vote.right)):
            if turn not in known:
                yield f"debate.votes[{index}].{name}: there is no turn {named(turn)}"
    for name in ("compressions", "swapped"):
        for index, one in enumerate(getattr(debate, name) or ()):
            if one.turn not in known:
                yield f"debate.{name}[{index}].turn: there is no turn {named(one.turn)}"
    if record.correct is not None:
        yield from _table_problems("correct", record.correct, agents, rounds)
    if record.verdicts is not UNSET:
        yield from _table_problems("verdicts.scores", record.verdicts.scores, agents, rounds)
        yield from _verdict_problems(record.verdicts)
    if record.likelihoods is not UNSET:
        yield from _table_problems("likelihoods.logprobs", record.likelihoods.logprobs, agents, rounds)
    if record.credit is not UNSET and record.credit.grades:
        yield from _table_problems("credit.grades", record.credit.grades, agents, rounds)
    if record.rewards is not None:
        widths = {"peer": rounds, "truth": rounds, "judge": rounds + 1, "format": rounds + 1}
        for name, width in widths.items():
            yield from _table_problems(f"rewards.{name}", getattr(record.rewards, name), agents, width)
        for name in OPTIONAL_STREAMS:
            if stream := stream_named(record.rewards, name):
                yield from _table_problems(f"rewards.{name}", stream, agents, rounds)


def _turn_problems(record: Record) -> Iterator[str]:
    protocol, seen = record.debate.protocol, set[TurnId]()
    for index, turn in enumerate(record.debate.turns):
        agent, round_ = turn.id.agent, turn.id.round
        if not (0 <= agent < protocol.num_agents and 0 <= round_ <= protocol.num_rounds):
            size = f"{protocol.num_agents} agents and {protocol.num_rounds} rounds"
            yield f"debate.turns[{index}].id: {named(turn.id)} is not a turn of a debate of {size}"
        if turn.ballot == holds_solutions(protocol, round_):
            yield f"debate.turns[{index}].ballot: {turn.ballot}, but {named(turn.id)} is of round {round_}"
        if turn.score is not UNSET and not 0 <= turn.score <= 1:
            yield f"debate.turns[{index}].score: {turn.score} is not a number from 0 to 1"
        if turn.id in seen:
            yield f"debate.turns[{index}].id: {named(turn.id)} occurs twice"
        seen.add(turn.id)


def _verdict_problems(verdicts: Verdicts) -> Iterator[str]:
    named = {f"scores[{a}][{r}]": one for a, row in enumerate(verdicts.scores) for r, one in enumerate(row)}
    for name, value in {"threshold": verdicts.threshold, **named}.items():
        if isinstance(value, float) and not 0 <= value <= 1:
            yield f"verdicts.{name}: {value} is not a number from 0 to 1"


def _table_problems(name: str, table: Sequence[Sequence[object]], agents: int, width: int) -> Iterator[str]:
    if len(table) != agents:
        yield f"{name}: {len(table)} rows, but the debate has {agents} agents"
    for agent, row in enumerate(table):
        if len(row) != width:
            yield f"{name}[{agent}]: {len(row)} values, expected {width}"


def named(turn: TurnId) -> str:
    """Return the usual notation of a turn: agent and round, both from 0.

    >>> named(TurnId(2, 1))
    '2.1'
    """
    return f"{turn.agent}.{turn.round}"


def turn_rows(id: str, record: Record) -> Iterator[dict[str, Any]]:
    """Yield a flat row for each turn of a debate, for instance for a table in a notebook.

    Agents and rounds start at 0.
    """
    advantages = {part.turn: part for part in record.advantages}
    names = [persona.name for persona in record.debate.personas]
    for turn in record.debate.turns:
        agent, round_ = turn.id.agent, turn.id.round
        prompt, generated = token_counts(turn.completion)
        part = advantages.get(turn.id, TurnAdvantages(turn.id))
        rewards = of_truth_alone(record.rewards or NO_REWARDS, record.correct, record.verdicts or None)
        yield {
            "debate": id,
            "agent": agent,
            "round": round_,
            "persona": names[agent] if agent < len(names) else None,
            "handle": turn.handle,
            "text": turn.completion.text,
            "answer": turn.parsed.answer,
            "grade": None if turn.ballot else GRADES[grade_of(turn.id, record.correct)],
            "stop_reason": turn.completion.stop_reason,
            "prompt_tokens": prompt,
            "tokens": generated,
            "malformed": len(turn.parsed.failures),
            "cut": turn.cut,
            "ballot": turn.ballot,
            "score": score_of(turn),
            "verdict": record.verdicts.score(turn.id) if record.verdicts else None,
            **{f"reward_{name}": value_of(getattr(rewards, name), turn.id) for name in STREAMS},
            **{f"advantage_{name}": getattr(part, name) for name in PARTS},
        }
