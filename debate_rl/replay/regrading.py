"""Stored replies graded anew, as they were sampled and cut at stop strings: no model and no torch.

Replies are those of a run's training transcripts and of the folders of evaluations. Each is cut first, never
inside its thinking, then its solution is read and graded under every mode.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from msgspec.structs import replace

from debate import Completion, DebateConfig, Problem, Turn
from debate.parsing.clipping import clipped
from debate.prompting.shown import reads_untagged
from debate.prompting.texts import load_prompts
from debate.reply import Untagged, read_reply, untagged_rule
from debate.types import WITHOUT_TRUTH
from debate_rl.evaluation.folder import IDENTITY
from debate_rl.evaluation.grading import IN_A_BOX, grade_turn
from debate_rl.metrics.intervals import thirds
from envs import Environment
from envs.registry import environment_of
from envs.types import MODES, Mode
from rewards import Truth
from transcripts import Record, RunStore, read_records

PARTS = {
    "direct": "direct",
    "self-consistency": "direct",
    "further samples": "direct",
    "greedy": "greedy",
    "debates": "debate",
}
"""The folders of an evaluation, with what their replies are called."""
TRAINING = "training"
STORED = "stored"
"""In the place of a mode: the grades that were stored with the replies."""
_KNOWN: dict[str, Mode] = {mode: mode for mode in MODES}
Records: TypeAlias = Callable[[], Iterator[Record]]
StopsOf: TypeAlias = Callable[[DebateConfig], Sequence[str]]
"""The stop strings at which replies of a protocol are cut."""


@dataclass(frozen=True, slots=True)
class Source:
    """Replies that belong together: debates of an evaluation or of some steps of training, by part."""

    name: str
    parts: tuple[tuple[str, Records], ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """One solution as stored, in a debate of this protocol, and its grade then."""

    problem: Problem
    turn: Turn
    protocol: DebateConfig
    stored: Truth


@dataclass(slots=True)
class Sheet:
    """The grades of one part of a source, 1 or 0 by reply, each list in the order of ``clusters``.

    ``sampled`` and ``clipped`` by mode hold None where the grader gave no verdict; ``stored`` those that came
    with the replies; ``cut``: whether a reply went on behind a stop string. ``open`` replies have no truth.
    """

    source: str
    part: str
    problems: dict[str, Problem] = field(default_factory=dict[str, Problem])
    clusters: list[str] = field(default_factory=list[str])
    sampled: dict[str, list[float | None]] = field(
        default_factory=lambda: defaultdict[str, list[float | None]](list)
    )
    clipped: dict[str, list[float | None]] = field(
        default_factory=lambda: defaultdict[str, list[float | None]](list)
    )
    cut: list[float] = field(default_factory=list[float])
    open: int = 0


def sources_of(path: Path, *, filter: str = "", steps: tuple[int, int | None] = (0, None)) -> list[Source]:
    """Return what can be graded anew at a path: a run, one evaluation, or a folder of evaluations.

    The training transcripts of a run are early and late steps, a third each, or the steps that are named.
    ValueError where there is nothing of it.
    """
    if (path / IDENTITY).is_file():
        return [_evaluation(path)]
    found: list[Source] = []
    if (path / "transcripts").is_dir():
        found += _training(path, filter, steps)
    home = path / "evaluations" if (path / "evaluations").is_dir() else path
    children = sorted(home.iterdir()) if home.is_dir() else []
    found += [_evaluation(child) for child in children if (child / IDENTITY).is_file()]
    if not found:
        raise ValueError(f"{path}: neither a run nor the folder of an evaluation (no {IDENTITY} in it)")
    return found


def stored_mode_of(source: Source) -> Mode:
    """Return the mode by which the first replies of a source were graded when they were stored."""
    first = next((record for _, records in source.parts for record in records()), None)
    return IN_A_BOX if first is None else _KNOWN.get(str(first.mode), IN_A_BOX)


def _evaluation(folder: Path) -> Source:
    parts = [
        (name, lambda at=folder / part: read_records(at, tokens=False))
        for part, name in PARTS.items()
        if (folder / part).is_dir()
    ]
    if not parts:
        raise ValueError(f"{folder}: an evaluation without replies: none of {', '.join(PARTS)} is in it")
    return Source(folder.resolve().name, tuple(parts))


def _training(run: Path, filter: str, steps: tuple[int, int | None]) -> Iterator[Source]:
    with RunStore.open(run) as store:
        known = [row.step for row in store.steps() if row.step is not None]
    first, last = steps
    chosen = [step for step in known if first <= step and (last is None or step <= last)]
    if not chosen:
        raise ValueError(f"{run}: no debates of these steps are stored")
    early, _, late = thirds(range(len(chosen)))
    named = steps != (0, None) or len(chosen) < 3
    for part in [range(len(chosen))] if named else [early, late]:
        low, high = chosen[part[0]], chosen[part[-1]]
        span = f"step {low}" if low == high else f"steps {low}..{high}"
        words = f"step:{low}..{high}" + (f" ({filter})" if filter else "")
        yield Source(span, ((TRAINING, lambda words=words: _stored(run, words)),))


def _stored(run: Path, filter: str) -> Iterator[Record]:
    with RunStore.open(run, refresh=False) as store:
        yield from (record for _, record in store.records(filter))


def regrade(
    source: Source,
    modes: Sequence[Mode],
    stops: StopsOf,
    *,
    own: Environment | None = None,
    tell: Callable[[], None] = lambda: None,
) -> list[Sheet]:
    """Return the grades of a source's replies under each mode, a sheet for each part that has any.

    ``own``: the environment that graded them, where it is neither a data set nor a family of ours; it grades
    the answers that the modes find. ``tell`` is called after each reply.
    """
    sheets: dict[str, Sheet] = {}
    for part, records in source.parts:
        for label, reply in (found for record in records() for found in replies_of(part, record)):
            sheet = sheets.setdefault(label, Sheet(source.name, label))
            _grade(sheet, reply, modes, stops, own)
            tell()
    return list(sheets.values())


def replies_of(part: str, record: Record) -> Iterator[tuple[str, Reply]]:
    """Yield the solutions of a debate, each with the name of its part: of debates also the round."""
    debate = record.debate
    for turn in debate.turns:
        if not turn.ballot:
            agent, round_ = turn.id
            several = debate.protocol.num_rounds > 1
            label = f"{part}, round {round_}" if several and part in ("debate", TRAINING) else part
            stored = None if record.correct is None else record.correct[agent][round_]
            yield label, Reply(debate.problem, turn, debate.protocol, stored)


def _grade(
    sheet: Sheet, reply: Reply, modes: Sequence[Mode], stops: StopsOf, own: Environment | None
) -> None:
    if reply.problem.kind in WITHOUT_TRUTH:
        sheet.open += 1
        return
    text = reply.turn.completion.stated
    named = stops(reply.protocol)
    cut = clipped(text, named, start=_thinking_end(reply.turn))
    sheet.problems[reply.problem.id] = reply.problem
    sheet.clusters.append(reply.problem.id)
    sheet.cut.append(float(text[len(cut) :] not in ("", *named)))  # a reply may have ended at its stop string
    sheet.sampled[STORED].append(_value(reply.stored))
    whole = read_again(reply)
    ended = whole if cut == text else read_again(reply, cut)
    for mode in modes:
        verdict = graded(reply.problem, whole, mode, own)
        again = verdict if ended is whole else graded(reply.problem, ended, mode, own)
        sheet.sampled[mode].append(_value(verdict))
        sheet.clipped[mode].append(_value(again))


def _value(verdict: Truth) -> float | None:
    return None if verdict is None else float(verdict is True)


def _thinking_end(turn: Turn) -> int:
    return turn.parsed.thinking.end if turn.parsed.thinking else 0


def read_again(reply: Reply, cut: str | None = None) -> Turn:
    """Return the turn as today's rules read it, whole or with a text that a stop string ended."""
    turn, protocol = reply.turn, reply.protocol
    said = turn.completion
    if cut is not None:
        calls = said.calls and tuple(call for call in said.calls if call.block.end <= len(cut))
        said = Completion((), (), (), cut, "stop", said.policy_version, calls=calls)
    parsed = read_reply(
        said,
        handles=(),
        own=None,
        due=False,
        in_thinking=turn.parsed.thinking is not None,
        ballot=False,
        kind=reply.problem.kind,
        untagged=_untagged(protocol, turn.id.round),
    )
    return replace(turn, completion=said, parsed=parsed)


def _untagged(protocol: DebateConfig, round_: int) -> Untagged | None:
    """Return how replies without tags are read; the prompt set may be gone, and with it its stop strings."""
    try:
        return untagged_rule(protocol, load_prompts(protocol.prompts), round_)
    except (OSError, ValueError):
        return Untagged(protocol.stop) if reads_untagged(protocol, round_) else None


def graded(problem: Problem, turn: Turn, mode: Mode, own: Environment | None = None) -> Truth:
    """Return the verdict on a turn's solution under a mode; None where the grader gave none.

    ValueError where the mode is not for such a problem.
    """
    if mode == "first_letter" and problem.kind != "choice":
        kind = f"problem {problem.id} is of kind {problem.kind}"
        raise ValueError(f"--modes first_letter: is for multiple choice, and {kind}")
    return grade_turn(own or environment_of(problem), problem, turn, mode).verdict


def modes_named(names: Collection[str]) -> tuple[Mode, ...]:
    """Return the modes of these names, in their order; ValueError for an unknown one."""
    for name in names:
        if name not in _KNOWN:
            raise ValueError(f"--modes {name}: unknown; valid: {', '.join(MODES)}")
    return tuple(dict.fromkeys(_KNOWN[name] for name in names))
