"""Reports as HTML, Markdown and JSON: what is shown is what was given, whatever it is."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debate_rl.formatting import printable
from debate_rl.reports.document import (
    Answer,
    Behind,
    Cell,
    Chart,
    Document,
    Paragraph,
    Section,
    Series,
    Table,
)
from debate_rl.reports.drawing import draw
from debate_rl.reports.pages import as_html, as_json

HOSTILE = (
    '</td></style></svg><script>alert(1)</script><img src=x onerror="alert(1)">{{ 7*7 }}${x}$\x1b[2J\u202e|`'
)
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "main", "header", "section", "figure", "b"),
    *("h1", "h2", "h3", "p", "a", "div", "table", "thead", "tbody", "tr", "th", "td"),
    *("details", "summary", "span", "code", "figcaption"),
}
DRAWN = {"svg", "g", "path", "defs", "use", "text", "clippath", "rect"}


class Page(HTMLParser):
    """The tags, attributes and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.texts: list[str] = []
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value for name, value in attrs if name in ("href", "src", "xlink:href")]
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_data(self, data):
        self.texts.append(data.strip())


def document(text="a", behind=None):
    series = Series(text, (0.0, 1.0), (0.5, None), (0.4, None), (0.6, None))
    other = Series("other", (0.0, 1.0), (0.1, 0.2))
    parts = (
        Paragraph(text, "warn", behind),
        Table("t", text, (text, "n"), ((Cell(text, behind=behind), Cell("1", 1)),), text),
        Table("f", text, (text,), ((Cell(text),),), folded=True),
        Chart("line", text, text, text, (series, other), rules=((text, 0.5),), note=text, behind=behind),
        Chart("bars", text, "x", text, (series,), "bars", ((text, 0.5),), ticks=(text, "b")),
        Chart("tall", text, text, "y", (series, other), "bars"),
        Table("none", text, (text,), ()),
    )
    said = (Paragraph(text, "bad", behind, text), Paragraph(text))
    small = replace(parts[3], small=True)
    answers = (Answer("a", text, text, said, parts[1]), Answer("b", text, "", said, small))
    lead = (Paragraph(text, "", behind),)
    return Document(text, lead, (Section(text, text, parts, text),) * 2, answers, ({"text": text},))


def test_hostile_text_is_text():
    page = Page(as_html(document(HOSTILE, Behind(HOSTILE, HOSTILE)), "http://h/x"))
    assert page.tags <= TAGS | DRAWN
    assert not [name for name in page.attributes if name.startswith("on")]
    assert printable(HOSTILE) in page.texts
    assert all(link.startswith(("#", "http://h/x/run/")) for link in page.links)
    twice = {one for one in page.ids if page.ids.count(one) > 1}
    assert not [one for one in twice if not re.fullmatch(r"[mp][0-9a-f]{10}", one)]  # equal parts of charts


@settings(max_examples=30)
@given(st.text(min_size=1, max_size=30))
def test_any_cell_is_read_back(text):
    table = Table("t", "t", ("a", "b"), ((Cell("x"), Cell(text)),))
    page = Page(as_html(Document("d", (), (Section("s", "s", (table,)),))))
    assert printable(text).strip() in page.texts
    assert page.tags <= TAGS


def test_json_has_everything_and_no_infinity():
    behind = Behind("runs/a", "winner:wrong")
    table = Table("t", "T", ("a",), ((Cell("none", float("nan")), Cell("x", 0.5, behind, "warn")),))
    chart = Chart("c", "C", "x", "y", (Series("s", (0.0,), (float("inf"),)),))
    facts = json.loads(as_json(Document("R", (), (Section("s", "S", (table, chart)),))))
    assert (facts["made_by"], facts["schema"], facts["title"]) == ("debate report", 1, "R")
    shown, drawn = facts["sections"][0]["parts"]
    filter = {"run": "runs/a", "filter": "winner:wrong"}
    marked = {"text": "x", "value": 0.5, "behind": filter, "tone": "warn"}
    assert shown["rows"] == [[{"text": "none"}, marked]]
    assert drawn["series"][0]["y"] == [None]


def test_the_debates_behind_a_number():
    behind = Behind("runs/a b", "winner:wrong step:>3")
    one = document("a", behind)
    plain = as_html(one)
    assert "debate inspect &#39;runs/a b&#39; ls &#39;winner:wrong step:&gt;3&#39;" in plain
    assert 'href="http' not in plain
    linked = as_html(one, "http://127.0.0.1:8000/")
    assert 'href="http://127.0.0.1:8000/run/a%20b/debates?filter=winner%3Awrong%20step%3A%3E3"' in linked


@pytest.mark.parametrize("address", ["javascript:alert(1)", "127.0.0.1:8000", "file:///x"])
def test_only_web_addresses_are_linked(address):
    with pytest.raises(ValueError, match="must begin with http:// or https://"):
        as_html(document("a", Behind("a")), address)


def test_a_report_is_the_same_each_time_and_needs_nothing():
    text = as_html(document("a", Behind("r")))
    assert text == as_html(document("a", Behind("r")))
    assert "default-src 'none'" in text
    outside = set(re.findall(r"https?://[^\"'\s<]+", text))
    assert outside == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert "url(" not in re.sub(r"url\(#\w+\)", "", text)


def test_a_single_step_has_whole_steps_beside_it_and_no_offset_is_hidden_in_a_corner():
    one = Chart("one", "One", "step", "y", (Series("a", (7.0,), (1.0002,)),))
    assert re.findall(r">([0-9.]+)</text>", draw(one))[:3] == ["6", "7", "8"]
    near = Chart("near", "Near", "step", "y", (Series("a", (1.0, 2.0), (1.0001, 1.0003)),))
    assert "1.0002" in draw(near)


@pytest.mark.parametrize("kind", ["line", "bars"])
def test_numbers_that_no_axis_holds_are_left_out_of_the_drawing_and_stand_in_the_table(kind):
    bounds = (0.1, -1.7e308, None, 0.0)
    series = Series("s", (0.0, 1.0, 2.0, 1e308), (0.5, 1.7e308, -1e300, 0.1), bounds, bounds)
    chart = Chart("c", "c", "x", "y", (series,), kind, rules=(("far", 1e308),))
    page = as_html(Document("d", (), (Section("s", "s", (chart,)),)))
    assert "<svg" in page
    assert "1.7e+308" in page
