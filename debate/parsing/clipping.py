r"""Cut a reply at stop strings after it was made: where an engine that had known them would have ended it."""

from __future__ import annotations

from collections.abc import Iterable


def clipped(text: str, stops: Iterable[str], *, start: int = 0) -> str:
    r"""Return the text up to the first of the stop strings, none of which counts before ``start``.

    ``start`` is where thinking ends: stops are about what follows it, as in ``SampleRequest``.

    >>> clipped("The answer is 18.\n\nQuestion: Tom has 3", ("\n\n\n", "Question:"))
    'The answer is 18.\n\n'
    >>> clipped("<think>Q: 2 + 2?</think>4. Q: 5", ("Q:",), start=24)
    '<think>Q: 2 + 2?</think>4. '
    """
    return text[: min((at for stop in stops if (at := text.find(stop, start)) >= 0), default=len(text))]
