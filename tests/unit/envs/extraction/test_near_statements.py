"""Replies that do not state the number or the letter in them: they hedge, deny, bound or calculate on."""

import pytest

from envs import Grader

OPTIONS = ("10 cm", "12 cm", "14 cm", "16 cm")
NOT_FIVE = [
    "The answer is 5. Actually, it is 6.",
    "The answer could be 5.",
    "I doubt the answer is 5",
    "The answer is 5?",
    "The answer is 6, not 5",
    "The answer is between 5 and 7.",
    "The answer is less than 5.",
    "The answer is 5 times 3.",
    "The answer is 5 dozen.",
    "The answer is 5/6.",
    "The answer is 5 or 6",
    "The answer is 5^2",
    "The answer is $5^2$.",
    "The answer is $x^5$.",
    "The answer is -5.",
    "The answer is 5%5.",
    r"\boxed{5} or \boxed{6}",
    r"\boxed{6}, not \boxed{5}... wait \boxed{7}",
    r"\boxed{5, 6}",
    r"\boxed{5\text{ or }6}",
    r"\boxed{\text{five or six}}",
    r"\boxed{5}{6}\boxed{6}",
    r"\boxed 56",
    r"\boxed 5.6",
    r"\boxed -5",
    r"\boxed{}5",
    r"\boxed{ }",
    r"\boxed{x}=5",
    r"\boxed{5",
    "Final Answer: There are 5 or 6 ways.",
    "Final Answer: There are at least 5 ways.",
    "Final Answer: there are more than 5 ways",
    "Final Answer: There are 5! ways.",
    "Final Answer: There are 5^2 ways.",
    "Final Answer: There are -5 ways.",
    "Final Answer: One in 5 ways works.",
    "Final Answer: Every fifth of the 5 works",
    "Final Answer: There are twice 5 ways.",
    "Final Answer: The root of 5 is it.",
    "Final Answer: it has 5 digits and ends in seven",
    "Final Answer: It is not known whether 5 works",
    "Final Answer: a 5 by six grid",
    "Final Answer: The sum is 5 hundred.",
    "答案是6。不是5",
    "答案是5的平方",
    "答案是5和6",
    "答案大于5",
    "答案是-5",
    "答案是5/6",
    "答案可能是5",
    "答案是5倍",
    "答案约为5",
    "La réponse est 5 fois 3",
    "La réponse est environ 5",
    "La réponse est la moitié de 5",
    "La réponse est supérieure à 5",
    "Die Antwort ist weder 5 noch 6",
    "Die Antwort ist kleiner als 5",
    "Die Antwort ist das Quadrat von 5",
    "La respuesta es mayor que 5",
    "La respuesta es 5 o 6",
    "La respuesta es menos 5",
    "Ответ: больше 5",
    "Ответ: 5 или 6",
    "Ответ: корень из 5",
    "Ответ: минус 5",
    "الجواب هو 5 أو 6",
    "الجواب ليس 5",
    "答えは5か6です",
    "정답은 5 또는 6입니다",
    "정답은 5가 아닙니다",
    "The answer is <b>5</b> or <b>6</b>.",
    "The answer is “5 or 6”.",
    r"$\text{Answer: } 5$ or $6$",
    "Answer: 5 Answer: 6",
    "x = 5 or x = 6",
    "so x ≠ 5",
    r"so $x \not= 5$",
    "####5 or 6",
    "#### not 5",
    "The answer is five or six",
    "The answer is 5th root of 2",
    "We need 5 more than 3.",
    "It is 3 or 5",
    "neither 3 nor 5",
]
NOT_D = [
    "The answer is D, A, B",
    "The answer is D; or A",
    "D, and it can't be D",
    "The answer is D, it can't be D",
    "The answer is D, which is wrong",
    "The answer is D, it is not wrong that A",
    "The answer is D, but A is better",
    "The answer is D, A is not wrong",
    "The answer is D, although A might also be right",
    "The answer is D, I am not sure",
    "The answer is D. No, it is A.",
    "The answer isn't D, it is A",
    "The answer is D or none",
    "Option D is not correct.",
    "Option D is correct? No.",
    "The answer is A, it can't be D",
    "A is the answer since D is wrong",
    "D is wrong, A is correct",
    "The answer is E",
    "d is not it",
    "The answer is between C and D",
]


@pytest.fixture(scope="module")
def grader():
    with Grader(workers=1, limit_s=30.0) as grader:
        yield grader


@pytest.mark.parametrize("mode", ["lenient", "math_verify", "boxed", "answer_is", "prm800k"])
@pytest.mark.parametrize("reply", NOT_FIVE)
def test_no_mode_reads_five(grader, reply, mode):
    assert grader.grade(reply, "5", mode=mode).status != "correct"


@pytest.mark.parametrize("reply", NOT_D)
def test_the_letter_is_not_meant(grader, reply):
    assert grader.grade(reply, "D", choices=OPTIONS).status != "correct"
