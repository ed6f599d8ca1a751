"""Model text on a page: nothing hidden, nothing taken for markup, in linear time."""

import html
import re

from hypothesis import given
from hypothesis import strategies as st

from debate_rl.formatting import is_unseen, with_codes
from debate_rl.inspector.blocks import Link, Text
from debate_rl.inspector.web.rendering import UNSEEN, Face, environment, head, seen

TEXTS = st.text(st.characters(), max_size=200)
MARK = re.compile(r'<b class="unseen">[^<]*</b>')


@given(TEXTS)
def test_all_that_can_be_seen_is_there_and_all_else_is_named(text):
    rest = html.unescape(MARK.sub("", str(seen(text))))
    assert rest == "".join(c for c in text if not is_unseen(c))
    chains = re.findall("0+", "".join("01"[not is_unseen(c)] for c in text))
    assert len(MARK.findall(str(seen(text)))) == len(chains)


@given(TEXTS)
def test_no_markup_of_a_text_stays(text):
    without = MARK.sub("", str(seen(text)))
    assert not set(without) & set("<>\"'")
    str(seen(text)).encode("utf-8")
    assert not any(is_unseen(c) for c in with_codes(text, UNSEEN))


@given(TEXTS, st.integers(1, 50))
def test_a_head_is_a_beginning_that_stays_small(text, limit):
    cut = head(text, limit)
    assert text.startswith(cut)
    assert len(cut) <= limit
    assert len(cut) <= 1 or len(seen(cut)) <= 2 * limit


def test_what_was_left_out_is_counted():
    def left(text, most):
        return Face(lambda link: "", most).clip(Text(text, whole=Link(()))).left

    assert (left("abcdef", 4), left("abcdef", 6)) == (2, 0)
    assert left("\x00a" * 100, 50) > 150


def test_templates_escape_and_name_without_being_told():
    page = environment().from_string('<a title="{{ text }}">{{ text }}</a>').render(text='"<b>\u202e')
    assert page == '<a title="&#34;&lt;b&gt;⟨U+202E⟩">&#34;&lt;b&gt;⟨U+202E⟩</a>'


def test_emoji_and_blanks_of_scripts_stay():
    assert str(seen("⚠️ naïve\u3000日本\u00a0x")) == "⚠️ naïve\u3000日本\u00a0x"
