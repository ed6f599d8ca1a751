from hypothesis import given
from hypothesis import strategies as st

from debate import DebateConfig, Problem
from debate.concurrency import run_async
from debate.policies.scripted import ScriptedPolicy
from debate_rl.strategies.selection import paired, selected, selection_reply
from debate_rl.strategies.voting import lead_of, majority
from debate_rl.strategies.work import SolvePlan, Work
from envs import load_environment

ANSWERS = st.lists(st.sampled_from("12345"), min_size=1, max_size=20)
NUMBERS = load_environment("gsm8k")


def asked_of(answers, seed=0, **plan):
    policy = ScriptedPolicy(lambda request: f"\\boxed{{{answers[request.turn.agent]}}}", tokens=True)
    problem = Problem("p", "?", answer="1", kind="number")
    config = DebateConfig(max_tokens=20)
    return policy, Work(SolvePlan("majority", config, NUMBERS, len(answers), **plan), problem, policy, seed)


@given(ANSWERS, st.integers(0, 9))
def test_a_majority_that_stops_early_is_that_of_all(answers, seed):
    policy, asked = asked_of(answers, seed=seed)
    found = run_async(majority(asked))
    counts = {answer: answers.count(answer) for answer in answers}
    assert counts[found.answer] == max(counts.values())
    if found.ended == "settled":
        assert list(counts.values()).count(max(counts.values())) == 1
    assert len(policy.requests) == found.samples <= len(answers)


@given(ANSWERS)
def test_waves_ask_for_no_more_than_one_by_one(answers):
    policy, asked = asked_of(answers)
    run_async(majority(asked))
    for count in range(len(answers) + 1):
        weights = [answers[:count].count(answer) for answer in set(answers)]
        if lead_of(weights) > len(answers) - count or count == len(answers):
            assert len(policy.requests) == count
            break


@given(ANSWERS, st.integers(20, 200))
def test_tokens_stay_within_the_budget(answers, tokens):
    _, asked = asked_of(answers, tokens=tokens)
    assert run_async(majority(asked)).tokens_generated <= tokens


@given(st.integers(2, 12), st.data())
def test_a_round_pairs_everybody_once(count, data):
    players = data.draw(st.permutations(range(count)))
    points = {player: float(data.draw(st.integers(0, 3))) for player in players}
    pairs = paired(players, points, set())
    assert len(pairs) == count // 2
    assert len({player for pair in pairs for player in pair}) == 2 * len(pairs)


@given(st.lists(st.from_regex(r"[A-Z][2-9]", fullmatch=True), min_size=1, max_size=8, unique=True), st.text())
def test_a_selection_reads_what_is_written_and_raises_on_none(labels, text):
    for index, label in enumerate(labels):
        assert selected(f"{text.replace('<', '')}{selection_reply(label)}", labels) == index
    assert selected(text, labels) in (None, *range(len(labels)))
