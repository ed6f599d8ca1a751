import errno
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from debate.config import DebateConfig
from debate.personas import Persona
from debate.settings import Settings
from debate_rl.runs import folder as run_folder
from debate_rl.runs.folder import RunFolderError, open_run
from debate_rl.runs.provenance import ChangeRules, checksum, source_commit, versions


class Small(Settings):
    seed: int = 0
    lr: float = 3e-5
    name: str | None = None
    debate: DebateConfig = DebateConfig()


DEFAULT = Small()


def opened(path: Path, config: Settings = DEFAULT, **settings):
    with open_run(path, config, seed=7, **settings) as run:
        run.record()
        return run


def test_a_new_run_holds_its_configuration_and_its_facts(tmp_path: Path):
    config = Small(lr=1e-5, debate=DebateConfig(personas=(Persona("A", 'says "no"\n', 0.5),)))
    run = opened(tmp_path / "runs" / "a", config, data_checksums={"train.jsonl": "ab12"})
    assert not run.resumed
    assert Small.model_validate(tomllib.loads(run.config.read_text())) == config
    facts = json.loads(run.facts.read_text())
    assert (facts["seed"], facts["data"]) == (7, {"train.jsonl": "ab12"})
    [start] = facts["starts"]
    assert start["versions"]["python"] == sys.version.split()[0]
    assert {"torch", "transformers"} <= start["versions"].keys()
    assert start["hardware"]["cores"] >= 1
    assert run.transcripts == tmp_path / "runs" / "a" / "transcripts"


def test_another_configuration_is_refused_with_the_difference_and_nothing_is_lost(tmp_path: Path):
    before = opened(tmp_path / "a").config.read_bytes()
    other = Small(lr=1e-5, name="x", debate=DebateConfig(num_agents=5))
    with pytest.raises(RunFolderError) as caught:
        opened(tmp_path / "a", other)
    assert "debate.num_agents was 3, now 5; lr was 3e-05, now 1e-05; name was unset, now 'x'" in str(
        caught.value
    )
    assert "choose another run.dir, restore these values, or allow the changes: " in str(caught.value)
    assert str(caught.value).endswith("""'run.allow_changes=["debate.num_agents", "lr", "name"]'""")
    assert (tmp_path / "a" / "config.toml").read_bytes() == before


def test_named_keys_may_change_and_the_change_is_kept(tmp_path: Path):
    opened(tmp_path / "a")
    run = opened(tmp_path / "a", Small(lr=1e-6), rules=ChangeRules(("lr",)))
    assert tomllib.loads(run.config.read_text())["lr"] == 1e-6
    assert json.loads(run.facts.read_text())["starts"][1]["changed"] == {"lr": [3e-5, 1e-6]}


def test_what_may_grow_may_not_shrink_and_a_note_says_why(tmp_path: Path):
    for seed in (1, 3):
        opened(tmp_path / "a", Small(seed=seed), rules=ChangeRules(may_grow=("seed",)))
    for change in ({"may_grow": ("seed",)}, {"may_change": ("lr",)}):
        with pytest.raises(RunFolderError, match=r"seed was 3, now 2 \(of the order\); choose another"):
            opened(tmp_path / "a", Small(seed=2), rules=ChangeRules(notes={"seed": "of the order"}, **change))


def test_other_data_under_the_same_name_is_refused(tmp_path: Path):
    opened(tmp_path / "a", data_checksums={"train.jsonl": "1"})
    opened(tmp_path / "a", data_checksums={"train.jsonl": "1", "test.jsonl": "2"})
    with pytest.raises(RunFolderError, match=r"the data changed since this run began: train.jsonl"):
        opened(tmp_path / "a", data_checksums={"train.jsonl": "3"})


def test_other_data_is_gone_on_with_where_it_is_allowed_by_name(tmp_path: Path):
    opened(tmp_path / "a", data_checksums={"train.jsonl": "1", "test.jsonl": "2"})
    now = {"train.jsonl": "3", "test.jsonl": "2"}
    with pytest.raises(RunFolderError, match=r"train\.jsonl; restore the files") as caught:
        opened(tmp_path / "a", data_checksums=now, rules=ChangeRules(("run", "env")))
    assert str(caught.value).endswith("""changed problems: 'run.allow_changes=["data"]'""")
    run = opened(tmp_path / "a", data_checksums=now, rules=ChangeRules(("run", "data")))
    facts = json.loads(run.facts.read_text())
    assert facts["data"] == now
    assert facts["starts"][-1]["changed"] == {"data: train.jsonl": ["1", "3"]}
    opened(tmp_path / "a", data_checksums=now)  # from then on it is the run's data


def test_what_a_later_start_reads_and_finds_is_added_to_the_facts(tmp_path: Path):
    def facts():
        return json.loads((tmp_path / "a" / "run.json").read_text())

    opened(tmp_path / "a", data_checksums={"train.jsonl": "1"}, findings={"overlaps": [1]})
    assert (facts()["data"], facts()["overlaps"], len(facts()["starts"])) == ({"train.jsonl": "1"}, [1], 1)
    opened(tmp_path / "a", data_checksums={"test.jsonl": "2"}, findings={"overlaps": []})
    assert facts()["data"] == {"train.jsonl": "1", "test.jsonl": "2"}
    assert (facts()["overlaps"], len(facts()["starts"]), facts()["seed"]) == ([], 2, 7)


def test_a_folder_that_is_not_a_run_is_left_alone(tmp_path: Path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(RunFolderError, match=r"is not empty and contains no run \(it has thesis.tex\)"):
        opened(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
    assert list(tmp_path.iterdir()) == [tmp_path / "thesis.tex"]


def test_a_start_killed_before_the_configuration_was_written_can_be_repeated(tmp_path: Path):
    opened(tmp_path / "a").config.unlink()
    for name in (".run.json.new", ".config.toml.new", "verl.log"):  # half written, or of a failed start
        (tmp_path / "a" / name).write_bytes(b"{")
    assert not opened(tmp_path / "a").resumed
    assert opened(tmp_path / "a").resumed


def test_a_start_that_fails_before_it_is_recorded_leaves_the_run_as_it_was(tmp_path: Path):
    run = opened(tmp_path / "a")
    before = run.config.read_bytes(), run.facts.read_bytes()
    with open_run(tmp_path / "a", Small(lr=1.0), seed=7, rules=ChangeRules(("lr",))):
        pass  # what opens the model and the checkpoint finds that they do not fit
    assert (run.config.read_bytes(), run.facts.read_bytes()) == before
    opened(tmp_path / "a")  # and the first command still goes on


def test_a_key_that_came_after_the_run_began_has_its_default_in_it(tmp_path: Path):
    run = opened(tmp_path / "a")
    stored = run.config.read_text()
    run.config.write_text("".join(line for line in stored.splitlines(True) if not line.startswith("lr = ")))
    assert run.config.read_text() != stored
    opened(tmp_path / "a")
    run.config.write_text(stored + "\n[gone]\nold = 1\n")
    with pytest.raises(RunFolderError, match=r"gone.old was 1, now unset"):
        opened(tmp_path / "a")


def test_a_second_process_is_refused_by_name(tmp_path: Path):
    code = (
        "import sys; from debate_rl.runs.folder import open_run; from debate.config import DebateConfig\n"
        "with open_run(sys.argv[1], DebateConfig(), seed=0): pass"
    )
    with open_run(tmp_path / "a", DebateConfig(), seed=0) as run:
        run.record()
        command = [sys.executable, "-c", code, str(tmp_path / "a")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert f"is in use by process {os.getpid()} on" in done.stderr
    assert opened(tmp_path / "a", DebateConfig()).resumed


def test_a_file_in_the_place_of_the_folder_is_one_clear_line(tmp_path: Path):
    (tmp_path / "a").write_text("")
    with pytest.raises(RunFolderError, match=r"run.dir=.*/a: cannot write .*/a: File exists; choose another"):
        opened(tmp_path / "a")


def test_a_full_disk_is_one_clear_line_and_keeps_the_old_file(tmp_path: Path, monkeypatch):
    opened(tmp_path / "a")
    before = (tmp_path / "a" / "run.json").read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(run_folder.os, "fsync", full)
    with pytest.raises(RunFolderError, match=r"cannot write .*run.json: No space left on device"):
        opened(tmp_path / "a")
    assert (tmp_path / "a" / "run.json").read_bytes() == before
    assert not list((tmp_path / "a").glob(".*.new"))


@pytest.mark.parametrize("name", ["config.toml", "run.json"])
@pytest.mark.parametrize("data", [b"\xff{", b"a=" + b"[" * 100_000, b"[" * 100_000])
def test_a_damaged_file_of_the_run_is_named(tmp_path: Path, name: str, data: bytes):
    opened(tmp_path / "a")
    (tmp_path / "a" / name).write_bytes(data)
    with pytest.raises(RunFolderError, match=f"{name}: damaged"):
        opened(tmp_path / "a")


def test_provenance(tmp_path: Path):
    (tmp_path / "f").write_bytes(b"abc")
    assert checksum(tmp_path / "f").startswith("ba7816bf8f01cfea")  # FIPS 180-2, the "abc" example
    assert "vllm" not in versions() or versions()["vllm"]
    commit = source_commit()
    assert commit is None or len(commit.removesuffix("-dirty")) == 40
