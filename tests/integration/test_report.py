import json
import sys
from collections import Counter

import pytest

from benchmarks.known_judges import Judges, known_records, made_solutions
from debate import DebateConfig
from debate.settings import install_hint
from debate_rl.reports import judgment_figures
from transcripts import write_step

CONFIG = DebateConfig(num_agents=3, num_rounds=2)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("reports")


@pytest.fixture
def report(home, debate_command, monkeypatch):
    monkeypatch.chdir(home)
    return lambda *arguments: debate_command("report", *arguments)


@pytest.fixture(scope="module")
def example(home):
    """The folder of a run of 200 debates whose judges are right in 0.7 of their votes."""
    folder = home / "example"
    records = list(known_records(made_solutions(60, seed=0), Judges(0.7), CONFIG, debates=200, seed=0))
    for step in range(records[-1].step + 1):
        write_step(folder / "transcripts", step, [one for one in records if one.step == step], tokens=False)
    (folder / "config.toml").write_text("[debate]\nnum_agents = 3\n")
    return folder


def test_a_report_is_a_page_and_a_json_file_with_the_answers_first(report, example):
    code, out, err = report("example")
    assert (code, err) == (0, "")
    assert "Report: example/report/report.html (report.json next to it)" in out
    lines, command = out.splitlines(), "debate eval example --weights all"
    assert lines[0] == "Did it learn? Unknown."
    assert lines[3] == "Can the judge be trusted, and is it getting worse? Better than chance."
    assert f"      {command}" in lines
    facts = json.loads((example / "report" / "report.json").read_text())
    figures = {figure["name"]: figure for figure in facts["figures"]}
    assert figures["winner/accuracy"]["n"] == 200
    assert figures["judge/accuracy"]["low"] <= 0.7 <= figures["judge/accuracy"]["high"]
    assert [*facts["answers"]] == ["learned", "judge", "next"]
    assert facts["answers"]["learned"]["word"] == "unknown"
    assert facts["answers"]["next"]["commands"][0] == command
    assert {one["state"] for one in facts["findings"]} <= {"found", "nothing found", "too few"}
    assert sorted(path.name for path in (example / "report").iterdir()) == ["report.html", "report.json"]
    page = (example / "report" / "report.html").read_text()
    assert page.index("Did it learn?") < page.index(command) < page.index('<details class="folded section')


@pytest.mark.slow
def test_a_filter_and_an_inspector(report, example, home):
    arguments = ("--filter", 'level:"Level 1"', "--out", "of-level-1", "--inspector", "http://127.0.0.1:8000")
    code, _, err = report("example", *arguments, "--json", "figures.json")
    assert (code, err) == (0, "")
    facts = json.loads((home / "figures.json").read_text())
    assert facts == json.loads((home / "of-level-1" / "report.json").read_text())
    figures = {figure["name"]: figure for figure in facts["figures"]}
    assert figures["judge/accuracy"]["filter"] == '(level:"Level 1") judge.accuracy:>=0'
    assert figures["winner/accuracy"]["n"] < 200
    page = (home / "of-level-1" / "report.html").read_text()
    assert "http://127.0.0.1:8000/run/example/debates?filter=" in page


def test_nothing_of_others_is_written_over(report, example, home):
    (home / "mine").mkdir()
    (home / "mine" / "report.json").write_text("my own words")
    code, out, err = report("example", "--out", "mine")
    assert (code, out, err.startswith("debate: mine/report.json: ")) == (2, "", True)
    assert [path.read_text() for path in (home / "mine").iterdir()] == ["my own words"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("nowhere", "nowhere: there is no such folder"),
        ("empty", "empty: not the folder of a run (no transcripts in it)"),
        ("example --filter step:>900", "example: contains no debates that step:>900 finds"),
        ("example --inspector javascript:x", "must begin with http:// or https://"),
        ("example --out file", "file: is not a folder; choose another --out"),
        ("broken", "broken: contains no debates; damaged: step 0"),
    ],
)
def test_what_cannot_be_is_one_line(report, example, home, arguments, said):
    (home / "empty").mkdir(exist_ok=True)
    (home / "file").write_text("")
    line = json.loads((example / "transcripts" / "step_000000.jsonl").read_text().splitlines()[0])
    broken = home / "broken" / "transcripts" / "step_000000.jsonl"
    broken.parent.mkdir(parents=True, exist_ok=True)
    broken.write_text(json.dumps(line | {"correct": 7}) + "\n")
    code, out, err = report(*arguments.split())
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err
    assert not list((home / "empty").iterdir())


SETTINGS = [
    Judges(accuracy, position, ties, silent=0.05)
    for accuracy in (0.5, 0.7, 0.9)
    for position, ties in ((0.0, 0.0), (0.1, 0.0), (-0.05, 0.2), (0.05, 0.1))
]


@pytest.mark.slow
def test_what_was_put_in_is_found():
    """Of 60 intervals of 95%, at least 51 hold the truth: fewer do once in a thousand times."""
    held: Counter[str] = Counter()
    for seed, judges in enumerate(SETTINGS):
        config = DebateConfig(num_agents=3 + seed % 2, num_rounds=1)
        records = known_records(made_solutions(100, seed=seed), judges, config, debates=200, seed=seed)
        found = {figure.name: figure.estimate for figure in judgment_figures(records)}
        for figure, value in judges.expected.items():
            held[figure] += found[figure].low <= value <= found[figure].high
    assert sum(held.values()) >= 51
    assert min(held.values()) >= 9


def test_a_missing_extra_is_one_line(report, example, home, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, err = report("example", "--out", "without")
    assert code == 2
    assert err == f"debate: the package 'matplotlib' is not installed: {install_hint('report')}\n"
    assert not (home / "without").exists()
