"""Lists of solutions to select from: which there are, and that their form tells nothing of the right one."""

import re
from collections import Counter

from debate import DebateConfig, Problem, run_debates
from debate.policies.scripted import ScriptedPolicy
from debate.prompting.fitting import ContextBudget
from debate_rl.evaluation.grading import graded
from debate_rl.sft.examples import examples_of
from debate_rl.sft.harvests import selections
from debate_rl.strategies.selection import selected
from envs import load_environment
from envs.data.records import Record

PROTOCOL = DebateConfig(num_agents=3, num_rounds=2, max_tokens=200)
NO_LIMIT = ContextBudget(None, len)
NUMBERS = load_environment("gsm8k")


def group(answers, number=0):
    """Solutions of one agent alone with these answers to a problem whose answer is 1."""
    problem = Problem(f"p{number}", f"What is {number}?", answer="1", kind="number")
    replies = iter(answers)
    policy = ScriptedPolicy(lambda _: f"<solution>It is \\boxed{{{next(replies)}}}.</solution>", tokens=True)
    alone = PROTOCOL.one_round(alone=True)
    debates = run_debates([problem] * len(answers), policy, alone, seed=number)
    return [graded(NUMBERS, debate) for debate in debates]


def made(groups, seed=0, protocol=PROTOCOL):
    return selections(groups, protocol, {"teacher": "me"}, budget=NO_LIMIT, seed=seed)


def shown(trace):
    """The answers in a trace's prompt by label, in their order."""
    text = trace["messages"][-1]["content"]
    return dict(re.findall(r'<work agent="(\w+)" .*?boxed\{(.*?)\}', text, re.DOTALL))


def test_the_target_names_a_right_solution():
    harvest = made([group("112345", number) for number in range(40)])
    assert len(harvest.traces) > 20
    for trace in harvest.traces:
        answers = shown(trace)
        named = selected(trace["reply"], list(answers))
        assert list(answers.values())[named] == "1"
        assert set(answers.values()) != {"1"}
        assert 2 <= len(answers) <= 6


def test_problems_with_solutions_of_one_kind_teach_nothing():
    harvest = made([group("1111"), group("2345", 1), group("1", 2)])
    assert harvest.traces == []
    assert harvest.kept.total() == 0 < harvest.asked.total()


def test_neither_place_nor_label_tells_which_is_right():
    harvest = made([group("12", number) for number in range(400)])
    places = Counter(list(shown(trace).values()).index("1") for trace in harvest.traces)
    assert len(harvest.traces) == 400
    assert abs(places[0] - 200) < 60  # 6 standard errors of a fair coin
    labels = Counter(re.search(r">\n(.+)\n<", trace["reply"])[1] for trace in harvest.traces)
    assert max(labels.values()) < 20


def test_the_same_seed_makes_the_same_lists_and_sft_reads_them():
    groups = [group("1234", number) for number in range(5)]
    assert made(groups).traces == made(groups).traces != made(groups, seed=1).traces
    for trace in made(groups).traces:
        [example] = examples_of(Record("traces.jsonl, line 1", 0, trace, {}))
        assert example.reply == trace["reply"]
        assert example.messages[-1].content == trace["messages"][-1]["content"]
