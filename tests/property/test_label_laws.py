"""Without labels no gold answer moves anything: whatever the grades, rewards and advantages are the same."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from debate import DebateConfig, Persona
from debate.prompting.shown import holds_criticism
from debate.types import Completion, Criticism, Debate, ParsedTurn, Problem, Turn, TurnId, Vote
from debate.values import Span
from learner.advantages import AdvantageConfig, StreamSettings, turn_advantages
from learner.types import group_indices, transitions_of
from rewards import RewardConfig, score_debates
from rewards.labels import credits_of
from rewards.shaping import same_spelling
from rewards.types import STREAMS, Likelihoods, Verdicts

SAID = Completion((), (), (), "", "stop", 0)
GRADES = st.sampled_from([True, False, "missing", None])
SCHEMES = st.builds(
    RewardConfig,
    labels=st.just(0.0),
    pseudo=st.sampled_from(["none", "majority", "last_majority", "voted", "verified", "anchored"]),
    judge_pseudo=st.booleans(),
    truth_weight=st.sampled_from([0.0, 0.5, 1.0]),
    peer_weight=st.sampled_from(["rest", "routed", "measured"]),
    judge_truth_weight=st.sampled_from([None, 0.0, 0.5, 1.0]),
    judge_ties=st.sampled_from(["zero", "reward"]),
    truth_credit=st.sampled_from(["whole", "partial"]),
    truth_rounds=st.sampled_from(["all", "last"]),
    mix=st.sampled_from(["advantages", "rewards"]),
    likelihood_weight=st.sampled_from([0.0, 0.5]),
    persuasion_targets=st.sampled_from(["all", "wrong"]),
)
CENTRED = st.builds(
    AdvantageConfig,
    truth=st.sampled_from([StreamSettings(), StreamSettings(baseline="rae"), StreamSettings(key="context")]),
    judge=st.builds(StreamSettings, key=st.sampled_from(["round", "pair", "context"])),
    discount=st.sampled_from([0.0, 0.5]),
)


@st.composite
def held(draw, protocol, problem, seed):
    """Draw a debate of four agents whose answers are two, or none, and who vote on the first pair shown."""
    agents, rounds = range(4), protocol.num_rounds
    answers = draw(st.lists(st.sampled_from(["1", "2", None]), min_size=4 * rounds, max_size=4 * rounds))
    outcomes = draw(
        st.lists(st.sampled_from(["left", "right", "tie"]), min_size=4 * rounds, max_size=4 * rounds)
    )
    turns = []
    for turn in (TurnId(agent, round_) for round_ in range(rounds + 1) for agent in agents):
        shown = tuple(TurnId(agent, turn.round - 1) for agent in agents) if turn.round else ()
        criticises, ballot = holds_criticism(protocol, turn.round), turn.round == rounds
        named = (Criticism("H0", Span(0, 0)),) if criticises else UNSET
        answer = None if ballot or criticises else answers[4 * turn.round + turn.agent]
        parsed = ParsedTurn(answer=answer, criticisms=named)
        others = tuple(one for one in shown if one.agent != turn.agent)
        score = UNSET if ballot else 0.5
        turns.append(
            Turn(
                turn, f"H{turn.agent}", shown, SAID, parsed, others, ballot=ballot or criticises, score=score
            )
        )
    judges = [turn for turn in turns if turn.compared]
    votes = [Vote(one.id, *one.compared[:2], said) for one, said in zip(judges, outcomes, strict=True)]
    people = tuple(Persona(name, "") for name in "ABCD")
    return Debate(problem, people, tuple(turns), tuple(votes), seed, 0, protocol)


@st.composite
def steps(draw):
    """Draw the debates of a step, and two tables of grades for each."""
    rounds, kind = draw(st.sampled_from([(1, "debate"), (2, "debate"), (3, "debate"), (3, "critique")]))
    protocol = DebateConfig(num_agents=4, num_rounds=rounds, protocol=kind)
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=2))
    debates = [
        draw(held(protocol, Problem(f"p{number}", "?", answer="1", kind="number"), seed))
        for number, size in enumerate(sizes)
        for seed in range(size)
    ]
    tables = st.lists(st.lists(GRADES, min_size=rounds, max_size=rounds), min_size=4, max_size=4)
    return debates, [(draw(tables), draw(tables)) for _ in debates]


@pytest.mark.slow
@settings(deadline=None)
@given(steps(), SCHEMES, CENTRED, st.booleans())
def test_without_labels_no_grade_moves_anything(step, scheme, centred, coins):
    debates, pairs = step
    names = [debate.problem.id for debate in debates]
    read = [Likelihoods(tuple((-1.0,) * len(row) for row in pair[0])) for pair in pairs]
    said = [Verdicts("m", 0.5, tuple((1.0,) * len(row) for row in pair[0])) for pair in pairs]
    given_for = []
    for tables in zip(*pairs, strict=True):
        rewards, _ = score_debates(
            *(debates, tables, names, scheme),
            seed=5,
            verdicts=said,
            likelihoods=read,
            key=same_spelling,
            coins=coins,
        )
        transitions = transitions_of(debates, rewards, group_indices(names))
        found = turn_advantages(transitions, scheme, centred, {}, counted=False)
        streams = [[getattr(one, name) for name in (*STREAMS, "persuasion")] for one in rewards]
        given_for.append((streams, found.turns))
    assert given_for[0] == given_for[1]


@pytest.mark.slow
@settings(deadline=None)
@given(steps(), SCHEMES, st.randoms(use_true_random=False))
def test_labels_do_not_depend_on_who_sits_where(step, scheme, rng):
    """Agents renumbered: the same answers become labels, and every solution keeps its grade."""
    debates, _ = step
    group = [one for one in debates if one.problem.id == debates[0].problem.id]
    order = list(range(4))
    rng.shuffle(order)
    before, after = (
        credits_of(of, [None] * len(of), ["g"] * len(of), scheme, seed=1, key=same_spelling)
        for of in (group, [renumbered(one, order) for one in group])
    )
    for old, new in zip(before, after, strict=True):
        assert new.labels == old.labels
        assert [new.grades[order[agent]] for agent in range(len(old.grades))] == list(old.grades)


def renumbered(debate, order):
    """Return the debate with agent i as agent ``order[i]``."""

    def moved(turn):
        return TurnId(order[turn.agent], turn.round)

    turns = tuple(
        replace(
            one,
            id=moved(one.id),
            shown=tuple(map(moved, one.shown)),
            compared=tuple(map(moved, one.compared)),
        )
        for one in debate.turns
    )
    votes = tuple(
        replace(vote, judge=moved(vote.judge), left=moved(vote.left), right=moved(vote.right))
        for vote in debate.votes
    )
    return replace(debate, turns=turns, votes=votes)
