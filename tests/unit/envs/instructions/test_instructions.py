"""The 25 instructions of IFEval: cases worked out by hand, both ways, and what no row may ask for."""

from __future__ import annotations

import gc
import json
import sys

import pytest

from envs import DataError, GradeStatus, grade, load_problems, same_answer
from envs.errors import MissingPackageError
from envs.instructions import ConstraintError, constraints_of, follows
from envs.instructions.constraints import TYPES, write_constraints
from envs.instructions.ifeval import DETECTED, IFEVAL
from envs.instructions.text import LANGUAGES, _detector, language_of, sentences

AT_LEAST, LESS = "at least", "less than"
# (instruction, arguments, responses that follow it, responses that do not)
CASES = [
    ("keywords:existence", {"keywords": ["cat", "a.b"]}, ["CATS, a.b"], ["cat aXb", "a.b"]),
    (
        "keywords:frequency",
        {"keyword": "war", "frequency": 2, "relation": AT_LEAST},
        ["War, warm"],
        ["one war", "peace"],
    ),
    ("keywords:frequency", {"keyword": " war", "frequency": 2, "relation": LESS}, ["war", "-"], ["war war"]),
    ("keywords:forbidden_words", {"forbidden_words": ["rock", "C++"]}, ["rocks, C"], ["a Rock!", "in c++."]),
    (
        "keywords:letter_frequency",
        {"letter": "Q", "let_frequency": 2, "let_relation": AT_LEAST},
        ["q and Q"],
        ["q"],
    ),
    (
        "keywords:letter_frequency",
        {"letter": "#", "let_frequency": 1, "let_relation": LESS},
        ["a"],
        ["a # b"],
    ),
    (
        "length_constraints:number_sentences",
        {"num_sentences": 3, "relation": AT_LEAST},
        ["One. Two! Three", "no. yes. no."],
        ["Dr. Li met J. Smith. He left", "3.5 is a number... or is it"],
    ),
    ("length_constraints:number_sentences", {"num_sentences": 2, "relation": LESS}, ["One"], ["One. Two."]),
    (
        "length_constraints:number_paragraphs",
        {"num_paragraphs": 2},
        ["a\n***\nb", "***\na *** b\n***"],
        ["a", "a\n\nb", "a *** *** b", "***"],
    ),
    (
        "length_constraints:number_words",
        {"num_words": 3, "relation": AT_LEAST},
        ["a b c", "it's so"],
        ["a b"],
    ),
    ("length_constraints:number_words", {"num_words": 3, "relation": LESS}, ["a b"], ["a b c"]),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "Weekend"},
        ["One.\n\nweekend, all", 'One.\n\n"WEEKEND" it is', "One.\n\n weekend's here"],
        ["weekend\n\nOne", "One.\n\nweekends", "One", "a\n\nb\n\nweekend", "One.\n\n\n\nweekend"],
    ),
    (
        "detectable_content:number_placeholders",
        {"num_placeholders": 2},
        ["[a] [b]", "[[a] []"],
        ["[a]", "[a\n]["],
    ),
    (
        "detectable_content:postscript",
        {"postscript_marker": "P.S."},
        ["Bye\nP.S. one", "p. s. two"],
        ["PS one", "P.P.S one"],
    ),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, ["p.p. s"], ["P.S."]),
    ("detectable_content:postscript", {"postscript_marker": "NB:"}, ["nb: this"], ["nb this"]),
    (
        "detectable_format:number_bullet_lists",
        {"num_bullets": 2},
        ["* a\n  - b", "*a\n-b\n**c**"],
        ["* a", "* a\n* b\n* c", "1. a\n2. b"],
    ),
    ("detectable_format:constrained_response", {}, ["My answer is no."], ["My answer is no", "no"]),
    (
        "detectable_format:number_highlighted_sections",
        {"num_highlights": 2},
        ["*a* and **b**"],
        ["*a*", "** ** and **b**", "*a\nb* *c"],
    ),
    (
        "detectable_format:multiple_sections",
        {"section_spliter": "SECTION", "num_sections": 2},
        ["SECTION 1\na\nSECTION2\nb"],
        ["Section 1 Section 2", "SECTION 1"],
    ),
    (
        "detectable_format:json_format",
        {},
        ['{"a": [1]}', "```json\n[1]\n```", "```\n3\n```"],
        ["a", "{'a': 1}", "[1] and more", "```json"],
    ),
    ("detectable_format:title", {}, ["<<joy>>\nla", "a <<b>> c"], ["< joy >", "<< >>", "<<joy\n>>", "<<>>"]),
    (
        "combination:two_responses",
        {},
        ["a******b", "******\na\n******\nb\n******"],
        ["a", "a******a", "a******b******c", "a************b"],
    ),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Say hi. "}, [" say hi. Hi"], ["Hi. Say hi.", "Say"]),
    (
        "startend:end_checker",
        {"end_phrase": "Any questions? "},
        ['So. any questions?"'],
        ["Any questions? Yes"],
    ),
    (
        "change_case:capital_word_frequency",
        {"capital_frequency": 2, "capital_relation": AT_LEAST},
        ["I saw NASA", "DON'T", "X-15 and U.S. or"],
        ["Nasa", "NASA only"],
    ),
    ("change_case:capital_word_frequency", {"capital_frequency": 1, "capital_relation": LESS}, ["a"], ["A"]),
    (
        "change_case:english_capital",
        {},
        ["THE CAT SAT ON THE MAT."],
        ["The cat", "123", "LE CHAT EST DANS LA MAISON"],
    ),
    (
        "change_case:english_lowercase",
        {},
        ["the cat sat on the mat."],
        ["The cat", "le chat est dans la maison"],
    ),
    ("punctuation:no_comma", {}, ["no; comma"], ["a, b"]),
    ("startend:quotation", {}, [' "quoted" ', '"a" or "b"'], ['"', "'quoted'", '"open', "“curly”"]),
    (
        "language:response_language",
        {"language": "de"},
        ["Der Hund schläft heute im Garten und träumt."],
        ["The dog is asleep in the garden today.", "12345 !!!"],
    ),
]


def count(text: str) -> int:
    return len(sentences(text))


def met(id_: str, arguments: dict[str, object], response: str) -> bool:
    [outcome] = follows(response, constraints_of(write_constraints([id_], [arguments])))
    return outcome


@pytest.mark.parametrize(("id_", "arguments", "good", "bad"), CASES, ids=[case[0] for case in CASES])
def test_a_constraint(id_, arguments, good, bad):
    if id_ in DETECTED:
        pytest.importorskip("py3langid")
    assert [response for response in good if not met(id_, arguments, response)] == []
    assert [response for response in bad if met(id_, arguments, response)] == []
    assert not met(id_, arguments, " \n ")


def test_loose_takes_the_best_of_eight_readings():
    constraints = constraints_of(
        write_constraints(["startend:quotation", "punctuation:no_comma"], [{}, None])
    )
    response = 'Sure, here it is:\n*"Yes"*\nBye, now'
    assert follows(response, constraints) == (False, False)
    assert follows(response, constraints, loose=True) == (True, True)


def test_a_grade_lists_every_outcome():
    gold = write_constraints(["punctuation:no_comma", "startend:quotation"], [{}, {}])
    half = same_answer("fine", gold, kind="instructions")
    assert (half.status, half.score, half.method) == (GradeStatus.WRONG, 0.5, "instructions")
    assert half.parts == (("punctuation:no_comma", True), ("startend:quotation", False))
    whole = grade('<think>commas, commas</think> "fine"', gold, kind="instructions")
    assert (whole.status, whole.score, whole.extracted) == (GradeStatus.CORRECT, 1.0, '"fine"')
    missing = grade("<think>never done", gold, kind="instructions")
    assert (missing.status, missing.score) == (GradeStatus.MISSING, 0.0)


def row(ids, kwargs, **more):
    return {"key": 7, "prompt": "Write.", "instruction_id_list": ids, "kwargs": kwargs, **more}


def load(tmp_path, *rows, name="ifeval", **options):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return load_problems(name, split="test", path=path, **options)


def test_a_row_of_the_published_form(tmp_path):
    gaps = {"num_words": 30.0, "relation": "at least", "language": None, "keywords": None}
    [problem] = load(tmp_path, row(["length_constraints:number_words"], [gaps]))
    assert (problem.id, problem.question, problem.kind) == ("ifeval-7", "Write.", "instructions")
    assert json.loads(problem.answer)["kwargs"] == [{"num_words": 30, "relation": "at least"}]


@pytest.mark.parametrize(
    ("ids", "kwargs", "told"),
    [
        (
            ["poem:rhyme_scheme"],
            [{}],
            f"'poem:rhyme_scheme' is not a known instruction; docs/instructions.md lists the {len(TYPES)}",
        ),
        (["punctuation:no_commas"], [{}], "did you mean 'punctuation:no_comma'?"),
        ([], [], "needs a list of 1 to 64 instructions"),
        (["punctuation:no_comma"], [], "one object for each of 1"),
        (["punctuation:no_comma"], ["x"], "needs an object of arguments (row 7) (value 'x'"),
        (["punctuation:no_comma"], [{"num_words": 3}], "takes no 'num_words', only: none (row 7) (value 3;"),
        (["length_constraints:number_words"], [{"num_words": 3}], "lacks 'relation'"),
        (
            ["detectable_format:number_bullet_lists"],
            [{"num_bullets": "3"}],
            "'num_bullets' needs a whole number",
        ),
        (["detectable_format:number_bullet_lists"], [{"num_bullets": -1}], "needs a number in 0..1000000"),
        (
            ["length_constraints:number_words"],
            [{"num_words": 3, "relation": "at most"}],
            "needs one of ('less than'",
        ),
        (["keywords:existence"], [{"keywords": []}], "needs a list of texts"),
        (["keywords:existence"], [{"keywords": ["a", " "]}], "needs text that is not blank"),
        (["startend:end_checker"], [{"end_phrase": "\ud800"}], "half a character"),
        (
            ["keywords:frequency"],
            [{"keyword": "x" * 201, "frequency": 1, "relation": "at least"}],
            "needs at most 200",
        ),
        (
            ["keywords:letter_frequency"],
            [{"letter": "ab", "let_frequency": 1, "let_relation": "at least"}],
            "needs one character",
        ),
        (
            ["length_constraints:nth_paragraph_first_word"],
            [{"num_paragraphs": 2, "nth_paragraph": 3, "first_word": "a"}],
            "'nth_paragraph' is beyond num_paragraphs=2",
        ),
    ],
)
def test_what_cannot_be_checked_is_told_at_load(tmp_path, ids, kwargs, told):
    with pytest.raises(DataError) as caught:
        load(tmp_path, row(["punctuation:no_comma"], [{}], key=1), row(ids, kwargs))
    message = str(caught.value)
    assert told in message
    assert "rows.jsonl, line 2, field '" in message
    assert "row 7" in message
    assert "\n" not in message


def test_languages_are_those_of_the_benchmark(tmp_path):
    pytest.importorskip("py3langid")
    with pytest.raises(DataError, match=r"'language' needs one of ar, bg, bn.*value 'tlh'"):
        load(tmp_path, row(["language:response_language"], [{"language": "tlh"}]))
    with pytest.raises(DataError, match="needs one of ar"):
        load(tmp_path, row(["language:response_language"], [{"language": []}]))
    assert len(LANGUAGES) == 30
    assert language_of("\ud800 the cat is on the mat") == "en"
    assert language_of("12 \ud800") is None


@pytest.mark.parametrize("id_", sorted(DETECTED & set(IFEVAL)))
def test_without_the_package_a_row_that_needs_it_is_refused_at_load(tmp_path, monkeypatch, id_):
    monkeypatch.setitem(sys.modules, "py3langid", None)
    _detector.cache_clear()
    kwargs = {"language": "de"} if id_ == "language:response_language" else {}
    with pytest.raises(MissingPackageError, match=r"pip install .\.\[ifeval\]"):
        load(tmp_path, row([id_], [kwargs]))
    assert len(load(tmp_path, row(["punctuation:no_comma"], [{}]))) == 1


@pytest.fixture
def no_garbage_collection():
    """Nothing of other tests is finalized where the stack is full: its error would be this test's."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_garbage_collection")
@pytest.mark.parametrize("gold", ["", "5", "[", "[" * 100_000, "{}", '{"kwargs": []}', "9" * 5000])
def test_a_gold_that_holds_no_constraints_is_a_mistake(gold):
    with pytest.raises((ConstraintError, ValueError)):
        same_answer("x", gold, kind="instructions")


N = 100_000


def test_keywords_ignore_case_and_forbidden_words_are_trimmed():
    assert not met("keywords:forbidden_words", {"forbidden_words": [" word "]}, "a word b")
    assert met("keywords:forbidden_words", {"forbidden_words": [" word "]}, "a wordy b")
    assert met("keywords:forbidden_words", {"forbidden_words": ["b.c", "-", "a b"]}, "xb.c, x-a bc")
    for hit in ("A B", "x. - y", "b.C!", "(b.c)"):
        assert not met("keywords:forbidden_words", {"forbidden_words": ["b.c", "-", "a b"]}, hit), hit
    assert met("keywords:existence", {"keywords": ["ΟΔΟΣ"]}, "οδοσα")
    assert met("keywords:frequency", {"keyword": " aa ", "frequency": 2, "relation": AT_LEAST}, "aAaAa")
    assert not met("keywords:frequency", {"keyword": "aa", "frequency": 3, "relation": AT_LEAST}, "aaaaa")


@pytest.mark.parametrize(
    ("text", "is_json"),
    [
        *(("9" * 5000, True), ('{"a": -' + "9" * 5000 + "}", True), ("[1.5e3, true, null]", True)),
        *(("NaN", False), ("[Infinity]", False), ('{"a": -Infinity}', False), ("01", False), ("", False)),
    ],
)
def test_json_is_what_its_standard_says(text, is_json):
    assert met("detectable_format:json_format", {}, text) == is_json
    assert met("detectable_format:json_format", {}, f"```json\n{text}\n```") == is_json


@pytest.mark.slow
@pytest.mark.parametrize("keyword", ["a" * 199 + "b", "b" + "a" * 199, "a " * 99 + "b", "ab" * 99])
@pytest.mark.parametrize("piece", ["a", "a ", "ab"])
@pytest.mark.usefixtures("ends")
def test_keywords_are_looked_for_in_linear_time(keyword, piece):
    text = piece * (1_000_000 // len(piece))
    met("keywords:existence", {"keywords": [keyword + "x"[: 200 - len(keyword)]] * 64}, text)
    met("keywords:forbidden_words", {"forbidden_words": [keyword] * 64}, text)
    met("keywords:frequency", {"keyword": keyword, "frequency": 1, "relation": AT_LEAST}, text)
