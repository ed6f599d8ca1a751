"""What the columns of the screens mean, in one place."""

from __future__ import annotations

from transcripts.filters.fields import FIELDS

COLUMNS: tuple[tuple[str, str], ...] = (
    ("right", "share of right solutions, of the first and of the last round"),
    ("winner", "the voted winner's solution; of a step, the share of right ones"),
    ("judge", "share of right votes, where one side is right and one wrong; – without such"),
    ("votes", "votes that count"),
    ("bad, malformed", "things due or written that could not be read"),
    ("cut, cut off", "turns that ended at their token limit"),
    ("cycles", "debates in which majorities go in a circle: A beats B beats C beats A"),
    ("peer", "mean reward for the votes that others gave a turn"),
    ("truth", "mean reward for a turn's own answer"),
    ("judging", "mean reward for the votes that a turn gave"),
    ("fine, format", "mean fine for what could not be read"),
)
"""Columns of steps and debates, by their names in the terminal and in the browser."""


def filter_fields() -> list[tuple[str, str]]:
    """Return an example of each field of filters, and what the field is.

    >>> filter_fields()[1]
    ('step:>200', 'training step, from 0')
    """
    return [(field.example, field.about) for field in FIELDS.values()]
