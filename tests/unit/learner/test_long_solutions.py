"""The benchmark of long solutions: its losses are those of rows padded with tokens that have no gradient."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from learner.losses import LOSSES, LossConfig, LossInputs
from learner.losses.types import Totals

BENCHMARKS = str(Path(__file__).parents[3] / "benchmarks")


@pytest.mark.parametrize("normalise", ["joint", "stream"])
@pytest.mark.parametrize(("name", "loss"), [("rows", "grpo"), ("tokens", "dapo")])
def test_a_token_that_stands_for_fifty_is_forty_nine_more_that_are_certain(
    monkeypatch, name, loss, normalise
):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import long_solutions

    stream = torch.tensor([[1, 1, 2, 0], [2, 2, 2, 2]])
    lp = torch.randn(2, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    a = torch.tensor([[0.5, 0.5, -1.0, 0.0], [2.0] * 4], dtype=torch.float64)
    short = LossInputs(lp, lp - 0.1, lp, None, a, stream > 0, stream)
    padding = torch.ones(2, 2 * (long_solutions.FACTOR - 1)) * torch.tensor([[1], [0]])
    longer = torch.cat([stream, padding.long()], dim=1)
    wide = [torch.cat([field, torch.zeros(2, padding.shape[1])], dim=1) for field in (lp, lp - 0.1, a)]
    padded = LossInputs(wide[0], wide[1], wide[0], None, wide[2], longer > 0, longer)
    config = LossConfig(eps_hi=0.28, normalise=normalise)
    expected = LOSSES[loss](padded, config).loss
    assert getattr(long_solutions, name)(short, config).loss.item() == pytest.approx(expected.item())
    # and so it is of micro-batches
    totals = replace(config, totals=Totals.of(short.mask, stream))
    parts = [
        getattr(long_solutions, name)(
            LossInputs(*(None if field is None else field[row] for field in fields_of(short))), totals
        ).loss
        for row in ([0], [1])
    ]
    assert sum(parts).item() == pytest.approx(expected.item())


def fields_of(inputs: LossInputs) -> list[torch.Tensor | None]:
    return [getattr(inputs, name) for name in LossInputs.__slots__]
