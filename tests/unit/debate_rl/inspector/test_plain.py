import io
import json
import re
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from debate.types import TurnId
from debate_rl.inspector import plain
from transcripts import RunStore, write_step

from .conftest import judged, make, printed_debate, solved, with_turn

SGR = re.compile(r"\x1b\[[0-9]+m")


@pytest.fixture
def store(circle, tmp_path):
    """Step 5: the circle, and a debate that all solved; step 6: one of nobody's votes."""
    easy = make([[solved(4)] * 3, [solved(4, "K7 = Q2")] * 3], own=True)
    quiet = replace(make([[solved(4), "none", solved(5)]]), step=6)
    write_step(tmp_path / "run/transcripts", 5, [circle, easy])
    write_step(tmp_path / "run/transcripts", 6, [quiet])
    with RunStore.open(tmp_path / "run") as opened:
        yield opened


def printed(show, *arguments, colour=False, width=None, as_json=False, **options):
    stream = io.StringIO()
    result = show(*arguments[:1], plain.Printer(stream, colour, width, as_json), *arguments[1:], **options)
    return result, stream.getvalue()


def test_a_list_has_headings_and_a_line_a_debate(store):
    (total, last), text = printed(plain.print_list, store)
    assert (total, last) == (3, None)
    assert [" ".join(line.split()) for line in text.splitlines()] == [
        "debate winner accuracy judge flags votes malformed problem level tokens",
        "5.0 ✓ right .33→1.00 .50 cycle ✗→✓:2 5 2 p/1 Level 1 626",
        "5.1 ✓ right 1.00→1.00 – 3 0 p/1 Level 1 408",
        "6.0 · none .33→.33 – missing 0 1 p/1 Level 1 78",
    ]


def test_a_page_says_where_the_next_begins(store):
    (total, last), text = printed(plain.print_list, store, limit=2)
    assert (total, last, len(text.splitlines())) == (3, "5.1", 3)
    (_, last), text = printed(plain.print_list, store, limit=2, after="5.1")
    assert (last, text.splitlines()[1].split()[0]) == (None, "6.0")
    (_, last), text = printed(plain.print_list, store, limit=1, newest=True)
    assert (last, text.splitlines()[1].split()[0]) == ("6.0", "6.0")
    assert printed(plain.print_list, store, "step:99") == ((0, None), "")


@pytest.mark.parametrize(("width", "more"), [(30, 8), (45, 7), (60, 7), (200, 0)])
def test_on_a_terminal_the_lines_fit_and_what_is_left_out_is_told(store, width, more):
    _, text = printed(plain.print_list, store, colour=True, width=width)
    *lines, last = [SGR.sub("", line) for line in text.splitlines()]
    assert last == f"{more} columns more in a wider terminal or with --json" if more else len(lines) == 3
    assert lines[0].startswith("debate")
    assert max(map(len, lines)) <= width
    assert "\x1b[32m✓ right" in text


def test_a_list_in_json_has_the_fields_of_filters(store):
    _, text = printed(plain.print_list, store, as_json=True)
    rows = [json.loads(line) for line in text.splitlines()]
    first = rows[0]
    assert (first["id"], first["step"], first["problem"], first["source"]) == ("5.0", 5, "p/1", "sums")
    names = ("winner", "winner_agent", "cycle", "condorcet", "accuracy_round_0", "judge_accuracy")
    assert [first[name] for name in names] == ["right", 0, True, False, pytest.approx(1 / 3), 0.5]
    assert (first["flip"]["WC"], first["personas"]) == (2, ["Analyst", "Advocate", "Solver"])
    assert [rows[2][name] for name in ("winner", "condorcet", "judge_accuracy")] == ["none", None, None]


def test_figures_by_step_and_of_all(store):
    _, text = printed(plain.print_figures, store)
    head, *lines = [line.split() for line in text.splitlines()]
    assert head[:5] == ["step", "debates", "accuracy", "winner", "judge"]
    wanted = ["5 2 .67→1.00 1.00", "6 1 .33→.33 –", "all 3 .56→.78 1.00"]
    assert [" ".join(line[:4]) for line in lines] == wanted
    _, text = printed(plain.print_figures, store, "step:6", as_json=True)
    body = json.loads(text)
    assert (body["schema"], body["filter"], [row["step"] for row in body["steps"]]) == (1, "step:6", [6])
    assert (body["overall"]["debates"], body["overall"]["step"]) == (1, None)
    assert body["overall"]["reward_truth"] == pytest.approx(1 / 3)
    _, text = printed(plain.print_figures, store, "step:6", width=80)
    assert max(map(len, text.splitlines())) <= 80


def test_a_winner_by_lot_is_named(tied):
    assert ", drawn among K7, Q2, M4" in printed_debate(tied)
    assert json.loads(printed_debate(tied, as_json=True))["tied"] == [[0, 0], [1, 0], [2, 0]]


def test_a_debate_is_shown_whole(circle):
    text = printed_debate(circle)
    for part in (
        "debate 5.0: p/1 (sums, Level 1, number, 3 agents, 2 rounds, step 5, seed 7, policy version 3)",
        "    What is 2 + 2?",
        "gold answer: 4",
        "winner: K7 Analyst, round 1, ✓ right",
        "Q2 Advocate, turn 1.0",
        "answer 5 ✗ wrong",
        "reward     generator: peer +1.00, truth +1.00 · judge none · format +0.00",
        "K7 > M4",
        "no: duplicate",
        "– Q2: no vote, not a comparison: K7 ? M4",
        "↻ the majorities form a cycle: K7, Q2, M4",
        "not a comparison K7 ? M4 line 3, column 1",
    ):
        assert part in text, part
    assert not any(part in text for part in ("<solution>", "\x1b", "drawn among"))
    coloured = printed_debate(circle, colour=True)
    assert "\x1b[31m✗ wrong\x1b[0m" in coloured
    assert SGR.sub("", coloured) == text


def test_hostile_text_is_safe_everywhere(circle):
    """In the problem, the personas, the handles, the replies, the votes and what is malformed."""
    evil = "\x1b[2J\x9b1m\r\u202e\x07"
    problem = type(circle.debate.problem)(f"p{evil}", f"What{evil}?", f"4{evil}", evil, evil)
    replies = [[solved(evil), solved(4), "x" + evil], [judged(f"K7 > M4 {evil}\nK7 ? {evil}")] * 3]
    record = make(replies, problem=problem)
    record = with_turn(record, TurnId(0, 0), handle=evil)
    for options in ({}, {"raw": True}, {"as_json": True}):
        text = printed_debate(record, **options)
        assert all(line.isprintable() for line in text.split("\n"))
    assert json.loads(text)["problem"]["question"] == f"What{evil}?"


def test_a_debate_in_json(circle):
    body = json.loads(printed_debate(circle, as_json=True))
    assert (body["schema"], body["id"], body["winner"], body["judged_round"]) == (1, "5.0", [0, 1], 1)
    turn = body["turns"][4]
    assert (turn["id"], turn["grade"], turn["answer"]) == ([1, 1], "right", "4")
    assert turn["rewards"]["truth"] == 1.0
    assert [piece["kind"] for piece in turn["pieces"]][1] == "solution"
    assert [graph["cycles"] for graph in body["graphs"]] == [[[[0, 0], [1, 0], [2, 0]]], []]
    assert body["answers"][0] == {"id": [0, 0], "answer": "4", "number": 0, "grade": "right"}
    assert body["copies"][0] == {"source": [0, 0], "target": [1, 1]}
    assert body["failures"][0]["failures"][0]["reason"] == "not_a_comparison"


def test_a_search_shows_where_the_words_stand(store):
    found, text = printed(plain.print_matches, store, r"\boxed{5}")
    line = r": <solution>It is \boxed{5}.</solution>"
    assert (found, text.splitlines()) == (2, [f"5.0 1.0{line}", f"6.0 2.0{line}"])
    found, text = printed(plain.print_matches, store, "IT is", "step:6", as_json=True)
    match = {"id": "6.0", "turn": [0, 0], "start": 10, "end": 15, "before": "<solution>", "match": "It is"}
    assert json.loads(text.splitlines()[0]) == match | {"after": r" \boxed{4}.</solution>"}
    assert printed(plain.print_matches, store, "it is", limit=1)[0] == 6
    assert printed(plain.print_matches, store, "nowhere") == (0, "")


@pytest.mark.parametrize(
    ("words", "text", "found"),
    [
        ("two words", "Two  \n words, two-words; two wordsmiths", ["Two  \n words", "two-words"]),
        ("resume", "résumé Re\u0301sume\u0301 resumed", ["résumé", "Re\u0301sume\u0301"]),
        ("deriv*", "derive (DERIVATION) underived", ["derive", "DERIVATION"]),
        ("a > b", "a  >\nb; a>b; A > b", ["a  >\nb", "A > b"]),
        ("日本", "日本 日本語", ["日本"]),
        ("x_1", "x_1 x_12", ["x_1"]),
        ("ß", "Straße ß", ["ß"]),
    ],
)
def test_words_are_found_as_text_finds_them(words, text, found):
    assert [text[start:end] for start, end in plain.matches(words, text)] == found


WORDS = st.sampled_from(["one", "Two", "öne", "x", "(", "{4}", "=", " ", "\n", "_", "é", "\u0301", "日本"])


@given(
    st.lists(WORDS, max_size=9).map("".join), st.sampled_from(["one", "two x", "x", "öne", "日本", "x = x"])
)
@example("x =\n x", "x = x")
def test_a_match_lies_in_the_text(text, words):
    assert all(0 <= start < end <= len(text) for start, end in plain.matches(words, text))


def test_a_debate_that_is_found_has_a_match(store):
    for words in ("it is", "fine", "K7 > M4", "boxed*", "nothing", "4"):
        ids = {row.id for row in store.debates(f'text:"{words}"')}
        _, text = printed(plain.print_matches, store, words)
        assert {line.split()[0] for line in text.splitlines()} == ids, words


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "colour", "fits"),
    [
        (io.StringIO, {"TERM": "xterm"}, False, False),
        (Terminal, {"TERM": "xterm"}, True, True),
        (Terminal, {"TERM": "xterm", "NO_COLOR": "1"}, False, True),
        (Terminal, {"TERM": "xterm", "NO_COLOR": ""}, True, True),
        (Terminal, {"TERM": "dumb"}, False, True),
    ],
)
def test_colour_and_width_are_a_terminals(monkeypatch, stream, environment, colour, fits):
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    printer = plain.printer_for(stream())
    assert (printer.colour, printer.width is not None) == (colour, fits)


def test_figures_too_large_to_be_added_are_null(run):
    with RunStore.open(run) as store:
        [row] = store.debates(limit=1)
        huge = replace(row, facts=row.facts._replace(reward_peer=float("inf"), reward_truth=float("nan")))
        found = plain.row_json(huge)
        figures = plain.json_of(replace(store.overall(), reward_judge=-float("inf")))
    assert (found["reward_peer"], found["reward_truth"], figures["reward_judge"]) == (None, None, None)
    assert found["reward_judge"] == row.facts.reward_judge
    json.dumps([found, figures], allow_nan=False)
