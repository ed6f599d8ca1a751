"""A run by the critique protocol: learnt from, resumed, replayed, explained, evaluated, played."""

from __future__ import annotations

import json
import re
from itertools import permutations

import numpy as np
import pytest
from msgspec import UNSET

from debate_rl.config import Config
from debate_rl.config.recipes import load_config
from debate_rl.metrics.criticism import segments
from debate_rl.metrics.step_log import read_metrics
from debate_rl.training.loop import train

from .conftest import records

HANDLES = ("K7", "Q2", "M4", "T9")
PIECES = [
    *(f"<solution>\\boxed{{{a} {b}}}</solution>" for a, b in ((1, 2), (3, 4))),
    *(
        f"<evaluation><target>{a}</target>no</evaluation><comparison>{b} > {c} > {d}</comparison>"
        for a in HANDLES
        for b, c, d in permutations(HANDLES, 3)
        if b < d
    ),
]
RECIPE = f"""
seed = 3

[env]
kind = "pair_sum"
levels = [1]
limit = 20

[held_out]
limit = 4
every = 0

[debate]
protocol = "critique"
num_agents = 4
num_rounds = 3
max_tokens = 12
prompts = "tiny"
handles = {json.dumps(HANDLES)}

[rewards]
self_correction = 0.25

[advantages]
lambda_critic = 2.0
persuasion = {{ scale = "none", key = "round" }}

[model]
device = "cpu"
chat = true

[model.tiny]
hidden_size = 32
layers = 1
heads = 2
kv_heads = 1
intermediate_size = 48
init_std = 0.3
context_tokens = 512
fallback = "none"
pieces = {json.dumps(PIECES)}

[learner]
lr = 1e-3

[train]
steps = 2
batch_size = 2
group_size = 8
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """The recipe, a run of it, and one that was stopped after a step and resumed."""
    home = tmp_path_factory.mktemp("critique")
    (home / "critique.toml").write_text(RECIPE)

    def go(name, *more):
        own = (f"run.dir={home / name}", "logging.progress=none", *more)
        return train(load_config(Config, str(home / "critique.toml"), own))

    go("straight")
    go("resumed", "train.steps=1")
    go("resumed", "train.steps=2", 'run.allow_changes=["train.steps"]')
    return home


@pytest.mark.slow
def test_a_resumed_run_is_the_straight_one(home):
    straight, resumed = (records(home / name) for name in ("straight", "resumed"))
    assert straight == resumed
    lines = [read_metrics(home / name / "metrics.jsonl") for name in ("straight", "resumed")]
    assert len(lines[0]) == 2
    assert {
        "criticism/targets",
        "reward/persuasion/n",
        "tokens/critic",
        "accuracy/round_0",
        "accuracy/round_2",
    } <= (lines[0][0].keys())
    assert "accuracy/round_1" not in lines[0][0]
    assert [row["criticism/targets"] for row in lines[0]] == [row["criticism/targets"] for row in lines[1]]
    assert [row["loss"] for row in lines[0]] == [row["loss"] for row in lines[1]]


def test_critics_tokens_carry_the_advantage_of_their_persuasion(home):
    """lambda_critic times the persuasion less the mean of the problem's critics, who had any signal."""
    held = records(home / "straight")
    found = 0
    for step in (0, 1):
        own = [record for record in held.values() if record.step == step]
        earned = {}
        for index, record in enumerate(own):
            assert record.rewards is not None
            assert record.rewards.persuasion is not UNSET
            for agent, row in enumerate(record.rewards.persuasion):
                assert row[0] is None
                assert row[2] is None
                if row[1] is not None:
                    earned[index, agent] = row[1]
        for index, record in enumerate(own):
            group = [v for (other, _), v in earned.items() if own[other].group == record.group]
            for part in record.advantages:
                if part.critic is not UNSET:
                    assert part.turn.round == 1
                    assert part.critic == pytest.approx(2 * (earned[index, part.turn.agent] - np.mean(group)))
                    found += part.critic != 0
    assert found > 5


def test_a_replay_gives_what_is_stored_and_another_scheme_changes_it(home, debate_command):
    code, out, err = debate_command("replay", str(home / "straight"))
    assert code == 0, err
    assert "all of 32 debates" in out
    half = ("rewards.persuasion_beta=2.5", "--out", str(home / "half"))
    code, out, err = debate_command("replay", str(home / "straight"), *half)
    assert code == 0, err
    changed = 0
    for line in map(json.loads, (home / "half/debates.jsonl").read_text().splitlines()):
        assert line["new"]["rewards"].keys() <= {"persuasion"}
        assert line["new"]["advantages"].keys() <= {"critic"}
        for kind, stream in (("rewards", "persuasion"), ("advantages", "critic")):
            for old, new in zip(
                line["old"][kind][stream],
                line["new"][kind].get(stream, line["old"][kind][stream]),
                strict=True,
            ):
                assert new == (old if old is None else pytest.approx(old / 2))
                changed += bool(old)
    assert changed > 10
    assert re.search(r"critic", out)
    code, out, err = debate_command("inspect", str(home / "straight"), "replays")
    assert code == 0, err


@pytest.mark.slow
def test_critics_that_are_to_help_are_paid_by_the_rise_and_a_replay_says_so_before(home, debate_command):
    words = ("rewards.critic=help", "--out", str(home / "help"))
    code, _, err = debate_command("replay", str(home / "straight"), *words)
    assert code == 0, err
    lines = [json.loads(line) for line in (home / "help/debates.jsonl").read_text().splitlines()]
    earned = [value for line in lines for value in line["new"]["rewards"].get("persuasion", ())]
    assert any(value and value < 0 for value in earned)
    config = (f"run.dir={home / 'helped'}", "logging.progress=none", "rewards.critic=help", "train.steps=1")
    train(load_config(Config, str(home / "critique.toml"), config))
    id, turn = next(
        (id, part.turn)
        for id, record in records(home / "helped").items()
        for part in record.advantages
        if part.critic is not UNSET and part.critic
    )
    words = ("why", id, "--turn", f"{turn.agent}.{turn.round}")
    code, out, err = debate_command("inspect", str(home / "helped"), *words)
    assert code == 0, err
    assert re.search(r"value: 5 \* \([\d.]+ - [\d.]+\)", out)
    assert "stored:" not in out  # every number is as stored


def test_the_inspector_lists_targets_and_explains_a_critic(home, debate_command):
    run, held = str(home / "straight"), records(home / "straight")
    id, turn = next(
        (id, part.turn)
        for id, record in held.items()
        for part in record.advantages
        if part.critic is not UNSET and part.critic
    )
    targets = held[id].debate.turn(turn).parsed.targets
    code, out, err = debate_command("inspect", run, "show", id)
    assert code == 0, err
    assert f"criticises {', '.join(targets)}" in out
    assert "round 1, criticism" in out
    code, out, err = debate_command("inspect", run, "why", id, "--turn", f"{turn.agent}.{turn.round}")
    assert code == 0, err
    assert "its criticism:" in out
    assert "advantage of persuasion: baseline group, scale none, group by round" in out
    assert re.search(r"value: 5 \* max\(0, [\d.]+ - [\d.]+\)", out)
    assert "stored:" not in out  # every number is as stored
    code, out, err = debate_command("inspect", run, "show", id, "--json", "--prompts")
    assert code == 0, err
    shown = json.loads(out)
    assert [one["targets"] is not None for one in shown["turns"]] == [False] * 4 + [True] * 4 + [False] * 8
    assert all(one["prompt_unknown"] == "" for one in shown["turns"])


@pytest.mark.slow
@pytest.mark.parametrize("words", [("eval",), ("report",), ("doctor",)])
def test_other_commands_work_on_it(home, debate_command, words, monkeypatch):
    monkeypatch.chdir(home)
    more = {"eval": (), "report": (), "doctor": ("--problems", "4")}[words[0]]
    code, _, err = debate_command(*words, str(home / "straight"), *more)
    assert code in ((0, 1) if words == ("doctor",) else (0,)), err
    assert "Traceback" not in err


def test_the_prompts_of_all_phases_are_shown_with_criticism_in_them(home, debate_command):
    code, out, err = debate_command(
        "inspect",
        "prompts",
        str(home / "critique.toml"),
        "debate.prompts=default",
        "model.tiny.fallback=ascii",
    )
    assert code == 0, err
    phases = ["round 0, opening", "round 1, critique", "round 2, revision", "round 3, ballot"]
    assert [out.count(f"== {phase}") for phase in phases] == [1, 1, 1, 1]
    revision = out.partition("== round 2")[2].partition("== round 3")[0]
    assert re.search(r"K7: \(what agent \d wrote in round 1\)", revision)
    assert "Nothing is criticised" not in revision


def test_play_prints_the_table_of_segments(home, debate_command):
    code, out, err = debate_command(
        "solve play", str(home / "straight"), "Target 9. Numbers 4 5 1.", "rewards.truth_weight=0.25"
    )
    assert code == 0, err
    table = out[out.index("segments") :]
    for name, stream, weight in (
        *[("proposal", "peer", "0.75"), ("proposal", "truth", "0.25"), ("criticism", "persuasion", "2")],
        *[("ranking", "judge", "1"), ("revision", "shaping", "1"), ("verdict", "judge", "1")],
    ):
        assert re.search(rf"{name} +\S* *{stream} +\S* *{weight} ", table), (name, stream, table)
    assert "criticism of" in out


def test_segments_hold_every_reward_once(home):
    config = load_config(Config, str(home / "critique.toml"))
    for record in records(home / "straight").values():
        of = segments(record.debate, record.rewards, config.rewards, config.advantages)
        for stream in ("peer", "truth", "judge", "persuasion"):
            rows = getattr(record.rewards, stream)
            counted = sum(value is not None for row in rows for value in row)
            assert sum(one.turns for one in of if one.stream == stream) == counted
