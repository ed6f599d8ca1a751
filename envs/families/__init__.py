"""Synthetic families: endless problems generated from a seed, with answers that are calculated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from debate.settings import LoadedTable

if TYPE_CHECKING:
    from envs.families.synthetic import SyntheticFamily

NAMES = ("pair_sum", "words", "stories", "products", "sorting")
FAMILIES: Mapping[str, SyntheticFamily] = LoadedTable(
    {name: f"envs.families.{name}:FAMILY" for name in NAMES}
)
"""Synthetic families by name, each with all of its levels; a family is imported when it is first used."""
