"""Find the answer in a reply under a named mode. Every rule takes time linear in the length of the text.

Only the last balanced box counts. An empty or meaningless box is a wrong answer, not a reason to search
elsewhere. Thinking text does not count, nor do questions that a model invents after its answer.

Some modes follow other harnesses, so that figures can be compared with published ones. ``gsm8k_strict_match``
and ``gsm8k_flexible_extract`` are the two filters of lm-evaluation-harness's gsm8k task, and
``minerva_exact`` is the filter of its minerva_math task (version 0.4.13). ``math_verify`` searches the same
places as math-verify, in the same order. ``first_letter`` is the rule of early multiple-choice graders, which
read "Answer: B" as A.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from debate.types import Span
from envs.answers.notation import RELATION, in_ascii
from envs.answers.words import LETTERS, letter_of, texts_of
from envs.grading.statements import last_match, stated, trimmed, widened
from envs.types import MODES, Extraction, Mode

Rule: TypeAlias = tuple[str, Callable[[str], Span | None]]
"""The name of a rule, and a function that returns the answer's position; rules are tried in order."""

_BARE_CHARS = 200
_OPTION_CHARS = 4000

# The part of a reply that counts.
_THINK = re.compile(r"</?think(?:ing)?>", re.IGNORECASE)
_ANY_ANSWER = re.compile(r"\\boxed\s*[{\dA-Z]|####|\banswer[ \t]*(?:is\b|[:=])", re.IGNORECASE)
_STOP = re.compile(  # a token between chat turns, or another question
    r"<\|[a-z_]{1,24}\|>|</s>"
    r"|(?:\n\s{0,8}(?:Question|Problem|Q)|[.!$*}]\s{1,4}(?:Question|Problem))\s{0,4}\d{0,4}\s{0,4}:"
)
_UNTIL: Mapping[Mode, str] = {
    **dict.fromkeys(("gsm8k_strict_match", "gsm8k_flexible_extract"), r"Question:|</s>|<\|im_end\|>"),
    "minerva_exact": "Problem:",
}
"""The text at which lm-evaluation-harness stops generating; the reply ends before this text."""
_OTHER_SCRIPT = re.compile(r"[\u0600-\u1fff\u3040-\u9fff\uac00-\ud7af]")
_STOPS = str.maketrans("\u3002\uff61\u06d4\u0964", "\n\n\n\n")

# Numbers, letters and formulas.
_HASHES = re.compile(r"####[ \t]*([^\n]*)")
_STRICT_MATCH = re.compile(r"#### (-?[0-9.,]+)", re.ASCII)
_FLEXIBLE = re.compile(r"-?[$0-9.,]{2,}|-?[0-9]+", re.ASCII)
_MINERVA, _HOPE = "Final Answer: The final answer is", "I hope it is correct."
_BEFORE_HOPE = re.compile(rf". {_HOPE[:-1]}.")  # any character before and after, as in the harness
_FINAL = re.compile(r"\bfinal answer is\b[ \t:]*+", re.IGNORECASE)
_FINAL_END = re.compile(r"\n|\.?\s*I hope|\.(?=\s|$)")
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
_COMMA_NUMBER = re.compile(r"(?<![\w.,$])\d+,\d+(?![\d,]|\.\d)", re.ASCII)
_NUMBER_AFTER = re.compile(r"(?<![\w.])\d", re.ASCII)
_ASKED, _WHETHER = re.compile(r"[^.\n!?]{0,200}\?"), re.compile(r"\bwhether\b[^.;:\n!?]*\Z")
_OTHER_LETTER = re.compile(  # "B or C" and "not C" are answers, and wrong ones
    r"(?:(?<!\w)[A-Ja-j]\)?,?[ \t]{1,4}(?:or|and|nor)|n't(?:[ \t]{1,4}be)?"
    r"|\b(?:not|nor|neither|never|except|than|cannot|eliminate[sd]?|exclude[sd]?|rule[sd]? out)"
    r"(?:[ \t]{1,4}be)?)[ \t]{1,4}\(?$",
    re.IGNORECASE,
)
_CORRECT = r"\s(?:is|must be)\s(?:the\s)?(?:correct|right|true)\b(?!\s?\?)"
_WORD = re.compile(
    r"(?<![\\A-Za-z])(?!(?:pi|sqrt|sin|cos|tan|log|ln|exp|[a-z]?matrix|array)(?![A-Za-z]))[A-Za-z]{2,}"
)
_DELIMITERS = re.compile(r"\\\$|\$\$|\$|\\\(|\\\)|\\\[|\\\]")
_CLOSED_BY = {"$$": "$$", "$": "$", r"\(": r"\)", r"\[": r"\]"}
_BETWEEN = re.compile(r"(?:\$\$?|\\[)\]])\s{0,9}[,;]?\s{0,9}(?:and|or)?\s{0,9}(?:\$\$?|\\[(\[])")
_TEXT = re.compile(r"\\(?:text|mathrm|mbox|textbf|textnormal|begin|end|operatorname)\s*\{[^{}]*\}")
_PROSE = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}")
_LETTER = re.compile(r"(?<![\\A-Za-z])[A-Za-z](?![A-Za-z])")


def extract(
    text: str, *, mode: Mode = "lenient", letters: str = "", choices: Sequence[str] = ()
) -> Extraction:
    r"""Return the answer of a reply under a named mode. Never raises on model text.

    "boxed", "gsm8k_strict" (after ``####``) and "answer_is" (``statements``) accept only their own form.
    "lenient" tries these three in order, then a reply that is only mathematics, then the last number. With
    ``letters`` (multiple choice, e.g. "ABCD"), the last two rules are a reply that is only a letter or the
    text of one of ``choices``, and the last isolated letter. "hendrycks" and "prm800k" use the rules of
    "lenient", and the remaining modes use the rules of other harnesses.

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
    return _first(text, _rules(mode, letters, choices), _UNTIL.get(mode))


def extract_parts(text: str) -> Extraction:
    """Return all boxes of a reply, in order, as one answer; the answer is None for fewer than two boxes."""
    found = _first(text, [("boxes", all_boxes)])
    return found if found.answer is None else replace(found, answer=joined(found.answer))


def extract_text(text: str) -> Extraction:
    """Return the text answer of a reply: its last box, or the text after "answer is", or its only line."""
    after = partial(stated, words=True)
    return _first(text, [("boxed", last_box), ("answer_is", after), ("line", _one_line)])


def extract_response(text: str) -> Extraction:
    """Return a whole reply, stripped and without thinking; the answer is None if nothing is left."""
    start, end = _behind_thinking(text)
    response = text[start:end].strip()
    return Extraction(response, "whole", Span(start, end)) if response else Extraction(None, "none")


def counted(text: str, until: str | None = None) -> tuple[int, int]:
    """Return the start and end of the part of a reply that counts; ``until`` replaces our stop pattern."""
    start, end = _behind_thinking(text)
    # a reply may restate the problem first, so only a question after an answer is an invented one
    answer = None if until else _ANY_ANSWER.search(text, start, end)
    pattern = re.compile(until) if until else _STOP if answer else None
    stop = pattern.search(text, answer.end() if answer else start, end) if pattern else None
    return start, stop.start() if stop else end


def _behind_thinking(text: str) -> tuple[int, int]:
    """Return the start and end of a reply without its thinking."""
    start, end = 0, len(text)
    for tag in _THINK.finditer(text):
        if tag.group().startswith("</"):
            start, end = tag.end(), len(text)
        else:
            end = min(end, tag.start())
    return start, max(start, end)


def _first(text: str, rules: Sequence[Rule], until: str | None = None) -> Extraction:
    """Return the answer that the first successful rule finds in the part of the reply that counts."""
    if (
        not text.isascii()
    ):  # convert signs of other scripts, and digits if the reply has letters of such a script
        if any(sign.isalpha() for sign in _OTHER_SCRIPT.findall(text)):
            digits = {c for c in set(text) if not c.isascii() and unicodedata.category(c) == "Nd"}
            text = text.translate({ord(c): str(unicodedata.decimal(c)) for c in digits})
        text = in_ascii(text.translate(_STOPS))
    start, end = counted(text, until)
    reply = text[start:end]
    for method, rule in rules:
        if (span := rule(reply)) is not None:
            return Extraction(span.of(reply), method, Span(start + span.start, start + span.end))
    return Extraction(None, "none")


def _rules(mode: Mode, letters: str, choices: Sequence[str]) -> Sequence[Rule]:
    hashes: Rule = ("####", lambda text: (span := _last(_HASHES, text)) and trimmed(text, span))
    ours: list[Rule] = [("boxed", last_box), hashes, ("answer_is", stated)]
    alone: Mapping[Mode, Rule] = {
        "boxed": ours[0],
        "gsm8k_strict": ours[1],
        "answer_is": ours[2],
        "gsm8k_strict_match": ("####", partial(_first_match, _STRICT_MATCH)),
        "gsm8k_flexible_extract": ("flexible", partial(_last, _FLEXIBLE)),
        "minerva_exact": ("minerva", _minerva),
        "first_number": (
            "first_number",
            lambda text: (span := _first_match(_NUMBER, text)) and _signed(text, span),
        ),
        "first_letter": ("first_letter", partial(_first_match, re.compile(f"[{letters or LETTERS[:5]}]"))),
    }
    if mode in alone:
        return [alone[mode]]
    if letters:
        option, letter = partial(_option, choices), partial(_last_letter, letters)
        return [*ours, ("bare", option), ("last_letter", letter)]
    bare, last_number = ("bare", _bare), ("last_number", _last_number)
    if mode != "math_verify":
        return [*ours, bare, last_number]
    theirs: list[Rule] = [("final_answer", _final_answer), ("boxed", last_run), *ours[1:], bare]
    return [*theirs, ("last_formula", _last_formula), ("last_number", _comma_number), last_number]


def _first_match(pattern: re.Pattern[str], text: str) -> Span | None:
    """Return the position of a pattern's first match, or of the match's last group if there are groups."""
    match = pattern.search(text)
    return Span(*match.span(match.re.groups)) if match else None


def _last(pattern: re.Pattern[str], text: str) -> Span | None:
    match = last_match(pattern, text)
    return Span(*match.span(match.re.groups)) if match else None


def _one_line(text: str) -> Span | None:
    span = trimmed(text, Span(0, len(text)))
    return span if span.of(text) and "\n" not in span.of(text) else None


def _option(choices: Sequence[str], text: str) -> Span | None:
    """Return the position of a one-line reply that is an option's letter or text; else None."""
    span = _one_line(text)
    reply = span.of(text) if span and span.end - span.start <= _OPTION_CHARS else ""
    return span if reply and (letter_of(reply, choices) or texts_of(reply, choices)) else None


def _last_letter(letters: str, text: str) -> Span | None:
    span = _last(re.compile(rf"(?<![A-Za-z'])[{letters}](?:(?![A-Za-z']|\s[a-z])|(?={_CORRECT}))"), text)
    hedge = _OTHER_LETTER.search(text, max(0, span.start - 32), span.start) if span else None
    return Span(hedge.start(), span.end) if span and hedge else span


def _bare(text: str) -> Span | None:
    """Return the position of a one-line reply that is only mathematics, and more than one number."""
    span = _one_line(text)
    reply = span.of(text) if span else ""
    if not 0 < len(reply) <= _BARE_CHARS or _NUMBER.fullmatch(reply) or "__" in reply:
        return None
    inside = reply.strip("$")
    one_formula = "$" not in inside and bool(inside.strip()) and reply in (f"${inside}$", f"$${inside}$$")
    words = _WORD.search(reply) or (not reply.isascii() and re.search(r"[^\W\d_]", reply))
    return span if one_formula or not words else None


def _last_number(text: str) -> Span | None:
    span = _last(_NUMBER, text)
    if span is None:
        return None
    line = text[text.rfind("\n", 0, span.start) + 1 : span.end]
    if "__" in line or _ASKED.match(text, span.end) or _WHETHER.search(line, max(0, len(line) - 200)):
        return None  # neither a line of code nor a question states an answer
    formula = _last_formula(text)
    if formula and formula.start <= span.start and span.end <= formula.end:
        return formula  # a number in a formula is not the answer
    return widened(text, _signed(text, span))


def _signed(text: str, span: Span) -> Span:
    """Return a number's span with the minus sign before it; a dash right after a value is an operator."""
    before = text[max(0, span.start - 2) : span.start - 1]
    dash = text[max(0, span.start - 1) : span.start] in ("-", "−")
    operator = before in (")", "]", "}") or (before.isalnum() and before.isascii())
    return Span(span.start - (dash and not operator), span.end)


def _comma_number(text: str) -> Span | None:
    """Return the position of the last number if it has a comma that may be a decimal comma."""
    last = _last(_COMMA_NUMBER, text)
    return widened(text, last) if last and not re.search(r"\d", text[last.end :]) else None


def _minerva(text: str) -> Span | None:
    """Return the text between the two halves of Minerva's sentence on the first line that has both.

    The second half may lack its final period, and may be missing after a reply that ends in a period and a
    blank.
    """
    whole, at = text + _HOPE, text.find(_MINERVA)
    while at >= 0:
        start, line = at + len(_MINERVA), whole.find("\n", at)
        if stop := _BEFORE_HOPE.search(whole, start, line if line >= 0 else len(whole)):
            inside = text[start : stop.start()]
            start += len(inside) - len(inside.lstrip())
            return Span(start, start + len(inside.strip()))
        at = text.find(_MINERVA, line) if line >= 0 else -1
    return None


def _final_answer(text: str) -> Span | None:
    """Return the text after the last "final answer is", up to the end of the sentence or "I hope"."""
    last = last_match(_FINAL, text)
    if last is None:
        return None
    end = _FINAL_END.search(text, last.end())
    start, stop = last.end(), end.start() if end else len(text)
    while start < stop and text[start] in ' *\t"\\' and text[start : start + 2] not in ("\\(", "\\["):
        start += 1
    stop = start + len(text[start:stop].rstrip(' *\t"\\'))
    return Span(start, stop) if start < stop else None


def _last_formula(text: str) -> Span | None:
    r"""Return the text inside the last pair of math delimiters without prose.

    If the formula is a calculation with only numbers in a sentence, its result is returned, as in plain text.
    Formulas with only "and", "or" or a comma between them are returned together.
    """
    spans = [span for span in formulas(text) if not _PROSE.search(_TEXT.sub("", span.of(text)))]
    if not spans or _NUMBER_AFTER.search(text, spans[-1].end):
        return None  # a number in the prose after the formula is the later answer
    first = last = len(spans) - 1
    while first and _BETWEEN.fullmatch(text, spans[first - 1].end, spans[first].start):
        first -= 1
    start, end = spans[first].start, spans[last].end
    wide = ("$$", r"\(", r"\[", r"\)", r"\]")
    whole = Span(start - 1 - (text[start - 2 : start] in wide), end + 1 + (text[end : end + 2] in wide))
    if first < last or widened(text, whole) != whole:
        return widened(text, whole)
    inside = spans[last].of(text)
    signs = list(RELATION.finditer(inside))
    if not signs or _LETTER.search(_TEXT.sub("", inside)) or not text[: spans[last].start].strip(" $\\(["):
        return spans[last]
    return Span(spans[last].start + signs[-1].end(), spans[last].end)


def formulas(text: str) -> list[Span]:
    """Return the spans inside all pairs of math delimiters, in one pass."""
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


_BETWEEN_BOXES = re.compile(
    r"(?:\s|[,;$/*()]|\\[()\[\],]|\\q?quad\b|\\text\s?\{\s?(?:and|or)\s?\}"
    r"|\b(?:and|or|else|even|also|perhaps|maybe|possibly|probably)\b|[A-Za-z](?:_\{?\w{1,4}\}?)?\s?=)*+"
)
# A box without braces holds the next number or letter. An escaped brace is text, not structure. A doubled
# backslash before "boxed" still opens a box, because some replies were escaped for JSON too often.
_TOKEN = re.compile(
    r"\\boxed\s*\{|\\boxed\s{0,4}(?P<bare>[-\u2212]?\d++(?:[.,]\d++)*+|[A-Z](?![A-Za-z]))"
    r"|\\\\(?!boxed)|\\[{}]|[{}]",
    re.ASCII,
)


def boxes(text: str) -> list[Span]:
    """Return the spans inside all balanced boxes, in the order in which the boxes close."""
    spans: list[Span] = []
    open_braces: list[int] = []  # the start of a box's contents, or -1 for a plain brace
    for token in _TOKEN.finditer(text):
        piece = token.group()
        if piece == "}":
            start = open_braces.pop() if open_braces else -1
            if start >= 0:
                spans.append(Span(start, token.start()))
        elif token["bare"]:
            spans.append(Span(*token.span("bare")))
        elif not piece.startswith("\\"):
            open_braces.append(-1)
        elif piece.startswith("\\b"):
            open_braces.append(token.end())
    return spans


def last_box(text: str) -> Span | None:
    r"""Return the span inside the balanced ``\boxed{}`` that opens last; None if no box is closed.

    >>> text = r"\boxed{1} so \boxed{\frac{1}{2}} and \boxed{3"
    >>> last_box(text).of(text)
    '\\frac{1}{2}'
    """
    return max(boxes(text), key=lambda span: span.start, default=None)


def last_run(text: str) -> Span | None:
    """Return the span of the last sequence of boxes that only commas and words like "and" separate."""
    outer = [whole for whole, _ in _outermost(text)]
    if not outer:
        return None
    first = len(outer) - 1
    while first and _BETWEEN_BOXES.fullmatch(text, outer[first - 1].end, outer[first].start):
        first -= 1
    return Span(outer[first].start, outer[-1].end)


def all_boxes(text: str) -> Span | None:
    """Return the span from the first box to the last, if there are two or more; else None."""
    outer = _outermost(text)
    return Span(outer[0][0].start, outer[-1][0].end) if len(outer) > 1 else None


def joined(text: str) -> str:
    """Return the contents of a text's boxes, joined by commas.

    Return the text unchanged unless it begins and ends with a box.
    """
    outer = _outermost(text)
    ends = outer and (outer[0][0].start, outer[-1][0].end) == (0, len(text))
    return ", ".join(inside.of(text) for _, inside in outer) if ends else text


def _outermost(text: str) -> list[tuple[Span, Span]]:
    """Return the spans of the boxes that are not inside other boxes, each with the span of its contents."""
    outer: list[tuple[Span, Span]] = []
    for span in sorted(boxes(text), key=lambda span: span.start):
        if not outer or span.start > outer[-1][1].end:
            start = text.rfind("\\boxed", 0, span.start)
            outer.append((Span(start, span.end + text.startswith("}", span.end)), span))
    return outer
