"""What the quick-start prints of its figures."""

from __future__ import annotations

import io
import sys
from pathlib import Path

from rich.console import Console

from commands.quickstart import Snapshot, _next_commands, _table, figures_of
from learner.evaluation.held_out import Evaluation, Tokens
from learner.metrics.statistics import Estimate


def estimate(value: float) -> Estimate:
    return Estimate(value, value - 0.1, value + 0.1, 20, 20)


def snapshot(*rounds: float) -> Snapshot:
    one = estimate(0.5)
    debate = Evaluation(
        rounds=tuple(map(estimate, rounds)),
        winner=one,
        self_consistency=one,
        winner_minus_self_consistency=one,
        winner_minus_round1=one,
        round2_minus_round1=one,
        valid_xml=1.0,
        turns=9,
        samples=6,
        debate_tokens=Tokens(10.0, 20.0, 0.0),
        self_consistency_tokens=Tokens(10.0, 5.0, 0.0),
    )
    return Snapshot(debate, one, one)


def test_every_round_has_its_line_counted_from_1():
    out = io.StringIO()
    Console(file=out, width=100).print(_table(snapshot(0.1, 0.2, 0.3), snapshot(0.4, 0.5, 0.6)))
    rows = [line.split("│")[1:4] for line in out.getvalue().splitlines() if "right in" in line]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["right in round 1", "0.10 ± 0.10", "0.40 ± 0.10"],
        ["right in round 2", "0.20 ± 0.10", "0.50 ± 0.10"],
        ["right in round 3", "0.30 ± 0.10", "0.60 ± 0.10"],
    ]


def test_figures_keep_their_bounds():
    figures = figures_of(snapshot(0.1, 0.2), snapshot(0.4, 0.5), 7.0)
    assert figures["solve_after"] == {"value": 0.4, "unit": "share", "n": 20, "low": 0.4 - 0.1, "high": 0.5}
    assert figures["cpu_seconds"]["value"] == 7.0


def test_what_to_try_next_can_be_typed_as_it_stands(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", [".venv/bin/debate", "quickstart"])
    monkeypatch.setenv("PATH", str(tmp_path))
    _, play, *others = _next_commands("words", Path("runs/w")).splitlines()
    assert play.startswith('  .venv/bin/debate play runs/w "Tom has ')
    assert all(line.startswith("  .venv/bin/debate quickstart ") for line in others)
    (tmp_path / "debate").touch(mode=0o755)
    assert "  debate play runs/w" in _next_commands("words", Path("runs/w"))
