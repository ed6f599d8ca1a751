"""The fields of the filter language, each with the line that docs/transcripts.md has of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from envs.causes.rules import CAUSES
from transcripts.index.facts import REALS, WINNERS

Kind: TypeAlias = Literal["id", "number", "step", "word", "name", "words"]
"""id: STEP.INDEX; number: compares, and ``none`` where ``absent``; word: one of a few; name: exact, with *;
words: full text."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field. ``sql``: what is compared; ``words`` maps each word to its condition; ``name``s put their
    condition into ``sql`` at ``{}``.
    """

    name: str
    kind: Kind
    sql: str
    about: str
    example: str
    words: Mapping[str, str] = field(default_factory=dict[str, str])
    absent: bool = False


def _number(name: str, about: str, example: str) -> Field:
    """Return the field of a fact; a fact that may be missing can be asked for as ``none``."""
    column = name.replace(".", "_")
    return Field(name, "number", column, about, example, absent=column in REALS)


def _of_problem(name: str, about: str, example: str, column: str = "") -> Field:
    inner = f"SELECT key FROM problems WHERE {column or name} {{}}"
    return Field(name, "name", f"problem_key IN ({inner})", about, example)


def _flag(name: str, about: str) -> Field:
    return Field(name, "word", name, about, f"{name}:yes", {"yes": f"{name} = 1", "no": f"{name} = 0"})


_ALL = (
    Field("id", "id", "debates.key", "the debate: step and index in the step", "id:12.3"),
    Field("step", "step", "debates.key", "training step", "step:>200"),
    _of_problem("problem", "id of the problem", "problem:gsm8k/17", "id"),
    _of_problem("source", "where the problem is from", "source:MATH*"),
    _of_problem("level", "level of the problem", 'level:"Level 5"'),
    _of_problem("kind", "kind of the problem: number, expression, choice, ...", "kind:choice"),
    _of_problem("gold", "the right answer, as written", "gold:42"),
    Field(
        "persona",
        "name",
        "personas_key IN (SELECT personas_key FROM personas WHERE name {})",
        "name of a persona that took part",
        'persona:"Devil\'s Advocate"',
    ),
    Field(
        "answer",
        "name",
        "debates.key IN (SELECT debate FROM answers WHERE answer {})",
        "an agent's answer in the last round, as written",
        "answer:42",
    ),
    Field(
        "winner",
        "word",
        "winner",
        "the winner: right, wrong (missing is wrong), ungraded, or none without votes",
        "winner:wrong",
        {word: f"winner = {number}" for number, word in enumerate(WINNERS)},
    ),
    Field(
        "cause",
        "word",
        "",
        "why a solution is wrong: extraction, incoherent, cut_off, arithmetic, or not_known to the rules",
        "cause:arithmetic",
        {cause: f"accuracy < 1 AND caused(debates.key, debates.start, '{cause}')" for cause in CAUSES},
    ),
    _number("accuracy", "right / graded solutions", "accuracy:<0.5"),
    _number("accuracy.round_0", "the same of round 0", "accuracy.round_0:0"),
    _number("accuracy.last_round", "the same of the last round", "accuracy.last_round:1"),
    Field(
        "flip",
        "word",
        "",
        "an agent went, from one round to the next, from correct (C) or wrong (W) to correct or wrong",
        "flip:CW",
        {word: f"flip_{word.lower()} > 0" for word in ("CC", "CW", "WC", "WW")},
    ),
    _number("missing", "solutions without an answer", "missing:>0"),
    _number("ungraded", "solutions that no grader judged", "ungraded:>0"),
    _number(
        "agreement",
        "share of the agents that gave the most frequent answer of the last round, as written",
        "agreement:1",
    ),
    _number("votes", "votes that count", "votes:0"),
    _number("ties", "ties among them", "ties:>=2"),
    _flag("cycle", "solutions of some round beat each other in a circle (A beats B beats C beats A)"),
    _flag("condorcet", "one solution of the last judged round beats every other; neither without votes"),
    _number("judge.accuracy", "right / valid votes on decidable pairs", "judge.accuracy:<0.5"),
    _number("malformed", "parse failures, of any kind", "malformed:>0"),
    _number("truncated", "truncated replies", "truncated:>0"),
    _number("tokens", "generated tokens, summaries included", "tokens:>4000"),
    _number("reward.peer", "mean peer reward of the turns that have one", "reward.peer:>0"),
    _number("reward.truth", "mean truth reward", "reward.truth:1"),
    _number("reward.judge", "mean judge reward", "reward.judge:<0"),
    _number("reward.format", "mean format penalty", "reward.format:<0"),
    _number("policy_version", "version of the policy", "policy_version:10..20"),
    _number("agents", "agents", "agents:3"),
    _number("rounds", "rounds, the final ballot not counted", "rounds:>1"),
    _number("rounds_saved", "rounds not held, as all agents gave the same answer", "rounds_saved:>0"),
    _number("seed", "seed of the debate", "seed:7"),
    _number("seconds", "from the start of the rollout to the debate's end", "seconds:>60"),
    Field(
        "text", "words", "", "words that follow each other in one reply, or in the question", r'text:"\boxed"'
    ),
)
FIELDS: dict[str, Field] = {field.name: field for field in _ALL}
"""All fields by name, in the order of the page."""
