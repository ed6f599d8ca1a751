r"""Find the answer that a sentence states after "answer is", and the words around it that retract the answer.

A statement begins after the last "answer is" (or "answer:"), possibly on the next line, and after the last
"is" of its sentence. It ends with the sentence or the line, or before a clause that gives reasons. Only prose
that cannot change the answer is left out: words that hedge, count or calculate stay and make the answer
wrong. A number after "not" or "3 or" includes these words. All rules take time linear in the length of the
text.
"""

from __future__ import annotations

import re
from collections import deque

from debate.types import Span
from envs.answers.notation import clean
from envs.answers.numbers import Number, parse_number

MAX_FORMULA = 2000
MAX_PROSE = 200
MAX_BEFORE = 48
_WINDOW = 96

_HEADER = re.compile(
    r"(?:<answer>|\banswer[ \t]*+(?:\*\*)?(?:is\b|[:=]))(?:[ \t]*+:)?(?:\*\*(?=\s))?\s*+(?:\}\s*+)?(?=\S)",
    re.IGNORECASE,
)
_IS = re.compile(r"\bis\b[ \t:]*+")
_END = re.compile(r"\.(?=[*\"'’”)]{0,4}(?:\s|$))|<(?=[|/]|[a-z_]{2,20}>)|\n")
_SHORT = re.compile(r"(?:(?<![A-Za-z] )(?<![\w.])St|(?<![\w.])(?:Mt|Ft|Mr|Mrs|Ms|Dr|Prof))$")
_INITIAL = re.compile(r"(?<![\w.'’])(?:[A-Z]\.\s?){0,4}[A-Z]$")
_NAME_GOES_ON = re.compile(r"\.\s?[A-Z]\.|\.\s{1,3}[A-Z][\w'’-]{1,30}(?=[.,!]|\s|$)(?=[.,!]|\s{0,3}$|\n)")
_CLAUSE = re.compile(
    r"(?:[,(]\s{0,3}|\s)(?:because|since)\b"
    r"|[,(]\s{0,3}(?:which|where|who|as(?! well)|regardless of|independent of)\b"
    r"|,\s{0,3}(?:and )?not\b(?! (?:only|just|even|yet|quite|exactly|counting|including))"
    r"|(?<=[\d)}$*\]])\s{1,3}(?:which|where)\b|,?\s{1,3}(?:rather than|instead of)\b"
)
_DOUBT = re.compile(
    r"\b(?:or|nor|but|maybe|perhaps|possibly|probably|might|may|could|else|alternatively|otherwise|unless|if"
    r"|either|unsure|sure|certain)\b|\?",
    re.IGNORECASE,
)
_DENIAL = re.compile(
    r"\b(?:not|no|never|wrong|incorrect|false|doubt\w*|unlikely|guess|cannot)\b|n['’]t\b", re.IGNORECASE
)
_COUNTS = re.compile(
    r"\b(?:half|halves|twice|double|thrice|thirds?|quarters?|[a-z]*(?:fth|xth|nth|hth)s?|less|more|fewer|than"
    r"|and|plus|minus|times|over|squared|cubed|factorial|mod|modulo|choose(?=\W{0,4}(?:\d|\w\b))"
    r"|base|power|root|pi|percent|dozens?|hundreds?|thousands?|[mbtr]+illions?|about|approximately|roughly"
    r"|nobody|neither|none|[iknxyz])\b",
    re.IGNORECASE,
)
_SIMPLY = re.compile(
    r"(?:simply|just|exactly|precisely|therefore|thus|equal to|given by|as follows|for sure|definitely"
    r"|certainly|clearly|obviously|indeed|surely)[ \t]*:?\s+(?=\S)"
    r"|(?:option|choice|letter)\s{1,3}(?=\(?(?:\*\*)?\(?[A-J]\b)",
    re.IGNORECASE,
)
_REMARK = re.compile(r"\s{1,3}\([^()\n]{2,60}\)$|\s{1,3}of(?:\s{1,3}[A-Za-z'’-]{1,30}){1,8}$")
_BEFORE_ANSWER = re.compile(
    r"(?<!no )\b(?:doubt|doubtful|unsure|unlikely|not (?:sure|think|believe|certain)|n['’]t (?:sure"
    r"|think|believe|certain))\b[^.\n!?]*\Z"
    r"|\b(?:if|suppose|assum(?:e|ing)|whether|false|wrong|incorrect|mistake|previous|nobody\s[a-z ]{1,24})"
    r"(?:\s(?:is|that|the|final|correct)){0,4}\s\Z",
    re.IGNORECASE,
)
_CORRECTION = re.compile(
    r"[.\s*$]{0,6}"
    r"(?:actually|(?:no|hmm|oops|sorry)[,.!:]|(?:no,? )?wait\b|correction\b|scratch that)[^\n]{1,80}",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"\A(?:[^\W\d_]{2,}\W{1,3}[^\W\d_]{2,}|[^\W\d_]{2,} \S)")
"""Text that begins with words, as a sentence does; a number with its unit does not match."""
_QUANTITY = re.compile(
    r"\$[^$\n]{1,80}\$|\\\([^\n]{1,80}?\\\)"
    r"|[-\u2212]?\$?(?<![\w.])\d++(?:,\d{3})*+(?:\.\d++)?(?:/\d++)?(?!\w*[A-Za-z_\d]|\s?[!%^*/])",
    re.ASCII,
)
_LEFT_OVER = re.compile(
    r"[\d\\$=<>^/+*]|\b(?:dozen|score|pair|most|least|up|under|below|above|between|within|until|per)\b"
)
_LABEL = re.compile(r"\b(?:page|step|equation|section|line|part|option|question|figure|table)\s\(?\d")
_UNIT_WORDS = re.compile(r"\s(?:[A-Za-z]+/)?[A-Za-z]+")
_PAIRS = (("\\(", "\\)"), ("\\[", "\\]"), ("$$", "$$"), ("$", "$"), ("**", "**"))
_AROUND = ' \t\r\n*`"“”„«»'

# Words that retract the answer after them: "not", "or", "and", and the words in between.
_FONT = r"\\(?:math(?:bf|rm|it)|text(?:bf|it)?|boldsymbol|bm)(?![A-Za-z])"
_MARKUP = rf"(?:{_FONT}|[\s*_`\"'~$(){{}}\[\],\\]){{0,12}}"
_MARKUP_IN_LINE = rf"(?:{_FONT}|[ \t*_`\"'~$(){{}}\[\]\\]){{0,12}}"
_MAYBE = "perhaps|maybe|possibly|probably|potentially|likely|alternatively"
_FILLER = (
    rf"(?:(?:{_MAYBE}|even|else|rather|also|just|simply|about|around|exactly|it(?:['’]s)?|is)(?![A-Za-z])"
    rf"{_MARKUP}){{0,3}}"
)
_ALSO = rf"(?:(?:{_MAYBE}|also|even|exactly|about)(?![A-Za-z]){_MARKUP}){{0,3}}"
"""Words allowed after "and"; "is" is not one of them because it begins another sentence."""
_PLAIN = r"be|equals?|to|exactly|even|just|simply|really|necessarily"
_NAMED = r"(?:[A-Za-z](?:_\{?\w{1,4}\}?)?[ \t]{0,4}=[ \t$\\(]{0,6})?"
_OR = re.compile(
    rf"(?:(?<![A-Za-z\\])(?:or|ou|oder|o|или)(?![A-Za-z])|或者?|,(?=\s{{0,4}}(?:{_MAYBE}))){_MARKUP}{_FILLER}{_NAMED}$"
)
_AND = re.compile(rf"(?:(?<![A-Za-z\\])and(?![A-Za-z])|[和与]|/){_MARKUP}{_ALSO}{_NAMED}$")
_NOT = re.compile(
    r"(?:(?<![A-Za-z\\])(?:not|nor|never|cannot|(?:could|might|may) be|pas|nicht|не|no es"
    r"|[A-Za-z]{1,8}n['’]t)(?![A-Za-z])|不[是为為]|≠|!=|\\neq?(?![A-Za-z])|\\not\s?=)"
    rf"{_MARKUP_IN_LINE}(?:(?:{_PLAIN})(?![A-Za-z]){_MARKUP_IN_LINE}){{0,3}}{_NAMED}$"
)
_LAST_WORD = re.compile(r"[^\s*]\S{0,19}\s{0,4}$")

# In other languages the words for "not" are listed; those for "or" and "maybe" are not.
_NO = (
    "pas|nicht|não|non|niet|geen|inte|ikke|ikkje|ei ole|nie|není|nejsou|nem|nu (?:este|e|sunt)"
    "|no (?:es|son|puede)|nije|δεν|не|לא|אינ[והםן]|ليست?|لیس|bukan|tidak|không(?: phải)?|ไม่(?:ใช่)?"
)
_NO = rf"(?<![^\W\d_])(?:{_NO})(?![^\W\d_])(?:\s[^\W\d_]{{1,12}}){{0,2}}|ไม่ใช่|không phải là"
_NO += "|不(?:会|會|可能)[是为為]"
_NOT_THERE = re.compile(rf"(?:{_NO}){_MARKUP_IN_LINE}$", re.IGNORECASE)
_NOT_BEHIND = re.compile(
    r"[$*_\s]{0,4}(?:değil|نیست|नहीं|নয়|では(?:ない|ありません|なく)|じゃない|でない|[이가은는]?\s?(?:아니|아닙))"
)
_ENGLISH = re.compile(r"\b(?:the|and|are|she|they|it|there|this|that|with|from|which|have)\b", re.IGNORECASE)


def stated(text: str, *, words: bool = False) -> Span | None:
    r"""Return the position of the last answer that a reply states; None if it does not state an answer.

    With ``words``, the answer is a name or another text, not mathematics.
    """
    header = last_match(_HEADER, text)
    if header is None:
        return None
    if words:
        stop = _before_clause(text, header.end(), _sentence_end(text, header.end(), True))
        return trimmed(text, Span(_after_last_is(text, header.end(), stop), stop))
    if doubt := _BEFORE_ANSWER.search(text, max(0, header.start() - MAX_BEFORE), header.start()):
        return Span(doubt.start(), _sentence_end(text, header.end()))
    start = _peeled(text, header.end(), len(text))
    end = _sentence_end(text, start)
    stop = _before_clause(text, start, end)
    start = _peeled(text, _after_last_is(text, start, stop), stop)
    if correction := _CORRECTION.match(text, end):
        return Span(start, correction.end())
    return _core(text, Span(start, stop))


def last_match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """Return the last match of a pattern, found in one pass; None without a match."""
    matches = deque(pattern.finditer(text), maxlen=1)
    return matches[0] if matches else None


def trimmed(text: str, span: Span) -> Span:
    """Return the span without white space, quotes and Markdown stars at its ends."""
    inside = span.of(text)
    start = span.end - len(inside.lstrip(_AROUND))
    return Span(start, max(start, span.start + len(inside.rstrip(_AROUND))))


def widened(text: str, span: Span) -> Span:
    """Return the span of an answer together with words that retract it; the same span without such words."""
    from_ = max(0, span.start - _WINDOW)
    before = text[from_ : span.start]
    start = no.start() if (no := _NOT.search(before)) else None
    for pattern in (_OR, _AND):
        if start is None and (found := pattern.search(before)):
            word = _LAST_WORD.search(before[: found.start()].rstrip("( \t\n"))
            if word and (pattern is _OR or re.search(r"\d\W{0,6}$", word[0])):
                start = word.start()
    if start is None and not _ENGLISH.search(text):
        denied = _NOT_THERE.search(before)
        start = denied.start() if denied else None
        if start is None and (behind := _NOT_BEHIND.match(text, span.end)):
            return Span(span.start, behind.end())
    if start is None:
        return span
    # include the closing math delimiter around the answer
    end = span.end + (text.startswith("$", span.end) or 2 * text.startswith("\\)", span.end))
    return Span(from_ + start, end)


def _after_last_is(text: str, start: int, stop: int) -> int:
    return max((match.end() for match in _IS.finditer(text, start, stop)), default=start)


def _sentence_end(text: str, start: int, words: bool = False) -> int:
    """Return the end of the sentence or the line; a delimited formula at the start may span many lines."""
    opening = start + 2 * text.startswith("**", start)
    pair = _pair(text, Span(opening, min(len(text), opening + MAX_FORMULA)))
    if pair and (text.startswith(".", pair[1]) or pair[0].of(text).rstrip().endswith(".")):
        return pair[1]
    for match in _END.finditer(text, pair[1] if pair else start):
        before = text[max(start, match.start() - 24) : match.start()]
        name = (
            words and _INITIAL.search(before) and _NAME_GOES_ON.match(text, match.start(), match.start() + 60)
        )
        if match.group() != "." or not (_SHORT.search(before) or name):
            return match.start()
    return len(text)


def _before_clause(text: str, start: int, stop: int) -> int:
    """Return the start of a clause that gives reasons or says what the answer is not; else ``stop``."""
    match = _CLAUSE.search(text, start + 1, stop)
    if match is None or _DOUBT.search(text, match.end(), stop):
        return stop
    relative = text[match.end() : stop] if match.group().endswith(("which", "who")) else ""
    claims = (
        len(relative) > MAX_PROSE
        or re.search(r"[\d\\$]|\b(?:option|choice|letter)\b|\([A-J]\)", relative)  # "10/2, which is 5"
        or _DENIAL.search(relative)
        or any(_number(word) for word in relative.split())
    )
    return stop if claims else match.start()


def _peeled(text: str, start: int, stop: int) -> int:
    """Return the start of the answer, after words like "simply"."""
    while match := _SIMPLY.match(text, start, stop):
        start = match.end()
    return start


def _core(text: str, span: Span) -> Span:
    """Return the formula or the bold text at the start of the span, or the number without its remark.

    Return the stripped span if the other words may change the answer.
    """
    span = Span(span.end - len(span.of(text).lstrip()), span.end)
    if pair := _pair(text, span):
        inside, rest = trimmed(text, pair[0]), text[pair[1] : span.end].strip(_AROUND)
        return inside if not rest or _says_nothing(inside.of(text), rest) else trimmed(text, span)
    span = _only_number(text, trimmed(text, span))
    remark = _REMARK.search(text, max(span.start, span.end - MAX_PROSE), span.end)
    head = text[span.start : remark.start()] if remark else ""
    if remark and _number(head) and _says_nothing(head, remark[0].strip(" ()")):
        return Span(span.start, remark.start())
    return span


def _only_number(text: str, span: Span) -> Span:
    """Return the only number or formula of a sentence.

    Return the span unchanged if there is none or more than one, or if other words may change the answer.
    """
    sentence = span.of(text)
    if len(sentence) > MAX_PROSE or not _SENTENCE.search(sentence) or _matters(sentence):
        return span
    numbers = [match for match in _QUANTITY.finditer(sentence) if re.search(r"\d", match[0])]
    rest = _QUANTITY.sub("", sentence)
    several = len(numbers) != 1 or any(_number(word) for word in rest.split())
    if several or _LEFT_OVER.search(rest) or _LABEL.search(sentence):
        return span
    start, end = numbers[0].span()
    unit = _UNIT_WORDS.match(sentence, end)
    measured = _number(sentence[start : unit.end()]) if unit else None
    return Span(
        span.start + start, span.start + (unit.end() if unit and measured and measured.measure else end)
    )


def _pair(text: str, span: Span) -> tuple[Span, int] | None:
    """Return the span inside the delimiters at the start of the span, and the end of the closing delimiter.

    Return None if there is no such pair, or if the dollar sign is money.
    """
    for opening, closing in _PAIRS:
        inside = span.start + len(opening)
        if not text.startswith(opening, span.start):
            continue
        close = text.find(closing, inside, span.end)
        one_line = opening in ("$", "**")
        if close < 0 or (one_line and "\n" in text[inside:close]) or not text[inside:close].strip():
            return None
        money = opening == "$" and text[close + 1 : close + 2].isdigit()
        return None if money else (Span(inside, close), close + len(closing))
    return None


def _says_nothing(head: str, rest: str) -> bool:
    """Return whether the words after an answer add nothing: no doubt, other number, measure or scale."""
    number, remark = _number(head), _number(rest)
    if remark is not None:  # 12 (twelve)
        return number is not None and number.value == remark.value
    words = rest.split()
    if len(rest) > MAX_PROSE or re.search(r"[\d\\$=<>^/+]", rest) or _matters(rest):
        return False
    if words[0] == "of" and (max(map(len, words[1:])) < 3 or any(map(_number, words))):
        return False  # "of x" multiplies the answer
    whole = _number(f"{head} {rest}")
    return whole is None or number is None or (number.value == whole.value and not whole.measure)


def _matters(prose: str) -> bool:
    """Return whether prose may change the answer because it doubts, denies or counts."""
    return any(pattern.search(prose) for pattern in (_DOUBT, _DENIAL, _COUNTS))


def _number(text: str) -> Number | None:
    return parse_number(clean(text)) if len(text) <= MAX_PROSE else None
