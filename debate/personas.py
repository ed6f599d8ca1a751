"""Personas: the class, the five default personas, and a preset with a wider range of temperatures."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any, cast

import msgspec
from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from debate.settings import load_dotted
from debate.values import HALVES, Value


class Persona(Value, frozen=True):
    """A working style given to one agent.

    ``temperature`` applies to every request of the agent and to its log-probabilities.
    """

    name: str
    instructions: str
    temperature: float = 1.0

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema by which settings accept a persona: a Persona, or a table of its fields."""
        return core_schema.no_info_plain_validator_function(
            lambda value: value if isinstance(value, cls) else msgspec.convert(value, cls),
            serialization=core_schema.plain_serializer_function_ser_schema(msgspec.to_builtins),
        )


PERSONAS: tuple[Persona, ...] = (
    Persona(
        "Methodical Analyst",
        "Work step by step. "
        "State what is given, name each rule you use, and check every line before the next.",
        0.6,
    ),
    Persona(
        "Creative Problem-Solver",
        "Look for an unusual way in: a symmetry, a picture, a change of variables. "
        "Then verify that it holds.",
        1.0,
    ),
    Persona(
        "Devil's Advocate",
        "Doubt the obvious answer. "
        "Look for hidden assumptions and edge cases, and try to break each argument.",
        0.9,
    ),
    Persona(
        "Synthesizer",
        "Weigh the approaches you know or see, "
        "keep the strongest steps of each, and join them into one solution.",
        1.0,
    ),
    Persona(
        "First Principles Thinker",
        "Start from definitions. "
        "Derive what you need instead of recalling it, and trust no formula unproven.",
        0.8,
    ),
)

WIDE_TEMPERATURES = (0.6, 1.2, 0.9, 1.1, 1.5)

WIDE_PERSONAS: tuple[Persona, ...] = tuple(
    Persona(persona.name, persona.instructions, temperature)
    for persona, temperature in zip(PERSONAS, WIDE_TEMPERATURES, strict=True)
)

PRESETS: dict[str, tuple[Persona, ...]] = {"default": PERSONAS, "wide": WIDE_PERSONAS}


def check_personas(personas: Sequence[Persona]) -> None:
    """Raise ValueError for a negative or infinite temperature, or for a lone surrogate in a text."""
    for persona in personas:
        if HALVES.search(persona.name + persona.instructions):
            raise ValueError(f"{persona.name!r}: contains half a character (a lone surrogate)")
        if not (isfinite(persona.temperature) and persona.temperature >= 0):
            raise ValueError(f"{persona.name}: temperature {persona.temperature} must be finite and >= 0")


def own_personas(path: str) -> tuple[Persona, ...]:
    """Return the personas at "package.module:NAME". ValueError if it is not a non-empty list of personas.

    >>> own_personas("debate.personas:WIDE_PERSONAS") == WIDE_PERSONAS
    True
    """
    named = load_dotted(path, key="debate.personas")
    members = list(cast("Sequence[object]", named)) if isinstance(named, list | tuple) else []
    personas = tuple(member for member in members if isinstance(member, Persona))
    if not personas or len(personas) < len(members):
        raise ValueError(f"debate.personas: {path!r} must be a list of one or more debate.Persona")
    check_personas(personas)
    return personas
