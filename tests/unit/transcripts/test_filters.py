import re

import pytest

from transcripts import FilterError, RunStore, compile_filter
from transcripts.filters.fields import FIELDS
from transcripts.filters.parse import All, Any, Not, Term, Value, parse


def term(name: str, value: str, start: int = 0, op: str = "=", *, quoted: bool = False) -> Term:
    return Term(
        name, op, (Value(value, start + len(name) + 1 + (len(op) if op != "=" else 0), quoted),), start
    )


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("", All(())),
        ("step:1 votes:2", All((term("step", "1"), term("votes", "2", 7)))),
        ("-step:1", All((Not(All((term("step", "1", 1),)).parts[0]),))),
        ("step:>=1", All((term("step", "1", op=">="),))),
        ("(step:1)", All((All((term("step", "1", 1),)),))),
        ("(answer:f(x))", All((All((term("answer", "f(x)", 1),)),))),
        ("step:1 OR step:2", Any((All((term("step", "1"),)), All((term("step", "2", 10),))))),
        ("ORder:1", All((term("ORder", "1"),))),
        ("Target  17 ", All((Term("text", "=", (Value("Target  17", 0, True),), 0),))),
        (
            "a OR step:1",
            Any((All((Term("text", "=", (Value("a", 0, True),), 0),)), All((term("step", "1", 5),)))),
        ),
        (r"answer:\frac{1}{2}", All((term("answer", r"\frac{1}{2}"),))),
    ],
)
def test_trees(text, tree):
    assert parse(text) == tree


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("winer:wrong", 0, "unknown field 'winer'; did you mean 'winner'?"),
        (
            "winner:rong",
            7,
            "winner must be one of none, right, wrong, ungraded; got 'rong'; did you mean 'wrong'?",
        ),
        ("step:abc", 5, "step takes a number, as in step:>200; got 'abc'"),
        ("step:none", 5, "step takes a number"),
        ("step:>", 6, "expected a value after 'step:>'"),
        ("step:..", 5, "a range needs a number"),
        ("step:1e999", 5, "1e999 is too large"),
        ("seed:" + "9" * 400, 5, "is too large"),
        ("winner:wrong step(", 17, "expected a colon and a value after 'step', as in winner:wrong"),
        ("Target NOT x(", 12, 'to search words: text:"x"'),
        ("step:1 ) step:2", 7, "this parenthesis was never opened"),
        ('text:"abc', 5, "this quote is never closed"),
        ("step:1 OR", 7, "OR needs something on both sides"),
        ("step:1 -", 7, "there is nothing to negate"),
        ("(NOT )", 1, "there is nothing to negate"),
        ('text:"+++"', 5, "text needs at least one letter or digit"),
        ("flip:CX", 5, "flip must be one of CC, CW, WC, WW; got 'CX'"),
        ("cycle:yes..no", 6, "cycle must be one of yes, no; got 'yes..no'"),
        ("(" * 60, 51, "more than 50 levels"),
        (" ".join(["step:1"] * 201), 1400, "a filter may have at most 200 terms"),
    ],
)
def test_an_error_points_at_the_character(text, position, problem):
    with pytest.raises(FilterError) as caught:
        compile_filter(text)
    assert (caught.value.position, problem in caught.value.problem) == (position, True), caught.value


def test_an_error_shows_the_place():
    with pytest.raises(FilterError) as caught:
        compile_filter("step:>3 winer:wrong")
    told = "filter, character 8: unknown field 'winer'; did you mean 'winner'?"
    assert str(caught.value) == f"{told}\n  step:>3 winer:wrong\n          ^"
    with pytest.raises(FilterError) as caught:
        compile_filter("step:1 " * 30 + "\x1b[2J")
    line, caret = caught.value.shown().splitlines()
    assert line.isprintable()
    assert line[len(caret) - 1 :] == " [2J"


def test_the_example_of_every_field_is_a_filter():
    for field in FIELDS.values():
        compile_filter(field.example)


def test_values_never_become_sql():
    query = compile_filter("""problem:"x'); DROP TABLE debates; --" level:a'b* answer:?""")
    assert "DROP" not in query.where
    assert query.parameters == ("x'); DROP TABLE debates; --", "a'b*", "?")


@pytest.mark.parametrize(
    ("bare", "written"),
    [
        ("winner:wrong two shells", 'winner:wrong text:"two shells"'),
        ("two shells winner:wrong 7", 'text:"two shells" winner:wrong text:"7"'),
        ("-shells lost", '-text:"shells" text:"lost"'),
        ("(a b) OR vote:wrong c", '(text:"a b") OR vote:wrong text:"c"'),
    ],
)
def test_bare_words_are_searched_anywhere_in_a_filter(bare, written):
    shown = re.compile(r"start=\d+")
    assert shown.sub("", str(parse(bare))) == shown.sub("", str(parse(written)))


def test_a_wrong_vote_is_one_on_a_decidable_pair(run):
    with RunStore.open(run) as store:
        rows = {row.id: row.facts.judge_accuracy for row in store.debates(limit=100)}
        assert {row.id for row in store.debates("vote:wrong", limit=100)} == {
            id for id, accuracy in rows.items() if accuracy is not None and accuracy < 1
        }
        assert store.count("vote:wrong") + store.count("vote:right -vote:wrong") + sum(
            accuracy is None for accuracy in rows.values()
        ) == len(rows)
