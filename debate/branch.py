"""Branch a stored debate: change one text, vote or persona, and regenerate only the later turns.

A debate is a function of its seeds. So a branch samples each later turn with the same seed as before, and
every difference from the stored debate is due to the change (or to another policy).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from msgspec import UNSET

from debate.concurrency import stops_released
from debate.early_stop import Agreed, same_as_written
from debate.hold import debate_in_seat, debate_name, parsed_turn, votes_of
from debate.kept import Kept, whole_protocol
from debate.personas import Persona, check_personas
from debate.policy import seat_at, token_counts
from debate.prompting.rebuilding import held_debate
from debate.prompting.seating import Seating
from debate.prompting.shown import asks_pairs, rounds_held, waves
from debate.types import Completion, Debate, Outcome, Policy, Turn, TurnId, Vote

LONGEST = 100_000
"""Maximum number of characters of a new text."""
SIGNS: dict[str, Outcome] = {">": "left", "<": "right", "=": "tie"}
_VOTE = re.compile(r"([^<>=]{1,80})([<>=])([^<>=]{1,80})")


class BranchError(ValueError):
    """A change that a stored debate does not allow. The message says why in one line."""


@dataclass(frozen=True, slots=True)
class NewText:
    """Another reply in one turn. It is parsed again, and later turns are regenerated."""

    text: str


@dataclass(frozen=True, slots=True)
class NewVote:
    """Another outcome of one vote: two handles, and which of them the judge prefers.

    No agent reads the votes of others, so no turn is regenerated. A Swiss ballot keeps its pairs.
    """

    left: str
    right: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class NewPersona:
    """Another persona of one agent, from one turn on. This turn and all later turns are regenerated."""

    persona: Persona


Change: TypeAlias = NewText | NewVote | NewPersona


def read_vote(text: str) -> NewVote:
    """Return the vote in a text such as ``K7>M4`` or ``K7 = M4``. BranchError for any other text.

    >>> read_vote("K7 < M4")
    NewVote(left='K7', right='M4', outcome='right')
    """
    match = _VOTE.fullmatch(text)
    left, right = (match[1].strip(), match[3].strip()) if match else ("", "")
    if match is None or not left or not right:
        raise BranchError(f"vote {text[:80]!r}: write two handles with >, < or = between them, as in 'K7>M4'")
    return NewVote(left, right, SIGNS[match[2]])


def with_change(debate: Debate, turn: TurnId, change: Change) -> Debate:
    """Return a debate with one change at a turn, and everything else as stored.

    ``turn``: the turn with the new text, the judge's turn of a new vote, or the first turn with the new
    persona. BranchError if the debate has no such turn, or if the change does not fit the turn.
    """
    known = {one.id: one for one in debate.turns}
    if turn not in known:
        raise BranchError(f"no turn {_named(turn)}; there are {', '.join(map(_named, known)) or 'none'}")
    if isinstance(change, NewText):
        return _with_text(debate, known[turn], change.text)
    if isinstance(change, NewVote):
        return _with_vote(debate, known[turn], change)
    check_personas([change.persona])
    personas = list(debate.personas)
    personas[turn.agent] = change.persona
    return replace(debate, personas=tuple(personas))


def _with_text(debate: Debate, turn: Turn, text: str) -> Debate:
    if len(text) > LONGEST:
        raise BranchError(f"the new text has {len(text):,} characters; at most {LONGEST:,} are allowed")
    seating, old = _seating(debate), turn.completion
    count = token_counts(old)[0] or None
    reply = Completion((), (), (), text, "stop", old.policy_version, prompt_count=count).whole()
    parsed = parsed_turn(seating, turn.id, reply, due=len(turn.compared) >= 2)
    new = replace(turn, completion=reply, parsed=parsed, score=UNSET)
    turns = tuple(new if one is turn else one for one in debate.turns)
    return replace(debate, turns=turns, votes=_votes(debate, turn.id, votes_of(new, seating.handles)))


def _with_vote(debate: Debate, judge: Turn, vote: NewVote) -> Debate:
    handles = {one.id.agent: one.handle for one in debate.turns}
    compared = judge.compared if len(judge.compared) >= 2 else ()
    meant = {handles[side.agent].upper(): side for side in compared if side.agent in handles}
    left, right = (meant.get(handle.upper()) for handle in (vote.left, vote.right))
    if left is None or right is None or left == right:
        asked = ", ".join(handles[side.agent] for side in meant.values())
        raise BranchError(
            f"turn {_named(judge.id)}: was not asked to compare {vote.left} and {vote.right}; "
            + (f"it could compare {asked}" if asked else "it could compare nothing")
        )
    cast = [one for one in debate.votes if one.judge == judge.id]
    pair = {left, right}
    held = [one for one in cast if {one.left, one.right} == pair]
    turned = {"left": "right", "right": "left", "tie": "tie"}[vote.outcome]
    same = [vote.outcome if one.left == left else turned for one in held]
    if len(held) == 1 and [one.outcome for one in held] == same:
        raise BranchError(
            f"turn {_named(judge.id)}: its vote on {vote.left} and {vote.right} is already this one"
        )
    at = next((n for n, one in enumerate(cast) if {one.left, one.right} == pair), len(cast))
    rest = [one for one in cast[at:] if {one.left, one.right} != pair]
    new = [*cast[:at], Vote(judge.id, left, right, vote.outcome), *rest]
    return replace(debate, votes=_votes(debate, judge.id, new))


def _votes(debate: Debate, judge: TurnId, votes: Iterable[Vote]) -> tuple[Vote, ...]:
    """Return the votes of a debate in the order of its turns, with other votes of one judge."""
    order = {turn.id: place for place, turn in enumerate(debate.turns)}
    cast = [*(one for one in debate.votes if one.judge != judge), *votes]
    return tuple(sorted(cast, key=lambda vote: order.get(vote.judge, len(order))))


def _seating(debate: Debate) -> Seating:
    """Return the seating of a stored debate. BranchError if the code no longer gives the stored one."""
    try:
        return held_debate(debate).seating
    except ValueError as error:
        raise BranchError(f"the debate cannot be branched: {error}") from error


def needs_policy(debate: Debate, turn: TurnId, change: Change | None) -> bool:
    """Return whether a change regenerates any turn."""
    if isinstance(change, NewVote):
        return False
    config = whole_protocol(debate)
    if isinstance(change, NewPersona) or asks_pairs(config, turn.round):
        return True
    last = turn.round >= rounds_held(config) - 1
    return not last or turn.agent not in waves(config, turn.round)[-1]


async def branch_debate(
    debate: Debate,
    turn: TurnId,
    change: Change | None,
    policy: Policy | None = None,
    *,
    summarizer: Policy | None = None,
    agreed: Agreed = same_as_written,
) -> Debate:
    """Return a stored debate with one change at a turn, and the turns after it regenerated by a policy.

    Earlier turns are kept, and so are those that spoke at the same time as ``turn``. A later turn is
    sampled with the seed of the stored one. Without a change (None), the policy that held the debate returns
    the same debate again. ``policy`` may be None if ``needs_policy`` is False. ``summarizer`` and ``agreed``
    are as in ``hold_debate``.

    BranchError as in ``with_change``, and for a debate whose turns cannot be regenerated.
    """
    changed = debate if change is None else with_change(debate, turn, change)
    if not needs_policy(debate, turn, change):
        return changed
    if policy is None:
        raise BranchError(f"the turns after {_named(turn)} are regenerated, which needs a policy")
    if debate.protocol.conversation:
        raise BranchError("debate.conversation = true: the turns of a conversation cannot be regenerated")
    _seating(debate)
    kept = Kept(changed, turn, again=isinstance(change, NewPersona))
    with seat_at(policy), stops_released():
        return await debate_in_seat(
            debate.problem,
            policy,
            whole_protocol(debate),
            debate.seed,
            debate_name(debate.seed, debate.problem.id),
            summarizer or policy,
            agreed,
            kept=kept,
        )


def _named(turn: TurnId) -> str:
    return f"{turn.agent}.{turn.round}"
