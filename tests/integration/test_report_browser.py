"""The report's page in a real browser: light, dark and print, with hostile names; skips without Chromium."""

from dataclasses import replace

import pytest

from debate_rl.reports.document import Chart, Document, Section, Series
from debate_rl.reports.pages import as_html
from debate_rl.reports.report import judge_run, whole_report


def drawn(hostile: str) -> Section:
    """A section of every kind of chart, long names among them."""
    steps = tuple(float(step) for step in range(300))
    curve = Series("a curve", steps, steps, tuple(x - 9 for x in steps), tuple(x + 9 for x in steps))
    bars = Series(hostile, (0.0, 1.0), (0.2, None), (0.1, None), (0.4, None))
    return Section(
        "drawn",
        "Drawn",
        (
            Chart("many", "Many", "step", "a long label", (curve, replace(curve, label="b" * 80))),
            Chart("names", "Names", "x", "y", (bars,), "bars", ticks=("n" * 90, hostile)),
            Chart("standing", "Standing", "x", "y", (bars, replace(bars, label="c")), "bars"),
        ),
    )


@pytest.fixture(scope="module")
def page_file(tmp_path_factory, hostile_run, hostile_texts):
    folder = tmp_path_factory.mktemp("page")
    judged = judge_run(str(hostile_run))
    report: Document = whole_report([judged, replace(judged, run="b")], more=[drawn(hostile_texts[0])])
    (folder / "report.html").write_text(as_html(report), encoding="utf-8")
    (folder / "one.html").write_text(as_html(whole_report([judged])), encoding="utf-8")
    (folder / "linked.html").write_text(as_html(report, "http://127.0.0.1:1"), encoding="utf-8")
    return folder / "report.html"


@pytest.fixture
def open_page(browser, page_file):
    """Return open(colour scheme, width) -> (page, what it asked for, what it complained of)."""
    opened = []

    def call(scheme="light", width=1280, name="report.html"):
        page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
        opened.append(page)
        asked, said = [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(page_file.with_name(name).as_uri())
        return page, asked, said

    yield call
    for page in opened:
        page.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["report.html", "linked.html"])
def test_nothing_is_loaded_or_run(open_page, page_file, hostile_texts, name):
    page, asked, said = open_page(name=name)
    assert asked == [page_file.with_name(name).as_uri()]
    assert said == []
    assert page.evaluate("window.ran === undefined")
    assert page.locator("script, iframe, img, object, embed, form").count() == 0
    for text in hostile_texts[:2]:
        assert page.get_by_text(text).count() > 0  # shown as it was written
    page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
    assert page.evaluate("window.ran === undefined")


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "name"), [("light", "report.html"), ("dark", "linked.html")])
def test_no_serious_finding_of_axe(open_page, scheme, name):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page, *_ = open_page(scheme, name=name)
    page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
    found = axe.Axe().run(page).response["violations"]
    grave = [one for one in found if one["impact"] in ("serious", "critical")]
    assert [(one["id"], one["nodes"][0]["html"]) for one in grave] == []


def overflowing(page) -> list[str]:
    """Return the texts of charts that stick out of their chart."""
    return page.locator("figure svg").evaluate_all(
        """all => all.flatMap(svg => {
            const box = svg.getBoundingClientRect();
            return [...svg.querySelectorAll("text")].filter(text => {
                const own = text.getBoundingClientRect();
                return own.left < box.left - 2 || own.right > box.right + 2 || own.top < box.top - 2
                    || own.bottom > box.bottom + 2;
            }).map(text => text.textContent);
        })"""
    )


@pytest.mark.slow
def test_it_prints(open_page):
    page, *_ = open_page(width=700)  # about A4 less its margins
    page.emulate_media(media="print")
    assert overflowing(page) == []
    charts = page.locator("figure svg").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect()).map(box => [box.right, box.height])"
    )
    assert max(right for right, _ in charts) <= 700
    assert max(height for _, height in charts) < 960  # each fits on a page, so that none is cut
    shown = page.locator("details.folded table").evaluate_all(
        "all => all.filter(one => !one.closest('.data')).map(one => one.checkVisibility())"
    )
    assert shown
    assert all(shown)
    printed = page.pdf(prefer_css_page_size=True)
    assert printed.startswith(b"%PDF")
    assert printed.count(b"/Type /Page\n") > 3


@pytest.mark.slow
@pytest.mark.parametrize(("width", "height"), [(688, 1001), (710, 935)])  # A4 and Letter within margins
def test_the_answers_print_on_one_page(open_page, width, height):
    page, *_ = open_page(width=width, name="one.html")
    page.emulate_media(media="print")
    assert page.locator(".answer").last.evaluate("one => one.getBoundingClientRect().bottom") <= height
    breaks = page.locator("details.section").evaluate_all(
        "all => all.map(one => getComputedStyle(one).breakBefore)"
    )
    assert breaks[0] == "page"
    assert set(breaks[1:]) == {"auto"}


@pytest.mark.slow
@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)])
def test_the_first_screen_has_the_answers_and_the_rest_is_folded(open_page, width, height):
    page, *_ = open_page(width=width, name="one.html")
    last = page.locator(".answer").last.evaluate("one => one.getBoundingClientRect().bottom")
    assert page.locator(".answer").count() == 3
    assert last <= height if width > 1000 else last <= 2 * height
    assert page.locator("details.section[open]").count() == 0
    summaries = page.locator("details.section > summary").all_inner_texts()
    assert len(summaries) > 5
    assert all(len(text.split()) > 3 for text in summaries)  # a title, and what is in it
