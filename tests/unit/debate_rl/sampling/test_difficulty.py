"""Files of measured pass rates: what is kept, what is left out, and what is refused, in one line."""

import json

import pytest

from debate import Problem
from debate_rl.config.data import DifficultyConfig
from debate_rl.evaluation.scores import Scores
from debate_rl.sampling import difficulty
from debate_rl.sampling.difficulty import by_difficulty, read_difficulty, write_difficulty
from envs import DataError
from envs.errors import DataWarning

PROBLEMS = tuple(Problem(f"p{n}", f"{n}?", str(n)) for n in range(5))
RATES = [(0, 4, 0), (1, 4, 3), (2, 4, 0), (3, 4, 1), (4, 4, 0)]
"""Right, samples, missing."""


def rows(count=5):
    of = zip(PROBLEMS, RATES[:count], strict=False)
    return [
        difficulty.Difficulty(problem.id, difficulty.question_checksum(problem), *rate)
        for problem, rate in of
    ]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rates.jsonl"


def kept(path, problems=PROBLEMS, **settings):
    found, left_out = by_difficulty(problems, DifficultyConfig(path=str(path), **settings))
    return [problem.id for problem in found], {cause: count for cause, count in left_out.items() if count}


def test_what_was_written_is_read(path):
    write_difficulty(path, {"model": "m", "samples": 4}, rows())
    measured = read_difficulty(str(path))
    assert measured.of == {"model": "m", "samples": 4}
    assert [row.pass_rate for row in measured.rows.values()] == [0, 0.25, 0.5, 0.75, 1]
    assert measured.rows["p1"].missing_share == 0.75


def test_problems_are_left_out_by_their_rates(path):
    write_difficulty(path, {}, rows())
    assert kept(path) == (["p0", "p1", "p2", "p3", "p4"], {})
    left_out = {"below at_least": 1, "above at_most": 1}
    assert kept(path, at_least=0.01, at_most=0.99) == (["p1", "p2", "p3"], left_out)


def test_ids_that_match_nothing(path):
    write_difficulty(path, {}, rows())
    with pytest.warns(DataWarning, match=r"3 of 5 ids match no training problem, such as 'p2'"):
        assert kept(path, PROBLEMS[:2])[0] == ["p0", "p1"]
    others = [Problem("counting_and_probability_46", "?")]
    with pytest.raises(DataError, match=r"none of its 5 ids, such as 'p0', belongs to a training problem"):
        kept(path, others)


def test_strata_stand_in_the_order_of_their_pass_rates():
    named = {f"p{rank}": name for rank, (_, name) in enumerate(difficulty.BANDS)}
    problems = {id: Problem(id, "?") for id in sorted(named, reverse=True)}
    groups = Scores({}, problems, 1, bands=named).groups("pass rate")
    assert list(groups) == ["0", "to .25", "to .5", "to .75", "below 1", "1"]


HEAD, ROW = {"format": 1, "of": {}}, {"id": "p", "question": "", "right": 0, "samples": 2}


@pytest.mark.parametrize(
    ("lines", "match"),
    [
        ([], "is empty; debate eval passrate writes"),
        ([HEAD], "has no problems"),
        ([HEAD, ROW | {"right": 3}], "3 .* of 2 samples"),
        ([HEAD, ROW, ROW], "twice"),
    ],
)
def test_damaged_files_are_named_by_line(path, lines, match):
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with pytest.raises(DataError, match=match):
        read_difficulty(str(path))
