"""Synthetic families: problems made from a seed, without end, whose truth is a calculation."""

from collections.abc import Mapping

from envs.families.pair_sum import PairSum
from envs.families.products import Products
from envs.families.sorting import Sorting
from envs.families.synthetic import SyntheticFamily
from envs.families.words import Words

FAMILIES: Mapping[str, SyntheticFamily] = {
    "pair_sum": PairSum(),
    "words": Words(),
    "products": Products(),
    "sorting": Sorting(),
}
"""Synthetic families by name, at all of their levels."""
