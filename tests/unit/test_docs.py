"""Links between pages are valid, pages are short, the index has every page, and the glossary is in use."""

import re
import runpy
from pathlib import Path

import pytest

HOME = Path(__file__).parents[2]
DOCS = HOME / "docs"
PAGES = [
    *(HOME / name for name in ("README.md", "AGENTS.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted(DOCS.glob("*.md")),
    *sorted(HOME.glob("experiments/*/*.md")),
]
GLOSSARY = (DOCS / "README.md").read_text("utf-8").partition("## Glossary")[2]
TERMS = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", GLOSSARY, re.MULTILINE)[1:]


def prose(page: Path) -> str:
    """Return a page without its blocks of code."""
    return re.sub(r"^```.*?^```$|^    .*?$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub makes of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(HOME)))
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)|(?:href|src)=\"([^\"]+)\"", prose(page)):
        target = "".join(link)
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        found = page.parent / path if path else page
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


def test_the_index_has_every_page_once():
    listed = re.findall(r"^\| \[([\w.]+\.md)\]", (DOCS / "README.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(page.name for page in DOCS.glob("*.md") if page.name != "README.md")


def test_the_glossary_is_sorted_and_its_terms_are_used():
    assert len(TERMS) > 30
    assert sorted(set(TERMS), key=str.lower) == TERMS
    pages = (page.read_text("utf-8") for page in PAGES if page != DOCS / "README.md")
    text = re.sub(r"\s+", " ", " ".join(pages)).lower()
    unused = [word for term in TERMS for word in term.lower().split(", ") if word not in text]
    assert unused == []


def test_pages_are_short_and_few():
    words = {page.name: len(page.read_text("utf-8").split()) for page in DOCS.glob("*.md")}
    assert len(words) <= 26
    assert sum(words.values()) <= 45_000
    assert [name for name, count in words.items() if count > 1800 and name != "reference.md"] == []


def test_the_reference_is_that_of_the_tables_of_the_code():
    """Run docs/make_reference.py after a change of fields.toml, tables.toml or detectors.toml."""
    page = runpy.run_path(str(DOCS / "make_reference.py"))["page"]
    assert (DOCS / "reference.md").read_text("utf-8") == page()
