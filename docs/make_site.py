"""Prepare the site's pages for MkDocs (mkdocs.yml): docs/, the pages of experiments/, notebooks, and the API.

The API pages list the names of the table in extending.md; griffe reads their docstrings without imports.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from griffe import Extension, Object

HOME = Path(__file__).parents[1]
PAGES = HOME / "build" / "site_pages"
PUBLIC = re.compile(r"^\| `([\w.]+)` \| ([\w, ]+) \|$", re.MULTILINE)
FOUND_LAST = "---\nsearch: {boost: 0.3}\n---\n"
"""At the top of pages that a search shows after the pages of docs/."""
MOVED = {"](../experiments/": "](experiments/", "](../../docs/": "](../../", ".ipynb)": ".md)"}
"""Parts of links in the repository, and what they are in the site, whose root is docs/."""


def on_config(config: Any) -> Any:
    """Build from the prepared pages. MkDocs calls this before each build."""
    prepare(PAGES)
    config.docs_dir = str(PAGES)
    return config


def prepare(pages: Path) -> None:
    """Write all pages of the site to a folder that holds nothing else."""
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(
        HOME / "docs", pages, ignore=shutil.ignore_patterns("*.py", "*.ipynb", "*.toml", "__pycache__")
    )
    texts = {path: path.read_text("utf-8") for path in pages.glob("*.md")}
    for path in HOME.glob("experiments/*/*.md"):
        texts[pages / path.relative_to(HOME)] = FOUND_LAST + path.read_text("utf-8")
    for path in HOME.glob("docs/notebooks/*.ipynb"):
        texts[pages / "notebooks" / f"{path.stem}.md"] = notebook_page(json.loads(path.read_text("utf-8")))
    for library, text in api_pages(texts[pages / "extending.md"]).items():
        texts[pages / "api" / f"{library}.md"] = text
    for path, text in texts.items():
        for here, there in MOVED.items():
            text = text.replace(here, there)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def notebook_page(book: dict[str, Any]) -> str:
    """Return a notebook with its stored outputs as Markdown: of a status line only its last state."""
    parts: list[str] = []
    for cell in book["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        outputs = cell.get("outputs", [])
        displays = [one for one in outputs if one["output_type"] == "display_data"]
        rest = [one for one in outputs if one["output_type"] != "display_data"]
        parts.extend(output_block(one) for one in (*displays[-1:], *rest))
    return "\n\n".join(parts) + "\n"


def output_block(output: dict[str, Any]) -> str:
    """Return one output of a cell: its HTML if it has any, else its text."""
    data = output.get("data", {"text/plain": output.get("text", [])})
    if "text/html" in data:
        html = re.sub(r"<style.*?</style>|\n(?=\s*\n)", "", "".join(data["text/html"]), flags=re.DOTALL)
        return "<div>\n" + html.replace(' border="1" class="dataframe"', "") + "\n</div>"
    return f"```text\n{''.join(data['text/plain']).rstrip()}\n```"


def api_pages(table: str) -> dict[str, str]:
    """Return a page for each library: its modules and their public names."""
    pages: dict[str, str] = {}
    for module, names in sorted(PUBLIC.findall(table)):
        library = module.partition(".")[0]
        pages.setdefault(library, f"{FOUND_LAST}# API: {library}\n")
        pages[library] += f"\n## {module}\n" + "".join(
            f"\n::: {module}.{name}\n"
            for name in sorted(names.split(", "), key=lambda name: name.endswith("Error"))
            if (module, name) != ("learner", "losses")
        )
    return pages


class Doctests(Extension):
    """Shows the doctests of docstrings as code."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Put each doctest of an object between fences."""
        if obj.docstring:
            doctest = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)
            obj.docstring.value = doctest.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
