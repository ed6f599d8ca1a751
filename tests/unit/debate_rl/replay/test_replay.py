"""Debates whose rewards are computed again: as they were stored, and what changes worked out by hand."""

import io
import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from debate import Completion, Debate, DebateConfig, Persona, Problem, Turn, Vote, run_debates
from debate.policies.scripted import ScriptedPolicy
from debate.types import FailureReason, ParsedTurn, ParseFailure, TurnId
from debate_rl.commands import replay as replay_command
from debate_rl.replay.scheme import Scheme, compare_steps, replay_run, replay_step, score_step
from debate_rl.replay.summary import Summary, line_of, refuse_another, tally, write_debates, write_facts
from debate_rl.rollouts.records import step_records
from learner.advantages import AdvantageConfig, StreamSettings, turn_advantages
from learner.types import group_indices, transitions_of
from rewards import RewardConfig, score_debate
from rewards.peer import PEER_RULES
from transcripts import Record, RunStore, write_step
from transcripts.codec import from_line, to_line

SAID = Completion((), (), (), "text", "stop", 0)
NAMES = ("Solver", "\U0001f600", "Checker")
SCHEMES = st.builds(
    RewardConfig,
    peer=st.sampled_from(sorted(PEER_RULES)),
    truth_weight=st.sampled_from([0.0, 0.5, 1.0]),
    judge_truth_weight=st.sampled_from([None, 0.25, 0.0]),
    judge_own=st.booleans(),
    mix=st.sampled_from(["advantages", "rewards"]),
)
SETTINGS = [
    StreamSettings(baseline=b, scale=s, key=k)
    for b in ("group", "rloo", "rae", "none")
    for s in ("group", "batch", "none")
    for k in ("round", "persona", "persona_effect", "debate", "context")
    if k in ("round", "persona") or b in ("group", "rloo")
]
STREAM, JUDGES = st.sampled_from(SETTINGS), st.sampled_from([*SETTINGS, StreamSettings(key="pair")])
CENTRED = st.builds(AdvantageConfig, peer=STREAM, truth=STREAM, judge=JUDGES)


@st.composite
def debates(draw, problem="p"):
    """Return a debate of any votes, shown turns and failures, sensible or not, with its grades."""
    n, r = draw(st.integers(1, 4)), draw(st.integers(1, 2))
    ids = st.builds(TurnId, st.integers(0, n - 1), st.integers(0, r))
    some = st.lists(ids, max_size=4).map(tuple)
    failures = st.lists(st.sampled_from(list(FailureReason)), max_size=2)

    def turn(id):
        parsed = ParsedTurn(failures=tuple(ParseFailure(reason, "x") for reason in draw(failures)))
        return Turn(id, "K7", draw(some), SAID, parsed, draw(some), ballot=id.round == r)

    ids_held = (TurnId(agent, round_) for round_ in range(r + 1) for agent in range(n))
    turns = tuple(turn(id) for id in ids_held if draw(st.integers(0, 9)))
    votes = st.lists(st.builds(Vote, ids, ids, ids, st.sampled_from(["left", "right", "tie"])), max_size=12)
    personas = tuple(Persona(NAMES[seat % 3], "") for seat in range(n))
    protocol = DebateConfig(num_agents=n, num_rounds=r, judge_own=draw(st.booleans()))
    grade = st.sampled_from([True, False, "missing", None])
    table = draw(st.none() | st.lists(st.lists(grade, min_size=r, max_size=r), min_size=n, max_size=n))
    correct = None if table is None else tuple(map(tuple, table))
    return Debate(Problem(problem, "?"), personas, turns, tuple(draw(votes)), 1, 0, protocol), correct


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(debates(), min_size=1, max_size=4), SCHEMES, CENTRED)
def test_what_is_read_is_paid_as_it_was(held, rewards, advantages):
    scheme = Scheme(rewards, advantages, len(held))
    paid = [score_debate(debate, correct, rewards) for debate, correct in held]
    transitions = transitions_of([debate for debate, _ in held], paid, [0] * len(held))
    found = turn_advantages(transitions, rewards, advantages, {}).turns
    records = step_records(0, [d for d, _ in held], [c for _, c in held], paid, found)
    lines = [to_line(record) for record in records]
    read = [from_line(line) for line in lines]
    assert read == records

    again = score_step(read, scheme)
    assert list(again.rewards) == paid  # counters and all
    replayed = replay_step(again, scheme, {})
    assert [one.advantages for one in replayed] == [record.advantages for record in records]
    named = [(f"0.{index}", record) for index, record in enumerate(read)]
    assert not any(change.differs for change in compare_steps(named, scheme, scheme))


# Five agents, one round, a final ballot, an open problem. A lost to B before three judges, and beat C and D
# once each.
A, B, C, D, E = (TurnId(agent, 0) for agent in range(5))
VOTES = [(2, A, B), (3, A, B), (4, A, B)]
OWN = Scheme(RewardConfig(truth_weight=0.0), AdvantageConfig(), 1)
COPELAND = Scheme(RewardConfig(truth_weight=0.0, peer="copeland"), AdvantageConfig(), 1)


def ballot():
    first = [Turn(turn, "K7", (), SAID, ParsedTurn()) for turn in (A, B, C, D, E)]
    others = [tuple(other for other in (A, B, C, D, E) if other.agent != a) for a in range(5)]
    last = [Turn(TurnId(a, 1), "K7", (), SAID, ParsedTurn(), others[a], ballot=True) for a in range(5)]
    votes = [Vote(TurnId(judge, 1), left, right, "right") for judge, left, right in VOTES]
    votes += [Vote(TurnId(3, 1), A, C, "left"), Vote(TurnId(2, 1), A, D, "left")]
    personas = tuple(Persona(name, "") for name in "ABCDE")
    protocol = DebateConfig(num_agents=5, num_rounds=1)
    return Debate(Problem("open", "?", kind="open"), personas, (*first, *last), tuple(votes), 1, 0, protocol)


def records(step, debates, scheme, ema):
    paid = [score_debate(debate, None, scheme.rewards) for debate in debates]
    size = scheme.group_size
    groups = group_indices([debate.problem.id for debate in debates], size)
    transitions = transitions_of(debates, paid, groups)
    found = turn_advantages(transitions, scheme.rewards, scheme.advantages, ema).turns
    return step_records(step, debates, [None] * len(debates), paid, found)


@pytest.fixture
def run(tmp_path):
    """A run of three steps of two debates each, under OWN."""
    for step in range(3):
        write_step(tmp_path / "transcripts", step, records(step, [ballot(), ballot()], OWN, {}))
    return tmp_path


def replayed(run, own=OWN, other=OWN, **asked):
    with RunStore.open(run) as store:
        return list(replay_run(store, own, other, **asked))


def test_a_peer_reward_flips_its_sign_under_copeland(run):
    [change] = replayed(run, other=COPELAND, filter="id:1.1")
    assert (change.id, change.differs) == ("1.1", False)
    # margin of A: (2 - 3) / 5; Copeland: beats C and D, loses to B, (2 - 1) / 3
    assert change.old.rewards["peer"][:5] == [-0.2, 1.0, -1.0, -1.0, None]
    assert change.new.rewards["peer"][:5] == [pytest.approx(1 / 3), 1.0, -1.0, -1.0, None]
    assert change.old.advantages["generator"][:5] == [-0.2, 1.0, -1.0, -1.0, None]
    assert change.change == pytest.approx(1 / 3 + 0.2)
    # A and B were shown four solutions each and compared none, of the ten of two debates four: mean -0.2
    assert change.old.advantages["format"] == [None] * 5 + [-0.3, -0.3, 0.2, 0.2, 0.2]
    line = line_of(change)
    assert (set(line["new"]["advantages"]), set(line["new"]["rewards"])) == ({"generator", "peer"}, {"peer"})
    assert line["rounds"] == 1

    summary = Summary()
    for one in replayed(run, other=COPELAND):
        summary.add(one)
    assert (summary.debates, summary.changed, summary.checked, summary.differ) == (6, 6, 6, 0)
    generator = summary.by("stream")["generator",]
    assert generator["turns"] == 24  # four of each debate
    assert generator["sign_changed"] == 0.25
    assert generator["moved"] == pytest.approx((1 / 3 + 0.2) / 4)
    assert summary.by("stream", "persona")["generator", "A"]["sign_changed"] == 1.0
    assert summary.by("stream", "round")["format", 1]["old"] == pytest.approx(0)
    assert summary.facts()["rounds"] == 1
    out = io.StringIO()
    Console(file=out, width=80).print(replay_command._table("", ("stream", "round"), summary))
    lines = [line for line in out.getvalue().splitlines() if line.split()[:1] == ["format"]]
    assert [line.split()[1] for line in lines] == ["final"]
    assert "final ballot " in lines[0]
    assert "generator " in out.getvalue()
    assert [id for id, _ in summary.most_changed] == ["0.0", "0.1", "1.0", "1.1", "2.0", "2.1"]


def test_rewards_of_ones_own_that_are_not_finite_are_counted(run, tmp_path, monkeypatch):
    (tmp_path / "nan_rule.py").write_text(
        "def rule(votes, *, alpha):\n"
        "    return {vote.left: float('nan') for vote in votes} | {votes[0].right: float('inf')}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    summary = Summary()
    for change in replayed(run, other=Scheme(RewardConfig(peer="nan_rule:rule"), AdvantageConfig(), 1)):
        assert change.new.rewards["peer"] == [None] * 10
        summary.add(change)
    assert summary.not_finite == summary.facts()["not_finite"] == 6 * 2  # A and B of each debate
    [line, _] = summary.check_lines("run", damage=0)
    assert line == "run: 12 rewards are infinite or not a number; they count as none"


def test_what_was_stored_otherwise_is_told(run):
    [first, second] = records(3, [ballot(), ballot()], OWN, {})
    wrong = replace(first.advantages[0], generator=0.2)
    write_step(run / "transcripts", 3, [replace(first, advantages=(wrong, *first.advantages[1:])), second])
    assert [change.id for change in replayed(run) if change.differs] == ["3.0"]


def test_steps_and_filters_choose_what_is_shown_not_what_is_computed(tmp_path):
    rae = AdvantageConfig(peer=StreamSettings(baseline="rae", scale="none"))
    own, ema = Scheme(OWN.rewards, rae, 1), {}
    for step in range(3):
        write_step(tmp_path / "transcripts", step, records(step, [ballot(), ballot()], own, ema))
    shown = replayed(tmp_path, own, own, first=1, last=1, filter="id:1.1 OR id:2.0")
    assert [(one.id, one.differs) for one in shown] == [("1.1", False)]
    # the mean of A in step 0 is the -0.2 that it has here, too
    assert shown[0].old.advantages["generator"][0] == pytest.approx(0)


def test_debates_of_a_problem_are_cut_into_its_groups():
    [record] = records(0, [ballot()], OWN, {})
    debates = [replace(record.debate, problem=Problem(name, "?")) for name in "aaaab"]
    stored = [replace(record, group=debate.problem.id, debate=debate) for debate in debates]
    paid = score_step(stored, replace(OWN, group_size=2))
    of_debates = {transition.debate: transition.group for transition in paid.transitions}
    assert of_debates == {0: 0, 1: 0, 2: 1, 3: 1, 4: 2}


def test_a_scheme_with_running_means_remembers_earlier_steps():
    heavy = Scheme(RewardConfig(truth_weight=0.9, mix="rewards"), AdvantageConfig(), 1)
    assert not OWN.remembers
    means = AdvantageConfig(mixed=StreamSettings(baseline="rae"))
    assert Scheme(heavy.rewards, means, 1).remembers
    assert not Scheme(OWN.rewards, means, 1).remembers  # nothing is mixed there
    assert Scheme(OWN.rewards, AdvantageConfig(persuasion=StreamSettings(baseline="rae")), 1).remembers


def test_signs_are_those_beyond_rounding():
    counts = Counter()
    for old, new in [*pairwise([1.0, -1.0, None, 1e-17, 0.5]), (None, None)]:
        counts.update(tally(old, new))
    assert [counts[name] for name in ("turns", "sign_changed", "gained", "lost")] == [4, 1, 1, 1]


def test_a_debate_that_cannot_be_read_is_left_out(run):
    [shard] = (run / "transcripts").glob("step_000001.jsonl")
    shard.write_bytes(shard.read_bytes().replace(b'"group":"open",', b"", 1))
    assert [change.id for change in replayed(run)] == ["0.0", "0.1", "1.1", "2.0", "2.1"]
    with RunStore.open(run) as store:
        assert store.damage == ["step 1, line 1: group: missing"]


def test_a_folder_of_another_question_is_refused(tmp_path, run):
    folder = tmp_path / "out"
    refuse_another(folder, {"filter": ""})
    write_debates(folder, replayed(run, other=COPELAND))
    write_facts(folder, {"asked": {"filter": ""}})
    lines = [json.loads(line) for line in (folder / "debates.jsonl").read_text().splitlines()]
    assert [line["id"] for line in lines] == ["0.0", "0.1", "1.0", "1.1", "2.0", "2.1"]
    assert lines[0]["turns"][5] == [0, 1]
    refuse_another(folder, {"filter": ""})
    with pytest.raises(ValueError, match="contains another replay; choose another --out"):
        refuse_another(folder, {"filter": "winner:wrong"})
    with pytest.raises(ValueError, match="is not empty and contains no replay"):
        refuse_another(run, {"filter": ""})


def test_pseudo_labels_of_a_family_count_its_equal_answers_together():
    """Two of three say 3 and 9, in either order: the pair is the majority, and both are right by it."""
    said = iter(("3 9", "4 8", "9 3"))
    policy = ScriptedPolicy(lambda request: f"<solution>\\boxed{{{next(said)}}}</solution>")
    protocol = DebateConfig(num_agents=3, num_rounds=1, final_ballot=False)
    pair = Problem("p", "Target 12. Numbers 3 9 4 8.", "3 9", source="pair_sum", kind="expression")
    debates = run_debates([pair], policy, protocol, seed=0)
    scheme = Scheme(RewardConfig(labels=0, pseudo="majority", truth_weight=1), AdvantageConfig(), 1)
    scored = score_step([Record(debates[0], 0, "p", ((True,), (False,), (True,)))], scheme)
    assert scored.credits[0].labels == ("3 9",)
    assert scored.rewards[0].truth == ((1.0,), (0.0,), (1.0,))
