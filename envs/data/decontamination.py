"""Find held-out questions that also occur in training: as the same question, or by shared 13-grams of words.

The length of 13 words follows Brown et al. (2020), "Language Models are Few-Shot Learners", appendix C. Only
the held-out n-grams are kept, as 64-bit hashes. Two multiple-choice questions are the same only if they also
have the same options in any order, because many ask "Which statement is true?". If one of the two has no
options, only the question counts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal, TypeAlias

from debate.types import Problem

WORDS = 13  # words per n-gram; a shorter question has no n-grams and can only match as a whole

Kind: TypeAlias = Literal["exact", "ngram"]

_WORD = re.compile(r"[^\W_]+")
_IGNORED = re.compile(r"[\s$]+")


@dataclass(frozen=True, slots=True)
class Overlap:
    """A held-out problem that also occurs in the training set, as a whole or in part."""

    held_out: str
    """The held-out problem's id."""
    train: str
    """The id of the same training problem, or of the one in which most of the shared n-grams first occur."""
    kind: Kind
    """"exact": the same question and options up to case, blanks and dollar signs; "ngram": shared n-grams."""
    share: float
    """The fraction of the held-out question's n-grams that occur in training, in (0, 1]; 1 for "exact"."""


def overlaps(
    train: Iterable[Problem], held_out: Sequence[Problem], *, words: int = WORDS
) -> tuple[Overlap, ...]:
    """Return the held-out problems that overlap with training, in order; ``train`` is iterated once.

    >>> seen = [Problem("t", "Tom has 3 cats and 4 dogs. How many animals does Tom have in all?")]
    >>> held_out = [Problem("h", "Tom has 3 cats and 4 dogs. How many animals does Tom have in the house?")]
    >>> overlaps(seen, held_out)
    (Overlap(held_out='h', train='t', kind='ngram', share=0.5),)
    """
    if words < 1:
        raise ValueError(f"words: needs at least 1, got {words}")
    texts: dict[int, str | None] = {key: None for problem in held_out for key in _held_out_keys(problem)}
    shared: dict[int, str | None] = {run: None for one in held_out for run in runs(one.question, words)}
    for problem in train:
        for known, keys in ((texts, _train_keys(problem)), (shared, runs(problem.question, words))):
            known.update((key, problem.id) for key in keys if known.get(key, "") is None)
    found: list[Overlap] = []
    for problem in held_out:
        same = [name for key in _held_out_keys(problem) if (name := texts[key]) is not None]
        own = sorted(runs(problem.question, words))
        owners = [name for run in own if (name := shared[run]) is not None]
        if same:
            found.append(Overlap(problem.id, same[0], "exact", 1.0))
        elif owners:
            most, _ = min(Counter(owners).items(), key=lambda item: (-item[1], item[0]))
            found.append(Overlap(problem.id, most, "ngram", len(owners) / len(own)))
    return tuple(found)


def without_overlaps(
    train: Iterable[Problem], held_out: Iterable[Problem], kind: Kind, *, words: int = WORDS
) -> tuple[tuple[Problem, ...], dict[Kind, int]]:
    """Return the training problems that do not overlap with held-out ones, and the number left out by kind.

    "exact" leaves out training problems that equal a held-out problem. "ngram" also leaves out training
    problems that share an n-gram with one.

    >>> seen = [Problem("1", "What is 1+1?"), Problem("2", "what is $1 + 1$?"), Problem("3", "What is 2+2?")]
    >>> kept, left_out = without_overlaps(seen, seen[:1], "exact")
    >>> [problem.id for problem in kept], left_out
    (['3'], {'exact': 2, 'ngram': 0})
    """
    problems = tuple(held_out)
    texts = {key for problem in problems for key in _held_out_keys(problem)}
    asked = problems if kind == "ngram" else ()
    shared = {run for problem in asked for run in runs(problem.question, words)}
    kept: list[Problem] = []
    left_out: dict[Kind, int] = {"exact": 0, "ngram": 0}
    for problem in train:
        if not texts.isdisjoint(_train_keys(problem)):
            left_out["exact"] += 1
        elif shared and not shared.isdisjoint(runs(problem.question, words)):
            left_out["ngram"] += 1
        else:
            kept.append(problem)
    return tuple(kept), left_out


def runs(text: str, words: int = WORDS) -> set[int]:
    """Return a 64-bit hash of each distinct sequence of ``words`` words; case and punctuation are ignored.

    >>> len(runs("one two three one two three", words=2)), runs("too short")
    (3, set())
    """
    pieces = [word.encode() for word in _WORD.findall(text.casefold())]
    return {_hash(b" ".join(pieces[i : i + words])) for i in range(len(pieces) - words + 1)}


def overlap_line(overlaps: Sequence[Overlap], held_out: int, *, shown: int = 5) -> str:
    """Return one line about overlaps: their number, their kinds, and the ids of the ``shown`` largest.

    >>> overlap_line([Overlap("h1", "t", "ngram", 0.25), Overlap("h2", "t", "exact", 1.0)], 8)
    '2 of 8 held-out problems overlap with training (1 the same, 1 by 13-word runs): h2 (1.00), h1 (0.25)'
    """
    same = sum(overlap.kind == "exact" for overlap in overlaps)
    largest = sorted(overlaps, key=lambda overlap: -overlap.share)[:shown]
    named = ", ".join(f"{overlap.held_out} ({overlap.share:.2f})" for overlap in largest)
    return (
        f"{len(overlaps)} of {held_out} held-out problems overlap with training ({same} the same, "
        f"{len(overlaps) - same} by {WORDS}-word runs): {named}{', ...' if len(overlaps) > shown else ''}"
    )


def _held_out_keys(problem: Problem) -> tuple[int, ...]:
    """Return the keys of a held-out problem; the same training problem has one of these keys."""
    if problem.choices:
        return _key(problem), _key(problem, "no options")
    return (_key(problem, "any options"),)


def _train_keys(problem: Problem) -> tuple[int, ...]:
    own = _key(problem) if problem.choices else _key(problem, "no options")
    return (own, _key(problem, "any options"))


def _key(problem: Problem, kind: str = "these options") -> int:
    options = sorted(map(_plain, problem.choices)) if kind == "these options" else ()
    return _hash("\0".join((kind, _plain(problem.question), *options)).encode(errors="replace"))


def _plain(text: str) -> str:
    return _IGNORED.sub("", text.casefold())


def _hash(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big")
