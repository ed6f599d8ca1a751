r"""Cut a finished reply at stop strings, as an engine that knew them would have done."""

from __future__ import annotations

from collections.abc import Iterable


def clipped(text: str, stops: Iterable[str], *, start: int = 0) -> str:
    r"""Return the text before the first stop string at or after ``start``.

    ``start`` is the index at which thinking ends: stop strings apply only after it, as in ``SampleRequest``.

    >>> clipped("The answer is 18.\n\nQuestion: Tom has 3", ("\n\n\n", "Question:"))
    'The answer is 18.\n\n'
    >>> clipped("<think>Q: 2 + 2?</think>4. Q: 5", ("Q:",), start=24)
    '<think>Q: 2 + 2?</think>4. '
    """
    return text[: min((at for stop in stops if (at := text.find(stop, start)) >= 0), default=len(text))]
