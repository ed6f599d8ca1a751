import json
import shutil

import pytest

from debate_rl.commands.replay import replay as replay_command


@pytest.fixture
def replay(folder, debate_command, monkeypatch):
    monkeypatch.chdir(folder)
    return lambda *arguments: debate_command("replay", *arguments)


@pytest.mark.slow
def test_a_trained_run_is_paid_again_as_it_was(replay, folder):
    code, out, err = replay("run")
    assert (code, err) == (0, "")
    assert out == "stored = recomputed under the run's own scheme: all of 8 debates\n"
    assert not (folder / "run" / "replays").exists()


def test_another_scheme_is_shown_and_kept(replay, folder):
    change = "rewards.format_penalty=-2.0"
    code, out, err = replay("run", change, "--json", "figures.json")
    assert (code, err) == (0, "")
    [kept] = (folder / "run" / "replays").iterdir()
    assert kept.name.startswith("rewards.format_penalty=-2.0-")
    facts = json.loads((folder / "figures.json").read_text())
    assert facts == json.loads((kept / "replay.json").read_text())
    assert (facts["debates"], facts["differ"], facts["overrides"]) == (8, 0, [change])
    fined = {cell["stream"]: cell for cell in facts["streams"]}["format"]
    assert (fined["old"], fined["new"], fined["sign_changed"]) == (-0.5, -2.0, 0.0)
    lines = [json.loads(line) for line in (kept / "debates.jsonl").read_text().splitlines()]
    assert [line["id"] for line in lines] == [f"{step}.{place}" for step in range(2) for place in range(4)]
    assert set(lines[0]["new"]["rewards"]) == {"format"}
    most = facts["most_changed"][0]["id"]
    assert out.splitlines()[-1] == f"Largest change: debate inspect run replays {kept.name} {most}"
    assert replay("run", change, "--out", "else where")[1].splitlines()[-1].endswith(f"'else where' {most}")

    assert replay("run", change)[0] == 0  # the same again, in the same place
    assert replay("run", change, "--steps", "1", "--filter", "id:1.3")[0] == 0
    assert len(list((folder / "run" / "replays").iterdir())) == 2


def test_what_was_found_is_kept_where_the_reader_of_the_tables_goes_away(folder, monkeypatch):
    def closed(*_, **__):
        raise BrokenPipeError

    monkeypatch.setattr("debate_rl.commands.replay.show", closed)
    kept = folder / "kept"
    with pytest.raises(BrokenPipeError):
        replay_command(str(folder / "run"), out=str(kept), overrides=["rewards.truth_weight=0.9"])
    assert json.loads((kept / "replay.json").read_text())["debates"] == 8


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("train.steps=3", "train.steps=3: "),
        ("reward.peer=copeland", "did you mean 'rewards.peer'?"),
        ("rewards.peer=borda", "unknown peer rule 'borda'"),
        ("--steps 5..2", "--steps '5..2': write A, A.."),
        ("--steps x", "--steps 'x': write A, A.."),
        ("rewards.truth_weight=0.1 --out .", "is not empty"),
    ],
)
def test_what_cannot_be_is_one_line(replay, arguments, said):
    code, out, err = replay("run", *arguments.split())
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert said in err


def test_what_is_stored_otherwise_is_an_exit_code(replay, folder, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(folder / "run" / "transcripts", other / "transcripts")
    config = (folder / "run" / "config.toml").read_text()
    assert "format_penalty = -0.5" in config
    (other / "config.toml").write_text(config.replace("format_penalty = -0.5", "format_penalty = -1.0"))
    code, out, err = replay(other)
    assert code == 1
    assert out.startswith("stored and recomputed under the run's own scheme differ in ")
    assert err.startswith(f"debate: {other}: its own scheme does not reproduce the stored values of ")
    code, out, _ = replay(other, "rewards.format_penalty=-2.0", "--json", tmp_path / "figures.json")
    assert code == 1
    assert json.loads((tmp_path / "figures.json").read_text())["differ"] > 0  # all is written first


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
        ("run --filter tokens:<0", "debate: run: has no stored replies"),
    ],
)
def test_a_mistake_is_one_line(regrade, arguments, said):
    code, out, err = regrade(*arguments.split())
    assert (code, out) == (2, "")
    assert said in err
