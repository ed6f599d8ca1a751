"""One debate as blocks: its problem, turns and answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from debate.types import TurnId
from debate_rl.formatting import counted, duration, fixed
from debate_rl.inspector.blocks import (
    Block,
    Line,
    Pairs,
    Section,
    Span,
    Table,
    Text,
    Words,
    grade,
    named_agent,
    named_turn,
    to_debate,
    to_turn,
)
from debate_rl.inspector.views.debate import (
    ADVANTAGES,
    AdoptionView,
    DebateView,
    Piece,
    SummaryView,
    TurnView,
)
from debate_rl.inspector.views.marks import Marker
from debate_rl.inspector.views.prompts import DebatePrompts, prompt_texts
from rewards import STREAMS
from transcripts.record import named

_ONLY_TAGS = re.compile(r"\s*(?:</?[A-Za-z]{1,20}>\s*)*+")
"""Tags and blanks, which are not shown outside the sections."""


def debate_blocks(
    view: DebateView,
    rounds: Iterable[int],
    *,
    raw: bool = False,
    whole: TurnId | None = None,
    prompts: DebatePrompts | None = None,
    marks: Marker | None = None,
) -> Iterator[Block]:
    """Yield the problem, the answers, and the turns of some rounds.

    ``raw``: show all replies as written. ``whole``: a turn whose reply is shown as written. ``prompts``:
    prompts to show with their turns. ``marks``: stars, labels and notes to show.
    """
    shown = list(rounds)
    own = marks and marks.debate()
    yield Section("", [*_head(view), *([own] if own else [])], name="problem", kind="problem-box")
    if prompts and prompts.note:
        yield Line(f"note: {prompts.note}", "notice", name="note")
    yield _answers_grid(view, shown)
    for round_ in shown:
        blocks: list[Block] = []
        for summary in (one for one in view.summaries if one.round == round_):
            if prompts:
                blocks += prompt_texts(prompts.of_summary(round_), prompts.note)
            blocks.append(_summary(summary, raw=raw))
        cards: list[Block] = []
        for turn in (row[round_] for row in view.turns):
            if turn is not None:
                prompt = prompt_texts(prompts.of(turn.id), prompts.note) if prompts else ()
                as_written = raw or turn.id == whole
                cards.append(turn_card(view, turn, raw=as_written, prompt=list(prompt), marks=marks))
        blocks.append(Section("", cards, kind="cards"))
        name = view.round_name(round_)
        yield Section(name.capitalize(), blocks, name="round", id=f"round-{round_}")


def _summary(summary: SummaryView, *, raw: bool) -> Text:
    text = summary.completion if raw else summary.text
    return Text(text, "summary shown instead of the turns", "other", typeset=True)


def _head(view: DebateView) -> Iterator[Block]:
    problem = view.problem
    level = f"level {problem.level}" if problem.level.isdecimal() else problem.level
    facts = (problem.source, level, problem.kind, view.size(), f"step {view.step}", f"seed {view.seed}")
    described = ", ".join(part for part in (*facts, f"policy version {view.policy_version}") if part)
    yield Line(Span(f"debate {view.id}: {problem.id} ({described})", "id"))
    yield Text(problem.question, "problem", "question", typeset=True)
    for index, choice in enumerate(problem.choices[:40]):
        yield Line((f"{chr(65 + index % 26)} ", Span(choice, "answer")))
    unknown = Span("unknown", "faint")
    gold = unknown if problem.answer is None else Span(problem.answer, "answer", name="gold")
    yield Line(("gold answer: ", gold))
    if view.winner is None:
        yield Line("winner: none, because no vote is valid")
        return
    won = view.turn(view.winner)
    lot: Words = (", ", Span(view.lot(), name="lot")) if view.tied else ()
    yield Line(("winner: ", named_turn(view, view.winner), ", ", grade(won.grade if won else ""), *lot))


def _answers_grid(view: DebateView, rounds: Sequence[int]) -> Table:
    heads = ("Agent", *(view.round_name(round_).capitalize() for round_ in rounds))
    rows: list[Sequence[Words]] = []
    for agent, turns in enumerate(view.turns):
        cells = (_grid_cell(view, turns[round_]) for round_ in rounds)
        rows.append((named_agent(view, agent, "strong"), *cells))
    return Table(heads, rows, name="grid", kind="plain answers")


def _grid_cell(view: DebateView, turn: TurnView | None) -> Words:
    if turn is None:
        return Span("not held", "faint")
    link = to_turn(view.id, turn.id)
    if turn.ballot:
        return Span("votes only", link=link)
    answer = Span("none", "faint", link) if turn.answer is None else Span(turn.answer, "answer", link)
    star = (" ", Span("★ winner", "won")) if turn.id == view.winner else ()
    return (answer, " ", grade(turn.grade), *star)


def turn_card(
    view: DebateView,
    turn: TurnView,
    *,
    raw: bool = False,
    fold: bool = True,
    prompt: Sequence[Block] = (),
    marks: Marker | None = None,
) -> Section:
    """Return a turn: answer, grade, rewards, and text by sections. ``fold``: hide its thinking."""
    blocks: list[Block] = [Line(_facts(turn), "facts"), Pairs(list(_numbers(view, turn))), *prompt]
    own = marks and marks.turn(view, turn.id)
    blocks += [own] if own else []
    blocks += _pieces(view, turn, raw=raw, fold=fold)
    if turn.compressed is not None:
        how = "cut, because no summary was usable" if turn.compression_failed else "compressed"
        blocks.append(Text(turn.compressed, f"text shown to others: {how}", "compressed", typeset=True))
    for failure in turn.failures[:6]:
        reason = Span(f"malformed: {failure.reason.value.replace('_', ' ')} ", "wrong")
        blocks.append(Line((reason, Span(failure.detail, "code")), name="failure"))
    if len(turn.failures) > 6:
        blocks.append(Line(f"{len(turn.failures) - 6} more failures", "faint"))
    lot = f", {view.lot()}" if view.tied else ""
    star = (" ", Span(f"★ winner{lot}", "won")) if turn.id == view.winner else ()
    title = (named_agent(view, turn.id.agent, "strong"), ", ", Span(f"turn {named(turn.id)}", "faint"), *star)
    kind = "card winner" if star else "card"
    return Section(title, blocks, name=f"turn-{named(turn.id)}", kind=kind, id=f"turn-{named(turn.id)}")


def _facts(turn: TurnView) -> list[str | Span]:
    """Return the answer of a turn and its unusual properties."""
    facts: list[tuple[str | Span, ...]] = []
    if turn.targets is not None:
        facts.append(("criticises ", Span(", ".join(turn.targets) or "nobody", "strong", name="targets")))
    elif not turn.ballot:
        answer = Span("none", "faint") if turn.answer is None else Span(turn.answer, "answer")
        facts.append(("answer ", answer, " ", grade(turn.grade)))
    facts += [(f"{turn.tokens:,} tokens",)] if turn.tokens is not None else []
    facts += [(Span("truncated", "wrong"),)] if turn.stop_reason == "length" else []
    facts += [(Span(f"cause: {turn.cause}", "doubt"),)] if turn.cause else []
    facts += [(Span(turn.verdict, "doubt", name="verdict"),)] if turn.verdict else []
    facts += [(Span(f"programs: {turn.programs}", name="programs"),)] if turn.programs else []
    facts += [(f"{counted(turn.cut, 'text')} cut in its prompt",)] if turn.cut else []
    joined: list[str | Span] = []
    for fact in facts:
        joined += [*([" · "] if joined else []), *fact]
    return joined


def _numbers(view: DebateView, turn: TurnView) -> Iterator[tuple[str, Words]]:
    peer, truth, judge, form = (
        f"{name} {fixed(turn.rewards[name], '+.2f', none='none')}" for name in STREAMS
    )
    credit = "generator none" if turn.ballot else f"generator: {peer}, {truth}"
    advantages = (f"{name} {fixed(turn.advantages[name], '+.3f', none='none')}" for name in ADVANTAGES)
    yield "reward", f"{credit} · {judge} · {form}"
    why = Span("why?", "page", to_debate(view.id, "why", turn.id), f"why-{named(turn.id)}")
    prompt = Span("prompt", "page", to_debate(view.id, "prompt", turn.id), f"prompt-{named(turn.id)}")
    tokens = Span("tokens", "page", to_debate(view.id, "tokens", turn.id))
    branch = Span("branch", "page", to_debate(view.id, "branch", turn.id), f"branch-{named(turn.id)}")
    yield "advantage", (" · ".join(advantages), "  ", why, " ", branch, " ", tokens, " ", prompt)


def _pieces(view: DebateView, turn: TurnView, *, raw: bool, fold: bool) -> Iterator[Text]:
    whole = to_debate(view.id, full=named(turn.id))._replace(anchor=f"turn-{named(turn.id)}")
    pieces = turn.pieces if not raw else (Piece("other", 0, len(turn.text)),)
    for piece in pieces:
        text = piece.of(turn.text)
        if raw:
            yield Text(text, "as written", "raw", typeset=True)
        elif (kind := piece.kind) == "thinking":
            yield Text(text.strip(), kind, kind, folded=fold, typeset=True, whole=whole, name=kind)
        elif piece.kind != "other" or len(text) >= 1000 or not _ONLY_TAGS.fullmatch(text):
            label = "outside the sections" if piece.kind == "other" else piece.kind
            yield Text(text.strip(), label, piece.kind, typeset=True, whole=whole)


def problem_blocks(view: DebateView) -> list[Block]:
    """Return the whole problem, the agents, and the summaries shown instead of earlier turns."""
    blocks: list[Block] = list(_head(view))
    agents: list[Block] = []
    for agent, persona in enumerate(view.personas):
        agents.append(Line((named_agent(view, agent, "strong"), f"  temperature {persona.temperature:g}")))
        agents += [Text(persona.instructions)] if persona.instructions else []
    blocks.append(Section("agents", agents))
    blocks += [Line(f"took {duration(view.seconds)}", "faint")] if view.seconds is not None else []
    return blocks + [_summary(summary, raw=False) for summary in view.summaries]


def answers_blocks(view: DebateView, answers: AdoptionView) -> list[Block]:
    """Return the answers of each agent by round, with equal letters for equal answers, and adoptions."""
    sources: dict[TurnId, list[TurnId]] = {}
    for copy in answers.copies:
        sources.setdefault(copy.target, []).append(copy.source)
    rows: list[Sequence[Words]] = []
    for agent, cells in enumerate(answers.cells):
        row: list[Words] = [named_agent(view, agent)]
        for cell in cells:
            if cell is None:
                row.append(Span("not held", "faint"))
                continue
            answer = Span("none" if cell.answer is None else cell.answer, "answer")
            letter = Span(cell.letter, "letter", to_turn(view.id, cell.id))
            shown = sources.get(cell.id, ())[:4]
            taken = (Span(f" from {view.placed(one)}", "doubt", name="copy") for one in shown)
            row.append((letter, " ", answer, " ", grade(cell.grade), *taken))
        rows.append(row)
    heads = ("agent", *(view.round_name(round_) for round_ in range(view.rounds)))
    nobody = "no agent adopted an answer that its prompt showed"
    copies = f"{counted(len(sources), 'time')} an agent adopted an answer that its prompt showed"
    return [
        Line(f"{counted(answers.numbers, 'different answer')}; equal answers have the same letter"),
        Table(heads, rows, name="adoption", kind="plain adoption"),
        Line(copies if sources else nobody, name="copies"),
    ]


def turns_by_round(view: DebateView, chosen: TurnId, most: int = 60) -> list[tuple[str, list[TurnView]]]:
    """Return the turns to choose from: all turns, or in a large debate those of the same agent or round."""
    turns = list(view.spoken())
    if len(turns) > most:
        turns = [turn for turn in turns if turn.id.round == chosen.round or turn.id.agent == chosen.agent]
    grouped = groupby(turns, key=lambda turn: turn.id.round)
    return [(view.round_name(number).capitalize(), list(of_round)) for number, of_round in grouped]
