"""Preset filters of reports and pages: what debates have in common, in words and as a filter."""

from __future__ import annotations

from typing import NamedTuple


class Preset(NamedTuple):
    """A property of debates in words, and the filter that finds them."""

    words: str
    filter: str


PRESETS = {
    "wrong_vote": Preset("a vote was wrong", "vote:wrong"),
    "wrong_winner": Preset(
        "the winner was wrong although another answer was right", "winner:wrong accuracy.last_round:>0"
    ),
    "given_up": Preset("a right answer was given up", "flip:CW"),
    "found": Preset("a wrong answer was corrected", "flip:WC"),
    "wrong_consensus": Preset("all agreed on a wrong answer", "agreement:1 accuracy.last_round:0"),
    "cycle": Preset("votes formed a cycle", "cycle:yes"),
    "no_vote": Preset("no vote was valid", "votes:0"),
    "malformed": Preset("a reply was malformed", "malformed:>0"),
    "no_answer": Preset("an answer was missing", "missing:>0"),
    "cut_off": Preset("a reply was cut off", "truncated:>0"),
    "starred": Preset("something was starred", "star:yes"),
}
"""The preset filters by name, in the order in which pages show them. tables.toml of reports has ``$NAME``."""
