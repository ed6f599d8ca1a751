"""What other schemes would have paid a debate, turn by turn, and a replay as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.text import Text

from inspector.terminal.columns import padded
from inspector.terminal.style import DOUBT, FAINT, STRONG, heading, line
from inspector.views.replays import DebateReplay, ReplayComparison, StreamChange
from learner.formatting import fixed, one_line, share

ADVANTAGES = ("generator", "judge", "format")
CELL, NAME = 20, 22


def replay_lines(found: Sequence[tuple[str, Sequence[str], DebateReplay | None]]) -> list[Text | str]:
    """Return a debate under each replay: (name, overrides, the debate where it was shown)."""
    if not found:
        return [line(("no replay of this run: debate replay RUN rewards.truth_weight=0.3 makes one", FAINT))]
    lines: list[Text | str] = []
    for name, overrides, debate in found:
        lines += [heading(one_line(name, 60), one_line(" ".join(overrides))), *_debate(debate), ""]
    return lines


def _debate(debate: DebateReplay | None) -> list[Text]:
    if debate is None:
        return [line(("this debate is not in it", FAINT))]
    differs = (
        [line(("what is stored is not what the run's own scheme gives", DOUBT))] if debate.differs else []
    )
    heads = "".join(padded(name, CELL) for name in ADVANTAGES)
    rows = [line((padded("advantage: as paid → replayed", 30) + heads, FAINT))]
    for turn in debate.turns:
        name = f"round {turn.turn.round + 1}  {turn.turn.agent + 1} {one_line(turn.persona, 40)}"
        row = line(padded(name, 29), " ")
        for stream in ADVANTAGES:
            row.append_text(_change(turn.advantages, stream))
        rows.append(row)
    return [*differs, *rows]


def _change(values: Mapping[str, tuple[float | None, float | None]], stream: str) -> Text:
    old, new = values.get(stream, (None, None))
    turned = old is not None and new is not None and old * new < 0
    told = f"{fixed(old, '+.2f')} → {fixed(new, '+.2f')}{' !' if turned else ''}"
    return line((padded(told, CELL), STRONG if turned else FAINT if old == new else ""))


def summary_lines(found: ReplayComparison) -> list[Text | str]:
    """Return what a replay changed, by stream and by cell."""
    lines: list[Text | str] = [
        heading(one_line(found.name, 60), one_line(" ".join(found.overrides) or "the run's own scheme")),
        line(
            f"{found.changed:,} of {found.debates:,} debates change"
            + (f", filter {one_line(found.filter)}" if found.filter else "")
        ),
    ]
    if found.differ:
        told = f"{found.differ:,} of {found.checked:,} debates: stored is not what the run's own scheme gives"
        lines.append(line((told, DOUBT)))
    if found.damaged_lines:
        lines.append(line((f"{found.damaged_lines:,} damaged lines", DOUBT)))
    shares = f"{'sign':>6} {'came':>6} {'went':>6}"
    heads = f"{'':<{NAME}}{'turns':>7} {shares} {'before':>8} {'after':>8} {'moved':>8}"
    lines += ["", heading("advantages"), line((heads, FAINT)), *map(_stream, found.streams), ""]
    return [*lines, heading("by persona and round"), line((heads, FAINT)), *map(_stream, found.cells)]


def _stream(one: StreamChange) -> str:
    where = "" if one.persona is None else f" {one_line(one.persona, 20)}"
    round_ = "" if one.round is None else f" r{one.round + 1}"
    shares = f"{share(one.flipped):>6} {share(one.gained):>6} {share(one.lost):>6}"
    means = f"{fixed(one.old, '+.3f'):>8} {fixed(one.new, '+.3f'):>8} {fixed(one.moved, '.3f'):>8}"
    return f"{padded(one.stream + where + round_, NAME)}{one.turns:>7,} {shares} {means}"
