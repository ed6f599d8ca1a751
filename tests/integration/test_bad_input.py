"""A user's mistake is one line that names the place and the way out, exit code 2, and costs nothing."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import debate_rl
from debate.prompting.texts import SHIPPED
from debate_rl.runs.checkpoint import latest_good
from transcripts import read_records

HOME = Path(debate_rl.__file__).parents[1]
GOOD_ROW = '{"question": "What is 2 + 2?", "answer": "#### 4"}\n'


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
        about = (
            " steps of ",
            "baselines include an effect of each persona",
            "loading the model",
            "problems: ",
            "an epoch is ",
            "estimate, if ",
            "  model  ",
            "  memory  ",
        )  # what train was about to do
        assert all(any(words in text for words in about) for text in before), err
        return line

    return call


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (["debate.num_agent=3"], "debate: unknown key 'num_agent'; did you mean 'num_agents'?"),
        (["modell.device=cpu"], "unknown key 'modell'; did you mean 'model'?"),
        (["debate.num_agents=three"], "debate.num_agents: Input should be a valid integer"),
        (["debate.num_agents=true"], "debate: num_agents: needs a number (got True)"),
        (["learner.lr=fast"], "learner.lr: Input should be a valid number"),
        (["rewards.truth_weight=3"], "should be less than or equal to 1, got 3\n"),
        (["debate=3"], "debate: is a table of settings, written debate.<name>=<value> or [debate] (got 3)"),
        (["env.limit.of=3"], "'env.limit.of=3': limit is a value, not a table"),
        (["debate.num_agents=0"], "debate.num_agents: Input should be greater than or equal to 1 (got 0)"),
        (["debate.num_agents=-3", "train.steps=-1"], "(and 1 more)"),
        (["rewards.judge_truth_weight=0"], "the judge stream would be consensus alone"),
        (["rewards.truth_weight=0", "debate.num_agents=1"], "nothing to learn from"),
        (["model.name_or_path=here"], "model: set exactly one of name_or_path"),
        (["rewards.judge_own=true"], "rewards.judge_own and debate.judge_own must be equal"),
        (["model.tiny.heads=3"], "heads: 3 must divide hidden_size 16"),
        (["env.kind=pairsum"], "did you mean 'pair_sum'?"),
        (["held_out.split=train"], "held_out.split='train' is the split trained on"),
        (["debate.max_tokens=600"], "max_tokens"),
        (["steps"], "'steps': an override is written key=value, for instance learner.lr=1e-5"),
        (["debate.prompts=prompts.toml"], "prompts.toml"),
    ],
)
def test_a_configuration_that_cannot_be(tiny_recipe, refused, overrides, told):
    line = refused("train", tiny_recipe, *overrides)
    assert told in line
    assert not any(Path("runs").rglob("config.toml"))


def test_the_file_and_the_override_at_fault_are_named(tiny_recipe, refused):
    line = refused("train", tiny_recipe, "seed=3", "debate.num_agents=0")
    assert line.startswith(f"debate: {tiny_recipe} debate.num_agents=0: debate.num_agents: ")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["train", "mine.toml", "--learner.lr=1e-4"],
            "--learner.lr=1e-4: a key of a recipe has no dashes; write learner.lr=1e-4",
        ),
        (["eval", "mine.toml", "--seed", "3"], "--seed: a key of a recipe has no dashes; write seed=3"),
        (
            ["solve", "play", "mine.toml", "--logging.wandb"],
            "--logging.wandb: a key of a recipe has no dashes; write logging.wandb=VALUE",
        ),
    ],
)
def test_a_key_that_is_written_as_an_option(refused, words, told):
    assert refused(*words) == f"debate: {told}\n"


@pytest.mark.parametrize("command", [("train",), ("solve play", "a problem")])
@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"seed = 1\n\xff\n", "not UTF-8 text (invalid start byte at byte 9)"),
        (b"seed = \n", "not valid TOML: Invalid value (at line 1, column 8)"),
        (b"seed = 1\n", "model: is missing; add a table [model] with some of name_or_path, tiny, "),
        (b"seed = " + b"[" * 100_000, "cannot be read as TOML: it is nested more than 128 deep"),
        (b"seed = " + b"1" * 5000, "cannot be read as TOML: Exceeds the limit"),
    ],
)
def test_a_configuration_file_that_cannot_be_read(refused, command, content, told):
    Path("mine.toml").write_bytes(content)
    line = refused(command[0], "mine.toml", *command[1:])
    assert line.startswith("debate: mine.toml: ")
    assert told in line


def test_a_configuration_that_is_not_there(refused):
    folder = HOME / "configs"
    line = refused("train", "nothing.toml")
    assert line == f"debate: nothing.toml: no such file; the shipped recipes are in {folder}\n"
    line = refused("train", "gsm8k_smok")
    assert line.endswith(f"no such file; did you mean 'gsm8k_smoke'? the shipped recipes are in {folder}\n")
    assert "did you mean 'quickstart'? " in refused("train", "configs/quickstat.toml")
    assert "elsewhere/quickstart.toml: no such file" in refused("train", "elsewhere/quickstart.toml")
    assert "is a folder, and a configuration is a TOML file" in refused("train", ".")


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("d.jsonl", b'{"question": "a"}\n', "d.jsonl, line 1, field 'answer': is missing; name your own"),
        ("d.jsonl", b"", "d.jsonl: the data set is empty; it needs at least one row"),
        ("d.jsonl", b'{"question": "\xff"}\n', "d.jsonl, line 1: is not UTF-8 (byte 0xff); save the file"),
        ("d.jsonl", b"{\n", "d.jsonl, line 1: is not valid JSON"),
        ("d.json", b'[{"question": "a", "answer": " "}]', "d.json, row 1, field 'answer': "),
        ("d.parquet", b"PAR1", "d.parquet: is not a readable Parquet file"),
        ("other", b"", "d.jsonl: No such file or directory; give an existing JSONL, JSON or Parquet file"),
    ],
)
def test_data_that_cannot_be_used(tiny_recipe, refused, name, content, told):
    Path(name).write_bytes(content)
    path = "d.jsonl" if name == "other" else name
    line = refused("train", tiny_recipe, *of_file(path))
    assert told in line
    assert not Path("runs").exists()


def test_nothing_is_left_to_train_on(tiny_recipe, refused):
    Path("d.jsonl").write_text(GOOD_ROW)
    line = refused("train", tiny_recipe, *of_file("d.jsonl"))
    assert "d.jsonl: 1 problems, of which held_out.limit=2 are held out" in line


def test_data_that_cannot_be_downloaded(tiny_recipe, refused):
    line = refused("train", tiny_recipe, "env.kind=gsm8k", "env.levels=[]")
    assert "openai/gsm8k/main[train]: " in line
    assert "path= reads a local copy" in line


@pytest.mark.parametrize("name", ["./no-model", "nobody-0/nothing-0"])
def test_a_missing_model_can_be_put_right_in_the_same_run_folder(tiny_recipe, refused, debate_command, name):
    with Path("mine.toml").open("w") as file:
        recipe = Path(tiny_recipe).read_text()
        file.write(recipe[: recipe.index("[model]")] + recipe[recipe.index("[learner]") :])
        file.write(f'[model]\nname_or_path = "{name}"\n')
    with warnings.catch_warnings(action="ignore"):  # the hub's client has its say about old names
        line = refused("train", "mine.toml")
    assert "model.name_or_path: " in line
    assert repr(name) in line
    assert "give a folder" in line.lower()
    code, out, err = debate_command("train", tiny_recipe, "train.steps=0")
    assert (code, out.splitlines()[0]) == (0, "done: 0 steps in runs/debate"), err


def test_a_run_folder_that_is_a_file_or_cannot_be_made(tiny_recipe, refused):
    Path("thesis.tex").write_text("years of work")
    line = refused("train", tiny_recipe, "run.dir=thesis.tex")
    assert "run.dir=thesis.tex: cannot write thesis.tex: File exists; choose another run.dir" in line
    assert Path("thesis.tex").read_text() == "years of work"
    line = refused("train", tiny_recipe, "run.dir=/proc/debate/run")
    assert "run.dir=/proc/debate/run: cannot write /proc/debate" in line


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_run_folder_without_the_right_to_write(tiny_recipe, refused):
    Path("disk").mkdir(mode=0o500)
    line = refused("train", tiny_recipe, "run.dir=disk/run")
    assert "run.dir=disk/run: cannot write disk/run: Permission denied; choose another run.dir" in line


@pytest.mark.slow
def test_a_run_folder_on_a_read_only_disk(tiny_recipe):
    line = refused_on_disk("ro", "train", tiny_recipe, "run.dir=disk/run", "logging.progress=none")
    assert "run.dir=disk/run: cannot write disk/run: Read-only file system; choose another run.dir" in line


@pytest.mark.slow
@pytest.mark.parametrize("size", ["32k", "100k", "160k"])  # at the first transcript; at each checkpoint
def test_a_disk_that_is_really_full(tiny_recipe, size):
    line = refused_on_disk(f"size={size}", "train", tiny_recipe, "run.dir=disk/run", "logging.progress=none")
    assert re.search("cannot write (checkpoint )?disk/run/", line)
    assert "No space left on device" in line
    assert "intact" in line


def test_a_run_of_another_configuration_or_in_use_is_left_alone(tiny_recipe, refused, debate_command):
    assert debate_command("train", tiny_recipe)[0] == 0
    before = contents(Path("runs"))
    line = refused("train", tiny_recipe, "learner.lr=1e-3")
    assert "run.dir=runs/debate holds a run with another configuration: learner.lr was " in line
    with Path("runs/debate/.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "runs/debate is in use by process" in refused("train", tiny_recipe)
    assert contents(Path("runs")) == before


def test_play_without_a_checkpoint(tiny_recipe, refused, debate_command):
    assert debate_command("train", tiny_recipe, "train.steps=0")[0] == 0
    assert "runs/debate: holds no checkpoint; train it first" in refused(
        "solve play", "runs/debate", "2 + 2?"
    )


@pytest.mark.slow
def test_a_full_disk_in_a_transcript_costs_only_the_step(
    tiny_recipe, refused, debate_command, files_of_at_most
):
    with files_of_at_most(20_000):
        line = refused("train", tiny_recipe, "logging.progress=none")
    assert (
        "cannot write runs/debate/transcripts/tokens/step_000000.jsonl: File too large; what was written "
        in line
    )
    records = list(read_records("runs/debate"))  # a torn line would warn, and a warning is an error here
    assert len(records) < 4
    code, out, err = debate_command("train", tiny_recipe)
    assert (code, out.splitlines()[0]) == (0, "done: 2 steps in runs/debate"), err
    assert len(list(read_records("runs/debate"))) == 8


@pytest.mark.slow
def test_a_full_disk_in_a_checkpoint_keeps_those_before_it(
    tiny_recipe, refused, debate_command, files_of_at_most
):
    quiet = ("logging.progress=none", "logging.transcript_tokens=false")
    assert debate_command("train", tiny_recipe, *quiet)[0] == 0
    checkpoints = Path("runs/debate/checkpoints")
    for path in sorted((checkpoints / "step_000002").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (checkpoints / "step_000002").rmdir()
    before = contents(checkpoints)
    with files_of_at_most(40_000):
        line = refused("train", tiny_recipe, *quiet)
    assert "cannot write checkpoint runs/debate/checkpoints/step_000002: File too large" in line
    assert contents(checkpoints) == before
    assert debate_command("train", tiny_recipe, *quiet)[0] == 0
    assert latest_good(checkpoints) == checkpoints / "step_000002"


def of_file(path: str) -> list[str]:
    return [f"env={{kind='gsm8k', path='{path}'}}"]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused_on_disk(options: str, *arguments: str) -> str:
    """Return the line of a command for which ./disk is a file system of its own, gone when it ends."""
    Path("disk").mkdir()
    mount = f"mount -t tmpfs -o {options} tmpfs disk || exit 77"
    command = [
        "unshare",
        "-m",
        "sh",
        "-c",
        f'{mount}; exec "$@"',
        "sh",
        sys.executable,
        "-m",
        "debate_rl.commands.main",
    ]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(HOME)}
    try:
        done = subprocess.run(
            [*command, *arguments], env=environment, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        pytest.skip("no unshare here")
    if done.returncode == 77 or done.stderr.startswith("unshare: "):
        pytest.skip(f"mounting is not allowed here: {done.stderr}")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    return done.stderr


def test_a_greedy_persona_is_not_trained(refused, tiny_recipe):
    persona = "debate.personas=[{name='Sure', instructions='', temperature=0}]"
    assert "debate.personas: Sure has temperature 0, and a greedy agent explores nothing" in refused(
        "train", tiny_recipe, persona
    )
    assert not Path("runs").exists()


@pytest.mark.parametrize(("key", "value", "off"), [("top_p", 0.95, 1), ("top_k", 20, 0)])
def test_likely_tokens_alone_are_not_trained(refused, tiny_recipe, key, value, off):
    line = refused("train", tiny_recipe, f"debate.{key}={value}")
    assert f"debate.{key} = {value}: training samples among all tokens" in line
    assert f"set debate.{key} = {off}, and give it to debate eval and debate solve play" in line
    assert not Path("runs").exists()


def test_a_prompt_file_that_changed_is_another_run(refused, tiny_recipe, debate_command):
    own = Path("own.toml")
    own.write_bytes((SHIPPED / "tiny.toml").read_bytes())
    command = ("train", tiny_recipe, "debate.prompts=./own.toml", "train.steps=0", "held_out.limit=0")
    assert debate_command(*command)[0] == 0
    own.write_text(own.read_text() + "# changed\n")
    told = refused(*command)
    assert "the data changed since this run began: own.toml" in told
    assert """'run.allow_changes=["data"]'""" in told
    assert debate_command(*command, 'run.allow_changes=["data"]')[0] == 0
    assert debate_command(*command)[0] == 0  # from then on it is the run's


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("debate.num_agents=2", "debate.num_agents=2: a judge needs two others to compare; use 3 or more"),
        ("debate.history_rounds=0", "debate.history_rounds=0: a judge is shown no work to compare"),
        ("held_out.limit=0", "held_out.limit=0: the quick-start measures on held-out problems"),
        (
            "held_out.kind=gsm8k",
            "the judge's pairs are made of held-out problems of pair_sum or words or products or sorting; "
            "these are of 'gsm8k'",
        ),
        ("warm_start.batch=[0,0,0,0]", "warm_start.batch: needs four counts of 0 or more, and one of them"),
        ("warm_start.right=[2]", "warm_start.right: needs a probability in 0..1 for each persona"),
        ("warm_start.right=[0.9]", "warm_start: right and lure are shares of the same demonstrations"),
    ],
)
def test_a_quick_start_that_could_not_be_measured_is_refused_at_once(refused, override, told):
    assert told in refused("quickstart", override)
    assert not Path("runs").exists()


def test_a_recipe_for_a_gpu_says_first_that_there_is_none(refused, monkeypatch):
    monkeypatch.setattr("debate_rl.engines.version", lambda _: "0.32.0")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("envs.hub.is_reachable", None)  # nobody looks for anything in the hub
    assert refused("train", "gsm8k_qwen3_8b_1gpu").startswith("debate: no GPU here: torch sees none, and ")
    assert refused("solve play", "gsm8k_qwen3_8b_1gpu", "2 + 2?").startswith("debate: no GPU here: ")
