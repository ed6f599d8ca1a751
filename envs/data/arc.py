"""ARC's rows: the hub's columns, and the original file's nested ones; options labelled A-E or 1-5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from envs.answers.choices import LETTERS
from envs.data.records import Record


def question(row: Record) -> str:
    """The question's text; the original file keeps it in the question's "stem"."""
    value = row.value("question", "question")
    stem = value.get("stem") if isinstance(value, Mapping) else None
    return stem.strip() if isinstance(stem, str) and stem.strip() else row.text("question", "question")


def choices(row: Record) -> tuple[str, ...]:
    """The options' texts, in the order of their labels in the row."""
    return tuple(text for _, text in _options(row))


def gold(row: Record, choices: tuple[str, ...]) -> str:
    """The letter of the option whose label the key names: "3" is the third of 1, 2, 3, 4."""
    key = row.text("answer", "answerKey")
    labels = [label for label, _ in _options(row)]
    if labels.count(key) != 1:
        raise row.error(row.field("answer", "answerKey"), f"is none of the labels {', '.join(labels)}", key)
    return LETTERS[labels.index(key)]


def _options(row: Record) -> list[tuple[str, str]]:
    """The (label, text) pairs of a row."""
    nested = row.values.get("question")
    value = nested.get("choices") if isinstance(nested, Mapping) else row.value("choices", "choices")
    parts = _transposed(value) if isinstance(value, Mapping) else value
    pairs = [
        (str(part["label"]), str(part["text"]))
        for part in (parts if isinstance(parts, Sequence) else ())
        if isinstance(part, Mapping) and {"label", "text"} <= set(part)
    ]
    if not 2 <= len(pairs) <= len(LETTERS):
        raise row.error("choices", f"needs 2 to {len(LETTERS)} options, each with label and text", value)
    return pairs


def _transposed(columns: Mapping[str, object]) -> list[dict[str, object]]:
    """Rows of the columns "label" and "text"; none where they do not fit together."""
    labels, texts = columns.get("label"), columns.get("text")
    if not (isinstance(labels, list) and isinstance(texts, list) and len(labels) == len(texts)):
        return []
    return [{"label": label, "text": text} for label, text in zip(labels, texts, strict=True)]
