"""Read sets whose answers are texts: continuations of articles, and writing that only peers judge."""

from __future__ import annotations

import re

from envs.data.records import Record, as_text

SHOWN, CONTINUED = 100, 50
"""Words of an article that are shown, and words of it that follow."""

_WORD = re.compile(r"\S+")
_TOKENIZED = re.compile(r" @([-,.])@ ")
_BEFORE = re.compile(r" +([,.;:!?%)\]])")
_BEHIND = re.compile(r"([(\[]) +")


def is_long(row: Record) -> bool:
    """Whether a row is a paragraph with words enough to show and to continue, and no heading."""
    text = row.values.get("text")
    return isinstance(text, str) and len(_WORD.findall(text)) >= SHOWN + CONTINUED


def shown(row: Record) -> str:
    """The first words of a paragraph, behind the request to continue it."""
    return f"Continue this text by about {CONTINUED} words:\n\n{_plain(_words(row)[:SHOWN])}"


def continuation(row: Record, choices: tuple[str, ...]) -> str:
    """The words that follow."""
    return _plain(_words(row)[SHOWN : SHOWN + CONTINUED])


def _words(row: Record) -> list[str]:
    return _TOKENIZED.sub(r"\1", row.text("question", "text")).split()


def _plain(words: list[str]) -> str:
    """Return words as they are printed: WikiText sets punctuation apart."""
    return _BEHIND.sub(r"\1", _BEFORE.sub(r"\1", " ".join(words)))


def request(row: Record) -> str:
    """HelloBench's and WritingBench's request."""
    return row.text("question", "chat_prompt", "query")


def no_truth(row: Record, choices: tuple[str, ...]) -> str:
    """Nothing: a writing task has no answer."""
    raise row.error("answer", "is not looked for in an open set", as_text(row.values.get("id")))
