"""Recipes and overrides."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.config import ConfigError, apply_overrides, find_recipe, load_config, shipped_recipes
from debate.settings import Settings
from learner.config import Config


class Inner(Settings):
    size: int = 1


class Outer(Settings):
    name: str
    inner: Inner


@pytest.mark.parametrize("name", sorted(shipped_recipes()))
def test_a_shipped_recipe_is_valid_and_opens_with_what_it_runs_where_and_how_long(name):
    config = load_config(Config, name)
    assert config.run.dir.startswith("runs/")
    head = []
    for line in find_recipe(name).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        head.append(line)
    assert len(head) >= 2
    assert "Hardware: " in " ".join(head)
    assert "Time: " in " ".join(head)


def test_the_recipes_of_the_project_are_shipped():
    expected = {f"{stage}_qwen3_8b_1gpu" for stage in ("gsm8k", "math", "aime")}
    assert expected | {"quickstart", "quickstart_words", "gsm8k_smoke"} <= shipped_recipes().keys()


def test_a_recipe_is_found_by_path_by_name_and_under_configs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shipped = shipped_recipes()["quickstart"]
    assert find_recipe("quickstart") == find_recipe("configs/quickstart.toml") == shipped
    Path("quickstart.toml").write_text("")
    assert find_recipe("quickstart.toml") == Path("quickstart.toml")
    assert find_recipe("quickstart") == shipped
    with pytest.raises(
        ConfigError, match=r"^mine/quickstart.toml: no such file; did you mean 'quickstart'\?"
    ):
        find_recipe("mine/quickstart.toml")


def test_overrides_go_left_to_right_and_leave_the_tables_alone():
    tables = {"a": {"b": {"c": 1, "d": 2}}}
    assert apply_overrides(tables, ["a.b.c=3", "a.b.c=[1, 'x']", "a.e=plain text", "f = true"]) == {
        "a": {"b": {"c": [1, "x"], "d": 2}, "e": "plain text"},
        "f": True,
    }
    assert tables == {"a": {"b": {"c": 1, "d": 2}}}


@pytest.mark.parametrize("text", ["steps", "=3", " = 3", ""])
def test_an_override_without_key_or_value_says_how_it_is_written(text):
    with pytest.raises(ConfigError, match=r"an override is written key=value, for instance learner\.lr=1e-5"):
        apply_overrides({}, [text])


@pytest.mark.parametrize(
    ("content", "overrides", "told"),
    [
        ("", [], "name: is missing and has no default; set it in the file, or as name=<value> (and 1 more)"),
        ("name = 'x'", [], "inner: is missing; add a table [inner] with some of size"),
        ("name = 'x'\n[inner]\nsice = 2", [], "inner: unknown key 'sice'; did you mean 'size'?"),
        ("name = 'x'", ["inner.zzz=2"], "inner.zzz=2: inner: unknown key 'zzz'; valid keys: size"),
        ("name = 1", ["inner.size=2"], "name: Input should be a valid string (got 1)"),
        (
            "name = 'x'",
            ["inner=2"],
            "is a table of settings, written inner.<name>=<value> or [inner] (got 2)",
        ),
        ("name = 'x'", ["inner.size=false"], "inner: size: needs a number (got False)"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path, content, overrides, told):
    path = tmp_path / "c.toml"
    path.write_text(content)
    with pytest.raises(ConfigError) as caught:
        load_config(Outer, str(path), overrides)
    assert str(caught.value).startswith(str(path))
    assert str(caught.value).endswith(told)
