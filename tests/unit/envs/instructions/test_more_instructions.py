"""IFBench, Open-Instruct and RLVR-IFeval: edges worked out by hand, and hostile responses."""

from __future__ import annotations

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


# (instruction, arguments, responses that follow it, responses that do not)
EDGES = [
    ("count:unique_word_count", {"N": 3}, ["a b c."], ["a b B", "a, a. (a)"]),
    ("count:conjunctions", {"small_n": 1}, ["(and)"], ["sand", "however"]),
    ("count:person_names", {"N": 1}, ["Ava's cat"], ["Avatar", "emma"]),
    ("count:pronouns", {"N": 2}, ["she/her", "I'm sure you're"], ["the sheep", "hers"]),
    ("count:numbers", {"N": 1}, ["2,000.50", "in 1999"], ["none", "1 and 2"]),
    ("count:words_japanese", {"N": 1}, ["猫 3 -- 犬"], ["猫 cat"]),
    ("ratio:stop_words", {"percentage": 0}, ["cats sleep"], ["the cats", "..."]),
    ("ratio:sentence_type", {}, ['He said "so." It is. Why?', "no mark"], ["Why?"]),
    ("ratio:overlap", {"reference_text": "abc", "percentage": 100}, ["abc"], ["ab", "abcd"]),
    ("ratio:sentence_words", {}, ["Aa. Bb. Cc."], ["Aa. Bb.", "Aa. Bb. Ccc."]),
    ("sentence:increment", {"small_n": 2}, ["One.", "A b. C d e f."], ["A b. C d e."]),
    ("sentence:keyword", {"word": "a.b", "N": 1}, ["see a.b now"], ["see axb", "a.bc"]),
    ("words:alphabet", {}, ["Zoo ants", "x"], ["1 a", "...", "a c"]),
    ("words:consonants", {}, ["THIS acts"], ["a"]),
    ("words:prime_lengths", {}, ["it's now"], ["four"]),
    ("words:odd_even_syllables", {}, ["the table", "cat"], ["apple table"]),
    ("words:start_verb", {}, ["Running late", "**Build** it", "Is it"], ["A run", "1. Go", "?"]),
    ("words:last_first", {}, ["One two. Two!", "One"], ["One two. One."]),
    ("words:words_position", {"keyword": " so "}, ["be so be so be!", "is so is"], ["so", "be it so be"]),
    ("format:parentheses", {}, ["([{([x])}])"], ["(((((", "([{([x})])", "(((( ]((((x))))"]),
    ("format:quotes", {}, ['"\'"x"\'"'], ["\"x\" 'y'", 'it\'s "so"']),
    ("format:options", {"options": "a), b), c), d)"}, ["b)"], ["b", "B)", "b)."]),
    ("format:options", {"options": ["I know", "I don't know"]}, ["i know."], ["I know it"]),
    ("format:newline", {}, ["a\n\nb.", "one"], ["a b\nc", "--"]),
    ("format:emoji", {}, ["Hi. 😀 Bye. 👋", "Hi ❤️."], ["Hi. Bye. 👋", "..."]),
    ("format:line_indent", {}, ["a\n\n\n b", "one"], ["a\nb", " a\nb"]),
    ("format:quote_unquote", {}, ["“a” b", "the mark '\"' is"], ['"a" "b" c', 'so "a".']),
    ("format:thesis", {}, ["x <em>so</em> y"], ["<i></i> x", "<i>so</i>", "</i> <i>"]),
    ("format:no_bullets_bullets", {}, ["Yes. No.\n* c\n* d"], ["Yes. No.\n* c", "Yes. No.\n* c\n* d\nE."]),
    ("format:title_case", {}, ["NASA And I", "3 Cats"], ["a Cat"]),
    ("repeat:repeat_change", {"prompt_to_repeat": "a b"}, ["c b"], ["a b", "c  b c"]),
    ("custom:date_format_list", {}, ["1796-02-29"], ["1797-02-29", "1805-12-02 and", "1900-01-01", ""]),
    ("custom:csv_city", {}, [], ["", '"', "ID,Country,City,Year,Count\n" * 8 + "x"]),
    (
        "copy:repeat_phrase",
        {"phrase": "a b c d", "small_n": 1},
        ["so a x c d."],
        ["a b c d", "a x y d", "a x c\nd"],
    ),
    ("detectable_format:sentence_hyphens", {}, ["Only one."], ["A well-known fact.", "One. -Two."]),
    ("keywords:start_end", {}, ["So, so"], ["so", "so it", "(so it is so)"]),
    ("first_word:first_word_sent", {"first_word": ["So"]}, ["so it is."], ["thus. so."]),
    ("paragraphs:paragraphs", {}, ["***\na *** b\n***"], ["a", "a *** b *** c", "a *** *** b"]),
    ("letters:letter_counting", {"N": 2, "relation": "less than"}, ["é 1 a"], ["ab"]),
    ("count:count_unique", {}, ["A a, b."], ["b, b"]),
    ("verify_keyword_frequency", {"word": "cat", "N": 0}, ["cats"], ["CAT"]),
    ("verify_sentence_constraint", {"N": 1, "quantifier": "at most"}, ["Mr. X, e.g. you"], ["Yes. It"]),
    (
        "verify_sentence_constraint",
        {"N": 3, "quantifier": "around"},
        ["A. B. C. D."],
        ["A", "A. B. C. D. E."],
    ),
    ("validate_word_constraint", {"N": 5, "quantifier": "around"}, ["a b c d"], ["a b c"]),
    ("validate_paragraphs", {"N": 1, "first_word": "So", "i": 1}, ["Soon"], ["so", "So\n\nb"]),
    ("validate_choice", {"options": "yes or no"}, ["yes"], ["maybe"]),
    ("validate_title", {}, ["a <<>> b"], ["<<a\n>>"]),
    ("validate_sections", {"N": 1, "section_splitter": "Part"}, ["Part one", "none"], ["x Part y"]),
    ("validate_json_format", {}, ['{"a": 1}'], ["NaN", "[" * 100_000]),
    ("validate_two_responses", {}, ["a ****** b"], ["a", "a******b******c"]),
    ("validate_frequency_capital_words", {"N": 1, "quantifier": "at least"}, ["a NASA1 B"], ["Nasa"]),
]


@pytest.mark.parametrize(("id_", "arguments", "good", "bad"), EDGES, ids=[case[0] for case in EDGES])
def test_an_edge(id_, arguments, good, bad):
    assert [response for response in good if not met(id_, response, **arguments)] == []
    assert [response for response in bad if met(id_, response, **arguments)] == []


def test_there_are_as_many_as_published():
    assert len(TYPES) == 25 + 58 + 29 + 25
    assert set(ARGUMENTS) == set(TYPES)


def test_arguments_that_contradict_each_other_are_refused():
    for id_, arguments in (
        ("count:word_count_range", {"min_words": 3, "max_words": 2}),
        ("validate_paragraphs", {"N": 1, "first_word": "a", "i": 2}),
        ("repeat:repeat_span", {"prompt_to_repeat": "abc", "n_start": 2, "n_end": 1}),
    ):
        with pytest.raises(ConstraintError, match="is beyond"):
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
    assert [is_verb(word) for word in ("stopped", "carries", "making", "Sing", "thing", "tables")] == [
        *(True, True, True, True, False, False)
    ]


N = 60_000
PIECES = (
    "a ",
    "a. ",
    "A? ",
    "*",
    "-",
    "<<",
    "<i>",
    "[",
    "(",
    '"',
    "'",
    "\n",
    "Question 1: ",
    "A. x\n",
    "😀",
    "a,",
    "\t",
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


CONSTRAINTS = [
    constraint for id_ in CHECKED for constraint in constraints_of(write_constraints([id_], [ARGUMENTS[id_]]))
]


@given(st.text(st.characters() | st.sampled_from(".?!\"'()[]{}*-<> \n\t,;:abAB12😀")))
def test_every_text_has_an_outcome_and_loose_is_an_upper_bound(text):
    strict, loose = follows(text, CONSTRAINTS), follows(text, CONSTRAINTS, loose=True)
    assert len(strict) == len(CHECKED)
    assert all(b or not a for a, b in zip(strict, loose, strict=True))
