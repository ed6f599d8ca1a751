"""Find the stop strings of a reply, and cut a reply at them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def end_of_stop(text: str, stop: Sequence[str], begin: int) -> int | None:
    """Return the index after the first stop string at or after ``begin``, or None.

    >>> end_of_stop("a</s>b</s>", ("</s>",), 2), end_of_stop("a", ("</s>",), 0)
    (10, None)
    """
    ends = [text.find(string, begin) + len(string) for string in stop if string and string in text[begin:]]
    return min(ends, default=None)


def clipped(text: str, stops: Iterable[str], *, start: int = 0) -> str:
    r"""Return the text before the first stop string at or after ``start``, as an engine would have cut it.

    ``start`` is the index at which thinking ends: stop strings apply only after it, as in ``SampleRequest``.

    >>> clipped("The answer is 18.\n\nQuestion: Tom has 3", ("\n\n\n", "Question:"))
    'The answer is 18.\n\n'
    >>> clipped("<think>Q: 2 + 2?</think>4. Q: 5", ("Q:",), start=24)
    '<think>Q: 2 + 2?</think>4. '
    """
    return text[: min((at for stop in stops if (at := text.find(stop, start)) >= 0), default=len(text))]
