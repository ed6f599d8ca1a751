"""A branch compared with its stored debate: answers, votes, rewards and advantages, old and new."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from pathlib import Path
from typing import TypeAlias

from msgspec import UNSET

from debate.branch import read_vote, with_change
from debate.personas import PERSONAS
from debate.types import TurnId
from debate_rl.formatting import counted, fixed, shorten
from debate_rl.inspector.blocks import (
    Block,
    Line,
    Section,
    Span,
    Table,
    Text,
    Words,
    cut,
    grade,
    to_debate,
    to_turn,
)
from debate_rl.inspector.views.across import Comparison, compare, comparison_blocks
from debate_rl.inspector.views.debate import ADVANTAGES, DebateView, debate_view
from debate_rl.replay.branches import (
    FOLDER,
    SIGN_OF,
    Advantages,
    Effect,
    Origin,
    effect_of,
    new_turns,
    origin_of,
    origins_of,
    read_branch,
)
from debate_rl.replay.scheme import Scheme, close
from rewards import STREAMS
from transcripts import Record, RunStore, TranscriptError, TurnAdvantages
from transcripts.record import named

OldNew: TypeAlias = tuple[float | None, float | None]
MOST_MOVED = 200
"""Maximum number of turns of other debates that are shown."""
MOST_PAIRS, MOST_BRANCHES = 100, 200


@dataclass(frozen=True, slots=True)
class BranchTurn:
    """One turn of both debates, (old, new). ``new``: its reply differs. ``grades``: "" for a ballot."""

    turn: TurnId
    name: str
    new: bool
    answers: tuple[str | None, str | None]
    grades: tuple[str, str]
    rewards: Mapping[str, OldNew]
    advantages: Mapping[str, OldNew]


@dataclass(frozen=True, slots=True)
class MovedTurn:
    """A turn of another debate of the group whose advantages moved, (old, new)."""

    id: str
    turn: TurnId
    advantages: Mapping[str, OldNew]


@dataclass(frozen=True, slots=True)
class BranchView:
    """A branch compared with its stored debate. ``id``: the branch's, or "" if it is not stored."""

    id: str
    debate: str
    change: str
    weights: str
    turns: tuple[BranchTurn, ...]
    others: tuple[MovedTurn, ...]
    comparison: Comparison
    notes: tuple[str, ...] = ()


def branch_view(origin: Origin, effect: Effect) -> BranchView:
    """Return the view of a branch. ValueError if either record is not a debate."""
    name = f"{FOLDER}:{origin.id}" if origin.id else "branch"
    before, after = debate_view(origin.debate, effect.before), debate_view(name, effect.after)
    new = new_turns(effect.before.debate, effect.after.debate)
    ids = sorted({turn.id for view in (before, after) for turn in view.spoken()}, key=_by_round)
    turns = tuple(_turn(before, after, turn, new=turn in new) for turn in ids)
    moved = tuple(one for id, a, b in effect.others for one in _moved(id, a, b))
    both = compare(effect.before, effect.after, (origin.debate, name))
    return BranchView(
        origin.id, origin.debate, origin.change, origin.weights, turns, moved, both, effect.notes
    )


def _by_round(turn: TurnId) -> tuple[int, int]:
    return turn.round, turn.agent


def _turn(before: DebateView, after: DebateView, turn: TurnId, *, new: bool) -> BranchTurn:
    a, b = before.turn(turn), after.turn(turn)
    return BranchTurn(
        turn,
        (after if b else before).spelled(turn),
        new,
        answers=(a and a.answer, b and b.answer),
        grades=(a.grade if a else "", b.grade if b else ""),
        rewards={name: (a and a.rewards[name], b and b.rewards[name]) for name in STREAMS},
        advantages={name: (a and a.advantages[name], b and b.advantages[name]) for name in ADVANTAGES},
    )


def _moved(id: str, before: Advantages, after: Advantages) -> Iterator[MovedTurn]:
    old, new = ({part.turn: part for part in parts} for parts in (before, after))
    for turn in sorted({*old, *new}, key=_by_round):
        sides = [parts.get(turn, TurnAdvantages(turn)) for parts in (old, new)]
        values = {name: (getattr(sides[0], name), getattr(sides[1], name)) for name in ADVANTAGES}
        if not all(close(*pair) for pair in values.values()):
            yield MovedTurn(id, turn, values)


def branch_blocks(view: BranchView) -> list[Block]:
    """Return a branch: each turn's answer, rewards and advantages, its group, and the changed texts."""
    stored: tuple[str | Span, ...] = ()
    if view.id:
        name = f"{FOLDER}:{view.id}"
        stored = (" as ", Span(name, link=to_debate(name), name="branch-link"))
    link = Span(f"debate {view.debate}", link=to_debate(view.debate))
    by = f"; later turns by {view.weights}" if view.weights else ""
    same = view.weights and not any(turn.new for turn in view.turns)
    blocks: list[Block] = [
        Line((link, f", {view.change}{by}", *stored), name="origin"),
        *([Line("the regenerated turns have the same texts as before", "faint")] if same else []),
        *(Line(f"note: {note}", "notice", name="note") for note in view.notes),
        *_turns(view),
    ]
    if view.others:
        parts = _moving(view.others, "advantages", ADVANTAGES)
        rows: list[Sequence[Words]] = []
        for one in view.others[:MOST_MOVED]:
            link = Span(f"{one.id} {named(one.turn)}", link=to_turn(one.id, one.turn))
            rows.append((link, *_cells(one.advantages, parts)))
        table = Table(("turn", *(f">{name} advantage" for name in parts)), rows, name="moved", kind="plain")
        about = f"{counted(len(view.others), 'turn')} in the group's other debates with a changed advantage"
        why = Line("the branch changes the baseline or scale that these turns share with it", "faint")
        blocks.append(Section(about, [why, table]))
    else:
        blocks.append(Line("no advantage in the group's other debates changes", "faint", name="unmoved"))
    return [*blocks, Section("Votes and texts", comparison_blocks(view.comparison, changed=True))]


def _turns(view: BranchView) -> list[Block]:
    """Return the turns with the rewards and advantages that change, and the names of those that do not."""
    streams, parts = _moving(view.turns, "rewards", STREAMS), _moving(view.turns, "advantages", ADVANTAGES)
    rows: list[Sequence[Words]] = []
    any_new = any(one.new for one in view.turns)
    for one in view.turns:
        link = to_turn(view.debate, one.turn)
        name = Span(f"{named(one.turn)} {one.name}", "strong" if one.new else "", link)
        text = ("new" if one.new else Span("same", "faint"),) if any_new else ()
        cells = _cells(one.rewards, streams), _cells(one.advantages, parts)
        rows.append((name, *text, _answers(one), *chain(*cells)))
    kinds = ("reward", streams, STREAMS), ("advantage", parts, ADVANTAGES)
    heads = [
        "turn",
        *(["text"] if any_new else []),
        "answer",
        *(f">{name} {kind}" for kind, moving, _ in kinds for name in moving),
    ]
    still = [f"{name} {kind}" for kind, moving, every in kinds for name in every if name not in moving]
    table = Table(heads, rows, name="branch", row_name="branch-row", kind="plain")
    return [table, *([Line(f"no change: {', '.join(still)}", "faint", name="still")] if still else [])]


def _moving(turns: Iterable[BranchTurn | MovedTurn], kind: str, names: Sequence[str]) -> list[str]:
    """Return the streams in which a value of any turn changes."""
    every = list(turns)
    return [name for name in names if not all(close(*getattr(one, kind)[name]) for one in every)]


def _answers(one: BranchTurn) -> Words:
    if not any(one.grades):
        return Span("votes only", "faint")
    sides: list[tuple[Span, str, Span]] = []
    for answer, name in zip(one.answers, one.grades, strict=True):
        sides.append((Span(shorten(answer or "none", 24), "answer"), " ", grade(name)))
    return sides[0] if sides[0] == sides[1] else (*sides[0], " → ", *sides[1])


def _cells(values: Mapping[str, OldNew], names: Sequence[str]) -> Iterator[Words]:
    for name in names:
        old, new = values[name]
        before, after = fixed(old, "+.2f", none="–"), fixed(new, "+.2f", none="–")
        yield Span(before, "faint") if close(old, new) else (f"{before} → ", Span(after, "strong"))


def vote_effect(store: RunStore, scheme: Scheme, id: str, turn: TurnId, vote: str) -> BranchView:
    """Return what another outcome of one vote would change. Nothing is stored and no model is needed.

    BranchError if the turn was not asked for the vote; TranscriptError without such a debate.
    """
    record, change = store.debate(id), read_vote(vote)
    after = replace(record, debate=with_change(record.debate, turn, change), credit=UNSET)
    origin = origin_of(record, id, turn, change)
    return branch_view(origin, effect_of(store, scheme, id, after))


def stored_branch(store: RunStore, scheme: Scheme, id: str) -> BranchView:
    """Return a stored branch compared with its debate. TranscriptError if either is missing."""
    origin = next((one for one in origins_of(store.run) if one.id == id), None)
    if origin is None:
        raise TranscriptError(f"{store.run}: no branch {id!r}")
    if store.debate(origin.debate).debate.seed != origin.seed:
        raise TranscriptError(f"branch {id}: debate {origin.debate} was replaced when the run was resumed")
    return branch_view(origin, effect_of(store, scheme, origin.debate, read_branch(store.run, id)))


def branches_table(origins: Sequence[Origin]) -> Table:
    """Return branches as a list, with a link to the comparison and to the branch itself."""
    rows: list[Sequence[Words]] = []
    for one in origins:
        name = f"{FOLDER}:{one.id}"
        compared = to_debate(one.debate, "branch", one.turn, branch=one.id)
        link = Span(one.change, link=compared, name="branch-change")
        debate = Span(one.debate, link=to_debate(one.debate))
        rows.append((link, debate, one.weights or "none regenerated", Span(name, link=to_debate(name))))
    return Table(("change", "of debate", "later turns by", "branch"), rows, name="branches", kind="plain")


def branches_of(run: Path, view: DebateView | None = None) -> list[Block]:
    """Return the branches of a run or of one debate, or the origin of a branch, as a section, if any."""
    title, own = "Branches", {}
    if view is not None:
        name, _, id = view.id.rpartition(":")
        title = "This branch" if name == FOLDER else title
        own = {"id": id} if name == FOLDER else {"debate": view.id, "seed": view.seed}
    try:
        found = [one for one in origins_of(run) if all(getattr(one, key) == own[key] for key in own)]
    except TranscriptError as error:
        return [Line(f"branches: {error}", "notice")]
    older = len(found) - MOST_BRANCHES
    more = [Line(f"{older:,} older branches are not shown", "faint")] if older > 0 else []
    table = branches_table(found[-MOST_BRANCHES:])
    return [Section(title, [*more, table], name="branches-of")] if found else []


def what_if_blocks(run: Path, record: Record, view: DebateView, turn: TurnId) -> list[Block]:
    """Return the ways to branch a debate at a turn: other votes, which need no model, and commands."""
    blocks: list[Block] = []
    names = [one.name for number, one in enumerate(view.personas) if number != turn.agent]
    ways = {"another text of this turn (- reads it from stdin)": ["--text", "reply.txt"]}
    ways["another persona from this turn on"] = ["--persona", (names or [PERSONAS[0].name])[0]]
    if votes := list(_other_votes(record, view, turn)):
        ways["another vote, to store it"] = ["--vote", votes[0][1][0]]
        rows: list[Sequence[Words]] = []
        for said, others in votes:
            links = ((vote, to_debate(view.id, "branch", turn, vote=vote)) for vote in others)
            rows.append(
                (said, [part for vote, link in links for part in (Span(vote, "", link, "what-if"), "  ")])
            )
        shown, more = cut(rows, MOST_PAIRS)
        about = "Each link recomputes rewards and advantages with the other vote. Nothing is stored."
        table = Table(("vote", "instead"), shown, name="votes", kind="plain")
        blocks.append(Section("If this turn had voted otherwise", [Line(about, "faint"), table, *more]))
    start = ["debate", "inspect", str(run), "branch", view.id, "--turn", named(turn)]
    about = (
        "A branch keeps the earlier turns, changes one thing, and regenerates the later turns with the same "
        "seeds. These commands store it in the run. --weights names the checkpoint for the later turns: "
        "newest, best, start, or a step."
    )
    commands = [Text(shlex.join([*start, *words]), label, name="command") for label, words in ways.items()]
    blocks.append(Section("Branch the debate here", [Line(about, "faint"), *commands]))
    return [*blocks, *branches_of(run, view)]


def _other_votes(record: Record, view: DebateView, turn: TurnId) -> Iterator[tuple[str, list[str]]]:
    """Yield, for each pair that a turn could compare, its vote and the other votes on the pair."""
    known = range(len(view.handles))
    compared = [one.agent for one in record.debate.turn(turn).compared if one.agent in known]
    cast = [one for one in record.debate.votes if one.judge == turn]
    for a, b in combinations(compared, 2):
        vote = next((one for one in cast if {one.left.agent, one.right.agent} == {a, b}), None)
        a, b = (a, b) if vote is None else (vote.left.agent, vote.right.agent)
        said = "" if vote is None else f"{view.handles[a]}{SIGN_OF[vote.outcome]}{view.handles[b]}"
        every = [f"{view.handles[a]}{sign}{view.handles[b]}" for sign in SIGN_OF.values()]
        nothing = f"no vote on {view.handles[a]} and {view.handles[b]}"
        yield said or nothing, [one for one in every if one != said]
