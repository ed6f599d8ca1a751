"""IFBench, Open-Instruct and RLVR-IFeval: edges worked out by hand, and hostile responses."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs.instructions import ConstraintError, constraints_of, follows
from envs.instructions.constraints import TYPES, write_constraints
from envs.instructions.ifeval import DETECTED
from envs.instructions.text import is_verb, sentences, syllables, words

TABLE = Path(__file__).parents[3] / "data/instructions.tsv"
ROWS = (line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines() if "\t" in line)
ARGUMENTS = {row[0]: json.loads(row[1]) for row in ROWS}
CHECKED = [id_ for id_ in TYPES if id_ not in DETECTED]


def met(id_: str, response: str, **arguments: object) -> bool:
    [outcome] = follows(response, constraints_of(write_constraints([id_], [arguments])))
    return outcome


def test_there_are_as_many_as_published():
    assert len(TYPES) == 25 + 58 + 29 + 25
    assert set(ARGUMENTS) == set(TYPES)


def test_arguments_that_contradict_each_other_are_refused():
    for id_, arguments in (
        ("count:word_count_range", {"min_words": 3, "max_words": 2}),
        ("validate_paragraphs", {"N": 1, "first_word": "a", "i": 2}),
        ("repeat:repeat_span", {"prompt_to_repeat": "abc", "n_start": 2, "n_end": 1}),
    ):
        with pytest.raises(ConstraintError, match="is greater than"):
            write_constraints([id_], [arguments])
    with pytest.raises(ConstraintError, match="needs one of"):
        write_constraints(["validate_word_constraint"], [{"N": 3, "quantifier": "less than"}])


def test_gaps_of_a_published_row_are_no_arguments():
    gaps = {"N": 2.0, "keyword1": None, "percentage": None, "options": None}
    assert json.loads(write_constraints(["count:numbers"], [gaps]))["kwargs"] == [{"N": 2}]


def test_sentences_words_and_syllables():
    assert sentences(' "Go!" he said. So what? ') == ['"Go!"', "he said.", "So what?"]
    assert words("state-of-the-art, it's 3.5% — or so.") == ["state-of-the-art", "it's", "3.5", "or", "so"]
    spoken = ("apple", "people", "nation", "quiet", "created", "lion", "boxes", "walked")
    assert [syllables(word) for word in spoken] == [2, 2, 2, 2, 3, 2, 2, 1]
    assert all(map(is_verb, ("stopped", "carries", "making", "Sing")))
    assert not any(map(is_verb, ("thing", "tables")))


N = 60_000
PIECES = (
    *("a ", "a. ", "A? ", "*", "-", "<<", "<i>", "[", "(", '"', "'", "\n", "Question 1: ", "A. x\n", "😀"),
    *("a,", "\t"),
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", [*PIECES, "Time ", "\ud800", "\0", "9", "9999-99-99,", "1,\n", '",'], ids=ascii
)
@pytest.mark.usefixtures("ends")
def test_hostile_responses_take_linear_time_and_raise_nothing(piece):
    text = piece * (N // len(piece))
    for id_ in CHECKED:
        follows(text, constraints_of(write_constraints([id_], [ARGUMENTS[id_]])))


WRITTEN = [write_constraints([id_], [ARGUMENTS[id_]]) for id_ in CHECKED]
CONSTRAINTS = [constraint for gold in WRITTEN for constraint in constraints_of(gold)]


@given(st.text(st.characters() | st.sampled_from(".?!\"'()[]{}*-<> \n\t,;:abAB12😀")))
def test_every_text_has_an_outcome_and_loose_is_an_upper_bound(text):
    strict, loose = follows(text, CONSTRAINTS), follows(text, CONSTRAINTS, loose=True)
    assert len(strict) == len(CHECKED)
    assert all(b or not a for a, b in zip(strict, loose, strict=True))
