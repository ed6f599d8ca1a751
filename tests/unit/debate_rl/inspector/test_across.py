"""One problem across steps and evaluated checkpoints, and two debates compared, worked out by hand."""

import json
import re
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate import Completion, Debate, DebateConfig, Persona, Problem, Turn, Vote
from debate.types import ParsedTurn, TurnId
from debate_rl.commands.inspect_actions import print_lines
from debate_rl.evaluation.folder import IDENTITY, default_folder
from debate_rl.inspector.actions import LineOptions
from debate_rl.inspector.views.across import MOST_WORDS, across, compare, differing, evaluations, read
from debate_rl.inspector.web.app import AccessPolicy, make_app
from debate_rl.inspector.web.site import Site
from debate_rl.runs.provenance import checksum
from transcripts import Record, RunStore, TranscriptError, write_step

A, B, C = (TurnId(agent, 0) for agent in range(3))
REF = "step_000002-bb:0.1"


def record(step, answers=("4", "5"), *, problem="p", text="so it is", votes=(), names=("Ann", "Bob", "Cyd")):
    """A debate of three agents, one round and a ballot; the third never answers."""
    said = [*answers, None]

    def turn(agent, round_):
        words = f"{text} {said[agent]}" if round_ == 0 else "I vote"
        shown = tuple(TurnId(seat, 0) for seat in range(3) if seat != agent) if round_ else ()
        read = Completion((), (), (), words, "stop", 0), ParsedTurn(answer=None if round_ else said[agent])
        turn = Turn(TurnId(agent, round_), f"K{agent}", shown, *read, shown)
        return replace(turn, ballot=round_ == 1)

    turns = tuple(turn(agent, round_) for round_ in range(2) for agent in range(3))
    cast = tuple(Vote(TurnId(judge, 1), *vote) for judge, *vote in votes)
    personas = tuple(Persona(name, "") for name in names)
    protocol = DebateConfig(num_agents=3, num_rounds=1)
    debate = Debate(Problem(problem, "What?", "4"), personas, turns, cast, 1, 0, protocol)
    grades = tuple(("missing" if one is None else one == "4",) for one in said)
    return Record(debate, step, problem, grades)


@pytest.fixture
def run(tmp_path):
    """Two steps of training, and evaluations of the warm start and of the checkpoint of step 2."""
    write_step(tmp_path / "transcripts", 0, [record(0), record(0, problem='p"*')])
    write_step(tmp_path / "transcripts", 3, [record(3, ("4", "4"))])
    start = tmp_path / "warm_start" / "step_000500"
    start.mkdir(parents=True)
    (start / "manifest.json").write_text("{}")
    evaluate(tmp_path, "step_000500-aa", [record(0, ("5", "5"))], checksum(start / "manifest.json"))
    evaluate(tmp_path, "step_000002-bb", [record(0, problem="q"), record(0, ("4", "5"))], "x")
    return tmp_path


def evaluate(run, name, records, weights):
    folder = run / "evaluations" / name
    write_step(folder / "debates", 0, records)
    (folder / "evaluation.json").write_text(json.dumps({"of": {"weights": weights}}))


def test_debates_of_training_and_of_evaluations_stand_by_the_steps_learnt_from(run):
    with RunStore.open(run) as store:
        before = {path: path.stat().st_mtime_ns for path in (run / "evaluations").rglob("*")}
        found = across(store, "p")
        assert before == {path: path.stat().st_mtime_ns for path in (run / "evaluations").rglob("*")}
        refs = ["0.0", "step_000500-aa:0.0", "step_000002-bb:0.1", "3.0"]
        assert [(one.ref, one.step) for one in found.held] == [*zip(refs, (0, 0, 2, 3), strict=True)]
        assert [one.evaluation for one in found.held] == ["", "step_000500-aa", "step_000002-bb", ""]
        assert (found.problem, found.question, found.gold) == ("p", "What?", "4")
        assert (found.total, found.notes) == (4, ())
        held = found.held[2]
        assert (held.answers, held.winner) == ((("4",), ("5",), (None,)), None)
        assert held.grades == ((True,), (False,), ("missing",))
        for one in found.held:
            assert read(store, one.ref).debate.problem.id == "p"
        assert [one.ref for one in across(store, 'p"*').held] == ["0.1"]
        few = across(store, "p", limit=1)
        assert ([one.ref for one in few.held], few.total) == (["0.0", "step_000500-aa:0.0"], 4)


def add_named_by_a_beginning(run):
    """Evaluations of the warm start, of the recipe's model, and one whose name tells no step."""
    weights = checksum(run / "warm_start" / "step_000500" / "manifest.json")
    for name, known in (("start-cc", weights), ("model-dd", None), ("what-ee", "y")):
        evaluate(run, name, [record(0)], known)


def test_an_evaluation_of_what_a_run_began_with_counts_as_step_0(run):
    add_named_by_a_beginning(run)
    assert default_folder(run, run / "warm_start" / "step_000500", {}).name.startswith("start-")
    assert default_folder(run, None, {}).name.startswith("model-")
    found = evaluations(run, notes := [])
    names = ["model-dd", "start-cc", "step_000500-aa", "what-ee", "step_000002-bb"]
    assert [(one.name, one.step) for one in found] == [*((name, 0) for name in names[:-1]), (names[-1], 2)]
    assert ["what-ee" in note for note in notes] == [True]


@pytest.mark.parametrize(
    ("ref", "named"),
    [
        ("nobody:0.0", "step_000500-aa, step_000002-bb"),
        ("../step_000002-bb:0.0", "../step"),
        ("step_000002-bb:0.9", "'0.9'"),
        ("7.0", "7.0"),
        (None, "'r'"),
    ],
)
def test_what_there_is_not_is_named(run, ref, named):
    with RunStore.open(run) as store, pytest.raises(TranscriptError, match=re.escape(named)):
        read(store, ref) if ref else across(store, "r")


def test_an_evaluation_by_strategies_has_no_debates_and_is_no_damage(run):
    folder = run / "evaluations" / "step_000003-dd"
    folder.mkdir()
    (folder / "evaluation.json").write_text(json.dumps({"of": {"weights": "x"}}))
    with RunStore.open(run) as store:
        found = across(store, "p")
    assert (len(found.held), found.notes) == (4, ())


def test_damage_is_noted_and_the_rest_is_shown(run):
    folder = run / "evaluations" / "step_000002-bb"
    shard = folder / "debates" / "step_000000.jsonl"
    lines = shard.read_bytes().splitlines(keepends=True)
    shard.write_bytes(b'{"schema":5,"id":"p"}\n' + lines[1] + lines[1][:100])
    (folder / "evaluation.json").write_text("[]")
    with RunStore.open(run) as store:
        found = across(store, "p")
    assert [one.ref for one in found.held] == ["0.0", "step_000500-aa:0.0", "step_000002-bb:0.1", "3.0"]
    first, second = found.notes
    assert first.endswith("evaluation.json: is damaged; its step is read from the folder's name")
    assert "step_000002-bb: debate 0.0: " in second


def test_two_debates_turn_by_turn_and_vote_by_vote():
    before = record(0, ("4", "5"), votes=[(2, A, B, "left"), (0, B, C, "tie"), (2, A, A, "left")])
    votes = [(2, B, A, "left"), (0, B, C, "left"), (1, A, C, "right")]
    after = record(3, ("4", "4"), text="so it was", votes=votes, names=("Ann", "Bob", "Dan"))
    found = compare(before, after, ("0.0", "3.0"))
    assert (found.before, found.after, found.same_votes) == ("0.0", "3.0", 0)
    assert found.notes == ("agents have different personas (2: Cyd, then Dan)",)
    kept, new, turned = ((v.judge.agent, v.before, v.after, v.kind) for v in found.votes)
    assert (kept, new) == ((0, "tie", "first", "changed"), (1, None, "second", "new"))
    assert turned == (2, "first", "second", "reversed")
    assert [t.turn for t in found.turns][:3] == [A, B, C]
    assert [t.answers for t in found.turns][:3] == [("4", "4"), ("5", "4"), (None, None)]
    assert [t.grades for t in found.turns][:3] == [(True, True), (False, True), ("missing", "missing")]
    assert [piece.mark + piece.text for piece in found.turns[1].pieces] == [" so it ", "-is 5", "+was 4"]
    assert (found.turns[1].alike, found.turns[3].alike) == (0.5, 1.0)  # two of four words on both sides
    assert found.turns[2].personas == ("Cyd", "Dan")
    assert [vote.kind for vote in compare(after, before).votes] == ["changed", "gone", "reversed"]


def test_debates_that_should_not_be_compared_say_so():
    protocol = DebateConfig(num_agents=3, num_rounds=1, max_tokens=7)
    other = replace(record(0), debate=replace(record(0, problem="q").debate, protocol=protocol))
    problems, protocols = compare(record(0), other).notes
    assert ("different problems" in problems, "different protocols" in protocols) == (True, True)


def test_texts_that_are_too_long_are_different_in_the_middle():
    words = " ".join(f"a{n}" for n in range(MOST_WORDS + 1))
    pieces, cut = differing(f"begin {words} end", f"begin {words.upper()} end")
    middle = MOST_WORDS + 1
    found = [(piece.mark, len(piece.text.split())) for piece in pieces]
    assert (cut, found) == (True, [(" ", 1), ("-", middle), ("+", middle), (" ", 1)])
    assert not differing(f"begin {words} end", f"begin {words} too end")[1]


TEXTS = st.text(alphabet="ab \n\t<", max_size=60)


@given(TEXTS, TEXTS)
def test_the_pieces_are_the_texts(before, after):
    pieces, _ = differing(before, after)
    assert "".join(piece.text for piece in pieces if piece.mark != "+") == before
    assert "".join(piece.text for piece in pieces if piece.mark != "-") == after
    assert all(piece.text for piece in pieces)
    assert all(a.mark != b.mark for a, b in pairwise(pieces))


def test_what_is_no_plain_file_among_the_weights_is_not_read(tmp_path):
    (folder := tmp_path / "evaluations" / "step_000007-x").mkdir(parents=True)
    (folder / IDENTITY).write_text(json.dumps({"of": {"weights": sha256(b"").hexdigest()}}))
    (warm := tmp_path / "warm_start" / "step_000001").mkdir(parents=True)
    (warm / "manifest.json").symlink_to("/dev/null")
    assert [one.step for one in evaluations(tmp_path, [])] == [7]


def test_a_debate_of_an_evaluation_opens_by_its_id_in_lines(run, capsys):
    add_named_by_a_beginning(run)
    for id in (REF, "start-cc:0.0"):
        print_lines("show", [id], LineOptions(str(run)))
        assert capsys.readouterr().out.startswith(f"debate {id}: p")
    print_lines("show", [REF], LineOptions(str(run), json=True))
    assert json.loads(capsys.readouterr().out)["id"] == REF


def test_a_debate_of_an_evaluation_opens_by_its_id_in_the_browser(run):
    testclient, site, base = pytest.importorskip("starlette.testclient"), Site(run), f"/run/{run.name}"
    app = make_app(site, AccessPolicy.of("127.0.0.1"))
    client = testclient.TestClient(app, base_url="http://127.0.0.1:8123")
    address = f"{base}/debate/step_000002-bb%3A0.1"
    assert f'href="{address}"' in client.get(f"{base}/across?problem=p").text
    for view in ("", "/graph", "/adoption", "/parse", "/tokens", "/prompt"):
        assert client.get(address + view).status_code == 200, view
    for path in (f"{address}/why", f"{base}/debate/step_000002-bb%3A0.7"):
        assert client.get(path).status_code == 404
    assert client.get(f"{base}/debate/none%3A0.7").status_code in (404, 422)
    site.close()
