"""Rows of a line: they are the whole line, in order, and fit the width."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from debate_rl.formatting import one_line, padded
from debate_rl.inspector.blocks import Span
from debate_rl.inspector.lists import Column, fitting, padded_row
from debate_rl.inspector.terminal.widgets import FULLEST, rich_line, rows

TEXTS = st.text(st.sampled_from("ab 日é\u0301👩,x "), max_size=200)


@settings(max_examples=500)
@given(TEXTS, st.integers(2, 40))
def test_rows_are_the_whole_line_and_fit(text, width):
    found = rows(text, width)
    assert "".join(text[start:end] for start, end in found) == text
    for start, end in found:
        piece = text[start:end].rstrip(" ")
        assert cell_len(piece) <= width
        assert len(piece) <= FULLEST * width + 1
    assert all(start < end for start, end in found) or text == ""


@pytest.mark.parametrize(
    ("text", "width", "wanted"),
    [
        ("a b c", 3, ["a b ", "c"]),
        ("abcdef", 4, ["abcd", "ef"]),
        ("ab cdefgh", 4, ["ab ", "cdef", "gh"]),
        ("日本語", 4, ["日本", "語"]),
        ("a 日本語", 4, ["a ", "日本", "語"]),
        ("    x", 3, ["    ", "x"]),
        ("aaaa ", 2, ["aa", "aa "]),
        ("", 3, [""]),
    ],
)
def test_lines_are_broken_after_blanks(text, width, wanted):
    assert [text[start:end] for start, end in rows(text, width)] == wanted


def test_marks_without_width_do_not_pile_up_on_one_cell():
    assert max(end - start for start, end in rows("\u0301" * 1000, 10)) <= FULLEST * 10


@given(st.text(max_size=60), st.integers(1, 30))
def test_a_cell_has_its_width(text, width):
    assert cell_len(padded(one_line(text), width)) == width


def test_columns_go_from_the_highest_need_and_the_rest_is_filled():
    columns = [
        Column("a", 4, lambda item: item[0]),
        Column("b", 6, lambda item: item[1], need=2),
        Column("c", 5, lambda item: Span(item[2], "strong"), need=1, rest=True),
    ]
    assert [(column.name, width) for column, width in fitting(columns, 30)] == [("a", 4), ("b", 6), ("c", 16)]
    assert [(column.name, width) for column, width in fitting(columns, 12)] == [("a", 4), ("c", 6)]
    assert [column.name for column, _ in fitting(columns, 3)] == ["a"]
    assert rich_line(padded_row(fitting(columns, 12), ("1", "22", "[red]x"))).plain == "   1  [red]x"
