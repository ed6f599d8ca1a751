from collections import Counter

import pytest

from debate import DebateConfig
from debate.policies.scripted import ScriptedPolicy
from debate.prompting.reading import read_prompt
from debate.prompting.texts import load_prompts
from debate_rl.judge_attack.judging import judge_accuracy
from envs import load_environment
from envs.families import FAMILIES

CONFIG = DebateConfig(num_rounds=2, prompts="tiny", handles=("K7", "Q2", "M4"))
PAIR_SUM = FAMILIES["pair_sum"]
PROBLEMS = load_environment("pair_sum", levels=[1]).problems(split="test", limit=60, seed=0)
TEXTS = load_prompts("tiny")


def shown_to(request):
    """Return the others' entries, each with whether it is right, and the request's own entry."""
    seen = read_prompt(TEXTS, request.messages)
    problem = PROBLEMS[int(request.debate)]
    marked = [(e.handle, " right" in PAIR_SUM.write_check(problem, e.solution)) for e in seen.entries]
    return [one for one in marked if one[0] != seen.handle], seen


def judge(choose):
    def reply(request):
        handles = [handle for handle, _ in choose(shown_to(request)[0])]
        return f"<evaluation>.</evaluation><comparison>{' > '.join(handles)}</comparison>"

    return reply


def accuracy(script, config=CONFIG, *, greedy=False, seed=3):
    policy = ScriptedPolicy(script)
    found = judge_accuracy(policy, "pair_sum", PROBLEMS, config=config, greedy=greedy, seed=seed)
    return found, policy.requests


def perfect(others):
    return sorted(others, key=lambda one: not one[1])


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (judge(perfect), 1.0),
        (judge(lambda others: perfect(others)[::-1]), 0.0),
        (judge(lambda others: others), 0.5),  # always the first shown
        (judge(lambda others: others[::-1]), 0.5),
        (judge(lambda others: sorted(others)), 0.5),  # always the same label
        (lambda request: "no vote", 0.0),
        (lambda request: "<evaluation>.</evaluation><comparison>K7 = Q2 = M4</comparison>", 0.0),
    ],
)
def test_judges_of_known_accuracy(script, expected):
    found, _ = accuracy(script)
    assert found.value == pytest.approx(expected, abs=0.15 if expected == 0.5 else 0)
    assert (found.n, found.clusters) == (60, 60)


def test_the_right_solution_stands_first_exactly_as_often_as_second():
    _, requests = accuracy(judge(perfect))
    pairs = [shown_to(request)[0] for request in requests]
    assert all(sorted(right for _, right in pair) == [False, True] for pair in pairs)
    first = Counter((request.turn.agent, pair[0][1]) for request, pair in zip(requests, pairs, strict=True))
    assert set(first.values()) == {10}  # 60 pairs over 3 judges and 2 places
    assert accuracy(judge(lambda others: others))[0].value == 0.5


def test_prompts_are_fixed_by_the_seed_and_show_the_judges_own_work():
    _, one = accuracy(judge(perfect))
    _, again = accuracy(lambda request: "")
    assert [r.messages for r in one] == [r.messages for r in again]
    assert [r.messages for r in accuracy(judge(perfect), seed=4)[1]] != [r.messages for r in one]
    for request in one:
        seen = shown_to(request)[1]
        assert seen.handle in {entry.handle for entry in seen.entries}
        assert seen.task == "debate"


def test_more_agents_show_one_right_solution_among_several():
    found, requests = accuracy(judge(perfect), DebateConfig(num_agents=5, num_rounds=2, prompts="tiny"))
    assert found.value == 1.0
    assert all(sum(right for _, right in shown_to(r)[0]) == 1 for r in requests)


def test_votes_on_own_work_say_nothing_of_the_pair():
    def honest(request):
        others, seen = shown_to(request)
        good, bad = (handle for handle, _ in perfect(others))
        own = next(entry for entry in seen.entries if entry.handle == seen.handle)
        owns_right.append(" right" in PAIR_SUM.write_check(PROBLEMS[int(request.debate)], own.solution))
        verdict = f"{seen.handle} = {good}" if owns_right[-1] else f"{good} > {seen.handle}"
        return f"<evaluation>.</evaluation><comparison>{good} > {bad}\n{verdict}</comparison>"

    def vain(request):
        seen = shown_to(request)[1]
        lines = "\n".join(f"{e.handle} > {seen.handle}" for e in seen.entries if e.handle != seen.handle)
        return f"<evaluation>.</evaluation><comparison>{lines}</comparison>"

    owns_right: list[bool] = []
    asked = CONFIG.model_copy(update={"judge_own": True})
    assert accuracy(honest, asked)[0].value == 1.0
    assert 15 < sum(owns_right) < 45
    assert accuracy(vain, asked)[0].value == 0.0  # no vote on the pair
