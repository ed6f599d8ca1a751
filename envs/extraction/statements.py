r"""Find what a sentence states after "answer is", and the words around an answer that take it back.

A statement begins after the last "answer is" (or "answer:"), also on the next line, and after the last "is"
of its sentence. It ends with the sentence or the line, or before a clause that gives reasons. Only prose that
makes no difference is left out: words that hedge, count on or calculate stay, and make the answer wrong. A
number after "not" or "3 or" is read with these words. All rules are linear in the length of the text.
"""

from __future__ import annotations

import re
from collections import deque

from debate.types import Span
from envs.answers.notation import clean
from envs.answers.numbers import Number, parse_number

MAX_FORMULA = 2000
MAX_PEELED = 200

_HEADER = re.compile(
    r"(?:<answer>|\banswer[ \t]*+(?:\*\*)?(?:is\b|[:=])"
    r"|答案(?:应?[是为為]|[:=])|答[:=]|答え[はがを:]|정답[은:]|답은"
    r"|الجواب(?: هو|:)|الإجابة(?: هي|:)|उत्तर(?: है"
    r"|:)"
    r"|\bréponse(?: finale)?(?: est\b|[ \t]?:)|\bantwort(?: ist\b| lautet\b|:)"
    r"|\brespuesta(?: final)?(?: es\b|:)"
    r"|\bresposta(?: final)?(?: é\b|:)|\brisposta(?: finale)?(?: è\b|:)|\bответ(?:[ \t]?[:—–-]|ом является\b)"
    r"|\bantwoord(?: is\b|:)|\bodpowiedź(?: to\b|:)|\bcevap:|\bđáp (?:án|số)(?: là\b|:))"
    r"(?:[ \t]*+:)?(?:\*\*(?=\s))?\s*+(?:\}\s*+)?(?=\S)",
    re.IGNORECASE,
)
"""In the languages that replies are written in most."""
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
_FOREIGN_DOUBT = re.compile(
    r"\b(?:ou|oder|o|или|oppure|eller|peut-être|vielleicht|quizás?|может|возможно|talvez|forse|pas"
    r"|nicht|kein\w*|не|não|non"
    r"|niet|nie|половина|moitié|hälfte|mitad|fois|mal|veces|раз|und|et|y|и|plus|moins|minus|más"
    r"|menos|mehr|weniger"
    r"|environ|etwa|ungefähr|около|примерно|mill\w+|тысяч\w*|миллион\w*|tausend|mil)\b"
    r"|[或和与或及不非约約半倍减加乘除可也许百千万億亿几多少]|または|ない|または|또는|아니|أو|ليس|لا|या|नहीं",
    re.IGNORECASE,
)
"""Words of other languages that may change what a sentence says: "or", "not", "half", "about", "thousand"."""
_DENIAL = re.compile(
    r"\b(?:not|no|never|wrong|incorrect|false|doubt\w*|unlikely|guess|cannot)\b|n['’]t\b", re.IGNORECASE
)
_COUNTS = re.compile(
    r"\b(?:half|halves|twice|double|thrice|thirds?|quarters?|[a-z]*(?:fth|xth|nth|hth)s?|less|more|fewer|than"
    r"|and|plus|minus|times|over|squared|cubed|factorial|mod|modulo|choose(?=\W{0,4}(?:\d|\w\b))"
    r"|base|power|root|pi|percent|dozens?"
    r"|hundreds?|thousands?|[mbtr]+illions?|about|approximately|roughly|nobody|neither|none|[iknxyz])\b",
    re.IGNORECASE,
)
_SIMPLY = re.compile(
    r"(?:simply|just|exactly|precisely|therefore|thus|equal to|given by|as follows|for sure"
    r"|definitely|certainly"
    r"|clearly|obviously|indeed|surely)[ \t]*:?\s+(?=\S)"
    r"|(?:option|choice|letter)\s{1,3}(?=\(?(?:\*\*)?\(?[A-J]\b)",
    re.IGNORECASE,
)
_OPTION = re.compile(r"\b(?:option|choice|letter)\b|\([A-J]\)")
_SOMEBODY_HAS = re.compile(
    r"((?:[A-Za-z'’-]{1,30} ){1,4})(?:has|have|had|gets?|got|needs?|costs?|takes?|took|spends?|spent|earns?"
    r"|earned|pays?|paid|makes?|made|eats?|ate|sold|sells?|bought|buys?) (?:a total of )?(?=[$\\*(-]{0,3}\d)"
)
_GLOSS = re.compile(r"\s{1,3}\(([^()\n]{2,60})\)$")
_OF = re.compile(r"\s{1,3}of((?:\s{1,3}[A-Za-z'’-]{1,30}){1,8})$")
_IN_WORDS = re.compile(r",?\s{1,3}or\s{1,3}([A-Za-z][A-Za-z -]{1,60}?)(?:\s{1,3}in words)?$")
MAX_BEFORE = 48
_DOUBTED = re.compile(
    r"(?<!no )\b(?:doubt|doubtful|unsure|unlikely|not (?:sure|think|believe|certain)|n['’]t (?:sure"
    r"|think|believe|certain))\b"
    r"[^.\n!?]*\Z"
    r"|\b(?:if|suppose|assum(?:e|ing)|whether|false|wrong|incorrect|mistake|previous|nobody\s[a-z ]{1,24})"
    r"(?:\s(?:is|that|the|final|correct)){0,4}\s\Z",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    r"[.\s*$]{0,6}"
    r"(?:actually|(?:no|hmm|oops|sorry)[,.!:]|(?:no,? )?wait\b|correction\b|scratch that)[^\n]{1,80}",
    re.IGNORECASE,
)
_FOREIGN_FILLER = re.compile(
    r"(?:donc|alors|bien|simplement|exactement|égale? à|genau|also|somit|exactamente|igual a"
    r"|por (?:lo )?tanto|quindi|portanto"
    r"|равен|равно|именно|просто)\s{1,3}",
    re.IGNORECASE,
)
_FOREIGN_TAIL = re.compile(
    r"[个個人元円圆种種次只條条块本天年月日米岁歳枚回匹台]|小时|分钟|厘米|公里|千克|です|である|だ|입니다|이다|개(?:입니다)?"
    r"|명(?:입니다)?"
    r"|है"
    r"|[A-Za-z\u00c0-\u024f\u0400-\u04ff]{1,20}(?: [A-Za-z\u00c0-\u024f\u0400-\u04ff]{1,20})?"
)
"""A counter, a polite ending, or one or two words of units."""
_SENTENCE = re.compile(
    r"\A(?:[^\W\d_]{2,}\W{1,3}[^\W\d_]{2,}|[^\W\d_]{2,} \S)"
    r"|[\u00c0-\u024f\u0400-\u1fff\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]"
)
"""A sentence begins with words; a number and its unit do not."""
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

# What takes back the answer that follows: "not", "or", "and", and the words between.
_WINDOW = 96
_FONT = r"\\(?:math(?:bf|rm|it)|text(?:bf|it)?|boldsymbol|bm)(?![A-Za-z])"
_MARKUP = rf"(?:{_FONT}|[\s*_`\"'~$(){{}}\[\],\\]){{0,12}}"
_CLOSE = rf"(?:{_FONT}|[ \t*_`\"'~$(){{}}\[\]\\]){{0,12}}"
"""The same without commas and line breaks."""
_MAYBE = "perhaps|maybe|possibly|probably|potentially|likely|alternatively"
_SMALL = rf"{_MAYBE}|even|else|rather|also|just|simply|about|around|exactly|it(?:['’]s)?|is"
_FILLER = rf"(?:(?:{_SMALL})(?![A-Za-z]){_MARKUP}){{0,3}}"
_ALSO = rf"(?:(?:{_MAYBE}|also|even|exactly|about)(?![A-Za-z]){_MARKUP}){{0,3}}"
"""After "and" an "is" begins another sentence."""
_PLAIN = r"be|equals?|to|exactly|even|just|simply|really|necessarily"
_NAMED = r"(?:[A-Za-z](?:_\{?\w{1,4}\}?)?[ \t]{0,4}=[ \t$\\(]{0,6})?"
_OR = re.compile(
    rf"(?:(?<![A-Za-z\\])(?:or|ou|oder|o|или|oppure|eller)(?![A-Za-z])|或者?|または|또는"
    rf"|,(?=\s{{0,4}}(?:{_MAYBE}))){_MARKUP}{_FILLER}{_NAMED}$"
)
_AND = re.compile(rf"(?:(?<![A-Za-z\\])(?:and|und|et|y|и)(?![A-Za-z])|[和与]|/){_MARKUP}{_ALSO}{_NAMED}$")
_NOT = re.compile(
    r"(?:(?<![A-Za-z\\])(?:not|nor|never|cannot|(?:could|might|may) be|pas|nicht|не|não é|no es|non è|niet"
    r"|[A-Za-z]{1,8}n['’]t)(?![A-Za-z])"
    r"|不[是为為]|不等于|并非|[大小多少高低]于|大?约为?|可能是?|至[多少]|超过|不足|ليس|≠|!="
    r"|\\neq?(?![A-Za-z])"
    r"|\\not\s?=)"
    rf"{_CLOSE}(?:(?:{_PLAIN})(?![A-Za-z]){_CLOSE}){{0,3}}{_NAMED}$"
)
_LAST_WORD = re.compile(r"[^\s*]\S{0,19}\s{0,4}$")


def stated(text: str, *, words: bool = False) -> Span | None:
    r"""Return where the answer stands that a reply states last; None if it states none.

    ``words``: the answer is a name or another text, not mathematics.

    >>> def answer(text, words=False): return stated(text, words=words).of(text)
    >>> [answer(f"The answer is {said}") for said in ("5, which is odd.", "12 (twelve).", "5 or 6")]
    ['5', '12', '5 or 6']
    >>> answer("The answer is:\n\\[\n5\n\\]"), answer("The answer is St. Louis. It lies there.", words=True)
    ('5', 'St. Louis')
    """
    header = last_match(_HEADER, text)
    if header is None:
        return None
    if not words and "answer" not in header.group().lower():
        return _stated_elsewhere(text, header.end())
    if not words and (doubt := _DOUBTED.search(text, max(0, header.start() - MAX_BEFORE), header.start())):
        return Span(doubt.start(), _sentence_end(text, header.end(), words=False))
    start = header.end() if words else _peeled(text, header.end(), len(text))
    end = _sentence_end(text, start, words=words)
    stop = _before_clause(text, start, end)
    for match in _IS.finditer(text, start, stop):
        start = match.end()
    if words:
        return trimmed(text, Span(start, stop))
    start = _peeled(text, start, stop)
    if taken_back := _TAKEN_BACK.match(text, end):
        return Span(start, taken_back.end())
    return _core(text, Span(start, stop))


def _stated_elsewhere(text: str, start: int) -> Span:
    """Return the answer right behind the phrase of another language, without a counter or a unit behind it.

    Whatever else its sentence says stays part of it, and makes it wrong: no list of words would be whole.

    >>> def answer(text): return stated(text).of(text)
    >>> answer("答案是5个"), answer("Ответ: 42 см"), answer("Ответ: корень из 5"), answer("答案是5的平方")
    ('5', '42', 'корень из 5', '5的平方')
    """
    filler = _FOREIGN_FILLER.match(text, start)
    start = filler.end() if filler else start
    sentence = _closed(text, trimmed(text, Span(start, _sentence_end(text, start, words=False))))
    inside, end = _pair(text, sentence) or (sentence, sentence.end)
    if inside == sentence and (number := _QUANTITY.match(text, sentence.start, sentence.end)):
        inside, end = Span(*number.span()), number.end()
    tail = text[end : sentence.end].strip(_AROUND)
    counted = _FOREIGN_TAIL.fullmatch(tail) and not _matters(tail)
    return trimmed(text, inside) if not tail or counted else sentence


def last_match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """Return the last match of a pattern, in one pass."""
    matches = deque(pattern.finditer(text), maxlen=1)
    return matches[0] if matches else None


def trimmed(text: str, span: Span) -> Span:
    """Return the span without white space, quotes and Markdown stars at its ends."""
    start, end = span.start, span.end
    while start < end and text[start] in _AROUND:
        start += 1
    while end > start and text[end - 1] in _AROUND:
        end -= 1
    return Span(start, end)


def widened(text: str, span: Span) -> Span:
    r"""Return the span of an answer together with the words that take it back; the same span if none do.

    >>> [widened(t, Span(len(t) - 1, len(t))).of(t) for t in ("so 3 or 5", "$3$ or perhaps $5", "isn't 5")]
    ['3 or 5', '$3$ or perhaps $5', "isn't 5"]
    >>> [widened(t, Span(len(t) - 1, len(t))).of(t) for t in ("3 and 5", "not 3 but 5", "a and 5")]
    ['3 and 5', '5', '5']
    """
    from_ = max(0, span.start - _WINDOW)
    before = text[from_ : span.start]
    start = _taken_back(before)
    if start is None:
        return span
    # what closes the mathematics that the answer stands in
    end = span.end + (text.startswith("$", span.end) or 2 * text.startswith("\\)", span.end))
    return Span(from_ + start, end)


def _sentence_end(text: str, start: int, *, words: bool) -> int:
    """Return where the sentence or the line ends; a delimited formula at its start may have many lines."""
    opening = start + 2 * text.startswith("**", start)
    pair = _pair(text, Span(opening, min(len(text), opening + MAX_FORMULA)))
    if pair and (text.startswith(".", pair[1]) or pair[0].of(text).rstrip().endswith(".")):
        return pair[1]
    for match in _END.finditer(text, pair[1] if pair else start):
        if match.group() != "." or not _goes_on(text, start, match.start(), words=words):
            return match.start()
    return len(text)


def _goes_on(text: str, start: int, point: int, *, words: bool) -> bool:
    """Whether a point follows an abbreviation or, in texts, an initial in a name."""
    before = text[max(start, point - 24) : point]
    if _SHORT.search(before):
        return True
    return words and bool(_INITIAL.search(before)) and bool(_NAME_GOES_ON.match(text, point, point + 60))


def _before_clause(text: str, start: int, stop: int) -> int:
    """Return where a clause begins that gives reasons or says what the answer is not, else ``stop``."""
    match = _CLAUSE.search(text, start + 1, stop)
    if match is None or _DOUBT.search(text, match.end(), stop):
        return stop
    if match.group().endswith(("which", "who")) and _claims(text[match.end() : stop]):
        return stop
    return match.start()


def _claims(relative: str) -> bool:
    """Whether a relative clause gives the answer, "10/2, which is 5", or takes back what stands before it."""
    if len(relative) > MAX_PEELED or re.search(r"[\d\\$]", relative) or _DENIAL.search(relative):
        return True
    return bool(_OPTION.search(relative)) or any(_number(word) is not None for word in relative.split())


def _peeled(text: str, start: int, stop: int) -> int:
    """Return where the answer begins: after words like "simply", or after "she has"."""
    for _ in range(3):
        match = _SIMPLY.match(text, start, stop)
        start = match.end() if match else start
    match = _SOMEBODY_HAS.match(text, start, stop)
    return start if match is None or _matters(match[1]) else match.end()


def _core(text: str, span: Span) -> Span:
    """Return the formula or the bold text that opens the span, or the number without a remark on it."""
    span = Span(span.start + len(span.of(text)) - len(span.of(text).lstrip()), span.end)
    pair = _pair(text, span)
    if pair is not None:
        inside, rest = trimmed(text, pair[0]), text[pair[1] : span.end]
        whole = trimmed(text, Span(span.start, span.end)) if rest.strip(_AROUND) else inside
        return inside if whole == inside or _says_nothing(text, inside, whole, rest) else whole
    span = _only_number(text, _closed(text, trimmed(text, span)))
    for pattern in (_GLOSS, _OF, _IN_WORDS):
        match = pattern.search(text, max(span.start, span.end - MAX_PEELED), span.end)
        if match and _number(text[span.start : match.start()]) is not None:
            head = Span(span.start, match.start())
            number = _number(match[1]) if pattern is _IN_WORDS else None
            if pattern is not _IN_WORDS or number is not None:
                span = head if _is_remark(head.of(text), match[1], gloss=pattern is not _OF) else span
    return span


def _closed(text: str, span: Span) -> Span:
    r"""Return the span without a delimiter at its end that was opened before it: ``\text{Answer: } 5$``."""
    for opening, closing in _PAIRS:
        inside = span.of(text).removesuffix(closing)
        if len(inside) < span.end - span.start and opening not in inside:
            return trimmed(text, Span(span.start, span.start + len(inside)))
    return span


def _only_number(text: str, span: Span) -> Span:
    """Return the one number or formula of a sentence; the span where there is none, or words that matter.

    >>> def number(text): return _only_number(text, Span(0, len(text))).of(text)
    >>> number("There are $12$ ways to do it"), number("She has 3 and 2"), number("half of 12 ways")
    ('$12$', 'She has 3 and 2', 'half of 12 ways')
    """
    sentence = span.of(text)
    if len(sentence) > MAX_PEELED or not _SENTENCE.search(sentence) or _matters(sentence):
        return span
    numbers = [match for match in _QUANTITY.finditer(sentence) if re.search(r"\d", match[0])]
    rest = _QUANTITY.sub("", sentence)
    if (
        len(numbers) != 1
        or _LEFT_OVER.search(rest)
        or _LABEL.search(sentence)
        or any(_number(word) for word in rest.split())
    ):
        return span
    start, end = numbers[0].span()
    unit = _UNIT_WORDS.match(sentence, end)
    measured = _number(sentence[start : unit.end()]) if unit else None
    return Span(
        span.start + start, span.start + (unit.end() if unit and measured and measured.measure else end)
    )


def _pair(text: str, span: Span) -> tuple[Span, int] | None:
    """Return the inside of the delimiters that open the span, and their end; None for dollars of money."""
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


def _says_nothing(text: str, inside: Span, whole: Span, rest: str) -> bool:
    """Whether the text after a formula makes no difference: words, but no unit of measure and no scale."""
    if (spelled := _IN_WORDS.fullmatch(rest.rstrip(_AROUND))) and _number(spelled[1]):
        return _is_remark(inside.of(text), spelled[1], gloss=True)
    if len(rest) > MAX_PEELED or re.search(r"[\d\\$=<>^/+]", rest) or _matters(rest):
        return False
    number, alone = _number(whole.of(text)), _number(inside.of(text))
    return number is None or alone is None or (number.value == alone.value and not number.measure)


def _is_remark(head: str, remark: str, *, gloss: bool) -> bool:
    number, other = _number(head), _number(remark)
    if number is None or _matters(remark, except_for=other is not None):
        return False
    if not gloss:
        words = remark.split()
        return max(map(len, words)) > 2 and all(_number(word) is None for word in words)
    if other is not None:
        return other.value == number.value
    unit = _number(f"{head} {remark}")
    return unit is not None and unit.value == number.value


def _matters(prose: str, *, except_for: bool = False) -> bool:
    """Whether prose may change the answer: it doubts, denies or counts."""
    words = (_DOUBT, _DENIAL, _FOREIGN_DOUBT) if except_for else (_DOUBT, _DENIAL, _FOREIGN_DOUBT, _COUNTS)
    return any(pattern.search(prose) for pattern in words)


def _number(text: str) -> Number | None:
    return parse_number(clean(text)) if len(text) <= MAX_PEELED else None


def _taken_back(before: str) -> int | None:
    """Return where the words that take an answer back start; None if there are none."""
    if no := _NOT.search(before):
        return no.start()
    for pattern in (_OR, _AND):
        if found := pattern.search(before):
            word = _LAST_WORD.search(before[: found.start()].rstrip("( \t\n"))
            if word and (pattern is _OR or re.search(r"\d\W{0,6}$", word[0])):
                return word.start()
    return None
