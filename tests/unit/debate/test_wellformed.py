"""Well-formed XML as lxml sees it, beside the tolerant parser: on well-formed replies both read the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from debate import parse_turn
from debate.parsing.tags import is_well_formed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<solution>4</solution>", True),
        ("before <solution>x &lt; 5</solution> after", True),
        ("<comparison>K7 > Q2</comparison>", True),
        ("<solution>x < 5</solution>", False),
        ("<solution>4", False),
        ("<solution>4</Solution>", False),
        ("R&D", False),
        ("&lol;", False),
        ('<!DOCTYPE r [<!ENTITY e "x">]><r>&e;</r>', False),
        ("<?xml version='1.0'?>", False),
        ("a\x00b", False),
        ("\ud800", False),
        ("<a>" * 100_000, False),
        ("x" * (1 << 20), True),
        ("x" * ((1 << 20) + 1), False),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_is_well_formed(text, expected):
    assert is_well_formed(text) is expected


@given(st.text())
def test_it_never_raises(text):
    assert is_well_formed(text) in (True, False)


WORDS = st.text("abc 12+=.\\{}", max_size=20)


@given(WORDS, WORDS, st.sampled_from(["K7 > Q2", "Q2 = K7", "K7 < Q2\nQ2 > K7"]))
def test_the_parser_reads_well_formed_replies_as_lxml_does(solution, evaluation, comparison):
    written = comparison.replace("<", "&lt;")
    text = (
        f"<solution>{solution}</solution><evaluation>{evaluation}</evaluation>"
        f"<comparison>{written}</comparison>"
    )
    parsed = parse_turn(text, handles=("K7", "Q2", "M4"), own="M4", due=True)
    root = etree.fromstring(f"<reply>{text}</reply>")

    assert is_well_formed(text)
    assert [parsed.solution.of(text), parsed.evaluation.of(text)] == [solution, evaluation]
    assert [root[0].text or "", root[1].text or ""] == [solution, evaluation]
    assert parsed.comparison.of(text).replace("&lt;", "<") == root[2].text
