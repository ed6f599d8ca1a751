"""Why this reward? The chain votes, rewards, baselines, advantage of one turn, each number with its source.

Whatever is computed is computed by the package's own rewards and advantages, over the whole step; the
formulas only explain what these gave.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import UNSET

from debate.types import TurnId
from debate_rl.config.recipes import ConfigError, read_run_config
from debate_rl.formatting import counted, figure
from debate_rl.inspector.blocks import (
    Block,
    Line,
    Section,
    Span,
    Table,
    Words,
    cut,
    grade,
    spans,
    to_debate,
    to_turn,
)
from debate_rl.inspector.views.debate import grade_name, handles_of
from debate_rl.inspector.views.why_parts import (
    NO_LABEL,
    Facts,
    Votes,
    format_why,
    judge_why,
    peer_why,
    streams_why,
    total_why,
    truth_why,
)
from debate_rl.inspector.views.why_sentence import sentence
from debate_rl.inspector.views.why_step import Number, Numbers, Step, recompute
from debate_rl.replay.scheme import scheme_of
from learner.advantages import AdvantageConfig, Author
from learner.advantages.turns import is_masked, owes
from rewards.types import Truth
from transcripts import Record, RunStore, TranscriptError
from transcripts.record import named

if TYPE_CHECKING:
    from debate_rl.config import Config

LONGEST = 160
"""Characters of a formula in full; of longer ones the value alone is shown."""
MOST_ROWS = 100


@dataclass(frozen=True, slots=True)
class Why:
    """Why a turn was rewarded as it was.

    ``sentence`` says it in one: what the tokens get, as a sum. ``peer`` and ``truth`` are None for a final
    ballot, which has no solution; ``streams`` is empty where nothing was recomputed, and ``notes`` say why.
    ``matches``: every number that can be compared is as stored; None where there is none.
    """

    id: str
    turn: TurnId
    persona: str
    problem: str
    ballot: bool
    peer: Facts | None
    truth: Facts | None
    judge: Facts
    format: Facts
    streams: tuple[Facts, ...]
    total: dict[str, Number]
    sentence: str
    notes: tuple[str, ...] = ()
    matches: bool | None = None
    handles: tuple[str, ...] = ()

    def handle(self, turn: TurnId) -> str:
        """Return the handle of a turn's agent; its address where the agent never spoke."""
        known = self.handles[turn.agent] if turn.agent < len(self.handles) else ""
        return known or named(turn)

    def numbers(self) -> list[Number]:
        """Return every number of the explanation."""
        return list(_numbers_in([self.peer, self.truth, self.judge, self.format, self.streams, self.total]))


def _numbers_in(part: object) -> Iterator[Number]:
    if isinstance(part, Number):
        yield part
    elif isinstance(part, Mapping | Sequence) and not isinstance(part, str):
        for item in part.values() if isinstance(part, Mapping) else part:
            yield from _numbers_in(item)


def config_of(run: Path) -> tuple[Config | None, str]:
    """Return a run's configuration; None, and why in one line, where there is none that can be read.

    Code that the run names is not loaded: ``read_run_config``.
    """
    try:
        return read_run_config(run), ""
    except ConfigError as error:
        return None, f"no configuration, so only what is stored is shown: {error}"


def evaluation_of(run: Path) -> Author:
    """Return whose an evaluation is in a run, ``advantages.evaluation``; its default where none is known."""
    config, _ = config_of(run)
    return (AdvantageConfig() if config is None else config.advantages).evaluation


def why(store: RunStore, config: Config | None, id: str, turn: TurnId, *, note: str = "") -> Why:
    """Return the explanation of a turn; without a configuration it has stored numbers alone.

    ``note``: why there is no configuration, if there is none. TranscriptError where there is no such debate
    or turn, or where its turns do not fit its protocol.
    """
    record = store.debate(id)
    id = ".".join(str(int(part)) for part in id.split("."))  # as the run writes it
    known = [turn.id for turn in record.debate.turns]
    if turn not in known:
        raise TranscriptError(
            f"debate {id}: no turn {named(turn)}; there are {', '.join(map(named, known)) or 'none'}"
        )
    step, problem = _step(store, record, config, id, turn)
    none = note or "no configuration: only what is stored is shown"
    notes = [none] if note or config is None else []
    notes += [*([problem] if problem else []), *_notes(store, record, config, step)]
    if config is not None and is_masked(record.debate.turn(turn), config.rewards):
        notes.append(
            'rewards.overlong = "mask": the reply ended at its token limit, so nothing is learnt from it'
        )
    return _explained(id, Numbers(record, turn, step), notes)


def _step(
    store: RunStore, record: Record, config: Config | None, id: str, turn: TurnId
) -> tuple[Step | None, str]:
    """Return the step recomputed, or why it cannot be."""
    if not record.debate.protocol.learns(turn.agent):
        seat = record.debate.protocol.seat(turn.agent)
        return None, f"the seat is {seat}: nothing is learnt from this turn, so only what is stored is shown"
    if config is None:
        return None, ""
    try:
        return recompute(store, scheme_of(config), id, turn), ""
    except Exception as error:  # the user's own rule may raise anything, and so may other code
        reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        step = id.partition(".")[0]
        return None, f"step {step} cannot be recomputed, so only what is stored is shown: {reason}"


def _notes(store: RunStore, record: Record, config: Config | None, step: Step | None) -> Iterator[str]:
    if config is not None and config.train.control != "none":
        drawn = config.train.draws_rewards
        what = "a coin stands for truth" if drawn else "votes are not what the judges' lines say"
        yield f"train.control = {config.train.control}: {what}"
    if record.rewards is None:
        yield "no rewards are stored with this debate"
    damaged = [line for line in store.damage if line.startswith(f"step {record.step},")]
    if damaged and step is not None:
        yield f"{counted(len(damaged), 'damaged line')} of this step; baseline groups lack their debates"


def _explained(id: str, numbers: Numbers, notes: Sequence[str]) -> Why:
    record, turn, votes = numbers.record, numbers.turn, Votes(numbers)
    of = record.debate.turn(turn)
    concerned = {"persuasion": of.parsed.criticisms is not UNSET, "format": owes(of), "judge": True}
    peer = None if of.ballot else peer_why(numbers, votes)
    truth = None if of.ballot else truth_why(numbers)
    judge, form, total = judge_why(numbers, votes), format_why(numbers, votes), total_why(numbers)
    streams = tuple(one for one in streams_why(numbers) if concerned.get(one["name"], not of.ballot))
    found = Why(
        id=id,
        turn=turn,
        persona=record.debate.personas[turn.agent].name,
        problem=record.debate.problem.id,
        ballot=of.ballot,
        peer=peer,
        truth=truth,
        judge=judge,
        format=form,
        streams=streams,
        total=total,
        sentence=sentence(peer, truth, judge, form, streams, total),
        notes=tuple(notes),
        handles=handles_of(record),
    )
    badges = [number.matches for number in found.numbers() if number.matches is not None]
    return replace(found, matches=all(badges) if badges else None)


def why_blocks(why: Why) -> list[Block]:
    """Return the sentence, then each part of the chain with its numbers."""
    badges = [number.matches for number in why.numbers() if number.matches is not None]
    wrong = Span(f"{badges.count(False)} of {len(badges)} numbers are not as stored", "wrong")
    verdict = wrong if False in badges else Span("all numbers are as stored", "right")
    nothing = Span("nothing was recomputed that could be compared with what is stored", "faint")
    blocks: list[Block] = [Line(why.sentence, "sentence", name="sentence")]
    blocks += [Line(f"note: {note}", "notice", name="note") for note in why.notes]
    blocks += [Line(verdict if badges else nothing, name="matches")]
    if why.peer is not None:
        rule = f", rewards.peer = {why.peer['rule']}" if why.peer["rule"] else ""
        title = f"peer: {why.peer['won']} won, {why.peer['lost']} lost, {why.peer['ties']} ties{rule}"
        blocks.append(_part(why, "peer", title, why.peer, reward="peer reward"))
    if why.truth is not None:
        blocks.append(_part(why, "truth", _truth_title(why.truth), why.truth, reward="truth reward"))
    share = why.judge["truth_weight"]
    title = f"judge: {counted(len(why.judge['votes']), 'vote')} given"
    title += "" if share is None else f", weight of truth {figure(share)}"
    blocks.append(_part(why, "judge", title, why.judge, reward="judge reward"))
    due = f"due on {len(why.format['comparable'])} solutions" if why.format["due"] else "not due"
    title = f"format: comparisons {due}, valid votes: {why.format['counted']}"
    blocks.append(_part(why, "format", title, why.format, reward="format penalty"))
    for one in why.streams:
        how = f"baseline {one['baseline']}, scale {one['scale']}, group by {one['key']}"
        names = {"reward": "value", "centre": "baseline", "spread": "spread", "advantage": f"A_{one['name']}"}
        title = f"advantage of {one['name']}: {how}"
        blocks.append(_part(why, f"stream-{one['name']}", title, one, **names))
    of_generator = ("peer", "truth", "shaping", "likelihood")
    names = {name: f"  part of {name}" if name in of_generator else name for name in why.total}
    return [*blocks, _part(why, "total", "what the tokens get", why.total, **names)]


def _truth_title(truth: Facts) -> Words:
    by = f" by {truth['by']}" if truth["by"] else "" if truth["gold"] is None else " against gold"
    by = f": {NO_LABEL}" if truth["by"] == NO_LABEL else by
    return f"truth: {grade_name(truth['grade'])}{by}"


def _part(why: Why, name: str, title: Words, facts: Facts, **numbers: str) -> Section:
    """Return one part: its facts, its rows, and its numbers under the names that are given for them."""
    blocks: list[Block] = []
    if name == "truth":
        gold = "" if facts["gold"] is None else " against gold"
        if facts["by"] and facts["audit"] is not None:
            blocks.append(Line((grade(grade_name(facts["audit"])), f"{gold}, an audit that rewards nothing")))
        said = {"answer": facts["answer"], "gold": facts["gold"]}
        blocks += [Line((f"{key}: ", Span(text, "answer"))) for key, text in said.items() if text is not None]
        blocks += [Line(f"{'followed' if met else 'not followed'}: {one}") for one, met in facts["parts"]]
        blocks += [] if facts["score"] is None else [Line(f"score: {figure(facts['score'])}")]
        blocks += [Line(facts["verdict"], name="verdict")] if facts["verdict"] else []
    for reason, detail in facts.get("failures", ())[:MOST_ROWS]:
        blocks.append(Line((f"malformed: {reason.replace('_', ' ')} ", Span(detail, "code"))))
    for key in ("votes", "opponents", "members"):
        if facts.get(key):
            blocks += rows_table(why, key, facts[key])
    for key, shown in numbers.items():
        if facts[key] is not None:
            blocks.append(Line((f"{shown}: ", *number_words(facts[key]))))
    return Section(title, blocks, name=f"why-{name}")


HEADS = {"left_right": "sides are", "why_not": "why not", "line": "the judge's words", "ties": ">ties"}


def rows_table(why: Why, name: str, rows: Sequence[Facts]) -> list[Block]:
    """Return facts as the rows of a table, without columns in which there is nothing."""
    keys = [key for key in rows[0] if any(row[key] not in (None, "", False) for row in rows)]
    keys.sort(key="line".__eq__)
    numeric = {key for key in keys if all(isinstance(row[key], int | float | None) for row in rows)}
    numeric -= {key for key in keys if isinstance(rows[0][key], bool)}
    heads = [">" * (key in numeric) + HEADS.get(key, key.replace("_", " ")) for key in keys]
    cells = [[_cell(why, row, key) for key in keys] for row in rows]
    shown, more = cut(cells, MOST_ROWS)
    return [Table(heads, shown, name=name, row_name=f"{name}-row", kind="plain"), *more]


def _cell(why: Why, row: Facts, key: str) -> Words:
    value = row[key]
    if isinstance(value, TurnId):
        if "id" in row:  # of a group, perhaps of another debate
            return Span(f"turn {named(value)}", link=to_debate(row["id"], "why", value))
        return Span(why.handle(value), link=to_turn(why.id, value))
    if isinstance(value, Number):
        return number_words(value)
    if key == "left_right":
        grades: tuple[Truth, Truth] = value
        return (grade(grade_name(grades[0])), ", ", grade(grade_name(grades[1])))
    if key == "outcome":
        return {"left": ">", "right": "<", "tie": "="}.get(str(value), "?")
    if isinstance(value, bool):
        return "yes" if value else "" if key == "this" else "no"
    if isinstance(value, int | float) or value is None:
        return figure(value) if value is not None else "–"
    return Span(value, "code") if key == "line" else value.replace("_", " ") if key == "why_not" else value


def number_words(number: Number) -> tuple[Span, ...]:
    """Return a number with its arithmetic, a mark where it is not what is stored, and its source."""
    text = number.text if len(number.formula) <= LONGEST else figure(number.value)
    words: list[str | Span] = [Span(text, "code")]
    if number.matches is False:
        words += [" ", Span(f"[not as stored]; stored: {figure(number.stored)}", "wrong")]
    if number.source:
        words += [" ", Span(f"({number.source})", "faint")]
    return spans(words)
