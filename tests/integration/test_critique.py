import json
import re

import pytest
from msgspec import UNSET

from debate_rl.metrics.features import segments

from .conftest import records


@pytest.mark.slow
def test_another_scheme_pays_critics_otherwise_and_nobody_else(protocol_run, tmp_path, debate_command):
    run, _ = protocol_run("critique")
    code, out, err = debate_command("replay", run, "rewards.persuasion_beta=2.5", "--out", tmp_path / "half")
    assert code == 0, err
    assert re.search(r"critic", out)
    changed = 0
    for line in map(json.loads, (tmp_path / "half/debates.jsonl").read_text().splitlines()):
        assert line["new"]["rewards"].keys() <= {"persuasion"}
        assert line["new"]["advantages"].keys() <= {"critic"}
        for kind, stream in (("rewards", "persuasion"), ("advantages", "critic")):
            before = line["old"][kind][stream]
            for old, new in zip(before, line["new"][kind].get(stream, before), strict=True):
                assert new == (old if old is None else pytest.approx(old / 2))
                changed += bool(old)
    assert changed > 10


def test_the_inspector_lists_targets_and_explains_a_critic(protocol_run, debate_command):
    run, _ = protocol_run("critique")
    held = records(run)
    id, turn = next(
        (id, part.turn)
        for id, record in held.items()
        for part in record.advantages
        if part.critic is not UNSET and part.critic
    )
    code, out, err = debate_command("inspect", run, "show", id)
    assert code == 0, err
    assert f"criticises {', '.join(held[id].debate.turn(turn).parsed.targets)}" in out
    code, out, err = debate_command("inspect", run, "why", id, "--turn", f"{turn.agent}.{turn.round}")
    assert code == 0, err
    assert re.search(r"value: 5 \* max\(0, [\d.]+ - [\d.]+\)", out)
    code, out, err = debate_command("inspect", run, "show", id, "--json")
    shown = json.loads(out)["turns"]
    assert [one["targets"] is not None for one in shown] == [False] * 4 + [True] * 4 + [False] * 8


def test_play_prints_the_table_of_segments(protocol_run, debate_command):
    code, out, err = debate_command(
        "solve play", protocol_run("critique")[0], "Target 9. Numbers 4 5 1.", "rewards.truth_weight=0.25"
    )
    assert code == 0, err
    table = out[out.index("segments") :]
    for name, stream, weight in (
        *[("proposal", "peer", "0.75"), ("proposal", "truth", "0.25"), ("criticism", "persuasion", "2")],
        *[("ranking", "judge", "1"), ("revision", "shaping", "1"), ("verdict", "judge", "1")],
    ):
        assert re.search(rf"{name} +\S* *{stream} +\S* *{weight} ", table), (name, stream, table)
    assert "criticism of" in out


def test_segments_hold_every_reward_once(protocol_run):
    run, config = protocol_run("critique")
    for record in records(run).values():
        of = segments(record.debate, record.rewards, config.rewards, config.advantages)
        for stream in ("peer", "truth", "judge", "persuasion"):
            rows = getattr(record.rewards, stream)
            counted = sum(value is not None for row in rows for value in row)
            assert sum(one.turns for one in of if one.stream == stream) == counted
