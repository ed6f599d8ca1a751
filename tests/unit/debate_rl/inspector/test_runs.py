import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from debate_rl.commands.inspect_actions import print_lines
from debate_rl.inspector.actions import LineOptions
from debate_rl.inspector.runs import find_runs, run_at
from debate_rl.runs.folder import is_locked, locked
from transcripts import TranscriptError, write_step

from .conftest import make, solved


@pytest.fixture
def runs(tmp_path):
    """A folder of two runs with debates of step 5, one that has just begun, and what is no run."""
    record = make([[solved(4), solved(5), solved(6)]])
    for name in ("b", "a"):
        write_step(tmp_path / "runs" / name / "transcripts", 5, [record, record])
    (tmp_path / "runs/new/transcripts").mkdir(parents=True)
    (tmp_path / "runs/new/config.toml").write_text("")
    (tmp_path / "runs/notes").mkdir()
    (tmp_path / "runs/file.txt").write_text("")
    return tmp_path / "runs"


def lines_of(path, capsys, action="", **options):
    asked = LineOptions(str(path))
    print_lines(action, [], replace(asked, **options))
    return capsys.readouterr().out.splitlines()


def test_a_folder_of_one_run_is_listed_and_a_run_shows_its_debates(tmp_path, capsys):
    run = tmp_path / "runs" / "only"
    write_step(run / "transcripts", 5, [make([[solved(4), solved(5), solved(6)]])])
    found = {path: run_at(path, find_runs(path)) for path in (run.parent, run, run / "transcripts")}
    assert [one and one.name for one in found.values()] == [None, "only", "only"]
    _, listed = lines_of(run.parent, capsys)
    assert listed.split()[0] == str(run)
    debates = lines_of(run, capsys)
    assert [line.split()[0] for line in debates] == ["debate", "5.0"]
    for asked in ({"action": "ls"}, {"filter": "step:5"}):
        assert lines_of(run.parent, capsys, **asked) == debates


def test_debates_are_listed_without_what_a_list_of_runs_needs(runs):
    code = "import sys; from debate_rl.commands.inspect_actions import print_lines\n"
    code += "from debate_rl.inspector.actions import LineOptions\n"
    code += "print_lines('ls', [], LineOptions(sys.argv[1])); print('scipy' in sys.modules)"
    lines = subprocess.check_output([sys.executable, "-c", code, str(runs / "a")], text=True).splitlines()
    assert (len(lines), lines[-1]) == (4, "False")


def files(folder: Path):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_the_runs_of_a_folder_by_name(runs):
    before = files(runs)
    found = find_runs(runs)
    facts = [(run.name, run.steps, run.last, run.writing) for run in found]
    assert facts == [("a", 1, 5, False), ("b", 1, 5, False), ("new", 0, None, False)]
    assert files(runs) == before


def test_what_is_no_run_is_named(runs):
    wrong = {"nowhere": "no such folder", "runs/file.txt": "not a folder", "runs/notes": "neither a run nor"}
    for path, said in wrong.items():
        with pytest.raises(TranscriptError, match=said):
            find_runs(runs.parent / path)


def test_a_run_that_is_being_written_is_known_by_its_lock(runs):
    with locked(runs / "a"):
        assert [run.writing for run in find_runs(runs)] == [True, False, False]
    assert not is_locked(runs / "a")


def test_looking_at_a_lock_neither_makes_nor_follows_one(runs, tmp_path):
    assert not is_locked(runs / "b")
    assert not (runs / "b/.lock").exists()
    (tmp_path / "elsewhere").write_text("")
    (runs / "b/.lock").symlink_to(tmp_path / "elsewhere")
    assert not is_locked(runs / "b")
