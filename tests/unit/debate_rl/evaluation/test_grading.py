import asyncio
from collections import Counter

import pytest

from debate import Completion, DebateConfig, Problem, hold_debate
from debate.policies.scripted import ScriptedPolicy
from debate_rl.evaluation.evaluate import with_modes
from debate_rl.evaluation.grading import grade_debate, graded
from debate_rl.evaluation.play import Played
from debate_rl.evaluation.scores import scores
from envs import Grade, GradeStatus
from envs.answers.keys import key_of
from envs.registry import environment_of

PROBLEM = Problem("p", "1 + 1?", answer="2", kind="number")


class Fixed:
    """Grades the answer "2" right, "t" as a time-out and "c" as a crash."""

    name = "fixed"

    def problems(self, *, split, limit=None, seed=None):
        return (PROBLEM,)

    def grade(self, problem, answer):
        known = {
            None: GradeStatus.MISSING,
            "2": GradeStatus.CORRECT,
            "t": GradeStatus.TIMEOUT,
            "c": GradeStatus.CRASH,
        }
        method = "math_verify: killed" if answer == "t" else "fixed"
        return Grade(known.get(answer, GradeStatus.WRONG), method, answer, seconds=0.002)


def held(script, problem=PROBLEM, **config):
    policy = ScriptedPolicy(script, default="")
    return asyncio.run(hold_debate(problem, policy, DebateConfig(**config), seed=0))


def solution(answer):
    return f"<solution>\\boxed{{{answer}}}</solution>"


def test_every_verdict_stands_at_its_agent_and_round():
    script = {(0, 0): solution("2"), (1, 0): solution("3"), (2, 0): "no idea"}
    script |= {(0, 1): solution("t"), (1, 1): solution("c"), (2, 1): solution("2")}
    script |= {(n, 2): solution("2") for n in range(3)}  # a ballot is not graded
    tally = Counter()
    _, table = grade_debate(Fixed(), held(script, num_rounds=2), tally)
    assert table == ((True, None), (False, None), ("missing", True))
    counts = {"correct": 2, "wrong": 1, "missing": 1, "timeout": 1, "crash": 1}
    assert tally == counts | {"symbolic": 1, "microseconds": 6 * 2000}


def test_an_open_problem_has_no_table():
    debate = held({(0, 0): solution("2")}, Problem("o", "Why?", kind="open"), num_agents=1, num_rounds=1)
    assert grade_debate(Fixed(), debate) == (debate, None)


def test_a_debate_that_was_graded_leniently_is_graded_by_its_box_as_if_it_had_not_been():
    replies = {
        (0, 0): "<solution>The answer is 2.</solution>",
        (1, 0): "<solution>2, or \\boxed{3}</solution>",
    }
    debate = held(replies, num_agents=2, num_rounds=1, final_ballot=False)
    own = environment_of(PROBLEM)
    lenient, right = grade_debate(own, debate, mode="lenient")
    again, boxed = grade_debate(own, lenient)
    assert (right, boxed) == (((True,), (False,)), (("missing",), (False,)))
    assert (again, boxed) == grade_debate(own, debate)


class Thinking:
    """Replies with one text, to prompts that open a think block."""

    version = 0

    def __init__(self, text):
        self.text = text

    async def sample(self, request):
        return Completion((1,), (1,), (0.0,), self.text, "length", 0)

    async def update(self, weights, version): ...

    def opens_thinking(self, messages):
        return True


@pytest.mark.parametrize(
    ("text", "right", "missing"),
    [("Maybe \\boxed{2}. Wait, 2 or", 0.0, 1.0), ("Maybe 3.</think> \\boxed{2}", 1.0, 0.0)],
)
def test_thinking_that_was_cut_off_is_no_answer_under_any_mode(text, right, missing):
    config, own = DebateConfig(num_agents=1, num_rounds=1, prompts="think"), environment_of(PROBLEM)
    one = graded(own, asyncio.run(hold_debate(PROBLEM, Thinking(text), config, seed=0)), "lenient")
    played = Played((), ((one,),), 1, 1)
    found = with_modes(scores(played, key_of(own)), played, own, ("boxed", "lenient")).values
    for mode in ("", " [boxed]", " [lenient]"):
        assert found[f"direct/accuracy{mode}"] == {"p": [right]}
        assert found[f"direct/missing{mode}"] == {"p": [missing]}
