r"""The first two layers of the grader: what rules alone refuse or decide, without a library.

An answer is compared as it is spelled, as a word, as a letter, as an exact number, and as a formula or a list
of formulas (``structures``), in this order. What remains are relations and notations beyond the grammar.
"""

from __future__ import annotations

import re

from envs.answers.formulas import constant_of, rounding, same_rounded, same_value
from envs.answers.notation import BOUND, clean, sides, spelling, value_stated
from envs.answers.numbers import Number, other_notation, parse_number, without_unit, words_value
from envs.answers.regions import region_of
from envs.answers.relations import names_differ, relations_of, same_relations
from envs.answers.structures import same_structure
from envs.answers.texts import same_time
from envs.grading.limits import refusal
from envs.types import Grade, GradeStatus

_TEXT_GOLD = re.compile(r"[A-Za-z][A-Za-z' -]*")
_ARTICLE = re.compile(r"^(?:an?|the) (?=[A-Za-z]{3})", re.IGNORECASE)
_SHORT_WORDS = frozenset(("yes", "no", "odd", "even", "one", "two", "six", "ten", "all", "red", "sun", "mon"))
_IN_TEXT = re.compile(r"\s*\$*\\(?:text\w{0,6}|mbox)\s*\{\s*[A-Za-z\d'. -]*\}\$*\s*", re.ASCII)
_FUNCTION_NAMES = r"(?!sqrt|sin|cos|tan|cot|sec|csc|arc|log|ln|pi|exp|abs|mod|or|and|not)"
_NAME = re.compile(rf"{_FUNCTION_NAMES}(?:[A-Za-z]+\d[A-Za-z\d]*|[A-Za-z]{{2,}} \d+)", re.ASCII)
_NAME_SIGNS = str.maketrans("", "", "_{}")
_DATE = re.compile(r"(\d+) ([A-Za-z]{2,})|([A-Za-z]{2,}) (\d+)", re.ASCII)
_NEAR = re.compile(
    r"(?:[A-Za-z]\s?(?==?\\))?(?:=\s?)?(?:\\approx(?![A-Za-z])|(?:approximately|about|roughly|around)\b)\s?"
)
_ON_SCALE = re.compile(r"\s?(?:°\s?|\bdegrees?\s)(C(?:elsius)?|F(?:ahrenheit)?|celsius|fahrenheit)\s?$")
_MATH_WORDS = re.compile(r"(?<![\\A-Za-z])(?!sqrt|frac|sin|cos|tan|log|ln|pi|exp|mod)[A-Za-z]{2,}")
_LIST = re.compile(r"[,;]|\b(?:or|and)\b|\\pm|\\text|\\cup")
_SUM = re.compile(r"[\d)}]\s*(?:[+*×·÷-]|\\cdot|\\times|\\div)\s*[\d({\\]")
_BASED = re.compile(r"\(?([0-9A-Z]{1,60})\)?_\{?\s?\(?(\d{1,2}|[a-z]{3,8})\)?\s?\}?", re.ASCII)
_NUMERAL = re.compile(r"\s?([-−]?)\$?([1-9]\d{0,2}(?:,\d{3})+|\d{1,60})(\.\d{1,60})?\.?\s?", re.ASCII)
MAX_CLEANED = 4000
_ONLY = re.compile(r"^\\\{([^{},;]{1,40})\\\}$")  # a set of one number
_ASSIGNED = re.compile(r"([A-Za-z](?:_\{?\w{1,3}\}?)?)\s?=")
_PLACES = re.compile(r"-?\d{1,15}\.\d{1,15}", re.ASCII)
_DANGLING = re.compile(
    r"(?:[-+*/^_<>]|\\(?:cdot|times|div|d?frac|sqrt|pm|mp|cup|le|ge|lt|gt|in))\s?$|^\s?[*/^_<>]|[-+]\s?[-+]"
)
_SETS = re.compile(
    r"[\[\](<>]|\\(?:le|ge|neq|mathbb|emptyset|[{])|\breals?\b|\b(?:empty|null) set|\bno\b", re.IGNORECASE
)
_STRAY = re.compile(r"[&#?$@]|\\\\")


def exact(answer: str, gold: str, *, library: bool = False) -> Grade | None:
    r"""Return the grade if the first two layers decide it; None if symbols must be compared.

    ``library``: by math-verify's policy where ours is another: a decimal of two places or more stands for
    the closed form that it rounds, and a relation never for a set.
    """
    if (same := _plain_numbers(answer, gold)) is not None:
        return decided(same, "number")
    plain, truth = clean(answer[:MAX_CLEANED]), clean(gold)
    if not plain:
        return decided(False, "empty")
    if spelling(plain) == spelling(truth) and len(answer) <= MAX_CLEANED:
        return decided(True, "spelling")
    if broken := refusal(answer):
        return decided(False, f"refused: {broken}")
    if broken := refusal(gold):  # of a source that checks none: no rule may read it, and nothing was graded
        return Grade(GradeStatus.CRASH, f"gold refused: {broken}")
    truth = _without_rounding(truth, "") or truth
    if (same := _approximation(plain, truth, library=library)) is not None:
        return decided(same, "approximation")
    if (stated := _without_rounding(plain, truth)) is None:
        return decided(False, "approximation")
    plain = stated
    if (plain := _on_scale(plain, truth)) is None:
        return decided(False, "degrees")
    truth = _ON_SCALE.sub("°", _without_near(truth))
    if (same := same_time(plain, truth)) is not None:
        return decided(same, "time")
    in_text = _IN_TEXT.fullmatch(gold) is not None
    with rounding(library):
        return (
            _as_region(plain, truth, library=library)
            or _as_word(plain, truth)
            or _as_name(plain, truth, in_text=in_text)
            or _as_relation(plain, truth, library=library)
            or _as_mathematics(plain, truth)
        )


def _plain_numbers(answer: str, gold: str) -> bool | None:
    """Return whether two plain decimal numerals are equal: nine in ten answers to word problems end here."""
    left, right = _NUMERAL.fullmatch(answer), _NUMERAL.fullmatch(gold)
    return _digits(left) == _digits(right) if left and right else None


def _digits(numeral: re.Match[str]) -> tuple[str, str, str]:
    whole, part = numeral[2].replace(",", "").lstrip("0"), (numeral[3] or "").rstrip("0.")
    return ("-" if numeral[1] and (whole or part) else "", whole, part)


def _as_word(plain: str, truth: str) -> Grade | None:
    if _is_text(truth):
        return decided(_letters(_ARTICLE.sub("", plain)) == _letters(_ARTICLE.sub("", truth)), "text")
    if (based := _BASED.fullmatch(truth)) and (based[1].isdigit() or (_base(based) or 0) > 10):
        return decided(_same_numeral(plain, based), "base")
    if any(map(BOUND.search, sides(plain))) and not any(map(BOUND.search, sides(truth))):
        return decided(False, "unevaluated")
    return None


def _as_region(plain: str, truth: str, *, library: bool) -> Grade | None:
    """Grade a set of reals where the gold answer is one: by its pieces on the line."""
    gold = region_of(truth, gold=True) if _SETS.search(truth) else None
    claim = region_of(plain) if gold is not None else None
    if gold is None or claim is None:
        return None
    if library and claim.related and not gold.related:
        return decided(False, "relation")
    same = claim.same(gold)
    return decided(same, "region") if same or not library else None


def _as_relation(plain: str, truth: str, *, library: bool) -> Grade | None:
    """Grade a relation where the gold answer is one; a gold answer that is solved wants a solved one."""
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


def _as_name(plain: str, truth: str, *, in_text: bool) -> Grade | None:
    """Grade names, which are not products of letters: text in its command, "B12", "Mar 5", anagrams."""
    if parse_number(truth) is not None:
        return None
    plain = plain if len(sides(plain)) > 1 else re.sub(r"^\((\w+)\)$", r"\1", sides(plain)[0])
    plain, truth = plain.translate(_NAME_SIGNS), truth.translate(_NAME_SIGNS)
    named = [_NAME.fullmatch(text) is not None for text in (plain, truth)]
    words = set(re.findall("[A-Za-z]{2,}", truth))
    text = in_text and bool(words or named[1]) and not words & {"or", "and"}
    if text or any(named):
        fold = str.casefold if text or words else str
        return decided((text or all(named)) and fold(_in_order(plain)) == fold(_in_order(truth)), "name")
    return None


def _in_order(text: str) -> str:
    """Return a name without blanks, the number of "5 Mar" after the word."""
    match = _DATE.fullmatch(text)
    return f"{match[2] or match[3]}{match[1] or match[4]}" if match else re.sub(r"[^A-Za-z\d]", "", text)


def _approximation(plain: str, truth: str, *, library: bool) -> bool | None:
    """Return whether an approximate value equals a gold decimal; None if the answer is not approximate."""
    near = _NEAR.match(plain)
    if near is None:
        return None
    claims = sides(_without_near(truth))
    number, gold = parse_number(plain[near.end() :]), parse_number(claims[0]) if len(claims) == 1 else None
    return number is not None and gold is not None and number.same(gold) and (library or "." in claims[0])


def _without_rounding(plain: str, truth: str) -> str | None:
    r"""Return what ``12\\pi \\approx 37.7`` states, the decimal for a decimal gold; None if both differ."""
    form, _, rounded = plain.partition(r"\approx")
    if not form.strip() or not _PLACES.fullmatch(rounded := rounded.strip()):
        return plain
    value, places = constant_of(sides(form.strip())[-1]), len(rounded.partition(".")[2])
    if value is None or abs(value - float(rounded)) > 0.5000001 * 10**-places:
        return None
    return rounded if "." in truth and parse_number(truth) else form.strip()


def _without_near(truth: str) -> str:
    """Return an approximate gold number without the words or sign that say so."""
    near = _NEAR.match(truth)
    return truth[near.end() :] if near and parse_number(truth[near.end() :]) else truth


def _on_scale(plain: str, truth: str) -> str | None:
    """Return the answer without the scale of its degrees; None where the gold answer's is another."""
    scales = [_ON_SCALE.search(text) for text in (plain, truth)]
    names = {scale[1][0].upper() for scale in scales if scale}
    return None if len(names) > 1 else _ON_SCALE.sub("°", plain)


def _same_numeral(plain: str, gold: re.Match[str]) -> bool:
    """Whether the digits are equal, and the base where the answer gives one: 12_7 is not 12_5, and 12 is."""
    claim = _BASED.fullmatch(sides(plain)[-1]) if len(sides(plain)) == 1 else None
    return (claim[1], _base(claim)) == (gold[1], _base(gold)) if claim else sides(plain) == [gold[1]]


def _base(numeral: re.Match[str]) -> int | None:
    value = words_value(numeral[2]) if numeral[2].isalpha() else int(numeral[2])
    return None if value is None else int(value)


def _as_mathematics(plain: str, truth: str) -> Grade | None:
    names = [_ASSIGNED.match(text) for text in (plain, truth)]
    assigned = all(text.count("=") == 1 and len(sides(text)) == 1 for text in (plain, truth))
    if assigned and names[0] and names[1] and names[0][1].casefold() != names[1][1].casefold():
        return decided(False, "another name")
    if len(sides(truth)) == 1 and (number := _number_of(sides(truth)[-1])):
        return _against_number(plain, number)
    if _well_formed(truth) and not _well_formed(plain):
        return decided(False, "malformed")
    same = same_structure(plain, truth)
    return None if same is None else decided(same, "value")


def _number_of(truth: str) -> Number | None:
    """Return the gold answer's number; a decimal comma is read only where no list looks so: 0,125."""
    if number := parse_number(truth):
        return number
    other = other_notation(truth) if re.match(r"-?0,\d{3}", truth) else None
    return parse_number(other) if other else None


def _against_number(plain: str, gold: Number) -> Grade:
    """Grade an answer where the gold answer is a number: every side of its chain must be that number."""
    plain = _ONLY.sub(r"\1", value_stated(plain))
    if (number := parse_number(other_notation(plain) or plain)) is not None:
        same = number.same(gold) or same_rounded(plain, str(gold.value))
        return decided(same, "number")
    claims = [parse_number(side) for side in sides(plain)]
    if any(number is not None and not number.same(gold) for number in claims):
        return decided(False, "number")
    if all(number is not None for number in claims):
        return decided(len(set(sides(plain))) == len(claims), "number")  # 5=5 says nothing
    if _SUM.search(sides(plain)[-1]):
        return decided(False, "unevaluated")
    value = str(gold.value)
    return decided(
        all(same_value(side, value) or same_rounded(side, value) for side in sides(plain)), "value"
    )


def pairs_to_check(answer: str, gold: str) -> list[tuple[str, str]]:
    """Return the (gold, answer) pairs that must all be equal: each side of a chain is a claim."""
    plain, truth = clean(answer), clean(gold)
    plain = plain if _MATH_WORDS.search(truth) else without_unit(plain)
    if _LIST.search(plain) or len(sides(truth)) > 1:
        return [(truth, plain)]
    return [(sides(truth)[0], side) for side in sides(plain)]


def _well_formed(plain: str) -> bool:
    """Whether brackets close and no sign stands in it that math-verify would drop with all that follows."""
    braces = plain.replace("\\{", "").replace("\\}", "")
    ends = (
        braces.count("{") == braces.count("}") and plain.count("|") % 2 == 0 and not _DANGLING.search(plain)
    )
    return ends and ("\\begin{" in plain or not _STRAY.search(plain))


def _is_text(truth: str) -> bool:
    words = truth.lower().split()
    return bool(_TEXT_GOLD.fullmatch(truth)) and any(len(word) > 3 or word in _SHORT_WORDS for word in words)


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.casefold())


def decided(right: bool, method: str) -> Grade:
    """Return the grade of a rule that knows."""
    return Grade(GradeStatus.CORRECT if right else GradeStatus.WRONG, method)
