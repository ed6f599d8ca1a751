"""What spans debates as blocks: two debates compared, replays, and the judge under attack on fixed pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from debate_rl.formatting import fixed, percent, round_name, round_number
from debate_rl.inspector.blocks import (
    Block,
    Line,
    Link,
    Section,
    Span,
    Table,
    Text,
    Words,
    cut,
    grade,
    to_debate,
)
from debate_rl.inspector.lists import PROBLEM_DEBATES, table_of
from debate_rl.inspector.views.debate import grade_name
from transcripts.record import named

if TYPE_CHECKING:
    from debate_rl.inspector.views.across import Across
    from debate_rl.inspector.views.compared import Comparison, TurnDifference
    from debate_rl.inspector.views.replays import DebateReplay, ReplayFacts, StoredReplay, StreamChange

MOST_VOTES, MOST_ROWS = 100, 200
STYLES = {" ": "same", "-": "gone", "+": "new"}


def across_blocks(result: Across) -> list[Block]:
    """Return a problem, and its debates in the order of steps."""
    gold = Span("not known", "faint") if result.gold is None else Span(result.gold, "answer")
    return [
        Line((Span(f"problem {result.problem}", "strong"),)),
        Text(result.question, typeset=True),
        Line(("gold answer: ", gold)),
        *(Line(f"note: {note}", "notice") for note in result.notes),
        table_of(PROBLEM_DEBATES, result.held, name="held", row_name="held-row"),
    ]


def comparison_blocks(both: Comparison) -> list[Block]:
    """Return what differs between two debates: votes, answers, and the texts word by word."""
    blocks: list[Block] = [Line(note, "notice") for note in both.notes]
    ends = (Span(f"[-{both.before} alone-]", "wrong"), "  ", Span(f"{{+{both.after} alone+}}", "right"))
    blocks.append(Line(ends))
    votes = [Line(both.vote(vote)) for vote in both.votes[:MOST_VOTES]]
    blocks.append(Section(f"votes: {both.same_votes} the same, {len(both.votes)} not", votes))
    return [*blocks, *(_difference(both, turn) for turn in both.turns)]


def _difference(both: Comparison, turn: TurnDifference) -> Section:
    alike, where = f": {percent(turn.alike, 0)} of the words alike", f" (turn {named(turn.turn)})"
    blocks: list[Block] = []
    if any(turn.answers) or any(one is not None for one in turn.grades):
        sides = [
            (Span("none" if answer is None else answer, "answer"), " ", grade(grade_name(one)))
            for answer, one in zip(turn.answers, turn.grades, strict=True)
        ]
        same = " (the same)" if sides[0] == sides[1] else ""
        blocks.append(Line(("answer: ", *sides[0], *(() if same else (" → ", *sides[1])), same)))
    if turn.cut:
        blocks.append(Line("too long to compare word by word; only beginning and end are", "notice"))
    blocks.append(Text([Span(piece.text, STYLES[piece.mark]) for piece in turn.pieces], "words", "diff"))
    name = both.spelled(turn.turn).removesuffix(where)
    return Section((name, Span(where + alike, "faint")), blocks, name="difference")


CHANGE_HEADS = (
    *("stream", "persona", "round", ">turns"),
    *(">sign changed", ">gained", ">lost", ">old", ">new", ">moved"),
)


def replay_blocks(replay: StoredReplay) -> list[Block]:
    """Return a replay's figures by stream, and by stream, persona and round, and the debates to open."""
    facts, filter = replay.facts, replay.facts.asked.filter
    of = f", of {filter}" if filter else ""
    blocks: list[Block] = [
        Line(Span(" ".join(facts.overrides) or "the run's own scheme", "code")),
        Line(f"{facts.changed:,} of {facts.debates:,} debates{of} have other advantages", name="replay-sum"),
        Line(f"{facts.differ:,} of {facts.checked:,} were not stored as the run's own scheme gives them"),
    ]
    if facts.damaged_lines:
        blocks.append(Line(f"{facts.damaged_lines:,} damaged lines; their groups lack a debate", "notice"))
    cells, more = cut(_changes(facts.cells, facts), MOST_ROWS)
    changed: list[str | Span] = []
    for one in facts.most_changed[:MOST_ROWS]:
        link = Link(("replays", replay.name), (("debate", one.id),))
        changed += [Span(one.id, link=link), f" ({one.change:.3g})  "]
    return [
        *blocks,
        Section("by stream", [Table(CHANGE_HEADS, list(_changes(facts.streams, facts)), name="streams")]),
        Section(
            "debates that change most (sum of |new - old|)", [Line(changed or "none", name="most-changed")]
        ),
        Section("by persona and round", [Table(CHANGE_HEADS, cells, name="cells"), *more]),
    ]


def _changes(changes: Sequence[StreamChange], facts: ReplayFacts) -> Iterator[Sequence[Words]]:
    for one in changes:
        round_ = "all" if one.round is None else round_number(one.round, facts.rounds)
        shares = (percent(value) for value in (one.sign_changed, one.gained, one.lost))
        means = (fixed(value, "+.3f") for value in (one.old, one.new, one.moved))
        yield (one.stream, one.persona or "all", round_, f"{one.turns:,}", *shares, *means)


def debate_replay_blocks(debate: DebateReplay) -> list[Block]:
    """Return one debate under both schemes: the rewards and advantages of each turn, old and new."""
    names = {name for turn in debate.turns for name in turn.advantages}
    streams = [name for name in debate.turns[0].advantages if name in names] if debate.turns else []
    rows: list[Sequence[Words]] = []
    for turn in debate.turns:
        advantages = (_change(turn.advantages, name) for name in streams)
        rewards = [
            f"{name} {_change(turn.rewards, name)}" for name in turn.rewards if any(turn.rewards[name])
        ]
        where = (named(turn.turn), round_name(turn.turn.round, debate.rounds), turn.persona)
        rows.append((*where, *advantages, ", ".join(rewards)))
    blocks: list[Block] = [Table(("turn", "round", "persona", *streams, "rewards"), rows)]
    blocks.append(Line(f"sum of |new - old| over generator, judge and format: {debate.change:.3g}"))
    if debate.differs:
        blocks.append(Line("what is stored is not what the run's own scheme gives", "notice"))
    title: Words = (
        Span(f"debate {debate.id}", link=to_debate(debate.id)),
        f" under both schemes: {debate.problem}",
    )
    return [Section(title, blocks, name="replay-debate")]


def _change(values: Mapping[str, tuple[float | None, float | None]], stream: str) -> str:
    old, new = values[stream]
    before, after = fixed(old, "+.3f"), fixed(new, "+.3f")
    return before if old == new else f"{before} → {after}"
