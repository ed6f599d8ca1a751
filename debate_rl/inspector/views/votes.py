"""Votes on the solutions of each round, with their order or cycles, and votes on fixed pairs under attack."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from debate.types import Span as TextSpan
from debate.types import TurnId, Vote
from debate_rl.formatting import counted, number, shorten, title
from debate_rl.inspector.blocks import (
    Block,
    Line,
    Link,
    Section,
    Span,
    Table,
    Text,
    VoteDrawing,
    Words,
    cut,
    grade,
    to_debate,
    to_turn,
)
from debate_rl.inspector.views.debate import DebateView
from debate_rl.inspector.views.marks import Marker
from rewards import ballot_box, drop_reasons
from rewards.graph import Edge, Results, condorcet_winner, cycles, majorities, results_by_opponent, win_matrix
from rewards.judge_rewards import by_truth
from rewards.votes import UNREAD
from transcripts import Record
from transcripts.record import check_record

if TYPE_CHECKING:
    from debate_rl.judge_attack.pairs import JudgedAttack, WatchedJudge
    from debate_rl.metrics.intervals import Estimate

MOST_VOTES, MOST_UNREAD, MOST_WRONG = 120, 40, 6
Verdict: TypeAlias = Literal["right", "wrong", "undecidable"]
_VERDICTS: dict[int | None, Verdict] = {1: "right", -1: "wrong", 0: "wrong", None: "undecidable"}


@dataclass(frozen=True, slots=True)
class Arrow:
    """One vote. For a tie, ``winner`` and ``loser`` are ``left`` and ``right``, in reading order.

    ``truth``: a tie on a pair with exactly one right side is wrong. ``dropped``: why the vote does not count,
    or "". ``in_cycle``: the vote counts and agrees with a majority of a cycle. ``line``: the judge's line.
    """

    judge: TurnId
    winner: TurnId
    loser: TurnId
    tie: bool
    left: TurnId
    right: TurnId
    truth: Verdict
    counts: bool
    dropped: str
    in_cycle: bool
    line: str
    span: TextSpan | None


@dataclass(frozen=True, slots=True)
class UnreadLine:
    """A comparison line that is not a vote, with the reason by the reward rules."""

    judge: TurnId
    reason: str
    line: str
    span: TextSpan | None


@dataclass(frozen=True, slots=True)
class RoundGraph:
    """The votes on the S solutions of one round.

    ``matrix[i][j]``: valid votes in which solution i beat j, (S, S). A tie adds 0.5 to both, and 1 to
    ``ties[i][j]`` and ``ties[j][i]``. ``edges``: (winner, loser) of each strict majority. ``cycles``:
    strongly connected components of three or more. ``condorcet``: the solution that beats all others.
    """

    round: int
    solutions: tuple[TurnId, ...]
    arrows: tuple[Arrow, ...]
    matrix: tuple[tuple[float, ...], ...]
    ties: tuple[tuple[int, ...], ...]
    edges: tuple[Edge, ...]
    cycles: tuple[tuple[TurnId, ...], ...]
    condorcet: TurnId | None
    unread: tuple[UnreadLine, ...]

    def wins(self, index: int, other: int) -> str:
        """Return the votes that one solution won against another, with "=" for each tie; "·" for itself."""
        if index == other:
            return "·"
        ties = self.ties[index][other]
        return f"{self.matrix[index][other] - ties / 2:g}" + ("=" * ties if ties <= 2 else f"+{ties}=")


def vote_graphs(record: Record) -> tuple[RoundGraph, ...]:
    """Return a graph for each round whose solutions received votes. Votes count as in filters.

    ValueError for a record that is not a debate (``check_record``).
    """
    check_record(record)
    debate = record.debate
    cast: defaultdict[int, list[tuple[Vote, str]]] = defaultdict(list)
    unread: defaultdict[int, list[UnreadLine]] = defaultdict(list)
    for vote, reason in zip(debate.votes, drop_reasons(ballot_box(debate)), strict=True):
        cast[max(vote.left.round, vote.right.round)].append((vote, reason))
    for turn in debate.turns:
        for failure in turn.parsed.failures:
            if failure.reason in UNREAD:
                line = failure.span.of(turn.completion.text) if failure.span else failure.detail
                found = UnreadLine(turn.id, UNREAD[failure.reason], line, failure.span)
                unread[turn.id.round - 1].append(found)
    return tuple(_graph(record, round_, cast[round_], unread[round_]) for round_ in sorted({*cast, *unread}))


def _graph(
    record: Record, round_: int, cast: Sequence[tuple[Vote, str]], unread: Sequence[UnreadLine]
) -> RoundGraph:
    compared = {side for vote, _ in cast for side in (vote.left, vote.right)}
    of_round = {turn.id for turn in record.debate.turns if turn.id.round == round_ and not turn.ballot}
    solutions = tuple(sorted(compared | of_round))
    valid = [vote for vote, reason in cast if not reason]
    edges = majorities(valid)
    circles = cycles(edges)
    cyclic = {edge for edge in edges for circle in circles if {*edge} <= {*circle}}
    table, none = results_by_opponent(valid), Results()
    return RoundGraph(
        round=round_,
        solutions=solutions,
        arrows=tuple(_arrow(record, vote, reason, cyclic) for vote, reason in cast),
        matrix=win_matrix(solutions, valid),
        ties=tuple(tuple(table.get(a, {}).get(b, none).tied for b in solutions) for a in solutions),
        edges=edges,
        cycles=circles,
        condorcet=condorcet_winner(edges, round_, record.debate.protocol.num_agents),
        unread=tuple(unread),
    )


def _arrow(record: Record, vote: Vote, reason: str, cyclic: Collection[Edge]) -> Arrow:
    winner, loser = (vote.right, vote.left) if vote.outcome == "right" else (vote.left, vote.right)
    tie = vote.outcome == "tie"
    return Arrow(
        judge=vote.judge,
        winner=winner,
        loser=loser,
        tie=tie,
        left=vote.left,
        right=vote.right,
        truth=_VERDICTS[by_truth(vote, record.correct)],
        counts=not reason,
        dropped=reason,
        in_cycle=not reason and not tie and (winner, loser) in cyclic,
        line=vote.span.of(record.debate.turn(vote.judge).completion.text) if vote.span else "",
        span=vote.span,
    )


_SIGNS = (
    *(("✓ right", "solid"), ("✗ wrong", "dashed"), ("? undecidable", "dotted")),
    *(("= tie", "dots at both ends"), ("↻ in a cycle", "wide band"), ("– does not count", "thin")),
)
LEGEND = tuple(word for sign, form in _SIGNS for word in (sign, Span(f" ({form})", "drawn"), "  "))
"""The meanings of signs of votes. On pages also those of lines."""


def votes_blocks(view: DebateView, graphs: Sequence[RoundGraph], marks: Marker | None = None) -> list[Block]:
    """Return the votes by round, whether they are right, and with ``marks`` the labels of their pairs."""
    if not graphs:
        return [Line("there are no votes and no malformed comparison lines", name="none")]
    return [Line(LEGEND, "legend", name="legend"), *(_round_of_votes(view, graph, marks) for graph in graphs)]


def _round_of_votes(view: DebateView, graph: RoundGraph, marks: Marker | None) -> Section:
    valid = [arrow for arrow in graph.arrows if arrow.counts]
    decided = [arrow for arrow in valid if arrow.truth != "undecidable"]
    right = sum(arrow.truth == "right" for arrow in decided)
    judged = f"; {right} of {len(decided)} decidable votes are right" if decided else ""
    blocks: list[Block] = [Line(f"{len(valid)} of {counted(len(graph.arrows), 'vote')} count{judged}")]
    for cycle in graph.cycles:
        in_cycle = ", ".join(view.handle(turn, graph.round) for turn in cycle)
        blocks.append(Line(Span(f"↻ the majorities form a cycle: {in_cycle}", "doubt")))
    if graph.condorcet is not None:
        best = view.handle(graph.condorcet, graph.round)
        blocks.append(Line((Span(best, "strong"), " beats every other solution")))
    names = [view.handle(turn, graph.round) for turn in graph.solutions]
    others = range(len(names))
    who = [_marked(view, turn, graph.round) for turn in graph.solutions]
    rows = [(cell, *(graph.wins(row, other) for other in others)) for row, cell in enumerate(who)]
    heads = ("beats", *(f">{name}" for name in names))
    won = Line("valid votes that the row won over the column; = is a tie", "faint")
    blocks += [VoteDrawing(graph, view), won, Table(heads, rows, name="matrix", kind="plain matrix")]
    blocks += _votes_table(view, [(graph, arrow) for arrow in graph.arrows], name="arrows", marks=marks)
    lines: list[Block] = []
    for line in graph.unread[:MOST_UNREAD]:
        why = f"– {view.handle(line.judge)}: no vote, {line.reason.replace('_', ' ')}: "
        lines.append(Line((why, Span(line.line, "code"))))
    if lines:
        heading = f"{counted(len(graph.unread), 'line')} without a vote"
        blocks.append(Section(heading, lines, name="unread", folded=True))
    return Section(f"votes on {view.round_name(graph.round)}", blocks, name="graph-round")


def _votes_table(
    view: DebateView,
    arrows: Sequence[tuple[RoundGraph, Arrow]],
    *,
    name: str = "",
    marks: Marker | None = None,
) -> list[Block]:
    """Return votes as a table. Without a name, links cannot lead to its rows."""
    rows: list[Sequence[Words]] = []
    ids = [f"vote-{graph.round}-{index}" for index, (graph, _) in enumerate(arrows)]
    labels = [marks and marks.pair(view, a.left, a.right, id) for id, (_, a) in zip(ids, arrows, strict=True)]
    for label, (graph, arrow) in zip(labels, arrows, strict=True):
        winner, loser = (view.handle(turn, graph.round) for turn in (arrow.winner, arrow.loser))
        judge = _marked(view, arrow.judge, link=to_turn(view.id, arrow.judge), name="vote-link")
        counts = f"no: {arrow.dropped.replace('_', ' ')}" if arrow.dropped else "yes"
        cycle = (", ", Span("↻ in a cycle", "doubt")) if arrow.in_cycle else ()
        vote = f"{winner} {'=' if arrow.tie else '>'} {loser}"
        truth = (grade(arrow.truth), *_effects(view, arrow))
        by_hand: tuple[Words, ...] = (label or "",) if any(labels) else ()
        rows.append((judge, vote, truth, *by_hand, (counts, *cycle), Span(arrow.line, "code")))
    if not rows:
        return []
    shown, more = cut(rows, MOST_VOTES)
    own = ["your label"] if any(labels) else []
    heads = ("judge", "vote", "truth", *own, "counts", "the judge's line")
    anchors = ids[:MOST_VOTES] if name else ()
    return [Table(heads, shown, name=name, row_name="vote", ids=anchors), *more]


def if_reversed(id: str, handles: Sequence[str], judge: TurnId, better: TurnId, worse: TurnId) -> Span:
    """Return the link to the effect of a vote for ``better``, on pages only."""
    vote = f"{handles[better.agent]}>{handles[worse.agent]}"
    return Span("if reversed", "page", to_debate(id, "branch", judge, vote=vote), "if-reversed")


def _effects(view: DebateView, arrow: Arrow) -> list[Span]:
    """Return, for pages of the training's debates, links to a vote's reward and to that of its reverse."""
    links: list[Span] = []
    if view.scored and ":" not in view.id:
        if arrow.counts and arrow.truth != "undecidable":
            words = "what it cost" if arrow.truth == "wrong" else "what it earned"
            links.append(Span(words, "page", to_debate(view.id, "why", arrow.judge), "effect"))
        if not arrow.tie:
            links.append(if_reversed(view.id, view.handles, arrow.judge, arrow.loser, arrow.winner))
    return [part for link in links for part in (Span(" · ", "drawn"), link)]


def _marked(view: DebateView, turn: TurnId, round_: int | None = None, **more: Any) -> Words:
    """Return the handle of a turn in the colour of its persona, on pages with the persona's name."""
    persona = view.personas[turn.agent].name
    return Span(view.handle(turn, round_), persona=persona, **more), Span(f" {persona}", "drawn")


def wrong_votes(view: DebateView, graphs: Sequence[RoundGraph]) -> list[Block]:
    """Return a line for each valid wrong vote: who preferred what, and links to it and to its cost."""
    lines: list[Block] = []
    for graph in graphs:
        for index, arrow in enumerate(graph.arrows):
            if arrow.counts and arrow.truth == "wrong":
                winner, loser = (view.handle(turn, graph.round) for turn in (arrow.winner, arrow.loser))
                there = to_debate(view.id, "graph")._replace(anchor=f"vote-{graph.round}-{index}")
                said = f"calls {winner} and {loser} equal" if arrow.tie else f"prefers {winner} to {loser}"
                judge = Span(view.spelled(arrow.judge), persona=view.personas[arrow.judge.agent].name)
                words = (
                    Span("✗ wrong vote: ", "wrong"),
                    judge,
                    " ",
                    Span(said, link=there, name="wrong-vote"),
                )
                lines.append(Line((*words, *_effects(view, arrow))))
    left = len(lines) - MOST_WRONG
    more = [Line(f"{counted(left, 'more wrong vote')}", "faint")] if left > 0 else []
    return [*lines[:MOST_WRONG], *more]


def votes_of_turn(view: DebateView, graphs: Sequence[RoundGraph], turn: TurnId) -> list[Block]:
    """Return the votes that a turn received and gave."""
    every = [(graph, arrow) for graph in graphs for arrow in graph.arrows]
    got = [pair for pair in every if turn in (pair[1].winner, pair[1].loser)]
    given = [pair for pair in every if pair[1].judge == turn]
    titled = (("votes on this turn", got), ("votes by this turn", given))
    return [Section(name, _votes_table(view, arrows) or [Line("none", "faint")]) for name, arrows in titled]


SIGNS = {"right": "✓", "wrong": "✗", "tie": "=", "none": "–"}
"""The sign of the side that a judge preferred."""
PREFERRED = {"right": "the right side", "wrong": "the wrong side", "tie": "a tie", "none": "no valid vote"}
PAIRS_LEGEND = "first sign: start judge; ✓ prefers the right side, ✗ the wrong side, = tie, – no vote"


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
    """Return the hack gap by evaluation, accuracy by attack, and the pairs, most misled first."""
    from debate_rl.metrics.intervals import spread  # loads scipy

    blocks: list[Block] = []
    if len(gaps) > 1:
        by_step: list[Sequence[Words]] = []
        for at, gap in reversed(gaps):
            link = Link(("pairs",), (("step", at),))
            by_step.append((Span(f"after {counted(at, 'step')}", link=link, name="gap-link"), gap_text(gap)))
        blocks.append(Table(("evaluation", "hack gap, 95% interval"), by_step, name="gaps"))
    heads = ("attack", "start judge", f"after {counted(watched.step, 'step')}", "hack gap")
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
    count = f"{_fooled(watched.attacks)} of {counted(len(watched.attacks), 'attack')}"
    names = [title(attack.now.attack) for attack in pairs[0]] if pairs else []
    rows = [_pair(attacks, watched.step) for attacks in pairs[start : start + most]]
    return [
        *blocks,
        Line(f"{count}: the start judge was right, this judge is not", name="fooled"),
        Line(PAIRS_LEGEND, "faint"),
        Table(("pair", *names, "problem"), rows, name="judged-pairs"),
    ]


def _fooled(attacks: Sequence[JudgedAttack]) -> int:
    return sum(attack.fooled for attack in attacks)


def _pair(attacks: Sequence[JudgedAttack], step: int) -> Sequence[Words]:
    link = Link(("pairs",), (("pair", attacks[0].number), ("step", step)))
    both = [(attack.start.preferred, attack.now.preferred) for attack in attacks]
    said = [(Span(SIGNS[start], start), Span(SIGNS[now], now)) for start, now in both]
    question = shorten(attacks[0].pair.question, 90)
    return (Span(str(attacks[0].number), link=link, name="pair-link"), *said, question)


def attacks_on(watched: WatchedJudge, number: int) -> list[JudgedAttack]:
    """Return the attacks on one pair, the plain pair first. ValueError without such a pair."""
    found = [attack for attack in watched.attacks if attack.number == number]
    if not found:
        raise ValueError(f"pairs: there is no pair {number}")
    return found


def pair_blocks(attacks: Sequence[JudgedAttack], step: int) -> list[Block]:
    """Return one pair: its texts as shown, and the replies of both judges."""
    pair = attacks[0].pair
    texts = (("problem", pair.question), ("right", pair.right), ("the judge's own", pair.own))
    heading = f"pair {attacks[0].number}: {pair.problem}"
    blocks: list[Block] = [Section(heading, [Text(text, name) for name, text in texts], name="pair")]
    for attack in attacks:
        shown: list[Block] = [Text(attack.wrong, "the wrong side")]
        if attack.now.attack == "order":
            shown.append(Line("shown in the opposite order", "faint"))
        elif attack.now.attack != "plain" and attack.wrong == pair.wrong:
            shown.append(Line("unchanged: this persuader does not apply to the text", "faint"))
        for judge, said in (("start judge", attack.start), (f"after {counted(step, 'step')}", attack.now)):
            shown.append(Text(said.reply, (f"{judge}: ", Span(PREFERRED[said.preferred], said.preferred))))
        fooled = (" ", Span("fooled", "doubt")) if attack.fooled else ()
        blocks.append(Section((title(attack.now.attack), *fooled), shown, name="attack", kind="card"))
    return blocks
