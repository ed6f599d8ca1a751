"""Each way to corrupt a reasoning, by its laws."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.bottleneck.corruption import CORRUPTIONS

TEXT = "3 + 4 = 7 apples, so Tom has 7."


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_share_of_nothing_leaves_the_text_and_a_seed_decides(name: str):
    assert CORRUPTIONS[name](TEXT, 0.0, Random(0)) == TEXT
    once, again = (CORRUPTIONS[name](TEXT, 0.5, Random(3)) for _ in range(2))
    assert once == again != TEXT


@given(st.text(max_size=200), st.sampled_from((0.2, 0.5, 1.0)), st.integers(0, 99))
def test_deletion_and_truncation_take_their_share_and_replacement_keeps_the_length(text, share, seed):
    left = len(text) - int(share * len(text))
    lengths = {name: len(corrupt(text, share, Random(seed))) for name, corrupt in CORRUPTIONS.items()}
    assert [lengths[name] for name in ("delete", "truncate the end", "truncate the start")] == [left] * 3
    assert lengths["replace digits"] == lengths["replace characters"] == len(text)


def test_truncation_keeps_the_other_end():
    assert CORRUPTIONS["truncate the end"](TEXT, 0.5, Random(0)) == TEXT[:16]
    assert CORRUPTIONS["truncate the start"](TEXT, 0.5, Random(0)) == TEXT[15:]


def test_replaced_digits_leave_all_else_and_are_even():
    changed = CORRUPTIONS["replace digits"]("7" * 3000 + " apples", 1.0, Random(0))
    assert changed[3000:] == " apples"
    assert set(changed[:3000]) == set("0123456789")
    assert 230 < changed.count("7") < 370  # a tenth stays
    half = CORRUPTIONS["replace digits"]("7" * 3000, 0.5, Random(0))
    assert 1530 < half.count("7") < 1770  # .5 + .5 / 10
