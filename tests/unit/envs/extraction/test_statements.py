r"""What a reply states, where the answer ends, and what hedges, denies, bounds or calculates on."""

from pathlib import Path

import pytest

from envs import Grader, extract
from envs.grading.extraction import extract_text
from envs.grading.statements import widened

DATA = Path(__file__).parents[3] / "data"
OPTIONS = ("10 cm", "12 cm", "14 cm", "16 cm")


def _cases(table: str) -> list[str]:
    """Return the cases of a table; a line break in one is ⏎."""
    return [case.strip().replace("⏎", "\n") for case in table.split(";;")]


@pytest.fixture(scope="module")
def grader():
    with Grader(workers=1, limit_s=30.0) as grader:
        yield grader


FIVE = _cases(r"""
The answer is $5$ dollars. ;; It is not 3 but 5 ;; the answer isn't 3; it's 5. ;; 2 + 3 = 5 ;; 5 or so ;;
For x or y we get 5 ;; He has 2 and she has 3, so 5 ;; If x is 3, the answer is 5. ;;
That way is wrong, so the answer is 5. ;; <think>5 or 6?</think><answer>5</answer> ;; The answer is “5”. ;;
Final Answer: There are 5 ways. ;; $\text{Answer: } 5$ ;; The answer is $\color{red}{5}$ ;; \fbox{5} ;;
答案是５。 ;; 答案为 $5$ ;; 所以一共有5个苹果 ;; La réponse est donc 5. ;; Ответ: 5 см ;; 답은 5입니다.
""")
HEDGED = _cases(r"""
3 or 5 ;; \(3\) or \(5\) ;; **3** or **5** ;; 3 or perhaps 5 ;; 3 (or 5) ;; x = 3 or x = 5 ;; 3 and 5 ;;
3⏎or⏎5 ;; It must be 3 or it is 5 ;; 3, perhaps 5 ;; either 3 apples or 5 apples ;; 3或5 ;; 3 ou 5 ;;
The answer is $5$ or $3$. ;; The answer is $5$, $3$. ;; 3 / 5 of it
""")
TAKEN_BACK = _cases(r"""
not 5 ;; The answer isn’t 5 ;; It cannot be 5 ;; it's not $5$ ;; It's not exactly **5** ;; 答案不是5 ;;
the result does not equal 5 ;; so $x \neq 5$ ;; La réponse n'est pas 5 ;; Ответ: не 5
""")
NOT_FIVE = _cases(r"""
The answer is 5. Actually, it is 6. ;; The answer could be 5. ;; I doubt the answer is 5 ;;
The answer is between 5 and 7. ;; The answer is less than 5. ;; The answer is at most 5. ;;
The answer is 5 times 3. ;; The answer is 5 dozen. ;; The answer is 5/6. ;; The answer is 5^2 ;; #### not 5 ;;
The answer is -5. ;; The answer is half of 5. ;; The answer is 5, maybe 6 ;; The answer is 5, or six ;;
The answer is 5, which could be 6 ;; The answer is 5, which is wrong ;; The answer is 5, not sure ;;
The answer is 5 (six) ;; The answer is 5 (million) ;; The answer is **5** squared ;; The answer is 5 of x ;;
The answer is the square root of 5 ;; The answer is 5, not counting the 3 ;; The answer is **5** x ;;
Final Answer: There are at least 5 ways. ;; Final Answer: There are 5! ways. ;;
If the answer is 5, then 2 = 3. ;; Final Answer: One in 5 ways works. ;; Final Answer: a 5 by six grid ;;
The sum is 5 or 6 ;; It is false that the answer is 5. ;; Nobody would say the answer is 5. ;;
My previous answer is 5. ;; The answer is in equation (5). ;; The answer is on page 5. ;;
Answer: 5 Answer: 6 ;; We need 5 more than 3. ;; \boxed{5} or \boxed{6} ;; \boxed{5\text{ or }6} ;;
\boxed{5}{6}\boxed{6} ;; \boxed 56 ;; \boxed{}5 ;; \boxed{x}=5 ;; \boxed{5, 6} ;; $\text{Answer: } 5$ or $6$
""")


FOREIGN = (DATA / "foreign_replies.tsv").read_text(encoding="utf-8").splitlines()[1:]


@pytest.mark.parametrize("mode", ["lenient", "math_verify"])
@pytest.mark.parametrize("reply", FIVE)
def test_what_is_meant_is_right(grader, reply, mode):
    assert grader.grade(reply, "5", mode=mode).status == "correct"


@pytest.mark.parametrize("mode", ["lenient", "prm800k", "math_verify"])
@pytest.mark.parametrize("reply", HEDGED + TAKEN_BACK)
def test_a_hedge_is_wrong_and_stands_in_the_reply(grader, reply, mode):
    for gold in ("3", "5"):
        assert grader.grade(reply, gold, mode=mode).status == "wrong"
    found = extract(reply, mode=mode)
    assert found.span is not None
    assert found.span.of(reply) == found.answer


@pytest.mark.parametrize("mode", ["lenient", "prm800k", "math_verify"])
@pytest.mark.parametrize("row", FOREIGN, ids=[row.partition("\t")[0] for row in FOREIGN])
def test_a_denial_in_another_language_is_wrong(grader, row, mode):
    _, *both = row.split("\t")
    for dressed in ("{}", "${}$", "**{}**"):
        replies = [reply.replace("5", dressed.format("5")) for reply in both]
        grades = [grader.grade(reply, "5", mode=mode).status for reply in replies]
        assert grades == ["correct", "wrong"], replies


def test_sentences_that_were_written_behind_the_rules_for_other_languages(grader):
    lines = (DATA / "foreign_sentences.txt").read_text(encoding="utf-8").splitlines()[1:]
    wrong = [line for line in lines if (grader.grade(line[2:], "5").status == "correct") != (line[0] == "=")]
    assert wrong == []


@pytest.mark.parametrize("mode", ["lenient", "math_verify", "boxed", "answer_is", "prm800k"])
@pytest.mark.parametrize("reply", NOT_FIVE)
def test_no_mode_reads_five(grader, reply, mode):
    assert grader.grade(reply, "5", mode=mode).status != "correct"


@pytest.mark.parametrize("reply", ["3 and 5", "$3$ or $5$", "x = 3 or x = 5", "The answer is $5$, $3$."])
def test_two_answers_are_right_where_two_are_asked_for(grader, reply):
    assert grader.grade(reply, "3, 5").status == "correct"


def test_boxes_side_by_side_are_one_list_where_math_verify_looks(grader):
    for reply in (r"\boxed{3}/\boxed{5}", r"\boxed{3} or perhaps \boxed{5}", r"**\boxed{3}** (or \boxed{5})"):
        assert grader.grade(reply, "5", mode="math_verify").status == "wrong"
        assert grader.grade(reply, "3, 5", mode="math_verify").status == "correct"
        assert grader.grade(reply, "5").status == "correct"  # else the last box counts, and nothing beside it


D = _cases(r"""
The answer is for sure D, it can't be A or B ;; D. It cannot be A, nor B. ;; Option D is correct. ;; **D** ;;
The answer is D (A, B and C are ruled out). ;; The answer is 16 cm, which is option D. ;; \boxed D ;;
The answer is D because A is wrong ;; the correct answer is option (D), not A. ;; d ;; 16 CM. ;; 答案：D。 ;;
\boxed{\textbf{(D)}\ 16} ;; The answer is definitely D, since B does not fit
""")
NOT_D = _cases(r"""
The answer is D, A, B ;; The answer is D; or A ;; D, and it can't be D ;; The answer is D, which is wrong ;;
The answer is D, but A is better ;; The answer is D, I am not sure ;; The answer is D. No, it is A. ;;
The answer isn't D, it is A ;; The answer is D or none ;; Option D is not correct. ;; d is not it ;;
Option D is correct? No. ;; The answer is A, it can't be D ;; D is wrong, A is correct ;; The answer is E ;;
The answer is between C and D ;; The answer is D? Maybe A. ;; The answer is D, A is also correct
""")


def test_letters(grader):
    assert [reply for reply in D if grader.grade(reply, "D", choices=OPTIONS).status != "correct"] == []
    assert [reply for reply in NOT_D if grader.grade(reply, "D", choices=OPTIONS).status == "correct"] == []
    for reply in ("5", "because", "none of them"):
        assert grader.grade(reply, "B", choices=OPTIONS).status == "missing", reply
    assert grader.grade("4", "B", choices=("3", "4", "B")).status == "correct"
    assert grader.grade("B", "B", choices=OPTIONS, mode="answer_is").status == "missing"


@pytest.mark.slow
@pytest.mark.usefixtures("ends")
def test_a_megabyte_of_anything_is_read_in_linear_time():
    table = r", which ;; because ;; \( ;; $ ;; ** ;; St. ;; A. ;; (a ;; of a ;; , not ;; 3 or ;; 3/ ;; x ="
    for piece in (f"{piece} " for piece in _cases(table)):
        text = piece * (1_000_000 // len(piece)) + "5"
        for mode in ("lenient", "math_verify"):
            extract(f"The answer is {text}", mode=mode)
            extract(text, mode=mode)
        extract_text(f"The answer is {text}")
    found = extract("5").span
    assert found is not None
    assert widened("5", found) == found
