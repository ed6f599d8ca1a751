"""What a filter finds by SQL is what it finds by looking at every record; parsing fails in one way only."""

import tempfile
from fractions import Fraction
from itertools import pairwise, permutations
from pathlib import Path
from random import Random

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from debate.config import DebateConfig
from debate.personas import PERSONAS
from debate.policy import token_counts
from debate.types import (
    Completion,
    Debate,
    FailureReason,
    ParsedTurn,
    ParseFailure,
    Problem,
    Turn,
    TurnId,
    Vote,
)
from rewards import RewardConfig, Rewards, ballot_box, score_debate, valid_votes, voted_winner
from transcripts import FilterError, Record, RunStore, TurnAdvantages, compile_filter, write_step
from transcripts.causes import causes
from transcripts.filters.fields import FIELDS
from transcripts.filters.parse import All, Any, Not, parse
from transcripts.record import Timing

ANSWERS = ("4", "5", "2*3", "[1]", None)
WORDS = ("So", "\\boxed{4}", "x+1", "the", "answer", "is", "über", "K7", "4")
NUMBERS = [name for name, field in FIELDS.items() if field.kind == "number"]


def record(rng: Random, step: int) -> Record:
    """Return a debate of any shape the protocol allows, and some that a hostile file has."""
    agents, rounds = rng.randint(1, 5), rng.randint(1, 3)
    own, ballot = rng.random() < 0.3, rng.random() < 0.7
    config = DebateConfig(num_agents=agents, num_rounds=rounds, judge_own=own, final_ballot=ballot)
    turns = tuple(turn(rng, a, r, agents, r == rounds) for r in range(rounds + ballot) for a in range(agents))
    ids = [t.id for t in turns]
    aimed = [vote for one in turns for vote in votes_of(rng, one)]
    stray = [Vote(*(rng.choice(ids) for _ in range(3)), "left") for _ in range(rng.randrange(3))]
    problem = Problem(f"p/{rng.randrange(4)}", "2+2?", rng.choice(["4", None]), rng.choice(["gsm8k", "MATH"]))
    personas = tuple(rng.choice(PERSONAS) for _ in range(agents))
    debate = Debate(problem, personas, turns, (*aimed, *stray), rng.getrandbits(60), step, config)
    if rng.random() < 0.3:
        debate = replace(debate, rounds_saved=rng.randint(1, 3))
    grades = [True, False, "missing", None]
    correct = tuple(tuple(rng.choice(grades) for _ in range(rounds)) for _ in range(agents))
    table = correct if rng.random() < 0.8 else None
    rewards = score_debate(debate, table, RewardConfig(judge_own=own))
    timing = Timing(1.0, rng.random()) if rng.random() < 0.5 else None
    halves = (None, -1.5, 0.0, 0.5, 1.0)
    advantages = tuple(TurnAdvantages(t.id, rng.choice(halves), rng.choice(halves)) for t in turns)
    advantages = advantages if rng.random() < 0.8 else ()
    return Record(
        debate, step, problem.id, table, rewards if rng.random() < 0.8 else None, advantages, timing
    )


def turn(rng: Random, agent: int, round_: int, agents: int, ballot: bool) -> Turn:
    shown = (
        tuple(TurnId(a, rng.randrange(round_)) for a in range(agents) if rng.random() < 0.9) if round_ else ()
    )
    failures = tuple(ParseFailure(r, "") for r in FailureReason if rng.random() < 0.1)
    parsed = ParsedTurn(answer=None if ballot else rng.choice(ANSWERS), failures=failures)
    words = " ".join(rng.choices(WORDS, k=6))
    count = rng.randrange(50)
    stop = rng.choice(["stop", "length"])
    completion = Completion((), (), (), words, stop, 0, token_count=count)
    return Turn(TurnId(agent, round_), "K7", shown, completion, parsed, shown, 0, ballot)


def votes_of(rng: Random, judge: Turn) -> list[Vote]:
    pairs = [pair for pair in permutations(judge.shown, 2) if rng.random() < 0.6]
    return [Vote(judge.id, left, right, rng.choice(["left", "right", "tie"])) for left, right in pairs]


MARKS = {"0.3": ("label", "tie"), "1.0": ("star", "yes"), "2.7": ("note", "So K7")}
"""What a person wrote on three debates."""


def facts(place: str, one: Record) -> dict[str, object]:
    """Return the value of each field, computed from the record by the reward rules and networkx."""
    kind, mark = MARKS.get(place, ("", ""))
    debate, correct = one.debate, one.correct
    rounds = debate.protocol.num_rounds
    votes = valid_votes(ballot_box(debate))
    found = one.rewards or score_debate(debate, None, RewardConfig(judge_own=debate.protocol.judge_own))
    rewards = Rewards(found.peer, found.truth, found.judge, found.format)
    cells = [cell for row in correct or () for cell in row]
    final = [t.parsed.answer for t in debate.turns if t.id.round == rounds - 1]
    given = [answer for answer in final if answer is not None]
    majority = graph_of(votes)
    flips = [(a, b) for row in correct or () for a, b in pairwise(row) if a is not None and b is not None]
    completions = [t.completion for t in debate.turns]
    solved = [t for t in debate.turns if not t.ballot]
    return {
        "id": place,
        "step": one.step,
        "problem": {debate.problem.id},
        "source": {debate.problem.source},
        "level": {debate.problem.level},
        "kind": {debate.problem.kind},
        "gold": {debate.problem.answer} - {None},
        "persona": {persona.name for persona in debate.personas},
        "answer": set(given),
        "winner": {winner(rewards, one)},
        "cause": causes(one),
        "star": {"yes" if kind == "star" else "no"},
        "label": {mark} if kind == "label" else set(),
        "note": {mark, "so", "k7"} if kind == "note" else set(),
        "accuracy": share(cells),
        "accuracy.round_0": share([row[0] for row in correct or ()]),
        "accuracy.last_round": share([row[-1] for row in correct or ()]),
        "vote": {"right" if right else "wrong" for right in decided(votes, correct)},
        "flip": {("C" if a is True else "W") + ("C" if b is True else "W") for a, b in flips},
        "missing": cells.count("missing") if correct else sum(t.parsed.answer is None for t in solved),
        "ungraded": cells.count(None) if correct else len(solved),
        "agreement": max(map(given.count, given)) / len(final) if given else None,
        "votes": len(votes),
        "ties": sum(vote.outcome == "tie" for vote in votes),
        "cycle": {"yes" if any(len(c) > 2 for c in nx.strongly_connected_components(majority)) else "no"},
        "condorcet": condorcet(votes, majority, debate.protocol.num_agents),
        "judge.accuracy": judged(votes, correct),
        "malformed": sum(len(t.parsed.failures) for t in debate.turns),
        "truncated": sum(c.stop_reason == "length" for c in completions),
        "tokens": sum(token_counts(c)[1] for c in completions),
        **{f"reward.{name}": mean(one.rewards, name) for name in ("peer", "truth", "judge", "format")},
        "advantage.generator": mean_advantage(one, "generator"),
        "advantage.judge": mean_advantage(one, "judge"),
        "policy_version": debate.policy_version,
        "agents": debate.protocol.num_agents,
        "rounds": rounds,
        "rounds_saved": debate.rounds_saved or 0,
        "seed": debate.seed,
        "seconds": one.timing.seconds if one.timing else None,
    }


def graph_of(votes) -> nx.DiGraph:
    net: dict[frozenset[TurnId], dict[TurnId, int]] = {}
    for vote in votes:
        wins = net.setdefault(frozenset((vote.left, vote.right)), {vote.left: 0, vote.right: 0})
        if vote.outcome != "tie":
            wins[vote.left if vote.outcome == "left" else vote.right] += 1
    graph = nx.DiGraph()
    for wins in net.values():
        (a, x), (b, y) = wins.items()
        if x != y:
            graph.add_edge(*((a, b) if x > y else (b, a)))
    return graph


def condorcet(votes, majority: nx.DiGraph, agents: int) -> set[str]:
    if not votes:
        return set()
    last = max(side.round for vote in votes for side in (vote.left, vote.right))
    turns = [TurnId(agent, last) for agent in range(agents)]
    beaten = [all(majority.has_edge(one, other) for other in turns if other != one) for one in turns]
    return {"yes" if agents > 1 and any(beaten) else "no"}


def decided(votes, correct) -> list[bool]:
    """Return, for each vote on a pair with exactly one right side, whether it is right."""
    right = []
    for vote in votes if correct else ():
        grades = [correct[side.agent][side.round] for side in (vote.left, vote.right)]
        if None not in grades and (grades[0] is True) != (grades[1] is True):
            right.append(vote.outcome == ("left" if grades[0] is True else "right"))
    return right


def judged(votes, correct) -> float | None:
    right = decided(votes, correct)
    return sum(right) / len(right) if right else None


def winner(rewards: Rewards, one: Record) -> str:
    best = voted_winner(rewards.peer, seed=one.debate.seed)
    if best is None:
        return "none"
    grade = one.correct[best.agent][best.round] if one.correct else None
    return "ungraded" if grade is None else "right" if grade is True else "wrong"


def share(grades) -> float | None:
    graded = [grade is True for grade in grades if grade is not None]
    return sum(graded) / len(graded) if graded else None


def mean(rewards: Rewards | None, stream: str) -> float | None:
    """Return the mean of the exact sum: thirds that cancel each other must come to 0 in any order."""
    values = [v for row in getattr(rewards, stream) for v in row if v is not None] if rewards else []
    return float(sum(map(Fraction, values))) / len(values) if values else None


def meets(node, value: dict[str, object]) -> bool:
    """Return whether a record meets a filter, by its tree."""
    if isinstance(node, Not):
        return not meets(node.part, value)
    if isinstance(node, All | Any):
        return (all if isinstance(node, All) else any)(meets(part, value) for part in node.parts)
    found, kind = value[node.field], FIELDS[node.field].kind
    if kind in ("number", "step"):
        return meets_number(node, found)
    wanted = node.values[0].text
    if kind == "id":
        return found == wanted
    if kind == "name" and not node.values[0].quoted and wanted.endswith("*"):
        return any(name.startswith(wanted[:-1]) for name in found)
    return wanted in found


def meets_number(node, found) -> bool:
    if node.op == "=" and node.values[0].text == "none":
        return found is None
    if found is None:
        return False
    numbers = [None if value is None else float(value.text) for value in node.values]
    if node.op == "..":
        low, high = numbers
        return (low is None or found >= low) and (high is None or found <= high)
    [number] = numbers
    ways = {"=": found == number, "<": found < number, "<=": found <= number}
    return (ways | {">": found > number, ">=": found >= number})[node.op]


def mean_advantage(one: Record, name: str) -> float | None:
    values = [value for part in one.advantages if (value := getattr(part, name)) is not None]
    return float(sum(map(Fraction, values))) / len(values) if values else None


VALUES = st.sampled_from(["0", "1", "2", "3", "0.5", "1.5", "-1", "40", "0.3333333333333333"])
COMPARED = st.sampled_from([*NUMBERS, "step"])
OPERATORS = st.sampled_from(["", ">", ">=", "<", "<=", "="])
NAMES = ("problem:p/1", "problem:p/*", "source:gsm8k", "answer:4", 'answer:"2*3"', "answer:[1]", "gold:4")
PLACES = ('persona:"Devil\'s Advocate"', "persona:Dev*", "kind:expression", 'level:""', "id:1.0", "id:0.3")
TERMS = st.one_of(
    st.builds("{}:{}{}".format, COMPARED, OPERATORS, VALUES),
    st.builds("{}:{}..{}".format, COMPARED, VALUES, VALUES | st.just("")),
    st.builds("{}:none".format, st.sampled_from([n for n in NUMBERS if FIELDS[n].absent])),
    st.sampled_from([f"{name}:{word}" for name, field in FIELDS.items() for word in field.words]),
    st.sampled_from(
        [*NAMES, *PLACES, "label:tie", "label:*", "label:left", "note:k7", 'note:"So K7"', "note:s*"]
    ),
)
FILTERS = st.recursive(
    TERMS,
    lambda inner: st.one_of(
        inner.map("-{}".format).filter(lambda f: not f.startswith("--")),
        inner.map("NOT ({})".format),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("({} {})".format, inner, inner),
    ),
    max_leaves=6,
)


class Run(tuple):
    """A store of some debates, and their values by id; hypothesis quotes it where a law fails."""

    __repr__ = object.__repr__


@pytest.fixture(scope="module")
def run():
    rng = Random(5)
    records = [record(rng, step) for step in range(3) for _ in range(60)]
    with tempfile.TemporaryDirectory() as folder:
        for step in range(3):
            write_step(Path(folder), step, [one for one in records if one.step == step], seal=step < 2)
        with RunStore.open(folder) as store:
            ids = [f"{place // 60}.{place % 60}" for place in range(180)]
            assert store.damage == []
            for id, (kind, mark) in MARKS.items():
                store.annotate(kind, id, mark)
            yield Run((store, {i: facts(i, one) for i, one in zip(ids, records, strict=True)}))


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(text=FILTERS)
def test_sql_finds_what_looking_finds(run, text: str):
    store, values = run
    wanted = [place for place, value in values.items() if meets(parse(text), value)]
    found = [row.id for row in store.debates(text, limit=1000)]
    assert found == wanted
    assert store.count(text) == len(wanted)
    assert [row.id for row in store.debates(text, newest=True, limit=1000)] == wanted[::-1]


PIECES = st.sampled_from(
    [*FIELDS, ":", ">", "<=", "..", "(", ")", "-", '"', " ", "OR", "NOT", "*", "1", "\\boxed", "\0", "\ud800"]
)


@settings(deadline=None, max_examples=200)
@given(st.lists(PIECES | st.text(max_size=3), max_size=12).map("".join))
def test_a_filter_is_read_or_refused_with_its_place(run, text: str):
    store, _ = run
    try:
        query = compile_filter(text)
    except FilterError as error:
        place = error.position
        assert 0 <= place <= len(text)
    else:
        if not query.words:
            store.debates(text)
