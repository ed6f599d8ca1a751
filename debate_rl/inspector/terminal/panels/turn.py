"""The reply of a turn by sections, the problem, and what is malformed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from debate_rl.formatting import duration, fixed, one_line, safe_lines
from debate_rl.inspector.terminal.style import DOUBT, FAINT, JUDGE, STRONG, heading, line, sign
from debate_rl.inspector.views.debate import ADVANTAGES, DebateView, StreamValues, TurnView, is_markup
from debate_rl.inspector.views.parsing import Excerpt, FailureView, FieldChange, TurnForensics
from debate_rl.inspector.views.prompts import PromptView
from rewards import STREAMS

MOST = 20_000
"""So many characters of a turn are shown at once; ``whole`` has them all."""
STYLES = {"thinking": FAINT, "comparison": JUDGE, "other": FAINT}


def turn_lines(view: DebateView, turn: TurnView | None, *, folded: bool = True) -> list[Text | str]:
    """Return a turn's lines; ``folded``: thinking is one line."""
    if turn is None:
        return [line(("no turn was held here", FAINT))]
    lines: list[Text | str] = [_who(view, turn), *_earned(turn), ""]
    left = MOST
    for piece in turn.pieces:
        text = piece.of(turn.text)
        if piece.kind == "other" and is_markup(text):
            continue
        if piece.kind == "thinking" and folded:
            lines.append(heading("thinking", f"{len(text):,} characters, t shows them"))
            continue
        if piece.kind != "other":
            lines.append(heading(piece.kind))
        lines += _section(text[:left], STYLES.get(piece.kind, ""))
        left -= min(left, len(text))
        if not left:
            lines.append(line((f"… cut: {len(turn.text):,} characters in all, o shows them", DOUBT)))
            break
    if turn.compressed is not None:
        how = "cut, as no shorter text could be shown" if turn.compression_failed else "compressed"
        lines += ["", heading("as others read it", how), *_section(turn.compressed[:MOST], "")]
    return lines


def prompt_lines(note: str, prompt: PromptView, summed: PromptView | None) -> list[Text | str]:
    """Return the messages that a turn read, and those that the summariser of its round read."""
    lines: list[Text | str] = [line((one_line(note), DOUBT))] if note else []
    for about, one in (("", prompt), (", summariser", summed)):
        if one is not None and one.why not in ("", note):
            lines.append(line((one_line(one.why), DOUBT)))
        for message in one.messages if one is not None else ():
            lines += _read(f"{message.role}{about}", message.content)
        if one is not None and one.title:
            lines += _read(f"{one.title}{about}", one.text)
        elif one is not None and one.unseen:
            lines += ["", line((one.unseen, DOUBT))]
    return lines


def _read(name: str, text: str) -> Iterator[Text | str]:
    yield from ("", heading(name), *_section(text[:MOST], ""))
    if len(text) > MOST:
        yield line((f"… cut: {len(text):,} characters in all, show --prompts has them", DOUBT))


def _section(text: str, style: str) -> Iterator[Text]:
    for shown in safe_lines(text.strip("\n")):
        yield line((shown, style))


def _who(view: DebateView, turn: TurnView) -> Text:
    mark, style = sign(turn.grade)
    grade = () if turn.ballot else ("  ", (f"{mark} {turn.grade}", style))
    lot = f", {one_line(view.lot(), 80)}" if view.tied else ""
    winner = (f"  ★ winner{lot}",) if view.winner == turn.id else ()
    answer = () if turn.answer is None else (f"  answer {one_line(turn.answer, 60)}",)
    if turn.targets is not None:
        answer = (f"  criticises {one_line(', '.join(turn.targets), 60) or 'nobody'}",)
    name = one_line(view.who(turn.id.agent), 80)
    return line((name, STRONG), f"  {view.round_name(turn.id.round)}", *grade, *answer, *winner)


def _earned(turn: TurnView) -> list[Text]:
    """Return the rewards and advantages of a turn, its length, and what is wrong with it."""
    tokens = "" if turn.tokens is None else f"  {turn.tokens:,} tokens"
    lines = [
        line(("reward     " + _named(turn.rewards, STREAMS), FAINT)),
        line(("advantage  " + _named(turn.advantages, ADVANTAGES) + tokens, FAINT)),
    ]
    if turn.programs:
        lines.append(line((one_line(f"programs   {turn.programs}", 100), FAINT)))
    if turn.verdict:
        lines.append(line((one_line(turn.verdict, 100), DOUBT)))
    wrong = ["truncated"] if turn.stop_reason == "length" else []
    wrong += [f"{len(turn.failures)} malformed (p shows them)"] if turn.failures else []
    wrong += [f"cause: {one_line(turn.cause, 60)}"] if turn.cause else []
    return [*lines, *([line(("!  " + ", ".join(wrong), DOUBT))] if wrong else [])]


def _named(numbers: StreamValues, names: Sequence[str]) -> str:
    return "  ".join(f"{name} {fixed(numbers[name], '+.2f')}" for name in names)


def problem_lines(view: DebateView) -> list[Text | str]:
    """Return the problem in full, who took part, and what was shown in the place of the history."""
    problem = view.problem
    facts = (("source", problem.source), ("level", problem.level), ("kind", problem.kind))
    named = "  ".join(f"{name} {one_line(value, 60)}" for name, value in facts if value)
    lines: list[Text | str] = [heading("problem", one_line(problem.id, 60)), *_section(problem.question, "")]
    lines += [
        line(f"  {chr(65 + index % 26)} {one_line(choice)}") for index, choice in enumerate(problem.choices)
    ]
    gold = "not known" if problem.answer is None else one_line(problem.answer)
    lines += [line(("gold answer ", FAINT), gold), line((named, FAINT)), "", heading("agents")]
    for agent, persona in enumerate(view.personas):
        temperature = f"  temperature {persona.temperature:g}"
        lines.append(line((one_line(view.who(agent)), STRONG), (temperature, FAINT)))
        lines += _section(persona.instructions, FAINT)
    seconds = "" if view.seconds is None else f", {duration(view.seconds)}"
    lines += [
        "",
        line((f"step {view.step}, policy version {view.policy_version}, seed {view.seed}{seconds}", FAINT)),
    ]
    for summary in view.summaries:
        lines += [
            "",
            heading(f"summary shown in round {summary.round}"),
            *_section(summary.text[:MOST], ""),
        ]
    return lines


def parse_lines(
    view: DebateView,
    forensics: TurnForensics | None,
    changes: Sequence[FieldChange],
    others: Sequence[TurnForensics],
) -> list[Text | str]:
    """Return the failures of the chosen turn, what parsing it again changes, and where else there are any."""
    lines: list[Text | str] = [heading("malformed", "" if forensics else "nothing in this turn")]
    for failure in forensics.failures if forensics else ():
        lines += _failure(failure)
    note = f"{len(changes)} fields change" if changes else "the same as is stored"
    lines += ["", heading("parsed again today", note)]
    for change in changes:
        lines.append(line((change.field, STRONG)))
        lines += [
            line(f"  {name} {one_line(value)}")
            for name, value in (("stored", change.stored), ("now   ", change.now))
        ]
    lines += ["", heading("other turns", "" if others else "nothing in them is malformed")]
    for other in others:
        reasons = ", ".join(failure.reason.value.replace("_", " ") for failure in other.failures)
        lines.append(line(f"{one_line(view.spelled(other.id), 60)}: {reasons}"))
    return lines


def _failure(failure: FailureView) -> list[Text | str]:
    reason, detail = failure.reason.value.replace("_", " "), one_line(failure.detail, 200)
    position = f"line {failure.line}, column {failure.column}, character {failure.offset}"
    return [
        line((reason, DOUBT), f"  {detail}", (f"  {'' if failure.line is None else position}", FAINT)),
        line((failure.rule, FAINT)),
        *(_excerpt(failure.excerpt) if failure.excerpt else ()),
        "",
    ]


def _excerpt(excerpt: Excerpt) -> list[Text]:
    left_out = f" … {excerpt.left_out:,} characters … " if excerpt.left_out else ""
    marked = f"»{excerpt.piece}{left_out}{excerpt.rest}«"
    parts = ((excerpt.before, FAINT), (marked, "bold underline"), (excerpt.after, FAINT))
    whole = Text(end="")
    for text, style in parts:
        whole.append("\n".join(safe_lines(text)), style)
    return [line("  ") + row for row in whole.split("\n", allow_blank=True)]
