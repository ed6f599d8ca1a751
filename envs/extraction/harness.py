r"""Find answers where other harnesses look: rules by name, so that figures compare with published ones.

gsm8k_strict_match and gsm8k_flexible_extract are the two filters of lm-evaluation-harness's gsm8k task, the
Minerva phrase is its minerva_math task's (version 0.4.13; ``UNTIL`` is where it stops generating); the rules
of math_verify look for what math-verify does, in its order. first_letter is that of early multiple-choice
graders, which read "Answer: B" as A.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from debate.types import Span
from envs.answers.notation import RELATION
from envs.extraction.boxes import last_group
from envs.extraction.statements import last_match, widened
from envs.types import Mode

Rule = Callable[[str], Span | None]

_STRICT = re.compile(r"#### (-?[0-9.,]+)", re.ASCII)
_FLEXIBLE = re.compile(r"-?[$0-9.,]{2,}|-?[0-9]+", re.ASCII)
_MINERVA, _HOPE = "Final Answer: The final answer is", "I hope it is correct."
_BEFORE_HOPE = re.compile(rf". {_HOPE[:-1]}.")  # any character before and after, as there
_FINAL = re.compile(r"\bfinal answer is\b[ \t:]*+", re.IGNORECASE)
_FINAL_END = re.compile(r"\.?\s*I hope|\.(?=\s|$)")
_DELIMITERS = re.compile(r"\\\$|\$\$|\$|\\\(|\\\)|\\\[|\\\]")
_CLOSED_BY = {"$$": "$$", "$": "$", r"\(": r"\)", r"\[": r"\]"}
_BETWEEN = re.compile(r"(?:\$\$?|\\[)\]])\s{0,9}[,;]?\s{0,9}(?:and|or)?\s{0,9}(?:\$\$?|\\[(\[])")
_TEXT = re.compile(r"\\(?:text|mathrm|mbox|textbf|textnormal|begin|end|operatorname)\s*\{[^{}]*\}")
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}")
_LETTER = re.compile(r"(?<![\\A-Za-z])[A-Za-z](?![A-Za-z])")
_NUMBER_AFTER = re.compile(r"(?<![\w.])\d", re.ASCII)
_COMMA_NUMBER = re.compile(r"(?<![\w.,$])\d+,\d+(?![\d,]|\.\d)", re.ASCII)


def first_of(pattern: re.Pattern[str], group: int = 0) -> Rule:
    """Return the rule that takes a pattern's first match."""

    def rule(text: str) -> Span | None:
        match = pattern.search(text)
        return Span(*match.span(group)) if match else None

    return rule


def flexible(text: str) -> Span | None:
    """Return where the last run of digits, points and commas stands, as lm-eval's flexible-extract has it.

    >>> flexible("about $1,200. Or 7 days").of("about $1,200. Or 7 days")
    '7'
    """
    last = last_match(_FLEXIBLE, text)
    return Span(*last.span()) if last else None


def minerva(text: str) -> Span | None:
    """Return what stands between the two halves of Minerva's sentence on the first line that has both.

    The second half may lack its last point, and a reply that ends in a point and a blank needs none of it.

    >>> text = "Final Answer: The final answer is $5$. I hope it is correct."
    >>> minerva(text).of(text), minerva("Final Answer: The final answer is $5$.")
    ('$5$', None)
    """
    whole, at = text + _HOPE, text.find(_MINERVA)
    while at >= 0:
        start, line = at + len(_MINERVA), whole.find("\n", at)
        stop = _BEFORE_HOPE.search(whole, start, line if line >= 0 else len(whole))
        if stop:
            inside = text[start : stop.start()]
            start += len(inside) - len(inside.lstrip())
            return Span(start, start + len(inside.strip()))
        at = text.find(_MINERVA, line) if line >= 0 else -1
    return None


def first_letter(letters: str) -> Rule:
    """Return the rule that takes the first of the item's capital letters wherever it stands.

    >>> first_letter("ABCD")("Answer: B")
    Span(start=0, end=1)
    """
    return first_of(re.compile(f"[{letters}]"))


def final_answer(text: str) -> Span | None:
    """Return what follows the last "final answer is", up to the end of its sentence or "I hope".

    >>> text = "The final answer is $10,455$. I hope it is correct."
    >>> final_answer(text).of(text)
    '$10,455$'
    """
    last = last_match(_FINAL, text)
    if last is None:
        return None
    start, line = last.end(), text.find("\n", last.end())
    end = _FINAL_END.search(text, start, line if line >= 0 else len(text))
    stop = end.start() if end else line if line >= 0 else len(text)
    while start < stop and text[start] in ' *\t"\\' and text[start : start + 2] not in ("\\(", "\\["):
        start += 1
    while stop > start and text[stop - 1] in ' *\t"\\':
        stop -= 1
    return Span(start, stop) if start < stop else None


def last_formula(text: str) -> Span | None:
    r"""Return the inside of the last pair of mathematics delimiters that holds no prose.

    Of a calculation with numbers alone within a sentence, its result counts, as in plain text.

    >>> [last_formula(t).of(t) for t in ("so $x < 3$ holds", r"and \(3 + 4 = 7\) apples")]
    ['x < 3', ' 7']
    >>> last_formula("costs $5 and then $6") is None
    True
    """
    spans = [span for span in formulas(text) if not _WORD.search(_TEXT.sub("", span.of(text)))]
    if not spans or _NUMBER_AFTER.search(text, spans[-1].end):
        return None  # a number in the prose after it is the later answer
    run = _run(text, spans)
    whole = run if run != spans[-1] else Span(_before(text, run.start), _after(text, run.end))
    if (hedged := widened(text, whole)) != whole:
        return hedged
    return _result(text, spans[-1]) if run == spans[-1] else run


def _run(text: str, spans: list[Span]) -> Span:
    """Return where the last run of formulas stands: only "and", "or" or a comma is between them."""
    first = len(spans) - 1
    while first and _BETWEEN.fullmatch(text, spans[first - 1].end, spans[first].start):
        first -= 1
    if first == len(spans) - 1:
        return spans[-1]
    return Span(_before(text, spans[first].start), _after(text, spans[-1].end))


def _before(text: str, start: int) -> int:
    return start - (2 if text[max(0, start - 2) : start] in ("$$", r"\(", r"\[") else 1)


def _after(text: str, end: int) -> int:
    return end + (2 if text[end : end + 2] in ("$$", r"\)", r"\]") else 1)


def formulas(text: str) -> list[Span]:
    """Return the insides of all pairs of mathematics delimiters, in one pass."""
    spans: list[Span] = []
    closing, start = "", 0
    for token in _DELIMITERS.finditer(text):
        if token.group() == r"\$":
            continue
        if not closing:
            closing, start = _CLOSED_BY.get(token.group(), ""), token.end()
        elif token.group() == closing:
            if text[start : token.start()].strip():
                spans.append(Span(start, token.start()))
            closing = ""
    return spans


def _result(text: str, span: Span) -> Span:
    inside = span.of(text)
    signs = list(RELATION.finditer(inside))
    if not signs or _LETTER.search(_TEXT.sub("", inside)) or not text[: span.start].strip(" $\\(["):
        return span
    return Span(span.start + signs[-1].end(), span.end)


def comma_number(text: str) -> Span | None:
    """Return the last number if it is written with a comma that may be a decimal one."""
    last = last_match(_COMMA_NUMBER, text)
    return widened(text, Span(*last.span())) if last and not re.search(r"\d", text[last.end() :]) else None


STRICT_MATCH = first_of(_STRICT, 1)
_GSM8K_UNTIL = re.compile(r"Question:|</s>|<\|im_end\|>")
UNTIL: Mapping[Mode, re.Pattern[str]] = {
    "gsm8k_strict_match": _GSM8K_UNTIL,
    "gsm8k_flexible_extract": _GSM8K_UNTIL,
    "minerva_exact": re.compile("Problem:"),
}
"""Where lm-evaluation-harness stops generating: nothing from there on is part of the reply."""
MATH_VERIFY: tuple[tuple[str, Rule], ...] = (("final_answer", final_answer), ("boxed", last_group))
"""What math-verify looks for before a phrase, and after it: ``last_formula`` and ``comma_number``."""
