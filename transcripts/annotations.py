"""RUN/annotations.jsonl: the stars, notes and labels that people gave to debates, turns and pairs.

    {"kind": "label", "id": "12.3/0.0-1.0", "value": "left", "replies": "1c291ca3", "time": ...}

``12.3`` is a debate, ``12.3/1.0`` its turn of agent 1 in round 0, and ``12.3/0.0-1.0`` a pair of solutions,
which stands for all votes on it. Lines are only appended. The last line of a kind on an id counts; an empty
value removes what earlier lines gave. ``replies`` is a checksum of the debate's replies: after a rollback, a
step is held again, and its debates have the same ids but other replies.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple, Self, TypeAlias
from zlib import crc32

import msgspec

from debate.files import read_plain
from debate.types import TurnId
from debate.values import Value
from rewards import ballot_box
from transcripts.append import LineFile, is_whole
from transcripts.codec import decode
from transcripts.errors import FieldError
from transcripts.index.database import key_of
from transcripts.record import Record, named

Kind: TypeAlias = Literal["star", "note", "label"]
KINDS: tuple[Kind, ...] = ("star", "label", "note")
FILE = "annotations.jsonl"
LABELS: Mapping[str, tuple[str, ...]] = {
    "debate": (),  # words of your own
    "turn": ("right", "wrong"),
    "pair": ("left", "right", "tie"),
}
"""The labels of each kind of thing. For a turn: whether its solution is right. For a pair: the better one,
where left is the first in the id."""
MOST = {"star": 3, "note": 10_000, "label": 100}
"""Maximum number of characters of a value."""
LARGEST = 64 << 20
_ID = re.compile(
    r"([0-9]{1,11})\.([0-9]{1,7})(?:/([0-9]{1,4}\.[0-9]{1,4})(?:-([0-9]{1,4}\.[0-9]{1,4}))?)?", re.ASCII
)


class Place(NamedTuple):
    """What an annotation is about: a debate, one of its turns, or a pair of its solutions in order."""

    debate: str
    turns: tuple[TurnId, ...] = ()

    @classmethod
    def of(cls, id: str) -> Self:
        """Return the place with this id. FieldError for any other text.

        >>> Place.of("12.3/0.0-1.0").turns
        (TurnId(agent=0, round=0), TurnId(agent=1, round=0))
        """
        match = _ID.fullmatch(id)
        if match is None:
            wanted = "a debate 12.3, a turn 12.3/1.0 (agent.round) or a pair 12.3/0.0-1.0"
            raise FieldError("id", f"expected {wanted}; got {id[:60]!r}")
        turns = tuple(TurnId(*map(int, turn.split("."))) for turn in match.groups()[2:] if turn)
        place = cls(f"{int(match[1])}.{int(match[2])}", tuple(sorted(set(turns))))
        if str(place) != id:
            raise FieldError("id", f"got {id!r}; write {place}, without zeros in front and in this order")
        return place

    @property
    def kind(self) -> str:
        """A key of ``LABELS``."""
        return ("debate", "turn", "pair")[len(self.turns)]

    @property
    def key(self) -> int:
        """The debate's key in the index."""
        step, _, number = self.debate.partition(".")
        return key_of(int(step), int(number))

    def __str__(self) -> str:
        return "/".join([self.debate, *(["-".join(map(named, self.turns))] if self.turns else [])])


class Annotation(Value, frozen=True):
    """One line. ``value``: "yes" for a star, the text of a note, a label; "" if it was removed.

    ``replies``: ``checksum`` of the debate. ``time``: when it was written, in UTC.
    """

    kind: Kind
    id: str
    value: str
    replies: str
    time: str


@dataclass(frozen=True, slots=True)
class Annotations:
    """The annotations of a run that count, by (kind, id), and the lines that cannot be read, as messages.

    ``lines``: the number of lines of the file, which grows with every change.
    """

    given: Mapping[tuple[Kind, str], Annotation] = field(default_factory=dict[tuple[Kind, str], Annotation])
    faults: tuple[str, ...] = ()
    lines: int = 0

    def of(self, record: Record, place: Place) -> dict[Kind, str]:
        """Return the values for a place of a debate by kind. Those for other replies do not count."""
        given = (self.given.get((kind, str(place))) for kind in KINDS)
        return {one.kind: one.value for one in given if one and one.replies == checksum(record)}

    def by_debate(self) -> dict[str, list[Annotation]]:
        """Return the annotations of each debate, in the order of the run."""
        found: defaultdict[str, list[Annotation]] = defaultdict(list)
        for one in sorted(self.given.values(), key=_in_order):
            found[Place.of(one.id).debate].append(one)
        return found

    def marks(self, kind: Kind) -> str:
        """Return [key of the debate, text] for each text that filters find under a kind, as JSON.

        A note is found by each of its words, and by the whole note.
        """
        rows = list[tuple[int, str]]()
        for (of_kind, id), one in self.given.items():
            if of_kind == kind:
                words = {*re.findall(r"\w+", one.value.casefold())} if kind == "note" else set[str]()
                rows += [(Place.of(id).key, text) for text in {one.value, *words}]
        return json.dumps(rows)


def _in_order(one: Annotation) -> tuple[int, tuple[TurnId, ...], int]:
    place = Place.of(one.id)
    return place.key, place.turns, KINDS.index(one.kind)


def checksum(record: Record) -> str:
    """Return eight digits that differ between debates with different replies."""
    sum_ = 0
    for turn in record.debate.turns:
        sum_ = crc32(turn.completion.text.encode("utf-8", "surrogatepass"), sum_)
    return f"{sum_:08x}"


def read_annotations(run: Path) -> Annotations:
    """Return the annotations of a run, none without a file. A torn last line is not a fault."""
    path, faults = run / FILE, list[str]()
    given: dict[tuple[Kind, str], Annotation] = {}
    try:
        *lines, last = read_plain(path, LARGEST).split(b"\n")
    except FileNotFoundError:
        return Annotations()
    except OSError as error:
        return Annotations(faults=(f"{path}: {error.strerror}",))
    lines += [last] if is_whole(last) else []
    for number, line in enumerate(lines, start=1):
        try:
            one = decode(line, Annotation)
            _check(one)
        except FieldError as error:
            faults.append(f"{path}:{number}: {error}")
            continue
        given.pop((one.kind, one.id), None)
        if one.value:
            given[one.kind, one.id] = one
    return Annotations(given, tuple(faults), len(lines))


def _check(one: Annotation) -> Place:
    """Return the place of an annotation. FieldError if it does not fit its kind."""
    place = Place.of(one.id)
    if len(one.value) > MOST[one.kind]:
        raise FieldError("value", f"must have at most {MOST[one.kind]} characters")
    allowed = ("yes",) if one.kind == "star" else LABELS[place.kind] if one.kind == "label" else ()
    if one.value and allowed and one.value not in allowed:
        what = "a star" if one.kind == "star" else f"the label of a {place.kind}"
        raise FieldError("value", f"{what} must be {' or '.join(allowed)}; got {one.value[:60]!r}")
    return place


def annotate(run: Path, record: Record, kind: Kind, id: str, value: str) -> Annotation:
    """Append an annotation of the debate ``record`` to a run's file, and return it.

    Several processes may write at once. FieldError if the id or the value does not fit the debate. OSError if
    the file cannot be written.
    """
    plain = value.strip().encode("utf-8", "replace").decode()  # no lone surrogates
    one = Annotation(kind, id, plain, checksum(record), datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    place = _check(one)
    _check_turns(record, place, kind)
    with LineFile(run / FILE, shared=True) as file:
        file.write(msgspec.json.encode(one))
    return one


def _check_turns(record: Record, place: Place, kind: Kind) -> None:
    """Raise FieldError if the debate lacks a turn, or if a label is on a turn without a solution."""
    held = {turn.id for turn in record.debate.turns}
    solutions = ballot_box(record.debate).solutions()
    for turn in place.turns:
        if turn not in held:
            raise FieldError("id", f"debate {place.debate} has no turn {named(turn)}")
        if (kind == "label" or place.kind == "pair") and turn not in solutions:
            raise FieldError("id", f"turn {named(turn)} of debate {place.debate} has no solution")
