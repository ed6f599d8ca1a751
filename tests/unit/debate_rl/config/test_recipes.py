"""Recipes and overrides."""

import re
import tomllib
from functools import cache
from itertools import takewhile
from pathlib import Path

import pytest

from debate.settings import Settings
from debate_rl.config import Config, recipes
from debate_rl.config.recipes import ConfigError, apply_overrides, find_recipe, load_config, shipped_recipes


class Inner(Settings):
    size: int = 1


class Outer(Settings):
    name: str
    inner: Inner


@pytest.mark.parametrize("name", sorted(shipped_recipes()))
def test_a_shipped_recipe_is_valid_and_opens_with_what_it_runs_where_and_how_long(name):
    config = load_config(Config, name)
    assert config.run.dir.startswith("runs/")
    head = header_of(find_recipe(name))
    assert len(head) >= 2
    assert all(any(word in line for line in head) for word in ("Hardware: ", "Time: "))


def header_of(path):
    return [*takewhile(lambda line: line.startswith("#"), path.read_text(encoding="utf-8").splitlines())]


RECIPES = shipped_recipes() | {f"sweeps/{name}": path for name, path in recipes.shipped_sweeps().items()}


@cache
def needs_gpu(name: str) -> bool:
    """Return whether a recipe, or the one that a sweep varies, loads a model, and not to a CPU."""
    table = tomllib.loads(RECIPES[name].read_text(encoding="utf-8"))
    recipe = table["recipe"] if name.startswith("sweeps/") else name
    model = load_config(Config, recipe).model
    return model.name_or_path is not None and model.device != "cpu"


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_a_recipe_that_needs_a_gpu_says_that_none_has_run_it(name):
    header = header_of(RECIPES[name])
    assert sum(line.startswith("# Not yet run on a GPU") for line in header) == needs_gpu(name)


DOCS = Path(__file__).parents[4] / "docs"
COMMAND = re.compile(r"^ *(?:\S*/)?debate (?:train|run|sft|sweep|passrate|eval|play) (.*)", re.MULTILINE)


def test_a_page_with_commands_for_a_gpu_says_that_none_has_run_them():
    names = {name.removeprefix("sweeps/") for name in RECIPES if needs_gpu(name)}
    silent = set()
    for page in DOCS.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        words = re.split(r"[\s`]+|configs/|\.toml", " ".join(COMMAND.findall(text)))
        if names.intersection(words) and not re.search(r"not yet been run on\s+a\s+GPU", text):
            silent.add(page.name)
    assert silent == set()


def test_a_recipe_is_found_by_path_by_name_and_under_configs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shipped = shipped_recipes()["quickstart"]
    assert find_recipe("quickstart") == find_recipe("configs/quickstart.toml") == shipped
    Path("quickstart.toml").write_text("")
    assert find_recipe("quickstart.toml") == Path("quickstart.toml")
    assert find_recipe("quickstart") == shipped
    with pytest.raises(ConfigError, match=r"^mine/quickstart.toml: no such file; did you mean 'quickstart'"):
        find_recipe("mine/quickstart.toml")


def test_overrides_go_left_to_right_and_leave_the_tables_alone():
    tables = {"a": {"b": {"c": 1, "d": 2}}}
    assert apply_overrides(tables, ["a.b.c=3", "a.b.c=[1, 'x']", "a.e=plain text", "f = true"]) == {
        "a": {"b": {"c": [1, "x"], "d": 2}, "e": "plain text"},
        "f": True,
    }
    assert tables == {"a": {"b": {"c": 1, "d": 2}}}


def test_none_takes_a_value_or_a_table_of_the_recipe_away():
    none = ["learner.eps_hi=none", "debate.handles = none", "warm_start=none", "env.limit=none"]
    config = load_config(Config, "quickstart", [*none, "train.steps=none"])
    assert (config.learner.eps_hi, config.debate.handles, config.env.limit) == (None, None, None)
    assert (config.warm_start.steps, config.train.steps, config.learner.lr) == (0, 100, 6e-4)
    assert load_config(Config, "quickstart", ["train.steps=none", "train.steps=3"]).train.steps == 3


def test_none_is_a_word_where_it_has_a_meaning_of_its_own():
    given = ["logging.progress=none", "train.control=none", "advantages.peer.scale=none", "run.dir='none'"]
    config = load_config(Config, "quickstart", given)
    assert (config.logging.progress, config.train.control, config.run.dir) == ("none", "none", "none")
    assert config.advantages.peer.scale == "none"


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("learner.epshi=none", "learner: unknown key 'epshi'; did you mean 'eps_hi'?"),
        ("learner.lr.peak=none", "'learner.lr.peak=none': lr is a single value, not a table"),
        ("model=none", "model: is missing; add a table [model] with some of name_or_path"),
    ],
)
def test_none_for_what_is_not_there_or_must_be_is_refused(override, told):
    with pytest.raises(ConfigError) as caught:
        load_config(Config, "quickstart", [override])
    assert told in str(caught.value)


@pytest.mark.parametrize("text", ["steps", "=3", " = 3", ""])
def test_an_override_without_key_or_value_says_how_it_is_written(text):
    with pytest.raises(ConfigError, match=r"must have the form key=value, such as learner\.lr=1e-5"):
        apply_overrides({}, [text])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("seed=" + "[" * 100_000, "seed: '[[[[[[[[[["),
        ("seed=" + "1" * 5000, "cannot be read as TOML: Exceeds the limit"),
        (".".join("a" * 40_000) + "=1", "the key has too many parts"),
    ],
)
def test_an_override_without_end_is_one_short_line(text, told):
    with pytest.raises(ConfigError) as caught:
        apply_overrides({}, [text])
    assert told in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("content", "overrides", "told"),
    [
        ("", [], "name: is missing and has no default; set it in the file, or as name=<value> (and 1 more)"),
        ("name = 'x'", [], "inner: is missing; add a table [inner] with some of size"),
        ("name = 'x'\n[inner]\nsice = 2", [], "inner: unknown key 'sice'; did you mean 'size'?"),
        ("name = 'x'", ["inner.zzz=2"], "inner.zzz=2: inner: unknown key 'zzz'; valid keys: size"),
        ("name = 1", ["inner.size=2"], "name: Input should be a valid string (got 1)"),
        ("name = 'x'", ["inner=2"], "written inner.<name>=<value> or [inner] (got 2)"),
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


@pytest.mark.parametrize("beside", recipes.OF_A_RUN)
def test_what_lies_in_a_run_is_of_the_run_by_whatever_path_it_is_named(beside, tmp_path, monkeypatch):
    """A run may have been made elsewhere; a recipe is one's own, or was chosen as such."""
    monkeypatch.delenv("DEBATE_OWN_CODE", raising=False)
    (tmp_path / "run").mkdir()
    (tmp_path / "run/config.toml").write_text('[rewards]\npeer = "no_such_module:thing"\n')
    (tmp_path / "link.toml").symlink_to("run/config.toml")
    with pytest.raises(ConfigError, match="No module named"):  # a recipe is loaded
        load_config(Config, str(tmp_path / "run/config.toml"))
    (tmp_path / "run" / beside).touch()
    for name in ("run/config.toml", "run/../run/config.toml", "link.toml"):
        with pytest.raises(ConfigError, match="'no_such_module:thing' names code"):
            load_config(Config, str(tmp_path / name))


@pytest.mark.parametrize("line", ['python = "evil/python"', 'overrides = ["+a.external_lib=evil"]'])
def test_a_run_does_not_choose_what_verl_executes(line, tmp_path, monkeypatch):
    monkeypatch.delenv("DEBATE_OWN_CODE", raising=False)
    (tmp_path / "run.json").touch()
    config = written(tmp_path, "config.toml", f'[model.tiny]\n[engine]\nkind = "verl"\n{line}\n')
    with pytest.raises(ConfigError, match=f"engine.{line.split()[0]}=.*evil.* names code"):
        load_config(Config, str(config))
    monkeypatch.setenv("DEBATE_OWN_CODE", "1")
    assert load_config(Config, str(config)).engine.kind == "verl"


def written(folder, name, text):
    (folder / name).write_text(text)
    return folder / name


def test_a_recipe_is_put_over_its_base_key_by_key(tmp_path):
    written(tmp_path, "under.toml", "[model]\ntiny={}\n[learner]\nlr = 1e-4\nbeta = 0.5\nbetas = [0.5, 0.6]")
    written(tmp_path, "middle.toml", 'base="under.toml"\n[learner]\nbeta=0.25\n[run]\ndir = "runs/{recipe}"')
    path = written(tmp_path, "mine.toml", 'base = "middle.toml"\n[learner]\nbetas = [0.7, 0.8]')
    config = load_config(Config, str(path), ["learner.lr=3e-4"])
    learner = config.learner
    assert (learner.lr, learner.beta, learner.betas) == (3e-4, 0.25, (0.7, 0.8))
    assert config.run.dir == "runs/mine"


def test_a_shipped_recipe_is_a_base_by_its_name(tmp_path):
    path = written(tmp_path, "mine.toml", 'base = "rlvr/tiny"\nseed = 7')
    assert load_config(Config, str(path)) == load_config(Config, "rlvr/tiny", ["seed=7"])


@pytest.mark.parametrize(
    ("base", "said"),
    [
        ("3", "base: must be the name or path of a recipe (got 3)"),
        ('"mine.toml"', "base: 'mine.toml' is based on this recipe"),
        ('"round.toml"', "base: 'mine.toml' is based on this recipe"),
        ('"rlvr/tini"', "base: rlvr/tini: no such file; did you mean 'rlvr/tiny'?"),
        ('"run/config.toml"', "base: 'run/config.toml' is the configuration of a run, not a recipe"),
    ],
)
def test_a_base_that_cannot_be_one_is_named_in_a_line(tmp_path, base, said):
    written(tmp_path, "round.toml", 'base = "mine.toml"')
    (tmp_path / "run/checkpoints").mkdir(parents=True)
    written(tmp_path, "run/config.toml", "[model]\ntiny = {}")
    with pytest.raises(ConfigError) as error:
        load_config(Config, str(written(tmp_path, "mine.toml", f"base = {base}")))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_long_chain_of_bases_is_refused(tmp_path):
    for number in range(60):
        written(tmp_path, f"{number}.toml", f'base = "{number + 1}.toml"')
    with pytest.raises(ConfigError, match="makes a chain of more than 32 recipes"):
        load_config(Config, str(tmp_path / "0.toml"))


def test_a_run_has_no_base(tmp_path):
    (tmp_path / "transcripts").mkdir()
    path = written(tmp_path, "config.toml", 'base = "rlvr/tiny"')
    with pytest.raises(ConfigError, match="unknown key 'base'"):
        load_config(Config, str(path))


def test_a_stage_has_the_settings_of_its_recipe_and_its_own_over_them(tmp_path):
    cot = ['model.name_or_path = "m"', 'run.dir = "elsewhere"', "seed = 9", "train.steps = 4"]
    cot += ['sft = { data = ["numinamath_cot"], epochs = 3 }']
    for name in ("cot.toml", "cot"):
        written(tmp_path, name, "\n".join(cot))
    written(tmp_path, "rl.toml", 'base = "cot"\n[learner]\nlr = 1e-6\nbeta = 0.1\n[sft]\ndata = []\n')
    stages = '[[stages]]\nname = "cot"\nrecipe = "cot.toml"\nsft = { epochs = 2 }\n'
    stages += '[[stages]]\nname = "rl"\nrecipe = "rl.toml"\nlearner = { lr = 1e-5 }\n'
    whole = written(tmp_path, "full.toml", f'model.name_or_path = "m"\n{stages}')
    config = load_config(Config, str(whole))
    cot, rl = config.stages
    assert (cot.sft, cot.max_steps) == ({"data": ["numinamath_cot"], "epochs": 2}, None)
    assert (rl.learner, rl.max_steps, rl.supervised) == ({"lr": 1e-5, "beta": 0.1}, 4, False)
    assert (config.seed, config.run.dir) == (0, "runs/debate")
    assert config.of_stage(1).learner.lr == 1e-5
    other = load_config(Config, str(whole), ["model.name_or_path=other", "model.lora_rank=8"])
    models = [other.of_stage(place).model for place in range(2)]
    assert {(model.name_or_path, model.lora_rank) for model in models} == {("other", 8)}


@pytest.mark.parametrize(
    ("stage", "said"),
    [
        ('name = "a"\nrecipe = "rlvr/tini"', "stages.0.recipe: rlvr/tini: no such file; did you mean"),
        ('name = "a"\nrecipe = "full.toml"', "stages.0.recipe: 'full.toml' is this recipe"),
        ('name = "a"\nrecipe = "curriculum/tiny"', "stages.0.recipe: 'curriculum/tiny' has stages"),
        ('name = "a"\nrecipe = "rlvr/tiny"', "stages.0: model.tiny: a stage starts from the weights of"),
    ],
)
def test_a_recipe_that_cannot_be_a_stage_is_named(tmp_path, stage, said):
    path = written(tmp_path, "full.toml", f"[model]\ntiny = {{}}\n[[stages]]\n{stage}\n")
    with pytest.raises(ConfigError, match=re.escape(f"{path}: {said}")):
        load_config(Config, str(path))


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("learner.tis_cap=nan", "learner.tis_cap: Input should be a finite number or 'auto' (got nan)"),
        ("learner.tis_cap=-1", "learner.tis_cap: Input should be greater than or equal to 0 or 'auto'"),
        ("rewards.peer=no_such:rule", "rewards.peer: cannot import 'no_such' of"),
        ("logging.wandb=a/b", "logging.wandb: must have 1 to 128 characters, without / "),
        ("logging.wandb=", "logging.wandb: must have 1 to 128 characters, "),
        ("logging.wandb.name=x", "logging.wandb: must be the project; "),
        ("logging.wandb=" + 129 * "x", "logging.wandb: must have 1 to 128 characters, "),
        ("model.vllm.sleep=2", "model.vllm.sleep: Input should be a valid boolean"),
    ],
)
def test_a_value_is_refused_by_its_key_without_the_names_of_types(override, said):
    with pytest.raises(ConfigError) as raised:
        load_config(Config, "quickstart", [override])
    assert f" {override}: {said}" in str(raised.value)
