"""Whatever a response holds, every constraint has an outcome."""

import re

from hypothesis import given
from hypothesis import strategies as st

from envs.answers.words import normal_text, same_text
from envs.instructions.ifeval import bullets

TEXT = st.text(st.characters() | st.sampled_from("*-<>[].?!\"'\n ,pPsS"))


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
