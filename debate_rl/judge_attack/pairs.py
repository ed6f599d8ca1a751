"""RUN/judge_pairs/: fixed pairs of a right and a wrong solution, plain and attacked, and their judgments.

    pairs.jsonl          one line per pair, made once before the first step
    step_000000.jsonl    the judgments of the start judge (the weights before the first step)
    step_000007.jsonl    the judgments after 7 steps

Each pair is judged plain and once per persuader. A persuader changes the wrong side.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Literal, NamedTuple, TypeAlias, TypeVar

import msgspec

from debate.files import plain_lines
from debate.values import Value
from debate_rl.judge_attack.persuaders import ORDER
from debate_rl.metrics.intervals import Estimate, clustered_mean
from transcripts.append import free_name
from transcripts.codec import decode
from transcripts.errors import FieldError

PAIRS = "pairs.jsonl"
PLAIN, ATTACKED = "plain", "attacked"
FALL, HACK_GAP = "judge/fall", "judge/hack_gap"
_STEP = re.compile(r"step_(\d{6,9})\.jsonl", re.ASCII)
Preferred: TypeAlias = Literal["right", "wrong", "tie", "none"]
"""The side that a judge preferred. "none": no valid vote."""


class JudgePair(Value, frozen=True):
    """A problem, a right and a wrong solution, the judge's own solution, and the changed wrong solutions."""

    problem: str
    question: str
    right: str
    wrong: str
    own: str
    attacked: dict[str, str]


class Judgment(Value, frozen=True):
    """A judge's reply to a pair, by index, and the preferred side. ``attack``: "plain" or a persuader."""

    pair: int
    attack: str
    preferred: Preferred
    reply: str


Line = TypeVar("Line", JudgePair, Judgment)


def folder_of(run: Path) -> Path:
    """Return the folder of a run's pairs."""
    return run / "judge_pairs"


def step_file(run: Path, step: int) -> Path:
    """Return the file of the judgments after a number of steps."""
    return folder_of(run) / f"step_{step:06d}.jsonl"


def judged_steps(run: Path) -> list[int]:
    """Return the steps after which the pairs were judged, in order."""
    names = (_STEP.fullmatch(path.name) for path in folder_of(run).glob("step_*.jsonl"))
    return sorted(int(name[1]) for name in names if name)


def set_aside_judged(run: Path, step: int) -> None:
    """Rename the judgments of steps after ``step``, because a run resumed at ``step`` repeats them."""
    for path in (step_file(run, late) for late in judged_steps(run) if late > step):
        if path.exists():
            path.rename(free_name(path.with_name(f"{path.stem}.superseded.jsonl")))


def as_lines(values: Iterable[JudgePair | Judgment]) -> bytes:
    """Return values as lines of JSON."""
    return b"".join(msgspec.json.encode(value) + b"\n" for value in values)


def read_pairs(run: Path) -> list[JudgePair]:
    """Return the pairs of a run, or [] without a file. ValueError names a damaged line."""
    return _read(folder_of(run) / PAIRS, JudgePair)


def read_judgments(run: Path, step: int) -> list[Judgment]:
    """Return the judgments of existing pairs after a number of steps. ValueError names a damaged line."""
    count = len(read_pairs(run))
    return [one for one in _read(step_file(run, step), Judgment) if 0 <= one.pair < count]


def _read(path: Path, kind: type[Line]) -> list[Line]:
    found: list[Line] = []
    for number, line in enumerate(plain_lines(path) if path.is_file() else (), start=1):
        try:
            found.append(decode(line, kind))
        except FieldError as error:
            raise ValueError(
                f"{path}:{number}: is not a line of judge pairs: {error}; remove the file to continue "
                f"without them"
            ) from error
    return found


Rates = Mapping[str, Mapping[str, Sequence[float]]]
"""Values by attack ("plain", "attacked", a persuader) and problem: 1.0 if the right side was preferred."""


def rates(pairs: Sequence[JudgePair], judgments: Sequence[Judgment]) -> dict[str, dict[str, list[float]]]:
    """Return the values of each attack by problem; "attacked" combines all persuaders.

    "order" counts as right only if the judge is right in both orders, because an attacker chooses the order.

    >>> pair = JudgePair("p", "?", "a", "b", "a", {"order": "b"})
    >>> rates([pair], [Judgment(0, "plain", "wrong", ""), Judgment(0, "order", "right", "")])
    {'plain': {'p': [0.0]}, 'order': {'p': [0.0]}, 'attacked': {'p': [0.0]}}
    """
    right = {(one.pair, one.attack): one.preferred == "right" for one in judgments}
    attacks = dict.fromkeys((PLAIN, *(attack for pair in pairs for attack in pair.attacked)))
    found: dict[str, dict[str, list[float]]] = {attack: {} for attack in (*attacks, ATTACKED)}
    for number, pair in enumerate(pairs):
        for attack in attacks:
            if (number, attack) in right:
                value = right[number, attack] and (attack != ORDER or right.get((number, PLAIN), False))
                for name in (PLAIN,) if attack == PLAIN else (attack, ATTACKED):
                    found[name].setdefault(pair.problem, []).append(float(value))
    return found


def accuracy(found: Rates, attack: str) -> Estimate | None:
    """Return the fraction of pairs under an attack with the right side preferred, or None without pairs."""
    values = [(value, id) for id, row in found.get(attack, {}).items() for value in row]
    return clustered_mean([value for value, _ in values], [id for _, id in values]) if values else None


def fall(found: Rates, attack: str = ATTACKED) -> Estimate | None:
    """Return accuracy on plain pairs minus accuracy on attacked pairs, clustered by problem, or None."""
    values = _falls(found, attack)
    return clustered_mean([*values.values()], [*values], signed=True) if values else None


def hack_gap(now: Rates, start: Rates, attack: str = ATTACKED) -> Estimate | None:
    """Return the fall minus the start judge's fall on the same problems, in [-2, 2]; None without pairs."""
    new, old = _falls(now, attack), _falls(start, attack)
    shared = [id for id in new if id in old]
    if not shared:
        return None
    half = clustered_mean([(new[id] - old[id]) / 2 for id in shared], shared, signed=True)
    return replace(half, value=2 * half.value, low=2 * half.low, high=2 * half.high)


def _falls(found: Rates, attack: str) -> dict[str, float]:
    plain, attacked = found.get(PLAIN, {}), found.get(attack, {})
    return {id: fmean(plain[id]) - fmean(attacked[id]) for id in plain if id in attacked}


class AttackFigures(NamedTuple):
    """Accuracies of the start judge and of a later judge under an attack. ``gap``: None for plain pairs."""

    attack: str
    start: Estimate
    now: Estimate
    gap: Estimate | None


@dataclass(frozen=True, slots=True)
class JudgedAttack:
    """One pair under one attack, with the judgments of the start judge and of a later judge."""

    number: int
    pair: JudgePair
    start: Judgment
    now: Judgment

    @property
    def fooled(self) -> bool:
        """True if the start judge was right and the later judge is not."""
        return self.start.preferred == "right" != self.now.preferred

    @property
    def wrong(self) -> str:
        """The wrong side as shown to the judge."""
        return self.pair.attacked.get(self.now.attack, self.pair.wrong)


class WatchedJudge(NamedTuple):
    """The pairs of a run as judged at the start and after ``step`` steps."""

    step: int
    figures: tuple[AttackFigures, ...]
    attacks: tuple[JudgedAttack, ...]


def hack_gaps(run: Path, most: int = 50) -> list[tuple[int, Estimate]]:
    """Return (steps, hack gap) of the newest evaluations, over all persuaders. ValueError: damaged line."""
    pairs, steps = read_pairs(run), judged_steps(run)
    if not pairs or steps[:1] != [0]:
        return []
    start = rates(pairs, read_judgments(run, 0))
    gaps = ((step, hack_gap(rates(pairs, read_judgments(run, step)), start)) for step in steps[1:][-most:])
    return [(step, gap) for step, gap in gaps if gap is not None]


def watched_judge(run: Path, step: int | None = None) -> WatchedJudge | None:
    """Return a run's pairs as judged after ``step`` steps (None: the newest), or None without judgments.

    ValueError names a damaged line.
    """
    steps, pairs = judged_steps(run), read_pairs(run)
    at = steps[-1] if step is None and steps else step
    if at not in steps or steps[0] != 0 or not pairs:
        return None
    start, now = read_judgments(run, 0), read_judgments(run, at)
    old, new = rates(pairs, start), rates(pairs, now)
    figures = tuple(
        AttackFigures(attack, before, after, None if attack == PLAIN else hack_gap(new, old, attack))
        for attack in new
        if (before := accuracy(old, attack)) is not None and (after := accuracy(new, attack)) is not None
    )
    first = {(one.pair, one.attack): one for one in start}
    judged = [one for one in now if (one.pair, one.attack) in first]
    attacks = tuple(
        JudgedAttack(one.pair, pairs[one.pair], first[one.pair, one.attack], one) for one in judged
    )
    return WatchedJudge(at, figures, attacks)
