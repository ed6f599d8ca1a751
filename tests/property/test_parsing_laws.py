"""Laws of the parser: any text, mutated replies, relabelling, operand swap, case."""

import sys
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate.parsing import parse_turn
from debate.parsing.tags import ESCAPED, PLAIN, PRIVATE, find_tags, without_private
from debate.prompting.escape import escape
from debate.prompting.shown import public_turn
from debate.types import Completion, FailureReason, ParsedTurn, Span, Turn, TurnId

HANDLES: tuple[str, ...] = ("K7", "Q2", "M4", "X5")
OWN = "X5"
MIRROR = {"left": "right", "right": "left", "tie": "tie"}
SIGNS = {"left": [">", ">>", "≻", "&gt;", " is better than "], "right": ["<", "&lt;", " is worse than "]}
SIGNS |= {"tie": ["=", "==", "≈", "~", " is tied with "]}
PIECES = (
    "<solution>", "</solution>", "<evaluation>", "</evaluation>", "<comparison>", "</comparison>", "<think>",
    "</think>", "<\\solution>", "\\<comparison\\>", "&lt;solution&gt;", "&lt;/comparison&gt;", "< Solution >",
    "<comparison/>", "\\boxed{", "}", "{", "K7", "q2", "M4", "X5", "Z9", " > ", " < ", " = ", "&gt;", "\n",
    "\r\n", ": because ", "- ", "**", "1. ", " and ", " or ", " are tied", " is better than ", "\u200b",
    "\x00", "\ud800", "\u212a", "\u0301", "`", "```\n", ", ", "; ", "?",
)  # fmt: skip
REPLIES = (
    "<solution>2 + 2 = \\boxed{4}</solution>\n<evaluation>K7 is right, Q2 < M4?</evaluation>\n"
    "<comparison>\nK7 > Q2: Q2 adds wrongly\n- **M4** = K7\nQ2 < M4 < K7\n</comparison>",
    "<think>Draft <comparison>Q2 > K7</comparison></think>\n```xml\n<Solution>\\boxed{1}</Solution>\n```\n"
    "<EVALUATION>fine</EVALUATION><comparison>\nk7 is better than q2\nK7, Q2 and M4 are tied\nK7 > Q2",
    "I will use <solution> and <comparison>.\n<solution>x < y & \\boxed{\\frac{1}{2}}\n<evaluation>ok\n"
    "<comparison>\n1. K7 &gt; Q2; Q2 = M4\n2. X5 > K7\n</comparison> Done.",
    "&lt;solution&gt;\\boxed{3}&lt;/solution&gt;&lt;comparison&gt;K7 &gt; Q2&lt;/comparison&gt;",
)

mosaics = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=40).map("".join)
any_text = st.text(st.characters(), max_size=300) | mosaics


def _read(text: str, *, own: str | None = OWN, due: bool = True) -> ParsedTurn:
    return parse_turn(text, handles=HANDLES, own=own, due=due)


def _votes(parsed: ParsedTurn) -> list[tuple[str, str, str]]:
    return [(ballot.left, ballot.right, ballot.outcome) for ballot in parsed.ballots]


def _inside(inner: Span | None, outer: Span) -> bool:
    return inner is None or outer.start <= inner.start <= inner.end <= outer.end


def _check(text: str, parsed: ParsedTurn) -> None:
    """Everything that holds for each reading of each text."""
    whole = Span(0, len(text))
    sections = [s for s in (parsed.solution, parsed.evaluation, parsed.comparison_block) if s]
    failed = (failure.span for failure in parsed.failures)
    for span in (*sections, parsed.comparison, parsed.thinking, *failed):
        assert _inside(span, whole)
    sections.sort(key=lambda span: span.start)
    for one, other in pairwise(sections):
        assert one.end <= other.start
    if parsed.thinking:
        assert all(section.start >= parsed.thinking.end for section in sections)
    assert (parsed.comparison is None) == (parsed.comparison_block is None)
    if parsed.comparison and parsed.comparison_block:
        assert _inside(parsed.comparison, parsed.comparison_block)
    if parsed.answer is not None:
        assert parsed.solution is not None
        assert parsed.answer in parsed.solution.of(text)
    for ballot in parsed.ballots:
        assert parsed.comparison is not None
        assert _inside(ballot.span, parsed.comparison)
        assert ballot.left in HANDLES
        assert ballot.right in HANDLES
        assert ballot.left != ballot.right
        assert OWN not in (ballot.left, ballot.right)
        assert not {"\n", "\r"} & set(ballot.span.of(text))
    starts = [ballot.span.start for ballot in parsed.ballots]
    assert starts == sorted(starts)


@settings(max_examples=200)
@given(any_text)
def test_any_text_is_read_as_a_reply_or_as_a_comparison(text: str) -> None:
    for whole in (text, f"<solution>a</solution><comparison>{text}</comparison>"):
        _check(whole, _read(whole))


@st.composite
def mutated_replies(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(REPLIES))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, max(0, len(text) - 1)))
        to = draw(st.integers(at, min(len(text), at + 12)))
        part, piece = text[at:to], draw(st.sampled_from(PIECES) | st.text(max_size=2))
        changes = {
            "delete": text[:at] + text[to:],
            "repeat": text[:to] + part + text[to:],
            "insert": text[:at] + piece + text[at:],
            "swap": text[:at] + part[::-1] + text[to:],
            "cut off": text[:at],
        }
        text = changes[draw(st.sampled_from([*changes]))]
    return text


@given(mutated_replies())
def test_reading_ignores_case(text: str) -> None:
    plain = "".join(character if character.isascii() else "?" for character in text)
    readings = [_read(plain), _read(plain.upper()), _read(plain.lower())]
    assert len({str(_votes(reading)) for reading in readings}) == 1
    assert len({(reading.solution, reading.evaluation, reading.comparison) for reading in readings}) == 1


Rows = list[tuple[list[str], str, int, str]]
comparisons = st.lists(
    st.tuples(
        st.permutations(["K7", "Q2", "M4"]),
        st.sampled_from(["left", "right", "tie"]),
        st.integers(0, 9),
        st.sampled_from(["", ": Q2 > K7 once", " because it is M4 < K7", " (M4 = Q2)"]),
    ),
    min_size=1,
    max_size=6,
)


def _write(rows: Rows, *, swapped: bool = False) -> str:
    lines: list[str] = []
    for (left, right, _), outcome, form, reason in rows:
        one, other = (right, left) if swapped else (left, right)
        signs = SIGNS[MIRROR[outcome] if swapped else outcome]
        lines.append(f"{one} {signs[form % len(signs)]} {other}{reason}")
    return "<comparison>\n" + "\n".join(lines) + "\n</comparison>"


@given(comparisons)
def test_each_written_comparison_is_one_vote_and_reasons_are_none(rows: Rows) -> None:
    expected = [(left, right, outcome) for (left, right, _), outcome, _, _ in rows]
    assert _votes(_read(_write(rows))) == expected


@given(comparisons)
def test_swapping_operands_with_the_operator_is_the_same_vote(rows: Rows) -> None:
    straight = _votes(_read(_write(rows)))
    mirrored = [
        (right, left, MIRROR[outcome]) for left, right, outcome in _votes(_read(_write(rows, swapped=True)))
    ]
    assert mirrored == straight


@given(comparisons, st.permutations(list(HANDLES)))
def test_relabelling_handles_relabels_ballots(rows: Rows, shuffled: list[str]) -> None:
    names = dict(zip(HANDLES, shuffled, strict=True))
    renamed = [([names[label] for label in labels], outcome, form, "") for labels, outcome, form, _ in rows]
    plain = _votes(_read(_write([(*row[:3], "") for row in rows])))
    moved = parse_turn(_write(renamed), handles=HANDLES, own=names[OWN], due=True)
    assert _votes(moved) == [(names[left], names[right], outcome) for left, right, outcome in plain]


@given(st.text(st.sampled_from("\u200b\u200d\ufeff\u2060\u00ad"), max_size=3), comparisons)
def test_invisible_characters_change_no_vote(invisible: str, rows: Rows) -> None:
    text = _write([(*row[:3], "") for row in rows])
    head, lines, tail = text.partition("\n")[0], text.split("\n")[1:-1], "\n</comparison>"
    hidden = head + "\n" + "\n".join(invisible.join(["", *line, ""]) for line in lines) + tail
    if "&" not in text:  # an entity is spelled with visible characters only
        assert _votes(_read(hidden)) == _votes(_read(text))


@pytest.mark.parametrize(
    "unit",
    ["<", "<solution>", "<\\", "K7 > ", "K7 > Q2\n", "K7 > Q2 or ", "*", "&gt;", "<think>", "\\boxed{"],
)
def test_work_grows_linearly(unit: str) -> None:
    """Four times the text makes at most about four times the Python-level calls (a count, not a clock)."""

    def calls(length: int) -> int:
        count = 0

        def tick(_frame: object, event: str, _arg: object) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        text = f"<comparison>{unit * length}</comparison>"
        previous = sys.getprofile()
        sys.setprofile(tick)
        try:
            _read(text)
        finally:
            sys.setprofile(previous)
        return count

    assert calls(4000) <= 4.5 * calls(1000) + 200


NAMED = ("comparison", "COMPARISON", "think", "thinking", "solution", "evaluation", "comparisoning", "work")
TAILS = ("", " ", "\n", " a=1", " a=/", "/", " /", " a='x y'", " " * 5)
EDGES = [("<", ">"), ("&lt;", "&gt;"), ("<", "&gt;"), ("&lt;", ">"), ("&LT;", "&GT;"), ("＜", "＞")]
EDGES += [("\\<", "\\>"), ("&lt;", "\\&gt;")]

tags = st.builds(
    lambda edges, slash, gap, name, tail: f"{edges[0]}{slash}{gap}{name}{tail}{edges[1]}",
    st.sampled_from(EDGES),
    st.sampled_from(["", "/", " / ", "\\"]),
    st.sampled_from(["", " ", "\u200b"]),
    st.sampled_from(NAMED),
    st.sampled_from(TAILS),
)
words = st.sampled_from(
    ["so 4", "\n", " ", "<", ">", "/", "&lt;", "&gt;", "com", "parison", "&", "\\boxed{4}", "\r\n", "x<y"]
)
hostile = st.lists(tags | words, max_size=14).map("".join)


def shown(text):
    """What a peer is shown of a solution with this text in it, as the prompt has it."""
    reply = f"<solution>{text}</solution>"
    said = Completion((), (), (), reply, "stop", 0)
    turn = Turn(TurnId(0, 0), "K7", (), said, parse_turn(reply, handles=HANDLES, own=OWN, due=False))
    public = public_turn(turn)
    return "" if public.solution is None else escape(public.solution)


@settings(deadline=None)
@given(hostile)
def test_what_is_shown_has_no_tag_of_either_form(text):
    for form in (PLAIN, ESCAPED):
        assert not find_tags(form, escape(text))
        assert not [
            tag for tag in find_tags(form, without_private(text)) if tag.name in PRIVATE and not tag.closing
        ]
    assert not find_tags(PLAIN, shown(text)) + find_tags(ESCAPED, shown(text))


OWN_REPLIES = (
    "<solution>S</solution><evaluation>E</evaluation><comparison>\nM4 > Q2\nC</comparison>",
    "&lt;solution&gt;S&lt;/solution&gt;&lt;evaluation&gt;E&lt;/evaluation&gt;"
    "&lt;comparison&gt;\nM4 > Q2\nC&lt;/comparison&gt;",
)


@settings(deadline=None)
@given(hostile, st.sampled_from(OWN_REPLIES), st.sampled_from("SEC"))
def test_who_quotes_what_was_shown_casts_no_vote_with_it_and_moves_no_section(text, reply, place):
    """Quoted whole, on lines of its own, in any section of a reply of either form."""
    quote = shown(text)
    quoted = reply.replace(place, f"\n{quote}\n", 1)
    neutral = reply.replace(place, "\n" + "-" * len(quote) + "\n", 1)
    read, expected = (parse_turn(one, handles=HANDLES, own=OWN, due=True) for one in (quoted, neutral))
    for part in ("solution", "evaluation", "comparison", "thinking"):
        assert getattr(read, part) == getattr(expected, part)
    votes = [(ballot.left, ballot.right, ballot.outcome) for ballot in read.ballots]
    assert votes == [("M4", "Q2", "left")]


@settings(max_examples=300)
@given(mutated_replies())
def test_mutated_replies_never_vote_for_strangers_or_oneself(text: str) -> None:
    _check(text, _read(text))


@given(mutated_replies())
def test_nothing_votes_when_nothing_is_due(text: str) -> None:
    late, early = _read(text), _read(text, due=False)
    assert early.ballots == ()
    not_due = [failure.span for failure in early.failures if failure.reason is FailureReason.NOT_DUE]
    assert not_due == list(dict.fromkeys(ballot.span for ballot in late.ballots))
    assert (early.solution, early.answer, early.comparison) == (late.solution, late.answer, late.comparison)


@given(mutated_replies())
def test_text_behind_complete_sections_changes_nothing(text: str) -> None:
    head = "<solution>\\boxed{4}</solution><evaluation>b</evaluation><comparison>K7 > Q2</comparison>\n"
    tail = text.replace("<", "(").replace("&", "+")
    assert _read(head + tail) == _read(head)


@given(mutated_replies(), st.permutations(["K7", "Q2", "M4", "X5"]))
def test_the_order_of_the_handles_means_nothing(text: str, order: list[str]) -> None:
    assert parse_turn(text, handles=order, own=OWN, due=True) == _read(text)


@settings(deadline=None)
@given(
    st.sampled_from([("<", ">"), ("&lt;", "&gt;"), ("&LT;", "&GT;")]),
    st.sampled_from(["comparison", " Comparison ", "comparison a=1", "\ncomparison a='x y'"]),
    st.sampled_from(["/comparison", "\\comparison", "COMPARISON/", " / comparison a=1", None]),
    hostile,
    hostile,
)
def test_a_ballot_that_a_reply_of_its_own_would_cast_is_not_shown(edges, name, closing, before, behind):
    block = f"{edges[0]}{name}{edges[1]}\nK7 > Q2\n" + (f"{edges[0]}{closing}{edges[1]}" if closing else "")
    assert parse_turn(block, handles=HANDLES, own=OWN, due=True).ballots
    assert "K7 > Q2" not in shown(f"{before}\n{block}\n{behind}")
