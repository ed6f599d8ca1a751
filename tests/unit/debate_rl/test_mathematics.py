"""Which parts of a text are formulas, what of them is shown, and that nothing of them is markup."""

import json
import os
import re
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate_rl import mathematics
from debate_rl.mathematics import LONGEST, formulas, mathml, with_mathematics

pytest.importorskip("latex2mathml")
DATA = os.environ.get("DEBATE_TEST_DATA")


def found(text):
    return [text[one.start : one.end] for one in formulas(text)]


@pytest.mark.parametrize(
    "text",
    [
        "He has $5 and she has $7.",
        "It costs $5/kg, or $3 for 2 and $4 for 3.",
        "Pens cost $2-$3 each, $12 a box.",
        "$5, $7, $9 or 10$",
        "He pays 3*$5=$<<3*5=15>>15.",
        "$7 each so 5*7=$35",
        "$40=$20+$20",
        "$2 to Jonathan and he will give 3$",
        r"\$5 and \$7",
        "$ x$ and $x $",
        "a$b$ and 3$x$",
        "$x",
        r"\(x",
        r"\boxed{x",
        r"\\(x\\)",
        "$$ $$",
        "[asy] label($x$); draw($y$); [/asy]",
        r"\begin{itemize}x\end{itemize}",
    ],
)
def test_no_formula(text):
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("if $x=5$ then", ["$x=5$"]),
        ("$5$ of $10$", ["$5$", "$10$"]),
        ("the $n$th of $-3x + 2 = 1,$ and", ["$n$", "$-3x + 2 = 1,$"]),
        (r"$\$5$ or $\text{no } \$$", [r"$\$5$", r"$\text{no } \$$"]),
        (r"\(a\) \[b\] $$c$$", [r"\(a\)", r"\[b\]", "$$c$$"]),
        (r"so \boxed{\frac{1}{2}}.", [r"\boxed{\frac{1}{2}}"]),
        ("\\begin{align*}\nx&=1\n\\end{align*}", ["\\begin{align*}\nx&=1\n\\end{align*}"]),
        ("costs $5. Then $y=2$.", ["$y=2$"]),
        ("[asy] label($x$); [/asy] $z$", ["$z$"]),
        ("($x$), $y$-axis, \u201c$z$\u201d", ["$x$", "$y$", "$z$"]),
    ],
)
def test_formulas(text, parts):
    assert found(text) == parts


@pytest.mark.skipif(DATA is None, reason="needs real texts")
@pytest.mark.parametrize(
    ("name", "dollars"),
    [("gsm8k_test", 0), ("gsm8k_train", 0), ("model_outputs_gsm8k", 0), ("svamp_test", 0), ("math500", 4821)],
)
def test_word_problems_are_full_of_money_and_mathematics_of_formulas(name, dollars):
    rows = map(json.loads, (Path(DATA) / f"{name}.jsonl").read_text(encoding="utf-8").strip().split("\n"))
    texts = (text for row in rows for text in row.values() if isinstance(text, str))
    drawn = (re.sub(r"\[asy\].*?\[/asy\]", "", text, flags=re.DOTALL) for text in texts)
    count = sum(one.startswith("$") and not one.startswith("$$") for text in drawn for one in found(text))
    assert count == pytest.approx(dollars, rel=0.01)


@pytest.mark.skipif(DATA is None, reason="needs real texts")
def test_nearly_all_formulas_of_real_texts_are_read():
    lines = (Path(DATA) / "math500.jsonl").read_text(encoding="utf-8").strip().split("\n")
    rows = map(json.loads, lines[:60])
    all_of_them = [one for row in rows for one in formulas(row["solution"])]
    read = sum(mathml(one.tex, block=one.block) is not None for one in all_of_them)
    assert len(all_of_them) > 300
    assert read / len(all_of_them) > 0.98


@pytest.mark.parametrize(
    "tex",
    [
        r"\foo{x}",  # no such command
        r"\href{javascript:alert(1)}{x}",
        r"\class{a}{x}",
        r"\style{color:red}{x}",
        r"\color{red}x",
        r"\phantom{secret}",
        r"\smash{x}",
        r"\newcommand{\a}{\b\b}\a",
        r"\def\a{\a\a}\a",
        r"x % the rest is a comment",
        r"\hspace{99em}x",
        r"x\label{secret}",
        r"\rule{1em}{2em}x",
        r"\mathchoice{a}{b}{c}{d}",
        r"\hspace{-5em}x",
        r"\unicode{x202e}x",
        "a\u202eb",
        r"\boxed{ 1 8}",  # drawn as 18
        r"\boxed{no solution}",
        "x^",
        "{x",
        r"\begin{array}{c|c} \multicolumn{2}{r}{7} \end{array}",
        "x" * (LONGEST + 1),
        r"\sqrt" * 150 + "x",
    ],
)
def test_what_cannot_be_read_in_full_stays_as_written(tex):
    assert mathml(tex) is None
    assert with_mathematics(rf"so \({tex}\) <b>", escape) == escape(rf"so \({tex}\) <b>")


def test_a_number_behind_an_index_is_no_second_number():
    assert mathml(r"\log_2 64") is not None


def test_a_boxed_answer_has_a_box_and_lines_have_no_numbers():
    assert mathml(r"\boxed{42}") == (
        '<math display="inline"><mrow><mrow class="boxed"><mrow><mn>42</mn></mrow></mrow></mrow></math>'
    )
    numbered = mathml(r"\begin{align}x&=1\\y&=2\end{align}", block=True)
    assert numbered is not None
    assert numbered.count("<mtr>") == 2
    assert re.findall(r"\d", re.sub("<[^>]*>", "", numbered)) == ["1", "2"]


def test_what_was_written_stands_in_the_title():
    shown = with_mathematics('so $x<"5"$ & <b>', escape)
    assert shown.startswith('so <math title="$x&lt;&quot;5&quot;$" display="inline">')
    assert shown.endswith("</math> &amp; &lt;b&gt;")


def test_no_more_is_typeset_than_is_asked_for():
    text = " ".join(f"$x_{n}$" for n in range(50))
    few = with_mathematics(text, escape, 400)
    assert 1 <= few.count("<math") < 10
    assert few.endswith("$x_48$ $x_49$")
    many_failures = " ".join(f"${n}\\foo$" for n in range(10, 60))
    calls = mathml.cache_info().misses
    with_mathematics(many_failures, escape, 70)
    assert mathml.cache_info().misses - calls == 12  # of 6 characters each


def test_without_the_library_all_stays_as_written(monkeypatch):
    mathml.cache_clear()
    monkeypatch.setattr(mathematics, "_installed", lambda: False)
    assert with_mathematics("so $x$", escape) == "so $x$"
    mathml.cache_clear()


# fmt: off
KNOWN = {
    "math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "msub", "msup", "msubsup", "mfrac", "msqrt",
    "mroot", "mover", "munder", "munderover", "mtable", "mtr", "mtd", "mstyle",
}
ATTRIBUTES = {
    "title", "display", "class", "accent", "accentunder", "columnalign", "columnlines", "displaystyle",
    "fence", "form", "largeop", "mathvariant", "movablelimits", "rowlines", "separator", "stretchy",
    "symmetric", "columnspacing", "linethickness", "lspace", "maxsize", "minsize", "rowspacing", "rspace",
    "scriptlevel", "width",
}
# fmt: on


class Reader(HTMLParser):
    """Fails for any element or attribute beside the known ones, and keeps the text outside of formulas."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.depth, self.outside = 0, []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        assert tag in KNOWN
        assert {name for name, _ in attrs} <= ATTRIBUTES
        for name, value in attrs:
            assert name == "title" or re.fullmatch(r"[a-z0-9. -]{1,80}", value)
        if tag == "math":
            self.outside.append(dict(attrs)["title"])
        self.depth += 1

    def handle_endtag(self, tag):
        self.depth -= 1

    def handle_data(self, data):
        if not self.depth:
            self.outside.append(data)

    def handle_comment(self, data):
        raise AssertionError(data)


COMMANDS = r"""
\frac \sqrt \text{ \left( \right) \begin{align} \end{align} \href{a} \class{a} \boxed{ \mathbf{ \unicode{x3c}
\verb|<b>| \color{red} \rule{1em}{2em} \genfrac \( \) \[ \]
"""
MARKS = "$ $$ &lt;script&gt; <script>alert(1)</script> &#x3c; ]]>"
SIGNS = "{}^_&'\"<>%\\x5 \n\x00\u202e\u2028"
PIECES = st.sampled_from([*MARKS.split(), *SIGNS, *COMMANDS.split()])


@given(st.lists(PIECES, max_size=25).map("".join) | st.text(max_size=40))
def test_any_text_is_nothing_but_known_elements_and_its_source_is_all_there(text):
    shown = with_mathematics(text, escape)
    assert "".join(Reader(shown).outside) == text.replace("\r\n", "\n") or "\r" in text or "\0" in text
