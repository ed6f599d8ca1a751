"""Traces: verified replies to train on, sampled by a teacher or taken from stored debates.

A file of traces has one JSON object per line: the problem, the unchanged ``reply`` (or the ``solution`` of a
winner, which is formatted by the prompt set of the run that trains on it), the number of tokens, and the
provenance.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from debate import Debate, DebateConfig, Problem
from debate.files import read_json
from debate.policy import token_counts
from debate.prompting.fitting import ContextBudget
from debate.prompting.rebuilding import PromptUnknownError, held_debate
from debate.prompting.texts import prompt_path
from debate.seeds import derive_seed
from debate.types import WITHOUT_TRUTH, Message, Turn, TurnId
from debate_rl.config import Config
from debate_rl.evaluation.grading import Graded
from debate_rl.runs.folder import plain_config, write_whole
from debate_rl.runs.provenance import checksum, prompts_checksum, prompts_key
from debate_rl.sft.examples import chosen_by, examples_of
from debate_rl.sft.exchange import replies_in
from debate_rl.strategies.selection import check_selection, longest_list, selection_prompt, selection_reply
from debate_rl.strategies.work import Solution
from envs.data.loading import normal_level, question_hash
from envs.data.records import Record as FileRow
from envs.data.records import read_files
from envs.errors import DataError
from rewards.judge_rewards import decidable_votes
from rewards.types import Correct
from rewards.votes import DuePair, ballot_box, due_pairs, valid_votes
from rewards.winner import voted_winner
from transcripts import Record, read_records

Trace = dict[str, Any]
DIGITS = 16
"""Number of hexadecimal digits of a checksum in a trace."""
FOREIGN = 2.0
"""Ratio of median lengths above which the style of traces is foreign. Traces of 7,300 characters lowered the
accuracy of a student whose own replies had 2,300 characters [SFT and RL notes]."""


@dataclass
class Harvest:
    """Traces, and by level of problems ("" if there is none) the replies examined (``asked``) and kept.

    ``cut``: number of right replies that are not kept because they reached the token limit. ``ungraded``:
    number of replies without a verdict.
    """

    traces: list[Trace] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    ids: set[str] = field(default_factory=set)
    cut: int = 0
    ungraded: int = 0

    @property
    def problems(self) -> int:
        """The number of problems examined."""
        return len(self.ids)

    def look(self, problem: Problem, right: bool | None, *, whole: bool = True) -> bool:
        """Count a reply, and return True if it is right and complete."""
        self.ids.add(problem.id)
        self.asked[problem.level] += 1
        self.ungraded += right is None
        self.cut += right is True and not whole
        return right is True and whole

    def keep(self, level: str, trace: Trace) -> None:
        """Add a trace."""
        self.kept[level] += 1
        self.traces.append(trace)

    def merge(self, other: Harvest) -> None:
        """Add the traces and counts of another harvest."""
        for name in ("asked", "kept", "ids"):
            getattr(self, name).update(getattr(other, name))
        self.traces += other.traces
        self.cut += other.cut
        self.ungraded += other.ungraded

    def rows(self) -> list[tuple[str, int, int]]:
        """Return (level, replies examined, replies kept), starting with the sum of all levels."""
        levels = sorted(self.asked) if len(self.asked) > 1 else []
        rows = [(level or "none", self.asked[level], self.kept[level]) for level in levels]
        return [("all", self.asked.total(), self.kept.total()), *rows]


def provenance(config: Config, weights: Path | None, *, seed: int) -> Mapping[str, object]:
    """Return the provenance of traces: teacher, weights, recipe, seed, prompt set and grader."""
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
    """Raise DataError for a problem without a gold answer, because replies to it cannot be verified."""
    unknown = next((problem for problem in problems if problem.kind in WITHOUT_TRUTH), None)
    if unknown is not None:
        raise DataError(
            f"problem {unknown.id}: has kind {unknown.kind!r} and no gold answer, so no reply to it "
            "can be verified; choose problems with gold answers"
        )


def solutions(graded: Iterable[Graded], source: Mapping[str, object]) -> Harvest:
    """Return the right solutions among the replies of single agents."""
    harvest = Harvest()
    for one in graded:
        [turn], grade, problem = one.debate.turns, one.correct[0][0], one.debate.problem
        verdict = None if grade is None else grade is True
        if harvest.look(problem, verdict, whole=turn.completion.stop_reason != "length"):
            harvest.keep(problem.level, trace_of(one.debate, turn, source, reply=turn.completion.text))
    return harvest


def winners(run: Path) -> Harvest:
    """Return the right winning solutions of a run's debates, newest first.

    Raise ValueError if the run keeps no transcripts.
    """
    harvest = Harvest()
    for record in read_records(run):
        winner = voted_winner(record.rewards.peer, seed=record.debate.seed) if record.rewards else None
        grade = record.correct[winner.agent][winner.round] if winner and record.correct else None
        right = harvest.look(record.debate.problem, None if grade is None else grade is True)
        if winner is not None and right:
            turn = record.debate.turn(winner)
            text = turn.parsed.solution.of(turn.completion.text).strip() if turn.parsed.solution else ""
            if text:
                trace = trace_of(record.debate, turn, _stored(run, record), solution=text)
                harvest.keep(record.debate.problem.level, trace)
    harvest.traces.reverse()
    return harvest


def _stored(run: Path, record: Record) -> Mapping[str, object]:
    return {"run": run.name, "step": record.step, "policy_version": record.debate.policy_version}


def debate_turns(run: Path) -> Harvest:
    """Return the right turns of a run's debates with their prompts, newest first.

    A turn is right if its solution is right and all its due votes on decidable pairs are right; a ballot
    needs at least one vote on a decidable pair. Left out are turns with a parsing failure, truncated turns,
    criticism (which truth cannot judge), and turns whose prompt cannot be rebuilt exactly. Raise DataError
    if the prompt set has changed since the run, and ValueError if the run has no transcripts.
    """
    harvest, prompt_sets = Harvest(), set[str]()
    for record in read_records(run):
        debate = record.debate
        if debate.protocol.prompts not in prompt_sets:
            _refuse_changed_prompts(run, debate.protocol.prompts)
            prompt_sets.add(debate.protocol.prompts)
        right = [
            turn
            for turn, verdict in _judged(record)
            if harvest.look(debate.problem, verdict, whole=turn.completion.stop_reason != "length")
        ]
        with suppress(PromptUnknownError):
            held = held_debate(debate)
            for turn in right:
                asked = _plain_messages(held.prompt(turn.id).messages)
                trace = trace_of(debate, turn, _stored(run, record), reply=turn.completion.text)
                own = {"messages": asked, "turn": f"{turn.id.agent}.{turn.id.round}"}
                harvest.keep(debate.problem.level, trace | own)
    harvest.traces.reverse()
    return harvest


def _judged(record: Record) -> Iterator[tuple[Turn, bool | None]]:
    """Yield each turn and True if it is right, or None if truth cannot decide."""
    box = ballot_box(record.debate)
    of_judge: dict[TurnId, list[DuePair]] = defaultdict(list)
    for pair in due_pairs(box, valid_votes(box)):
        of_judge[pair.judge].append(pair)
    for turn in record.debate.turns:
        yield turn, _is_right(turn, of_judge[turn.id], record.correct)


def _is_right(turn: Turn, pairs: list[DuePair], correct: Correct | None) -> bool | None:
    if correct is None or turn.parsed.criticisms:
        return None
    votes = decidable_votes(pairs, correct)
    if turn.parsed.failures or any(vote is not True for vote in votes):
        return False
    if turn.ballot:
        return True if votes else None
    grade = correct[turn.id.agent][turn.id.round]
    return None if grade is None else grade is True


def _refuse_changed_prompts(run: Path, name: str) -> None:
    """Raise DataError if the prompt set has changed since the run, because rebuilt prompts would differ."""
    facts: Any = read_json(run / "run.json") if (run / "run.json").is_file() else {}
    data = facts.get("data") if isinstance(facts, dict) else None
    known = data.get(prompts_key(name)) if isinstance(data, Mapping) else None
    if known is None:
        raise DataError(f"{run}: run.json has no checksum of the prompt set {name!r}")
    if known != prompts_checksum(name):
        raise DataError(f"{run}: the prompt set {name!r} has changed since the run")


def selections(
    groups: Sequence[Sequence[Graded]],
    protocol: DebateConfig,
    source: Mapping[str, object],
    *,
    budget: ContextBudget,
    seed: int,
) -> Harvest:
    """Return GenSelect traces: lists of right and wrong solutions, each with a reply that names a right one.

    ``groups``: the direct solutions of each problem, which are divided at random into lists of 2 to
    ``longest_list`` solutions, with random labels and order. ``asked`` counts all lists; ``kept`` counts
    lists with both right and wrong solutions, because only these are traces.
    """
    check_selection(protocol)
    harvest = Harvest()
    for group in groups:
        harvest.ids |= {one.debate.problem.id for one in group}
        known = [(one, one.correct[0][0]) for one in group]
        harvest.ungraded += sum(grade is None for _, grade in known)
        graded = [(one, grade is True) for one, grade in known if grade is not None and _solution(one).text]
        if not graded:
            continue
        problem = group[0].debate.problem
        own_seed, number = derive_seed(seed, "lists", problem.id), 0
        rng = Random(own_seed)
        left = rng.sample(graded, len(graded))
        while len(left) > 1:
            size = rng.randint(2, longest_list(protocol))
            part, left = left[:size], left[size:]
            harvest.asked[problem.level] += 1
            right = [index for index, (_, is_right) in enumerate(part) if is_right]
            if 0 < len(right) < len(part):
                named, number = rng.choice(right), number + 1
                drawn = derive_seed(own_seed, number)
                listed = [_solution(one) for one, _ in part]
                prompt = selection_prompt(problem, listed, protocol, budget, drawn)
                debate = part[named][0].debate
                reply = selection_reply(prompt.labels[named])
                trace = trace_of(debate, debate.turns[0], source, reply=reply)
                del trace["tokens"]  # these are tokens of the solution, not of the reply
                own = {"messages": _plain_messages(prompt.messages), "turn": "selection"}
                harvest.keep(problem.level, trace | own)
    return harvest


def _solution(one: Graded) -> Solution:
    [turn] = one.debate.turns
    span = turn.parsed.solution
    return Solution(turn, "" if span is None else span.of(turn.completion.text).strip(), turn.parsed.answer)


def _plain_messages(messages: Iterable[Message]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in messages]


def trace_of(debate: Debate, turn: Turn, source: Mapping[str, object], **text: str) -> Trace:
    """Return the trace of a right turn. ``text`` is its ``reply`` or its ``solution``."""
    problem = debate.problem
    known: Trace = {name: getattr(problem, name) for name in ("id", "question", "answer", "kind")}
    known |= {"choices": list(problem.choices), "source": problem.source, "level": problem.level}
    counts = {"grade": "right", "tokens": token_counts(turn.completion)[1]}
    return (
        {key: value for key, value in known.items() if value} | text | counts | {"provenance": dict(source)}
    )


def read_traces(paths: Sequence[Path]) -> list[Trace]:
    """Return the traces of files, in order. Raise DataError with the line of an invalid trace."""
    traces: list[Trace] = []
    for row in read_files(paths, {}):
        if "traces" in row.values:
            traces += _of_verifiers(row)
            continue
        list(examples_of(row))  # raises DataError for an invalid trace
        traces.append(dict(row.values))
    return traces


def _of_verifiers(row: FileRow) -> list[Trace]:
    """Return the right replies of an episode in a traces.jsonl of verifiers."""
    try:
        return list(replies_in(row.values))
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise DataError(f"{row.location}: not an episode of verifiers: {error!r}") from error


def write_traces(path: Path, traces: Sequence[Trace]) -> None:
    """Write the traces to a file, one per line. Replace an existing file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, b"".join(json.dumps(trace, ensure_ascii=False).encode() + b"\n" for trace in traces))


def text_of(trace: Trace) -> str:
    """Return the text of a trace to train on."""
    return str(trace.get("reply") or trace.get("solution") or trace.get("messages") or "")


def chosen(
    traces: Iterable[Trace],
    *,
    per_problem: int | None = None,
    max_tokens: int | None = None,
    levels: Sequence[str] = (),
) -> tuple[list[Trace], Counter[str]]:
    """Return the traces that pass all filters, in order, and the number of traces left out per filter.

    Of several traces with the same text for the same problem, only the first passes.

    >>> rows = [{"question": "1?", "reply": text, "tokens": len(text)} for text in ("a", "a", "bb", "ccc")]
    >>> kept, lost = chosen(rows, per_problem=2, max_tokens=2)
    >>> [row["reply"] for row in kept], dict(lost)
    (['a', 'bb'], {'duplicates': 1, 'longer than 2 tokens': 1})
    """
    wanted = {normal_level(level) for level in levels}

    def described(trace: Trace) -> tuple[str, str, str]:
        why = "of other levels" if wanted and normal_level(str(trace.get("level", ""))) not in wanted else ""
        if not why and max_tokens is not None and _tokens(trace, max_tokens) > max_tokens:
            why = f"longer than {max_tokens} tokens"
        key = question_hash(str(trace.get("question") or trace.get("problem") or trace.get("messages")))
        own_prompt = f"\0{trace['messages']}" if "messages" in trace else ""
        return why, key, text_of(trace) + own_prompt

    lost: Counter[str] = Counter()
    return chosen_by(traces, described, per_problem, lost), lost


def _tokens(trace: Trace, most: int) -> int:
    tokens = trace.get("tokens")
    if not isinstance(tokens, int) or isinstance(tokens, bool):
        raise DataError(
            f"--max-tokens {most}: the trace of {trace.get('id', '?')} has no token count; use "
            f"sft.max_tokens, which counts with the tokenizer of the trained model"
        )
    return tokens


def lengths(traces: Sequence[Trace]) -> Iterator[tuple[str, float, float, float]]:
    """Yield the 10%, 50% and 90% quantiles of tokens (if all traces have a count), characters and lines.

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


def foreign(traces: Sequence[Trace], own: Sequence[Trace]) -> Iterator[tuple[str, float, float, bool]]:
    """Yield the median lengths of teacher and student, and True if their ratio exceeds ``FOREIGN``.

    >>> list(foreign([{"reply": "a" * 6}], [{"reply": "b" * 2}]))
    [('characters', 6, 2, True), ('lines', 1, 1, False)]
    """
    students = {name: middle for name, _, middle, _ in lengths(own)}
    for name, _, middle, _ in lengths(traces):
        if name in students:
            ratio = middle / max(students[name], 1)
            yield name, middle, students[name], not 1 / FOREIGN <= ratio <= FOREIGN
