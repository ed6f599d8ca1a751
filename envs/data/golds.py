r"""Parse the gold answer and the options of a row: one function for each format of a data set.

A function raises the row's error if the gold answer is missing, or if no reply could ever equal it.
"""

from __future__ import annotations

import json
import re
from ast import literal_eval
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import TypeAlias, cast
from warnings import catch_warnings, simplefilter

from debate.types import KINDS, Kind
from envs.answers.notation import clean, sides, spelling
from envs.answers.numbers import parse_number
from envs.answers.words import LETTERS, letter_alone, letter_of, normal_text, texts_of, tokens_of
from envs.data import questions
from envs.data.questions import any_tests
from envs.data.records import Record, as_text
from envs.errors import HALF_CHARACTER
from envs.grading.extraction import last_box
from envs.grading.limits import refusal

Choices: TypeAlias = tuple[str, ...]
Gold: TypeAlias = Callable[[Record, Choices], str]

ANSWER = ("answer", "expected_answer", "target")
CHOICE = ("answer", "correct", "answerKey")
# MATH problems whose solution ends in an empty box, after a proof that no number of a list is prime.
EMPTY_BOXES = {
    "For any integer $n>1$, the number of prime numbers greater than $n!+1$": "0",
    "You are given a sequence of $58$ terms; each term has the form $P+n$": "0",
}
NO_VALUES = frozenset(("nan", "inf", "+inf", "-inf"))  # text of floats that are not finite numbers
_LONGEST = 100_000

_INNER_DOLLARS = re.compile(r"(?<=\S)\$\s+\$(?=\S)")  # one published Minerva box leaves math mode
_LOST_MEMBER = re.compile(r"^[a-z](?=[(\[][^()\[\]]+[)\]]$)")  # one published interval was "t in (0, 4]"
_BARE_POINT = re.compile(r"(?<=\d)\.(?=/)")
_BRACE = re.compile(r"\\\\|\\[{}]|[{}]")
_AFTER_HASHES = re.compile(r"####\s*(.+?)\s*$")
_AIME = re.compile(r"\$?(\d{1,3})(?:\^\{?\\circ\}?|°)?\$?", re.ASCII)  # one 2025 answer has a degree sign
_OPTION = re.compile(r"(?:^|[,\s'\"\[])([a-j]) \)(?= )")
_COMMAND = re.compile(r"\\[A-Za-z]+")
_LETTER = re.compile(r"[^\W\d_]")


def fault_of(answer: str) -> str | None:
    r"""Return what makes a gold answer unusable, as the end of a sentence; None if the answer is usable.

    >>> [fault_of(gold) for gold in (r"\frac{1}{2}", "[0, 1)", "nan", r"\boxed{}", "$$")]
    [None, None, 'is not a finite number', 'is an empty box', 'holds no answer']
    >>> fault_of(r"\frac{1}{2"), fault_of("9^9^9^9")
    ('does not parse: its braces are not balanced', "does not parse: it breaks the grader's bound on tower")
    """
    box = last_box(answer)
    if answer.strip().lower() in NO_VALUES:
        return "is not a finite number"
    if box and not box.of(answer).strip():
        return "is an empty box"
    if not spelling(clean(answer)):
        return "holds no answer"
    meant = box.of(answer) if box else answer
    if bound := refusal(meant):
        return f"does not parse: it breaks the grader's bound on {bound}"
    depths = list(accumulate({"{": 1, "}": -1}.get(brace, 0) for brace in _BRACE.findall(meant)))
    balanced = not depths or (min(depths) >= 0 and depths[-1] == 0)
    return None if balanced else "does not parse: its braces are not balanced"


def _usable(row: Record, field: str, answer: str) -> str:
    if fault := fault_of(answer):
        raise row.error(field, fault, answer)
    return answer


def plain(row: Record, choices: Choices) -> str:
    """Return the answer field unchanged, or the letter of the right choice if there are choices."""
    text = row.text("answer", *ANSWER)
    return choice(row, choices) if choices else _usable(row, row.field("answer", *ANSWER), text)


def gsm8k(row: Record, choices: Choices) -> str:
    """Return the number after the last ``####``, or a bare number, without commas."""
    text = row.text("answer", "answer")
    answer = (match[1] if (match := _AFTER_HASHES.search(text)) else text).replace(",", "")
    if parse_number(answer) is None:
        fault = "has no number after '####'; is it of another data set?"
        raise row.error(row.field("answer", "answer"), fault, text)
    return answer


def math(row: Record, choices: Choices) -> str:
    """Return the solution's last box; return the answer field if that is mapped or there is no box.

    The box comes first because in some copies of MATH the answer field has lost the rows of matrices.
    """
    solution = row.find("solution", "solution")
    text = solution[1] if solution and isinstance(solution[1], str) else ""
    answer = box.of(text).strip() if (box := last_box(text)) else ""
    if answer and fault_of(answer) is None and "answer" not in row.renamed:
        return answer
    given = row.find("answer", "answer")
    if given is None or given[1] is None or not str(given[1]).strip():
        return boxed(row, choices)
    return _usable(row, given[0], row.text("answer", "answer"))


def boxed(row: Record, choices: Choices) -> str:
    """Return the contents of the solution's last box."""
    solution = row.text("solution", "solution", "answer")
    answer = box.of(solution).strip() if (box := last_box(solution)) else ""
    if not answer:
        question = row.text("question", "problem", "question")
        answer = next((gold for start, gold in EMPTY_BOXES.items() if question.startswith(start)), "")
    if not answer:
        raise row.error("answer", "is empty, and so is the box of the solution", solution[-60:])
    return _usable(row, row.field("solution", "solution", "answer"), answer)


def minerva(row: Record, choices: Choices) -> str:
    """Return the solution's last box, with Python rewritten as LaTeX; the answer field if there is none."""
    if row.find("solution", "solution") is None:
        return plain(row, ())
    answer = _INNER_DOLLARS.sub(" ", boxed(row, choices))
    return _BARE_POINT.sub("", answer.replace("np.arcsin", r"\arcsin"))


def expected(row: Record, choices: Choices) -> str:
    """Return the expected or final answer; raise the row's error for "n/a"."""
    names = ("expected_answer", "final_answer")
    text, field = row.text("answer", *names), row.field("answer", *names)
    if text.lower() == "n/a":
        raise row.error(field, "says that there is no answer", text)
    return _usable(row, field, text)


def aime(row: Record, choices: Choices) -> str:
    """Return an integer in 0..999 without leading zeros."""
    names = ("answer", "expected_answer")
    text = row.text("answer", *names)
    digits = _AIME.fullmatch(text)
    if digits is None:
        raise row.error(row.field("answer", *names), "is not an AIME answer, an integer in 0..999", text)
    return str(int(digits[1]))


def number(row: Record, choices: Choices) -> str:
    """Return a plain number."""
    text = row.text("answer", "answer", "Answer")
    if parse_number(text) is None:
        raise row.error(row.field("answer", "answer", "Answer"), "is not a number", text)
    return text


def olympiad(row: Record, choices: Choices) -> str:
    """Return the final answers without dollar signs, joined by commas."""
    value, field = row.value("answer", "final_answer"), row.field("answer", "final_answer")
    parts = [part.strip() for part in value if isinstance(part, str)] if isinstance(value, Sequence) else []
    answer = ", ".join(part.replace("$", "") for part in parts if part)
    if row.values.get("answer_type") == "Interval":
        answer = _LOST_MEMBER.sub("", answer)
    if not answer:
        raise row.error(field, "is empty", value)
    return _usable(row, field, answer)


def ground_truth(row: Record, choices: Choices) -> str:
    """Return the gold of an Open-Instruct row: an answer, or constraints.

    Constraints are a function with arguments (RLVR-IFeval) or lists of both (IF multi-constraints).
    """
    kind, field = questions.task(row), row.field("answer", "ground_truth")
    if kind != "instructions":
        text = row.text("answer", "ground_truth")
        if kind == "number" and parse_number(sides(clean(text))[-1]) is None:
            raise row.error(field, "is not a number", text)
        return _usable(row, field, text)
    value = _unpacked(row.value("answer", "ground_truth"))
    if not isinstance(value, Mapping) or not ({"func_name", "instruction_id"} & set(value)):
        raise row.error(field, "needs an object with 'func_name' or 'instruction_id'", value)
    named = dict(cast("Mapping[str, object]", value))
    pair = (named.get("instruction_id"), named.get("kwargs"))
    if "func_name" in named:
        pair = ([named.pop("func_name")], [named])
    from envs.instructions.constraints import ConstraintError, write_constraints

    try:
        return write_constraints(*pair)
    except ConstraintError as fault:
        raise row.error(field, f"{fault.field}: {fault.problem}", fault.value) from fault


def _unpacked(value: object) -> object:
    """Return the value of a JSON text or Python literal, and unwrap lists that hold one item."""
    if isinstance(value, str):
        value = _literal(value)
    return _unpacked(value[0]) if isinstance(value, list) and len(value) == 1 else value


def _literal(text: str) -> object:
    """Return the value of a literal without running code; the text itself if it is not a literal."""
    for read in (json.loads, literal_eval) if len(text) <= _LONGEST else ():
        with suppress(ValueError, SyntaxError, TypeError, RecursionError, MemoryError), catch_warnings():
            simplefilter("ignore")  # ignore the parser's warnings about the text
            return read(text)
    return text


def verl_truth(row: Record, choices: Choices) -> str:
    """Return ``reward_model.ground_truth``, or its first text if it is a JSON list of accepted texts."""
    model, field = row.value("answer", "reward_model"), row.field("answer", "reward_model")
    truth = model.get("ground_truth") if isinstance(model, Mapping) else model
    if isinstance(truth, str) and truth.lstrip().startswith("["):
        listed = _literal(truth)
        truth = listed[0] if isinstance(listed, list) and listed and isinstance(listed[0], str) else truth
    if not isinstance(truth, str) or not truth.strip():
        raise row.error(field, "needs an object with a text 'ground_truth'", model)
    return _usable(row, field, truth.strip())


def choice(row: Record, choices: Choices) -> str:
    """Return the letter of the right option, given as a letter, an index from 0, or the option's text."""
    text, field = row.text("answer", *CHOICE), row.field("answer", *CHOICE)
    alone, others = letter_alone(text, choices), texts_of(text, choices)
    if alone and others and alone not in others:
        fault = f"is a letter and also the text of option {others[0]}; give the option's index from 0"
        raise row.error(field, fault, text)
    if re.fullmatch(r"\d", text) and text not in choices and int(text) < len(choices):
        return LETTERS[int(text)]
    letter = letter_of(text, choices)
    if letter is None:
        raise row.error(field, f"is none of the {len(choices)} choices", text)
    return letter


def letter(row: Record, choices: Choices) -> str:
    """Return the letter of the right option. Refuse an option's text, because a text may be "b"."""
    text = row.text("answer", "correct", "answer").upper()
    if len(text) != 1 or text not in LETTERS[: len(choices)]:
        field = row.field("answer", "correct", "answer")
        raise row.error(field, f"is not a letter of {len(choices)} choices", text)
    return text


def choice_by_index(row: Record, choices: Choices) -> str:
    """Return the letter of the option whose index (from 0) the row has."""
    text = row.text("answer", "answer")
    if not re.fullmatch(r"\d", text) or int(text) >= len(choices):
        fault = f"is not an index into the {len(choices)} choices"
        raise row.error(row.field("answer", "answer"), fault, text)
    return LETTERS[int(text)]


def first(row: Record, choices: Choices) -> str:
    """Return the letter of the first option, because rows list the right option first."""
    return LETTERS[0]


def arc_letter(row: Record, choices: Choices) -> str:
    """Return the letter of the option with the row's label: "3" is the third of the labels 1, 2, 3, 4."""
    key = row.text("answer", "answerKey")
    labels = [label for label, _ in _arc_options(row)]
    if labels.count(key) != 1:
        raise row.error(row.field("answer", "answerKey"), f"is none of the labels {', '.join(labels)}", key)
    return LETTERS[labels.index(key)]


def listed_choices(row: Record) -> Choices:
    """Return options from a list, without a leading "A)"."""
    value = row.value("choices", "choices", "options")
    if isinstance(value, str):
        return spelled_choices(row)
    parts = value if isinstance(value, Sequence) else []
    if len(parts) < 2:
        raise row.error("choices", "needs at least two options", value)
    return tuple(re.sub(r"^\(?[A-J]\)\s*", "", str(part)).strip() for part in parts)


def spelled_choices(row: Record) -> Choices:
    """Return options from one string such as ``a ) 12 , b ) 16``; some rows repeat a letter."""
    value = row.text("choices", "options", "choices")
    pieces = _OPTION.split(" " + value.strip(" []'\""))[1:]
    options = {letter: text.strip(" ,'\"]") for letter, text in zip(pieces[::2], pieces[1::2], strict=True)}
    if "".join(options) != LETTERS[: len(options)].lower() or not all(options.values()):
        raise row.error("choices", "cannot be split into options a, b, c, ...", value)
    return tuple(options.values())


def right_first(row: Record) -> Choices:
    """Return GPQA's right answer and then its three wrong answers."""
    names = ("Correct Answer", *(f"Incorrect Answer {number}" for number in (1, 2, 3)))
    return tuple(row.text("choices", name) for name in names)


def arc_choices(row: Record) -> Choices:
    """Return the options' texts, in the order of their labels in the row."""
    return tuple(text for _, text in _arc_options(row))


def _arc_options(row: Record) -> list[tuple[str, str]]:
    """Return the (label, text) pairs of an ARC row: the hub has two lists, the original file nested pairs."""
    nested = row.values.get("question")
    value = nested.get("choices") if isinstance(nested, Mapping) else row.value("choices", "choices")
    pairs: list[tuple[object, object]] = []
    if isinstance(value, Mapping):
        labels, texts = value.get("label"), value.get("text")
        if isinstance(labels, list) and isinstance(texts, list) and len(labels) == len(texts):
            pairs = list(zip(labels, texts, strict=True))
    elif isinstance(value, Sequence):
        parts = [part for part in value if isinstance(part, Mapping) and {"label", "text"} <= set(part)]
        pairs = [(part["label"], part["text"]) for part in parts]
    if not 2 <= len(pairs) <= len(LETTERS):
        raise row.error("choices", f"needs 2 to {len(LETTERS)} options, each with label and text", value)
    return [(str(label), str(text)) for label, text in pairs]


def own_kind(row: Record) -> Kind | None:
    """Return the kind that a user's row names, or "instructions" if the row has constraints; else None.

    A field "kind" that is assigned to another noun (``fields={"subject": "kind"}``) is ignored.
    """
    taken = "kind" not in row.renamed and "kind" in row.renamed.values()
    named = None if taken else row.find("kind", "kind")
    if named is None and "kind" in row.renamed:
        raise row.error(row.renamed["kind"], "is missing")
    if named is None or named[1] is None:
        return "instructions" if row.values.get("instruction_id_list") is not None else None
    if named[1] not in KINDS:
        valid = f"valid: {', '.join(KINDS)}; or read it as something else, fields={{'subject': 'kind'}}"
        raise row.error(named[0], f"is not a kind of problem; {valid}", named[1])
    return cast(Kind, named[1])


def own_number(row: Record, choices: Choices) -> str:
    """Return the answer field, which must be a number."""
    answer = plain(row, ())
    if parse_number(sides(clean(answer))[-1]) is None:
        raise row.error(row.field("answer", *ANSWER), "is not a number", answer)
    return answer


def text(row: Record, choices: Choices) -> str:
    """Return the accepted texts, one per line, from a text or a list of texts."""

    def fault(item: str) -> str | None:
        if not normal_text(item):
            return "is nothing but articles and punctuation; kind 'verbatim' compares these as well"
        if parse_number(clean(item)) and not _LETTER.search(_COMMAND.sub("", item)):
            return "is a number: kind 'number' compares its value, kind 'verbatim' its every character"
        return None

    return "\n".join(" ".join(item.split()) for item in _texts(row, fault))


def verbatim(row: Record, choices: Choices) -> str:
    """Return the accepted texts unchanged, one per line, from a text or a list of texts."""
    fault = "holds a line break, which no box can"
    return "\n".join(_texts(row, lambda item: fault if "\n" in item else None))


def overlap(row: Record, choices: Choices) -> str:
    """Return the accepted texts, one per line, with line breaks as blanks; each text must have words."""
    fault = "has no word to overlap with, but articles and punctuation"
    items = _texts(row, lambda item: None if tokens_of(item) else fault)
    return "\n".join(" ".join(item.split()) for item in items)


def _texts(row: Record, fault_of: Callable[[str], str | None]) -> list[str]:
    value, field = row.value("answer", *ANSWER), row.field("answer", *ANSWER)
    items = [as_text(item) for item in (value if isinstance(value, list | tuple) else [value])]
    texts = [item for item in items if item]
    if not items or len(texts) < len(items):
        raise row.error(field, "needs a text or a list of texts, none of them empty", value)
    if any(map(HALF_CHARACTER.search, texts)):
        raise row.error(field, "contains half a character (a lone surrogate)", value)
    for item in texts:
        if fault := fault_of(item):
            raise row.error(field, fault, item)
    return texts


def instructions(row: Record, choices: Choices) -> str:
    """Return IFEval's two fields as one JSON text, with every instruction and argument validated."""
    from envs.instructions.constraints import FIELDS, ConstraintError, write_constraints

    given = [row.value(field, field) for field in FIELDS]
    try:
        return write_constraints(*given)
    except ConstraintError as fault:
        name = row.find("id", "id", "key")
        of = f" (row {as_text(name[1])})" if name else ""
        raise row.error(fault.field, fault.problem + of, fault.value) from fault


OWN: Mapping[Kind, Gold] = {
    "number": own_number,
    "expression": lambda row, choices: plain(row, ()),
    "choice": choice,
    "text": text,
    "verbatim": verbatim,
    "overlap": overlap,
    "instructions": instructions,
    "code": any_tests,
}
"""The parser of the gold answer by kind, for rows that name their kind; open rows have no gold answer."""
