"""What a run is refused for, or warned of, before it begins."""

import warnings

import pytest

from debate import Problem
from debate_rl.config import Config
from debate_rl.preflight.start import SchemeWarning, check_labels, check_prompts, refuse_modes
from debate_rl.sampling.load_problems import Problems

NUMBER = Problem("n", "1 + 1?", "2", kind="number")
DIFFICULTY = {"kind": "pair_sum", "difficulty": {"path": "rates.jsonl"}}
LETTER = Problem("c", "Which?", "A", kind="choice", choices=("x", "y"))


def config(grader=None, **debate):
    tables = {"num_agents": 1, "num_rounds": 1, **debate}
    return Config.model_validate({"model": {"tiny": {}}, "grader": grader or {}, "debate": tables})


def data(*problems):
    return Problems(None, problems, (), {}, None)


@pytest.mark.parametrize(
    ("grader", "problem", "key"),
    [
        ({"mode": "first_letter"}, NUMBER, "mode"),
        ({"mode": "math_verify"}, LETTER, "mode"),
        ({"mode": [[0, "lenient"], [3, "minerva_exact"]]}, LETTER, "mode"),
        ({"beside": ["boxed", "first_letter"]}, NUMBER, "beside"),
    ],
)
def test_a_mode_that_a_kind_does_not_have_is_refused(grader, problem, key):
    with pytest.raises(ValueError, match=rf"grader\.{key} = '\w+': cannot read the answer of {problem.id}"):
        refuse_modes(config(grader), data(problem))
    refuse_modes(config({"mode": "lenient", "beside": ["boxed", "gsm8k_flexible_extract"]}), data(NUMBER))
    refuse_modes(config({"mode": "first_letter", "beside": ["lenient"]}), data(LETTER))


def test_a_family_that_asks_for_no_box_is_said_where_a_box_alone_counts():
    with pytest.warns(SchemeWarning, match=r'reads only boxed answers, but no prompt asks .* = "qa"'):
        check_prompts(config(prompts="qa"), data(NUMBER))
    with warnings.catch_warnings(action="error"):
        check_prompts(config(prompts="boxed"), data(NUMBER))
        check_prompts(config({"mode": "lenient"}, prompts="qa"), data(NUMBER))
        check_prompts(config(), data(NUMBER))


@pytest.mark.parametrize(
    ("table", "match"),
    [
        ({"strict_mode": "boxed"}, "it is now mode, as in grader.mode = "),
        ({"mode": [[3, "boxed"]]}, "must begin with step 0, got 3"),
        ({"mode": "boxd"}, "Input should be"),
    ],
)
def test_a_grader_that_cannot_be_is_refused(table, match):
    with pytest.raises(ValueError, match=match):
        config(table)
    with pytest.raises(ValueError, match=r"path: 'x'"):
        Config.model_validate({"model": {"tiny": {}}, "shots": {"path": "x"}})


def labelled(**tables):
    return Config.model_validate({"model": {"tiny": {}}, "env": {"kind": "pair_sum"}} | tables)


OPEN = Problem("o", "Why?", kind="open")


@pytest.mark.parametrize(
    ("tables", "problems", "message"),
    [
        ({"rewards": {"labels": 0.5}}, [OPEN], "rewards.labels = 0.5: no training problem"),
        ({"rewards": {"label_levels": ["9"]}}, [NUMBER], "no training problem .* has level '9'"),
        ({"rewards": {"label_levels": ["9"]}}, [OPEN], "rewards.label_levels: no training problem"),
        (
            {"rewards": {"labels": 0.0, "peer_weight": "measured"}},
            [NUMBER],
            'peer_weight = "measured": rewards.labels = 0, but votes are measured on problems with labels',
        ),
        ({"rewards": {"peer_weight": "measured"}}, [OPEN], "no training problem has a gold answer"),
        ({"rewards": {"pseudo": "voted"}}, [NUMBER], r"every problem has a label.*rewards.labels below 1"),
        ({"rewards": {"labels": 0.5}, "env": DIFFICULTY}, [NUMBER], "measured pass rates .* reveal them"),
    ],
)
def test_labels_that_nobody_has_or_that_something_else_reads_are_refused(tables, problems, message):
    with pytest.raises(ValueError, match=message):
        check_labels(labelled(**tables), data(*problems))
    check_labels(labelled(rewards={"pseudo": "voted"}), data(NUMBER, OPEN))
