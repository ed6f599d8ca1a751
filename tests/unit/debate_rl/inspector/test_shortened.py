"""What the inspector shows of debates that stopped, and of solutions that others read shortened."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from msgspec.structs import replace as changed

from debate.types import Compression, TurnId
from debate_rl.inspector.plain.forms import debate_json
from debate_rl.inspector.plain.listing import print_list
from debate_rl.inspector.plain.printer import Printer
from debate_rl.inspector.plain.showing import print_debate
from debate_rl.inspector.terminal.panels.turn import turn_lines
from debate_rl.inspector.views import debate_view
from debate_rl.inspector.web.debate_page import rounds_of
from transcripts import RunStore, write_step

from .conftest import make, solved

EVIL = "In short: \x1b[31m<b>4</b>"


@pytest.fixture
def record():
    """A debate of one round that saved two; agent 0 was read compressed, agent 1 cut."""
    plain = make([[solved(4)] * 3])
    short = (Compression(TurnId(0, 0), EVIL), Compression(TurnId(1, 0), "so [...] 4", failed=True))
    return replace(plain, debate=changed(plain.debate, rounds_saved=2, compressions=short))


def shown(record):
    stream = io.StringIO()
    print_debate("0.0", record, Printer(stream, False))
    return stream.getvalue()


def test_plain_lines_have_the_size_and_what_others_read(record):
    text = shown(record)
    assert "3 agents, 1 rounds (stopped: all agree, 2 saved), seed" in text
    assert text.count("as others read it, compressed:") == 1
    assert text.count("as others read it, cut, as no shorter text could be shown:") == 1
    assert "In short: " in text
    assert "\x1b" not in text
    bare = replace(record, debate=changed(record.debate, rounds_saved=2, compressions=()))
    assert "as others read it" not in shown(bare)


def test_the_terminal_and_the_browser_show_it_beneath_its_turn(record):
    view = debate_view("0.0", record)
    texts = [
        "\n".join(str(line) for line in turn_lines(view, view.turn(TurnId(agent, 0)))) for agent in range(3)
    ]
    assert ["as others read it" in text for text in texts] == [True, True, False]
    assert "\x1b" not in "".join(texts)
    [round_] = [one for one in rounds_of(view) if one.number == 0]
    kinds = [[kind for kind, _ in card.sections] for card in round_.cards if card is not None]
    assert [kind[-1] for kind in kinds] == ["compressed", "compressed", "solution"]
    clip = next(card.sections[-1][1] for card in round_.cards if card is not None)
    assert "<b>4" not in str(clip.text)


def test_json_has_both_texts(record):
    body = debate_json(debate_view("0.0", record), record)
    assert body["rounds_saved"] == 2
    assert [(turn["compressed"], turn["compression_failed"]) for turn in body["turns"][:3]] == [
        (EVIL, False),
        ("so [...] 4", True),
        (None, False),
    ]


def test_a_list_flags_debates_that_stopped(record, tmp_path):
    write_step(tmp_path / "run/transcripts", 5, [record, make([[solved(4)] * 3])])
    stream = io.StringIO()
    with RunStore.open(tmp_path / "run") as store:
        print_list(store, Printer(stream, False))
    assert [line.endswith("stopped") for line in stream.getvalue().splitlines()] == [False, True, False]
