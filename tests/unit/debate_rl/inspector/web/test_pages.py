"""The pages by their answers: what they hold, who gets them, and that hostile text stays text."""

import json
import re
import shutil
import threading
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest

import debate_rl.inspector.web.site as site_module
from debate import DebateConfig, Problem, run_debates
from debate.policies.scripted import ScriptedPolicy
from debate_rl.inspector.web.app import AccessPolicy, make_app
from debate_rl.inspector.web.site import Site
from debate_rl.metrics.held_out import HeldOut, append_held_out
from debate_rl.runs.folder import locked
from transcripts import Record, RunStore, write_step
from transcripts.codec import to_line

from ..conftest import judged, make, solved

starlette = pytest.importorskip("starlette.testclient")

VIEWS = ("", "/graph", "/adoption", "/parse", "/tokens", "/why", "/prompt", "/branch")
TAGS = (
    "a abbr article b body br button caption circle code dd del details dialog div dl dt figcaption figure "
    "footer form g h1 h2 h3 head header html input ins kbd label li link main mark meta nav noscript ol p "
    "path pre progress rect script section span summary svg table tbody td text textarea th thead title tr "
    "ul math mrow mi mn mo mtext mfrac msup msub"
)
"""The tags of our templates; those of a model would be others."""
ATTRIBUTES = (
    "action aria-current aria-hidden aria-label aria-labelledby aria-pressed autocapitalize autocomplete "
    "charset checked class colspan content cx cy d data- data-fields data-go data-item data-key data-live "
    "data-mark data-page data-refresh data-testid data-total data-truth defer display dy for height hidden "
    "href http-equiv id lang mark max maxlength method name placeholder points preserveaspectratio r rel "
    "role rows scope spellcheck src stretchy tabindex title type value viewbox width x y"
)


class Reader(HTMLParser):
    """Collects tags, attributes and text as a browser takes them."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words.append(data)

    def handle_comment(self, data):
        raise AssertionError(f"a comment: {data!r}")

    @property
    def text(self) -> str:
        return "".join(self.words)


@pytest.fixture
def serve(monkeypatch):
    """Return a function that returns a client of the pages of a path, which are never busy."""
    monkeypatch.setattr(site_module, "PATIENCE_S", 60.0)
    monkeypatch.setattr(site_module, "LOOK_S", 60.0)
    sites: list[Site] = []

    def client_of(path: Path, policy: AccessPolicy | None = None, host: str = "127.0.0.1:8123"):
        sites.append(site := Site(path))
        app = make_app(site, policy or AccessPolicy.of("127.0.0.1"))
        client = starlette.TestClient(app, base_url=f"http://{host}", follow_redirects=False)
        client.site = site
        return client

    yield client_of
    for site in sites:
        site.close()


@pytest.fixture
def small(run, serve):
    return serve(run)


def ids_of(folder: Path) -> list[str]:
    with RunStore.open(folder) as store:
        return [row.id for row in store.debates(limit=1000)]


def safe(page: str) -> Reader:
    """What a page holds, which has the tags and attributes of our templates alone, and our scripts."""
    read = Reader(page)
    for tag, attributes in read.tags:
        assert tag in TAGS.split()
        assert set(attributes) <= {*ATTRIBUTES.split()}, (tag, attributes)
        assert not (attributes.get("href") or "/").startswith("javascript")
    scripts = [attributes["src"] for tag, attributes in read.tags if tag == "script"]
    assert scripts[0].startswith("/static/inspect.js?")
    assert all(re.match(r"/static/(uplot|charts)\.js\?", script) for script in scripts[1:])
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202e\u2066\ufeff]", page)
    return read


def test_hostile_texts_reach_every_page_as_text_alone(serve, hostile_run, hostile_texts):
    client, base, shown = serve(hostile_run), f"/run/{quote(hostile_run.name, safe='')}", ""
    pages = [
        f"{base}/{name}" for name in ("", "debates", "replays", "group?step=0", "evaluations", "settings")
    ]
    pages += [f"{base}/debate/{id}{view}" for id in ids_of(hostile_run) for view in VIEWS]
    for page in pages:
        answer = client.get(page)
        assert answer.status_code == 200, page
        read = safe(answer.text)
        assert "49" not in re.findall(r"\{\{7\*7\}\}|\b49\b", read.text)
        shown += read.text if "/debate/" in page and page.count("/") == 4 else ""
    for text in hostile_texts:
        if text.isprintable():
            assert " ".join(text.split()) in shown
    for code in ("U+001B", "U+0000", "U+009B", "U+000D", "U+202E", "U+200B", "\ufffd lone \ufffd"):
        assert code in shown


def test_pages_stay_small_and_a_long_turn_is_shown_whole_on_request(serve, hostile_run):
    client, base = serve(hostile_run), f"/run/{quote(hostile_run.name, safe='')}"
    found = [client.get(f"{base}/debate/{id}") for id in ids_of(hostile_run)]
    assert max(len(answer.content) for answer in found) < 300_000
    long = next(answer for answer in found if "more characters" in answer.text)
    more = re.search(r'([\d,]+) more characters: <a href="([^"]*)"', long.text)
    assert int(more[1].replace(",", "")) > 900_000
    assert len(client.get(more[2].replace("&amp;", "&")).content) > 1_000_000


def test_every_answer_has_the_headers(small):
    for path in ("/run/run/", "/run/run/debates?filter=nonsense:1", "/nowhere", "/static/style.css"):
        headers = small.get(path).headers
        policy = headers["content-security-policy"]
        assert {"default-src 'self'", "frame-ancestors 'none'"} <= set(policy.split("; "))
        assert "unsafe" not in policy
        assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "same-origin")
        assert re.fullmatch(r"page;dur=\d+\.\d+", headers["server-timing"])


def test_only_the_names_of_this_machine_are_answered(small):
    foreign = ("evil.example", "evil.example:8123", "127.0.0.1.evil.example", "8.8.8.8", "")
    for host in (*foreign, "localhost", "LOCALHOST:99", "127.0.0.1:8123", "[::1]:8123"):
        answer = small.get("/run/run/", headers={"host": host})
        assert answer.status_code == (421 if host in foreign else 200)
    knows = AccessPolicy.of("0.0.0.0").knows
    assert (knows("192.0.2.7:8123"), knows("evil.example")) == (True, False)


def test_only_reading_is_answered(small):
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        answer = small.request(method, "/run/run/")
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, POST")
    assert small.head("/run/run/").status_code == 200
    assert small.post("/run/run/", headers=OWN).status_code == 405


OWN = {"origin": "http://127.0.0.1:8123"}
STAR = {"kind": "star", "id": "0.1", "value": "yes"}


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "null"},
        {"origin": "http://evil.example"},
        {"origin": "http://127.0.0.1:9000"},
        {"origin": "http://127.0.0.1.evil.example"},
        {"origin": "http://127.0.0.1:8123", "sec-fetch-site": "cross-site"},
        {"origin": "http://127.0.0.1:8123", "sec-fetch-site": "same-site"},
        {"origin": "http://evil.example", "host": "evil.example"},
    ],
)
def test_a_form_of_another_site_changes_nothing(serve, run, headers):
    answer = serve(run).post("/run/run/debate/0.1", data=STAR, headers=headers)
    assert answer.status_code == (421 if "host" in headers else 403)
    assert not (run / "annotations.jsonl").exists()


def test_a_form_of_the_page_stars_and_returns_to_it(serve, run):
    client = serve(run)
    path = "/run/run/debate/0.1?filter=step%3A0&round=0"
    answer = client.post(path, data=STAR | {"anchor": "turn-1.0 x"}, headers=OWN)
    assert (answer.status_code, answer.headers["location"]) == (303, f"{path}#turn-1.0%20x")
    line = json.loads((run / "annotations.jsonl").read_text())
    assert (line["kind"], line["id"], line["value"]) == ("star", "0.1", "yes")
    assert "★ Starred" in client.get(path).text
    hostile = "</textarea><script>window.ran = 1</script>"
    own = {"kind": "note", "id": "0.1/1.0", "value": hostile}
    client.post(path, data=own, headers=OWN)
    read = safe(client.get(path).text)
    assert hostile in "".join(read.words)


@pytest.mark.parametrize(
    ("form", "status", "words"),
    [
        ({"kind": "crown"}, 422, "kind: does not belong to this page"),
        ({"id": "0.2"}, 422, "id: does not belong to this page"),
        ({"id": "x" * 100}, 422, "expected a debate 12.3"),
        ({"kind": "label", "id": "0.1/0.0", "value": "tie"}, 422, "must be right or wrong"),
        ({"value": "x" * 300_000}, 413, "at most 262,144 bytes"),
    ],
)
def test_a_form_that_does_not_fit_changes_nothing(serve, run, form, status, words):
    answer = serve(run).post("/run/run/debate/0.1", data=STAR | form, headers=OWN)
    assert (answer.status_code, words in answer.text) == (status, True)
    assert not (run / "annotations.jsonl").exists()


def test_a_page_names_lines_that_are_no_annotations(serve, run):
    (run / "annotations.jsonl").write_text("nonsense\n")
    assert "annotations.jsonl:1: not a complete line" in serve(run).get("/run/run/debate/0.1").text


def test_away_from_loopback_a_token_is_needed_and_kept_in_a_cookie(serve, run):
    policy = AccessPolicy.of("box.example")
    assert len(policy.token) >= 32
    client = serve(run, policy, "box.example")
    for path, cookie in (("", ""), ("?token=wrong", ""), ("", f"{policy.cookie}=wrong")):
        assert client.get(f"/run/run/{path}", headers={"cookie": cookie}).status_code == 401
    opened = client.get(f"/run/run/debates?filter=winner%3Awrong&token={policy.token}")
    found = opened.status_code, opened.headers["location"]
    assert found == (303, "/run/run/debates?filter=winner%3Awrong")
    assert {"httponly", "samesite=strict"} <= set(opened.headers["set-cookie"].lower().split("; "))
    client.cookies.clear()
    for other in ("", 'x={"a": 1}', "\u00ff=1", 'x="', "x", "=" * 5000):  # of other servers of the host
        cookies = f"{other}; {policy.cookie}={policy.token}; y".encode("latin-1")
        assert client.get("/run/run/", headers={"cookie": cookies}).status_code == 200
    with pytest.raises(ValueError, match="token: "):
        AccessPolicy.of("127.0.0.1", "short")
    elsewhere = client.get(f"http://box.example//evil.example/?token={policy.token}")
    assert elsewhere.headers["location"] == "/evil.example/"


@pytest.mark.parametrize("name", ["run", "b c", "日", "x:y?z#", "é\r\nX: 1"])
def test_the_address_of_a_run_without_its_slash_leads_to_the_run(serve, run, tmp_path, name):
    (tmp_path / "runs").mkdir()
    run.rename(tmp_path / "runs" / name)
    client = serve(tmp_path / "runs")
    moved = client.get(f"/run/{quote(name, safe='')}")
    assert (moved.status_code, moved.headers["location"]) == (308, f"/run/{quote(name, safe='')}/")
    assert client.get(moved.headers["location"]).status_code == 200


def test_a_debate_that_cannot_be_read_is_an_error_of_its_own(serve, run):
    [shard, *_] = sorted((run / "transcripts").glob("step_000000.jsonl*"))
    with RunStore.open(run) as store:
        line = to_line(store.debate("0.0"))
    shard.unlink()
    damaged = line.replace(b'"judge_own":false', b'"judge_own":7')
    (run / "transcripts" / "step_000000.jsonl").write_bytes(damaged + b"\n")
    client = serve(run)
    for view in ("adoption", "graph"):
        answer = client.get(f"/run/run/debate/0.0/{view}")
        assert answer.status_code == 422
        assert "debate.protocol.judge_own: " in Reader(answer.text).text


ABSENT = ["..%2f..%2fetc/", "%2e%2e/", "other/", "run/replays/..%2f..%2fconfig.toml", "run/replays/%2e%2e"]
ABSENT += ["run/debate/9.9", "run/debate/x", f"run/debate/0.{10**20:030}", f"run/debate/0.{'0' * 5000}"]
ABSENT += ["run/debate/0.0/why?turn=9.9", "run/debate/0.0/tokens?turn=x", "run/debate/0.0/nothing"]


@pytest.mark.parametrize("path", ["/static/../app.py", "/static/..%2fapp.py", *(f"/run/{p}" for p in ABSENT)])
def test_what_is_not_there_is_a_page_of_its_own(small, path):
    answer = small.get(path)
    assert answer.status_code == 404
    assert "root:" not in answer.text
    assert '<a href="/" data-testid="back">' in answer.text


@pytest.mark.parametrize(("several", "gone"), [(False, "run"), (True, "run"), (True, "run/transcripts")])
def test_a_folder_that_is_deleted_while_it_is_served_is_not_here(serve, run, gone, several, monkeypatch):
    monkeypatch.setattr(site_module, "FRESH_S", 0.0)
    if several:
        shutil.copytree(run, run.with_name("other"))
    client = serve(run.parent if several else run)
    paths = ["/run/run/", "/run/run/debates", "/run/run/debates?filter=text%3Asolution"]
    paths += ["/run/run/across?problem=sum/0", "/run/run/replays", "/run/run/replays/x"]
    paths += [f"/run/run/debate/0.0{view}" for view in VIEWS]
    assert {client.get(path).status_code for path in paths} <= {200, 404}
    shutil.rmtree(run.parent / gone)
    for answer in map(client.get, paths):
        assert answer.status_code in (404, 422)
        assert re.search('role="alert">.*(no run|not the folder|no such folder|neither a run)', answer.text)
    assert client.get("/").status_code == (200 if several else answer.status_code)


def test_a_filter_that_cannot_be_read_is_shown_with_its_caret(small):
    answer = small.get("/run/run/debates", params={"filter": "winner:wrong winne:x"})
    assert answer.status_code == 400
    said = r"did you mean 'winner'.*  winner:wrong winne:x\n               \^"
    assert re.search(said, Reader(answer.text).text, re.DOTALL)
    assert small.get("/run/run/debate/0.0?filter=winne:x").status_code == 400


def test_a_list_is_paged_and_a_debate_has_its_neighbours(serve, tmp_path, step_records):
    folder = tmp_path / "long"
    for step in range(10):
        write_step(folder / "transcripts", step, step_records(step), tokens=False)
    client = serve(folder)
    ids = ids_of(folder)
    first = client.get("/run/long/debates").text
    after = re.search(r'<a href="([^"]*)" rel="next"', first)[1].replace("&amp;", "&")
    second, newest = (client.get(path).text for path in (after, "/run/long/debates?newest=1"))
    for page, wanted in ((first, ids[:50]), (second, ids[50:]), (newest, ids[:-51:-1])):
        assert re.findall(r'id="row-([^"]*)" data-testid="row"', page) == wanted
    with RunStore.open(folder) as store:
        wrong = [row.id for row in store.debates("winner:wrong", limit=1000)]
    for query, before, after in (("", 0, 2), ("&newest=1", 2, 0)):
        page = client.get(f"/run/long/debate/{wrong[1]}?filter=winner%3Awrong{query}").text
        links = re.findall(r'href="/run/long/debate/([^"?]*)\?([^"]*)" rel="(?:prev|next)"', page)
        filter = f"filter=winner%3Awrong{query}".replace("&", "&amp;")
        assert links == [(wrong[before], filter), (wrong[after], filter)]


def test_a_page_that_is_asked_for_again_has_what_is_new(serve, run, step_records):
    client = serve(run)
    assert "data-live" not in client.get("/run/run/debates?newest=1").text
    write_step(run / "transcripts", 3, step_records(3), tokens=False)
    client.site._open["run"].refreshed = client.site._looked = -10.0
    client.site._seen.clear()
    with locked(run):
        pages = [client.get(f"/run/run/{page}").text for page in ("debates?newest=1", "debates", "")]
    newest, _, steps = pages
    assert re.findall(r' id="row-([^"]*)"', newest)[:6] == [f"3.{place}" for place in reversed(range(6))]
    assert [re.findall(r'data-live="(\w+)"', page) for page in pages] == [["insert"], ["offer"], ["insert"]]
    assert all("<b data-total>24</b>" in page for page in pages)
    assert re.findall(r' id="step-([^"]*)"', steps) == ["3", "2", "1", "0"]


def test_a_folder_of_runs_lists_them_and_follows_them_while_one_is_written(serve, run, hostile_run):
    assert serve(run).get("/").headers["location"] == "/run/run/"
    assert hostile_run.name in Reader(serve(hostile_run.parent).get("/").text).text
    shutil.copytree(run, run.parent / "other")
    client = serve(run.parent)
    assert "data-refresh" not in client.get("/").text
    with locked(run):
        client.site._looked = -10.0
        page = client.get("/").text
    assert (page.count("data-refresh"), page.count("running")) == (1, 1)


def test_a_damaged_line_is_told_and_the_rest_is_shown(serve, run):
    shard = run / "transcripts" / "step_000002.jsonl"
    lines = shard.read_bytes().splitlines(keepends=True)
    shard.write_bytes(lines[0] + b"{damaged\n" + b"".join(lines[2:]))
    client = serve(run)
    assert 'data-testid="damage"' in client.get("/run/run/").text
    assert client.get("/run/run/debate/2.0").status_code == 200
    damaged = client.get("/run/run/debate/2.1")
    assert damaged.status_code == 422
    assert "debate 2.1 cannot be read: line 2: not a complete line of JSON" in damaged.text


def test_the_words_of_a_large_run_are_indexed_while_the_page_tells_how_far(serve, run, monkeypatch):
    monkeypatch.setattr(site_module, "SMALL_BYTES", 0)
    monkeypatch.setattr(site_module, "PATIENCE_S", 0.01)
    client = serve(run)
    while client.get("/run/run/").status_code == 202:
        pass
    store = client.site.store("run")
    go, index_text = threading.Event(), store.index_text
    monkeypatch.setattr(store, "index_text", lambda **options: go.wait(30) and index_text(**options))
    waiting = client.get("/run/run/debates?filter=text:boxed")
    assert (waiting.status_code, "data-refresh" in waiting.text) == (202, True)
    assert "Indexing the words: 0%" in Reader(waiting.text).text
    go.set()
    client.site._open["run"].indexing.result(30)
    assert client.get("/run/run/debates?filter=text:boxed").status_code == 200


def test_a_run_of_a_newer_version_is_refused_on_its_page_and_others_are_shown(serve, run):
    newer = run.with_name("newer") / "transcripts"
    newer.mkdir(parents=True)
    (newer / "step_000000.jsonl").write_text('{"schema": 99}\n')
    client = serve(run.parent)
    answer = client.get("/run/newer/")
    assert (answer.status_code, "99" in Reader(answer.text).text) == (422, True)
    assert client.get("/run/run/").status_code == 200
    assert sorted(path.name for path in newer.parent.iterdir()) == ["transcripts"]


def test_a_replay_is_shown_and_a_damaged_one_named(serve, run):
    client = serve(run)
    assert 'data-testid="none"' in client.get("/run/run/replays").text
    (run / "replays" / "mine").mkdir(parents=True)
    (run / "replays" / "mine" / "replay.json").write_text("{")
    assert "mine" in Reader(client.get("/run/run/replays").text).text
    assert client.get("/run/run/replays/mine").status_code == 422


def test_mathematics_is_typeset_and_can_be_read_as_written(serve, tmp_path):
    reply = "<solution>so $x < 5$ costs $3 and $4, \\foo{y} <b> \\boxed{\\frac{1}{2}}</solution>"
    problem = Problem("p", "Find \\(x_1\\).", "5", kind="choice", choices=("$\\pi$", "$3 or more"))
    [debate] = run_debates([problem], ScriptedPolicy(lambda request: reply), DebateConfig(), seed=1)
    write_step(tmp_path / "run/transcripts", 0, [Record(debate, 0, "p")])
    client = serve(tmp_path / "run")
    typeset, written = (client.get(f"/run/run/debate/0.0{query}").text for query in ("", "?written=1"))
    others = [client.get(f"/run/run/{page}").text for page in ("across?problem=p", "debate/0.0/adoption")]
    half = '<math title="\\(\\frac{1}{2}\\)"'
    for page, words in (
        (others[0], '<math title="\\(x_1\\)"'),
        (others[1], half),
        (typeset, '<math title="\\(x_1\\)" display="inline"><mrow><msub>'),
        (typeset, '<math title="$\\pi$" display="inline">'),
        (typeset, "</math> costs $3 and $4, \\foo{y} &lt;b&gt; <math"),
        (typeset, "$3 or more"),
        (typeset, '?written=1" data-testid="written">Mathematics as written</a>'),
        (typeset, 'data-testid="gold"><code>5</code></span>'),
        (written, "so $x &lt; 5$ costs $3 and $4, \\foo{y} &lt;b&gt; \\boxed{\\frac{1}{2}}"),
        (written, ">Mathematics typeset</a>"),
    ):
        assert words in page, words
    assert (written.count("<math"), written.count("?written")) == (0, 0)
    assert typeset.count(f'{half} display="inline"><mrow><mfrac>') == 18  # 3 rounds, the grid and the cards
    assert written.count("<code>\\frac{1}{2}</code>") == 18


def test_one_legend_explains_all_graphs_of_a_page(serve, tmp_path, circle):
    answers = [solved(4), solved(5), solved(6)]
    votes = [solved(4, "Q2 > M4"), solved(4, "K7 > M4"), solved(4, "K7 > Q2")]
    in_a_circle = [judged("Q2 > M4"), judged("M4 > K7\nM4 > K7"), judged("K7 > Q2")]
    write_step(tmp_path / "run/transcripts", 5, [make([answers, votes, in_a_circle]), make([answers, votes])])
    client = serve(tmp_path / "run")
    page, plain = (client.get(f"/run/run/debate/5.{index}/graph").text for index in (0, 1))
    assert page.count('data-testid="graph-round"') == 2
    assert page.count('data-testid="legend"') == plain.count('data-testid="legend"') == 1
    assert [m in text for text in (page, plain) for m in (' ring"', " void")] == [True] * 2 + [False] * 2
    assert re.findall(r'<text class="sub"[^>]*>([^<]*)</text>', plain) == ["✓", "✗", "✗"]


def test_what_matters_most_comes_first_in_a_list(small):
    page = small.get("/run/run/debates").text
    heads = re.findall(r'<th scope="col"[^>]*>(?:<abbr [^>]*>)?([^<]+)<', page)
    assert heads[:5] == ["debate", "winner", "accuracy", "judge", "flags"]
    optional = re.findall(r'<th scope="col" class="n wide-only">(?:<abbr [^>]*>)?([^<]+)<', page)
    assert optional == ["malformed", "tokens"]
    assert '<abbr title="valid votes">votes</abbr>' in page


def linked(page: str, testid: str) -> dict[str, str]:
    """The words of the links of a name, and their addresses."""
    found = re.findall(rf'<a href="([^"]*)"(?: data-item)? data-testid="{testid}">([^<]*)<', page)
    return {words: url.replace("&amp;", "&") for url, words in found}


def test_a_wrong_vote_is_two_clicks_from_the_run_and_its_cost_one_more(small):
    asked = linked(small.get("/run/run/").text, "preset")
    with RunStore.open(small.site.run("run").path) as store:
        wrong = [row.id for row in store.debates("vote:wrong")]
    [there] = [url for words, url in asked.items() if words == f"a vote was wrong · {len(wrong)}"]
    listed = small.get(there).text
    assert linked(listed, "row-link").keys() == set(wrong)
    assert 'class="chip on"' in listed
    debate = small.get(linked(listed, "row-link")[wrong[0]]).text
    assert "✗ wrong vote: " in Reader(debate).text
    cost = linked(debate, "effect")["what it cost"]
    assert re.search(r"/why\?turn=\d\.\d", cost)
    assert "its votes: " in Reader(small.get(cost).text).text


def test_presets_count_within_a_filter_and_are_taken_back(small):
    page = small.get("/run/run/debates?filter=step%3A1").text
    with RunStore.open(small.site.run("run").path) as store:
        cyclic = store.count("cycle:yes step:1")
    url = linked(page, "preset")[f"votes formed a cycle · {cyclic}"]
    assert url == "/run/run/debates?filter=cycle%3Ayes+%28step%3A1%29"
    back = linked(small.get(url).text, "preset")[f"votes formed a cycle · {cyclic}"]
    assert back == "/run/run/debates?filter=step%3A1"
    assert 'data-testid="presets"' not in small.get("/run/run/debates?filter=text%3Asolution").text
    typed = quote("vote:wrong (step:1) OR (step:2)")  # its parentheses are two pairs
    assert small.get(f"/run/run/debates?filter={typed}").status_code == 200


def test_views_without_content_have_no_tab(serve, tmp_path, circle):
    write_step(tmp_path / "run/transcripts", 5, [circle, make([[solved(4), solved(5), solved(6)]])])
    client = serve(tmp_path / "run")
    tabs = [
        re.findall(r'data-testid="tab-(\w+)"', client.get(f"/run/run/debate/5.{at}").text) for at in (0, 1)
    ]
    assert tabs[0] == ["debate", "graph", "why", "adoption", "parse", "group", "across"]
    assert tabs[1] == ["debate", "why", "group", "across"]
    page = client.get("/run/run/debate/5.1/parse").text  # its address works, and it has a tab there
    assert 'data-testid="tab-parse" aria-current="page"' in page


def test_bars_of_a_step_lead_to_as_many_debates_as_they_say(small):
    page = small.get("/run/run/group?step=1").text
    bars = re.findall(r'M0 .2H([.\d]+)V.8H0z"/></svg><a href="([^"]*)" data-testid="bar">(\d+)<', page)
    assert len(bars) > 2
    for drawn in page.split('data-testid="histogram"')[1:]:
        of = [(float(length), int(size)) for length, url, size in bars if url in drawn]
        most = max(size for _, size in of)
        assert [length for length, _ in of] == [pytest.approx(size / most, abs=0.006) for _, size in of]
    for _, url, size in bars:
        listed = small.get(url.replace("&amp;", "&")).text
        assert listed.count('data-testid="row"') == int(size)


def test_a_persona_has_the_same_mark_in_every_debate(small):
    marks = set()
    for id in ("0.0", "0.3", "2.1"):
        page = small.get(f"/run/run/debate/{id}/graph").text
        marks |= set(re.findall(r'<span class="persona (p\d)"></span>.*?drawn"> ([^<]*)<', page))
    names = {name for _, name in marks}
    assert len(marks) == len(names) == len({mark for mark, _ in marks}) > 1


def test_the_filter_box_offers_fields_with_their_words_and_personas(small):
    fields = {field["name"]: field for field in small.get("/run/run/fields.json").json()}
    assert fields["winner"]["words"] == ["none", "right", "wrong", "ungraded"]
    assert fields["step"]["words"] == [">200"]
    assert '"Devil\'s Advocate"' in fields["persona"]["words"]
    for name, field in fields.items():
        for word in field["words"]:
            assert small.get("/run/run/debates", params={"filter": f"{name}:{word}"}).status_code == 200


def test_held_out_figures_before_training_are_the_first_point_of_their_charts(small):
    run = small.site.run("run").path
    figures = {"direct/accuracy": {"a": (1.0, 4), "b": (2.0, 4)}}
    append_held_out(run / "held_out.jsonl", HeldOut(0, {"a": "1", "b": "2"}, figures))
    lines = [{"step": 0, "loss": 0.5}, {"step": 1, "loss": 0.25, "eval/direct/accuracy": 0.5}]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    held, loss = (
        small.get(f"/run/run/metrics.json?names={names}").json()
        for names in ("loss,eval/direct/accuracy", "loss")
    )
    assert (held["steps"], held["values"]["loss"]) == ([-1, 0, 1], [None, 0.5, 0.25])
    assert held["values"]["eval/direct/accuracy"] == [0.375, None, 0.5]
    assert (loss["steps"], loss["values"]) == ([0, 1], {"loss": [0.5, 0.25]})


def test_a_report_is_linked_if_there_is_one_and_runs_no_script(small):
    assert 'data-testid="report-link"' not in small.get("/run/run/").text
    assert small.get("/run/run/report").status_code == 404
    folder = small.site.run("run").path / "report"
    folder.mkdir()
    (folder / "report.html").write_text("<p>fine<script>alert(1)</script>")
    assert linked(small.get("/run/run/").text, "report-link") == {"Report": "/run/run/report"}
    answer = small.get("/run/run/report")
    assert answer.text.startswith("<p>fine")
    directives = answer.headers["content-security-policy"].split("; ")
    assert {"sandbox", "default-src 'none'"} <= set(directives)
    assert answer.headers["x-frame-options"] == "DENY"
    outside = folder.with_name("outside.html")
    (folder / "report.html").rename(outside)
    (folder / "report.html").symlink_to(outside)
    assert small.get("/run/run/report").status_code == 404


def test_checkpoints_are_listed_with_their_figures_and_sizes(small):
    run = small.site.run("run").path
    figures = {"direct/accuracy": {"a": (1.0, 4)}}
    append_held_out(run / "held_out.jsonl", HeldOut(2, {"a": "1"}, figures))
    for step, manifest in ((2, {"files": {"x": {"bytes": 1_500_000}}}), (4, [])):
        folder = run / "checkpoints" / f"step_{step:06d}"
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text(json.dumps(manifest))
    page = small.get("/run/run/evaluations").text
    page = Reader(page[page.index('data-testid="checkpoints"') : page.index("<footer")]).text.split()
    assert " ".join(page).endswith("winnersize step_0000022.25–1.5 MB step_0000044–––")


def test_pairs_under_attack_are_shown_with_whatever_was_said(serve, judged_run, small, hostile_texts):
    count, watched = len(hostile_texts), serve(judged_run)
    assert "Attacks on the judge" in watched.get("/run/judged/").text
    page = Reader(watched.get("/run/judged/pairs").text)
    assert f"{count} of {2 * count} attacks: the start judge was right, this judge is not" in page.text
    assert re.findall(r"after (\d) steps([+-]?\d\.\d+)", page.text) == [("7", "+1.000"), ("2", "0.000")]
    earlier = Reader(watched.get("/run/judged/pairs?step=2").text).text
    assert f"0 of {2 * count} attacks" in earlier
    for number in range(count):
        text = safe(watched.get(f"/run/judged/pairs?pair={number}").text).text
        assert "fake check" in text
        assert "after 7 steps: no valid vote" in text
    for nothing in ("pair=999", "step=3"):
        assert watched.get(f"/run/judged/pairs?{nothing}").status_code == 404
    assert small.get("/run/run/pairs").status_code == 404  # a run without a watched judge
    assert "Attacks on the judge" not in small.get("/run/run/").text


def test_many_pairs_are_a_page_at_a_time(serve, judged_run, monkeypatch, hostile_texts):
    monkeypatch.setattr("debate_rl.inspector.web.pages.PAGE", 3)
    watched, found, url = serve(judged_run), [], "/run/judged/pairs"
    while url:
        tags = [attributes for _, attributes in Reader(watched.get(url).text).tags]
        found += [one["href"] for one in tags if one.get("data-testid") == "pair-link"]
        url = next((one["href"] for one in tags if one.get("data-testid") == "page-next"), None)
    assert len(set(found)) == len(found) == len(hostile_texts)


def test_metrics_are_served_as_json(run, serve):
    lines = ({"step": 0, "loss": 0.5}, {"step": 1, "loss": 0.25, "eval/x": 1})
    (run / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    found = serve(run).get("/run/run/metrics.json?names=loss,eval/x,nothing").json()
    assert found["names"] == ["eval/x", "loss"]
    assert found["steps"] == [0, 1]
    assert found["values"] == {"loss": [0.5, 0.25], "eval/x": [None, 1]}
    assert (found["run"], found["runs"]) == ("run", [])


def test_settings_are_compared_with_those_of_another_run(run, serve, tmp_path):
    shutil.copytree(run, tmp_path / "runs/one")
    shutil.copytree(run, tmp_path / "runs/two")
    (tmp_path / "runs/one/config.toml").write_text('seed = 1\n[learner]\nlr = 0.1\nloss = "grpo"\n')
    (tmp_path / "runs/two/config.toml").write_text("seed = 1\n[learner]\nlr = 0.2\n")
    client = serve(tmp_path / "runs")
    rows = re.findall(
        r'data-testid="setting">(.*?)</tr>', client.get("/run/one/settings?other=two").text, re.S
    )
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]
    assert cells == [["learner.lr", "0.1", "0.2"], ["learner.loss", "grpo", "–"]]
    assert client.get("/run/one/settings?other=three").status_code == 404
    assert "seed 1" in client.get("/run/one/").text


def test_debates_of_an_evaluation_open_as_a_run_of_their_own(run, serve, tmp_path):
    home = tmp_path / "runs/one"
    shutil.copytree(run, home)
    shutil.copytree(run / "transcripts", home / "evaluations/start/debates")
    (home / "evaluations/start/evaluation.json").write_text("{}")
    client = serve(tmp_path / "runs")
    [link] = re.findall(r'href="(/run/one%3Astart%3Adebates/)"', client.get("/run/one/evaluations").text)
    assert client.get(f"{link}debates").text.count('data-testid="row"') == 18
    assert client.get(f"{link}debate/0.0").status_code == 200
    for name in ("one:..:..", "one:start:..", "one:.:.", "one::", "one:start:none", "two:start:debates"):
        assert client.get(f"/run/{quote(name, safe='')}/").status_code == 404, name


@pytest.fixture
def configured(run, serve):
    """The pages of a run with a configuration, so that rewards can be recomputed."""
    (run / "config.toml").write_text(
        '[model]\npolicy = "openai"\nname_or_path = "m"\n[train]\ngroup_size = 1\n'
    )
    return serve(run)


def test_the_page_of_a_turn_shows_other_votes_and_the_commands_of_a_branch(configured, run):
    page = configured.get("/run/run/debate/0.0/branch?turn=1.1").text
    reader = Reader(page)
    assert f"debate inspect {run.resolve()} branch 0.0 --turn 1.1 --text reply.txt" in reader.text
    links = [a["href"] for tag, a in reader.tags if tag == "a" and "vote=" in a.get("href", "")]
    with RunStore.open(run) as store:
        votes = [vote for vote in store.debate("0.0").debate.votes if tuple(vote.judge) == (1, 1)]
    assert len(links) == 3 - len(votes)
    answer = configured.get(links[0])
    assert answer.status_code == 200
    assert "→" in Reader(answer.text).text
    assert not (run / "branches").exists()  # a page stores nothing
    graph = configured.get("/run/run/debate/0.0/graph").text
    assert "/debate/0.0/branch?turn=" in graph


@pytest.mark.parametrize(
    "query", ["turn=0.0&vote=K7%3EM4", "turn=1.1&vote=%3Cscript%3E", "turn=1.1&branch=7.7", "turn=8.8"]
)
def test_a_vote_or_branch_that_does_not_exist_is_a_page_that_says_so(configured, query):
    answer = configured.get(f"/run/run/debate/0.0/branch?{query}")
    assert answer.status_code == 404
    assert Reader(answer.text).text.count("<script") <= 1
    assert {tag for tag, _ in Reader(answer.text).tags} <= {*TAGS.split()}
