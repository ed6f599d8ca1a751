"""Parse a filter: terms joined by blanks, OR, parentheses, and ``-`` or NOT before a negated part.

filter = all (OR all)*       all = (words | part)+     part = (- | NOT) part | ( filter ) | term
term   = field : [> >= < <= =] value | field : [value] .. [value]
value  = "anything; a quote is doubled" | characters up to a blank or a closing parenthesis
words  = words without a field, quote or sign of their own, which are searched for together as text:"words"
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias


class FilterError(ValueError):
    """A filter cannot be parsed. ``position`` is a character index from 0, which the message points at."""

    def __init__(self, problem: str, text: str, position: int) -> None:
        super().__init__(problem)
        self.problem, self.text, self.position = problem, text, position

    def __str__(self) -> str:
        return f"filter, character {self.position}: {self.problem}\n{self.shown()}"

    def shown(self) -> str:
        """Return the filter and a caret under the character, in two lines. A long filter is cut around it."""
        start = max(0, self.position - 60)
        piece = self.text[start : self.position + 40]
        line = "".join(c if c.isprintable() else " " for c in piece)
        return f"  {line}\n  {' ' * (self.position - start)}^"


@dataclass(frozen=True, slots=True)
class Value:
    """One value as written. ``quoted`` values have no wildcard. ``start``: the index at which it begins."""

    text: str
    start: int
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Term:
    """``field:value``. ``op`` is "=", "<", "<=", ">", ">=", or ".." with two ``values`` (None: open)."""

    field: str
    op: str
    values: tuple[Value | None, ...]
    start: int


@dataclass(frozen=True, slots=True)
class Not:
    """Matches what its part does not match."""

    part: Node


@dataclass(frozen=True, slots=True)
class All:
    """Matches what all of its parts match; everything without parts."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Any:
    """Matches what at least one of its parts matches."""

    parts: tuple[Node, ...]


Node: TypeAlias = Term | Not | All | Any


LONGEST, DEEPEST = 10_000, 50
BLANKS = re.compile(r"\s*")
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.]*")
OPERATOR = re.compile(r">=|<=|>|<|=")
OR = re.compile(r"OR(?=[ \t\n()]|\Z)\s*")
NOT = re.compile(r"NOT(?=[ \t\n()]|\Z)\s*|-")
_WORD = r"(?!(?:OR|NOT)(?:[\s()]|$))[\w\\][^\s():\"]*+(?=[\s)]|$)"
WORD = re.compile(_WORD)
WORDS = re.compile(rf"{_WORD}(?:\s++{_WORD})*+")
QUOTED = re.compile(r'"((?:[^"]|"")*)"')


def quoted(value: str) -> str:
    r"""Return a value as a filter writes it, in quotes unless it is one plain word.

    >>> quoted("Skeptic"), quoted("Devil's Advocate")
    ('Skeptic', '"Devil\'s Advocate"')
    """
    return value if re.fullmatch(r"\w+", value) else '"' + value.replace('"', '""') + '"'


def parse(text: str) -> Node:
    """Return the tree of a filter. FilterError points at the character that cannot be parsed.

    >>> parse("Target 17").parts[0]
    Term(field='text', op='=', values=(Value(text='Target 17', start=0, quoted=True),), start=0)
    >>> parse("step:>200").parts[0]
    Term(field='step', op='>', values=(Value(text='200', start=6, quoted=False),), start=0)
    """
    if len(text) > LONGEST:
        raise FilterError(f"a filter may have at most {LONGEST} characters", text, LONGEST)
    reader = _Reader(text)
    node = reader.alternatives(0)
    if reader.at < len(text):
        raise FilterError("this parenthesis was never opened", text, reader.at)
    return node


class _Reader:
    """Parses from left to right. ``at`` is the index of the next character."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self._take(BLANKS)

    def _error(self, problem: str, at: int | None = None) -> FilterError:
        return FilterError(problem, self.text, self.at if at is None else at)

    def _take(self, pattern: re.Pattern[str]) -> str | None:
        match = pattern.match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        return match[0]

    def alternatives(self, depth: int) -> Node:
        """Parse parts joined by OR, up to a closing parenthesis or the end."""
        parts = [self._all(depth)]
        while True:
            start = self.at
            if self._take(OR) is None:
                return parts[0] if len(parts) == 1 else Any(tuple(parts))
            following = self._all(depth)
            if All(()) in (parts[-1], following):
                raise self._error("OR needs something on both sides", start)
            parts.append(following)

    def _all(self, depth: int) -> All:
        parts = list[Node]()
        while self.at < len(self.text) and self.text[self.at] != ")" and not OR.match(self.text, self.at):
            start = self.at
            if words := self._take(WORDS):
                parts.append(Term("text", "=", (Value(words, start, quoted=True),), start))
            else:
                parts.append(self._part(depth))
            self._take(BLANKS)
        return All(tuple(parts))

    def _part(self, depth: int) -> Node:
        if depth > DEEPEST:
            raise self._error(f"more than {DEEPEST} levels of parentheses and negations")
        start = self.at
        if self._take(NOT) is not None:
            if self.at == len(self.text) or self.text[self.at] == ")":
                raise self._error("there is nothing to negate", start)
            return Not(self._part(depth + 1))
        if self.text[self.at] != "(":
            word = self._take(WORD)
            at = start if word is None else self.at - len(word)
            return Term("text", "=", (Value(word, at, quoted=True),), at) if word else self._term()
        self.at += 1
        self._take(BLANKS)
        node = self.alternatives(depth + 1)
        if self.text[self.at : self.at + 1] != ")":
            raise self._error("this parenthesis is never closed", start)
        self.at += 1
        return node

    def _term(self) -> Term:
        start = self.at
        name = self._take(NAME)
        if name is None:
            raise self._error('expected field:value, as in winner:wrong; to search words: text:"..."')
        if self.text[self.at : self.at + 1] != ":":
            hint = f'as in winner:wrong; to search words: text:"{name}"'
            raise self._error(f"expected a colon and a value after {name!r}, {hint}")
        self.at += 1
        operator = self._take(OPERATOR)
        value = self._value()
        if operator is None and not value.quoted and ".." in value.text:
            low, _, high = value.text.partition("..")
            second = Value(high, value.start + len(low) + 2) if high else None
            return Term(name, "..", (Value(low, value.start) if low else None, second), start)
        if not value.text and not value.quoted:
            raise self._error(f"expected a value after {self.text[start : self.at]!r}")
        return Term(name, operator or "=", (value,), start)

    def _value(self) -> Value:
        start = self.at
        if self.text[start : start + 1] != '"':
            return Value(self._bare(), start)
        quoted = self._take(QUOTED)
        if quoted is None:
            raise self._error("this quote is never closed")
        if self.text[self.at : self.at + 1] not in ("", ")") and not self.text[self.at].isspace():
            raise self._error("expected a blank after the closing quote (a quote within is doubled)")
        return Value(quoted[1:-1].replace('""', '"'), start, quoted=True)

    def _bare(self) -> str:
        """Take characters up to a blank or an unmatched closing parenthesis."""
        start, depth = self.at, 0
        while self.at < len(self.text) and not self.text[self.at].isspace():
            character = self.text[self.at]
            depth += (character == "(") - (character == ")")
            if depth < 0:
                break
            self.at += 1
        return self.text[start : self.at]
