import io
import os
import sys

import pytest

from debate_rl.commands import main

LIGHT = [
    *("--help", "keys learner", "inspect RUN ls", "inspect RUN show 0.0 0.1", "inspect RUN stats"),
    "inspect nowhere",
]
OF_A_TRAINED_RUN = [
    *("inspect RUN why 0.0", "replay RUN rewards.truth_weight=0.3", "eval regrade RUN --clip e"),
    *("report RUN", "inspect tokens RUN 0.0", "eval RUN", "solve play RUN 1+1?"),
]
COMMANDS = [*LIGHT, *(pytest.param(one, marks=pytest.mark.slow) for one in OF_A_TRAINED_RUN)]


@pytest.fixture
def call(request, tmp_path, monkeypatch):
    """Return call(command, stream) -> the exit code of a command that prints to a stream."""

    def ended(command, stream):
        trained = command in OF_A_TRAINED_RUN
        run_of = request.getfixturevalue("folder") / "run" if trained else request.getfixturevalue("run")
        monkeypatch.chdir(tmp_path)
        words = [str(run_of) if word == "RUN" else word for word in command.split()]
        monkeypatch.setattr(sys, "argv", ["debate", *words])
        monkeypatch.setattr(sys, "stdout", stream)
        with pytest.raises(SystemExit) as end:
            main.run()
        return end.value.code

    return ended


@pytest.mark.parametrize("command", COMMANDS)
def test_what_an_encoding_lacks_is_written_as_its_escape(command, call, monkeypatch):
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="ascii") for _ in range(2))
    monkeypatch.setattr(sys, "stderr", err)
    assert call(command, out) == (2 if command == "inspect nowhere" else 0)
    out.seek(0)
    assert out.read() or command == "inspect nowhere"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_reader_that_went_away_ends_it_without_a_word(command, call, capsys):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", encoding="utf-8", buffering=1) as stream:
        assert call(command, stream) == (2 if command == "inspect nowhere" else 141)
    if command != "inspect nowhere":
        assert "rror" not in capsys.readouterr().err
