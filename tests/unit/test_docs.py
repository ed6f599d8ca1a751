"""Links are valid, pages short, each listed once, the glossary is in use, and papers name their files."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest

HOME = Path(__file__).parents[2]
DOCS = HOME / "docs"
PAGES = [
    *(HOME / name for name in ("README.md", "AGENTS.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted(DOCS.glob("*.md")),
    *sorted(HOME.glob("experiments/*/*.md")),
]
GLOSSARY = (DOCS / "concepts.md").read_text("utf-8").partition("## Glossary")[2]
LIBRARIES = ("debate", "debate_rl", "envs", "learner", "rewards", "transcripts")
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


def test_index_and_navigation_have_the_same_groups_and_every_page_once():
    index = (DOCS / "README.md").read_text("utf-8")
    groups = {
        name: re.findall(r"^\| \[[^\]]+\]\(([\w.]+\.md)\)", rows, re.MULTILINE)
        for name, rows in re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", index, re.MULTILINE | re.DOTALL)
    }
    listed = [name for names in groups.values() for name in names]
    assert sorted(listed) == sorted(page.name for page in DOCS.glob("*.md") if page.name != "README.md")
    navigation = (HOME / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    parts = re.findall(r"^  - (\w+):\n((?: {6}.*\n)+)", navigation, re.MULTILINE)
    own = {name: re.findall(r"^ {6}- ([\w.]+\.md)$", pages, re.MULTILINE) for name, pages in parts}
    assert own["Start"].pop(0) == "README.md"
    assert own == groups
    assert len(groups) == 5
    books = re.findall(r"notebooks/(\w+)\.md", navigation)
    assert books == sorted(path.stem for path in DOCS.glob("notebooks/*.ipynb"))


def test_every_paper_that_the_code_cites_is_on_the_list_with_its_files():
    page = (DOCS / "reference.md").read_text("utf-8").partition("## Papers")[2]
    papers = tomllib.loads((DOCS / "papers.toml").read_text("utf-8"))
    rows = re.findall(r"^\| .+ \| .+ \| (`.+`) \|$", page, re.MULTILINE)
    assert len(rows) == len(papers) > 50  # each has at least one file
    assert [name for row in rows for name in row.strip("`").split("`, `") if not (HOME / name).exists()] == []
    code = (path.read_text("utf-8") for name in LIBRARIES for path in (HOME / name).rglob("*.py"))
    cited = {number for text in code for number in re.findall(r"\b[12]\d{3}\.\d{5}\b", text)}
    assert sorted(cited - set(papers)) == []


def test_the_glossary_is_sorted_and_its_terms_are_used():
    assert len(TERMS) > 30
    assert sorted(set(TERMS), key=str.lower) == TERMS
    pages = (page.read_text("utf-8") for page in PAGES if page != DOCS / "concepts.md")
    text = re.sub(r"\s+", " ", " ".join(pages)).lower()
    unused = [word for term in TERMS for word in term.lower().split(", ") if word not in text]
    assert unused == []


def test_pages_are_short_and_few():
    words = {page.name: len(page.read_text("utf-8").split()) for page in DOCS.glob("*.md")}
    assert len(words) <= 27
    assert sum(words.values()) <= 45_000
    assert [name for name, count in words.items() if count > 1800 and name != "reference.md"] == []


def test_the_reference_is_that_of_the_tables_of_the_code():
    """Run docs/make_reference.py after a change of a table of the code, of papers.toml or of a citation."""
    page = runpy.run_path(str(DOCS / "make_reference.py"))["page"]
    assert (DOCS / "reference.md").read_text("utf-8") == page()
