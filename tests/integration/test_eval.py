import json
import shutil
import time
from collections import Counter
from pathlib import Path

import pytest

from debate_rl.config import Config
from debate_rl.config.recipes import load_config
from debate_rl.metrics.held_out import FIGURES as COMPARED
from debate_rl.metrics.held_out import gain, read_held_out
from debate_rl.training.loop import train
from transcripts import read_records
from transcripts.codec import from_line

from .conftest import python, start

WINNER = "debate/winner/accuracy"
FIGURES = {
    *("direct/greedy_accuracy", "direct/accuracy", "direct/self_consistency", "direct/missing"),
    *("direct/truncated", "direct/generated_tokens", "debate/accuracy/round_0", "debate/accuracy/round_1"),
    *("debate/winner/accuracy", "debate/majority", "debate/missing", "debate/truncated"),
    *("debate/generated_tokens", "debate/winner_minus_self_consistency"),
}


@pytest.fixture(scope="module")
def home(tiny_recipe, tmp_path_factory):
    """A run of two steps with both checkpoints, its recipe beside it."""
    folder = tmp_path_factory.mktemp("evaluations")
    more = [f"run.dir={folder / 'run'}", "logging.progress=none", "train.keep_last=2", "held_out.limit=4"]
    train(load_config(Config, tiny_recipe, more))
    return folder


@pytest.fixture
def evaluate(home, debate_command, monkeypatch):
    monkeypatch.chdir(home)
    return lambda *arguments: debate_command("eval", *arguments)


@pytest.fixture
def figures(evaluate, home):
    """Return figures(*words) -> (stdout, the rows of --json) of an evaluation that ends well."""

    def call(*words):
        code, out, err = evaluate(*words, "--json", "f.json")
        assert code == 0, err
        return out, json.loads((home / "f.json").read_text())

    return call


@pytest.fixture
def sums(home):
    """Arguments that name two data sets as files."""
    rows = [{"question": f"What is {i} + 2?", "answer": f"#### {i + 2}"} for i in range(2)]
    (home / "gsm8k.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    rows = [{"Body": "Tom has 2.", "Question": f"And {i}?", "Answer": f"{i + 2}"} for i in range(3)]
    (home / "svamp.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return "--on", "gsm8k=gsm8k.jsonl", "--on", "svamp=svamp.jsonl"


def test_one_run_has_every_mode_with_intervals_and_is_kept(figures, home):
    out, found = figures("run", "--weights", "newest", "--greedy", "--table", "t.md")
    rows = {row["name"]: row for row in found}
    assert set(rows) >= FIGURES
    bounded = [row for row in rows.values() if row["low"] is not None]  # not token counts that are all alike
    assert all(row["low"] <= row["value"] <= row["high"] for row in bounded)
    assert all(name.endswith("_tokens") for name in rows.keys() - {row["name"] for row in bounded})
    [folder] = (home / "run/evaluations").iterdir()
    assert folder.name.startswith("step_000002-")
    assert len(list(read_records(folder / "debates"))) == 4
    kept = {row["name"] for row in json.loads((folder / "figures.json").read_text())}
    assert kept == set(rows)
    assert "4 problems, graded as boxed; self-consistency is the majority of " in out
    assert "fewer than 100 problems" in out
    assert out.count("│ debate winner accuracy  ") == 1
    assert (home / "t.md").read_text().count("\n| debate winner accuracy  ") == 1


def test_sampling_among_likely_tokens_is_another_evaluation_and_recorded_with_it(evaluate, home):
    before = set((home / "run/evaluations").glob("*"))
    code, _, _ = evaluate("run", "--weights", "2", "debate.top_k=1", "debate.top_p=0.9", "held_out.limit=2")
    [folder] = set((home / "run/evaluations").glob("*")) - before
    assert code == 0
    kept = json.loads((folder / "evaluation.json").read_text())["of"]["debate"]
    assert (kept["top_p"], kept["top_k"]) == (0.9, 1)
    for record in read_records(folder / "debates"):
        assert (record.debate.protocol.top_p, record.debate.protocol.top_k) == (0.9, 1)
        logprobs = {value for turn in record.debate.turns for value in turn.completion.logprobs}
        assert logprobs <= {0.0}  # one token is left


@pytest.mark.slow
def test_several_weights_are_one_table_with_gains(figures, home):
    out, rows = figures("run", "--weights", "all", "--table", "t.tex")
    gains = {row["name"]: row for row in rows if "minus" in row}
    kept = read_held_out(home / "run")  # this run was not evaluated in training
    assert [one.step for one in kept] == [0, 1, 2]
    found = {name: one for name in COMPARED if (one := gain(kept[0], kept[-1], name)) is not None}
    assert WINNER in found
    for name, one in found.items():
        assert one.difference.value == pytest.approx(gains[name]["value"])
    assert "pair_sum, run" in out
    assert out.index("after 1 step") < out.index("after 2 steps") < out.index("gain")
    tex = (home / "t.tex").read_text()
    assert ("debate winner accuracy gain" in tex, "\\bottomrule" in tex) == (True, True)


def test_a_recipe_is_its_model_as_it_is(figures, home, tiny_recipe):
    out, rows = figures(tiny_recipe, "run", "held_out.limit=3")
    assert {row["evaluation"] for row in rows} == {tiny_recipe, "run@2"}
    assert [path.name[:6] for path in (home / "evaluations/debate").iterdir()] == ["model-"]
    assert "3 problems" in out


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("--direct",), ("debate.num_agents=1", "debate.num_rounds=1")])
def test_without_debates_there_are_solutions_alone(figures, home, arguments):
    """Asked for, or where the protocol holds none."""
    out, rows = figures("run", *arguments, "--samples", "3", "held_out.limit=3")
    names = {row["name"] for row in rows}
    assert {"direct/accuracy", "direct/pass@2", "direct/cons@3", "direct/truncated"} <= names
    assert {name.partition("/")[0] for name in names} == {"direct"}
    assert "3 problems, graded as boxed; 3 direct solutions per problem, and no debate." in out
    folders = [path for path in (home / "run/evaluations").iterdir() if (path / "direct").is_dir()]
    records = [record for folder in folders for record in read_records(folder / "direct")]
    assert len(records) == 9 * len(folders)
    assert {(len(r.debate.personas), len(r.debate.turns)) for r in records} == {(1, 1)}


@pytest.fixture
def damaged(home, tmp_path):
    """The run with three checkpoints, of which the middle one is damaged."""
    run = tmp_path / "damaged"
    shutil.copytree(home / "run", run, ignore=shutil.ignore_patterns("evaluations"), symlinks=True)
    newest = run / "checkpoints/step_000002"
    shutil.copytree(newest, run / "checkpoints/step_000003")
    (newest / "model/model.safetensors").write_bytes(b"")
    return run


@pytest.mark.slow
def test_one_of_all_weights_that_fails_does_not_stop_the_others(evaluate, home, damaged):
    more = ("--weights", "all", "held_out.limit=3", "--json", "f.json")
    code, out, err = evaluate(str(damaged), *more)
    assert (code, err.count("Traceback")) == (1, 0), err
    rows = json.loads((home / "f.json").read_text())
    labels = [f"{damaged}@{step}" for step in ("start", 1, 3)]
    [failed] = [row for row in rows if row["name"] == "failed"]
    assert (failed["evaluation"], "model.safetensors" in failed["error"]) == (f"{damaged}@2", True)
    assert list(dict.fromkeys(row["evaluation"] for row in rows if row["name"] == WINNER)) == labels
    [best] = [row for row in rows if row["name"] == f"best {WINNER}"]
    values = {row["evaluation"]: row["value"] for row in rows if row["name"] == WINNER and "minus" not in row}
    assert (best["value"], best["of"]) == (max(values.values()), 3)
    assert values[best["evaluation"]] == best["value"]
    assert "1 of 4 evaluations failed:" in out
    assert f"best of {damaged} on pair_sum: {best['evaluation']}, debate winner accuracy " in out


SUITE = """
[all]
role = "held-out"
direct = true
samples = 2
debate = {{ max_tokens = {tokens} }}

[sets.sums]
role = "train-like"
held_out = {{ kind = "gsm8k", path = "gsm8k.jsonl" }}

[sets.stories]
samples = 3
held_out.kind = "svamp"
held_out.path = "svamp.jsonl"
debate.max_tokens = 5
grader.beside = ["lenient"]
"""


@pytest.mark.usefixtures("sums")
def test_a_suite_is_one_table_with_roles_limits_and_what_was_trained_on(figures, home, tiny_recipe):
    Path("suite.toml").write_text(SUITE.format(tokens=7))
    rows = [{"question": f"What is {i} + 2?", "answer": f"{i + 2}"} for i in (5, 6, 7, 1)]
    Path("train.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    trained_on = "env.kind=jsonl", "env.path=train.jsonl", "env.levels=none"  # two are held out
    out, rows = figures(tiny_recipe, *trained_on, "--suite", "suite.toml", "--table", "t.md")
    facts = {row["data"]: (row["role"], row["in training"]) for row in rows}
    assert facts == {"sums": ("train-like", "1, 1 the same"), "stories": ("held-out", "0")}
    assert out.count("train-like") == out.count("held-out") == 1
    counts = {row["data"]: row["n"] for row in rows if row["name"] == "direct/accuracy"}
    assert counts == {"sums": 2 * 2, "stories": 3 * 3}
    assert "direct truncated" in out
    assert "direct/accuracy [lenient]" in {row["name"] for row in rows if row["data"] == "stories"}
    assert "train-like" in (home / "t.md").read_text()
    kept = [r for path in (home / "evaluations").glob("**/direct") for r in read_records(path)]
    assert {record.debate.protocol.max_tokens for record in kept} >= {7, 5}


@pytest.mark.slow
def test_a_sweep_has_a_line_for_each_value_before_and_after(figures):
    out, rows = figures("run", "--direct", "held_out.limit=2", "--sweep", "debate.max_tokens=4,8")
    rows = [row for row in rows if row["name"] == "direct/accuracy"]
    sets = [f"pair_sum, debate.max_tokens={value}" for value in (4, 8)]
    assert [(row["data"], row["evaluation"]) for row in rows if "minus" not in row] == [
        (data, f"run@{weights}") for data in sets for weights in ("start", 2)
    ]
    assert [row["data"] for row in rows if "minus" in row] == sets
    assert all(out.count(data) >= 2 for data in sets)


@pytest.mark.slow
def test_kept_replies_are_graded_in_other_modes_and_by_another_grader(figures, home, sums, monkeypatch):
    def rows(*words):
        out, found = figures("run", *sums[:2], *words)
        folders = (home / "run/evaluations").glob("*/held_out.jsonl")
        newest = max(folders, key=lambda path: path.stat().st_mtime_ns)
        return out, json.loads(newest.read_text())["series"], {row["name"]: row for row in found}

    _, before, lenient = rows("grader.mode=lenient")
    monkeypatch.setattr("debate_rl.inference.local.LocalPolicy.sample", None)  # whoever asks fails
    _, after, boxed = rows("grader.mode=boxed")
    assert lenient["direct/missing"]["value"] <= boxed["direct/missing"]["value"]
    assert before != after
    assert rows("grader.mode=lenient")[1:] == (before, lenient)
    out, _, found = rows("--modes", "boxed,gsm8k_flexible_extract")
    for name in ("direct/accuracy", "direct/missing", "direct/pass@2"):
        assert (found[f"{name} [boxed]"]["value"], found[f"{name} [boxed]"]["n"]) == (
            *(found[name]["value"], found[name]["n"]),
        )
    assert 0 <= found["direct/missing [gsm8k_flexible_extract]"]["value"] <= 1
    assert all(f"│ direct accuracy [{mode}]" in out for mode in ("boxed", "gsm8k_flexible_extract"))


@pytest.mark.slow
def test_a_watch_evaluates_what_there_is_and_ends_with_the_last_step(evaluate):
    code, out, _ = evaluate("run", "--watch", "held_out.limit=2")
    assert code == 0
    assert out.count("2 problems, graded as boxed; self-consistency") == 2  # after each of the two


@pytest.mark.usefixtures("sums")
def test_what_cannot_be_evaluated_is_one_line(evaluate):
    Path("bad.toml").write_text("[all]\ndirect = true\n")
    Path("typo.toml").write_text("[sets.a]\nheld_out.kind = 'svamp'\ndebate.max_token = 4\n")
    for words, why in {
        "run --weights 7": "run: has no weights '7'; use newest, best (train.keep_best), start ",
        "run --weights best": "the step of a checkpoint: 1, 2",
        "run held_out.limit=0": "held_out: there are no problems to evaluate on",
        "run --seeds 0": "--seeds 0: must be at least 1",
        "run --table t.txt": "--table t.txt: the name must end in .md or .tex",
        "run --json a\0": "cannot be written; name a file",
        "run --weights 1,2 --out x": "--out: only for a single evaluation",
        "run --on a --on b --out x": "--out: only for a single evaluation",
        "quickstart --watch": "--watch: quickstart is not the folder of a run",
        "run --watch --weights 1": "--watch: evaluates all checkpoints of a single run",
        "nowhere": "nowhere: no such file",
        "run run": "run: is given twice",
        "held_out.limit=2": "eval: name a recipe or the folder of a run",
        "quickstart --weights best": "--weights best: quickstart is a recipe without checkpoints",
        "run --samples 99999": "--samples 99999: must be from 0 to 10000",
        "run --on no_such": "--on: 'no_such' is not known; valid: ",
        "run --on words=x.jsonl": "--on: words takes 'levels' and no 'path'",
        "run --suite bad.toml": "bad.toml: sets: is missing",
        "run --suite typo.toml": "typo.toml: sets.a: run/config.toml debate.max_token=4: debate: unknown key",
        "run --suite typo.toml --on b": "typo.toml: has no set 'b'; it has a",
        "run --sweep learner.lr=1,2": "--sweep learner.lr=1,2: write KEY=A,B,C with a key of held_out, ",
        "run --sweep debate.max_tokens=1,1": "and different values",
        "run --modes strict": "--modes strict: unknown; valid: boxed, gsm8k_strict, ",
        "run --on svamp=svamp.jsonl --modes first_letter": "--modes first_letter: is for multi",
    }.items():
        code, _, err = evaluate(*words.split(" "))
        [line] = err.splitlines()
        assert (code, why in line) == (2, True), line


@pytest.mark.slow
def test_a_folder_of_another_evaluation_is_refused_and_left_alone(evaluate, home):
    assert evaluate("run", "--out", "mine", "held_out.limit=2")[0] == 0
    before = {path: path.read_bytes() for path in Path("mine").rglob("*") if path.is_file()}
    code, _, err = evaluate("run", "--out", "mine", "held_out.limit=3", "--seeds", "2")
    assert (code, err.startswith("debate: mine: "), "other problems, seeds" in err) == (2, True, True)
    assert evaluate("run", "--out", "run")[2].startswith("debate: run: ")
    (home / "mine/evaluation.json").write_text("[")
    assert "mine/evaluation.json: " in evaluate("run", "--out", "mine", "held_out.limit=2")[2]
    after = {path: path.read_bytes() for path in Path("mine").rglob("*") if path.is_file()}
    assert {**after, Path("mine/evaluation.json"): b""} == {**before, Path("mine/evaluation.json"): b""}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "count"), [("debates", 1), ("debates", 12), ("replies", 6), ("replies", 12)]
)
def test_an_evaluation_that_was_killed_goes_on_and_asks_nothing_twice(home, tmp_path, what, count):
    """kill -9 once this many debates, or replies of open ones, are on the disk; then the same command."""
    more = ("held_out.limit=8", "train.max_live=2")
    folder = tmp_path / "killed"
    command = ("-m", "debate_rl", "eval", home / "run", *more, "--out", folder)
    lines = {"debates": kept, "replies": open_replies}[what]
    with start(*command, cwd=tmp_path) as child:
        while child.poll() is None and len(lines(folder)) < count:
            time.sleep(0.001)
        child.kill()
    debates, replies = kept(folder), open_replies(folder)
    assert len(lines(folder)) >= count
    done = python(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    after = kept(folder)
    assert set(debates) <= set(after)
    texts = Counter(turn.completion.text for line in after for turn in from_line(line).debate.turns)
    assert not Counter(json.loads(line)["reply"]["text"] for line in replies) - texts
    seeds = [from_line(line).debate.seed for line in after]
    assert len(seeds) == len(set(seeds))
    assert len(seeds) % 8 == 0  # a debate, and as many of first rounds, for each of 8 problems
    assert (folder / "figures.json").exists()


def open_replies(folder):
    """Return the whole lines of the replies whose debates were open."""
    try:
        lines = (folder / "open_replies.jsonl").read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return []
    return [line for line in lines if line.endswith(b"\n")]


def kept(folder):
    """Return the whole lines of an evaluation's transcripts, debates first."""
    shards = sorted(path for path in folder.rglob("step_*.jsonl") if path.parent.name != "tokens")
    lines = (line for shard in shards for line in shard.read_bytes().splitlines(keepends=True))
    return [line for line in lines if line.endswith(b"\n")]


def test_the_evaluations_of_a_run_are_listed_and_each_part_opens_as_a_run_does(
    evaluate, home, debate_command
):
    assert evaluate("run", "--out", "run/evaluations/step_000002-mine")[0] == 0
    code, out, err = debate_command("inspect", "run", "evaluations")
    assert (code, err) == (0, "")
    assert "step_000002-mine, after 2 steps\n" in out
    folder = "run/evaluations/step_000002-mine/debates"
    assert f"   debates, 4 debates: debate inspect {folder}\n" in out
    code, listed, _ = debate_command("inspect", folder, "ls")
    assert (code, listed.count("pair_sum")) == (0, 4)
    lines = map(json.loads, debate_command("inspect", "run", "evaluations", "--json")[1].splitlines())
    [mine] = [line for line in lines if line["name"] == "step_000002-mine"]
    assert (mine["schema"], mine["step"]) == (1, 2)
    assert {"name": "debates", "debates": 4, "folder": folder} in mine["parts"]
    assert debate_command("inspect", "run", "evaluations", "x")[0] == 2
