"""Speed of the grader beside math-verify, on distinct pairs of answer and gold answer with a cold cache."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from math_verify_process import MathVerify
from report import Figure

from envs import Grader, extract

Row = Mapping[str, Any]
FRESH = 5


def throughput(data: Path, library: MathVerify) -> list[Figure]:
    """Return ratios of time on distinct pairs, and the median of ours on numeric answers."""
    math, gsm8k = distinct(data, "model_outputs_math"), distinct(data, "model_outputs_gsm8k")
    mixed = [*math, *gsm8k[: len(math)]]
    ours, theirs, numeric = ours_on(mixed), theirs_on(mixed, library), ours_on(gsm8k)
    whole, whole_theirs = whole_replies(mixed, library)
    fresh = [fresh_seconds(pair) for pair in mixed[:: max(1, len(mixed) // FRESH)][:FRESH]]
    return [
        Figure("throughput_vs_fresh_process", median(fresh) * len(ours) / sum(ours), "times", len(fresh)),
        Figure("throughput_vs_persistent_math_verify", sum(theirs) / sum(ours), "times", len(mixed)),
        Figure(
            "gsm8k_vs_persistent_math_verify",
            sum(theirs_on(gsm8k, library)) / sum(numeric),
            "times",
            len(gsm8k),
        ),
        milliseconds("numeric_median_ms", numeric),
        milliseconds("whole_reply_ms", whole),
        Figure("whole_reply_vs_persistent_math_verify", sum(whole_theirs) / sum(whole), "times", len(mixed)),
    ]


@dataclass(frozen=True, slots=True)
class Pair:
    """A reply, the answer extracted from it and the gold answer."""

    reply: str
    answer: str
    gold: str


def distinct(data: Path, name: str) -> list[Pair]:
    """Return each pair of extracted answer and gold answer once, with the first reply that has it."""
    pairs: dict[tuple[str, str], Pair] = {}
    for row in rows_of(data, name):
        answer = extract(row["output"]).answer or ""
        pairs.setdefault((answer, row["gold"]), Pair(row["output"], answer, row["gold"]))
    return list(pairs.values())


def ours_on(pairs: Sequence[Pair]) -> list[float]:
    with Grader(workers=1) as grader:
        grader.warm()
        return [seconds_of(grader.same_answer, pair.answer, pair.gold) for pair in pairs]


def theirs_on(pairs: Sequence[Pair], library: MathVerify) -> list[float]:
    return [library.ask(dollars(pair.gold), dollars(pair.answer))[1] for pair in pairs]


def whole_replies(pairs: Sequence[Pair], library: MathVerify) -> tuple[list[float], list[float]]:
    """Return the seconds of ours and of math-verify where both find the answer themselves."""
    with Grader(workers=1) as grader:
        grader.warm()
        ours = [seconds_of(grader.grade, pair.reply, pair.gold) for pair in pairs]
    return ours, [library.ask(dollars(pair.gold), pair.reply)[1] for pair in pairs]


def fresh_seconds(pair: Pair) -> float:
    started = time.perf_counter()
    with MathVerify() as library:
        theirs_on([pair], library)
    return time.perf_counter() - started


def seconds_of(work: Callable[[str, str], object], left: str, right: str) -> float:
    started = time.perf_counter()
    work(left, right)
    return time.perf_counter() - started


def rows_of(data: Path, name: str) -> list[Row]:
    with (data / f"{name}.jsonl").open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def dollars(text: str) -> str:
    """Return the text as math-verify wants it: LaTeX delimiters around what has none."""
    return text if "$" in text or "\\boxed" in text else f"${text}$"


def milliseconds(name: str, seconds: Sequence[float]) -> Figure:
    ordered = sorted(1000 * s for s in seconds)
    return Figure(
        name, median(ordered), "ms", len(ordered), median(ordered), ordered[int(0.99 * (len(ordered) - 1))]
    )
