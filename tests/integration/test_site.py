"""The documentation site builds without a warning, has no dead link, and searches without network."""

import os
import re
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import pytest

HOME = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    silent = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(build, cwd=HOME, env=silent, capture_output=True, text=True, check=False)
    assert (done.returncode, "WARNING" in done.stderr) == (0, False), done.stderr[-2000:]
    return folder


@pytest.fixture(scope="module")
def address(site):
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_every_link_and_picture_of_the_built_pages_is_there(site):
    pages = {page: page.read_text("utf-8") for page in site.rglob("*.html") if page.name != "404.html"}
    anchors = {page: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in pages.items()}
    dead, followed = [], 0
    for page, text in pages.items():
        for link in re.findall(r'(?:href|src)="([^"]+)"', text):
            if re.match(r"(?:https?|mailto|javascript|data):", link):
                continue
            name, _, anchor = unquote(link.replace("&amp;", "&")).partition("#")
            target = (page.parent / name).resolve() if name else page
            target = target / "index.html" if target.is_dir() else target
            followed += 1
            if not target.exists() or (anchor and anchor not in anchors.get(target, ())):
                dead.append((page.name, link))
    assert followed > 5000
    assert dead == []


@pytest.mark.parametrize("width", [390, 1280])
def test_search_finds_pages_and_nothing_is_asked_of_other_machines(address, browser, width):
    page = browser.new_page(viewport={"width": width, "height": 900})
    asked, said = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: said.append(str(error)))
    for name in ("index.html", "concepts.html", "api/learner.html", "notebooks/4_train.html"):
        page.goto(f"{address}/{name}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
    page.goto(f"{address}/index.html")
    if width < 960:
        page.locator("label[for=__search]").first.click()
    page.locator(".md-search__input").fill("decidable pair")
    page.locator(".md-search-result__link").first.wait_for()
    assert "concepts.html" in " ".join(
        link.get_attribute("href") for link in page.locator(".md-search-result__link").all()
    )
    page.close()
    assert said == []
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
