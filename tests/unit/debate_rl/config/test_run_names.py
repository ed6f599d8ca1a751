import pytest

from debate_rl.config import Config
from debate_rl.config.recipes import ConfigError, load_config

RECIPE = '[model]\ntiny = {}\n[run]\ndir = "runs/{recipe}-{seed}"\n'


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "words.toml"
    path.write_text(RECIPE)
    return str(path)


@pytest.mark.parametrize(
    ("overrides", "folder"),
    [
        (["seed=7"], "runs/words-7"),
        (["run.dir=a/{learner.loss}"], "a/grpo"),
        (["run.dir=plain"], "plain"),
        (["run.dir=runs/{debate.prompts}", "debate.prompts=../../etc"], "runs/..-..-etc"),  # no other folder
    ],
)
def test_a_run_has_the_name_of_its_recipe_and_the_values_of_keys(recipe, overrides, folder):
    assert load_config(Config, recipe, overrides).run.dir == folder


@pytest.mark.parametrize("key", ["nothing", "learner", "learner.lr.real", "__class__", ""])
def test_what_is_no_key_with_a_value_is_refused(recipe, key):
    with pytest.raises(ConfigError, match=r"must be \{recipe\} or a key with a single value"):
        load_config(Config, recipe, [f"run.dir=runs/{{{key}}}"])


def test_the_folder_of_a_run_keeps_its_name(tmp_path):
    (tmp_path / "config.toml").write_text('[model]\ntiny = {}\n[run]\ndir = "{recipe}"\n')
    (tmp_path / "run.json").write_text("{}")
    assert load_config(Config, str(tmp_path / "config.toml")).run.dir == "{recipe}"
