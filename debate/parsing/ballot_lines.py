"""Parse ballots from a comparison section, one line at a time.

A line votes only if, after bullets, numbering and a few lead-in words, it *begins* with a comparison: two
handles with only an operator (or "is better than" and the like) between them. ``A > B`` always means that A
wins. Everything after the last handle of the chain is the reason. A reason never votes, whatever handles and
operators it contains. A line without a reason may list several comparisons, separated by ``;``, ``,`` or
"and".

A chain such as ``A > B = C`` implies each of its pairs once, adjacent pairs first. A chain that points both
ways (``A > B < C``), names a handle twice or contains an unknown label implies only its adjacent pairs.

``>=``, ``!=``, arrows, a question ("A > B?") and an alternative ("A > B or B > A") are malformed. A line of
plain prose, with no handle and no operator between words, is skipped. ``ballot_words`` defines the lead-in
words, operators and phrases.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import accumulate

from debate.parsing.ballot_words import (
    BULLET,
    JOIN,
    LEAD,
    NEXT,
    PHRASE,
    REST,
    SYMBOL,
    SYMBOLS,
    TIE_AFTER,
    TIE_BEFORE,
    UNSURE,
    Grammar,
    Operand,
    clean,
    grammar,
)
from debate.types import Ballot, FailureReason, Outcome, ParseFailure, Span

_LEADS = 4
_DETAIL_CHARACTERS = 160


@dataclass(frozen=True, slots=True)
class _Chain:
    """A chain of comparisons: ``labels`` (n,), None if unknown, and ``outcomes`` (n - 1,) between neighbours.

    ``whole`` is False if a further operator could not be parsed. ``end`` is the index at which the reason
    begins. ``worded`` is True if the comparison uses words instead of operators.
    """

    labels: tuple[str | None, ...]
    outcomes: tuple[Outcome, ...]
    end: int
    whole: bool = True
    worded: bool = False


_Pair = tuple[str, str, Outcome]


def read_ballots(
    text: str, span: Span, *, handles: tuple[str, ...], own: str | None, finished: bool
) -> tuple[list[Ballot], list[ParseFailure]]:
    """Return every vote in the comparison ``span``, in order, and one failure per line and reason.

    Unless ``finished``, the last line may be incomplete and is ignored. Repeated and contradictory votes are
    kept.

    >>> votes, _ = read_ballots("K7 > Q2: M4 > K7 is false", Span(0, 25), handles=("K7", "Q2", "M4"),
    ...                         own=None, finished=True)
    >>> [(vote.left, vote.right, vote.outcome) for vote in votes]
    [('K7', 'Q2', 'left')]
    """
    reader = grammar(handles)
    self_label = None if own is None else reader.resolve(own)
    read = cache(partial(_read_line, reader, self_label))  # degenerate replies repeat lines
    ballots: list[Ballot] = []
    failures: list[ParseFailure] = []
    for at in _lines(text, span, finished):
        pairs, reasons = read(at.of(text))
        ballots += [Ballot(left, right, outcome, at) for left, right, outcome in pairs]
        failures += [ParseFailure(reason, at.of(text)[:_DETAIL_CHARACTERS], at) for reason in reasons]
    return ballots, failures


def _lines(text: str, span: Span, finished: bool) -> Iterator[Span]:
    """Yield the span of each non-blank line, without surrounding whitespace."""
    start = span.start
    raw_lines = span.of(text).splitlines(keepends=True)
    if raw_lines and not finished and raw_lines[-1][-1:].splitlines() != [""]:
        raw_lines.pop()
    for raw in raw_lines:
        body = raw.strip()
        if body:
            left = start + len(raw) - len(raw.lstrip())
            yield Span(left, left + len(body))
        start += len(raw)


def _read_line(reader: Grammar, own: str | None, raw: str) -> tuple[list[_Pair], list[FailureReason]]:
    line = clean(raw)
    chains = _comparisons(reader, line)
    if not chains:
        return [], [FailureReason.NOT_A_COMPARISON] if reader.is_attempt(line) else []
    pairs: dict[_Pair, None] = {}
    reasons: dict[FailureReason, None] = {}
    for chain in chains:
        reasons.update(dict.fromkeys(_faults(chain)))
        for pair in _implied(chain):
            if own in pair[:2]:
                reasons[FailureReason.OWN_WORK] = None
            else:
                pairs[pair] = None
    return list(pairs), list(reasons)


def _comparisons(reader: Grammar, line: str) -> list[_Chain]:
    """Return the comparisons of a line.

    If the line only lists comparisons, return all of them; otherwise return the one at its beginning, if any.
    """
    first = _first(reader, line)
    if first is None or UNSURE.match(line, first.end):
        return []
    chains = [first]
    while following := NEXT.match(line, chains[-1].end):
        chain = _chain(reader, line, following.end())
        if chain is None:
            break
        chains.append(chain)
    return chains if REST.match(line, chains[-1].end) else [first]


def _first(reader: Grammar, line: str) -> _Chain | None:
    """Return the comparison at the beginning of a line, after bullets and lead-in words."""
    start = BULLET.match(line)
    for _ in range(_LEADS):
        if start is None:
            return None
        chain = _chain(reader, line, start.end()) or _tie(reader, line, start.end())
        if chain:
            return chain
        start = LEAD.match(line, start.end())
    return None


def _chain(reader: Grammar, line: str, start: int) -> _Chain | None:
    """Parse ``A > B > C`` or "A is better than B" at ``start``."""
    first = reader.operand(line, start)
    if first is None:
        return None
    link = SYMBOL.match(line, first.end)
    chain = _symbols(reader, line, first) if link else _phrase(reader, line, first)
    prose = chain is not None and chain.worded and not any(chain.labels)
    return None if chain is None or prose else chain


def _symbols(reader: Grammar, line: str, first: Operand) -> _Chain | None:
    labels: list[str | None] = [first.handle]
    outcomes: list[Outcome] = []
    end, whole = first.end, True
    while link := SYMBOL.match(line, end):
        outcome = SYMBOLS.get(link[1])
        operand = reader.operand(line, link.end()) if outcome else None
        if outcome is None or operand is None:
            whole = False
            break
        labels.append(operand.handle)
        outcomes.append(outcome)
        end = operand.end
    return _Chain(tuple(labels), tuple(outcomes), end, whole) if outcomes else None


def _phrase(reader: Grammar, line: str, first: Operand) -> _Chain | None:
    link = PHRASE.match(line, first.end)
    operand = reader.operand(line, link.end()) if link else None
    if link is None or operand is None:
        return None
    outcome: Outcome = "left" if link["left"] else "right" if link["right"] else "tie"
    return _Chain((first.handle, operand.handle), (outcome,), operand.end, worded=True)


def _tie(reader: Grammar, line: str, start: int) -> _Chain | None:
    """Parse "tie between A and B" or "A, B and C are tied" at ``start``."""
    before = TIE_BEFORE.match(line, start)
    labels, end = _listed(reader, line, before.end() if before else start)
    after = None if before else TIE_AFTER.match(line, end)
    if len(labels) < 2 or not (before or after):
        return None
    ties: tuple[Outcome, ...] = ("tie",) * (len(labels) - 1)
    return _Chain(tuple(labels), ties, after.end() if after else end, worded=True)


def _listed(reader: Grammar, line: str, start: int) -> tuple[list[str | None], int]:
    labels: list[str | None] = []
    end = start
    label = reader.known(line, start)
    while label:
        labels.append(label.handle)
        end = label.end
        join = JOIN.match(line, end)
        label = reader.known(line, join.end()) if join else None
    return labels, end


def _faults(chain: _Chain) -> Iterator[FailureReason]:
    if not chain.whole:
        yield FailureReason.NOT_A_COMPARISON
    if None in chain.labels:
        yield FailureReason.UNKNOWN_HANDLE
    if any(left == right for left, right in zip(chain.labels, chain.labels[1:], strict=False) if left):
        yield FailureReason.SAME_HANDLE


def _implied(chain: _Chain) -> Iterator[_Pair]:
    """Yield the pairs of different, known handles that a chain implies, adjacent pairs first."""
    labels, outcomes = chain.labels, chain.outcomes
    for left, right, outcome in zip(labels, labels[1:], outcomes, strict=False):
        yield from _pair(left, right, outcome)
    if None in labels or {"left", "right"} <= set(outcomes) or len(set(labels)) < len(labels):
        return
    ahead: Outcome = "right" if "right" in outcomes else "left"
    strict = [0, *accumulate(outcome != "tie" for outcome in outcomes)]  # non-ties before each label
    for gap in range(2, len(labels)):
        for i in range(len(labels) - gap):
            yield from _pair(labels[i], labels[i + gap], ahead if strict[i + gap] > strict[i] else "tie")


def _pair(left: str | None, right: str | None, outcome: Outcome) -> Iterator[_Pair]:
    if left and right and left != right:
        yield left, right, outcome
