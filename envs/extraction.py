"""Find the answer in a reply: four named modes, every rule linear in the length of the text.

The last balanced box counts and nothing beside it: a box that is empty or makes no sense is a wrong answer,
never a reason to look elsewhere. Thinking text, and what a model goes on to invent after its answer, do not
count.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from debate.types import Span
from envs.boxes import last_box
from envs.types import MODES, Extraction, Mode

_THINK = re.compile(r"</?think(?:ing)?>", re.IGNORECASE)
_HASHES = re.compile(r"####[ \t]*([^\n]*)")
_ANSWER_IS = re.compile(r"\banswer[ \t]*+(?:\*\*)?(?:is\b|[:=])[ \t]*+:?(?:\*\*)?\s*+(\S[^\n]*)", re.IGNORECASE)
_SENTENCE_END = re.compile(r"\.(?=\s|$)|<")
_NUMBER = re.compile(
    r"\\[dt]?frac\{\d+\}\{\d+\}|(?<![A-Za-z_\d])(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:/\d+)?(?:\s?\\?%)?"
    r"|(?<![\w.])\.\d+",
    re.ASCII,
)
_ANY_ANSWER = re.compile(r"\\boxed\s*\{|####|\banswer[ \t]*(?:is\b|[:=])", re.IGNORECASE)
_STOP = re.compile(
    r"<\|(?:im_end|endoftext|eot_id|end|end_of_text)\|>|</s>|\n\s{0,8}(?:Question|Problem|Q)\s{0,4}\d{0,4}\s{0,4}:"
)


def extract(text: str, *, mode: Mode = "lenient", letters: str = "") -> Extraction:
    r"""Return the answer of a reply under a named mode. Never raises on model text.

    "boxed", "gsm8k_strict" (after ``####``) and "answer_is" take nothing but their own form; "lenient" tries
    these three in order and then the last number. With ``letters`` (multiple choice, e.g. "ABCD") the last
    rule is the last isolated letter instead.

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
    start, end = counted(text)
    reply = text[start:end]
    for method, rule in _rules(mode, letters):
        span = rule(reply)
        if span is not None:
            return Extraction(span.of(reply), method, Span(start + span.start, start + span.end))
    return Extraction(None, "none")


def counted(text: str) -> tuple[int, int]:
    """Return where the part of the reply that counts starts and ends.

    >>> text = "<think>is it 4?</think>The answer is 5.<|im_end|>The answer is 6."
    >>> text[slice(*counted(text))]
    'The answer is 5.'
    """
    start, end = 0, len(text)
    for tag in _THINK.finditer(text):
        if tag.group().startswith("</"):
            start, end = tag.end(), len(text)
        else:
            end = min(end, tag.start())
    answer = _ANY_ANSWER.search(text, start, end)
    if answer:  # a reply may restate the problem first; only after an answer is a new question an invention
        stop = _STOP.search(text, answer.end(), end)
        end = stop.start() if stop else end
    return start, max(start, end)


def _rules(mode: Mode, letters: str) -> tuple[tuple[str, Callable[[str], Span | None]], ...]:
    def last_letter(text: str) -> Span | None:
        return _last(re.compile(rf"(?<![A-Za-z'])[{letters}](?![A-Za-z']|\s[a-z])"), text)

    by_mode: dict[Mode, tuple[str, Callable[[str], Span | None]]] = {
        "boxed": ("boxed", last_box),
        "gsm8k_strict": ("####", _after_hashes),
        "answer_is": ("answer_is", _after_answer_is),
    }
    if mode != "lenient":
        return (by_mode[mode],)
    last = ("last_letter", last_letter) if letters else ("last_number", _last_number)
    return (*by_mode.values(), last)


def _last(pattern: re.Pattern[str], text: str, group: int = 0) -> Span | None:
    match = None
    for match in pattern.finditer(text):
        pass
    return Span(*match.span(group)) if match else None


def _after_hashes(text: str) -> Span | None:
    span = _last(_HASHES, text, 1)
    return span and _trimmed(text, span)


def _after_answer_is(text: str) -> Span | None:
    span = _last(_ANSWER_IS, text, 1)
    if span is None:
        return None
    end = _SENTENCE_END.search(text, span.start, span.end)
    span = _trimmed(text, Span(span.start, end.start() if end else span.end))
    for opening, closing in (("\\(", "\\)"), ("\\[", "\\]"), ("$$", "$$"), ("$", "$")):
        inside = span.start + len(opening)
        close = text.find(closing, inside, span.end) if text.startswith(opening, span.start) else -1
        if close >= 0:
            return Span(inside, close)
    return span


def _last_number(text: str) -> Span | None:
    span = _last(_NUMBER, text)
    if span and "__" in text[text.rfind("\n", 0, span.start) + 1 : span.end]:
        return None  # a line of code states no answer
    if span and text[max(0, span.start - 1) : span.start] in ("-", "−") and _is_sign(text, span.start - 1):
        return Span(span.start - 1, span.end)
    return span


def _is_sign(text: str, at: int) -> bool:
    """Whether the dash at ``at`` is a minus sign and not an operator: nothing stands right before it."""
    before = text[at - 1] if at > 0 else " "
    return not (before.isalnum() or before in ")]}")


def _trimmed(text: str, span: Span) -> Span:
    """Return the span without white space, quotes and Markdown stars at its ends."""
    start, end = span.start, span.end
    while start < end and text[start] in " \t\r*`\"":
        start += 1
    while end > start and text[end - 1] in " \t\r*`\"":
        end -= 1
    return Span(start, end)
