"""Suites: what a set takes from all, how it becomes overrides, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debate import DebateConfig
from debate_rl.commands.eval_tables import best_of, comparison, result_rows
from debate_rl.config import Config
from debate_rl.config.recipes import ConfigError, apply_overrides, as_overrides, shipped_suites
from debate_rl.evaluation.scores import Scores
from debate_rl.evaluation.suite import SuiteSet, read_suite, swept
from debate_rl.evaluation.tasks import Evaluated

SUITE = """
[all]
direct = true
samples = 4
debate = { max_tokens = 100, summary = { max_tokens = 9, temperature = 0.5 } }

[sets.gsm8k]
role = "floor"

[sets.hard]
samples = 2
held_out = { kind = "math500", levels = [4, 5], limit = 10 }
debate.summary.max_tokens = 7
debate.stop = ["Q:", "\\n\\n"]
debate.personas = [{ name = "A", instructions = "be, [brief]" }]
grader = { mode = "math_verify", beside = ["boxed"] }
"""


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "suite.toml"
    path.write_text(SUITE)
    return str(path)


def configured(one):
    return Config.model_validate(apply_overrides({"model": {"name_or_path": "m"}}, one.before, Config))


def test_a_set_says_what_differs_from_all(suite):
    floor, hard = read_suite(suite)
    assert (floor.name, floor.role, floor.direct, floor.samples) == ("gsm8k", "floor", True, 4)
    assert (hard.name, hard.role, hard.direct, hard.samples) == ("hard", "", True, 2)
    assert hard.key == f"{suite}: sets.hard.held_out.kind"
    one, other = map(configured, (floor, hard))
    assert (one.held_out.kind, one.held_out.limit, one.held_out.levels) == ("gsm8k", 1_000_000_000, None)
    assert (other.held_out.kind, other.held_out.limit, other.held_out.levels) == ("math500", 10, (4, 5))
    assert (one.debate.max_tokens, one.debate.summary.max_tokens, one.debate.stop) == (100, 9, ())
    assert (other.grader.final, other.grader.beside) == ("math_verify", ("boxed",))
    assert (other.debate.max_tokens, other.debate.summary.max_tokens) == (100, 7)
    assert (other.debate.summary.temperature, other.debate.stop) == (0.5, ("Q:", "\n\n"))
    assert [(one.name, one.instructions) for one in other.debate.personas] == [("A", "be, [brief]")]


def test_the_held_out_problems_of_a_recipe_are_not_those_of_a_set(suite):
    """Levels, a file or a split that the recipe names are not taken over."""
    recipe = {"model": {"name_or_path": "m"}, "held_out": {"path": "x.jsonl", "levels": [3], "split": "dev"}}
    [floor] = read_suite(suite, ["gsm8k"])
    found = Config.model_validate(apply_overrides(recipe, floor.before, Config)).held_out
    assert (found.path, found.levels, found.split) == (None, None, "test")


def test_a_set_that_names_no_limit_has_the_usual_one_of_its_data_set(tmp_path):
    path = tmp_path / "suite.toml"
    path.write_text("[sets.aime24]\n[sets.aime25]\ndebate.max_tokens=7\n[sets.mine]\nheld_out.kind='jsonl'\n")
    limits = [configured(one).debate.max_tokens for one in read_suite(str(path))]
    assert limits == [4096, 7, DebateConfig().max_tokens]


def test_a_grader_of_a_set_is_not_made_strict_by_the_recipes_schedule(suite):
    recipe = {"model": {"name_or_path": "m"}, "shots": {"count": 4, "path": "x.jsonl"}}
    recipe |= {"grader": {"mode": [[0, "lenient"], [9, "boxed"]]}}
    floor, hard = read_suite(suite)

    def found(one):
        return Config.model_validate(apply_overrides(recipe, (*one.before, *one.after), Config))

    assert [found(one).grader.final for one in (floor, hard)] == ["boxed", "math_verify"]
    shots = [found(one).shots for one in swept([floor], "shots.count=0,4")]
    assert [(one.count, one.path) for one in shots] == [(0, None), (4, "x.jsonl")]


TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
PLAIN = st.one_of(
    TEXTS, st.integers(-(2**53), 2**53), st.booleans(), st.floats(allow_nan=False, allow_infinity=False)
)


@given(st.lists(PLAIN, max_size=4))
def test_any_plain_value_reaches_the_recipe_as_it_is(values):
    [text] = as_overrides("debate.stop", values, "")
    found = apply_overrides({}, [text])["debate"]["stop"]
    assert [type(one) for one in found] == [type(one) for one in values]
    assert found == values


def test_what_is_not_a_suite_is_one_line(tmp_path):
    path = tmp_path / "suite.toml"
    for text, told in {
        "": "sets: is missing",
        "sets = {}": "sets: ",
        "[sets.a]\nrole = 3\n": "sets.a.role: ",
        "[sets.a]\nmodes = ['boxed']\n": "sets.a: unknown key 'modes'",
        "[sets.a]\nsamples = -1\n": "sets.a.samples: ",
        "[sets.a]\ndebate.'a b' = 1\n": "sets.a.debate: 'a b' is not a key of a recipe",
        "sets = 1": "sets: must be a table of settings",
        "sets": "not valid TOML",
    }.items():
        path.write_text(text)
        with pytest.raises(ConfigError) as error:
            read_suite(str(path))
        said = str(error.value)
        assert (said.startswith(str(path)), told in said, "\n" in said) == (True, True, False), said


def test_every_shipped_suite_is_read_and_fits_a_recipe():
    for name in shipped_suites():
        for one in read_suite(name):
            assert one.role
            configured(one)


def test_a_sweep_names_every_value_and_a_role_is_one_line(suite):
    names = [one.name for one in swept(read_suite(suite), "debate.max_tokens=1,2")]
    assert names == [f"{name}, debate.max_tokens={value}" for name in ("gsm8k", "hard") for value in (1, 2)]
    assert SuiteSet(role="a\nb\x1b[2J").role == "a b�[2J"


def accuracy(*right):
    return Scores({"direct/accuracy": {f"p{i}": [r] for i, r in enumerate(right)}}, {}, 1)


def test_the_best_checkpoint_of_each_run_on_each_set():
    of_a = {"run@start": (1, 1, 1, 1), "run@1": (1, 0, 0, 0), "run@2": (1, 1, 0, 0)}
    of_a |= {"other@7": (1, 1, 1, 1), "recipe.toml": (0,)}
    by_set = {"a": of_a, "b": {"run@1": (1, 1), "run@2": (1, 0)}}
    every = [(data, name, right) for data, of in by_set.items() for name, right in of.items()]
    results = [Evaluated(data, name, scores=accuracy(*right)) for data, name, right in every]
    found = {(best.data, best.evaluation, best.of, best.estimate.value) for best in best_of(results)}
    assert found == {("a", "run@start", 3, 1.0), ("b", "run@1", 2, 1.0)}
    row = next(row for row in result_rows(results) if "of" in row)
    assert (row["name"], row["evaluation"], row["of"]) == ("best direct/accuracy", "run@start", 3)


def test_rows_have_roles_overlaps_and_failures_last():
    facts = {"in training": "3, 1 the same", "grader": "boxed"}
    fails = Evaluated("b", "m", error=ValueError("no such file"))
    results = [fails, Evaluated("a", "m", "canary", accuracy(1, 0), facts)]
    heads, ok, failed = comparison(results)
    assert heads[:6] == ["", "role", "in training", "grader", "", "problems"]
    assert ok[:5] == ["a", "canary", "3, 1 the same", "boxed", "m"]
    assert failed[:6] == ["b", "", "", "", "m", "failed"]
    assert len(failed) == len(ok) == len(heads)
    first, last = result_rows(results)[0], result_rows(results)[-1]
    assert (first["role"], first["in training"]) == ("canary", "3, 1 the same")
    assert last == {"data": "b", "evaluation": "m", "name": "failed", "error": "no such file"}
