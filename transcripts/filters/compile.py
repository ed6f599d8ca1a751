"""Compile a filter's tree to SQL with parameters. Values are interpreted, or refused, here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil, floor
from typing import TypeAlias

from debate.settings import did_you_mean
from transcripts.filters.fields import FIELDS, Field
from transcripts.filters.parse import All, FilterError, Node, Not, Term, Value, parse
from transcripts.index.database import MOST_DEBATES, key_of

Parameter: TypeAlias = str | int | float
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", re.ASCII)
ID = re.compile(r"([0-9]{1,11})\.([0-9]{1,7})", re.ASCII)
BIGGEST = 2**63 - 1
MOST_TERMS = 200


@dataclass(frozen=True, slots=True)
class Query:
    """A filter as SQL: ``where``, over the table debates, and its ``parameters``.

    ``match``: the FTS5 expression that every debate's text must match, or None. ``words``: all texts searched
    for, to highlight them.
    """

    text: str
    where: str
    parameters: tuple[Parameter, ...]
    match: str | None = None
    words: tuple[str, ...] = ()


def compile_filter(text: str) -> Query:
    """Return the query of a filter. FilterError points at the invalid character.

    >>> compile_filter("winner:wrong malformed:>0").where
    'winner = 2 AND malformed > ?'
    """
    compiler, node = _Compiler(text), parse(text)
    parts = list(node.parts) if isinstance(node, All) else [node]
    searched = [part for part in parts if isinstance(part, Term) and compiler.field_of(part).kind == "words"]
    others = [compiler.sql(part) for part in parts if part not in searched]
    phrases = [compiler.phrase(term) for term in searched]
    checks = [check for term in searched if (check := compiler.as_written(term))]
    where = " AND ".join([*others, *checks]) or "1"
    match = " AND ".join(phrases) or None
    return Query(text, where, tuple(compiler.parameters), match, tuple(compiler.words))


class _Compiler:
    """Compiles the nodes of one filter and collects its parameters in order."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.parameters: list[Parameter] = []
        self.words: list[str] = []
        self._terms = 0

    def _error(self, problem: str, at: int) -> FilterError:
        return FilterError(problem, self.text, at)

    def _take(self, value: Parameter) -> str:
        self.parameters.append(value)
        return "?"

    def field_of(self, term: Term) -> Field:
        """Return the field of a term. FilterError suggests the nearest name if there is none."""
        name = term.field.lower()
        if name not in FIELDS:
            hint = did_you_mean(name, FIELDS, f"fields: {', '.join(FIELDS)}")
            raise self._error(f"unknown field {term.field!r}; {hint}", term.start)
        return FIELDS[name]

    def sql(self, node: Node) -> str:
        """Return the SQL condition of a node. A missing value fulfils no condition except ``none``."""
        if isinstance(node, Not):
            return f"NOT coalesce({self.sql(node.part)}, 0)"
        if isinstance(node, Term):
            return self._term(node)
        joined = (" AND " if isinstance(node, All) else " OR ").join(self.sql(part) for part in node.parts)
        return f"({joined})" if node.parts else "1"

    def _term(self, term: Term) -> str:
        self._terms += 1
        if self._terms > MOST_TERMS:
            raise self._error(f"a filter may have at most {MOST_TERMS} terms", term.start)
        field = self.field_of(term)
        if field.kind in ("number", "step"):
            return self._number_term(field, term)
        value = self._only_value(field, term)
        if field.kind == "id":
            return f"{field.sql} = {self._take(self._key(value))}"
        if field.kind == "word":
            return self._word(field, value)
        if field.kind == "name":
            return field.sql.format(self._name(value))
        found = "SELECT d.key, d.line FROM words JOIN documents d ON d.document = words.rowid"
        phrase = f"(debates.key, debates.line) IN ({found} WHERE words MATCH {self._take(self.phrase(term))})"
        check = self.as_written(term)
        return f"({phrase} AND {check})" if check else phrase

    def _only_value(self, field: Field, term: Term) -> Value:
        value = term.values[0] or term.values[-1]
        assert value is not None
        if term.op == "..":
            return Value(self.text[term.start + len(term.field) + 1 :].split()[0], value.start)
        if term.op != "=":
            raise self._error(
                f"{field.name} cannot be compared; write {field.example}", value.start - len(term.op)
            )
        return value

    def _key(self, value: Value) -> int:
        match = ID.fullmatch(value.text)
        if match is None or int(match[2]) >= MOST_DEBATES:
            raise self._error(f"expected STEP.INDEX as in id:12.3, got {value.text!r}", value.start)
        return key_of(int(match[1]), int(match[2]))

    def _word(self, field: Field, value: Value) -> str:
        words = {word.lower(): condition for word, condition in field.words.items()}
        if value.text.lower() in words:
            return words[value.text.lower()]
        hint = did_you_mean(value.text.lower(), words, "")
        fault = f"{field.name} must be one of {', '.join(field.words)}; got {value.text!r}"
        raise self._error(f"{fault}; {hint}" if hint else fault, value.start)

    def _name(self, value: Value) -> str:
        """Return the comparison with a name. Without quotes, * stands for any characters."""
        plain = value.text.encode("utf-8", "replace").decode("utf-8")
        if value.quoted or "*" not in plain:
            return f"= {self._take(plain)}"
        pattern = re.sub(r"([?[])", r"[\1]", plain)
        return f"GLOB {self._take(pattern)}"

    def _number_term(self, field: Field, term: Term) -> str:
        first = term.values[0]
        if term.op == "=" and first is not None and field.absent and first.text.lower() == "none":
            return f"{field.sql} IS NULL"
        if term.op != "..":
            assert first is not None
            return self._compared(field, term.op, self._number(field, first))
        low, high = term.values
        bounds = [(op, value) for op, value in ((">=", low), ("<=", high)) if value is not None]
        if not bounds:
            raise self._error("a range needs a number before or after '..'", term.start + len(term.field) + 1)
        numbers = [(op, self._number(field, value)) for op, value in bounds]
        return "(" + " AND ".join(self._compared(field, op, number) for op, number in numbers) + ")"

    def _compared(self, field: Field, op: str, number: int | float) -> str:
        if field.kind == "number":
            return f"{field.sql} {op} {self._take(number)}"
        if op == "=":
            return f"({self._compared(field, '>=', number)} AND {self._compared(field, '<=', number)})"
        upper = op in ("<", "<=")  # keys grow with steps, so a step is a range of keys
        step = ceil(number) if op in (">=", "<") else floor(number) + 1
        key = key_of(min(max(step, 0), 2**38), 0)
        return f"{field.sql} {'<' if upper else '>='} {self._take(key)}"

    def _number(self, field: Field, value: Value) -> int | float:
        if not NUMBER.fullmatch(value.text):
            absent = ", or none" if field.absent else ""
            hint = f"{field.name} takes a number{absent}, as in {field.example}"
            raise self._error(f"{hint}; got {value.text!r}", value.start)
        try:
            number = int(value.text)
        except ValueError:
            number = float(value.text)
        if not abs(number) <= BIGGEST:  # also if it is infinite
            raise self._error(f"{value.text} is too large", value.start)
        return number

    def phrase(self, term: Term) -> str:
        """Return the words of a text term in FTS5 syntax."""
        value = self._only_value(self.field_of(term), term)
        words = value.text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")
        if not any(character.isalnum() for character in words):
            raise self._error("text needs at least one letter or digit to search for", value.start)
        self.words.append(words)
        prefix = " *" if words.endswith("*") else ""
        return '"' + words.replace('"', '""') + '"' + prefix

    def as_written(self, term: Term) -> str:
        """Return a check that the text occurs exactly as written, or "" if it consists only of words."""
        value = self._only_value(self.field_of(term), term)
        wanted = plain_words(value.text.removesuffix("*"))
        if wanted.replace(" ", "").isalnum():
            return ""
        searched = wanted.encode("utf-8", "replace").decode("utf-8")
        return f"holds(debates.key, debates.start, {self._take(searched)})"


def plain_words(text: str) -> str:
    r"""Return a text for comparison: runs of whitespace become one blank, and case is folded.

    >>> plain_words("So\n  \\Boxed{4}")
    'so \\boxed{4}'
    """
    return " ".join(text.split()).casefold()
