"""``debate inspect --web`` and ``--export`` as commands: what is printed, and mistakes in one line."""

from __future__ import annotations

from transcripts import RunStore


def test_export_says_what_it_wrote_and_what_more_there_is(debate_command, run, tmp_path):
    path = tmp_path / "all.html"
    code, out, _ = debate_command("inspect", run, "--export", path, "--limit", 4, "--filter", "votes:>0")
    with RunStore.open(run) as store:
        found = store.count("votes:>0")
    assert code == 0
    assert out == f"{path}: 4 debates; {found - 4} more match, and --limit {found} would take them all\n"
    assert path.read_text(encoding="utf-8").count('class="exported"') == 4


def test_a_mistake_is_told_and_nothing_is_written(debate_command, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments, said in (
        ("--port 80", "--port: "),
        ("--web --export x.html", "--web and --export: give only one of them"),
        ("ls --web", "no ACTION"),
        ("--export /nowhere/x.html", "name a file in a folder that exists"),
        ("--web --filter winne:x", "unknown field 'winne'"),
        ("--export x.html --filter winne:x", "unknown field 'winne'"),
    ):
        code, out, err = debate_command("inspect", run, *arguments.split())
        assert (code, out) == (2, "")
        assert said in err
    assert not (tmp_path / "x.html").exists()


def test_a_path_without_runs_is_one_line(debate_command, tmp_path):
    code, _, err = debate_command("inspect", tmp_path, "--web")
    assert code == 2
    assert err.count("\n") == 1
    assert "neither a run nor a folder of runs" in err
