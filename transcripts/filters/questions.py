"""Questions about debates that reports and pages ask, each with the filter that finds its debates."""

from __future__ import annotations

from typing import NamedTuple


class Question(NamedTuple):
    """A property of a debate in words, and the filter of the debates that have it."""

    words: str
    filter: str


QUESTIONS = {
    "wrong_vote": Question("a vote was wrong", "vote:wrong"),
    "wrong_winner": Question(
        "the winner is wrong although a right answer was there", "winner:wrong accuracy.last_round:>0"
    ),
    "given_up": Question("a right answer was given up", "flip:CW"),
    "found": Question("a wrong answer was corrected", "flip:WC"),
    "wrong_consensus": Question("all agreed on a wrong answer", "agreement:1 accuracy.last_round:0"),
    "cycle": Question("votes formed a cycle", "cycle:yes"),
    "no_vote": Question("no vote was valid", "votes:0"),
    "malformed": Question("a reply was malformed", "malformed:>0"),
    "no_answer": Question("an answer was missing", "missing:>0"),
    "cut_off": Question("a reply was cut off", "truncated:>0"),
    "starred": Question("something is starred", "star:yes"),
}
"""The questions by name, in the order in which pages show them. tables.toml of reports has ``$NAME``."""
