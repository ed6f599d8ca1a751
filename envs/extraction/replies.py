"""Find the answer in a reply: named modes, every rule linear in the length of the text.

Only the last balanced box counts: an empty or senseless box is a wrong answer, never a reason to look
elsewhere. Thinking text, and questions that a model invents after its answer, do not count.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from debate.types import Span
from envs.answers.choices import LETTERS, letter_of, texts_of
from envs.answers.scripts import in_ascii, with_ascii_digits
from envs.extraction import harness
from envs.extraction.boxes import all_boxes, joined, last_box
from envs.extraction.statements import last_match, stated, trimmed, widened
from envs.types import MODES, Extraction, Mode

Rules: TypeAlias = tuple[tuple[str, harness.Rule], ...]
"""Rules by name, in the order in which they are tried."""

_THINK = re.compile(r"</?think(?:ing)?>", re.IGNORECASE)
_HASHES = re.compile(r"####[ \t]*([^\n]*)")
_OTHER_LETTER = re.compile(  # "B or C" and "not C" are answers, and wrong ones
    r"(?:(?<!\w)[A-Ja-j]\)?,?[ \t]{1,4}(?:or|and|nor)|n't(?:[ \t]{1,4}be)?"
    r"|\b(?:not|nor|neither|never|except|than|cannot|eliminate[sd]?|exclude[sd]?|rule[sd]? out)"
    r"(?:[ \t]{1,4}be)?)[ \t]{1,4}\(?$",
    re.IGNORECASE,
)
_WORD = re.compile(
    r"(?<![\\A-Za-z])(?!(?:pi|sqrt|sin|cos|tan|log|ln|exp|[a-z]?matrix|array)(?![A-Za-z]))[A-Za-z]{2,}"
)
_FOREIGN = re.compile(r"[\u00c0-\u024f\u0400-\u1fff\u3040-\u9fff\uac00-\ud7af]")
_BARE_CHARS = 200
_CORRECT = r"\s(?:is|must be)\s(?:the\s)?(?:correct|right|true)\b(?!\s?\?)"
_OPTION_CHARS = 4000
_ASKED, _WHETHER = re.compile(r"[^.\n!?]{0,200}\?"), re.compile(r"\bwhether\b[^.;:\n!?]*\Z")
_NUMBER = re.compile(
    r"\\[dt]?frac\{\d+\}\{\d+\}"
    r"|(?<![A-Za-z_\d])(?:(?<![.,:/])\d{1,2}(?::\d\d){1,2}(?![\d:])(?:\s?[ap]\.?m\b)?"
    r"|(?<![.,:/])\d{1,3} \d{1,3}/\d{1,3}(?![\d/])(?:\s?\\?%)?"
    r"|\d++(?:\.\d++)?\s?(?:\\times|\\cdot|[*×·])\s?10\s?\^\s?(?:\{[-−]?\d{1,3}\}|[-−]?\d{1,3})"
    r"|(?:\d{1,3}(?:[,\u00a0\u2009\u202f]\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:[eE][+-]?\d{1,3}(?![\w.])|/\d+)?"
    r"(?:\s?\\?%)?)"
    r"|(?<![\w.])\.\d+",
    re.ASCII,
)
_ANY_ANSWER = re.compile(r"\\boxed\s*[{\dA-Z]|####|\banswer[ \t]*(?:is\b|[:=])", re.IGNORECASE)
_STOPS = str.maketrans("\u3002\uff61\u06d4\u0964", "\n\n\n\n")
_STOP = re.compile(
    r"<\|[a-z_]{1,24}\|>|</s>|(?:\n\s{0,8}(?:Question|Problem|Q)|[.!$*}]\s{1,4}(?:Question|Problem))\s{0,4}\d{0,4}\s{0,4}:"
)
"""A sign between turns of a chat, or another question."""


def extract(
    text: str, *, mode: Mode = "lenient", letters: str = "", choices: Sequence[str] = ()
) -> Extraction:
    r"""Return the answer of a reply under a named mode. Never raises on model text.

    "boxed", "gsm8k_strict" (after ``####``) and "answer_is" (``statements``) accept only their own
    form; "lenient" tries these three in order, then a reply that is bare mathematics, then the last number.
    With ``letters`` (multiple choice, e.g. "ABCD") the last rules are a reply that is nothing but a letter or
    the text of one of ``choices``, then the last isolated letter. The other modes look where other harnesses
    do (``extraction.harness``); "hendrycks" and "prm800k" look where "lenient" does.

    >>> extract(r"so \boxed{\frac{1}{2}}.", mode="boxed").answer
    '\\frac{1}{2}'
    >>> extract("#### 1,200", mode="gsm8k_strict").answer
    '1,200'
    >>> extract("I think it is 12 or 13", mode="answer_is").answer is None
    True
    >>> extract("She has 3 + 4 = 7 left.").method
    'last_number'
    """
    if mode not in MODES:
        raise ValueError(f"mode: {mode!r} is not known; valid: {', '.join(MODES)}")
    text = _in_one_script(text)
    return _first(text, *counted(text, harness.UNTIL.get(mode)), _rules(mode, letters, choices))


def extract_parts(text: str) -> Extraction:
    r"""Return all boxes of a reply as one answer of several parts, in their order; None for fewer than two.

    >>> extract_parts(r"The width is \boxed{3} and the length \boxed{5}.").answer
    '3, 5'
    """
    text = _in_one_script(text)
    found = _first(text, *counted(text), (("boxes", all_boxes),))
    return found if found.answer is None else replace(found, answer=joined(found.answer, near=False))


def _in_one_script(text: str) -> str:
    """Return a reply with digits, signs and full stops of other scripts in ASCII, of the same length."""
    return text if text.isascii() else in_ascii(with_ascii_digits(text).translate(_STOPS))


def extract_text(text: str) -> Extraction:
    r"""Return the text answer of a reply: the last box, else after "answer is", else a reply of one line.

    >>> [extract_text(text).answer for text in ("Paris", "I think\nit is Paris", r"\boxed{}")]
    ['Paris', None, '']
    """
    rules = (("boxed", last_box), ("answer_is", partial(stated, words=True)), ("line", _one_line))
    return _first(text, *counted(text), rules)


def _first(text: str, start: int, end: int, rules: Rules) -> Extraction:
    """Return what the first rule that finds an answer finds between two characters of a reply."""
    reply = text[start:end]
    for method, rule in rules:
        span = rule(reply)
        if span is not None:
            return Extraction(span.of(reply), method, Span(start + span.start, start + span.end))
    return Extraction(None, "none")


def extract_response(text: str) -> Extraction:
    """Return a whole reply, thinking left out and ends trimmed; None when nothing is left.

    >>> extract_response("<think>No comma.</think> Fine. ").answer
    'Fine.'
    """
    start, end = _behind_thinking(text)
    response = text[start:end].strip()
    return Extraction(response, "whole", Span(start, end)) if response else Extraction(None, "none")


def counted(text: str, until: re.Pattern[str] | None = None) -> tuple[int, int]:
    """Return where the part of the reply that counts starts and ends; ``until`` replaces our own stops.

    >>> text = "<think>is it 4?</think>The answer is 5.<|im_end|>The answer is 6."
    >>> text[slice(*counted(text))]
    'The answer is 5.'
    """
    start, end = _behind_thinking(text)
    if until:
        stop = until.search(text, start, end)
        return start, stop.start() if stop else end
    answer = _ANY_ANSWER.search(text, start, end)
    if answer:  # a reply may restate the problem first; only after an answer is a new question an invention
        stop = _STOP.search(text, answer.end(), end)
        end = stop.start() if stop else end
    return start, max(start, end)


def _behind_thinking(text: str) -> tuple[int, int]:
    """Return where a reply starts and ends, thinking left out."""
    start, end = 0, len(text)
    for tag in _THINK.finditer(text):
        if tag.group().startswith("</"):
            start, end = tag.end(), len(text)
        else:
            end = min(end, tag.start())
    return start, max(start, end)


def _rules(mode: Mode, letters: str, choices: Sequence[str]) -> Rules:
    def option(text: str) -> Span | None:
        span = _one_line(text)
        reply = span.of(text) if span and span.end - span.start <= _OPTION_CHARS else ""
        return span if reply and (letter_of(reply, choices) or texts_of(reply, choices)) else None

    def last_letter(text: str) -> Span | None:
        span = _last(re.compile(rf"(?<![A-Za-z'])[{letters}](?:(?![A-Za-z']|\s[a-z])|(?={_CORRECT}))"), text)
        hedge = _OTHER_LETTER.search(text, max(0, span.start - 32), span.start) if span else None
        return Span(hedge.start(), span.end) if span and hedge else span

    alone: dict[str, tuple[str, harness.Rule]] = {
        "boxed": ("boxed", last_box),
        "gsm8k_strict": ("####", _after_hashes),
        "answer_is": ("answer_is", stated),
        "gsm8k_strict_match": ("####", harness.STRICT_MATCH),
        "gsm8k_flexible_extract": ("flexible", harness.flexible),
        "minerva_exact": ("minerva", harness.minerva),
        "first_number": ("first_number", _first_number),
        "first_letter": ("first_letter", harness.first_letter(letters or LETTERS[:5])),
    }
    if mode in alone:
        return (alone[mode],)
    ours = (alone["boxed"], alone["gsm8k_strict"], alone["answer_is"])
    if letters:
        return (*ours, ("bare", option), ("last_letter", last_letter))
    last = (("bare", _bare), ("last_number", _last_number))
    if mode == "math_verify":
        theirs = (("last_formula", harness.last_formula), ("last_number", harness.comma_number))
        return (*harness.MATH_VERIFY, *ours[1:], last[0], *theirs, last[1])
    return (*ours, *last)


def _last(pattern: re.Pattern[str], text: str, group: int = 0) -> Span | None:
    match = last_match(pattern, text)
    return Span(*match.span(group)) if match else None


def _after_hashes(text: str) -> Span | None:
    span = _last(_HASHES, text, 1)
    return span and trimmed(text, span)


def _one_line(text: str) -> Span | None:
    span = trimmed(text, Span(0, len(text)))
    return span if span.of(text) and "\n" not in span.of(text) else None


def _bare(text: str) -> Span | None:
    """Return the span of a reply that is only one line of mathematics, and not just one number."""
    span = trimmed(text, Span(0, len(text)))
    reply = span.of(text)
    short = 0 < len(reply) <= _BARE_CHARS and "\n" not in reply
    if not short or _NUMBER.fullmatch(reply) or "__" in reply or _FOREIGN.search(reply):
        return None
    return span if _one_formula(reply) or not _WORD.search(reply) else None


def _one_formula(reply: str) -> bool:
    """Whether the whole reply stands between one pair of dollars."""
    inside = reply.strip("$")
    return "$" not in inside and bool(inside.strip()) and reply in (f"${inside}$", f"$${inside}$$")


def _first_number(text: str) -> Span | None:
    match = _NUMBER.search(text)
    return _signed(text, Span(*match.span())) if match else None


def _last_number(text: str) -> Span | None:
    span = _last(_NUMBER, text)
    if span is None:
        return None
    line = text[text.rfind("\n", 0, span.start) + 1 : span.end]
    if "__" in line or _ASKED.match(text, span.end) or _WHETHER.search(line, max(0, len(line) - 200)):
        return None  # a line of code states no answer, nor does a question
    formula = harness.last_formula(text)
    if formula and formula.start <= span.start and span.end <= formula.end:
        return formula  # a number in a formula is not the answer
    return widened(text, _signed(text, span))


def _signed(text: str, span: Span) -> Span:
    """Return a number's span with the minus sign before it."""
    signed = text[max(0, span.start - 1) : span.start] in ("-", "−") and _is_sign(text, span.start - 1)
    return Span(span.start - signed, span.end)


def _is_sign(text: str, at: int) -> bool:
    """Whether the dash at ``at`` is a minus sign and not an operator: nothing stands right before it."""
    before = text[at - 1] if at > 0 else " "
    return not (before.isalnum() or before in ")]}")
