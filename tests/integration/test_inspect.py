"""``debate inspect`` of a trained run, in this process."""

import io
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from debate_rl.engines import make_policy
from debate_rl.inspector.runs import config_of
from debate_rl.inspector.views.prompts import DebatePrompts
from debate_rl.inspector.views.why import why
from debate_rl.inspector.web.app import AccessPolicy, make_app
from debate_rl.inspector.web.site import Site
from transcripts import RunStore


@pytest.fixture
def inspect(folder, debate_command, monkeypatch):
    monkeypatch.chdir(folder)
    return lambda *arguments: debate_command("inspect", *arguments)


def test_every_debate_is_listed_by_pages(inspect):
    code, out, err = inspect("run", "ls")
    assert code == 0
    ids = [f"{step}.{place}" for step in range(2) for place in range(4)]
    assert [line.split()[0] for line in out.splitlines()] == ["debate", *ids]
    assert err == "8 debates\n"
    assert inspect("run") == (code, out, err)  # if there is no terminal, ls is the action

    _, first, err = inspect("run", "ls", "step:0..", "votes:>=0", "--limit", "5", "--newest")
    _, second, err = inspect(*shlex.split(err.split("next page: debate inspect ")[1]))
    pages = (*first.splitlines()[1:], *second.splitlines()[1:])
    assert [line.split()[0] for line in pages] == ids[::-1]


def test_filters_are_combined_and_may_begin_with_what_is_not_wanted(inspect):
    _, out, err = inspect("run", "ls", "step:1", "--filter", "id:0.1 OR id:1.1", "--json")
    assert [json.loads(line)["id"] for line in out.splitlines()] == ["1.1"]
    assert err == "1 debate with (id:0.1 OR id:1.1) (step:1)\n"
    _, out, _ = inspect("run", "ls", "-step:0", "-id:1.0")
    assert [line.split()[0] for line in out.splitlines()] == ["debate", "1.1", "1.2", "1.3"]


def test_a_folder_of_runs_is_listed_and_one_in_it_is_opened(inspect, folder, tmp_path):
    assert inspect(".", "ls", "--limit", "1").out.splitlines()[1].split()[0] == "0.0"
    for name in ("a", "b"):
        (tmp_path / name).symlink_to(folder / "run")
    assert [line.split() for line in inspect(tmp_path).out.splitlines()] == [
        ["path", "steps", "held-out", "judge", "alarms", "state"],
        *([f"{tmp_path}/{name}", "2/2", "–", "–", "0"] for name in ("a", "b")),
    ]
    code, _, err = inspect(tmp_path, "stats")
    assert (code, err.endswith(": a, b\n")) == (2, True)


@pytest.mark.parametrize(
    ("words", "shown", "key"),
    [
        ("show 1.2", ", turn 0.0", "turns"),
        ("stats", "\nall ", "overall"),
        ("why 1.2 --turn 1.0", "\nall numbers equal the stored values", "total"),
        ("same PROBLEM 0.0 0.1", "0.0 -> 0.1\n", "turns"),
    ],
)
def test_each_action_says_it_in_lines_and_in_json(inspect, folder, words, shown, key):
    with RunStore.open(folder / "run") as store:
        words = words.replace("PROBLEM", store.debate("0.0").debate.problem.id).split()
    code, out, _ = inspect("run", *words)
    assert (code, shown in out) == (0, True)
    assert key in json.loads(inspect("run", *words, "--json").out)


DOCUMENTED = re.findall(
    r"^\| `([^`]*)`(?: of runs)? \| `(/run[^`]*)` \| (.*) \|$",
    (Path(__file__).parents[2] / "docs/transcripts.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)


def test_the_browser_and_the_command_line_have_one_documented_json(inspect, debate_command, folder):
    client = pytest.importorskip("starlette.testclient")
    debate_command("replay", "run", "rewards.format_penalty=-2.0")
    with RunStore.open(folder / "run") as store:
        problem = store.debate("0.0").debate.problem.id
    [replay, *_] = [path.name for path in (folder / "run" / "replays").iterdir()]
    inspect("run", "star", "0.1")
    evaluation = folder / "run/evaluations/start-1"
    shutil.copytree(folder / "run/transcripts", evaluation / "debates")
    (evaluation / "evaluation.json").write_text('{"of": {"weights": null}}')
    site = Site(folder / "run")
    browser = client.TestClient(make_app(site, AccessPolicy.of("127.0.0.1")), base_url="http://127.0.0.1")
    words = {
        "ls [FILTER]": "ls",
        "ls": "",  # of runs
        "show ID...": "show 0.1",
        "grep WORDS": "grep 1",
        "stats": "stats",
        "why ID": "why 0.1 --turn 0.1",
        "group STEP [PROBLEM]": "group 1",
        "same PROBLEM": f"same {problem}",
        "same PROBLEM ID ID": f"same {problem} 0.0 0.1",
        "replays": "replays",
        "replays NAME": f"replays {replay}",
        "annotations [FILTER]": "annotations",
        "evaluations": "evaluations",
        "pairs": "pairs",
    }
    real = {"NAME": "run", "12.3": "0.1", "step=3": "step=1", "problem=ID": f"problem={problem}"}
    real |= {"id=3.1&id=4.0": "id=0.0&id=0.1", "name=": f"name={replay}", "words=": "words=1"}
    assert [action for action, *_ in DOCUMENTED] == [*words]
    for action, address, fields in DOCUMENTED:
        for old, new in real.items():
            address = address.replace(old, new)
        answer, run = (
            browser.get(address),
            [folder / ("" if action == "ls" else "run"), *words[action].split()],
        )
        if action == "pairs":  # this run has none
            assert "has no judge pairs" in answer.json()["error"]
            continue
        said = inspect(*run, "--json").out
        assert (answer.status_code, answer.text) == (200, said), address
        found = json.loads(said.splitlines()[0])
        named = re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)|;.*", "", fields))
        assert {name for name in named if name not in found} == set(), (address, [*found])
    for made in ("replays", "evaluations"):  # other tests share the run
        shutil.rmtree(folder / "run" / made)
    (folder / "run/annotations.jsonl").unlink()


@pytest.mark.parametrize(
    ("address", "status", "words"),
    [
        ("ls.json?filter=winner:wron", 400, "winner must be one of"),
        ("ls.json?limit=0", 400, "limit='0' must be a whole number of 1 or more"),
        ("ls.json?raw=1", 400, "unknown key raw; known: limit, after, newest, filter"),
        ("show.json", 400, "show: name a debate by step and index"),
        ("show.json?id=9.0", 404, "no debate 9.0"),
        ("show.json?id=0.0&prompts=yes", 400, "prompts='yes' must be 1"),
        ("why.json?id=0.0&turn=x", 400, "--turn 'x'"),
        ("group.json?step=99999999999999999999", 400, "99999999999999999999"),
        ("replays.json?name=../../x", 404, "no replay '../../x'"),
        ("star.json?id=0.0", 404, "there is no star.json; there are ls.json, "),
        ("branch.json?id=0.0&turn=0.0&vote=A>B", 404, "there is no branch.json"),
    ],
)
def test_a_mistake_in_an_address_of_json_is_json(folder, address, status, words):
    client = pytest.importorskip("starlette.testclient")
    app = make_app(Site(folder / "run"), AccessPolicy.of("127.0.0.1"))
    answer = client.TestClient(app, base_url="http://127.0.0.1").get(f"/run/run/{address}")
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json")
    assert words in answer.json()["error"]


def test_every_turn_is_explained_as_stored_and_its_prompt_is_the_one_that_was_read(folder):
    config, _ = config_of(folder / "run")
    _, _, policy = make_policy(config)
    with RunStore.open(folder / "run") as store:
        for id, record in store.records(tokens=True):
            prompts = DebatePrompts(record.debate, store.run)
            assert prompts.note == ""
            assert len(record.debate.turns) == 9
            for turn in record.debate.turns:
                assert why(store, config, id, turn.id).matches is True, (id, turn.id)
                assert policy.encode(prompts.of(turn.id).messages) == turn.completion.prompt_tokens


def test_replays_are_listed_and_read(inspect, debate_command, folder):
    assert inspect("run", "replays").out.startswith("no replays; ")
    assert debate_command("replay", "run", "rewards.format_penalty=-2.0").code == 0
    [name] = [path.name for path in (folder / "run" / "replays").iterdir()]
    assert inspect("run", "replays").out.splitlines()[1].startswith(f"{name} ")
    assert "in 0 of 8, " in inspect("run", "replays", name).out
    assert inspect("run", "replays", name, "1.0").out.startswith("debate 1.0 under both schemes: ")
    assert json.loads(inspect("run", "replays", name, "1.0", "--json").out)["id"] == "1.0"


def test_export_says_what_it_wrote_and_what_more_there_is(debate_command, run, tmp_path):
    path = tmp_path / "all.html"
    code, out, _ = debate_command("inspect", run, "--export", path, "--limit", 4, "--filter", "votes:>0")
    with RunStore.open(run) as store:
        found = store.count("votes:>0")
    more = f"{found - 4} more match, and --limit {found} writes all"
    assert (code, out) == (0, f"{path}: 4 debates; {more}\n")
    assert path.read_text(encoding="utf-8").count('class="exported"') == 4


def test_stars_notes_and_labels_are_written_listed_and_shown(inspect):
    assert inspect("run", "annotations") == (
        0,
        "no stars, notes or labels; debate inspect RUN star ID adds one\n",
        "",
    )
    assert inspect("run", "star", "0.1") == (0, "0.1: star set\n", "")
    inspect("run", "note", "0.1/0.0", "line\x1b[31m")
    inspect("run", "label", "0.1/0.0", "wrong", "--json")
    _, out, _ = inspect("run", "annotations", "star:yes")
    assert [line.split()[:3] for line in out.splitlines()[1:]] == [
        ["0.1", "star", "yes"],
        ["0.1/0.0", "label", "wrong"],
        ["0.1/0.0", "note", "line<U+001B>[31m"],
    ]
    code, out, _ = inspect("run", "annotations", "--json")
    assert (code, [json.loads(line)["kind"] for line in out.splitlines()]) == (0, ["star", "label", "note"])
    shown = inspect("run", "show", "0.1")[1]
    assert "\n★ starred\n" in shown
    assert "\nlabel: wrong · note: line<U+001B>[31m\n" in shown
    assert inspect("run", "star", "0.1", "off")[1] == "0.1: star removed\n"
    inspect("run", "note", "0.1/0.0", "")
    inspect("run", "label", "0.1/0.0", "")
    assert inspect("run", "annotations", "--json")[1] == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            "run look",
            "ACTION is one of ls, show, grep, stats, why, same, group, replays,",
        ),
        ("run show 9.0", "run: no debate 9.0; there are steps 0 to 1"),
        ("run show x", "'x' is not a debate"),
        ("run show 0.0 --limit 3", "--limit: show "),
        ("run stats --raw", "--raw: stats "),
        ("run ls --limt 5", "did you mean '--limit'?"),
        ("nowhere ls", "nowhere: there is no such folder"),
        (". --web", "neither a run nor a folder of runs"),
        ("run star", "star: name a debate"),
        ("run star 0.0 on", "star: name a debate"),
        ("run note 0.0", "note: name a debate, turn or pair and quote the text"),
        ("run label 0.0/0.0 left", "value: the label of a turn must be right or wrong; got 'left'"),
        ("run label 9.0 x", "run: no debate 9.0"),
        ("run star x:0.0", "id: expected a debate 12.3"),
        ("run why", "why: name one debate"),
        ("run why 0.0 --turn x", "--turn 'x'"),
        ("run why 0.0 --turn 9.9", "no turn 9.9; there are 0.0, "),
        ("run same p 0.0", "same: name a problem"),
        ("run same p 0.0 0.1", "same: debate 0.0 is "),
        ("run replays nothing", "no replay 'nothing'"),
        ("run --port 80", "--port: "),
        ("run --web --export x.html", "--web and --export: "),
        ("run ls --web", "no ACTION"),
        ("run --export /nowhere/x.html", "name a file in a folder that exists"),
    ],
)
def test_a_mistake_is_one_line(inspect, arguments, said, tmp_path, monkeypatch):
    if arguments == ". --web":
        monkeypatch.chdir(tmp_path)
    code, out, err = inspect(*arguments.split())
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


@pytest.mark.parametrize("words", [("ls",), ("stats", "--filter"), ("--export", "x.html", "--filter")])
def test_a_wrong_filter_is_shown_with_a_caret(inspect, words):
    code, out, err = inspect("run", *words, "winner:wron")
    first, *shown = err.splitlines()
    assert (code, out, "filter, character 7: winner must be one of" in first) == (2, "", True)
    assert shown == ["  winner:wron", "         ^"]


def test_a_branch_held_by_the_weights_of_its_debate_is_the_same_debate(inspect, folder):
    """Step 1 was held by the weights after one step: the same persona asks for all turns again."""
    with RunStore.open(folder / "run") as store:
        debate = store.debate("1.0").debate
    own = debate.personas[0].name
    code, out, _ = inspect(
        "run", "branch", "1.0", "--turn", "0.0", "--persona", own, "--weights", "1", "--json"
    )
    view = json.loads(out)
    assert (code, view["id"], view["weights"]) == (0, "1.0", "step_000001")
    assert len(view["turns"]) == len(debate.turns)
    assert not any(turn["new"] for turn in view["turns"])
    assert all(old == new for turn in view["turns"] for old, new in turn["advantages"].values())


def test_a_text_from_stdin_that_is_not_utf_8_is_refused(inspect, monkeypatch):
    halves = io.TextIOWrapper(io.BytesIO(b"\xff"), "utf-8", "surrogateescape")  # as in the locale C
    monkeypatch.setattr("sys.stdin", halves)
    code, _, err = inspect("run", "branch", "1.1", "--turn", "2.1", "--text", "-")
    assert (code, err) == (2, "debate: --text -: is not UTF-8\n")


def test_a_branch_holds_later_turns_again_and_is_opened_by_its_id(inspect, folder, tmp_path):
    (tmp_path / "reply.txt").write_text("<solution>\\boxed{1}</solution>")
    command = ("run", "branch", "1.1", "--turn", "2.1", "--text", tmp_path / "reply.txt")
    code, out, err = inspect(*command, "--weights", "best")
    assert (code, err.count("\n")) == (2, 1)
    assert "has no weights 'best'; use newest" in err
    code, out, _ = inspect(*command, "--json")
    view = json.loads(out)
    assert code == 0
    assert next(turn["turn"] for turn in view["turns"] if turn["new"]) == [2, 1]
    assert all(turn["turn"][1] >= 1 for turn in view["turns"] if turn["new"])
    ref = f"branches:{view['id']}"
    shown = json.loads(inspect("run", "show", ref, "--json").out)
    [text] = [turn["text"] for turn in shown["turns"] if turn["id"] == [2, 1]]
    assert text == "<solution>\\boxed{1}</solution>"
    assert inspect("run/branches", "ls").out.splitlines()[-1].split()[0] == view["id"]

    for words, reason in (
        (("--turn", "2.1"), "give one of --text FILE, --vote 'K7>M4' and --persona NAME"),
        ((), "name one debate and a turn"),
        (("--turn", "9.0", "--vote", "K7>M4"), "no turn 9.0; there are"),
        (("--turn", "0.0", "--vote", "K7>M4"), "was not asked to compare K7 and M4"),
        (("--turn", "0.0", "--persona", "Nobody"), "--persona Nobody: must be one of"),
    ):
        code, _, err = inspect("run", "branch", "1.1", *words)
        assert (code, reason in err, err.count("\n")) == (2, True, 1)
    assert inspect("run", "ls", "--vote", "K7>M4").err == "debate: --vote: ls does not use this option\n"
