"""``debate report``: from run folders to files, with simulated judges whose accuracy must be found again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import debate_rl
from debate.settings import install_hint
from debate_rl.reports.report import judge_run
from debate_rl.reports.simulation import Judges, Setting, read_solutions, simulate_run

DATA = os.environ.get("DEBATE_TEST_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="set DEBATE_TEST_DATA to the folder of the data files")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("reports")


@pytest.fixture
def report(home, debate_command, monkeypatch):
    monkeypatch.chdir(home)
    return lambda *arguments: debate_command("report", *arguments)


@pytest.fixture
def example(report, home):
    """The example's run folder, made once."""
    assert report("--example")[0] == 0
    return home / "debate-example"


@pytest.mark.slow
def test_the_example_makes_a_run_and_reports_on_it(report, example):
    code, out, err = report("--example")
    assert (code, err) == (0, "")
    assert "Report: debate-example/report/report.html (report.md, report.json next to it)" in out
    assert "judge/accuracy" in out
    facts = json.loads((example / "report" / "report.json").read_text())
    [put_in] = [section for section in facts["sections"] if section["name"] == "simulation"]
    inside = {row[0]["text"]: row[4]["value"] for row in put_in["parts"][0]["rows"]}
    assert inside["judge/accuracy"] is True
    figures = {figure["name"]: figure for figure in facts["figures"]}
    assert figures["winner/accuracy"]["n"] == 200
    page = (example / "report" / "report.html").read_text()
    assert "Simulated judges" in page
    assert sorted(path.name for path in (example / "report").iterdir()) == [
        "report.html",
        "report.json",
        "report.md",
    ]


def test_the_same_debates_make_the_same_files(report, example):
    before = {path.name: path.read_bytes() for path in (example / "report").iterdir()}
    assert report("debate-example")[0] == 0
    assert before == {path.name: path.read_bytes() for path in (example / "report").iterdir()}


def test_a_filter_and_an_inspector(report, example, home):
    arguments = ("--filter", 'level:"Level 1"', "--out", "of-level-1", "--inspector", "http://127.0.0.1:8000")
    code, _, err = report("debate-example", *arguments, "--json", "figures.json")
    assert (code, err) == (0, "")
    facts = json.loads((home / "figures.json").read_text())
    assert facts == json.loads((home / "of-level-1" / "report.json").read_text())
    figures = {figure["name"]: figure for figure in facts["figures"]}
    assert figures["judge/accuracy"]["filter"] == '(level:"Level 1") judge.accuracy:>=0'
    assert figures["winner/accuracy"]["n"] < 200
    page = (home / "of-level-1" / "report.html").read_text()
    assert "http://127.0.0.1:8000/run/debate-example/debates?filter=" in page


def test_what_is_no_file_is_not_read(report, example, home):
    (home / "device").mkdir()
    (home / "device" / "report.html").symlink_to("/dev/null")
    code, _, err = report("debate-example", "--out", "device")
    assert (code, err) == (2, "debate: device/report.html: is not a file; choose another --out\n")


@pytest.mark.slow
def test_several_runs_are_compared(report, example, home):
    assert report("--example", "--seed", "1", "--judge-accuracy", "0.9", "--out", "other")[0] == 0
    code, out, err = report("debate-example", "other")
    assert (code, err) == (0, "")
    assert "Report: report/report.html" in out
    assert "  other: better than a coin. Judges are right in " in out
    facts = json.loads((home / "report" / "report.json").read_text())
    [section] = [section for section in facts["sections"] if section["name"] == "comparison"]
    rows = {row[0]["text"]: row for row in section["parts"][0]["rows"]}
    assert rows["judge/accuracy"][3]["value"] > 0.1
    assert {figure["run"] for figure in facts["figures"]} == {"debate-example", "other"}


@pytest.mark.slow
def test_the_answers_come_first_on_screen_page_markdown_and_json(report, example, home):
    shutil.copytree(example, home / "trained")
    (home / "trained" / "simulation.json").unlink()
    code, out, _ = report("trained")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "Did it learn? Not known."
    assert lines[3] == "Can the judge be trusted, and is it getting worse? Better than a coin."
    assert "      debate eval trained --weights all" in lines
    facts = json.loads((home / "trained" / "report" / "report.json").read_text())
    assert [*facts["answers"]] == ["learned", "judge", "next"]
    assert facts["answers"]["learned"]["word"] == "not known"
    assert facts["answers"]["next"]["commands"][0] == "debate eval trained --weights all"
    assert {one["state"] for one in facts["findings"]} <= {"found", "nothing found", "too few"}
    markdown = (home / "trained" / "report" / "report.md").read_text()
    page = (home / "trained" / "report" / "report.html").read_text()
    for text, first in ((markdown, "\n## "), (page, '<details class="folded section')):
        assert (
            text.index("Did it learn?") < text.index("debate eval trained --weights all") < text.index(first)
        )
    assert report("debate-example")[1].startswith("Did it learn? Nothing was trained.")


def test_nothing_of_others_is_written_over(report, example, home):
    (home / "mine").mkdir()
    (home / "mine" / "report.md").write_text("my own words")
    code, out, err = report("debate-example", "--out", "mine")
    assert (code, out) == (2, "")
    assert err == "debate: mine/report.md: was not written by debate report; choose another --out\n"
    assert [path.name for path in (home / "mine").iterdir()] == ["report.md"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name the folder of a run, or say --example or --solutions FILE"),
        (["nowhere"], "nowhere: there is no such folder"),
        (["empty"], "empty: not the folder of a run (no transcripts in it)"),
        (["file"], "file: not a folder"),
        (["debate-example", "--filter", "winner:green"], "winner"),
        (
            ["debate-example", "--filter", "step:>900"],
            "debate-example: holds no debates that step:>900 finds",
        ),
        (["debate-example", "--inspector", "javascript:x"], "must begin with http:// or https://"),
        (["debate-example", "--json", "no/where.json"], "--json no/where.json: cannot be written"),
        (["debate-example", "--out", "file"], "file: is not a folder; choose another --out"),
        (["debate-example", "--example"], "--example and --solutions make a run of their own"),
        (["--example", "--judge-accuracy", "1.5"], "accuracy: must be in [0, 1], got 1.5"),
        (["--example", "--judge-accuracy", "0.6"], "debate-example: holds another simulation"),
        (["--example", "--agents", "0", "--out", "new"], "agents"),
        (["--solutions", "nowhere.jsonl"], "nowhere.jsonl: No such file or directory"),
        (["newer"], "schema: version 99; this version of debate-rl reads 1 alone"),
        (["broken"], "broken: holds no debates; damaged: step 0"),
        (["odd"], "line 1: debate.turns[0].parsed.solution: expected array"),
    ],
)
def test_what_cannot_be_is_one_line(report, example, home, arguments, said):
    (home / "empty").mkdir(exist_ok=True)
    (home / "file").write_text("")
    line = json.loads((example / "transcripts" / "step_000000.jsonl").read_text().splitlines()[0])
    turns = [turn | {"parsed": turn["parsed"] | {"solution": "x"}} for turn in line["debate"]["turns"]]
    for name, change in (
        ("newer", {"schema": 99}),
        ("broken", {"correct": 7}),
        ("odd", {"debate": line["debate"] | {"turns": turns}}),
    ):
        (home / name / "transcripts").mkdir(parents=True, exist_ok=True)
        shard = home / name / "transcripts" / "step_000000.jsonl"
        shard.write_text(json.dumps(line | change) + "\n")
    code, out, err = report(*arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == (3 if "winner:green" in arguments else 1)  # with a caret
    assert said in err
    assert not list((home / "empty").iterdir())


SETTINGS = [
    Judges(accuracy, position, ties, silent=0.05)
    for accuracy in (0.5, 0.7, 0.9)
    for position, ties in ((0.0, 0.0), (0.1, 0.0), (-0.05, 0.2), (0.05, 0.1))
]


@pytest.mark.slow
@needs_data
@pytest.mark.parametrize("name", ["math", "gsm8k"])
def test_what_was_put_in_is_found_in_debates_of_real_solutions(tmp_path, name):
    """Of 60 intervals of 95%, at least 51 hold the truth: fewer do once in a thousand times."""
    solved = read_solutions(Path(str(DATA)) / f"model_outputs_{name}.jsonl")
    held: Counter[str] = Counter()
    for seed, judges in enumerate(SETTINGS):
        agents = 3 + seed % 2
        setting = Setting(name, judges, agents, rounds=1, debates=200, seed=seed)
        simulate_run(tmp_path / str(seed), solved, setting)
        judged = judge_run(str(tmp_path / str(seed)))
        found = {figure.name: figure.estimate for figure in judged.figures}
        for figure, value in judges.expected.items():
            held[figure] += found[figure].low <= value <= found[figure].high
        if name == "gsm8k":  # problems enough to tell other judges from these
            assert found["judge/accuracy"].high < judges.expected["judge/accuracy"] + 0.2
            assert found["judge/accuracy"].low > judges.expected["judge/accuracy"] - 0.2
        assert judged.damaged == 0
    assert sum(held.values()) >= 51
    assert min(held.values()) >= 9


@pytest.mark.slow
@needs_data
def test_the_command_reports_on_a_file_of_solutions(report, home):
    path = Path(str(DATA)) / "model_outputs_math.jsonl"
    code, _, err = report("--solutions", path, "--judge-accuracy", "0.8", "--agents", "4", "--out", "real")
    assert (code, err) == (0, "")
    facts = json.loads((home / "real" / "report" / "report.json").read_text())
    figures = {figure["name"]: figure for figure in facts["figures"]}
    assert figures["judge/accuracy"]["low"] <= 0.8 <= figures["judge/accuracy"]["high"]


@pytest.mark.slow
def test_what_is_loaded_when(home, example):
    script = (
        "import sys\n"
        "import debate_rl.reports, debate_rl.reports.report, debate_rl.reports.rendering\n"
        "print([m for m in ('matplotlib', 'jinja2') if m in sys.modules])\n"
        "from debate_rl.commands.report import report\n"
        "report(['debate-example'], out='again')\n"
        "print([m for m in ('torch', 'transformers', 'peft', 'vllm') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=home,
        env={"PYTHONPATH": str(Path(debate_rl.__file__).parents[1])},
        capture_output=True,
        text=True,
    )
    lines = done.stdout.splitlines()
    assert (lines[0], lines[-1]) == ("[]", "[]"), done.stderr


def test_a_missing_extra_is_one_line(report, home, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, out, err = report("--example", "--out", "without")
    assert (code, out) == (2, "")
    assert err == f"debate: the package 'matplotlib' is not installed: {install_hint('report')}\n"
    assert not (home / "without").exists()
