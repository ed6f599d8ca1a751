"""One file of debates: whole, alone, and never over somebody's own file."""

import hashlib
import re
from base64 import b64encode
from dataclasses import replace

import pytest

from debate_rl.inspector.web.rendering import export_html
from transcripts import FilterError, RunStore, write_step


def test_a_file_holds_the_list_and_the_debates_of_a_filter(run, tmp_path):
    path = tmp_path / "wrong.html"
    with RunStore.open(run) as store:
        ids = [row.id for row in store.debates("winner:wrong")]
        done = export_html(store, "winner:wrong", path)
    page = path.read_text(encoding="utf-8")
    assert (done.written, done.matching) == (len(ids), len(ids))
    assert re.findall(r'class="exported" id="d([^"]*)"', page) == ids
    assert set(re.findall(r'href="#([^"]*)"', page)) <= set(re.findall(r'id="([^"]*)"', page))
    assert re.findall(r'(?:href|src)="([^"#][^"]*)', page) == []
    assert page.endswith("</html>\n")
    assert sorted(tmp_path.iterdir()) == sorted([path, run])


def test_the_debates_of_one_group_begin_with_its_grid(run, step_records, tmp_path):
    path, (first, second, *_) = tmp_path / "group.html", step_records(7)
    same = replace(second, debate=replace(second.debate, problem=first.debate.problem))
    write_step(run / "transcripts", 7, [first, same])
    with RunStore.open(run) as store:
        assert export_html(store, "step:7", path).written == 2
        page = path.read_text(encoding="utf-8")
        assert page.count('data-testid="group"') == 1
        assert page.index('data-testid="group"') < page.index('data-testid="debates"')
        links = set(re.findall(r'href="#([^"]*)"', page))
        assert links <= set(re.findall(r' id="([^"]*)"', page))
        assert any(link.startswith("d7.1-") for link in links)
        export_html(store, "step:0..7", path)
    assert 'data-testid="group"' not in path.read_text(encoding="utf-8")


def test_what_is_left_out_is_said_and_the_style_alone_is_allowed(run, tmp_path):
    path = tmp_path / "some.html"
    with RunStore.open(run) as store:
        assert export_html(store, "", path, limit=5).matching == 18
    page = path.read_text(encoding="utf-8")
    assert "13 are left out" in page
    [style] = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert f"style-src 'sha256-{b64encode(hashlib.sha256(style.encode()).digest()).decode()}'" in page
    assert "default-src 'none'" in page
    assert " style=" not in page.replace(style, "")


def test_only_an_export_is_replaced_and_no_link_is_followed(run, tmp_path):
    path = tmp_path / "notes.html"
    path.write_text("mine")
    (tmp_path / "out.html").symlink_to("/dev/null")
    with RunStore.open(run) as store:
        for kept, why in ((path, "exists and is not an export"), (tmp_path / "out.html", "is not a regular")):
            with pytest.raises(ValueError, match=rf"{kept.name}: {why}"):
                export_html(store, "", kept)
        assert path.read_text() == "mine"
        path.unlink()
        (tmp_path / "mine").write_text("mine")
        (tmp_path / ".notes.html.new").symlink_to(tmp_path / "mine")
        export_html(store, "", path, limit=1)
        export_html(store, "", path, limit=2)
    assert (tmp_path / "mine").read_text() == "mine"
    assert path.read_text(encoding="utf-8").count('class="exported"') == 2


def test_nothing_is_left_where_writing_fails(run, tmp_path, monkeypatch):
    path = tmp_path / "bad.html"
    with RunStore.open(run) as store:
        with pytest.raises(FilterError):
            export_html(store, "winne:x", path)
        monkeypatch.setattr("debate_rl.inspector.web.rendering.debate_view", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            export_html(store, "", path)
    assert list(tmp_path.iterdir()) == [run]


def test_hostile_texts_stay_texts(hostile_run, hostile_texts, tmp_path):
    path = tmp_path / "hostile.html"
    with RunStore.open(hostile_run) as store:
        export_html(store, "", path)
    page = path.read_text(encoding="utf-8")
    assert not re.search("<script|<img", page)
    assert page.count("</title>") == page.count("</style>") == 1
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202e\u2066\ufeff]", page)
