r"""The first two layers of the grader: refuse or decide answers by rules, and choose those for math-verify.

Answers are compared in this order: by spelling, as sets of reals, as words, names or relations, as numbers,
and as formulas or lists of formulas (``structures``). Undecided answers go to math-verify. That library drops
what it cannot parse: bounds of sums, negations, primes, units, and the difference between "and" and "or". So
it is used only for texts of a fixed alphabet, and only if everything that it may drop is the same on both
sides: letters, names of functions, primes, subscripts, relation signs, commas and unions.
"""

from __future__ import annotations

import re
from collections import Counter

from envs.answers.formulas import GREEK, ROUNDED, called, constant_of, same_rounded, same_value
from envs.answers.notation import BOUND, clean, sides, spelling, value_stated
from envs.answers.numbers import Number, other_notation, parse_number, without_unit, words_value
from envs.answers.relations import names_differ, region_of, relations_of, same_relations
from envs.answers.structures import same_structure
from envs.answers.words import same_time
from envs.grading.limits import refusal
from envs.types import Grade, GradeStatus

MAX_CLEANED = 4000
_NUMERAL = re.compile(r"\s?([-−]?)\$?([1-9]\d{0,2}(?:,\d{3})+|\d{1,60})(\.\d{1,60})?\.?\s?", re.ASCII)
_TEXT_GOLD = re.compile(r"[A-Za-z][A-Za-z' -]*")
_ARTICLE = re.compile(r"^(?:an?|the) (?=[A-Za-z]{3})", re.IGNORECASE)
_SHORT_WORDS = frozenset(("yes", "no", "odd", "even", "one", "two", "six", "ten", "all", "red", "sun", "mon"))
_IN_TEXT = re.compile(r"\s*\$*\\(?:text\w{0,6}|mbox)\s*\{\s*[A-Za-z\d'. -]*\}\$*\s*", re.ASCII)
_NAME = re.compile(
    r"(?!sqrt|sin|cos|tan|cot|sec|csc|arc|log|ln|pi|exp|abs|mod|or|and|not)"
    r"(?:[A-Za-z]+\d[A-Za-z\d]*|[A-Za-z]{2,} \d+)",
    re.ASCII,
)
_DATE = re.compile(r"(\d+) ([A-Za-z]{2,})", re.ASCII)
_NEAR = re.compile(
    r"(?:[A-Za-z]\s?(?==?\\))?(?:=\s?)?(?:\\approx(?![A-Za-z])|(?:approximately|about|roughly|around)\b)\s?"
)
_PLACES = re.compile(r"-?\d{1,15}\.\d{1,15}", re.ASCII)
_ON_SCALE = re.compile(r"\s?(?:°\s?|\bdegrees?\s)(C(?:elsius)?|F(?:ahrenheit)?|celsius|fahrenheit)\s?$")
_BASED = re.compile(r"\(?([0-9A-Z]{1,60})\)?_\{?\s?\(?(\d{1,2}|[a-z]{3,8})\)?\s?\}?", re.ASCII)
_SETS = re.compile(
    r"[\[\](<>]|\\(?:le|ge|neq|mathbb|emptyset|[{])|\breals?\b|\b(?:empty|null) set|\bno\b", re.IGNORECASE
)
_ONLY = re.compile(r"^\\\{([^{},;]{1,40})\\\}$")  # a set of one number
_ASSIGNED = re.compile(r"([A-Za-z](?:_\{?\w{1,3}\}?)?)\s?=")
_SUM = re.compile(r"[\d)}]\s*(?:[+*×·÷-]|\\cdot|\\times|\\div)\s*[\d({\\]")
_DANGLING = re.compile(
    r"(?:[-+*/^_<>]|\\(?:cdot|times|div|d?frac|sqrt|pm|mp|cup|le|ge|lt|gt|in))\s?$|^\s?[*/^_<>]|[-+]\s?[-+]"
)
_STRAY = re.compile(r"[&#?$@]|\\\\")
_MATH_WORDS = re.compile(r"(?<![\\A-Za-z])(?!sqrt|frac|sin|cos|tan|log|ln|pi|exp|mod)[A-Za-z]{2,}")
_LIST = re.compile(r"[,;]|\b(?:or|and)\b|\\pm|\\text|\\cup")
_COMMAND_NAMES = (  # commands that math-verify can parse
    "frac sqrt pi infty cdot times div le ge cup cap setminus mathbb sin cos tan cot sec csc arcsin arccos "
    "arctan sinh cosh tanh ln log exp binom lfloor rfloor lceil rceil begin end pm bmod langle rangle"
)
_COMMANDS = frozenset("\\" + name for name in _COMMAND_NAMES.split())
_TOKEN = re.compile(
    r"\\[A-Za-z]+|\\\\|\\[{}]|\d+(?:\.\d+)?|\.\d+|[A-Za-z]+|\s+|[-+*/^!(){}\[\]|_'°=<>,;&.:%]|(?P<other>.)",
    re.ASCII | re.DOTALL,
)
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\{([pb]matrix)\}")
_FUNCTIONS = frozenset(("sqrt", "sin", "cos", "tan", "ln", "log", "exp", "pi"))
_CALL = re.compile(r"(?<![A-Za-z\\])([A-Za-z]'*)(\^\{?-\d+\}?)?\(")
_MISREAD = re.compile(r"\^\{?-1\}?\(|\d\s+\.?\d|:[^:]*:", re.ASCII)
"""Text that math-verify misreads: an inverse, numbers separated by a blank (it adds them), and 1:2:3."""


def exact(answer: str, gold: str, *, library: bool = False) -> Grade | None:
    r"""Return the grade if the first two layers decide it; None if a symbolic comparison is needed.

    With ``library``, math-verify's policy replaces ours where the two differ: a decimal with at least two
    places equals the closed form that it rounds, and a relation never equals a set.

    >>> [exact(answer, "5").status.value for answer in ("x = 5", r"\frac{10}{2}", "7=5", "2+3", "3 or 5")]
    ['correct', 'correct', 'wrong', 'wrong', 'wrong']
    >>> exact("0.33", "1/3").status.value, exact("0.33", "1/3", library=True).status.value, exact("|x|", "x")
    ('wrong', 'correct', None)
    """
    left, right = _NUMERAL.fullmatch(answer), _NUMERAL.fullmatch(gold)
    if left and right:  # this decides nine of ten answers to word problems
        return decided(_digits(left) == _digits(right), "number")
    plain, truth = clean(answer[:MAX_CLEANED]), clean(gold)
    if not plain:
        return decided(False, "empty")
    if spelling(plain) == spelling(truth) and len(answer) <= MAX_CLEANED:
        return decided(True, "spelling")
    if broken := refusal(answer):
        return decided(False, f"refused: {broken}")
    if broken := refusal(gold):  # from a source that does not validate golds: no rule may parse this gold
        return Grade(GradeStatus.CRASH, f"gold refused: {broken}")
    token = ROUNDED.set(library)
    try:
        return _by_rules(plain, truth, library, in_text=_IN_TEXT.fullmatch(gold) is not None)
    finally:
        ROUNDED.reset(token)


def decided(right: bool, method: str) -> Grade:
    """Return the grade for the verdict of a rule."""
    return Grade(GradeStatus.CORRECT if right else GradeStatus.WRONG, method)


def _digits(numeral: re.Match[str]) -> tuple[str, str, str]:
    whole, part = numeral[2].replace(",", "").lstrip("0"), (numeral[3] or "").rstrip("0.")
    return ("-" if numeral[1] and (whole or part) else "", whole, part)


def _by_rules(plain: str, truth: str, library: bool, *, in_text: bool) -> Grade | None:
    truth = _without_rounding(truth, "") or truth
    near, gold_near = _NEAR.match(plain), _NEAR.match(truth)
    if gold_near and parse_number(truth[gold_near.end() :]):
        truth = truth[gold_near.end() :]
    if near:  # an approximate value stands for a decimal
        number, value = parse_number(plain[near.end() :]), parse_number(sides(truth)[0])
        same = number and value and len(sides(truth)) == 1 and number.same(value)
        return decided(bool(same and (library or "." in sides(truth)[0])), "approximation")
    stated = _without_rounding(plain, truth)
    scales = {scale[1][0].upper() for text in (plain, truth) if (scale := _ON_SCALE.search(text))}
    if stated is None or len(scales) > 1:
        return decided(False, "approximation" if stated is None else "degrees")
    plain, truth = _ON_SCALE.sub("°", stated), _ON_SCALE.sub("°", truth)
    if (same_hour := same_time(plain, truth)) is not None:
        return decided(same_hour, "time")
    gold = region_of(truth, gold=True) if _SETS.search(truth) else None
    claim = region_of(plain) if gold else None
    if gold and claim:  # sets of reals
        if library and claim.related and not gold.related:
            return decided(False, "relation")
        if claim.same(gold) or not library:
            return decided(claim.same(gold), "region")
    return (
        _as_word(plain, truth)
        or _as_name(plain, truth, in_text)
        or _as_relation(plain, truth, library)
        or _as_mathematics(plain, truth)
    )


def _without_rounding(plain: str, truth: str) -> str | None:
    r"""Return one side of an answer like ``12\\pi \\approx 37.7``: the decimal if the gold is a decimal.

    Return None if the two sides differ, and the answer unchanged if it is not of this form.
    """
    form, _, rounded = (part.strip() for part in plain.partition(r"\approx"))
    if not form or not _PLACES.fullmatch(rounded):
        return plain
    value, places = constant_of(sides(form)[-1]), len(rounded.partition(".")[2])
    if value is None or abs(value - float(rounded)) > 0.5000001 * 10**-places:
        return None
    return rounded if "." in truth and parse_number(truth) else form


def _as_word(plain: str, truth: str) -> Grade | None:
    words = truth.lower().split()
    if _TEXT_GOLD.fullmatch(truth) and any(len(word) > 3 or word in _SHORT_WORDS for word in words):
        letters = [re.sub(r"[^a-z0-9]", "", _ARTICLE.sub("", text).casefold()) for text in (plain, truth)]
        return decided(letters[0] == letters[1], "text")
    based = _BASED.fullmatch(truth)
    if based and (based[1].isdigit() or (_base(based) or 0) > 10):
        # for the gold 12_5, the answer 12_7 is wrong and 12 is right
        claim = _BASED.fullmatch(sides(plain)[-1]) if len(sides(plain)) == 1 else None
        same = (claim[1], _base(claim)) == (based[1], _base(based)) if claim else sides(plain) == [based[1]]
        return decided(same, "base")
    if any(map(BOUND.search, sides(plain))) and not any(map(BOUND.search, sides(truth))):
        return decided(False, "unevaluated")
    return None


def _base(numeral: re.Match[str]) -> int | None:
    value = words_value(numeral[2]) if numeral[2].isalpha() else int(numeral[2])
    return None if value is None else int(value)


def _as_name(plain: str, truth: str, in_text: bool) -> Grade | None:
    r"""Grade names such as ``\text`` golds, "B12" and "Mar 5"; return None if the gold is not a name.

    Names are not products of letters, so anagrams are different.
    """
    if parse_number(truth) is not None:
        return None
    plain = plain if len(sides(plain)) > 1 else re.sub(r"^\((\w+)\)$", r"\1", sides(plain)[0])
    plain, truth = re.sub("[_{}]", "", plain), re.sub("[_{}]", "", truth)
    named = [_NAME.fullmatch(text) is not None for text in (plain, truth)]
    words = set(re.findall("[A-Za-z]{2,}", truth))
    text = in_text and bool(words or named[1]) and not words & {"or", "and"}
    if not text and not any(named):
        return None
    # without blanks, and with the number of "5 Mar" after the word
    names = [_DATE.sub(r"\2\1", name) if _DATE.fullmatch(name) else name for name in (plain, truth)]
    names = [re.sub(r"[^A-Za-z\d]", "", name) for name in names]
    fold = str.casefold if text or words else str
    return decided((text or all(named)) and fold(names[0]) == fold(names[1]), "name")


def _as_relation(plain: str, truth: str, library: bool) -> Grade | None:
    """Grade a relation; return None if the gold answer is not a relation, or if the rules cannot decide.

    A solved gold answer requires a solved answer.
    """
    if names_differ(plain, truth):
        return decided(False, "another name")
    gold, claim = relations_of(truth), relations_of(plain)
    if not gold or not claim or (len(claim) > 1 and {relation.sign for relation in claim} == {"="}):
        return None
    equation = any(relation.sign == "=" for relation in (*gold, *claim))
    if region_of(truth) is not None and (equation or not library):
        return None if equation else decided(False, "not solved")
    same = same_relations(claim, gold)
    return None if same is None else decided(same, "relation")


def _as_mathematics(plain: str, truth: str) -> Grade | None:
    names = [_ASSIGNED.match(text) for text in (plain, truth)]
    assigned = all(text.count("=") == 1 and len(sides(text)) == 1 for text in (plain, truth))
    if assigned and names[0] and names[1] and names[0][1].casefold() != names[1][1].casefold():
        return decided(False, "another name")
    if len(sides(truth)) == 1:
        value = sides(truth)[0]
        # a decimal comma is accepted only if the text cannot be a list: 0,125
        other = other_notation(value) if re.match(r"-?0,\d{3}", value) else None
        if number := parse_number(value) or (parse_number(other) if other else None):
            return _against_number(plain, number)
    if _well_formed(truth) and not _well_formed(plain):
        return decided(False, "malformed")
    same = same_structure(plain, truth)
    return None if same is None else decided(same, "value")


def _against_number(plain: str, gold: Number) -> Grade:
    """Grade an answer against a gold number: every side of the answer's chain must be that number."""
    plain, value = _ONLY.sub(r"\1", value_stated(plain)), str(gold.value)
    if (number := parse_number(other_notation(plain) or plain)) is not None:
        return decided(number.same(gold) or same_rounded(plain, value), "number")
    chain = sides(plain)
    claims = [parse_number(side) for side in chain]
    if any(number is not None and not number.same(gold) for number in claims):
        return decided(False, "number")
    if all(number is not None for number in claims):
        return decided(len(set(chain)) == len(claims), "number")  # 5=5 says nothing
    if _SUM.search(chain[-1]):
        return decided(False, "unevaluated")
    return decided(all(same_value(side, value) or same_rounded(side, value) for side in chain), "value")


def _well_formed(plain: str) -> bool:
    """Return whether brackets close and there is no sign that math-verify drops with all text after it."""
    braces = plain.replace("\\{", "").replace("\\}", "")
    closed = braces.count("{") == braces.count("}") and plain.count("|") % 2 == 0
    return closed and not _DANGLING.search(plain) and ("\\begin{" in plain or not _STRAY.search(plain))


def pairs_to_check(answer: str, gold: str) -> list[tuple[str, str]]:
    """Return the (gold, answer) pairs that must all be equal: one for each side of the answer's equations."""
    plain, truth = clean(answer), clean(gold)
    plain = plain if _MATH_WORDS.search(truth) else without_unit(plain)
    if _LIST.search(plain) or len(sides(truth)) > 1:
        return [(truth, plain)]
    return [(sides(truth)[0], side) for side in sides(plain)]


def may_decide(answer: str, gold: str) -> bool:
    r"""Return whether math-verify may compare two texts (as ``clean`` returns them).

    >>> may_decide("x^2+y^2<4", "4>y^2+x^2"), may_decide(r"\sum_{k=1}^5 k", r"\sum_{k=2}^5 k")
    (True, False)
    """
    read = _is_read(answer) and _is_read(gold) and _marks(answer) == _marks(gold)
    return read and not called(answer, gold)  # math-verify reads a call as a product


def _is_read(text: str) -> bool:
    """Return whether a text has only tokens of the alphabet, and paired braces."""

    def is_known(token: str) -> bool:
        if token.startswith("\\") and token[1:].isalpha():
            return token in _COMMANDS or token in GREEK
        return not token.isalpha() or len(token) <= 3 or token in _FUNCTIONS

    if text.count("{") != text.count("}") or text.find("}") < text.find("{") or _MISREAD.search(text):
        return False
    tokens = _TOKEN.finditer(_ENVIRONMENT.sub(" ", text))
    return all(not token["other"] and is_known(token[0]) for token in tokens)


def _marks(text: str) -> object:
    """Return the features of a text that must be the same in the other text."""
    bare = _ENVIRONMENT.sub(lambda match: rf"\{match[1]} ", text).replace(r"\ge", r"\le")
    letters = {t for t in re.findall(r"\\[A-Za-z]+|[A-Za-z]", bare) if len(t) == 1 or t in GREEK}
    signs = Counter(re.findall(r"\\le|\\cup|\\cap|\\in(?![a-z])|\\setminus|[<=,;]", bare.replace(">", "<")))
    calls = frozenset(match[1] for match in _CALL.finditer(bare))
    marks = Counter(re.findall(r"\\[{}]|(?<!\\sqrt)\[|[|']", bare))
    return letters, signs, calls, marks, frozenset(re.findall(r"_(?:\{[^{}]{0,20}\}|.)", bare))
