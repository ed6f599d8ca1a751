"""Parse criticism: the part of an evaluation about each solution that it names as a target.

A criticism begins with ``<target>K7</target>`` and ends at the next target or at the end of the section. A
label must match as a whole, in any case, and may follow the word "agent". Text before the first target is
ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from debate.prompting.escape import clean
from debate.types import Criticism, FailureReason, ParseFailure, Span

_GAP = r"[ \t\r\n]{0,4}"
TARGET = re.compile(
    rf"<{_GAP}target{_GAP}>([^<>]{{0,80}})<{_GAP}/{_GAP}target{_GAP}>", re.IGNORECASE | re.ASCII
)
_BEFORE = "AGENT "


def read_criticisms(
    text: str, section: Span, *, handles: Iterable[str], own: str, finished: bool
) -> tuple[tuple[Criticism, ...], tuple[ParseFailure, ...]]:
    """Return the criticisms in a section, and a failure for each unknown target or empty criticism.

    ``finished``: whether the section was closed. If not, its last criticism is incomplete and is ignored.

    >>> text = "<target>k7</target>Step 2 is wrong. <target>Q2</target> <target>Z9</target>Wrong."
    >>> read, failed = read_criticisms(text, Span(0, 82), handles=("K7", "Q2"), own="M4", finished=True)
    >>> [(one.target, one.span.of(text)) for one in read], [failure.detail for failure in failed]
    ([('K7', 'Step 2 is wrong. ')], ['Q2', 'Z9'])
    """
    labels = {handle.upper(): handle for handle in handles if handle.upper() != own.upper()}
    criticisms: list[Criticism] = []
    failures: list[ParseFailure] = []
    for label, span in _parts(text, section, finished=finished):
        target = _target(label, labels)
        if target is None or not clean(span.of(text)).strip():
            failures.append(ParseFailure(FailureReason.NOT_A_CRITICISM, label[:160], span))
        else:
            criticisms.append(Criticism(target, span))
    return tuple(criticisms), tuple(failures)


def _parts(text: str, section: Span, *, finished: bool) -> Iterator[tuple[str, Span]]:
    """Yield the label in each target tag, and the span from that tag to the next one."""
    tags = list(TARGET.finditer(text, section.start, section.end))
    for tag, following in pairwise(tags):
        yield tag[1], Span(tag.end(), following.start())
    if tags and finished:
        yield tags[-1][1], Span(tags[-1].end(), section.end)


def _target(label: str, labels: dict[str, str]) -> str | None:
    name = " ".join(clean(label).split()).strip(" *_`\"'").upper()
    return labels.get(name) or labels.get(name.removeprefix(_BEFORE))
