import fcntl
from pathlib import Path

import pytest

import debate_rl

HOME = Path(debate_rl.__file__).parents[1]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def refused(debate_command):
    """Return call(*arguments) -> the one line that the command ended with."""

    def call(*arguments: object) -> str:
        code, out, err = debate_command(*arguments)
        *before, line = err.splitlines(keepends=True)
        assert (code, out) == (2, ""), err
        assert line.startswith("debate: "), err
        about = (" steps of ", "baselines differ", "loading the model", "problems: ", "an epoch is ")
        about += ("estimate, if ", "  model  ", "  memory  ")  # what train was about to do
        assert all(any(words in text for words in about) for text in before), err
        return line

    return call


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("debate.num_agent=3", "debate: unknown key 'num_agent'; did you mean 'num_agents'?"),
        ("rewards.judge_truth_weight=0", "the judge stream would be consensus alone"),
        ("env.kind=pairsum", "did you mean 'pair_sum'?"),
        ("debate.max_tokens=600", "max_tokens"),
        ("debate.prompts=prompts.toml", "prompts.toml"),
        ("debate.top_p=0.95", "debate.top_p = 0.95: "),  # training samples from all tokens
        ("debate.top_k=20", "debate.top_k = 20: "),
        ("run.dir=/proc/debate/run", "run.dir=/proc/debate/run: cannot write /proc/debate"),
    ],
)
def test_a_configuration_that_cannot_be(tiny_recipe, refused, override, told):
    assert told in refused("train", tiny_recipe, override)
    assert not any(Path("runs").rglob("config.toml"))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"seed = 1\n\xff\n", "not UTF-8 text (invalid start byte at byte 9)"),
        (b"seed = \n", "not valid TOML: Invalid value (at line 1, column 8)"),
        (b"seed = " + b"[" * 100_000, "cannot be read as TOML: it is nested more than 128 deep"),
        (b"seed = " + b"1" * 5000, "cannot be read as TOML: Exceeds the limit"),
    ],
)
def test_a_configuration_file_that_cannot_be_read(refused, content, told):
    Path("mine.toml").write_bytes(content)
    for command in (["train", "mine.toml"], ["solve play", "mine.toml", "a problem"]):
        assert refused(*command).startswith(f"debate: mine.toml: {told}")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nothing.toml", f"nothing.toml: no such file; the shipped recipes are in {HOME / 'configs'}\n"),
        ("configs/quickstat.toml", "did you mean 'quickstart'? "),
        (".", "is a folder"),
    ],
)
def test_a_configuration_that_is_not_there(refused, name, told):
    assert told in refused("train", name)


def test_data_that_cannot_be_used(tiny_recipe, refused):
    Path("d.json").write_text('[{"question": "a", "answer": " "}]')
    for path, told in (
        ("d.json", ", row 1, field 'answer': "),
        ("none.jsonl", ": No such file or directory"),
    ):
        assert f"{path}{told}" in refused("train", tiny_recipe, f"env={{kind='gsm8k', path='{path}'}}")
    assert not Path("runs").exists()


def test_a_run_folder_that_is_a_file_is_left_alone(tiny_recipe, refused):
    Path("thesis.tex").write_text("years of work")
    line = refused("train", tiny_recipe, "run.dir=thesis.tex")
    assert "run.dir=thesis.tex: cannot write thesis.tex: File exists; choose another run.dir" in line
    assert Path("thesis.tex").read_text() == "years of work"


def test_a_run_of_another_configuration_or_in_use_is_left_alone(tiny_recipe, refused, debate_command):
    assert debate_command("train", tiny_recipe)[0] == 0
    before = contents(Path("runs"))
    line = refused("train", tiny_recipe, "learner.lr=1e-3")
    assert "run.dir=runs/debate contains a run with another configuration: learner.lr was " in line
    with Path("runs/debate/.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "runs/debate is in use by process" in refused("train", tiny_recipe)
    assert contents(Path("runs")) == before


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("override", "told"),
    [
        (
            "debate.num_agents=2",
            "debate.num_agents=2: a judge needs two other agents to compare; use 3 or more",
        ),
        (
            "held_out.kind=gsm8k",
            "the judge pairs of the quick-start need problems of pair_sum or words",
        ),
        ("warm_start.right=[0.9]", "warm_start: right and lure are fractions of the same demonstrations"),
    ],
)
def test_a_quick_start_that_could_not_be_measured_is_refused_at_once(refused, override, told):
    assert told in refused("quickstart", override)
    assert not Path("runs").exists()


def test_a_recipe_for_a_gpu_says_first_that_there_is_none(refused, monkeypatch):
    monkeypatch.setattr("debate_rl.engines.version", lambda _: "0.32.0")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("envs.hub.is_reachable", None)  # nobody looks for anything in the hub
    assert refused("train", "gsm8k_qwen3_8b_1gpu").startswith("debate: no GPU here: torch sees none, but ")
    assert refused("solve play", "gsm8k_qwen3_8b_1gpu", "2 + 2?").startswith("debate: no GPU here: ")
