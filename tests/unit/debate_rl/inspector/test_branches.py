"""Branches: rewards and advantages worked out by hand, kept grades, and the files of a run."""

from dataclasses import replace

import pytest

from debate.branch import NewPersona, NewText, NewVote, with_change
from debate.prompting.seating import seat_debate
from debate.types import TurnId
from debate_rl.inspector.blocks import Layout, lines_of
from debate_rl.inspector.views.across import read
from debate_rl.inspector.views.branches import (
    branch_blocks,
    branch_view,
    branches_of,
    stored_branch,
    vote_effect,
)
from debate_rl.replay.branches import (
    branch_record,
    change_text,
    effect_of,
    kept_before,
    origin_of,
    origins_of,
    store_branch,
)
from debate_rl.replay.scheme import Scheme
from envs.types import Grade, GradeStatus
from learner import AdvantageConfig
from rewards import RewardConfig
from transcripts import RunStore, TranscriptError, write_step

from .conftest import PROBLEM, make, solved

SCHEME = Scheme(
    RewardConfig(peer="margin", truth_weight=0.0),
    AdvantageConfig.model_validate({"peer": {"baseline": "group", "scale": "none"}}),
    group_size=2,
)
JUDGE = TurnId(0, 1)


@pytest.fixture
def record():
    """Each judge casts one vote, and the votes go in a circle: every margin is 0."""
    answers = [solved(4), solved(5), solved(6)]
    return make([answers, [solved(4, "Q2 > M4"), solved(4, "M4 > K7"), solved(4, "K7 > Q2")]])


@pytest.fixture
def store(tmp_path, record):
    other = replace(record, debate=replace(record.debate, seed=8))
    write_step(tmp_path / "run/transcripts", 5, [record, other], seal=True)
    with RunStore.open(tmp_path / "run") as opened:
        yield opened


def test_a_reversed_vote_moves_two_rewards_and_the_baseline_of_nobody(store):
    view = vote_effect(store, SCHEME, "5.0", JUDGE, "M4 > Q2")
    moved = {one.turn: one.rewards["peer"] for one in view.turns if len(set(one.rewards["peer"])) > 1}
    assert moved == {TurnId(1, 0): (0.0, -1.0), TurnId(2, 0): (0.0, 1.0)}  # lost both; won both
    gained = {one.turn.agent: one.advantages["generator"] for one in view.turns if one.turn.round == 0}
    assert gained == {0: (None, 0.0), 1: (None, -1.0), 2: (None, 1.0)}  # the group's mean stays 0
    assert {one.id for one in view.others} == {"5.1"}
    assert not any(one.new for one in view.turns)
    [vote] = view.comparison.votes
    assert (vote.judge, vote.kind) == (JUDGE, "reversed")
    lines = ["".join(span.text for span in row) for row in lines_of(branch_blocks(view), Layout())]
    assert lines[0] == "debate 5.0, turn 0.1: vote M4 > Q2"
    assert any("+0.00 → -1.00" in line and line.startswith("1.0 Q2 Advocate, round 0") for line in lines)


class Generous:
    """An environment for which every answer is right."""

    name = "generous"

    def grade(self, problem, answer):
        return Grade(GradeStatus.CORRECT, "own", answer)


def test_only_new_turns_are_graded(record):
    at = TurnId(1, 0)
    branch = branch_record(record, with_change(seated(record), at, NewText(solved(7))), Generous())
    old = record.correct
    assert old[1][0] is False
    assert branch.correct == (old[0], (True, *old[1][1:]), old[2])
    assert branch.debate.turn(at).parsed.answer == "7"
    assert (branch.rewards, branch.advantages) == (None, ())


def seated(record):
    """The debate with the handles that its seed draws."""
    config = record.debate.protocol.model_copy(update={"handles": ("K7", "Q2", "M4")})
    debate = replace(record.debate, protocol=config)
    for seed in range(99):
        if seat_debate(PROBLEM, config, seed).handles == ("K7", "Q2", "M4"):
            return replace(debate, seed=seed)
    raise AssertionError


def test_branches_are_stored_beside_the_run_and_read_by_their_ids(store, record):
    change = NewVote("M4", "Q2", "left")
    after = replace(record, debate=with_change(record.debate, JUDGE, change))
    effect = effect_of(store, SCHEME, "5.0", after)
    ids = [store_branch(store.run, effect.after, origin_of(record, "5.0", JUDGE, change)).id for _ in "ab"]
    assert ids == ["5.0", "5.1"]
    assert [one.change for one in origins_of(store.run)] == ["turn 0.1: vote M4 > Q2"] * 2
    [listed] = branches_of(store.run)  # as on the page of evaluations
    assert [row[3].text for row in listed.blocks[0].rows] == ["branches:5.0", "branches:5.1"]
    stored = read(store, "branches:5.1")
    assert (stored.debate, stored.rewards) == (after.debate, effect.after.rewards)
    again = stored_branch(store, SCHEME, "5.1")
    assert again == branch_view(origins_of(store.run)[1], effect)
    assert kept_before(store.run, "branches:5.1") is None
    with pytest.raises(TranscriptError, match=r"no branch '5\.7'"):
        stored_branch(store, SCHEME, "5.7")

    with (store.run / "branches/branches.jsonl").open("a") as file:
        file.write('{"id": 3}\n')
    with pytest.raises(TranscriptError, match=r"branches.jsonl:3: is not a branch: .*id"):
        origins_of(store.run)


def test_a_branch_of_a_debate_that_a_resumed_run_replaced_is_refused(store, record):
    change = NewVote("M4", "Q2", "left")
    origin = replace(origin_of(record, "5.1", JUDGE, change), seed=1)
    after = replace(record, debate=with_change(record.debate, JUDGE, change))
    store_branch(store.run, after, origin)
    with pytest.raises(TranscriptError, match=r"branch 5\.0: debate 5\.1 was replaced"):
        stored_branch(store, SCHEME, "5.0")


def test_a_branch_with_another_persona_says_so(record):
    change = NewPersona(record.debate.personas[2])
    assert change_text(TurnId(1, 0), change) == "turn 1.0: persona Solver from here on"
    assert origin_of(record, "5.0", TurnId(1, 0), change).persona


@pytest.mark.parametrize("name", ["", "/.lock"])
def test_a_link_in_a_run_of_somebody_else_changes_no_other_file(store, record, tmp_path, name):
    mine = tmp_path / "mine"
    (mine if name else mine / "folder").mkdir(parents=True)
    (mine / "keys").write_text("mine")
    if name:
        (store.run / "branches").mkdir()
    (store.run / f"branches{name}").symlink_to(mine / ("keys" if name else "folder"))
    origin = origin_of(record, "5.0", JUDGE, NewVote("M4", "Q2", "left"))
    with pytest.raises(OSError, match="branches"):
        store_branch(store.run, record, origin)
    assert (mine / "keys").read_text() == "mine"
    assert name or not list((mine / "folder").iterdir())


def test_only_the_newest_branches_are_listed(store, record):
    store_branch(store.run, record, origin_of(record, "5.0", JUDGE, NewVote("M4", "Q2", "left")))
    file = store.run / "branches/branches.jsonl"
    file.write_bytes(file.read_bytes() * 1201)
    [section] = branches_of(store.run)
    older, table = section.blocks
    assert older.words == "1,001 older branches are not shown"
    assert len(table.rows) == 200
