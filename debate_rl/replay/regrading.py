"""Grade stored replies again, as sampled and cut at stop strings, without a model or torch.

Each reply is first cut, but not inside its thinking. Its solution is then parsed and graded in every mode.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from msgspec.structs import replace

from debate import Completion, DebateConfig, Problem, Turn
from debate.prompting.shown import reads_untagged
from debate.prompting.texts import load_prompts
from debate.reply import Untagged, read_reply, untagged_rule
from debate.stops import clipped
from debate.types import WITHOUT_TRUTH
from debate_rl.config.recipes import read_run_config
from debate_rl.evaluation.folder import IDENTITY
from debate_rl.evaluation.grading import IN_A_BOX, grade_turn
from debate_rl.evaluation.scores import Scores, difference
from debate_rl.formatting import json_number, percent
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
"""The name of the stored grades in place of a mode."""
_KNOWN: dict[str, Mode] = {mode: mode for mode in MODES}
FAMILY = "family"
"""The word for the stop strings of a prompt set in --clip."""
_ESCAPES = {r"\n": "\n", r"\t": "\t", r"\,": ",", r"\\": "\\"}
Records: TypeAlias = Callable[[], Iterator[Record]]
StopsOf: TypeAlias = Callable[[DebateConfig], Sequence[str]]
"""Returns the stop strings at which to cut replies of a protocol."""
Row: TypeAlias = dict[str, Any]
"""A line of a result: names, counts and estimates (None if unknown)."""


class Source(NamedTuple):
    """The replies of an evaluation or of a range of training steps, by part."""

    name: str
    parts: tuple[tuple[str, Records], ...]


class Reply(NamedTuple):
    """A stored solution with its problem, the protocol of its debate, and its stored grade."""

    problem: Problem
    turn: Turn
    protocol: DebateConfig
    stored: Truth


@dataclass(slots=True)
class Sheet:
    """The grades of one part of a source: ``values[figure, mode][problem]`` has one value per reply.

    Figures: "sampled" and "clipped" are 1 if the reply as sampled or clipped is right, else 0. "stopping" is
    sampled minus clipped, and "moved" is clipped minus sampled. "changed" is 1 if clipping changes the grade,
    and "differs" is 1 if the stored grade differs. "cut" is 1 if the reply continued after a stop string.
    ``ungraded``: number of grades without a verdict by mode. ``open``: number of replies to open
    problems, which have no gold answer.
    """

    source: str
    part: str
    problems: dict[str, Problem] = field(default_factory=dict)
    values: dict[tuple[str, str], dict[str, list[float]]] = field(default_factory=dict)
    ungraded: Counter[str] = field(default_factory=Counter[str])
    open: int = 0

    @property
    def modes(self) -> list[str]:
        """The modes, starting with ``STORED`` for the stored grades."""
        return [mode for figure, mode in self.values if figure == "sampled"]

    def put(self, figure: str, mode: str, id: str, value: float | None) -> None:
        """Append a reply's value of a figure under a mode to the values of problem ``id``."""
        by_problem = self.values.setdefault((figure, mode), defaultdict(list))
        if value is not None:
            by_problem[id].append(value)

    def flat(self, figure: str, mode: str) -> tuple[list[float], list[str]]:
        """Return all values of a figure, and their problems."""
        pairs = [(v, id) for id, values in self.values.get((figure, mode), {}).items() for v in values]
        return [value for value, _ in pairs], [id for _, id in pairs]

    def share(self, figure: str, mode: str) -> Estimate | None:
        """Return the mean of a figure over all replies, or None without values."""
        values, ids = self.flat(figure, mode)
        return clustered_mean(values, ids, signed=figure == "moved") if values else None


def sources_of(path: Path, *, filter: str = "", steps: tuple[int, int | None] = (0, None)) -> list[Source]:
    """Return the sources at a path: a run, an evaluation, or a folder of evaluations.

    The training transcripts of a run are two sources, the first and the last third of the steps, or one
    source if ``steps`` selects steps. Raise ValueError if there are no replies.
    """
    if (path / IDENTITY).is_file():
        return [_evaluation(path)]
    found = [*_training(path, filter, steps)] if (path / "transcripts").is_dir() else []
    home = path / "evaluations" if (path / "evaluations").is_dir() else path
    children = sorted(home.iterdir()) if home.is_dir() else []
    found += [_evaluation(child) for child in children if (child / IDENTITY).is_file()]
    if not found:
        raise ValueError(f"{path}: is neither a run nor the folder of an evaluation (it has no {IDENTITY})")
    return found


def _evaluation(folder: Path) -> Source:
    parts = [
        (name, lambda at=folder / part: read_records(at, tokens=False))
        for part, name in PARTS.items()
        if (folder / part).is_dir()
    ]
    if not parts:
        raise ValueError(f"{folder}: the evaluation has no replies (none of {', '.join(PARTS)})")
    return Source(folder.resolve().name, tuple(parts))


def _training(run: Path, filter: str, steps: tuple[int, int | None]) -> Iterator[Source]:
    def stored(words: str) -> Iterator[Record]:
        with RunStore.open(run, refresh=False) as store:
            yield from (record for _, record in store.records(words))

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
        yield Source(span, ((TRAINING, lambda words=words: stored(words)),))


def stored_mode_of(source: Source) -> Mode:
    """Return the mode in which the first stored reply of a source was graded."""
    first = next((record for _, records in source.parts for record in records()), None)
    return IN_A_BOX if first is None else _KNOWN.get(str(first.mode), IN_A_BOX)


def modes_named(names: Collection[str]) -> tuple[Mode, ...]:
    """Return the modes with these names, in order. Raise ValueError for an unknown mode."""
    for name in names:
        if name not in _KNOWN:
            raise ValueError(f"--modes {name}: unknown; valid: {', '.join(MODES)}")
    return tuple(dict.fromkeys(_KNOWN[name] for name in names))


def regrade(
    source: Source,
    modes: Sequence[Mode],
    stops: StopsOf,
    *,
    own: Environment | None = None,
    tell: Callable[[], None] = lambda: None,
) -> list[Sheet]:
    """Grade the replies of a source in each mode. Return a sheet for each part with replies.

    ``own``: the custom environment of the run, if any, which grades the answers that the modes find.
    ``tell`` is called after each reply.
    """
    sheets: dict[str, Sheet] = {}
    for part, records in source.parts:
        for label, reply in (found for record in records() for found in replies_of(part, record)):
            sheet = sheets.setdefault(label, Sheet(source.name, label))
            if reply.problem.kind in WITHOUT_TRUTH:
                sheet.open += 1
            else:
                _grade(sheet, reply, modes, stops(reply.protocol), own)
            tell()
    return list(sheets.values())


def replies_of(part: str, record: Record) -> Iterator[tuple[str, Reply]]:
    """Yield the solutions of a debate, each with the name of its part and, for debates, its round."""
    debate = record.debate
    for turn in debate.turns:
        if not turn.ballot:
            agent, round_ = turn.id
            several = debate.protocol.num_rounds > 1
            label = f"{part}, round {round_}" if several and part in ("debate", TRAINING) else part
            stored = None if record.correct is None else record.correct[agent][round_]
            yield label, Reply(debate.problem, turn, debate.protocol, stored)


def _grade(
    sheet: Sheet, reply: Reply, modes: Sequence[Mode], stops: Sequence[str], own: Environment | None
) -> None:
    """Add a reply's grades to a sheet. Differences need two known grades."""

    def value(verdict: Truth) -> float | None:
        return None if verdict is None else float(verdict is True)

    def less(one: float | None, other: float | None) -> float | None:
        return None if one is None or other is None else one - other

    text, thinking, id = reply.turn.completion.stated, reply.turn.parsed.thinking, reply.problem.id
    cut = clipped(text, stops, start=thinking.end if thinking else 0)
    sheet.problems[id] = reply.problem
    stored = value(reply.stored)
    sheet.put("sampled", STORED, id, stored)
    whole = read_again(reply)
    ended = whole if cut == text else read_again(reply, cut)
    for mode in modes:
        sampled = value(graded(reply.problem, whole, mode, own))
        after = sampled if ended is whole else value(graded(reply.problem, ended, mode, own))
        moved, differs = less(after, sampled), less(stored, sampled)
        figures = {"sampled": sampled, "clipped": after, "moved": moved, "stopping": less(sampled, after)}
        figures["changed"] = None if moved is None else abs(moved)
        figures["differs"] = None if differs is None else abs(differs)
        # a reply that ended at its stop string was not cut
        figures["cut"] = float(text[len(cut) :] not in ("", *stops))
        for figure, found in figures.items():
            sheet.put(figure, mode, id, found)
        sheet.ungraded[mode] += (sampled is None) + (after is None)


def read_again(reply: Reply, cut: str | None = None) -> Turn:
    """Parse a stored turn again with the current rules: its whole text, or the shortened text ``cut``."""
    turn, said, protocol = reply.turn, reply.turn.completion, reply.protocol
    if cut is not None:
        calls = said.calls and tuple(call for call in said.calls if call.block.end <= len(cut))
        said = Completion((), (), (), cut, "stop", said.policy_version, calls=calls)
    try:
        untagged = untagged_rule(protocol, load_prompts(protocol.prompts), turn.id.round)
    except (OSError, ValueError):  # the prompt set and its stop strings no longer exist
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
    """Return the verdict on a turn's solution in a mode. None if the grader gave no verdict.

    Raise ValueError if the mode does not apply to the problem.
    """
    if mode == "first_letter" and problem.kind != "choice":
        kind = f"problem {problem.id} is of kind {problem.kind}"
        raise ValueError(f"--modes first_letter: works only for multiple choice, but {kind}")
    return grade_turn(own or environment_of(problem), problem, turn, mode).verdict


def lines_of(sheet: Sheet, *, clip: bool) -> Iterator[Row]:
    """Yield the shares of the stored grades and of each mode. ``clip``: include figures of clipping."""
    compared = ("clipped", "moved", "cut", "changed") if clip else ()
    for mode in sheet.modes:
        names = ("sampled", *(() if mode == STORED else (*compared, "differs")))
        shares = {name: sheet.share(name, mode) for name in names}
        row: Row = {"source": sheet.source, "part": sheet.part, "mode": mode}
        row |= {"replies": len(sheet.flat("sampled", mode)[0]), "problems": len(sheet.problems)}
        figures = ("sampled", "clipped", "moved", "cut", "changed", "differs")
        yield row | {name: shares.get(name) for name in figures}


def gains_of(sheets: Sequence[Sheet]) -> Iterator[Row]:
    """Yield the gains of each part over the first source with this part.

    ``sampled`` and ``clipped`` are gains in right replies. ``stopping`` is ``sampled`` minus ``clipped``: the
    gain from learning to stop. Evaluations are paired (``paired``) with the first evaluation of the same
    problems.
    """
    for part in dict.fromkeys(sheet.part for sheet in sheets):
        of_part = [sheet for sheet in sheets if sheet.part == part]
        training = part.startswith(TRAINING)
        for sheet in of_part:
            base = next(one for one in of_part if training or one.problems == sheet.problems)
            for mode in sheet.modes if base is not sheet else ():
                if mode != STORED and mode in base.modes:
                    paired = not training
                    row: Row = {"source": sheet.source, "base": base.source, "part": part, "mode": mode}
                    for name in ("sampled", "clipped", "stopping"):
                        row[name] = _gain(sheet, base, name, mode, paired=paired)
                    yield row | {"paired": paired}


def _gain(sheet: Sheet, base: Sheet, name: str, mode: str, *, paired: bool) -> Estimate | None:
    if paired:
        new, old = (Scores({name: one.values[name, mode]}, one.problems, samples=0) for one in (sheet, base))
        return difference(new, name, old, name)
    (values, ids), (before, others) = sheet.flat(name, mode), base.flat(name, mode)
    if not values and not before:
        return None
    clusters = np.array([*map(Numbered().__getitem__, [*ids, *others])])
    first = np.arange(len(clusters)) < len(values)
    return intervals.difference([*values, *before], first, clusters)


def table_of(lines: Sequence[Row], *, clip: bool) -> list[list[str]]:
    """Return the lines as a table with a header. Names that repeat the line above are empty."""
    heads = ["replies of", "part", "replies", "mode", "as sampled"]
    heads += ["clipped", "clipped - as sampled", "cut", "grade changed"] if clip else []
    table, above = [[*heads, "not as stored"]], list[str]()
    for line in lines:
        named = [line["source"], line["part"], str(line["replies"])]
        shares = ["-" if (one := line[name]) is None else percent(one.value) for name in ("cut", "changed")]
        more = [cell(line["clipped"]), cell(line["moved"], signed=True), *shares] if clip else []
        differs = "-" if line["differs"] is None else percent(line["differs"].value)
        begin = ["", "", ""] if named == above else named
        table.append([*begin, line["mode"], cell(line["sampled"]), *more, differs])
        above = named
    return table


def gain_table(gains: Sequence[Row]) -> list[list[str]]:
    """Return the gains as a table with a header."""
    heads = ["gain of", "over", "part", "mode", "as sampled", "clipped", "from stopping"]
    names, figures = ("source", "base", "part", "mode"), ("sampled", "clipped", "stopping")
    rows = ([one[n] for n in names] + [cell(one[figure], signed=True) for figure in figures] for one in gains)
    return [heads, *rows]


def cell(estimate: Estimate | None, *, signed: bool = False) -> str:
    """Return a share with its interval, or "-" for None.

    >>> cell(Estimate(0.5, 0.4, 0.6, 9, 9)), cell(Estimate(-0.25, -0.5, 0.0, 9, 9), signed=True), cell(None)
    ('0.500 ± 0.100', '-0.250 ± 0.250', '-')
    """
    if estimate is None:
        return "-"
    within = (-2.0, 2.0) if signed else (0.0, 1.0)
    return f"{estimate.value:{'+' if signed else ''}.3f}{spread(estimate, 3, within)}"


def plain(estimate: Estimate | None) -> dict[str, object] | None:
    """Return an estimate for a JSON file, with None for bounds that are not finite."""
    if estimate is None:
        return None
    found: dict[str, object] = {
        name: json_number(getattr(estimate, name)) for name in ("value", "low", "high")
    }
    found |= {"n": estimate.n, "problems": estimate.clusters}
    return found if estimate.p is None else {**found, "p": estimate.p}


def stop_strings(text: str) -> tuple[str, ...]:
    r"""Return the stop strings in the text of --clip.

    >>> stop_strings(r"Question:,Q:,\n\n\n"), stop_strings(r"a\, b"), stop_strings("")
    (('Question:', 'Q:', '\n\n\n'), ('a, b',), ())
    """
    parts = re.findall(r"(?:\\.|[^,\\]|\\$)+", text, re.DOTALL)
    return tuple(re.sub(r"\\.", lambda found: _ESCAPES.get(found[0], found[0]), part) for part in parts)


def stops_of(clip: str) -> StopsOf:
    """Return the stop strings of --clip as a function of the protocol.

    The function raises ValueError if the prompt set has no stop strings.

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
        raise ValueError(f"--clip {clip}: the prompt set {prompts} has no stop strings; list some")

    return lambda protocol: of(name or protocol.prompts)


def own_environment(path: Path) -> Environment | None:
    """Return the custom environment of a run. None for data sets and synthetic families."""
    run = next((one for one in (path, *path.resolve().parents[:2]) if (one / "config.toml").is_file()), None)
    if run is None:
        return None
    kind = read_run_config(run).env.kind
    return load_environment(kind) if ":" in kind else None
