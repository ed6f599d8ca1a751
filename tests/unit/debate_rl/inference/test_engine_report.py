"""Digests of matrices: what they tell apart, and what they do not depend on."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from debate_rl.inference import engine_report
from debate_rl.inference.engine_report import digest

FLOAT, HALF = torch.float32, torch.bfloat16
values = st.lists(st.floats(-4, 4, width=32), min_size=12, max_size=12)


def matrix(numbers):
    return torch.tensor(numbers).view(3, 4)


def test_by_hand():
    """Bits of 1.0 are 0x3f80 in bfloat16 (16256), of 2.0 0x4000 (16384); places count from 1."""
    assert digest(torch.tensor([[1.0, 2.0]]), HALF) == (16256 + 2 * 16384, 16256 + 16384)
    assert digest(torch.tensor([[1.0], [2.0]]), HALF) == (16256 + 16384, 16256 + 2 * 16384)
    assert digest(torch.tensor([1.0, 2.0]), HALF) == digest(torch.tensor([[1.0, 2.0]]), HALF)
    assert digest(torch.zeros(2, 2), FLOAT) == digest(-torch.zeros(2, 2), FLOAT) == (0, 0)


@given(values, st.permutations(range(12)))
def test_values_in_other_places_give_another_digest(numbers, order):
    one, other = matrix(numbers), matrix([numbers[index] for index in order])
    changed = (one != other).nonzero().tolist()
    if len(changed) == 2 and changed[0] != changed[1]:
        assert digest(one, FLOAT) != digest(other, FLOAT)
    if not changed:
        assert digest(one, FLOAT) == digest(other, FLOAT)


@given(values)
def test_padding_and_layout_do_not_count(numbers):
    one = matrix(numbers)
    assert digest(torch.nn.functional.pad(one, (0, 3, 0, 2)), FLOAT) == digest(one, FLOAT)
    assert digest(one.t().contiguous().t(), FLOAT) == digest(one, FLOAT)


def test_a_large_matrix_is_read_in_parts(monkeypatch):
    one = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
    whole = digest(one, FLOAT)
    monkeypatch.setattr(engine_report, "CHUNK", 10)  # two rows at a time
    assert digest(one, FLOAT) == whole


@pytest.mark.parametrize("dtype", [FLOAT, HALF, torch.float16])
def test_the_digest_is_of_the_values_in_the_type(dtype):
    one = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    assert digest(one, dtype) == digest(one.to(dtype), dtype)
    assert digest(one, dtype) != digest(one * 1.1, dtype)
