"""Make the pictures of this folder from a run: python docs/screenshots/make.py RUN. Needs chromium."""

from __future__ import annotations

import argparse
import asyncio
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from debate_rl.inspector.terminal.app import Inspector
from debate_rl.inspector.web import listen, server_for
from debate_rl.inspector.web.app import AccessPolicy, make_app
from debate_rl.inspector.web.site import Site
from transcripts import RunStore

HERE = Path(__file__).parent
SHOWN = "vote:wrong"
"""The debates that are listed; the first of them is opened, unless --debate names one."""
COLOURS = 256
CHROMIUM = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def main() -> None:
    """Write the pictures."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("run", type=Path, help="the folder of a run, as the quick-start makes it")
    arguments.add_argument("--debate", help="the debate that is opened, such as 2.28")
    arguments.add_argument("--turn", default="1.1", help="the turn whose reward is explained")
    args = arguments.parse_args()
    run = args.run.resolve()
    with RunStore.open(run) as store:
        [debate] = store.debates(f"id:{args.debate}" if args.debate else SHOWN, limit=1)
    terminal = asyncio.run(in_terminal(run))
    with TemporaryDirectory() as folder, browser() as page, served(run) as address:
        base = f"{address}/run/{quote(run.name)}"
        browser_pages = {
            "run": f"{base}/",
            "group": f"{base}/group?step={debate.step}&problem={quote(debate.problem.id)}",
            "debates": f"{base}/debates?filter={quote(SHOWN)}",
            "debate": f"{base}/debate/{debate.id}",
            "votes": f"{base}/debate/{debate.id}/graph",
            "why": f"{base}/debate/{debate.id}/why?turn={args.turn}",
        }
        for name, url in browser_pages.items():
            take(page, url, f"browser_{name}.png")
        for name, svg in terminal.items():
            path = Path(folder, f"{name}.html")
            path.write_text(f"<body style='margin:0'>{svg}</body>", encoding="utf-8")
            page.goto(path.as_uri())
            keep(page.locator("svg").first.screenshot(), f"terminal_{name}.png")
        report = [sys.executable, "-m", "debate_rl.commands.main", "report", run.name, "--out", folder]
        subprocess.run(report, check=True, stdout=subprocess.DEVNULL, cwd=run.parent)
        take(page, Path(folder, "report.html").as_uri(), "report.png")


def take(page: Page, url: str, name: str) -> None:
    """Take a picture of what a page shows first."""
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(url)
    page.wait_for_load_state("networkidle")
    keep(page.screenshot(), name)


def keep(picture: bytes, name: str) -> None:
    """Write a picture in few colours, which take a third of the room."""
    image = Image.open(BytesIO(picture)).convert("RGB")
    image.quantize(COLOURS, Image.Quantize.FASTOCTREE).save(HERE / name, optimize=True)


@contextmanager
def browser() -> Iterator[Page]:
    """Give a page of a headless browser."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=CHROMIUM)
        yield chromium.new_page()
        chromium.close()


@contextmanager
def served(run: Path) -> Iterator[str]:
    """Serve the inspector's pages of a run, and give their address."""
    socket, site = listen("127.0.0.1", 0), Site(run)
    server = server_for(make_app(site, AccessPolicy.of("127.0.0.1")))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{socket.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        site.close()


async def in_terminal(run: Path) -> dict[str, str]:
    """Return screens of the terminal application as SVG, without fonts from elsewhere."""
    app = Inspector(run, filter=SHOWN, every_s=None)
    async with app.run_test(size=(100, 30)) as pilot:

        async def press(*keys: str) -> str:
            for key in keys:
                await pilot.press(key)
                await app.workers.wait_for_complete()
                await pilot.pause()
            return re.sub(r"@font-face \{.*?\}", "", app.export_screenshot(), flags=re.DOTALL)

        return {"debates": await press("home"), "votes": await press("enter", "v")}


if __name__ == "__main__":
    main()
