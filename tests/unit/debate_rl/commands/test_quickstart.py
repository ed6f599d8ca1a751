"""What the quick-start prints of its figures."""

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from debate_rl.commands.console import text_table
from debate_rl.commands.quickstart import HEADS, _next_commands, _watching
from debate_rl.commands.quickstart_figures import ATTACKED, MAJORITY, WINNER, Snapshot, _table, figures_of
from debate_rl.config import Config
from debate_rl.config.recipes import load_config
from debate_rl.evaluation.scores import Scores
from debate_rl.metrics.intervals import Estimate


def snapshot(*rounds: float) -> Snapshot:
    """Return figures of four problems, whose accuracy in each round is a quarter's multiple."""
    values = {
        f"debate/accuracy/round_{r}": {f"p{i}": [float(i < 4 * x)] for i in range(4)}
        for r, x in enumerate(rounds)
    }
    same = {f"p{i}": [float(i < 2)] for i in range(4)}
    tokens = {f"p{i}": [10.0 + i] for i in range(4)}
    values |= dict.fromkeys((WINNER, MAJORITY, "debate/valid_xml"), same)
    spent = (f"{mode}/{kind}_tokens" for mode in ("debate", "direct") for kind in ("generated", "prompt"))
    one = Estimate(0.5, 0.4, 0.6, 20, 20)
    return Snapshot(Scores(values | dict.fromkeys(spent, tokens), {}, samples=6), one, one)


def print_table(out: io.StringIO, before: Snapshot, after: Snapshot) -> None:
    rows, title = _table(before, after)
    Console(file=out, width=100).print(text_table(HEADS, rows, title=title))


def test_every_round_has_its_line_counted_from_0():
    out = io.StringIO()
    print_table(out, snapshot(0, 0.25, 0.5), snapshot(0.75, 1, 0.5))
    rows = [line.split("│")[1:4] for line in out.getvalue().splitlines() if "accuracy, round" in line]
    assert [[name.strip(), *(cell.strip()[:6] for cell in cells)] for name, *cells in rows] == [
        ["accuracy, round 0", "0.00 [", "0.75 ["],
        ["accuracy, round 1", "0.25 [", "1.00 ["],
        ["accuracy, round 2", "0.50 ±", "0.50 ±"],
    ]
    tokens = next(line for line in out.getvalue().splitlines() if "tokens of a debate" in line)
    assert "12 + 12" in tokens  # means of 10, 11, 12, 13, rounded to even


def test_figures_keep_their_bounds():
    figures = figures_of(snapshot(0, 0.25), snapshot(0.5, 0.75), 7.0)
    reach = 3.182446 * 0.5 / 3**0.5  # t(3); one of four is a standard error of sqrt(.25 / 3)
    bounds = {"low": pytest.approx(0.5 - reach, abs=1e-4), "high": pytest.approx(0.5 + reach, abs=1e-4)}
    assert figures["accuracy_round_0_after"] == {"value": 0.5, "unit": "share", "n": 4, **bounds}
    assert figures["round_1_minus_round_0"]["value"] == 0.25
    assert figures["winner_minus_self_consistency"]["value"] == 0.0
    tokens = {"value": 11.5, "unit": "tokens", "n": 6, "low": None, "high": None}
    assert figures["self_consistency_generated_tokens_after"] == tokens
    assert figures["cpu_seconds"]["value"] == 7.0


def test_the_judge_under_attack_has_its_line_where_it_was_watched():
    before, after = snapshot(0.25, 0.5), snapshot(0.5, 0.5)
    out = io.StringIO()
    print_table(out, before, after)
    assert "attacked" not in out.getvalue()
    assert "judge_attacked_after" not in figures_of(before, after, 1.0)
    for shot, right in ((before, 3), (after, 1)):
        shot.scores.values[ATTACKED] = {f"p{i}": [float(i < right)] for i in range(4)}
    print_table(out, before, after)
    row = next(line for line in out.getvalue().splitlines() if "attacked pairs" in line)
    assert [cell.strip()[:4] for cell in row.split("│")[2:4]] == ["0.75", "0.25"]
    figures = figures_of(before, after, 1.0)
    assert [figures[f"judge_attacked_{when}"]["value"] for when in ("before", "after")] == [0.75, 0.25]


@pytest.mark.parametrize(
    ("settings", "pairs"),
    [
        ((), 100),
        (("held_out.limit=30",), 30),
        (("held_out.judge_pairs=5",), 5),
        (("held_out.judge_pairs=0",), 0),
        (("held_out.every=0",), 0),
        (("debate.num_rounds=1", "debate.final_ballot=false"), 0),
    ],
)
def test_the_judge_is_watched_where_it_can_be(settings, pairs):
    config = _watching(load_config(Config, "quickstart", settings))
    assert config.held_out.judge_pairs == pairs


def test_what_to_try_next_can_be_typed_as_it_stands(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", [".venv/bin/debate", "quickstart"])
    monkeypatch.setenv("PATH", str(tmp_path))
    _, look, report, play, *others = _next_commands("words", Path("runs/w")).splitlines()
    assert look == "  .venv/bin/debate inspect runs/w"
    assert report == "  .venv/bin/debate report runs/w"
    assert play.startswith('  .venv/bin/debate solve play runs/w "Tom has ')
    assert all(line.startswith("  .venv/bin/debate quickstart ") for line in others)
    (tmp_path / "debate").touch(mode=0o755)
    assert "  debate solve play runs/w" in _next_commands("words", Path("runs/w"))
