"""The pieces of a tiny model's tokenizer: what the debate and the synthetic family write."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, cast

from debate.prompting.rendering import SECTIONS
from debate_rl.config import Config
from envs.families import FAMILIES


class Family(Protocol):
    """What a synthetic family's module offers beside problems."""

    def vocabulary(self, levels: tuple[str | int, ...] | None = None) -> tuple[str, ...]:
        """Return the pieces of its texts."""
        ...


def tiny_vocabulary(config: Config) -> tuple[str, ...]:
    """Return the pieces: section tags, handles, those of the configuration, and the family's own."""
    tiny = config.model.tiny
    if tiny is None:
        return ()
    names = dict.fromkeys(section for sections in SECTIONS.values() for section in sections)
    tags = [tag for name in names for tag in (f"<{name}>", f"</{name}>")]
    pieces = [*tags, *(config.debate.handles or ()), *tiny.pieces, *_family_pieces(config)]
    return tuple(dict.fromkeys(pieces))


def _family_pieces(config: Config) -> tuple[str, ...]:
    if config.env.kind not in FAMILIES:
        return ()
    family = cast(Family, import_module(f"envs.families.{config.env.kind}"))
    return family.vocabulary(config.env.levels)
