from dataclasses import replace

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from debate.types import TurnId
from learner.update.batches import collate, no_row
from learner.update.tally import MOST, FarToken, WorstTokens

from .conftest import row_of


@pytest.fixture
def batch():
    """Two rows of 4 and 3 tokens, of which 2 and 1 are sampled; a reference that holds all for -2."""
    first = row_of([5, 6], [7, 8], [0, 0], debate=3, turn=TurnId(1, 0))
    second = row_of([5, 9], [4], [0], debate=8, turn=TurnId(0, 1))
    made = collate([first, second])
    made.sampling_logprobs = torch.where(made.mask, -1.0, 0.0)
    made.ref = torch.full_like(made.sampling_logprobs, -2.0)
    return made


def test_the_worst_tokens_by_hand(batch):
    """|lp + 1|, against the sampler, is .5, 3 and 1; k3 of d = .5, -2 and 2 is .107, 4.389 and 1.135."""
    logprobs = torch.tensor([[0.0, 0.0, -1.5, -4.0], [0.0, 0.0, 0.0, 0.0]])
    worst = WorstTokens()
    worst.look(batch, logprobs)
    worst.look_at_sampler(batch, logprobs, "sampler_before")
    a = FarToken(3, TurnId(1, 0), 8, (5, 6, 7), -4.0, -1.0)
    b = FarToken(8, TurnId(0, 1), 4, (5, 9), 0.0, -1.0)
    c = FarToken(3, TurnId(1, 0), 7, (5, 6), -1.5, -1.0)
    assert worst.of("sampler") == worst.of("sampler_before") == [a, b, c]
    assert worst.of("reference") == [replace(token, other=-2.0) for token in (a, b, c)]


def test_no_number_is_worse_than_any_and_nothing_is_named_of_what_was_not_sampled(batch):
    logprobs = torch.tensor([[90.0, 90.0, float("nan"), -40.0], [90.0, 90.0, -1.0, 90.0]])
    worst = WorstTokens()
    worst.look(batch, logprobs)
    worst.look(collate([no_row()]), torch.zeros(1, 2))
    assert [token.token for token in worst.of("sampler")] == [7, 8, 4]


def test_a_token_that_is_read_again_in_a_later_epoch_is_named_once_as_it_was_worst(batch):
    worst = WorstTokens()
    for drift in (0.0, -1.0, 0.5):
        worst.look(batch, torch.tensor([[0.0, 0.0, -1.5, -4.0], [0.0, 0.0, 0.0, 0.0]]) + drift)
    found = worst.of("reference")
    assert [(token.token, token.trainer) for token in found] == [(8, -5.0), (4, 0.5), (7, -1.0)]


def test_the_worst_of_several_micro_batches_are_compared(debate_rows):
    rows = debate_rows()
    worst = WorstTokens()
    for start in range(0, len(rows), 4):
        batch = collate(rows[start : start + 4])
        lower = torch.where(batch.mask, batch.input_ids / 10, 0.0)
        worst.look(batch, batch.sampling_logprobs - lower)
    apart = sorted((token / 10 for row in rows for token in row.input_ids[row.action_mask]), reverse=True)
    found = [token.other - token.trainer for token in worst.of("sampler")]
    assert found == pytest.approx(apart[:MOST], abs=1e-5)


def test_a_gpu_is_not_waited_for(batch):
    """A tensor without data refuses every operation that would have to look at it."""
    fakes = FakeTensorMode()
    names = ("input_ids", "mask", "sampling_logprobs", "ref")
    fake = replace(batch, **{name: fakes.from_tensor(getattr(batch, name)) for name in names})
    logprobs = fakes.from_tensor(batch.sampling_logprobs.clone())
    with fakes:
        worst = WorstTokens()
        worst.look(fake, logprobs)
        worst.look_at_sampler(fake, logprobs, "sampler_before")
