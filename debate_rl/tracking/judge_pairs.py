"""RUN/judge_pairs/: fixed pairs of a right and a wrong solution, plain and attacked, and who judged them how.

    pairs.jsonl          a line for each pair, made once before the first step
    step_000000.jsonl    what the start judge said, the weights before the first step
    step_000007.jsonl    what the judge in training said after so many steps

A pair is judged in its plain form, and once for each persuader on the wrong side; that of "order" is the
plain pair shown the other way round.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from debate.files import plain_lines
from debate.values import Value
from debate_rl.statistics import Estimate, clustered_mean
from transcripts.append import free_name
from transcripts.codec import decode
from transcripts.errors import FieldError

FOLDER, PAIRS = "judge_pairs", "pairs.jsonl"
PLAIN, ATTACKED, ORDER = "plain", "attacked", "order"
FALL, HACK_GAP = "judge/fall", "judge/hack_gap"
_STEP = re.compile(r"step_(\d{6,9})\.jsonl", re.ASCII)


class JudgePair(Value, frozen=True):
    """A problem, a right and a wrong solution, the judge's own earlier one, and the wrong one as attacked.

    ``attacked``: its text by persuader; the plain one where that persuader could not work on it.
    """

    problem: str
    question: str
    right: str
    wrong: str
    own: str
    attacked: dict[str, str]


class Judgment(Value, frozen=True):
    """What a judge said of a pair, by its number, and which side it preferred; "none": no valid vote.

    ``attack``: "plain", or the persuader.
    """

    pair: int
    attack: str
    preferred: Literal["right", "wrong", "tie", "none"]
    reply: str


Line = TypeVar("Line", JudgePair, Judgment)


def folder_of(run: Path) -> Path:
    """Return where a run keeps its pairs."""
    return run / FOLDER


def step_file(run: Path, step: int) -> Path:
    """Return the file of what was judged by the weights after so many steps."""
    return folder_of(run) / f"step_{step:06d}.jsonl"


def judged_steps(run: Path) -> list[int]:
    """Return after how many steps the pairs were judged, in order."""
    names = (_STEP.fullmatch(path.name) for path in folder_of(run).glob("step_*.jsonl"))
    return sorted(int(name[1]) for name in names if name)


def set_aside_judged(run: Path, step: int) -> None:
    """Rename what was judged after later steps than a run goes on from: it judges them again."""
    for path in (step_file(run, late) for late in judged_steps(run) if late > step):
        if path.exists():
            path.rename(free_name(path.with_name(f"{path.stem}.superseded.jsonl")))


def as_lines(values: Iterable[JudgePair | Judgment]) -> bytes:
    """Return values as lines of JSON."""
    return b"".join(msgspec.json.encode(value) + b"\n" for value in values)


def read_pairs(run: Path) -> list[JudgePair]:
    """Return the pairs of a run, none where it has none; ValueError names a line that is not one."""
    return _read(folder_of(run) / PAIRS, JudgePair)


def read_judgments(run: Path, step: int) -> list[Judgment]:
    """Return what was judged after so many steps, as ``read_pairs``; all of pairs that there are."""
    count = len(read_pairs(run))
    return [one for one in _read(step_file(run, step), Judgment) if 0 <= one.pair < count]


def _read(path: Path, kind: type[Line]) -> list[Line]:
    found: list[Line] = []
    if not path.is_file():
        return found
    for number, line in enumerate(plain_lines(path), start=1):
        try:
            found.append(decode(line, kind))
        except FieldError as error:
            raise ValueError(
                f"{path}:{number}: is not of a judge's pairs: {error}; without the file nothing is compared"
            ) from error
    return found


Rates = Mapping[str, Mapping[str, Sequence[float]]]
"""By attack ("plain", "attacked", a persuader) and problem: 1.0 where the right side was preferred, or 0."""


def rates(pairs: Sequence[JudgePair], judgments: Sequence[Judgment]) -> dict[str, dict[str, list[float]]]:
    """Return the values of each attack by problem; "attacked" has those of all persuaders.

    "order" counts as right only where both orders do: whoever attacks chooses which one is shown.

    >>> pair = JudgePair("p", "?", "a", "b", "a", {"order": "b"})
    >>> said = [Judgment(0, "plain", "wrong", ""), Judgment(0, "order", "right", "")]
    >>> rates([pair], said)
    {'plain': {'p': [0.0]}, 'order': {'p': [0.0]}, 'attacked': {'p': [0.0]}}
    """
    right = {(one.pair, one.attack): one.preferred == "right" for one in judgments}
    attacks = dict.fromkeys((PLAIN, *(attack for pair in pairs for attack in pair.attacked)))
    found: dict[str, dict[str, list[float]]] = {attack: {} for attack in (*attacks, ATTACKED)}
    for number, pair in enumerate(pairs):
        for attack in attacks:
            if (number, attack) not in right:
                continue
            value = right[number, attack] and (attack != ORDER or right.get((number, PLAIN), False))
            found[attack].setdefault(pair.problem, []).append(float(value))
            if attack != PLAIN:
                found[ATTACKED].setdefault(pair.problem, []).append(float(value))
    return found


def falls(found: Rates, attack: str = ATTACKED) -> dict[str, float]:
    """Return the accuracy on plain pairs less that on attacked ones, by problem, each in [-1, 1]."""
    plain, attacked = found.get(PLAIN, {}), found.get(attack, {})
    return {id: _mean(plain[id]) - _mean(attacked[id]) for id in plain if id in attacked}


def hack_gap(now: Rates, start: Rates, attack: str = ATTACKED) -> Estimate | None:
    """Return the fall under attack less the start judge's on the same pairs, clustered by problem.

    None where they have no problem in common. It is in [-2, 2].
    """
    new, old = falls(now, attack), falls(start, attack)
    shared = [id for id in new if id in old]
    if not shared:
        return None
    half = clustered_mean([(new[id] - old[id]) / 2 for id in shared], shared, signed=True)
    return replace(half, value=2 * half.value, low=2 * half.low, high=2 * half.high)


def fall(found: Rates, attack: str = ATTACKED) -> Estimate | None:
    """Return the fall under attack over all problems, clustered by problem; None of none."""
    values = falls(found, attack)
    return clustered_mean([*values.values()], [*values], signed=True) if values else None


def accuracy(found: Rates, attack: str) -> Estimate | None:
    """Return the share of pairs under an attack on which the right side was preferred; None of none."""
    values = [(value, id) for id, row in found.get(attack, {}).items() for value in row]
    return clustered_mean([value for value, _ in values], [id for _, id in values]) if values else None


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


@dataclass(frozen=True, slots=True)
class AttackFigures:
    """What judges make of pairs under an attack: the start judge, the one after ``step`` steps, and the gap.

    ``gap``: how much further the accuracy of the latter falls from plain pairs to these; None of plain ones.
    """

    attack: str
    step: int
    start: Estimate
    now: Estimate
    gap: Estimate | None


@dataclass(frozen=True, slots=True)
class JudgedAttack:
    """One pair under one attack, and what both judges said of it."""

    number: int
    pair: JudgePair
    start: Judgment
    now: Judgment

    @property
    def fooled(self) -> bool:
        """Whether the start judge was right and the later one is not."""
        return self.start.preferred == "right" != self.now.preferred

    @property
    def wrong(self) -> str:
        """The wrong side as it was shown."""
        return self.pair.attacked.get(self.now.attack, self.pair.wrong)


@dataclass(frozen=True, slots=True)
class WatchedJudge:
    """A run's pairs as the start judge and the newest one judged them: figures by attack, and each attack."""

    step: int
    figures: tuple[AttackFigures, ...]
    attacks: tuple[JudgedAttack, ...]


def hack_gaps(run: Path, most: int = 50) -> list[tuple[int, Estimate]]:
    """Return the hack gap under all persuaders after so many steps, in order, of the newest evaluations.

    ValueError names a line that cannot be read.
    """
    pairs, steps = read_pairs(run), judged_steps(run)
    if not pairs or steps[:1] != [0]:
        return []
    start = rates(pairs, read_judgments(run, 0))
    gaps = ((step, hack_gap(rates(pairs, read_judgments(run, step)), start)) for step in steps[1:][-most:])
    return [(step, gap) for step, gap in gaps if gap is not None]


def watched_judge(run: Path, step: int | None = None) -> WatchedJudge | None:
    """Return what a run has of its judge after so many steps, None for the newest; None where nothing is.

    ValueError names a line that cannot be read.
    """
    steps = judged_steps(run)
    pairs = read_pairs(run)
    at = step if step is not None else steps[-1] if steps else 0
    if at not in steps or not steps or steps[0] != 0 or not pairs:
        return None
    start, now = (read_judgments(run, one) for one in (0, at))
    old, new = rates(pairs, start), rates(pairs, now)
    figures = tuple(
        AttackFigures(attack, at, before, after, None if attack == PLAIN else hack_gap(new, old, attack))
        for attack in new
        if (before := accuracy(old, attack)) is not None and (after := accuracy(new, attack)) is not None
    )
    of_start = {(one.pair, one.attack): one for one in start}
    attacks = tuple(
        JudgedAttack(one.pair, pairs[one.pair], of_start[one.pair, one.attack], one)
        for one in now
        if (one.pair, one.attack) in of_start
    )
    return WatchedJudge(at, figures, attacks)
