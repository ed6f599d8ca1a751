"""``debate keys``: what can be set, with the defaults that count."""

import json

import pytest

from debate_rl.commands.keys import keys
from debate_rl.config import Config
from debate_rl.config.keys import BASIC, all_keys, check_key, listed_keys
from debate_rl.config.recipes import load_config


def printed(capsys, part, **options):
    keys(part, **options)
    return capsys.readouterr().out


def test_a_key_comes_with_type_bound_default_and_meaning(capsys):
    out = printed(capsys, "learner.lr")
    assert out.startswith("learner.lr = 3e-05  (float, > 0, <= 100)\n    Peak learning rate.")
    assert "\nlearner." not in out


def test_a_default_is_that_of_the_place_and_not_of_the_kind_of_table(capsys):
    assert "advantages.peer.scale = none  (group | batch | none)" in printed(capsys, "advantages.peer")
    assert "advantages.truth.scale = group" in printed(capsys, "advantages.truth")


def test_every_key_says_what_it_means(capsys):
    tables = {name.rpartition(".")[0] for name in all_keys(Config)} - {""}
    silent = [n for n, key in all_keys(Config).items() if n not in tables and not key.field.description]
    assert silent == []
    assert heads(printed(capsys, None, show_all=True)) == list(listed_keys(Config))


def test_json_on_standard_output_is_alone(capsys):
    [key] = json.loads(printed(capsys, "learner.lr", json="-"))["keys"]
    assert (key["name"], key["default"]) == ("learner.lr", "3e-05")


def test_twelve_basic_keys_are_shown_first(capsys):
    assert heads(printed(capsys, None)) == list(BASIC)
    assert len(BASIC) == 12


def heads(out):
    return [line.split()[0] for line in out.splitlines() if line and line[0] not in " 0123456789"]


FORMER = {"problems_per_step": "batch_size", "debates_per_problem": "group_size", "lookahead": "async_level"}


@pytest.mark.parametrize("old", FORMER)
def test_a_former_name_is_refused_with_the_new_one(old):
    said = f"{old}.*it is now {FORMER[old]}"
    with pytest.raises(ValueError, match=said):
        Config.model_validate({"train": {old: 1}})
    with pytest.raises(ValueError, match=said):
        check_key(Config, f"train.{old}")


def test_the_defaults_are_those_of_a_loaded_recipe(tmp_path):
    recipe = tmp_path / "r.toml"
    recipe.write_text("[model.tiny]\n")
    config = load_config(Config, str(recipe))
    for name in ("advantages.peer.scale", "learner.eps_hi", "debate.summary.max_tokens", "train.steps"):
        value = config
        for part in name.split("."):
            value = getattr(value, part)
        assert all_keys(Config)[name].default == value
