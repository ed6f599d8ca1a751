"""Read multiple-choice rows: the options and the letter of the right one, as each data set has them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from envs.answers.choices import LETTERS, letter_alone, letter_of, texts_of
from envs.data.records import Record

_OPTION = re.compile(r"(?:^|[,\s'\"\[])([a-j]) \)(?= )")


def choice(row: Record, choices: tuple[str, ...]) -> str:
    """The letter of the right option, from a letter, an index from 0, or the option's text.

    The row's error for a letter that is also the text of another option: it may mean either.
    """
    text = row.text("answer", "answer", "correct", "answerKey")
    alone, others = letter_alone(text, choices), texts_of(text, choices)
    if alone and others and alone not in others:
        fault = f"is a letter and also the text of option {others[0]}; give the option's index from 0"
        raise row.error(row.field("answer", "answer", "correct", "answerKey"), fault, text)
    if re.fullmatch(r"\d", text) and text not in choices and int(text) < len(choices):
        return LETTERS[int(text)]
    letter = letter_of(text, choices)
    if letter is None:
        field = row.field("answer", "answer", "correct", "answerKey")
        raise row.error(field, f"is none of the {len(choices)} choices", text)
    return letter


def letter(row: Record, choices: tuple[str, ...]) -> str:
    """The letter of the right option; never an option's text, as "b" may be one too."""
    text = row.text("answer", "correct", "answer").upper()
    if len(text) != 1 or text not in LETTERS[: len(choices)]:
        raise row.error(
            row.field("answer", "correct", "answer"), f"is not a letter of {len(choices)} choices", text
        )
    return text


def choice_by_index(row: Record, choices: tuple[str, ...]) -> str:
    """The letter of the option whose index from 0 the row gives."""
    text = row.text("answer", "answer")
    if not re.fullmatch(r"\d", text) or int(text) >= len(choices):
        raise row.error(
            row.field("answer", "answer"), f"is not an index into the {len(choices)} choices", text
        )
    return LETTERS[int(text)]


def listed_choices(row: Record) -> tuple[str, ...]:
    """Options given as a list; a leading "A)" is taken off."""
    value = row.value("choices", "choices", "options")
    if isinstance(value, str):
        return spelled_choices(row)
    texts = (
        [re.sub(r"^\(?[A-J]\)\s*", "", str(part)).strip() for part in value]
        if isinstance(value, Sequence)
        else []
    )
    if len(texts) < 2:
        raise row.error("choices", "needs at least two options", value)
    return tuple(texts)


def right_first(row: Record) -> tuple[str, ...]:
    """GPQA's right answer, then its three wrong ones."""
    names = ("Correct Answer", *(f"Incorrect Answer {number}" for number in (1, 2, 3)))
    return tuple(row.text("choices", name) for name in names)


def first(row: Record, choices: tuple[str, ...]) -> str:
    """The letter of the first option, before they are shuffled."""
    return LETTERS[0]


def spelled_choices(row: Record) -> tuple[str, ...]:
    """Options in one string: ``a ) 12 , b ) 16``, some of them with the letter twice."""
    value = row.text("choices", "options", "choices")
    pieces = _OPTION.split(" " + value.strip(" []'\""))[1:]
    options: dict[str, str] = {}
    for letter, text in zip(pieces[::2], pieces[1::2], strict=True):
        options[letter] = text.strip(" ,'\"]")
    if "".join(options) != LETTERS[: len(options)].lower() or not all(options.values()):
        raise row.error("choices", "cannot be split into options a, b, c, ...", value)
    return tuple(options.values())


def arc_choices(row: Record) -> tuple[str, ...]:
    """The options' texts, in the order of their labels in the row."""
    return tuple(text for _, text in _arc_options(row))


def arc_letter(row: Record, choices: tuple[str, ...]) -> str:
    """The letter of the option whose label the key names: "3" is the third of 1, 2, 3, 4."""
    key = row.text("answer", "answerKey")
    labels = [label for label, _ in _arc_options(row)]
    if labels.count(key) != 1:
        raise row.error(row.field("answer", "answerKey"), f"is none of the labels {', '.join(labels)}", key)
    return LETTERS[labels.index(key)]


def _arc_options(row: Record) -> list[tuple[str, str]]:
    """Return the (label, text) pairs: the hub has columns, the original file nests them in the question."""
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
    """Return the rows of the columns "label" and "text"; none if the lengths differ."""
    labels, texts = columns.get("label"), columns.get("text")
    if not (isinstance(labels, list) and isinstance(texts, list) and len(labels) == len(texts)):
        return []
    return [{"label": label, "text": text} for label, text in zip(labels, texts, strict=True)]
