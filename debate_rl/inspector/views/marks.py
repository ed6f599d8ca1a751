"""Stars, notes and labels given by hand, as parts of views and as a list."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from debate.types import TurnId
from debate_rl.formatting import shorten
from debate_rl.inspector.blocks import Marks, Span, Table, Words, grade, to_debate, to_turn
from debate_rl.inspector.views.debate import DebateView
from transcripts import Record, RunStore
from transcripts.annotations import LABELS, Annotations, Place
from transcripts.frames import VOTES
from transcripts.record import named


class Marker:
    """Makes the marks of one debate. ``every``: also of what nobody marked, so that it can be marked."""

    def __init__(self, given: Annotations, id: str, record: Record, *, every: bool = False) -> None:
        self._given, self._id, self._record, self.every = given, id, record, every

    @classmethod
    def of(cls, store: RunStore, id: str, record: Record, *, every: bool = False) -> Marker | None:
        """Return the marker of a run's debate, or None for a debate of an evaluation."""
        return None if ":" in id else cls(store.annotations(), id, record, every=every)

    def debate(self) -> Marks | None:
        """Return the marks of the debate."""
        return self._marks((), f"debate {self._id}", whole=True)

    def turn(self, view: DebateView, turn: TurnId) -> Marks | None:
        """Return the marks of a turn. Only a solution can be labeled."""
        held = view.turn(turn)
        solves = held is not None and not held.ballot and held.targets is None
        choices = tuple((word, word) for word in LABELS["turn"]) if solves else ()
        intro, anchor = "your label" if solves else "", f"turn-{named(turn)}"
        return self._marks((turn,), view.spelled(turn), choices=choices, intro=intro, anchor=anchor)

    def pair(self, view: DebateView, one: TurnId, other: TurnId, anchor: str) -> Marks | None:
        """Return the marks of a pair of solutions, or None for a vote on one solution."""
        if one == other:
            return None
        left, right = sorted((one, other))
        words = (view.handle(left, right.round), view.handle(right, left.round))
        choices = (("left", words[0]), ("tie", "tie"), ("right", words[1]))
        return self._marks((left, right), f"{words[0]} and {words[1]}", choices=choices, anchor=anchor)

    def _marks(self, turns: tuple[TurnId, ...], about: str, **more: Any) -> Marks | None:
        place = Place(self._id, turns)
        given = self._given.of(self._record, place)
        can_be_given = self.every and ("whole" in more or more.get("choices"))
        if not given and not can_be_given:
            return None
        star, label, note = "star" in given, given.get("label", ""), given.get("note", "")
        return Marks(str(place), about, star, label, note, **more)


def annotations_table(rows: Iterable[dict[str, Any]]) -> Table:
    """Return a run's annotations as a table (rows as in ``frame("annotations")``)."""
    shown: list[list[Words]] = []
    for row in rows:
        place = Place.of(row["id"])
        link = to_turn(place.debate, place.turns[0]) if len(place.turns) == 1 else to_debate(place.debate)
        votes = [row[name] for name in VOTES]
        by_side = zip(votes, VOTES, strict=True)
        counts = " ".join(f"{count} {name.removesuffix('_votes')}" for count, name in by_side if count)
        gold = "debate gone or replaced" if row["stale"] else grade(row["gold"]) if row["gold"] else ""
        value = shorten(" ".join(row["value"].split()), 200)
        shown.append([Span(row["id"], link=link), row["kind"], value, gold, counts, row["time"]])
    return Table(("on", "kind", "value", "gold", "votes", "at"), shown, name="annotations")
