"""Replies in several languages and scripts, sentences with one number, letters with a reason."""

import pytest

from envs import Grader

OPTIONS = ("10 cm", "12 cm", "14 cm", "16 cm")
CHOICES = [
    ("D", "The answer is for sure D, it can't be A or B", True),
    ("D", "D. it can't be A or B", True),
    ("D", "D. It cannot be A, nor B.", True),
    ("A", "D. it can't be A or B", False),
    ("D", "D. It cannot be A, nor D.", False),
    ("D", "The answer is D. It can't be A or B.", True),
    ("D", "The answer is D because A and B are wrong.", True),
    ("D", "The answer is D (A, B and C are ruled out).", True),
    ("D", "The answer is definitely D, since B does not fit", True),
    ("D", "I think the answer is D, not A.", True),
    ("D", "The answer is D or A.", False),
    ("D", "The answer is D, A is also correct", False),
    ("D", "The answer is D, but it could be A", False),
    ("D", "The answer is not D", False),
    ("A", "The answer is for sure D, it can't be A or B", False),
    ("D", "The correct option is D.", True),
    ("D", "Option D is correct.", True),
    ("B", "**B**", True),
    ("B", "Answer: B", True),
    ("B", "The answer is (B) 12 cm", True),
    ("B", "答案是B", True),
    ("B", "答案：B。", True),
    ("B", "La réponse est B.", True),
    ("B", "Ответ: B", True),
    ("B", r"\boxed{B}", True),
    ("B", r"\boxed{\text{B}}", True),
    ("B", r"\boxed B", True),
    ("B", r"\boxed{\textbf{(B)}\ 12}", True),
    ("D", "The answer is D, I'm not sure it isn't A", False),
    ("D", "The answer is D? Maybe A.", False),
]
REPLIES = [
    ("12", "Final Answer: There are 12 ways.", True),
    ("12", "Final Answer: The number of ways is $12$.", True),
    ("12", "Final answer: 12 people can sit.", True),
    ("12", "**Final Answer**\n\nThe total is 12.", True),
    ("12", "Final Answer: Each of the 3 teams has 12 players.", False),
    ("3,5", r"The two solutions are \boxed{3} and \boxed{5}.", True),
    ("3,5", r"$x=\boxed{3}$, $y=\boxed{5}$", True),
    ("(3,5)", r"$x=\boxed{3}$ and $y=\boxed{5}$", True),
    ("(3,5)", r"$x=\boxed{5}$ and $y=\boxed{3}$", False),
    ("5", r"first \boxed{3}, then \boxed{5}", True),
    ("3,5", r"\boxed{3}, \boxed{5}, \boxed{7}", False),
    ("3,5", r"\boxed{5}", False),
    ("5", r"\fbox{5}", True),
    ("42", r"The answer is $\boxed{42}$.", True),
    ("42", "\\boxed{42}\n\nI hope this helps! 3 cheers.", True),
    ("42", r"答案是 \boxed{42}", True),
    ("42", "The answer is 42 or 43", False),
    ("42", "答案为 $42$", True),
    ("42", "因此，答案是 42 个。", True),
    ("42", "所以一共有42个苹果", True),
    ("42", "答案不是42", False),
    ("42", "La réponse est donc 42.", True),
    ("42", "La réponse n'est pas 42", False),
    ("42", "Die Antwort lautet: 42", True),
    ("42", "Die richtige Antwort ist 42.", True),
    ("42", "La respuesta correcta es 42.", True),
    ("42", "Правильный ответ: 42", True),
    ("42", "Ответ: 42 см", True),
    ("42", "Ответ: не 42", False),
    ("42", "정답은 42입니다.", True),
    ("42", "答えは42です", True),
    ("1.5", "La réponse est 1,5.", True),
    ("1234.5", "Die Antwort ist 1.234,5", True),
    ("42", "उत्तर है ४२", True),
    ("42", "El resultado es 42", True),
    ("5", r"The answer is $\color{red}{5}$", True),
    (r"\frac12", r"The answer is $\frac12$.", True),
    ("2", "2 + 2 = 4. The answer is 2? No, it is 4.", False),
    ("4", "I think 4", True),
    ("5", "<answer>5</answer>", True),
    ("5", "The answer is `5`.", True),
    ("5", "The answer is “5”.", True),
    ("5", "The answer is **$5$**.", True),
    ("5", "The answer is $$5$$", True),
    ("5", r"$$\text{Answer: } 5$$", True),
    ("5", r"$\text{The answer is } 5$", True),
    ("1,200", "The answer is 1,200.", True),
    ("3/4", "The answer is 3/4.", True),
    ("0.75", "Answer: 75%", False),
    ("75", "Answer: 75%", True),
    (r"\pi", "so $3.14$", False),
]
MODES = [
    ("x^2", "The derivative is $x^2$.", "math_verify", True),
    ("5", "first: 5, then 7", "first_number", True),
    ("7", "first: 5, then 7", "first_number", False),
    ("-5", "it is -5 or 7", "first_number", True),
    (r"\pi", "so $3.14$", "math_verify", True),
    (r"\pi", "so $3.15$", "math_verify", False),
    (r"\frac{100}{3}", r"\boxed{33.33}", "math_verify", True),
    (r"\frac{100}{3}", r"\boxed{33.34}", "math_verify", False),
]


@pytest.fixture(scope="module")
def grader():
    with Grader(workers=1, limit_s=30.0) as grader:
        yield grader


@pytest.mark.parametrize(("gold", "reply", "right"), CHOICES)
def test_letters(grader, gold, reply, right):
    assert (grader.grade(reply, gold, choices=OPTIONS).status == "correct") is right


@pytest.mark.parametrize(("gold", "reply", "right"), REPLIES)
def test_replies(grader, gold, reply, right):
    assert (grader.grade(reply, gold).status == "correct") is right


@pytest.mark.parametrize(("gold", "reply", "mode", "right"), MODES)
def test_modes(grader, gold, reply, mode, right):
    assert (grader.grade(reply, gold, mode=mode).status == "correct") is right
