"""The pages in a real browser: nothing of a model's runs, keys work, a run grows under one's eyes."""

import json
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote, urlsplit

import msgspec
import pytest

from debate_rl.runs.folder import locked
from transcripts import RunStore, TurnAdvantages, write_step

VIEWS = ("", "/graph", "/adoption", "/parse", "/tokens", "/why", "/prompt", "/branch")


@contextmanager
def serving(path: Path) -> Iterator[SimpleNamespace]:
    """Serve a folder in a thread; ``base`` is the address of its only run."""
    from debate_rl.inspector.web import listen, server_for
    from debate_rl.inspector.web.app import AccessPolicy, make_app
    from debate_rl.inspector.web.site import Site

    site, socket = Site(path), listen("127.0.0.1", 0)
    server = server_for(make_app(site, AccessPolicy.of("127.0.0.1")))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]})
    thread.start()
    origin = f"http://127.0.0.1:{socket.getsockname()[1]}"
    try:
        yield SimpleNamespace(origin=origin, base=f"{origin}/run/{quote(site.runs()[0].name, safe='')}")
    finally:
        server.should_exit = True
        thread.join(20)
        socket.close()
        site.close()


class Watched:
    """A page and all that must not happen on it."""

    def __init__(self, context, origin: str) -> None:
        self.page = context.new_page()
        self.faults: list[str] = []
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.faults.append(f"error {error}"))
        self.page.on("dialog", lambda dialog: (self.faults.append("a dialog"), dialog.dismiss()))
        self.page.on("request", lambda request: self._asked(request.url, origin))

    def _said(self, message) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"console {message.text}")

    def _asked(self, url: str, origin: str) -> None:
        if not url.startswith((origin, "data:", "about:")):
            self.faults.append(f"request {url}")

    def calm(self) -> None:
        """Assert that nothing of a model's ran and nothing was asked of others."""
        assert self.page.evaluate("window.ran") is None
        assert self.faults == []


@pytest.fixture(scope="module")
def hostile(hostile_run):
    with serving(hostile_run) as found:
        yield found


@pytest.fixture
def served(run):
    with serving(run) as found:
        yield found


@pytest.fixture
def judged(judged_run):
    with serving(judged_run) as found:
        yield found


@pytest.fixture
def watched(browser) -> Iterator[object]:
    contexts = []

    def open_page(origin: str, **options) -> Watched:
        contexts.append(browser.new_context(**options))
        contexts[-1].set_default_timeout(15_000)
        return Watched(contexts[-1], origin)

    yield open_page
    for context in contexts:
        context.close()


def at(page, testid: str):
    return page.get_by_test_id(testid)


@pytest.mark.slow
def test_nothing_that_a_model_wrote_runs(hostile, hostile_run, watched):
    seen = watched(hostile.origin)
    with RunStore.open(hostile_run) as store:
        ids = [row.id for row in store.debates(limit=1000)]
    for path in ("/", "/debates", "/replays", *(f"/debate/{id}{view}" for id in ids[::3] for view in VIEWS)):
        seen.page.goto(hostile.base + path)
        assert at(seen.page, "top").is_visible()
        assert seen.page.locator("h1").count() == 1
    seen.calm()


@pytest.mark.slow
def test_keys_go_through_lists_debates_and_views(served, watched):
    seen = watched(served.origin)
    page = seen.page
    page.goto(served.base + "/debates")
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.textContent") == "0.1"
    for keys, place in (
        (("ArrowUp", "j", "Enter"), "0.1"),
        ("n", "0.2"),
        ("p", "0.1"),
        ("gv", "0.1/graph"),
        ("n", "0.2/graph"),
        ("N", "0.1/graph"),
        ("w", "0.1/why"),  # the terminal's keys of the views
        ("v", "0.1/graph"),
        ("n", "0.2/graph"),
        ("u", "0.2"),
    ):
        for key in keys:
            page.keyboard.press(key)
        page.wait_for_url(f"**/debate/{place}")
    page.keyboard.press("?")
    assert at(page, "help").is_visible()
    at(page, "meanings").last.locator("summary").click()
    assert "solutions of some round beat each other in a circle" in at(page, "help").inner_text()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("id:1.4 n")
    assert at(page, "filter").input_value() == "id:1.4 n"
    page.keyboard.press("Backspace")
    page.keyboard.press("Enter")
    page.wait_for_url("**/debates?filter=id*")
    assert at(page, "row").count() == 1
    seen.calm()


def test_the_filter_box_completes_fields_and_words_by_keys(served, watched):
    seen = watched(served.origin)
    page = seen.page
    page.goto(served.base + "/debates")
    page.keyboard.press("/")
    page.keyboard.type("win")
    assert page.get_by_role("option").all_inner_texts()[0].startswith("winner: the winner")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.get_by_role("option", name="wrong", exact=False).first.wait_for()
    page.keyboard.type("wr")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    assert at(page, "filter").input_value() == "winner:wrong "
    page.keyboard.type("vo")
    page.get_by_role("option").first.wait_for()
    page.keyboard.press("Escape")
    assert not at(page, "filter-list").is_visible()
    assert page.evaluate("document.activeElement.id") == "filter"
    page.keyboard.type("te:wrong")
    page.keyboard.press("Enter")
    page.wait_for_url("**/debates?filter=winner*")
    seen.calm()


def test_the_first_tab_skips_to_the_content(served, watched):
    page = watched(served.origin).page
    page.goto(served.base + "/debates")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def of_one_group(records):
    """Return the records as one group, in which agents 1 and 2 have advantages."""
    for number, record in enumerate(records):
        debate = msgspec.structs.replace(record.debate, problem=records[0].debate.problem)
        advantages = tuple(
            TurnAdvantages(turn.id, generator=number - turn.id.agent / 3)
            for turn in debate.turns
            if turn.id.agent and not turn.ballot
        )
        yield replace(record, debate=debate, advantages=advantages)


def test_a_step_opens_its_group_which_sorts_and_leads_to_turns(tmp_path, step_records, watched):
    records = list(of_one_group(step_records(0)))
    write_step(tmp_path / "run/transcripts", 0, records, seal=True)
    with serving(tmp_path / "run") as served:
        seen = watched(served.origin)
        page = seen.page
        page.goto(served.base + "/")
        at(page, "step-link").first.click()
        page.wait_for_url("**/group?step=0")
        page.get_by_role("button", name="advantage").first.click()
        cells = page.locator('[data-testid="grid-row"] td:nth-child(4)').all_inner_texts()
        values = [float(cell) for cell in cells if cell != "–"]
        assert len(values) == 2 * len(records)
        assert values == sorted(values, reverse=True)
        assert cells[len(values) :] == ["–"] * len(records)
        assert page.locator('th[aria-sort="descending"]').count() == 1
        at(page, "advantage").first.click()
        page.wait_for_url(re.compile(r"/debate/0\.\d/why\?turn=\d\.0"))
        at(page, "tab-group").click()
        page.wait_for_url(re.compile(r"/group\?step=0&problem="))
        seen.calm()


@pytest.mark.slow
def test_an_arrow_leads_to_the_judges_words(served, watched):
    seen = watched(served.origin)
    seen.page.goto(served.base + "/debate/0.0/graph")
    seen.page.locator('a[data-testid="arrow"]').first.focus()
    seen.page.keyboard.press("Enter")
    assert re.search(r"#vote-\d+-\d+$", seen.page.url)
    at(seen.page, "vote-link").first.click()
    seen.page.wait_for_url(re.compile(r"/debate/0\.0#turn-\d\.\d"))
    seen.calm()


@pytest.mark.slow
def test_a_run_that_is_written_grows_on_the_page(run, watched, step_records):
    with locked(run), serving(run) as served:
        seen = watched(served.origin)
        steps = watched(served.origin).page
        page = seen.page
        page.goto(served.base + "/debates?newest=1")
        steps.goto(served.base + "/")
        page.evaluate("window.stays = 1")
        steps.evaluate("window.stays = 1")
        lines = "".join(json.dumps({"step": step, "loss": step / 2}) + "\n" for step in range(4))
        (run / "metrics.jsonl").write_text(lines)
        writer = threading.Thread(
            target=write_step, args=(run / "transcripts", 3, step_records(3)), kwargs={"tokens": False}
        )
        writer.start()
        page.wait_for_selector("#row-3\\.5")
        steps.wait_for_selector("#step-3")
        writer.join()
        at(steps, "plot-loss").wait_for()
        assert at(page, "row-link").first.inner_text() == "3.5"
        assert at(page, "count").inner_text() == "24 debates"
        assert at(steps, "count").inner_text() == "24 debates in 4 steps"
        page.keyboard.press("j")
        write_step(run / "transcripts", 4, step_records(4), tokens=False)
        page.locator("#live-message", has_text="6 new").wait_for()
        assert page.evaluate("document.activeElement.textContent") == "3.5"
        at(page, "live-show").click()
        assert at(page, "row-link").first.inner_text() == "4.5"
        assert (page.evaluate("window.stays"), steps.evaluate("window.stays")) == (1, 1)
        seen.calm()


@pytest.mark.slow
@pytest.mark.parametrize("scripts", [True, False])
def test_a_person_stars_labels_and_writes_notes(served, run, watched, scripts):
    page = watched(served.origin, java_script_enabled=scripts).page
    page.goto(served.base + "/debate/0.1?filter=step%3A0")
    note, label = at(page, "note-0.1"), at(page, "label-0.1/0.0")
    note.locator("textarea").fill("hedges,\nthen guesses")
    if scripts:
        page.evaluate("window.stays = 1; document.activeElement.blur()")
        page.keyboard.press("s")
    else:
        note.get_by_role("button").click()
        at(page, "star-0.1").get_by_role("button").press("Enter")
    at(page, "star-0.1").get_by_role("button", name="Starred", pressed=True).wait_for()
    if scripts:  # a note that is being written stays
        assert page.evaluate("window.stays") == 1
        note.get_by_role("button").click()
        note.get_by_text("saved").wait_for()
    label.get_by_role("button", name="wrong").press("Enter")
    label.get_by_role("button", name="wrong", pressed=True).wait_for()
    if scripts:
        assert page.evaluate("document.activeElement.textContent") == "wrong"
        assert page.evaluate("window.stays") == 1
    page.goto(served.base + "/debate/0.1/graph")
    tie = page.locator('form[data-mark^="label 0.1/"]').first.get_by_role("button", name="tie")
    tie.click()
    tie.and_(page.get_by_role("button", pressed=True)).wait_for()
    pair = page.locator('form[data-mark^="label 0.1/"]').first.get_attribute("data-mark").split()[1]
    with RunStore.open(run) as store:
        given = {(kind, id): one.value for (kind, id), one in store.annotations().given.items()}
    wanted = {("star", "0.1"): "yes", ("note", "0.1"): "hedges,\nthen guesses"}
    assert given == wanted | {("label", "0.1/0.0"): "wrong", ("label", pair): "tie"}
    page.goto(served.base + "/debates?filter=star:yes")
    assert at(page, "row-link").all_inner_texts() == ["0.1"]
    page.goto(served.base + "/debate/0.1")
    at(page, "star-0.1").get_by_role("button").click()
    at(page, "star-0.1").get_by_role("button", name="☆ Star").wait_for()


def addresses(served, hostile, judged, trained: SimpleNamespace) -> list[str]:
    """Return an address of each kind of page, some of them of hostile runs."""
    turn = [f"/debate/1.1{view}" for view in VIEWS]
    paths = ["/", "/debates?filter=votes:>0", "/debates?filter=nothing:1", "/group?step=1", *turn]
    pages = [served.base + path for path in (*paths, "/across?problem=sum%2F1&a=0.1&b=1.1")]
    pages += [hostile.base + path for path in ("/debates", "/debate/0.1", "/debate/0.1/graph")]
    pages += [f"{judged.base}/pairs", f"{judged.base}/pairs?pair=1"]
    pages += [f"{trained.base}{path}" for path in ("/", "/settings", "/evaluations", "/report", "/replays")]
    return [
        *pages,
        f"{trained.base}/replays/{trained.replay}",
        f"{trained.base}/debate/0.0/branch",
        trained.origin,
    ]


@pytest.fixture
def trained(folder, debate_command) -> Iterator[SimpleNamespace]:
    """A trained run with a report, a replay and an evaluation, in a folder with another."""
    for words in (("replay", folder / "run", "rewards.format_penalty=-2.0"), ("report", folder / "run")):
        done = debate_command(*words)
        assert done.code == 0, done.err
    evaluation = folder / "run/evaluations/start-1"
    shutil.copytree(folder / "run/transcripts", evaluation / "debates")
    (evaluation / "evaluation.json").write_text('{"of": {"weights": null}}')
    shutil.copytree(folder / "run", folder / "same", symlinks=True)
    [replay, *_] = [path.name for path in (folder / "run/replays").iterdir()]
    with serving(folder) as found:
        found.base, found.replay = f"{found.origin}/run/run", replay
        yield found


@pytest.mark.slow
def test_every_page_is_accessible_in_light_and_dark_and_fits_every_screen(
    served, run, hostile, judged, trained, watched
):
    from axe_playwright_python.sync_playwright import Axe

    from debate_rl.inspector.web.pages import PAGES

    with RunStore.open(run) as store:
        for mark in (("star", "1.1", "yes"), ("label", "1.1/0.0", "right"), ("note", "1.1/1.0", "a")):
            store.annotate(*mark)
    pages = addresses(served, hostile, judged, trained)
    kinds = {kind: re.compile(re.sub(r"{\w+}", "[^/]+", kind) + "$") for kind in PAGES if ".json" not in kind}
    paths = [urlsplit(url).path or "/" for url in pages]
    assert {kind for kind, form in kinds.items() if not any(map(form.match, paths))} == set()
    faults = []
    for url in pages:
        seen = watched("/".join(url.split("/")[:3]))
        seen.page.goto(url)
        for width in (360, 390, 1280, 1920):
            seen.page.set_viewport_size({"width": width, "height": 800})
            needed = seen.page.evaluate("document.documentElement.scrollWidth")
            faults += [(url, f"is {needed} px wide on {width}")] if needed > width else []
            # Nothing runs on the page of a report; test_report_browser.py looks at its file.
            for scheme in ("light", "dark") if width > 360 and not url.endswith("/report") else ():
                seen.page.emulate_media(color_scheme=scheme)
                for one in Axe().run(seen.page).response["violations"]:
                    faults += [
                        (url, scheme, width, one["id"], node["failureSummary"]) for node in one["nodes"]
                    ]
        faults += [(url, fault) for fault in seen.faults if "400 (Bad" not in fault]
        seen.page.close()
    assert faults == []
