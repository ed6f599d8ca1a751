"""Rows of one file may be of different kinds, each with its own gold and its own grader; text answers."""

import pytest

from debate import Problem
from envs import DataError, grade, load_environment, same_answer
from envs.answers.keys import key_of

MIXED = [
    {"id": "n", "question": "2 + 2?", "answer": "4", "kind": "number"},
    {"id": "c", "question": "Which?", "answer": "B", "choices": ["3", "4"], "kind": "choice"},
    {"id": "t", "question": "Capital?", "answer": ["Paris", "City of  Light"], "kind": "text"},
    {"id": "v", "question": "Which flag?", "answer": "-v", "kind": "verbatim"},
    {"id": "i", "question": "Write.", "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]},
    *({"id": "o", "question": "Why?", "kind": "open"}, {"id": "e", "question": "Expand.", "answer": "x+1"}),
]
ANSWERS = {"n": ("4.0", "5"), "c": ("4", "A"), "t": (r"\text{the city of light.}", "London")}
ANSWERS |= {"v": (" -v ", "-V"), "i": ("Fine.", "Well, fine."), "e": ("1+x", "x")}


def test_a_mixed_file_has_a_grader_for_each_row(load, tmp_path):
    problems = {problem.id: problem for problem in load("file", *MIXED)}
    kinds = {"n": "number", "c": "choice", "t": "text", "v": "verbatim", "i": "instructions", "o": "open"}
    assert {name: problem.kind for name, problem in problems.items()} == {**kinds, "e": "expression"}
    assert (problems["t"].answer, problems["o"].answer) == ("Paris\nCity of Light", None)
    environment = load_environment("file", path=str(tmp_path / "rows.jsonl"))
    for name, (right, wrong) in ANSWERS.items():
        grades = [environment.grade(problems[name], answer).status for answer in (right, wrong, None)]
        assert grades == ["correct", "wrong", "missing"], name


def test_wrong_answers_are_told_apart_as_their_kind_compares_them():
    key = key_of(load_environment("gsm8k"))
    text, exact, free = (Problem("p", "?", "x", kind=kind) for kind in ("text", "verbatim", "instructions"))
    assert key(text, "The U.S.") == key(text, "us") != key(text, "uk")
    assert key(exact, " -v") == key(exact, "-v") != key(exact, "-V")
    assert key(free, "One. ") == key(free, "One.") != key(free, "one.")


def test_the_kind_may_stand_in_another_field_and_that_field_may_be_something_else(load):
    rows = [{"question": "Capital?", "answer": "Paris", "type": "text", "kind": "easy"}]
    assert load("file", *rows, fields={"kind": "type"})[0].kind == "text"
    assert load("file", *rows, fields={"subject": "kind"})[0].source == "file/easy"
    with pytest.raises(DataError, match="'task': is missing"):
        load("file", *rows, fields={"kind": "task"})
    with pytest.raises(DataError, match=r"fields=\{'subject': 'kind'\}"):
        load("file", *rows)


def test_under_open_no_constraint_is_looked_for(load):
    row = {"question": "Write.", "instruction_id_list": ["?"], "kwargs": 3}
    assert load("open", row)[0].kind == "open"


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        *((r"so \boxed{Paris}", "correct"), ("Paris", "correct"), ("**Paris!**", "correct")),
        ("It lies in France.\nThe answer is Paris.", "correct"),
        *(("<think>London</think>Paris", "correct"), ("Paris or London", "wrong")),
        *((r"Paris \boxed{}", "wrong"), ("It lies in France.\nIt is Paris, they say.", "missing")),
        ("", "missing"),
    ],
)
def test_a_text_in_a_whole_reply(reply, status):
    assert grade(reply, "Paris", kind="text").status == status


DIFFERENT = [
    *((rf"\{command}{{Paris}}", "Paris") for command in ("neg", "not", "cancel", "sout", "phantom", "lnot")),
    *(("-5", "5"), ("- 5", "5"), ("$-50$", "50"), ("{-}5", "5"), ("3.5", "-3.5"), ("35", "3.5")),
    *(("12", "1/2"), ("1020", "10-20"), ("430", "4:30"), ("23", "2*3"), ("100", "100%"), ("1", "#1")),
    *(("C", "C#"), ("C", "C++"), ("A", "A+"), ("A-", "A+"), ("O-", "O+"), ("ms", "m/s"), ("x2", "x^2")),
    *(("x>y", "x<y"), ("x=1", "x1"), ("x-1", "x1"), ("x!=1", "x=1"), ("!p", "p"), ("~p", "p")),
    *(("~~Paris~~", "Paris"), ("--verbose", "verbose"), ("Paris or London", "Paris")),
]
SAME = [
    *(("paris!", "Paris"), ("**Paris**", "Paris"), ("- Paris", "Paris"), ("# Paris", "Paris")),
    *((r"\textbf{\text{Paris}}", "Paris"), (r"\mathrm {Paris}", "Paris"), ("New~York", "New York")),
    *(("wellknown", "well-known"), ("Jean--Paul", "JeanPaul"), ("Paris - London", "Paris, London")),
    *(("covid19", "COVID-19"), ("U.S.", "us"), ("yes! no", "Yes, no"), ("1,200 men", "1200 men")),
    *(("c ++.", "C++"), (r"C\#", "c#"), ("x>y", "$x > y$"), ("10 - 20", "10-20"), (r"50\% off", "50% off")),
]


@pytest.mark.parametrize(("answer", "gold"), [*DIFFERENT, *SAME])
def test_a_sign_makes_another_text_and_punctuation_or_a_font_does_not(answer, gold):
    status = "correct" if (answer, gold) in SAME else "wrong"
    assert same_answer(answer, gold, kind="text").status == status
    assert same_answer(gold, answer, kind="text").status == status
    assert same_answer(answer, answer, kind="text").status == "correct"


def test_text_that_holds_numbers_or_signs_is_a_gold_text(load):
    for gold in ("C++", "C#", "10-20", "x > y", "4:30", "U2", "4 July", "seven", "A+", "1,200 men", "3D"):
        [problem] = load("file", {"id": "x", "question": "?", "answer": gold, "kind": "text"})
        assert same_answer(gold, problem.answer, kind="text").status == "correct"


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["-", "- ", "a-", "/", "a/", "#", "1.", "1,", "~", "\\text ", "the "])
@pytest.mark.usefixtures("ends")
def test_a_normal_form_takes_linear_time(piece):
    same_answer(piece * (1_000_000 // len(piece)), "Paris", kind="text")
