"""The debates of one problem over the steps of a run, and two of them side by side."""

from __future__ import annotations

from starlette.responses import Response

from inspector.views.across import TurnDifference, across, compare, read
from inspector.web.page import Asked, show
from inspector.web.rendering import Clip, clip
from inspector.web.site import Unknown

PIECE_LIMIT, DIFFERENCE_LIMIT = 3_000, 70_000


def same_problem(asked: Asked) -> Response:
    """Show a problem's debates, and what differs between two of them where two are chosen."""
    problem, a, b = (asked.query.get(key, "") for key in ("problem", "a", "b"))
    if not problem:
        raise Unknown("the address names no problem: problem=ID")
    store = asked.store
    found = across(store, problem)
    compared = compare(read(store, a), read(store, b), (a, b)) if a and b else None
    return show(
        asked,
        "across",
        found=found,
        a=a,
        b=b,
        compared=compared,
        texts=_texts(compared.turns) if compared else {},
    )


def _texts(turns: tuple[TurnDifference, ...]) -> dict[object, list[tuple[str, Clip]]]:
    """Return the words of each turn as marked pieces, as many characters as a page holds."""
    left, found = DIFFERENCE_LIMIT, dict[object, list[tuple[str, Clip]]]()
    for turn in turns:
        shown: list[tuple[str, Clip]] = []
        for piece in turn.pieces:
            if left <= 0:
                break
            cut = clip(piece.text, min(PIECE_LIMIT, left))
            left -= len(cut.text)
            shown.append((piece.mark, cut))
        found[turn.turn] = shown
    return found
