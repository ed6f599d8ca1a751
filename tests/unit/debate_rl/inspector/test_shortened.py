"""What the inspector shows of debates that stopped, and of solutions that others read shortened."""

import re
from dataclasses import replace

import pytest
from msgspec.structs import replace as changed

from debate.types import Compression, TurnId
from debate_rl.inspector.plain import debate_json, print_list
from debate_rl.inspector.views import debate_view
from debate_rl.inspector.views.debate_blocks import debate_blocks
from debate_rl.inspector.web.rendering import Face, render_blocks
from transcripts import RunStore, write_step

from .conftest import make, printed, printed_debate, solved

EVIL = "In short: \x1b[31m<b>4</b>"


@pytest.fixture
def record():
    """A debate of one round that saved two; agent 0 was read compressed, agent 1 cut."""
    plain = make([[solved(4)] * 3])
    short = (Compression(TurnId(0, 0), EVIL), Compression(TurnId(1, 0), "so [...] 4", failed=True))
    return replace(plain, debate=changed(plain.debate, rounds_saved=2, compressions=short))


def test_plain_lines_have_the_size_and_what_others_read(record):
    text = printed_debate(record)
    assert "3 agents, 1 rounds (stopped: all agree, 2 saved), " in text
    read = re.findall("text shown to others: (.*):", text)
    assert read == ["compressed", "cut, because no summary was usable"]
    assert ("In short: " in text, "\x1b" in text) == (True, False)
    bare = replace(record, debate=changed(record.debate, rounds_saved=2, compressions=()))
    assert "text shown to others" not in printed_debate(bare)


def test_the_browser_shows_it_beneath_its_turn(record):
    page = render_blocks(debate_blocks(debate_view("0.0", record), [0]), Face(lambda link: ""))
    cards = page.split('<article class="card')[1:]
    assert ["text shown to others" in card for card in cards] == [True, True, False]
    assert "<b>4" not in page


def test_json_has_both_texts_and_a_list_flags_debates_that_stopped(record, tmp_path):
    body = debate_json("0.0", record)
    assert body["rounds_saved"] == 2
    texts = [(turn["compressed"], turn["compression_failed"]) for turn in body["turns"][:3]]
    assert texts == [(EVIL, False), ("so [...] 4", True), (None, False)]
    write_step(tmp_path / "run/transcripts", 5, [record, make([[solved(4)] * 3])])
    with RunStore.open(tmp_path / "run") as store:
        listed = printed(print_list, store).splitlines()
    assert ["stopped" in line for line in listed] == [False, True, False]
