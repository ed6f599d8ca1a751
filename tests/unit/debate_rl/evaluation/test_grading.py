"""Grades of debates, who agrees by them, and what of a solution a reader sees."""

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate import Completion, DebateConfig, Problem, hold_debate
from debate.policies.scripted import ScriptedPolicy
from debate_rl.evaluation.evaluate import with_modes
from debate_rl.evaluation.grading import agreement, gold_of, grade_debate, graded, reasoning_of
from debate_rl.evaluation.play import Played
from debate_rl.evaluation.scores import scores
from envs import Grade, GradeStatus, load_environment
from envs.answers.keys import key_of
from envs.registry import Mixture, environment_of

PROBLEM = Problem("p", "1 + 1?", answer="2", kind="number")


class Fixed:
    """Grades the answer "2" right, "t" as a time-out and "c" as a crash."""

    name = "fixed"

    def problems(self, *, split, limit=None, seed=None):
        return (PROBLEM,)

    def grade(self, problem, answer):
        known = {None: GradeStatus.MISSING, "2": GradeStatus.CORRECT, "t": GradeStatus.TIMEOUT}
        known["c"] = GradeStatus.CRASH
        method = "math_verify: killed" if answer == "t" else "fixed"
        return Grade(known.get(answer, GradeStatus.WRONG), method, answer, seconds=0.002)


def held(script, problem=PROBLEM, **config):
    policy = ScriptedPolicy(script, default="")
    return asyncio.run(hold_debate(problem, policy, DebateConfig(**config), seed=0))


def spoken(solutions, problem, **config):
    """Return a debate of one round in which the agents write these solutions."""
    script = {(agent, 0): text for agent, text in enumerate(solutions)}
    return held(script, problem, num_agents=len(script), num_rounds=1, final_ballot=False, **config)


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
    debate = held({(0, 0): solution("2")}, Problem("o", "Why?", kind="open"), num_agents=1, num_rounds=1)
    assert grade_debate(Fixed(), debate) == (debate, None)


def test_a_debate_that_was_graded_leniently_is_graded_by_its_box_as_if_it_had_not_been():
    texts = ["<solution>The answer is 2.</solution>", "<solution>2, or \\boxed{3}</solution>"]
    debate = spoken(texts, PROBLEM)
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


DATA = load_environment("gsm8k")
NUMBER = Problem("p", "How many?", "1200", kind="number")


@pytest.mark.parametrize(
    ("answers", "problem", "expected"),
    [
        (("1,200", "1200.0", "x = 1200"), NUMBER, True),
        (("1,200", "1200.5"), NUMBER, False),
        ((r"\dfrac{1}{2}", "0.5"), NUMBER, True),
        ((r"\sqrt{8}", r"2\sqrt{2}"), NUMBER, False),
        (("(B)", "b"), Problem("c", "?", "B", kind="choice", choices=("1", "2", "3")), True),
        (("Paris ", "the paris"), Problem("t", "?", "Paris", kind="text"), True),
        (("Paris", "paris"), Problem("v", "?", "Paris", kind="verbatim"), False),
    ],
)
def test_boxes_agree_where_a_majority_counts_them_together(answers, problem, expected):
    debate = spoken(map(solution, answers), problem)
    assert agreement(DATA)(problem, debate.turns) is expected
    assert agreement(Mixture({"a": DATA}, {problem.id: "a"}))(problem, debate.turns) is expected


def test_an_answer_is_what_the_graders_mode_finds():
    texts = ["<solution>It is \\boxed{3}.\n#### 7</solution>", "<solution>\\boxed{4}\n#### 7.0</solution>"]
    debate = spoken(texts, NUMBER)
    assert not agreement(DATA)(NUMBER, debate.turns)
    assert agreement(DATA, "gsm8k_strict_match")(NUMBER, debate.turns)
    graded, _ = grade_debate(DATA, debate, mode="gsm8k_strict_match")
    assert [turn.parsed.answer for turn in graded.turns] == ["7", "7.0"]


def test_whole_responses_agree_as_texts_and_a_missing_answer_with_nobody():
    essay = Problem("e", "Write.", "a text", kind="overlap")
    same = ["<solution>A poem.</solution>", "<solution> A poem. </solution>"]
    assert agreement(DATA)(essay, spoken(same, essay).turns)
    assert not agreement(DATA)(essay, spoken([same[0], "<solution>A song.</solution>"], essay).turns)
    for missing in ("<solution>no box</solution>", "nothing", "<solution>\\boxed{1200}"):
        debate = spoken(["<solution>\\boxed{1200}</solution>", missing], NUMBER)
        agreed = agreement(DATA)(NUMBER, debate.turns)
        assert agreed is (debate.turns[1].parsed.answer is not None)
    assert not agreement(DATA)(NUMBER, spoken(["nothing", "nothing"], NUMBER).turns)


def test_untagged_replies_agree_by_what_is_graded_of_them():
    debate = spoken(["It is \\boxed{5}.", "\\boxed{5.0} it is"], NUMBER, untagged=True)
    assert agreement(DATA)(NUMBER, debate.turns)


@pytest.mark.parametrize("gold", ["3, 5", "5"])
def test_the_answer_of_a_hidden_problem_is_the_same_whatever_its_gold_answer(gold):
    """All boxes are the answer where the gold answer has as many parts: that tells who is right."""
    problem = Problem("p", "Which two?", gold, kind="expression")
    text = "<solution>One is \\boxed{3}. It takes more to see that the other one is \\boxed{5}.</solution>"
    debate = spoken([text], problem)
    seen, hidden = (grade_debate(DATA, debate, mode="lenient", hidden=hidden) for hidden in (False, True))
    assert seen[1] == hidden[1] == ((True,),)
    assert seen[0].turns[0].parsed.answer == gold
    assert hidden[0].turns[0].parsed.answer == "5"


SUM = Problem("p", "3 + 4?", "7", kind="number")


@pytest.mark.parametrize(
    ("mode", "text", "seen"),
    [
        ("boxed", r"3 + 4 = 7. \boxed{7}", "3 + 4 = 7."),
        ("boxed", r"So the final answer is $\boxed{7}$.", ""),
        ("boxed", r"First \boxed{6}, no: 3 + 4 = 7. Hence \(\boxed{7}\)", r"First \boxed{6}, no: 3 + 4 = 7."),
        ("boxed", "3 + 4 = 7", "3 + 4 = 7"),
        ("boxed", "", ""),
        ("lenient", "3 + 4 = 7\n#### 7", "3 + 4 = 7"),
        ("lenient", "We add. The answer is 7.", "We add."),
        ("lenient", "So we have 7", "So we have"),
    ],
)
def test_the_final_answer_and_what_leads_to_it_are_left_out(mode, text, seen):
    assert reasoning_of(text, SUM, mode) == seen


def test_a_letter_of_options_is_found_as_the_grader_finds_it():
    problem = Problem("p", "Which?", "B", kind="choice", choices=("red", "blue"))
    assert reasoning_of("The sky is blue. Answer: B", problem, "lenient") == "The sky is blue."


@given(st.text(max_size=300))
def test_it_is_the_beginning_of_the_solution_and_never_raises(text):
    for mode in ("boxed", "lenient"):
        assert text.startswith(reasoning_of(text, SUM, mode))


@given(st.sampled_from(["the answer is ", "$", "{", "so, ", r"\boxed", " "]), st.integers(1, 20_000))
def test_long_leads_cost_linear_time(piece, count):
    assert reasoning_of(piece * count + r"\boxed{1}", SUM) is not None


def test_the_gold_answer_is_that_of_the_problem_or_the_first_of_several():
    assert gold_of(SUM) == "7"
    assert gold_of(Problem("p", "?", "Paris\nparis, France", kind="text")) == "Paris"
    assert gold_of(Problem("p", "?", "rules", kind="instructions")) is None
    assert gold_of(Problem("p", "?", kind="open")) is None
