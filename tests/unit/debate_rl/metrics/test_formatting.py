"""Foreign text: what is unseen is one set, and no output lets any of it through."""

from hypothesis import given
from hypothesis import strategies as st

from debate_rl.formatting import is_unseen, printable, safe, safe_lines, with_codes

HOSTILE = st.text(
    st.characters(codec=None) | st.sampled_from("\x1b\x9b\r\n\t\u202e\u2066\u200b\ud800\x7f\x85\u2028")
)


@given(HOSTILE)
def test_what_is_printed_is_printable(text):
    assert safe(text).isprintable()
    assert all(line.isprintable() for line in safe_lines(text))
    assert len(safe_lines(text)) == 1 + text.count("\n")
    assert safe(safe(text)) == safe(text)


def test_plain_text_stays_as_it_is():
    text = r"\frac{1}{2} × 3 ≤ é 日本語 😀 <b>"
    assert safe(text) == safe_lines(text)[0] == text


def test_what_a_terminal_would_obey_is_written_out():
    assert safe("\x1b]0;title\x07") == "<U+001B>]0;title<U+0007>"
    assert safe("\x9b31m\x85") == "<U+009B>31m<U+0085>"
    assert safe("a\rb\u202ec\u2069\ud800\u3164") == "a<U+000D>b<U+202E>c<U+2069><U+D800><U+3164>"
    assert safe("a\u00a0b\u2003c") == "a b c"


@given(HOSTILE)
def test_no_output_lets_an_unseen_character_through(text):
    for shown in (safe(text), printable(text), with_codes(text, "{}")):
        assert not any(is_unseen(character) for character in shown)


def test_a_text_hidden_in_variation_selectors_is_seen():
    assert safe("a\ufe00b\U000e0101c\u180b") == "a<U+FE00>b<U+E0101>c<U+180B>"
    assert printable("a\ufe0db\U000e01ef") == "a�b�"
    assert with_codes("a\ufe00\ufe01b", "[{}]") == "a[U+FE00 U+FE01]b"
    assert safe("⚠\ufe0f") == printable("⚠\ufe0f") == "⚠\ufe0f"
