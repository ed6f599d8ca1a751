"""From the JSON of a stored line to what rewards and advantages look at: no text, no tokens, no spans.

A whole record takes ten times as long to read; what is made here gives the same rewards and advantages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import orjson

from debate import Completion, Debate, DebateConfig, Problem, Turn, Vote
from debate.personas import Persona
from debate.types import FailureReason, ParsedTurn, ParseFailure, TurnId
from rewards import Correct
from transcripts import RewardNumbers, TranscriptError, TurnAdvantages

STREAMS = ("peer", "truth", "judge", "format")
PARTS = ("generator", "judge", "format", "peer", "truth")
_NOTHING_SAID = Completion((), (), (), "", "stop", 0)


@dataclass(frozen=True, slots=True)
class StoredDebate:
    """A debate without its texts, its grades, and the rewards and advantages that were kept with it."""

    id: str
    step: int
    group: str
    debate: Debate
    correct: Correct
    rewards: RewardNumbers | None
    advantages: tuple[TurnAdvantages, ...]


def stored_debate(id: str, data: Mapping[str, Any]) -> StoredDebate:
    """Return the debate of a line's JSON; TranscriptError names a debate that has not what is needed."""
    try:
        return StoredDebate(
            id=id,
            step=data["step"],
            group=_text(data["group"]),
            debate=_debate(data["debate"]),
            correct=data.get("correct"),
            rewards=_rewards(data.get("rewards")),
            advantages=tuple(_advantages(one) for one in data.get("advantages", ())),
        )
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise TranscriptError(f"debate {id}: cannot be replayed: {type(error).__name__}: {error}") from error


def _debate(data: Mapping[str, Any]) -> Debate:
    problem = data["problem"]
    return Debate(
        problem=Problem(_text(problem["id"]), "", kind=problem.get("kind", "expression")),
        personas=tuple(_persona(_text(one["name"])) for one in data["personas"]),
        turns=tuple(_turn(one) for one in data["turns"]),
        votes=tuple(_vote(one) for one in data["votes"]),
        seed=data["seed"],
        policy_version=data["policy_version"],
        protocol=_protocol(orjson.dumps(data["protocol"])),
    )


def _text(value: str | list[str]) -> str:
    """Return a text, which is in pieces where it has lone surrogates in a row."""
    return value if isinstance(value, str) else "".join(value)


@lru_cache(maxsize=1024)
def _persona(name: str) -> Persona:
    return Persona(name, "")


@lru_cache(maxsize=64)
def _protocol(text: bytes) -> DebateConfig:
    return DebateConfig.model_validate(orjson.loads(text))


@cache
def _id(agent: int, round: int) -> TurnId:
    return TurnId(agent, round)


def _turn(data: Mapping[str, Any]) -> Turn:
    failures = data["parsed"].get("failures", ())
    compared = _ids(data.get("compared", ()))  # what else was shown is not looked at where this is
    return Turn(
        id=_id(*data["id"]),
        handle="",
        shown=() if compared else _ids(data["shown"]),
        completion=_NOTHING_SAID,
        parsed=_parsed(tuple(one["reason"] for one in failures)),
        compared=compared,
        ballot=data.get("ballot", False),
    )


def _ids(pairs: Sequence[Sequence[int]]) -> tuple[TurnId, ...]:
    return tuple([_id(agent, round) for agent, round in pairs])


@lru_cache(maxsize=4096)
def _parsed(reasons: tuple[str, ...]) -> ParsedTurn:
    return ParsedTurn(failures=tuple(ParseFailure(FailureReason(reason), "") for reason in reasons))


def _vote(data: Mapping[str, Any]) -> Vote:
    return Vote(_id(*data["judge"]), _id(*data["left"]), _id(*data["right"]), data["outcome"])


def _rewards(data: Mapping[str, Any] | None) -> RewardNumbers | None:
    if data is None:
        return None
    return RewardNumbers(*(tuple(map(tuple, data[stream])) for stream in STREAMS))


def _advantages(data: Mapping[str, Any]) -> TurnAdvantages:
    return TurnAdvantages(_id(*data["turn"]), *[data.get(part) for part in PARTS])
