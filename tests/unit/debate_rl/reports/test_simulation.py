"""Simulated judges vote as they are told, on solutions that are dealt as they are found in a file."""

from __future__ import annotations

import json
from random import Random

import pytest

from debate import DebateConfig
from debate_rl.reports.simulation import (
    Judges,
    Setting,
    Solved,
    made_solutions,
    read_setting,
    read_solutions,
    simulate_run,
)
from debate_rl.reports.simulation.runs import deal, replay_solutions
from debate_rl.reports.simulation.solutions import answer_of, boxed
from envs import DataError, load_environment
from transcripts import read_records

SHOWN = [("K7", True), ("Q2", False), ("M4", False)]


def outcomes(judges, count=2000):
    """How often the first shown of each pair won, and how many votes it got."""
    won, cast, ties = dict.fromkeys("abc", 0), dict.fromkeys("abc", 0), 0
    pairs = {("K7", "Q2"): "a", ("K7", "M4"): "b", ("Q2", "M4"): "c"}
    for seed in range(count):
        for line in judges.lines(SHOWN, Random(seed)):
            left, sign, right = line.split()
            turned = (left, right) not in pairs
            name = pairs[(right, left) if turned else (left, right)]
            cast[name] += 1
            ties += sign == "="
            won[name] += sign == ("<" if turned else ">")
    return won, cast, ties


def test_perfect_judges_are_always_right():
    won, cast, ties = outcomes(Judges(1.0), 50)
    assert (won["a"], won["b"], ties) == (50, 50, 0)
    assert set(cast.values()) == {50}
    assert 10 < won["c"] < 40  # both wrong: a coin


def test_shares_are_as_set():
    won, cast, ties = outcomes(Judges(0.7, 0.1, ties=0.2, silent=0.25))
    for name, share in (("a", 0.8 * 0.8), ("b", 0.8 * 0.8), ("c", 0.8 * 0.6)):
        assert cast[name] == pytest.approx(0.75 * 2000, abs=70)
        assert won[name] / cast[name] == pytest.approx(share, abs=0.04), name
    assert ties / sum(cast.values()) == pytest.approx(0.2, abs=0.02)


def test_the_place_matters_where_the_right_one_is_second():
    judges = Judges(0.7, 0.1)
    assert judges.first_wins(True, False) == pytest.approx(0.8)
    assert judges.first_wins(False, True) == pytest.approx(0.4)
    assert judges.first_wins(True, True) == judges.first_wins(False, False) == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"accuracy": 1.1}, "accuracy"),
        ({"ties": -0.1}, "ties"),
        ({"silent": float("nan")}, "silent"),
        ({"accuracy": 0.9, "position": 0.2}, "position"),
        ({"position": -0.6}, "position"),
    ],
)
def test_impossible_judges_are_refused(values, field):
    with pytest.raises(ValueError, match=f"^{field}: "):
        Judges(**values)


def written(tmp_path, *rows):
    path = tmp_path / "solutions.jsonl"
    path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows))
    return path


def row(question="2 + 2?", gold="4", output="So 4.", **more):
    return {"question": question, "gold": gold, "output": output} | more


def test_lines_of_one_question_are_one_problem(tmp_path):
    path = written(
        tmp_path,
        row(output=r"So \boxed{5}.", expected=False, level="Level 1"),
        row("3 + 3?", "6", "A: 6"),
        "\n",
        row(output="2 + 2 = 4\nA: 4", expected=True),
    )
    [solved] = read_solutions(path)
    assert (solved.problem.id, solved.problem.answer, solved.problem.level) == ("solutions/0", "4", "Level 1")
    assert solved.texts == (r"So \boxed{5}.", "2 + 2 = 4\nA: 4\n\\boxed{4}")
    assert solved.expected == (False, True)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row(gold=4)], "solutions.jsonl, line 1, field 'gold': must be a text (value 4"),
        ([row(), row(output=" ")], "line 2, field 'output': must be a text"),
        ([row(), row(gold="5")], "line 2, field 'gold': differs"),
        ([row(), row(expected="yes")], "line 2, field 'expected': must be true or false"),
        ([row(), "{"], "line 2: not a line of JSON"),
        (["[1]\n"], "line 1: is not a JSON object"),
        ([row(), row("other")], "no question has two solutions or more"),
        ([], "no question has two solutions or more"),
    ],
)
def test_a_bad_file_is_told_in_one_line(tmp_path, rows, said):
    with pytest.raises(DataError) as error:
        read_solutions(written(tmp_path, *rows))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_an_answer_that_a_debate_reads():
    assert answer_of(boxed("12 * 3 = 36\nA: 36")) == "36"
    assert answer_of(boxed("no idea")) is None


def test_first_solutions_differ_as_far_as_there_are_any():
    [one] = made_solutions(1, seed=3)
    config = DebateConfig(num_agents=8, num_rounds=2)
    dealt = deal(one, [True] * 6, config, seed=5)
    first = [row[0] for row in dealt.texts]
    assert set(first) == set(one.texts)
    assert first[6:] == first[:2]
    assert dealt == deal(one, [True] * 6, config, seed=5)
    other = deal(one, [True] * 6, config, seed=6)
    assert other.texts != dealt.texts


def test_debates_say_what_was_dealt_and_judges_know_the_grader():
    solved = Solved(made_solutions(1, seed=0)[0].problem, ("\\boxed{78}", "\\boxed{79}"), (None, None))
    config = DebateConfig(num_agents=3, num_rounds=2)
    [debate] = replay_solutions([solved], Judges(1.0), config, load_environment("gsm8k"), seed=0)
    assert {turn.parsed.answer for turn in debate.turns if not turn.ballot} == {"78", "79"}
    assert not [failure for turn in debate.turns for failure in turn.parsed.failures]
    answers = {turn.id: turn.parsed.answer for turn in debate.turns}
    assert len(debate.votes) == 6
    for vote in debate.votes:
        sides = answers[vote.left], answers[vote.right]
        if sides[0] != sides[1]:
            assert vote.outcome == ("left" if sides[0] == "78" else "right")


def test_the_same_simulation_is_left_as_it_is_and_another_refused(tmp_path):
    folder, setting = tmp_path / "run", Setting("made", Judges(), debates=3)
    simulate_run(folder, made_solutions(2, seed=0), setting)
    assert read_setting(folder) == setting
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    simulate_run(folder, made_solutions(2, seed=0), setting)
    assert before == {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert [record.debate.problem.id for record in read_records(folder)] == ["made/0", "made/1", "made/0"]
    with pytest.raises(ValueError, match="holds another simulation"):
        simulate_run(folder, [], Setting("made", Judges(0.9), debates=3))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="is not empty and holds no whole simulation"):
        simulate_run(tmp_path / "mine", [], setting)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 2}', '{"schema": 1, "setting": {"judges": 3}}'])
def test_a_foreign_file_is_no_setting(tmp_path, text):
    (tmp_path / "simulation.json").write_text(text)
    assert read_setting(tmp_path) is None
