"""Branches of stored debates: their grades, their effect within the debate's group, and their files.

RUN/branches has one shard per step, like a run, and branches.jsonl with one line per branch.
"""

from __future__ import annotations

import errno
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET

from debate.branch import SIGNS, Change, NewPersona, NewVote
from debate.types import Debate, TurnId
from debate.values import Value
from debate_rl.evaluation.grading import IN_A_BOX, grade_debate
from debate_rl.replay.scheme import Scheme, means_before, replay_step, score_step
from debate_rl.runs.folder import locked
from envs import Environment
from rewards.types import value_of
from transcripts import Record, RunStore, ShardWriter, TranscriptError, TurnAdvantages
from transcripts.append import LineFile
from transcripts.codec import decoded_lines
from transcripts.files import reading
from transcripts.record import named

FOLDER, ORIGINS = "branches", "branches.jsonl"
SIGN_OF: dict[str, str] = {outcome: sign for sign, outcome in SIGNS.items()}
"""The sign of each outcome of a vote."""
Advantages: TypeAlias = tuple[TurnAdvantages, ...]
Table: TypeAlias = Sequence[Sequence[Any]]


class Origin(Value, frozen=True):
    """The origin of a branch: a line of branches.jsonl.

    ``id``: of the branch in RUN/branches. ``debate``, ``seed``: of the stored debate. ``change``: in words.
    ``weights``: the checkpoint that regenerated later turns, or "". ``persona``: whether a persona changed.
    """

    id: str
    debate: str
    seed: int
    turn: TurnId
    change: str
    weights: str = ""
    persona: bool = False


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a branch within its step. Both sides are recomputed under the run's configuration.

    ``before``, ``after``: the stored debate and its branch. ``others``: for each other debate of the group,
    its id and its advantages before and after.
    """

    before: Record
    after: Record
    others: tuple[tuple[str, Advantages, Advantages], ...]
    notes: tuple[str, ...] = ()


def change_text(turn: TurnId, change: Change) -> str:
    """Return a change in words.

    >>> change_text(TurnId(1, 0), NewVote("K7", "M4", "left"))
    'turn 1.0: vote K7 > M4'
    """
    what = "another text"
    if isinstance(change, NewVote):
        what = f"vote {change.left} {SIGN_OF[change.outcome]} {change.right}"
    elif isinstance(change, NewPersona):
        what = f"persona {change.persona.name} from here on"
    return f"turn {named(turn)}: {what}"


def origin_of(record: Record, id: str, turn: TurnId, change: Change, weights: str = "") -> Origin:
    """Return the origin of a branch that is not stored yet. ``id``: of the stored debate."""
    persona = isinstance(change, NewPersona)
    return Origin("", id, record.debate.seed, turn, change_text(turn, change), weights, persona)


def new_turns(before: Debate, after: Debate) -> set[TurnId]:
    """Return the turns of a branch with another reply than in the stored debate."""
    said, now = (
        {(turn.id, turn.completion.text, turn.completion.stop_reason) for turn in debate.turns}
        for debate in (before, after)
    )
    return {turn for turn, _, _ in now - said}


def branch_record(record: Record, debate: Debate, environment: Environment) -> Record:
    """Return the record of a branch. New turns are graded; kept ones have their stored grades.

    New turns have no verdict of a verifier model and no likelihood. Rewards are left out (``effect_of``).
    """
    new = new_turns(record.debate, debate)
    bare = replace(record, debate=debate, rewards=None, advantages=(), timing=None, credit=UNSET)
    if not new:
        return bare
    mode = IN_A_BOX if record.mode is UNSET else record.mode
    graded, table = grade_debate(environment, debate, mode=mode)  # type: ignore[arg-type]
    turns = zip(debate.turns, graded.turns, strict=True)
    debate = replace(debate, turns=tuple(after if after.id in new else kept for kept, after in turns))
    changes: dict[str, Any] = {}
    if table is not None and record.correct is not None:
        changes["correct"] = _merged(debate, new, record.correct, table)
    if record.verdicts is not UNSET:
        scores = _merged(debate, new, record.verdicts.scores)
        changes["verdicts"] = replace(record.verdicts, scores=scores)
    if record.likelihoods is not UNSET:
        logprobs = _merged(debate, new, record.likelihoods.logprobs)
        changes["likelihoods"] = replace(record.likelihoods, logprobs=logprobs)
    return replace(bare, debate=debate, **changes)


def _merged(
    debate: Debate, new: Collection[TurnId], old: Table, fresh: Table = ()
) -> tuple[tuple[Any, ...], ...]:
    """Return a table (N, R): the old values of kept turns, the fresh ones of new turns (None without any)."""
    size = debate.protocol.num_agents, debate.protocol.num_rounds
    return tuple(
        tuple(
            value_of(fresh if id in new else old, id)
            for id in (TurnId(agent, round_) for round_ in range(size[1]))
        )
        for agent in range(size[0])
    )


def effect_of(store: RunStore, scheme: Scheme, id: str, after: Record) -> Effect:
    """Return the effect of a branch: the step is recomputed with the stored debate and with the branch.

    TranscriptError without such a debate.
    """
    before = store.debate(id)
    id = ".".join(str(int(part)) for part in id.split("."))  # as the run writes it
    held = dict(store.records(f"step:{before.step}"))
    means, known, source = means_before(store, scheme, before.step)
    notes = () if known else (f"{source}: both sides are computed as if these were 0",)
    steps = list(held.values()), [after if one == id else record for one, record in held.items()]
    old, new = (replay_step(score_step(records, scheme), scheme, dict(means)) for records in steps)
    own = list(held).index(id)
    before = replace(before, rewards=old[own].rewards, advantages=old[own].advantages)
    after = replace(after, rewards=new[own].rewards, advantages=new[own].advantages)
    others = tuple(
        (other, a.advantages, b.advantages)
        for (other, record), a, b in zip(held.items(), old, new, strict=True)
        if other != id and record.group == before.group
    )
    if new_turns(before.debate, after.debate):
        if before.verdicts is not UNSET:
            notes += ("new turns have no verdict of the verifier model",)
        if before.likelihoods is not UNSET:
            notes += ("new turns have no likelihood of the gold answer",)
    return Effect(before, after, others, notes)


def store_branch(run: Path, record: Record, origin: Origin) -> Origin:
    """Append a branch to RUN/branches and return its origin with its id.

    TranscriptError if the shard is damaged; OSError if it cannot be written, or if the folder is a link.
    """
    folder = run / FOLDER
    if folder.is_symlink():  # a run of somebody else could write anywhere
        raise OSError(errno.EINVAL, "is a link", str(folder))
    folder.mkdir(exist_ok=True)
    with locked(folder), ShardWriter(folder, record.step) as writer:
        with reading(writer.path) as lines:
            count = sum(1 for _ in lines.lines())
        writer.write(record)
        origin = replace(origin, id=f"{record.step}.{count}")
        with LineFile(folder / ORIGINS) as file:
            file.write(msgspec.json.encode(origin))
    return origin


def origins_of(run: Path) -> list[Origin]:
    """Return the origins of a run's branches, oldest first. TranscriptError if the file is damaged."""
    path = run / FOLDER / ORIGINS
    try:
        return list(decoded_lines(path, Origin, "a branch"))
    except OSError as error:
        raise TranscriptError(f"{path}: cannot be read: {error.strerror}") from error


def kept_before(run: Path, ref: str) -> TurnId | None:
    """Return the turn at which the branch ``branches:ID`` changed a persona, or None for any other debate.

    Turns that were kept then had a prompt with the persona of the stored debate.
    """
    name, _, id = ref.rpartition(":")
    origins = origins_of(run) if name == FOLDER else ()
    return next((one.turn for one in origins if one.id == id and one.persona), None)


def read_branch(run: Path, id: str, *, tokens: bool = False) -> Record:
    """Return a branch of a run by its id. TranscriptError if there is none."""
    if not (run / FOLDER).is_dir():
        raise TranscriptError(f"{run}: no branch {id!r}; the run has none")
    with RunStore.open(run / FOLDER) as store:
        return store.debate(id, tokens=tokens)
