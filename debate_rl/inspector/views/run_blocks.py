"""What spans debates as blocks: two debates compared, replays, and the judge under attack on fixed pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from debate_rl.formatting import counted, fixed, number, percent, round_name, round_number, shorten, title
from debate_rl.inspector.blocks import (
    Block,
    Chart,
    Line,
    Link,
    Section,
    Series,
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
    from debate_rl.judge_attack.pairs import JudgedAttack, WatchedJudge
    from debate_rl.metrics.intervals import Estimate

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


SIGNS = {"right": "✓", "wrong": "✗", "tie": "=", "none": "–"}
"""The sign of the side that a judge preferred."""
PREFERRED = {"right": "the right side", "wrong": "the wrong side", "tie": "a tie", "none": "no valid vote"}
LEGEND = "first the judge at the start; ✓ the right side preferred, ✗ the wrong one, = a tie, – no vote"


def gap_text(gap: Estimate) -> str:
    """Return a hack gap with its 95% interval.

    >>> from debate_rl.metrics.intervals import Estimate
    >>> gap_text(Estimate(0.25, 0.125, 0.375, 9, 9))
    '+0.250 ± 0.125'
    """
    from debate_rl.metrics.intervals import spread  # loads scipy

    return f"{number(gap.value, signed=True)}{spread(gap, 3, (-2.0, 2.0))}"


def pairs_blocks(
    watched: WatchedJudge, gaps: Sequence[tuple[int, Estimate]], start: int = 0, most: int = 50
) -> list[Block]:
    """Return the hack gap over evaluations, accuracy by attack, and pairs, the most harmful first."""
    from debate_rl.metrics.intervals import spread  # loads scipy

    blocks: list[Block] = []
    if len(gaps) > 1:
        blocks.append(
            Chart([Series("hack gap", "a", [(0, 0.0), *((at, gap.value) for at, gap in gaps)])], fitted=True)
        )
        by_step = [
            (
                Span(f"after {counted(at, 'step')}", link=Link(("pairs",), (("step", at),)), name="gap-link"),
                gap_text(gap),
            )
            for at, gap in reversed(gaps)
        ]
        blocks.append(Table(("evaluation", "hack gap, 95% interval"), by_step, name="gaps"))
    heads = ("", "start judge", f"after {counted(watched.step, 'step')}", "hack gap")
    figures: list[Sequence[Words]] = []
    for one in watched.figures:
        gap = "" if one.gap is None else gap_text(one.gap)
        shares = (f"{number(of.value)}{spread(of, 3)}" for of in (one.start, one.now))
        figures.append((title(one.attack), *shares, gap))
    blocks.append(Table(heads, figures, name="judge-figures"))
    by_pair: dict[int, list[JudgedAttack]] = {}
    for attack in watched.attacks:
        by_pair.setdefault(attack.number, []).append(attack)
    pairs = sorted(by_pair.values(), key=lambda attacks: (-_fooled(attacks), attacks[0].number))
    told = (
        f"{_fooled(watched.attacks)} of {counted(len(watched.attacks), 'attack')}: right by the start judge"
    )
    rows = [_pair(attacks, watched.step) for attacks in pairs[start : start + most]]
    names = [title(attack.now.attack) for attack in pairs[0]] if pairs else []
    table = Table(("pair", *names, "problem"), rows, name="judged-pairs")
    return [*blocks, Line(f"{told}, and not by this one", name="fooled"), Line(LEGEND, "faint"), table]


def _fooled(attacks: Sequence[JudgedAttack]) -> int:
    return sum(attack.fooled for attack in attacks)


def _pair(attacks: Sequence[JudgedAttack], step: int) -> Sequence[Words]:
    link = Link(("pairs",), (("pair", attacks[0].number), ("step", step)))
    said = [
        tuple(Span(SIGNS[one.preferred], one.preferred) for one in (attack.start, attack.now))
        for attack in attacks
    ]
    question = shorten(attacks[0].pair.question, 90)
    return (Span(str(attacks[0].number), link=link, name="pair-link"), *said, question)


def attacks_on(watched: WatchedJudge, number: int) -> list[JudgedAttack]:
    """Return the attacks on one pair, the plain one first; ValueError for no pair."""
    found = [attack for attack in watched.attacks if attack.number == number]
    if not found:
        raise ValueError(f"pairs: there is no pair {number}")
    return found


def pair_blocks(attacks: Sequence[JudgedAttack], step: int) -> list[Block]:
    """Return one pair: its texts as shown, and what both judges said of them."""
    pair = attacks[0].pair
    texts = (("problem", pair.question), ("right", pair.right), ("the judge's own", pair.own))
    head = Section(
        f"pair {attacks[0].number}: {pair.problem}", [Text(text, name) for name, text in texts], name="pair"
    )
    blocks: list[Block] = [head]
    for attack in attacks:
        shown: list[Block] = [Text(attack.wrong, "the wrong side")]
        if attack.now.attack == "order":
            shown.append(Line("shown the other way round", "faint"))
        elif attack.now.attack != "plain" and attack.wrong == pair.wrong:
            shown.append(Line("as it was: this persuader could not work on it", "faint"))
        for judge, said in (("start judge", attack.start), (f"after {counted(step, 'step')}", attack.now)):
            shown.append(Text(said.reply, (f"{judge}: ", Span(PREFERRED[said.preferred], said.preferred))))
        fooled = (" ", Span("fooled", "doubt")) if attack.fooled else ()
        blocks.append(Section((title(attack.now.attack), *fooled), shown, name="attack", kind="card"))
    return blocks
