import json
import shutil

import pytest


@pytest.fixture(scope="module")
def home(folder):
    """A run of two steps without its weights."""
    shutil.rmtree(folder / "run/checkpoints")
    return folder


@pytest.fixture
def regrade(home, debate_command, monkeypatch):
    monkeypatch.chdir(home)
    return lambda *arguments: debate_command("eval regrade", *arguments)


def test_a_run_without_weights_is_graded_again(regrade, home):
    code, out, err = regrade("run", "--modes", "boxed", "--json", "f.json")
    assert code == 0, err
    lines = json.loads((home / "f.json").read_text())["lines"]
    assert {(line["source"], line["part"], line["mode"]) for line in lines} == {
        ("steps 0..1", f"training, round {round_}", mode) for round_ in (0, 1) for mode in ("stored", "boxed")
    }
    assert all(line["replies"] == 24 for line in lines)  # 2 steps, 2 problems, 2 debates of each, 3 agents
    assert all(line["differs"]["value"] == 0 for line in lines if line["mode"] == "boxed")
    assert "steps 0..1" in out


def test_with_stop_strings_both_arms_are_printed_and_written(regrade, home):
    code, out, _ = regrade("run", "--clip", r"e,\n", "--table", "t.md", "--json", "g.json", "--steps", "1")
    assert code == 0
    assert "Clipped at the first of 'e', '\\n'; nothing was sampled." in out
    assert json.loads((home / "g.json").read_text())["clip"] == r"e,\n"
    table = (home / "t.md").read_text()
    assert "| step 1 " in table
    assert "clipped - as sampled" in table


def test_only_debates_of_a_filter_are_graded(regrade, home):
    code, _, _ = regrade("run", "--filter", "step:0 id:0.1", "--steps", "0", "--json", "h.json")
    assert code == 0
    assert {line["replies"] for line in json.loads((home / "h.json").read_text())["lines"]} == {3}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("nowhere", "nowhere: is neither a run nor the folder of an evaluation"),
        ("run --modes boxes", "--modes boxes: unknown; valid: boxed, "),
        ("run --modes ,", "--modes: name "),
        ("run --clip family", "--clip family: the prompt set tiny has no stop strings"),
        ("run --clip family:none", "no prompt set 'none'"),
        ("run --steps 9..", "run: no debates of these steps are stored"),
        ("run --steps 2..1", "--steps '2..1'"),
        ("run --table t.txt", "--table t.txt: "),
        ("run --filter step:x", "step takes a number"),
    ],
)
def test_a_mistake_is_one_line(regrade, arguments, said):
    code, out, err = regrade(*arguments.split())
    assert (code, out) == (2, "")
    assert said in err


def test_a_filter_that_leaves_no_reply_with_a_gold_answer_is_refused(regrade):
    code, out, err = regrade("run", "--filter", "step:0 tokens:<0")
    assert (code, out, err.startswith("debate: run: has no stored replies")) == (2, "", True)
