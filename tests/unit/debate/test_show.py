from msgspec.structs import replace

from debate import DebateConfig, Problem, run_debates
from debate.policies.scripted import ScriptedPolicy
from debate.show import html_of, transcript
from debate.types import TurnId

SHOWN = """\
What is 2 + 2?
gold answer: 4

round 0
K7 Methodical Analyst       4  right
    2 + 2 = \\boxed{4}
Q2 Creative Problem-Solver  no answer
M4 Devil's Advocate         no answer

round 1: votes only
K7 Methodical Analyst       vote Q2 > M4
Q2 Creative Problem-Solver
M4 Devil's Advocate         vote K7 = Q2"""


def held(*replies: str):
    said = iter(replies)
    config = DebateConfig(num_agents=3, num_rounds=1, handles=("K7", "Q2", "M4"))
    problem = Problem("p", "What is 2 + 2?", answer="4", kind="number")
    policy = ScriptedPolicy(lambda _: next(said))
    [debate] = run_debates([problem], policy, config, seed=4)
    return debate


def test_a_debate_prints_as_a_short_transcript():
    first = "<solution>2 + 2 =\n\\boxed{4}</solution>"
    ballots = ("<comparison>M4 < Q2</comparison>", "", "<comparison>K7 = Q2</comparison>")
    debate = held(first, "", "", *ballots)
    assert transcript(debate, {TurnId(0, 0): "right"}) == SHOWN
    assert str(debate) == SHOWN.replace("  right", "")


def test_texts_of_a_model_cannot_break_the_screen_or_the_page():
    debate = held("<solution>\x1b[2J<script>x</script> \\boxed{<b>}</solution>", *[""] * 5)
    assert "\x1b" not in str(debate)
    assert "<script>" not in debate._repr_html_()
    assert "<b>&lt;b&gt;</b>" in debate._repr_html_()


def test_a_long_solution_is_cut_in_text_and_whole_in_html():
    debate = held(f"<solution>{'x' * 500} \\boxed{{4}}</solution>", *[""] * 5)
    assert f"{'x' * 75}…" in str(debate)
    assert "x" * 500 in html_of(debate)


def test_a_debate_without_turns_prints_its_question():
    assert str(replace(held(*[""] * 6), turns=(), votes=())) == "What is 2 + 2?\ngold answer: 4"
