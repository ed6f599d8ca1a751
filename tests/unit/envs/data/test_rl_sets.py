"""Sets made for RL, texts and open sets, from rows of the published shapes."""

import json

import pytest

from envs import DataError, load_environment, load_problems
from envs.data.questions import last_of_user
from envs.errors import DataWarning


def chat(text):
    return [{"content": text, "role": "user"}]


def if_row(key, ids, kwargs, *, as_python=True):
    truth = [{"instruction_id": ids, "kwargs": kwargs}]
    asked = {"key": key, "messages": chat("Write a poem. Use no commas."), "constraint": "Use no commas."}
    about = {"dataset": "ifeval", "constraint_type": "multi"}
    return asked | about | {"ground_truth": repr(truth) if as_python else json.dumps(truth)}


def test_multi_constraints_as_published(load):
    ids, counting = ["punctuation:no_comma", "letters:letter_counting"], {"N": 9.0, "relation": "at least"}
    as_json = if_row("b", ["count:count_unique"], [{"keyword": None}], as_python=False)
    one, other = load("if_multi_constraints", if_row("a", ids, [None, counting]), as_json)
    assert (one.id, one.kind) == ("if_multi_constraints-a", "instructions")
    assert one.question == "Write a poem. Use no commas."
    assert json.loads(one.answer) == {"instruction_id_list": ids, "kwargs": [{}, counting | {"N": 9}]}
    grade = load_environment("if_multi_constraints").grade(one, "short")
    assert (grade.status.value, grade.score) == ("wrong", 0.5)
    assert json.loads(other.answer)["kwargs"] == [{}]


BAD_TRUTHS = [
    (if_row("a", ["keywords:rhymes"], [{}])["ground_truth"], "'keywords:rhymes' is not a known instruction"),
    ("__import__('os').system('true')", "needs an object with 'func_name' or 'instruction_id'"),
    *(("[" * 50_000, "needs an object"), ("-" * 50_000 + "1", "needs an object")),
    ("{'x': 1}", "needs an object"),
    ("[{'instruction_id': ['count:numbers'], 'kwargs': [{}]}]", "count:numbers lacks 'N'"),
    ("[{'instruction_id': ['count:numbers']}]", "needs a list of 1 objects, one per instruction"),
    (7, "needs an object"),
]


@pytest.mark.parametrize(("truth", "told"), BAD_TRUTHS, ids=[told[:24] for _, told in BAD_TRUTHS])
def test_a_truth_that_cannot_be_checked_leaves_its_row_out_and_is_named(load, truth, told):
    good = if_row("a", ["punctuation:no_comma"], [{}])
    with pytest.warns(DataWarning, match="1 rows left out, 1 read; the first: ") as caught:
        assert len(load("if_multi_constraints", good, good | {"key": "b", "ground_truth": truth})) == 1
    assert told in str(caught[0].message)
    assert "line 2, field 'ground_truth'" in str(caught[0].message)


def rlvr_row(dataset, text, truth):
    return {"messages": chat(text), "ground_truth": truth, "dataset": dataset, "constraint_type": None}


GAPS = dict.fromkeys(("quantifier", "end_phrase", "keyword_list", "word", "letter", "i", "options"))
SHOTS = "Question: 1+1?\nAnswer: So the answer is 2.\n\nQuestion: What is\n\n2+2?\nAnswer:"
WORDS = json.dumps({"func_name": "validate_word_constraint", "N": 3} | GAPS | {"quantifier": "at most"})
MIXED = [
    rlvr_row("gsm8k", SHOTS, "4"),
    rlvr_row("MATH", "Problem:\nHalf of one?\n\nSolution:", r"\frac{1}{2}"),
    rlvr_row("ifeval", "Question: no?\n\nQuestion: three words", WORDS),
]


def test_the_mixed_set_has_a_grader_for_each_row(load):
    problems = load("rlvr_mixed", *MIXED)
    assert [(p.kind, p.source, p.question) for p in problems] == [
        ("number", "rlvr_mixed/gsm8k", "What is\n\n2+2?"),
        ("expression", "rlvr_mixed/MATH", "Half of one?"),
        ("instructions", "rlvr_mixed/ifeval", "Question: no?\n\nQuestion: three words"),
    ]
    environment = load_environment("rlvr_mixed")
    answers = ("4.0", "0.5", "one two three")
    grades = [environment.grade(p, answer) for p, answer in zip(problems, answers, strict=True)]
    assert [grade.status.value for grade in grades] == ["correct"] * 3
    assert environment.grade(problems[2], "one two three four").score == 0.0


def test_the_mixed_set_is_filtered_to_one_source_and_lacks_unknown_verifiers(load):
    assert [p.answer for p in load("rlvr_mixed", *MIXED, subjects=["gsm8k"])] == ["4"]
    with pytest.raises(DataError, match="subjects: 1 unmatched: code; valid: gsm8k, ifeval, math"):
        load("rlvr_mixed", *MIXED, subjects=["code"])
    with pytest.warns(DataWarning, match="names an unknown verifier; known: gsm8k, math, ifeval"):
        assert len(load("rlvr_mixed", MIXED[0], rlvr_row("code", "Sort.", "x"))) == 1


def test_rlvr_ifeval(load):
    row = rlvr_row("ifeval", "Quote.", json.dumps({"func_name": "validate_quotation", "N": None} | GAPS))
    [problem] = load("allenai/RLVR-IFeval", row | {"constraint_type": "Quotation"})
    assert (problem.kind, problem.source) == ("instructions", "rlvr_ifeval/Quotation")
    assert load_environment("rlvr_ifeval").grade(problem, '"So."').status == "correct"


def verl_row(truth):
    model = {"ground_truth": truth, "style": "rule"}
    return {"data_source": "amc", "prompt": chat("What is $1+1$?"), "ability": "math", "reward_model": model}


def test_skywork_rows_without_a_truth_are_left_out(load):
    with pytest.warns(DataWarning, match="needs an object with a text 'ground_truth'"):
        assert len(load("skywork_or1", verl_row("[0,1]"), verl_row([]), verl_row(None))) == 1


@pytest.mark.parametrize(
    "value", ["text", None, [], [{"role": "assistant", "content": "x"}], [{"role": "user"}], 3]
)
def test_a_chat_without_a_user_has_no_question(value):
    assert last_of_user(value) is None


GPQA = {"Correct Answer": "right\n", "High-level domain": "Physics"}
GPQA |= {f"Incorrect Answer {n}": f"wrong {n}" for n in (1, 2, 3)}


def test_choices_of_gpqa_are_shuffled_by_the_seed(load):
    rows = [GPQA | {"Record ID": f"rec{n}", "Question": f"Which is {n}?"} for n in range(40)]
    loaded = (load("gpqa_diamond", *rows, split="test", seed=seed) for seed in (1, 1, 2))
    one, again, other = ({p.id: p for p in problems} for problems in loaded)
    assert one == again
    assert {p.id: p.choices for p in other.values()} != {p.id: p.choices for p in one.values()}
    for problem in (*one.values(), *other.values()):
        assert sorted(problem.choices) == ["right", "wrong 1", "wrong 2", "wrong 3"]
        assert problem.choices["ABCD".index(problem.answer)] == "right"
        assert problem.source == "gpqa_diamond/Physics"
    assert {p.answer for p in one.values()} == set("ABCD")


def test_a_wiki_paragraph_is_continued(load):
    words = [f"w{n}" for n in range(148)]
    text = " " + " ".join(["a", "@-@", "b", ",", *words]) + " . \n"
    rows = [{"text": " = Title = \n"}, {"text": ""}, {"text": text}]
    [problem] = load("wiki_continuation", *rows)
    assert problem.kind == "overlap"
    assert problem.question.startswith("Continue this text by about 50 words:\n\na-b, w0 w1 ")
    assert problem.question.endswith(" w97")
    assert problem.answer.split() == [f"w{n}" for n in range(98, 148)]
    environment = load_environment("wiki_continuation")
    half = environment.grade(problem, " ".join(problem.answer.split()[:25]))
    assert (half.status.value, round(half.score, 3)) == ("correct", round(2 * 25 / 75, 3))
    none = environment.grade(problem, "nothing of it")
    assert (none.status.value, none.score) == ("wrong", 0.0)


def test_a_set_that_the_hub_lacks_names_its_home():
    with pytest.raises(DataError, match=r"hellobench: is not on the hub; give path= .*Quehry/HelloBench"):
        load_problems("hellobench", split="test")
