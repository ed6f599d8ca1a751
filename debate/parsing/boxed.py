r"""The answer of a solution: the inside of its last balanced ``\boxed{}``."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"(\\{1,2}boxed[ \t\r\n]{0,4}\{)|\\.|[{}]", re.DOTALL)


def last_boxed(text: str) -> str | None:
    r"""Return what the last balanced ``\boxed{}`` holds, exactly as written, or None.

    "Last" goes by where the box starts, so the inner of two nested boxes wins; a box that never closes
    is passed over. Escaped braces do not count as braces. One pass, linear in the length.

    >>> last_boxed(r"\boxed{1} so \boxed{\frac{1}{2}} and \boxed{cut")
    '\\frac{1}{2}'
    >>> last_boxed(r"\boxed{\{1, 2\}}")
    '\\{1, 2\\}'
    """
    open_braces: list[int | None] = []  # index behind the brace for a box, None for a plain brace
    best: tuple[int, int] | None = None
    for token in _TOKEN.finditer(text):
        if token[1]:
            open_braces.append(token.end())
        elif token[0] == "{":
            open_braces.append(None)
        elif token[0] == "}" and open_braces:
            start = open_braces.pop()
            if start is not None and (best is None or start > best[0]):
                best = (start, token.start())
    return None if best is None else text[best[0] : best[1]]
