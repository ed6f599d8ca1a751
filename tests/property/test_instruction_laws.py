"""Whatever a response holds, every constraint has an outcome."""

import re

from hypothesis import example, given
from hypothesis import strategies as st

from envs.answers.texts import normal_text, same_text
from envs.instructions import constraints_of, follows
from envs.instructions.constraints import write_constraints
from envs.instructions.ifeval import DETECTED, IFEVAL, bullets

ALL = {
    "keywords:existence": {"keywords": ["a", ".*"]},
    "keywords:frequency": {"keyword": "(", "frequency": 1, "relation": "at least"},
    "keywords:forbidden_words": {"forbidden_words": ["[", "b"]},
    "keywords:letter_frequency": {"letter": "ß", "let_frequency": 1, "let_relation": "less than"},
    "length_constraints:number_sentences": {"num_sentences": 1, "relation": "less than"},
    "length_constraints:number_paragraphs": {"num_paragraphs": 1},
    "length_constraints:number_words": {"num_words": 1, "relation": "at least"},
    "length_constraints:nth_paragraph_first_word": {
        "num_paragraphs": 1,
        "nth_paragraph": 1,
        "first_word": "a",
    },
    "detectable_content:number_placeholders": {"num_placeholders": 1},
    "detectable_content:postscript": {"postscript_marker": "\\"},
    "detectable_format:number_bullet_lists": {"num_bullets": 1},
    "detectable_format:constrained_response": {},
    "detectable_format:number_highlighted_sections": {"num_highlights": 1},
    "detectable_format:multiple_sections": {"section_spliter": "(?", "num_sections": 1},
    "detectable_format:json_format": {},
    "detectable_format:title": {},
    "combination:two_responses": {},
    "combination:repeat_prompt": {"prompt_to_repeat": "a"},
    "startend:end_checker": {"end_phrase": "a"},
    "change_case:capital_word_frequency": {"capital_frequency": 1, "capital_relation": "at least"},
    "punctuation:no_comma": {},
    "startend:quotation": {},
}
CONSTRAINTS = constraints_of(write_constraints(list(ALL), list(ALL.values())))
TEXT = st.text(st.characters() | st.sampled_from("*-<>[].?!\"'\n ,pPsS"))


def test_all_but_those_that_need_a_package_are_tried():
    assert set(ALL) | DETECTED >= set(IFEVAL)


@given(TEXT)
@example("")
@example("\ud800")
@example("[" * 5000)
def test_every_text_has_an_outcome_and_loose_is_an_upper_bound(text):
    strict, loose = follows(text, CONSTRAINTS), follows(text, CONSTRAINTS, loose=True)
    assert len(strict) == len(loose) == len(CONSTRAINTS)
    assert all(b or not a for a, b in zip(strict, loose, strict=True))


@given(TEXT, TEXT)
def test_text_answers_are_compared_without_an_exception(answer, gold):
    assert same_text(gold.split("\n")[0], gold)
    assert same_text(answer, gold) == any(normal_text(answer) == normal_text(one) for one in gold.split("\n"))
    assert normal_text(normal_text(answer)) == normal_text(answer)


@given(st.text(st.sampled_from("*-a \n\t\r\x1d"), max_size=30))
def test_bullets_are_those_of_the_published_expressions(response):
    published = (r"^\s*\*[^\*].*$", r"^\s*-.*$")
    found = sum(len(re.findall(pattern, response, flags=re.MULTILINE)) for pattern in published)
    assert bullets(response) == found
