"""One turn token by token, why it was rewarded as it was, and what other schemes would have given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from rich.text import Text

from debate_rl.formatting import fixed, one_line, padded, round_name, safe, share
from debate_rl.inspector.terminal.style import DOUBT, FAINT, STRONG, TITLE, WRONG, heading, line
from debate_rl.inspector.views.debate import ADVANTAGES, DebateView
from debate_rl.inspector.views.replays import DebateReplay, StoredReplay, StreamChange
from debate_rl.inspector.views.reward import outline
from debate_rl.inspector.views.reward_types import OutlineLine, Why
from debate_rl.inspector.views.tokens import TokenPiece, TokenView

MOST = 20_000
HEADS = f"{'index':>6}  {'section':<10}  {'stream':<9}  {'advantage':>9}  {'logprob':>8}  token"


def token_lines(view: TokenView) -> list[Text | str]:
    """Return the sums by section and stream, then every token."""
    if view.why:
        return [line((view.why, FAINT))]
    lines: list[Text | str] = [
        heading("by section", "the sum of the advantages, the mean log-probability in nats"),
        line((f"{'section':<10}  {'stream':<9}  {'tokens':>7}  {'advantage':>10}  {'logprob':>8}", FAINT)),
    ]
    for total in view.totals:
        sums = f"{fixed(total.advantage, '+.3f'):>10}  {fixed(total.logprob, '.3f'):>8}"
        lines.append(f"{total.section:<10}  {total.stream:<9}  {total.tokens:>7,}  {sums}")
    lines += ["", heading("tokens"), line((HEADS, FAINT)), *_rows(view.tokens[:MOST])]
    if len(view.tokens) > MOST:
        lines.append(line((f"… {len(view.tokens) - MOST:,} more", FAINT)))
    return lines


def _rows(tokens: tuple[TokenPiece, ...]) -> Iterator[str]:
    for token in tokens:
        weights = f"{fixed(token.advantage, '+.3f'):>9}  {fixed(token.logprob, '.3f'):>8}"
        whose = f"{padded(token.section, 10)}  {token.stream:<9}"
        yield f"{token.index:>6}  {whose}  {weights}  {_shown(token.text)}"


def _shown(text: str) -> str:
    r"""Return a token's text on one line, in quotes that show its blanks."""
    return "'" + safe(text[:200].replace("\n", "\\n")) + "'"


MATCHES = {True: ("", ""), False: ("  ≠ stored", WRONG), None: ("", "")}
"""Only what is not as stored is marked."""


def why_lines(why: Why) -> list[Text | str]:
    """Return the chain from the votes to the advantage."""
    lines: list[Text | str] = []
    for item in outline(why):
        if item.depth == 0 and lines:
            lines.append("")
        lines.append(_line(item))
    return lines


def _line(item: OutlineLine) -> Text:
    quote = f"  “{one_line(item.quote, 200)}”" if item.quote else ""
    indent = "  " * max(0, item.depth - 1)
    return line(
        indent, (one_line(item.text), TITLE if item.depth == 0 else ""), (quote, FAINT), MATCHES[item.matches]
    )


CELL, NAME = 20, 32


def replay_lines(
    view: DebateView, replays: Sequence[tuple[StoredReplay, DebateReplay | None]]
) -> list[Text | str]:
    """Return a debate under each replay, None where the replay did not show it."""
    if not replays:
        return [line(("no replay of this run: debate replay RUN rewards.truth_weight=0.3 makes one", FAINT))]
    lines: list[Text | str] = []
    for replay, debate in replays:
        title = heading(one_line(replay.name, 60), one_line(" ".join(replay.facts.overrides)))
        lines += [title, *_debate(view, debate), ""]
    return lines


def _debate(view: DebateView, debate: DebateReplay | None) -> list[Text]:
    if debate is None:
        return [line(("this debate is not in it", FAINT))]
    differs = (
        [line(("what is stored is not what the run's own scheme gives", DOUBT))] if debate.differs else []
    )
    heads = "".join(padded(name, CELL) for name in ADVANTAGES)
    rows = [line((padded("advantage: old → new", 30) + heads, FAINT))]
    for turn in debate.turns:
        name = one_line(view.spelled(turn.turn), 60)
        row = line(padded(name, 29), " ")
        for stream in ADVANTAGES:
            row.append_text(_change(turn.advantages, stream))
        rows.append(row)
    return [*differs, *rows]


def _change(values: Mapping[str, tuple[float | None, float | None]], stream: str) -> Text:
    old, new = values.get(stream, (None, None))
    turned = old is not None and new is not None and old * new < 0
    text = f"{fixed(old, '+.2f')} → {fixed(new, '+.2f')}{' !' if turned else ''}"
    return line((padded(text, CELL), STRONG if turned else FAINT if old == new else ""))


def summary_lines(replay: StoredReplay) -> list[Text | str]:
    """Return what a replay changed, by stream and by cell."""
    facts, filter = replay.facts, replay.facts.asked.filter
    of_filter = f", filter {one_line(filter)}" if filter else ""
    lines: list[Text | str] = [
        heading(one_line(replay.name, 60), one_line(" ".join(facts.overrides) or "the run's own scheme")),
        line(f"{facts.changed:,} of {facts.debates:,} debates change{of_filter}"),
    ]
    if facts.differ:
        count = f"{facts.differ:,} of {facts.checked:,} debates"
        lines.append(line((f"{count}: stored is not what the run's own scheme gives", DOUBT)))
    if facts.damaged_lines:
        lines.append(line((f"{facts.damaged_lines:,} damaged lines", DOUBT)))
    heads = f"{'':<{NAME}}" + "".join(f"{name:>{width}}" for name, width in COLUMNS)
    lines += ["", heading("advantages"), line((heads, FAINT))]
    lines += [_row(one_line(one.stream, 20), one) for one in facts.streams]
    lines += ["", heading("by persona and round"), line((heads, FAINT))]
    for stream, cells in groupby(facts.cells, key=lambda one: one.stream):
        lines.append(line((one_line(stream, 40), STRONG)))
        lines += [_row(_cell_name(one, facts.rounds), one) for one in cells]
    return lines


COLUMNS = (("turns", 7), ("sign", 5), ("gained", 7), ("lost", 5), ("old", 7), ("new", 7), ("moved", 6))
"""Those of a replay's figures with their widths: turns, share with another sign, and so on."""


def _cell_name(change: StreamChange, rounds: int | None) -> str:
    """Return persona and round, which is always seen whole."""
    round_ = "all rounds" if change.round is None else round_name(change.round, rounds)
    persona = "" if change.persona is None else one_line(change.persona, NAME - len(round_) - 5)
    return f"  {persona}, {round_}"


def _row(name: str, change: StreamChange) -> str:
    shares = (share(change.sign_changed), share(change.gained), share(change.lost))
    means = (fixed(change.old, "+.3f"), fixed(change.new, "+.3f"), fixed(change.moved, ".3f"))
    cells = zip(COLUMNS, (f"{change.turns:,}", *shares, *means), strict=True)
    return padded(name, NAME) + "".join(f"{cell:>{width}}" for (_, width), cell in cells)
