"""One turn token by token: stream, advantage, log-probability, and their sums by section."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from inspector.terminal.columns import padded
from inspector.terminal.style import FAINT, heading, line
from inspector.views.tokens import TokenPiece, TokenView
from learner.formatting import fixed, safe

MOST = 20_000
HEADS = f"{'place':>6}  {'section':<10}  {'stream':<9}  {'advantage':>9}  {'logprob':>8}  token"


def token_lines(found: TokenView) -> list[Text | str]:
    """Return the sums by section and stream, then every token."""
    if not found.stored:
        return [line((found.why, FAINT))]
    lines: list[Text | str] = [
        heading("by section", "the sum of the advantages, the mean log-probability in nats"),
        line((f"{'section':<10}  {'stream':<9}  {'tokens':>7}  {'advantage':>10}  {'logprob':>8}", FAINT)),
    ]
    for total in found.totals:
        sums = f"{fixed(total.advantage, '+.3f'):>10}  {fixed(total.logprob, '.3f'):>8}"
        lines.append(f"{total.section:<10}  {total.stream:<9}  {total.tokens:>7,}  {sums}")
    lines += ["", heading("tokens"), line((HEADS, FAINT)), *_rows(found.tokens[:MOST])]
    if len(found.tokens) > MOST:
        lines.append(line((f"… {len(found.tokens) - MOST:,} more", FAINT)))
    return lines


def _rows(tokens: tuple[TokenPiece, ...]) -> Iterator[str]:
    for token in tokens:
        weights = f"{fixed(token.advantage, '+.3f'):>9}  {fixed(token.logprob, '.3f'):>8}"
        whose = f"{padded(token.section, 10)}  {token.stream:<9}"
        yield f"{token.place:>6}  {whose}  {weights}  {_shown(token.text)}"


def _shown(text: str) -> str:
    r"""Return a token's text on one line, in quotes that show its blanks."""
    return "'" + safe(text[:200].replace("\n", "\\n")) + "'"
