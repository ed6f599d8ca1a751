"""Traces: what a teacher replied to training problems, or a debate made win, where the answer is right.

A file of traces has one JSON object a line: the problem, the ``reply`` as it was written (or the ``solution``
of a winner, which takes the form of the prompt set that learns it), its tokens, and where it is from.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import Any

from debate import Debate, Problem
from debate.policy import token_counts
from debate.prompting.texts import prompt_path
from debate.types import WITHOUT_TRUTH, Turn
from debate_rl.config import Config
from debate_rl.evaluation.grading import Graded
from debate_rl.runs.folder import plain_config, write_whole
from debate_rl.runs.provenance import checksum
from debate_rl.sft.examples import examples_of
from envs.data.loading import normal_level, question_hash
from envs.data.records import read_files
from envs.errors import DataError
from rewards.peer import voted_winner
from transcripts import Record, read_records

Trace = dict[str, Any]
DIGITS = 16
"""Hexadecimal digits of a checksum in a trace."""


@dataclass
class Harvest:
    """Traces, and how many replies were looked at and kept, by level ("" without one).

    ``cut``: right replies that ended at their token limit, which are not kept. ``ungraded``: those without a
    verdict.
    """

    traces: list[Trace]
    asked: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    problems: int = 0
    cut: int = 0
    ungraded: int = 0

    def rows(self) -> list[tuple[str, int, int]]:
        """Return each level with the replies that were looked at and those kept, all levels first."""
        levels = sorted(self.asked) if len(self.asked) > 1 else []
        return [("all", self.asked.total(), self.kept.total())] + [
            (level or "none", self.asked[level], self.kept[level]) for level in levels
        ]


def provenance(config: Config, weights: Path | None, *, seed: int) -> Mapping[str, object]:
    """Return where traces are from: teacher, weights, recipe, seed, prompt set and grader."""
    plain = {key: value for key, value in plain_config(config).items() if key not in ("run", "logging")}
    recipe = sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:DIGITS]
    return {
        "teacher": config.model.name_or_path or "a small model built from its recipe",
        "weights": None if weights is None else checksum(weights / "manifest.json")[:DIGITS],
        "recipe": recipe,
        "seed": seed,
        "prompts": checksum(prompt_path(config.debate.prompts))[:DIGITS],
        "prompt_set": config.debate.prompts,
        "grader": config.grader.final,
    }


def refuse_unanswered(problems: Sequence[Problem]) -> None:
    """Refuse problems of which nobody can say whether a reply is right."""
    unknown = next((problem for problem in problems if problem.kind in WITHOUT_TRUTH), None)
    if unknown is not None:
        raise DataError(
            f"problem {unknown.id}: is of kind {unknown.kind!r} and has no gold answer, so no reply "
            "to it can be verified; choose problems that have one"
        )


def solutions(graded: Iterable[Graded], source: Mapping[str, object]) -> Harvest:
    """Return the right solutions among replies of one agent alone."""
    asked: Counter[str] = Counter()
    kept: Counter[str] = Counter()
    traces: list[Trace] = []
    cut = ungraded = 0
    ids: set[str] = set()
    for one in graded:
        [turn], grade = one.debate.turns, one.correct[0][0]
        level = one.debate.problem.level
        ids.add(one.debate.problem.id)
        asked[level] += 1
        ungraded += grade is None
        if grade is not True:
            continue
        if turn.completion.stop_reason == "length":
            cut += 1
            continue
        kept[level] += 1
        traces.append(trace_of(one.debate, turn, source, reply=turn.completion.text))
    return Harvest(traces, asked, kept, len(ids), cut, ungraded)


def winners(run: Path) -> Harvest:
    """Return the winning solutions of a run's debates that are right, each problem's newest first.

    ValueError where the run keeps no transcripts.
    """
    asked: Counter[str] = Counter()
    kept: Counter[str] = Counter()
    traces: list[Trace] = []
    ids: set[str] = set()
    ungraded = 0
    for record in read_records(run):
        level = record.debate.problem.level
        ids.add(record.debate.problem.id)
        asked[level] += 1
        winner = voted_winner(record.rewards.peer, seed=record.debate.seed) if record.rewards else None
        grade = record.correct[winner.agent][winner.round] if winner and record.correct else None
        ungraded += grade is None
        if winner is None or grade is not True:
            continue
        turn = record.debate.turn(winner)
        text = turn.parsed.solution.of(turn.completion.text).strip() if turn.parsed.solution else ""
        if text:
            kept[level] += 1
            traces.append(trace_of(record.debate, turn, of_run(run, record), solution=text))
    return Harvest(traces[::-1], asked, kept, len(ids), 0, ungraded)


def of_run(run: Path, record: Record) -> Mapping[str, object]:
    """Return where a trace of a stored debate is from."""
    return {"run": run.name, "step": record.step, "policy_version": record.debate.policy_version}


def trace_of(debate: Debate, turn: Turn, source: Mapping[str, object], **text: str) -> Trace:
    """Return a right turn as a trace, with its ``text`` as a reply or a solution."""
    problem = debate.problem
    known = {
        "id": problem.id,
        "question": problem.question,
        "answer": problem.answer,
        "kind": problem.kind,
        "choices": list(problem.choices),
        "source": problem.source,
        "level": problem.level,
    }
    counts = {"grade": "right", "tokens": token_counts(turn.completion)[1]}
    return (
        {key: value for key, value in known.items() if value} | text | counts | {"provenance": dict(source)}
    )


def read_traces(paths: Sequence[Path]) -> list[Trace]:
    """Return the traces of files, one behind the other; DataError names the line of a wrong one."""
    traces: list[Trace] = []
    for row in read_files(paths, {}):
        list(examples_of(row))  # raises where there is nothing to learn
        traces.append(dict(row.values))
    return traces


def text_of(trace: Trace) -> str:
    """Return what a trace has learnt."""
    return str(trace.get("reply") or trace.get("solution") or trace.get("messages") or "")


def chosen(
    traces: Iterable[Trace],
    *,
    per_problem: int | None = None,
    max_tokens: int | None = None,
    levels: Sequence[str] = (),
) -> tuple[list[Trace], Counter[str]]:
    """Return the traces that pass, in order, each text of a problem once, and how many each filter took.

    >>> rows = [{"question": "1?", "reply": text, "tokens": len(text)} for text in ("a", "a", "bb", "ccc")]
    >>> kept, lost = chosen(rows, per_problem=2, max_tokens=2)
    >>> [row["reply"] for row in kept], dict(lost)
    (['a', 'bb'], {'the same twice': 1, 'longer than 2 tokens': 1})
    """
    wanted = {normal_level(level) for level in levels}
    lost: Counter[str] = Counter()
    seen: set[tuple[str, str]] = set()
    of_problem: Counter[str] = Counter()
    kept: list[Trace] = []
    for trace in traces:
        key = question_hash(str(trace.get("question") or trace.get("problem") or trace.get("messages")))
        if why := _reason(trace, wanted, max_tokens):
            lost[why] += 1
        elif (key, _content(trace)) in seen:
            lost["the same twice"] += 1
        elif per_problem is not None and of_problem[key] >= per_problem:
            lost[f"beyond {per_problem} to a problem"] += 1
        else:
            seen.add((key, _content(trace)))
            of_problem[key] += 1
            kept.append(trace)
    return kept, lost


def _content(trace: Trace) -> str:
    """Return all that a trace teaches: its text, and the prompt before it where that is its own."""
    return f"{text_of(trace)}\0{trace['messages']}" if "messages" in trace else text_of(trace)


def _reason(trace: Trace, levels: set[str], max_tokens: int | None) -> str:
    """Return why a trace is left out by itself; "" where it is not."""
    if levels and normal_level(str(trace.get("level", ""))) not in levels:
        return "of other levels"
    if max_tokens is None:
        return ""
    tokens = trace.get("tokens")
    if not isinstance(tokens, int) or isinstance(tokens, bool):
        raise DataError(
            f"--max-tokens {max_tokens}: the trace of {trace.get('id', '?')} does not say its tokens; "
            "sft.max_tokens counts them by the model that learns"
        )
    return f"longer than {max_tokens} tokens" if tokens > max_tokens else ""


def write_traces(path: Path, traces: Sequence[Trace]) -> None:
    """Replace a file by these traces, one a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, b"".join(json.dumps(trace, ensure_ascii=False).encode() + b"\n" for trace in traces))


def lengths(traces: Sequence[Trace]) -> Iterator[tuple[str, float, float, float]]:
    """Yield what is counted with its 10%, 50% and 90% quantile: tokens where all say them, characters.

    Lines as well: what is long may be long in steps, or in words.

    >>> list(lengths([{"reply": "a" * n, "tokens": n} for n in range(1, 12)]))
    [('tokens', 2, 6, 10), ('characters', 2, 6, 10), ('lines', 1, 1, 1)]
    """
    tokens = [trace["tokens"] for trace in traces if isinstance(trace.get("tokens"), int)]
    texts = [text_of(trace) for trace in traces]
    characters, lines = [len(text) for text in texts], [text.count("\n") + 1 for text in texts]
    for name, values in (("tokens", tokens), ("characters", characters), ("lines", lines)):
        if len(values) == len(traces) and values:
            order, last = sorted(values), len(values) - 1
            yield name, order[round(0.1 * last)], median(order), order[round(0.9 * last)]


FOREIGN = 2.0
"""How many times longer or shorter than the student's own the median trace is in a foreign style: traces of
7,300 characters beside 2,300 of its own lowered what a model could do [SFT and RL notes]."""


def foreign(traces: Sequence[Trace], own: Sequence[Trace]) -> Iterator[tuple[str, float, float, bool]]:
    """Yield what is counted in both, with both medians, and whether they are a foreign style apart.

    >>> list(foreign([{"reply": "a" * 6}], [{"reply": "b" * 2}]))
    [('characters', 6, 2, True), ('lines', 1, 1, False)]
    """
    students = {name: middle for name, _, middle, _ in lengths(own)}
    for name, _, middle, _ in lengths(traces):
        if name in students:
            ratio = middle / max(students[name], 1)
            yield name, middle, students[name], not 1 / FOREIGN <= ratio <= FOREIGN
