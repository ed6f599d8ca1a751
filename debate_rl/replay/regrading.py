"""Stored replies graded again, as sampled and cut at stop strings: no model and no torch.

Replies come from a run's training transcripts and from the folders of evaluations. Each is cut first, never
inside its thinking, then its solution is read and graded under every mode. Figures are shares with intervals,
and the part of a gain that is learning to stop.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import isfinite
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from msgspec.structs import replace

from debate import Completion, DebateConfig, Problem, Turn
from debate.parsing.clipping import clipped
from debate.prompting.shown import reads_untagged
from debate.prompting.texts import load_prompts
from debate.reply import Untagged, read_reply, untagged_rule
from debate.types import WITHOUT_TRUTH
from debate_rl.config.recipes import read_run_config
from debate_rl.evaluation.folder import IDENTITY
from debate_rl.evaluation.grading import IN_A_BOX, grade_turn
from debate_rl.evaluation.scores import Scores, difference
from debate_rl.formatting import percent
from debate_rl.metrics import intervals
from debate_rl.metrics.intervals import Estimate, Numbered, clustered_mean, spread, thirds
from envs import Environment, load_environment
from envs.registry import environment_of
from envs.types import MODES, Mode
from rewards import Truth
from transcripts import Record, RunStore, read_records

PARTS = {"direct": "direct", "self-consistency": "direct", "further samples": "direct"}
PARTS |= {"greedy": "greedy", "debates": "debate"}
"""The folders of an evaluation, and the names of their replies."""
TRAINING = "training"
STORED = "stored"
"""In place of a mode: the grades that were stored with the replies."""
_KNOWN: dict[str, Mode] = {mode: mode for mode in MODES}
Records: TypeAlias = Callable[[], Iterator[Record]]
FAMILY = "family"
"""The word of --clip for the stop strings of a prompt set."""
_ESCAPES = {r"\n": "\n", r"\t": "\t", r"\,": ",", r"\\": "\\"}
StopsOf: TypeAlias = Callable[[DebateConfig], Sequence[str]]
"""The stop strings at which replies of a protocol are cut."""
Column: TypeAlias = list[float | None]


class Source(NamedTuple):
    """Replies that belong together: debates of an evaluation or of some steps of training, by part."""

    name: str
    parts: tuple[tuple[str, Records], ...]


class Reply(NamedTuple):
    """One solution as stored, in a debate of this protocol, and its grade then."""

    problem: Problem
    turn: Turn
    protocol: DebateConfig
    stored: Truth


@dataclass(slots=True)
class Sheet:
    """The grades of one part of a source, 1 or 0 by reply, each list in the order of ``clusters``.

    ``sampled`` and ``clipped`` by mode hold None where the grader gave no verdict; ``cut``: whether a reply
    continued after a stop string. ``open`` replies have no truth.
    """

    source: str
    part: str
    problems: dict[str, Problem] = field(default_factory=dict)
    clusters: list[str] = field(default_factory=list)
    sampled: dict[str, Column] = field(default_factory=lambda: defaultdict(list))
    clipped: dict[str, Column] = field(default_factory=lambda: defaultdict(list))
    cut: list[float] = field(default_factory=list)
    open: int = 0


def sources_of(path: Path, *, filter: str = "", steps: tuple[int, int | None] = (0, None)) -> list[Source]:
    """Return what can be graded again at a path: a run, one evaluation, or a folder of evaluations.

    The training transcripts of a run are early and late steps, a third each, or the steps that are named.
    ValueError where there is nothing.
    """
    if (path / IDENTITY).is_file():
        return [_evaluation(path)]
    found = [*_training(path, filter, steps)] if (path / "transcripts").is_dir() else []
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


def modes_named(names: Collection[str]) -> tuple[Mode, ...]:
    """Return the modes of these names, in their order; ValueError for an unknown one."""
    for name in names:
        if name not in _KNOWN:
            raise ValueError(f"--modes {name}: unknown; valid: {', '.join(MODES)}")
    return tuple(dict.fromkeys(_KNOWN[name] for name in names))


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
            _grade(sheets.setdefault(label, Sheet(source.name, label)), reply, modes, stops, own)
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
    text, thinking = reply.turn.completion.stated, reply.turn.parsed.thinking
    named = stops(reply.protocol)
    cut = clipped(text, named, start=thinking.end if thinking else 0)
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


def read_again(reply: Reply, cut: str | None = None) -> Turn:
    """Return the turn as today's rules read it, whole or with a text that a stop string ended."""
    turn, said, protocol = reply.turn, reply.turn.completion, reply.protocol
    if cut is not None:
        calls = said.calls and tuple(call for call in said.calls if call.block.end <= len(cut))
        said = Completion((), (), (), cut, "stop", said.policy_version, calls=calls)
    try:
        untagged = untagged_rule(protocol, load_prompts(protocol.prompts), turn.id.round)
    except (OSError, ValueError):  # the prompt set is gone, and with it its stop strings
        untagged = Untagged(protocol.stop) if reads_untagged(protocol, turn.id.round) else None
    parsed = read_reply(
        said,
        handles=(),
        own=None,
        due=False,
        in_thinking=turn.parsed.thinking is not None,
        ballot=False,
        kind=reply.problem.kind,
        untagged=untagged,
    )
    return replace(turn, completion=said, parsed=parsed)


def graded(problem: Problem, turn: Turn, mode: Mode, own: Environment | None = None) -> Truth:
    """Return the verdict on a turn's solution under a mode; None where the grader gave none.

    ValueError where the mode is not for such a problem.
    """
    if mode == "first_letter" and problem.kind != "choice":
        kind = f"problem {problem.id} is of kind {problem.kind}"
        raise ValueError(f"--modes first_letter: is for multiple choice, and {kind}")
    return grade_turn(own or environment_of(problem), problem, turn, mode).verdict


@dataclass(frozen=True, slots=True)
class Line:
    """One part of a source under one mode, all shares of its ``replies``; None where a share is not known.

    ``sampled`` and ``clipped``: right; ``moved``: clipped minus as sampled, reply by reply; ``cut``:
    continued after a stop string; ``changed``: another grade once cut; ``differs``: another grade than
    stored.
    """

    source: str
    part: str
    mode: str
    replies: int
    problems: int
    sampled: Estimate | None
    clipped: Estimate | None = None
    moved: Estimate | None = None
    cut: Estimate | None = None
    changed: Estimate | None = None
    differs: Estimate | None = None


@dataclass(frozen=True, slots=True)
class Gain:
    """How much more is right in ``source`` than in ``base``: as sampled, clipped, and the first minus the
    second, which is what learning to stop alone is worth. Paired by problem where both have the same ones.
    """

    source: str
    base: str
    part: str
    mode: str
    sampled: Estimate | None
    clipped: Estimate | None
    stopping: Estimate | None
    paired: bool


def lines_of(sheet: Sheet, *, clip: bool) -> Iterator[Line]:
    """Yield the stored grades, then each mode; ``clip``: whether any stop strings were named."""

    def share(values: Sequence[float | None], *, signed: bool = False) -> Estimate | None:
        known = [(value, id) for value, id in zip(values, sheet.clusters, strict=True) if value is not None]
        return clustered_mean(*map(list, zip(*known, strict=True)), signed=signed) if known else None

    for mode, sampled in sheet.sampled.items():
        counts = sum(value is not None for value in sampled), len(sheet.problems)
        more: dict[str, Estimate | None] = {}
        if mode != STORED and clip:
            cut = sheet.clipped[mode]
            more["clipped"], more["moved"] = share(cut), share(_less(cut, sampled), signed=True)
            more["cut"], more["changed"] = share(sheet.cut), share(_apart(cut, sampled))
        if mode != STORED:
            more["differs"] = share(_apart(sheet.sampled[STORED], sampled))
        yield Line(sheet.source, sheet.part, mode, *counts, share(sampled), **more)


def _less(left: Sequence[float | None], right: Sequence[float | None]) -> Column:
    pairs = zip(left, right, strict=True)
    return [None if one is None or other is None else one - other for one, other in pairs]


def _apart(left: Sequence[float | None], right: Sequence[float | None]) -> Column:
    return [None if value is None else abs(value) for value in _less(left, right)]


def gains_of(sheets: Sequence[Sheet]) -> Iterator[Gain]:
    """Yield the gains of each part over the first source that has it, of training apart from evaluations.

    Evaluations are compared with the first one of the same problems: others say nothing about a gain.
    """
    by_part: dict[str, list[Sheet]] = defaultdict(list)
    for sheet in sheets:
        by_part[sheet.part].append(sheet)
    for part, of_part in by_part.items():
        training = part.startswith(TRAINING)
        for sheet in of_part:
            base = next(one for one in of_part if training or one.problems == sheet.problems)
            if base is not sheet:
                for mode in (mode for mode in sheet.clipped if mode in base.clipped):
                    yield _gain(sheet, base, mode, paired=not training and sheet.problems == base.problems)


def _gain(sheet: Sheet, base: Sheet, mode: str, *, paired: bool) -> Gain:
    new, old = _scores(sheet, mode), _scores(base, mode)
    found: list[Estimate | None] = []
    for name in ("sampled", "clipped", "stopping"):
        if paired:
            found.append(difference(new, name, old, name))
            continue
        rows = [
            (value, side, id)
            for side, scores in ((True, new), (False, old))
            for id, values in scores.values[name].items()
            for value in values
        ]
        values, sides, ids = zip(*rows, strict=True) if rows else ((), (), ())
        clusters = np.array([*map(Numbered().__getitem__, ids)])
        found.append(intervals.difference(values, sides, clusters) if rows else None)
    return Gain(sheet.source, base.source, sheet.part, mode, *found, paired)  # type: ignore[call-arg]


def _scores(sheet: Sheet, mode: str) -> Scores:
    """Return the grades under a mode by problem, and how much better each is as sampled than clipped."""
    sampled, cut = sheet.sampled[mode], sheet.clipped[mode]
    columns = {"sampled": sampled, "clipped": cut, "stopping": _less(sampled, cut)}
    values: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in columns}
    for name, column in columns.items():
        for value, id in zip(column, sheet.clusters, strict=True):
            if value is not None:
                values[name][id].append(value)
    return Scores(values, sheet.problems, samples=0)


def table_of(lines: Iterable[Line], *, clip: bool) -> list[list[str]]:
    """Return the lines as a table, heads first; what a line shares with the one above it stands once."""
    heads = ["replies of", "part", "replies", "mode", "as sampled"]
    heads += ["clipped", "clipped - as sampled", "cut", "grade changed"] if clip else []
    table, above = [[*heads, "not as stored"]], list[str]()
    for line in lines:
        named = [line.source, line.part, str(line.replies)]
        more = [cell(line.clipped), cell(line.moved, signed=True), _percent(line.cut), _percent(line.changed)]
        cells = [cell(line.sampled), *(more if clip else ()), _percent(line.differs)]
        table.append([*(["", "", ""] if named == above else named), line.mode, *cells])
        above = named
    return table


def gain_table(gains: Iterable[Gain]) -> list[list[str]]:
    """Return the gains as a table, heads first."""
    heads = ["gain of", "over", "part", "mode", "as sampled", "clipped", "of it stopping"]
    rows = [
        [one.source, one.base, one.part, one.mode]
        + [cell(part, signed=True) for part in (one.sampled, one.clipped, one.stopping)]
        for one in gains
    ]
    return [heads, *rows]


def _percent(share: Estimate | None) -> str:
    return "-" if share is None else percent(share.value)


def cell(estimate: Estimate | None, *, signed: bool = False) -> str:
    """Return a share with its interval, "-" for none.

    >>> cell(Estimate(0.5, 0.4, 0.6, 9, 9)), cell(Estimate(-0.25, -0.5, 0.0, 9, 9), signed=True), cell(None)
    ('0.500 ± 0.100', '-0.250 ± 0.250', '-')
    """
    if estimate is None:
        return "-"
    within = (-2.0, 2.0) if signed else (0.0, 1.0)
    return f"{estimate.value:{'+' if signed else ''}.3f}{spread(estimate, 3, within)}"


def plain(estimate: Estimate | None) -> dict[str, float | int | None] | None:
    """Return an estimate for a JSON file; a bound that is not finite is None."""
    if estimate is None:
        return None
    low, high = (bound if isfinite(bound) else None for bound in (estimate.low, estimate.high))
    found = {
        "value": estimate.value,
        "low": low,
        "high": high,
        "n": estimate.n,
        "problems": estimate.clusters,
    }
    return found if estimate.p is None else {**found, "p": estimate.p}


def stop_strings(text: str) -> tuple[str, ...]:
    r"""Return the stop strings that --clip names.

    >>> stop_strings(r"Question:,Q:,\n\n\n"), stop_strings(r"a\, b"), stop_strings("")
    (('Question:', 'Q:', '\n\n\n'), ('a, b',), ())
    """
    parts = re.findall(r"(?:\\.|[^,\\]|\\$)+", text, re.DOTALL)
    return tuple(re.sub(r"\\.", lambda found: _ESCAPES.get(found[0], found[0]), part) for part in parts)


def stops_of(clip: str) -> StopsOf:
    """Return the stop strings that --clip means for the replies of a protocol; ValueError where it has none.

    >>> from debate import DebateConfig
    >>> stops_of("family:qa")(DebateConfig())[:2], stops_of("Q:")(DebateConfig())
    (('[Question]', 'Question:'), ('Q:',))
    """
    family, _, name = clip.partition(":")
    if family != FAMILY:
        stops = stop_strings(clip)
        return lambda _: stops

    @cache
    def of(prompts: str) -> tuple[str, ...]:
        if found := load_prompts(prompts).stop:
            return found
        raise ValueError(f"--clip {clip}: the prompt set {prompts} has no stop strings; name some")

    return lambda protocol: of(name or protocol.prompts)


def own_environment(path: Path) -> Environment | None:
    """Return the environment of one's own that graded a run's replies; None for data sets and families."""
    run = next((one for one in (path, *path.resolve().parents[:2]) if (one / "config.toml").is_file()), None)
    if run is None:
        return None
    kind = read_run_config(run).env.kind
    return load_environment(kind) if ":" in kind else None
