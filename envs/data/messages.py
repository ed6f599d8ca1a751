"""Read the question of a row that holds a chat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def last_of_user(value: object) -> str | None:
    """Return the content of the last message of role "user"; None where there is none.

    >>> last_of_user([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "1+1?"}])
    '1+1?'
    """
    turns = value if isinstance(value, Sequence) and not isinstance(value, str) else ()
    asked = [
        turn.get("content") for turn in turns if isinstance(turn, Mapping) and turn.get("role") == "user"
    ]
    return asked[-1] if asked and isinstance(asked[-1], str) else None
