"""Replays as they lie in a run folder: what is read of them, by hand, and what is refused."""

import json
import re

import pytest

from debate.types import TurnId
from debate_rl.inspector.views.replays import (
    ReplayError,
    debate_replay_blocks,
    read_replay,
    replay_blocks,
    replays,
)
from debate_rl.inspector.web.rendering import Face, render_blocks

from .conftest import printed

NOTHING = [None, None]
LINE = {
    **{"id": "0.3", "step": 0, "problem": "p", "change": 1.5, "differs": False},
    **{"personas": ["Ann", "Bob"], "turns": [[0, 0], [1, 0]]},
    "old": {
        "rewards": {"peer": [0.5, -0.5], "truth": [1.0, 0.0], "judge": NOTHING, "format": [0.0, 0.0]},
        "advantages": {
            **{"generator": [0.25, -0.25], "judge": NOTHING, "format": NOTHING},
            **{"peer": [0.25, -0.25], "truth": [0, None]},
        },
    },
    "new": {"rewards": {"peer": [-1.0, 1.0]}, "advantages": {"generator": [-0.5, 0.5], "peer": [-0.5, None]}},
}
CELL = {"turns": 4, "sign_changed": 0.5, "gained": 0, "lost": 0, "old": 0, "new": 0, "moved": 1}
SCHEME = {"rewards": {"peer": "margin"}, "advantages": {}, "group_size": 4}
FACTS = {
    "schema": 1,
    "overrides": ["rewards.peer=copeland"],
    "asked": {"own": SCHEME, "scheme": SCHEME, "filter": "winner:wrong", "steps": [0, None]},
    **{"damaged_lines": 0, "debates": 2, "changed": 1, "checked": 2, "differ": 0, "first_differing": []},
    "most_changed": [{"id": "0.3", "change": 1.5}],
    "streams": [{"stream": "peer", **CELL}],
    "cells": [],
}


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "replays" / "one"
    folder.mkdir(parents=True)
    (folder / "replay.json").write_text(json.dumps(FACTS))
    lines = [{**LINE, "id": "0.0"}, LINE, {**LINE, "id": "1.0"}]
    (folder / "debates.jsonl").write_text("".join(json.dumps(x, separators=(",", ":")) + "\n" for x in lines))
    return tmp_path


def test_a_replay_and_one_debate_of_it(run):
    [listed] = replays(run)
    found = (listed.name, listed.overrides, listed.debates, listed.changed, listed.problem)
    assert found == ("one", ("rewards.peer=copeland",), 2, 1, "")
    found = read_replay(run, "one")
    asked = found.facts.asked
    assert (asked.filter, asked.steps, asked.own["group_size"]) == ("winner:wrong", (0, None), 4)
    [stream] = found.facts.streams
    assert (stream.stream, stream.sign_changed, stream.persona, stream.round) == ("peer", 0.5, None, None)
    assert [(one.id, one.change) for one in found.facts.most_changed] == [("0.3", 1.5)]
    debate = found.debate("0.3")
    assert (debate.id, debate.problem, debate.change) == ("0.3", "p", 1.5)
    first, second = debate.turns
    assert (first.turn, first.persona) == (TurnId(0, 0), "Ann")
    assert [first.rewards[name] for name in ("peer", "truth")] == [(0.5, -1.0), (1.0, 1.0)]  # truth as before
    assert [second.advantages[name] for name in ("peer", "truth")] == [(-0.25, None), (None, None)]
    assert (found.debate("1.0").id, found.debate("0.1")) == ("1.0", None)
    assert read_replay(run / "nowhere", str(run / "replays" / "one")).name == "one"  # by a path of its own


def test_a_file_that_was_written_again_is_read_again(run):
    found = read_replay(run, "one")
    assert found.debate("2.0") is None
    path = run / "replays" / "one" / "debates.jsonl"
    path.write_text(path.read_text() + json.dumps({**LINE, "id": "2.0"}, separators=(",", ":")) + "\n")
    assert found.debate("2.0").id == "2.0"


@pytest.mark.parametrize("name", ["replay.json", "debates.jsonl"])
def test_what_is_no_plain_file_is_not_waited_for(run, name):
    path = run / "replays" / "one" / name
    path.unlink()
    path.symlink_to("/dev/null")
    with pytest.raises(ReplayError, match=f"{name}: not a plain file"):
        read_replay(run, "one").debate("0.3")


def test_a_run_without_replays(tmp_path):
    assert replays(tmp_path) == []
    with pytest.raises(ReplayError, match="no replay 'x'; there are none"):
        read_replay(tmp_path, "x")


def test_figures_that_are_none_are_named_by_field(run):
    path = run / "replays" / "one" / "replay.json"
    for field, change in {
        "schema: 2 is newer": {"schema": 2},
        "schema: expected 1": {"schema": None},
        "debates: expected int": {"debates": "2"},
        "asked: expected object": {"asked": []},
        "asked.steps: ": {"asked": {**FACTS["asked"], "steps": [0]}},
        "streams[0].": {"streams": [{"stream": "peer"}]},
        "most_changed[0].id: ": {"most_changed": [{"id": 3, "change": 0.5}]},
    }.items():
        path.write_text(json.dumps({**FACTS, **change}))
        [listed] = replays(run)
        assert listed.problem.startswith(f"{path}: ")
        assert field in listed.problem
        with pytest.raises(ReplayError, match=f"^{re.escape(listed.problem)}$"):
            read_replay(run, "one")


def test_a_replay_that_was_cut_off(run):
    path = run / "replays" / "one" / "replay.json"
    path.write_text('{"schema": 1')
    assert "is not a replay: not a complete line of JSON" in replays(run)[0].problem
    path.unlink()
    assert replays(run)[0].problem.endswith("the replay was interrupted, run it again")


def test_a_damaged_debate_is_named(run):
    path = run / "replays" / "one" / "debates.jsonl"
    for field, change in {
        "old.rewards.peer: 2 numbers": {"turns": [[0, 0]]},
        "new.advantages.peer: 1 numbers": {"new": {"rewards": {}, "advantages": {"peer": [1.0]}}},
        "personas: ": {"personas": ["Ann"]},
        "old: expected object": {"old": None},
        "change: expected float": {"change": "much"},
    }.items():
        path.write_text(json.dumps({**LINE, **change}, separators=(",", ":")) + "\n")
        with pytest.raises(ReplayError) as error:
            read_replay(run, "one").debate("0.3")
        assert f"{path}: debate 0.3: " in str(error.value)
        assert field in str(error.value)


CELLS = [{"stream": "judge", "persona": "Ann the Careful One", "round": r, **CELL} for r in (0, 1)]


def lines(blocks):
    return printed(lambda printer: printer.blocks(blocks))


def test_the_final_ballot_is_called_so_everywhere(run):
    folder = run / "replays" / "one"
    (folder / "replay.json").write_text(json.dumps(FACTS | {"cells": CELLS}))
    shown = lines(replay_blocks(read_replay(run, "one")))
    assert "final ballot" not in shown  # an earlier replay has numbers of rounds
    (folder / "replay.json").write_text(json.dumps(FACTS | {"rounds": 1, "cells": CELLS}))
    ballot = LINE | {"turns": [[0, 0], [0, 1]], "rounds": 1}
    (folder / "debates.jsonl").write_text(json.dumps(ballot, separators=(",", ":")) + "\n")
    replay = read_replay(run, "one")
    debate = replay.debate("0.3")
    shown = lines(replay_blocks(replay))
    assert (shown.count("\njudge   Ann"), shown.count("  final ballot  ")) == (2, 1)
    assert "0.1   final ballot  Ann" in lines(debate_replay_blocks(debate))
    page = render_blocks([*replay_blocks(replay), *debate_replay_blocks(debate)], Face(lambda link: ""))
    assert page.count(">final ballot</td>") == 2
