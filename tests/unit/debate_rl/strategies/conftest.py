"""A policy that writes what a test says, problem by problem, and what a strategy works on."""

import re

import pytest

from debate import DebateConfig, Problem
from debate.concurrency import run_async
from debate.policies.scripted import ScriptedPolicy
from debate_rl.strategies.work import SolvePlan, Work
from envs import load_environment

PROBLEM = Problem("p", "What is 2 + 2?", answer="4", kind="expression")


class Author:
    """Says the answers in order to those who ask for solutions, and judges by what each answer is worth.

    ``worth``: of an answer as it is shown; the larger wins a ballot and a selection. ``say``: what a judge
    writes instead of that.
    """

    def __init__(self, answers, worth=None, say=None):
        self.answers, self.worth, self.say = answers, worth or {}, say
        self.judged: list[str] = []

    def __call__(self, request):
        text = request.messages[-1].content
        if "Work shown to you" not in text:
            answer = self.answers[request.turn.agent % len(self.answers)]
            return f"<solution>It is \\boxed{{{answer}}}.</solution>"
        self.judged.append(text)
        if self.say is not None:
            return self.say
        shown = dict(re.findall(r'<work agent="(\w+)" .*?boxed\{(.*?)\}', text, re.DOTALL))
        if "name the solution" in text:
            best = max(shown, key=lambda label: self.worth.get(shown[label], 0))
            return f"<comparison>\n{best}\n</comparison>"
        own = re.search(r"Your label is (\w+)", text)[1]
        left, right = (label for label in shown if label != own)
        a, b = (self.worth.get(shown[label], 0) for label in (left, right))
        sign = ">" if a > b else "<" if a < b else "="
        return f"<evaluation>-</evaluation><comparison>\n{left} {sign} {right}: so\n</comparison>"


@pytest.fixture(scope="session")
def work_on():
    """Return work_on(policy, protocol, problem=, seed=, judge=, seconds=, **fields of the plan)."""

    def work(policy, protocol=None, *, problem=PROBLEM, seed=0, judge=None, seconds=None, **plan):
        planned = SolvePlan("majority", protocol or DebateConfig(), load_environment("gsm8k"), **plan)
        return Work(planned, problem, policy, seed, judge, seconds, "0:p")

    return work


@pytest.fixture
def ask(work_on):
    """Return ask(strategy, answers, worth, say=..., **settings) -> (answered, author, policy)."""

    def run(strategy, answers, worth=None, *, say=None, num_rounds=2, **settings):
        author = Author(answers, worth, say)
        policy = ScriptedPolicy(author, tokens=True)
        protocol = DebateConfig(num_agents=3, num_rounds=num_rounds, max_tokens=100)
        work = work_on(policy, protocol, **{"samples": len(answers)} | settings)
        return run_async(strategy(work)), author, policy

    return run
