"""Parse a reply in a debate, according to the kind of its problem and the task of its round."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from debate.config import DebateConfig
from debate.parsing import last_boxed, parse_turn
from debate.prompting.escape import clean
from debate.prompting.shown import cut_off, reads_untagged, whole_solution
from debate.prompting.texts import PromptTexts
from debate.types import (
    WHOLE_RESPONSE,
    Completion,
    Criticism,
    FailureReason,
    Kind,
    ParsedTurn,
    ParseFailure,
    Span,
)

_GAP = r"[ \t\r\n]{0,4}"
TARGET = re.compile(
    rf"<{_GAP}target{_GAP}>([^<>]{{0,80}})<{_GAP}/{_GAP}target{_GAP}>", re.IGNORECASE | re.ASCII
)
_BEFORE = "AGENT "


class Untagged(NamedTuple):
    """How to parse a reply without tags: the stop strings that may end it, and whether tags were due."""

    stop: tuple[str, ...] = ()
    due: bool = True


def untagged_rule(config: DebateConfig, texts: PromptTexts, round_: int) -> Untagged | None:
    """Return how to parse a reply without tags in a round, or None if such a reply has no solution."""
    if not reads_untagged(config, round_):
        return None
    return Untagged((*config.stop, *(texts.stop if config.prompt_stops else ())), due=texts.sections)


def read_reply(
    completion: Completion,
    *,
    handles: Iterable[str],
    own: str | None,
    due: bool,
    in_thinking: bool,
    ballot: bool,
    kind: Kind,
    untagged: Untagged | None = None,
    critic: str | None = None,
) -> ParsedTurn:
    """Parse a reply with ``parse_turn``, adapted to the problem's kind and the round's task.

    ``untagged``: how a reply without solution tags becomes the solution as a whole; None if it does not.
    ``critic``: the author's own handle in a round of criticism.
    """
    text = completion.stated
    parsed = parse_turn(text, handles=handles, own=own, due=due, in_thinking=in_thinking)
    if untagged is not None and parsed.solution is None and not ballot:
        parsed = whole_reply(text, parsed, untagged, cut=completion.stop_reason == "length")
    if kind in WHOLE_RESPONSE:
        answer = whole_solution(completion.unprinted if kind == "code" else text, parsed)
        parsed = replace(parsed, answer=answer)
    if critic is not None:
        parsed = _with_criticisms(text, parsed, handles, critic)
    return _without_missing_solution(parsed) if ballot else parsed


def _with_criticisms(text: str, parsed: ParsedTurn, handles: Iterable[str], own: str) -> ParsedTurn:
    """Return a parsed reply with the criticisms in its evaluation."""
    span = parsed.evaluation
    if span is None:
        return replace(parsed, criticisms=())
    finished = not cut_off(text, parsed, "evaluation", span)
    criticisms, failures = read_criticisms(text, span, handles=handles, own=own, finished=finished)
    return replace(parsed, criticisms=criticisms, failures=(*parsed.failures, *failures))


def whole_reply(text: str, parsed: ParsedTurn, untagged: Untagged, *, cut: bool) -> ParsedTurn:
    """Return a reply without solution tags, with all text after its thinking as the solution.

    A stop string at the end of the reply is left out. A reply with no such text is returned unchanged.
    ``cut``: the reply ended at its token limit.
    """
    start = parsed.thinking.end if parsed.thinking else 0
    ended = next((len(string) for string in untagged.stop if not cut and text.endswith(string)), 0)
    span = Span(start, max(start, len(text) - ended))
    if not span.of(text).strip():
        return parsed
    left = _without_missing_solution(parsed).failures
    failures = (ParseFailure(FailureReason.UNTAGGED, "solution", span),) if untagged.due else ()
    if cut:
        failures += (ParseFailure(FailureReason.UNCLOSED_SECTION, "solution", span),)
    answer = last_boxed(span.of(text))
    return replace(parsed, solution=span, answer=answer, failures=(*failures, *left), untagged=True)


def _without_missing_solution(parsed: ParsedTurn) -> ParsedTurn:
    kept = tuple(
        f for f in parsed.failures if (f.reason, f.detail) != (FailureReason.MISSING_SECTION, "solution")
    )
    return parsed if len(kept) == len(parsed.failures) else replace(parsed, failures=kept)


def read_criticisms(
    text: str, section: Span, *, handles: Iterable[str], own: str, finished: bool
) -> tuple[tuple[Criticism, ...], tuple[ParseFailure, ...]]:
    """Return the criticisms in a section, and a failure for each unknown target or empty criticism.

    A criticism begins with ``<target>K7</target>`` and ends at the next target or at the end of the section.
    A label must match as a whole, in any case, and may follow the word "agent". Text before the first target
    is ignored.

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
