"""Parse a reply into thinking, sections, answer and ballots. Parsing never raises and takes linear time.

``sections`` decides which blocks count, ``ballot_words`` and ``ballot_lines`` decide which lines vote, and
``last_boxed`` extracts the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from debate.parsing.ballot_lines import read_ballots
from debate.parsing.sections import NAMES, Sections, find_sections
from debate.types import Ballot, FailureReason, ParsedTurn, ParseFailure

_BOX_OR_BRACE = re.compile(r"(\\{1,2}boxed[ \t\r\n]{0,4}\{)|\\.|[{}]", re.DOTALL)


def parse_turn(
    text: str, *, handles: Iterable[str], own: str | None, due: bool, in_thinking: bool = False
) -> ParsedTurn:
    r"""Return everything that can be parsed from one reply.

    ``handles`` are the labels of all agents. ``own`` is the author's label, or None if authors may compare
    their own work. Labels match in any case. ``in_thinking``: the prompt itself opened a think block.

    Failures: MISSING_SECTION for an absent solution and, if ``due``, for an absent evaluation or comparison;
    UNCLOSED_SECTION for a section, or thinking, that was opened and never closed. Each line of the comparison
    may add NOT_A_COMPARISON, UNKNOWN_HANDLE, SAME_HANDLE or OWN_WORK, each once. Unless ``due``, no line
    votes, and every line that would have voted is NOT_DUE.

    >>> text = "<solution>\\boxed{4}</solution><evaluation>Q2 slips.</evaluation><comparison>K7 &gt; Q2"
    >>> turn = parse_turn(text + "</comparison>", handles=("K7", "Q2", "M4"), own="M4", due=True)
    >>> turn.answer, turn.evaluation.of(text), [(b.left, b.right, b.outcome) for b in turn.ballots]
    ('4', 'Q2 slips.', [('K7', 'Q2', 'left')])
    >>> parse_turn(text, handles=("K7", "Q2", "M4"), own="M4", due=True).failures[0].reason
    <FailureReason.UNCLOSED_SECTION: 'unclosed_section'>
    """
    sections = find_sections(text, in_thinking=in_thinking)
    labels = tuple(handles)
    if own is not None and own not in labels:  # so that one cached grammar serves all agents of a debate
        labels = (*labels, own)
    ballots, line_failures = _votes(text, sections, handles=labels, own=own, due=due)
    solution = sections.inside("solution")
    comparison = sections.by_name.get("comparison")
    return ParsedTurn(
        solution=solution,
        evaluation=sections.inside("evaluation"),
        comparison=comparison.inside if comparison else None,
        answer=last_boxed(solution.of(text)) if solution else None,
        ballots=ballots,
        failures=(*_section_failures(sections, due), *line_failures),
        thinking=sections.thinking,
        comparison_block=comparison.block if comparison else None,
    )


def last_boxed(text: str) -> str | None:
    r"""Return the content of the last balanced ``\boxed{}``, exactly as written, or None.

    "Last" means the box that starts last, so the inner of two nested boxes wins. A box that never closes is
    skipped. Escaped braces do not count as braces. One pass, linear in the length.

    >>> last_boxed(r"\boxed{1} so \boxed{\frac{1}{2}} and \boxed{cut")
    '\\frac{1}{2}'
    >>> last_boxed(r"\boxed{\{1, 2\}}")
    '\\{1, 2\\}'
    """
    open_braces: list[int | None] = []  # for a box, the index after its brace; None for a plain brace
    best: tuple[int, int] | None = None
    for token in _BOX_OR_BRACE.finditer(text):
        if token[1]:
            open_braces.append(token.end())
        elif token[0] == "{":
            open_braces.append(None)
        elif token[0] == "}" and open_braces:
            start = open_braces.pop()
            if start is not None and (best is None or start > best[0]):
                best = (start, token.start())
    return None if best is None else text[best[0] : best[1]]


def _section_failures(sections: Sections, due: bool) -> Iterator[ParseFailure]:
    if not sections.thinking_closed:
        yield ParseFailure(FailureReason.UNCLOSED_SECTION, "thinking", sections.thinking)
    for name in NAMES:
        section = sections.by_name.get(name)
        if section is None and (due or name == "solution"):
            yield ParseFailure(FailureReason.MISSING_SECTION, name)
        elif section is not None and not section.closed:
            yield ParseFailure(FailureReason.UNCLOSED_SECTION, name, section.inside)


def _votes(
    text: str, sections: Sections, *, handles: tuple[str, ...], own: str | None, due: bool
) -> tuple[tuple[Ballot, ...], tuple[ParseFailure, ...]]:
    section = sections.by_name.get("comparison")
    if section is None:
        return (), ()
    ballots, failures = read_ballots(text, section.inside, handles=handles, own=own, finished=not section.cut)
    if due:
        return tuple(ballots), tuple(failures)
    early = dict.fromkeys(ballot.span for ballot in ballots)
    return (), tuple(ParseFailure(FailureReason.NOT_DUE, span.of(text)[:160], span) for span in early)
