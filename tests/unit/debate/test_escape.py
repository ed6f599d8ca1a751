import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate.parsing.tags import without_private
from debate.prompting.escape import clean, escape


@pytest.mark.parametrize(
    "text",
    [
        "x < 5 and y > 3",
        "0<x<1",
        "for x < y we get y > x",
        "1 < 2 <= 3",
        "$a<b$, so (n<m), n<m; then",
        "x<5, y<-2, \\frac{1}{2} <\\sqrt{2}",
        "a & b, \\begin{aligned} x &= 1 \\\\ y &= 2 \\end{aligned}",
        "[ABC] = 12 and [0, 1) and array[i]",
        "[asy] draw((0,0)--(1,1)); [/asy]",
        "K7: 11 + 8 = 19 right. Q2 > K7",
        " leading and trailing \n",
        "die Größe, naïve, 日本語, смешанный, 😀",
        "a\tb\nc",
    ],
)
def test_mathematics_and_prose_stay_as_they_are(text):
    assert escape(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("</solution>", "&lt;/solution>"),
        ("< / solution >", "&lt; / solution >"),
        ("<Solution>", "&lt;Solution>"),
        ("<\tcomparison>", "&lt;\tcomparison>"),
        ("n<m holds", "n&lt;m holds"),
        ("<s>", "&lt;s>"),
        ("<b/>", "&lt;b/>"),
        ("<|im_end|>", "&lt;|im_end|>"),
        ("<｜User｜>", "&lt;｜User｜>"),
        ("<<SYS>>", "<&lt;SYS>>"),
        ("<!-- -->", "&lt;!-- -->"),
        ("<![CDATA[", "&lt;![CDATA["),
        ("<?xml?>", "&lt;?xml?>"),
        ("<_x>", "&lt;_x>"),
        ("＜/solution＞", "&lt;/solution＞"),
        ("﹤solution﹥", "&lt;solution﹥"),
        ("<ѕоlution>", "&lt;ѕоlution>"),
        ("so 4 <", "so 4 &lt;"),
        ("so 4 < \n", "so 4 &lt; \n"),
        ("[INST] [/INST] [ /TOOL_CALLS ] [gMASK]", "&#91;INST] &#91;/INST] &#91; /TOOL_CALLS ] &#91;gMASK]"),
        ("<sol\u200bution>", "&lt;solution>"),
        ("&lt;/solution&gt; &LT;Comparison x=1&GT;", "&lt;/solution> &LT;Comparison x=1>"),
        ("<comparison&gt;K7 &gt; Q2", "&lt;comparison>K7 &gt; Q2"),
        ("<\u2060/solution>", "&lt;/solution>"),
    ],
)
def test_what_could_open_or_close_something_is_escaped(text, expected):
    assert escape(text) == expected


def test_line_breaks_of_every_kind_become_one():
    assert clean("a\r\nb\rc\x0bd\x0ce\x1cf\x85g\u2028h\u2029i") == "a\nb\nc\nd\ne\nf\ng\nh\ni"


def test_what_cannot_be_seen_goes():
    assert clean("a\x00\x07\x1b\x7f\xad\u200b\u200d\u202e\u2066\u3164\ufe0f\ufeff\ud800\U000e0041b") == "ab"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a <comparison>K7 > Q2</comparison> b", "a  b"),
        ("a <COMPARISON x='1'>K7 > Q2</ Comparison > b", "a  b"),
        ("a <think>secret</think> b", "a  b"),
        ("a <thinking>secret</thinking> b", "a  b"),
        ("a <comparison>K7 > Q2", "a "),
        ("a &lt;comparison&gt;K7 > Q2&lt;/comparison&gt; b", "a  b"),
        ("a <comparison>1</comparison> b <comparison>2</comparison> c", "a  b  c"),
        ("a <comparison/> b", "a <comparison/> b"),
        ("the comparison of <x> and thinking", "the comparison of <x> and thinking"),
        ("a <comparisoning>K7</comparison> b", "a <comparisoning>K7</comparison> b"),  # no tag opens
        ("a <comparison a=/>K7 > Q2", "a <comparison a=/>K7 > Q2"),  # a closing tag
        ("a <think a=/>K7", "a <think a=/>K7"),
        ("a <comparison>b &lt;/comparison&gt; K7 > Q2", "a "),  # closed in another form
        ("a <comparison><comparison>b</comparison>K7 > Q2</comparison> c", "a  c"),
        ("a <comparison>b</comparison> c <comparison>K7 > Q2", "a  c "),
        ("a <comparison><think>b</comparison> c</think> d", "a  d"),
        ("a &lt;com<think>x</think>parison&gt;K7 > Q2", "a "),  # the cut joins an opening tag
        ("</comparison> a", "</comparison> a"),
    ],
)
def test_private_blocks_inside_a_section_go(text, expected):
    assert without_private(text) == expected


pieces = st.lists(
    st.sampled_from(
        ["<", "/", "solution", "work", " ", ">", "|", "a", "&lt;", "[INST]", "\u200b", "\n", "!", "＜"]
    )
    | st.text(max_size=3),
    max_size=12,
).map("".join)


@given(pieces)
def test_no_tag_survives_wherever_the_text_is_put(text):
    """Whatever the template writes around it, escaped text completes no tag."""
    framed = f"<solution>\n{escape(text)}\n</solution>\n</work>"
    inside = framed[len("<solution>") : -len("</solution>\n</work>")]
    for token in ("<|", "<!", "<a>", "[INST]"):
        assert token not in inside
    for token in ("</", "<solution", "<work"):
        assert token not in inside.replace(" ", "").replace("\n", "")


@given(st.text())
def test_escaped_text_can_be_encoded(text):
    escape(text).encode("utf-8")
