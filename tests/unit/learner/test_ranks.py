import torch
from hypothesis import given
from hypothesis import strategies as st

from learner import LearnerConfig
from learner.losses import Totals
from learner.update.batches import micro_batches, no_row, unit_tokens
from learner.update.forward import action_logprobs
from learner.update.learner import Learner
from learner.update.ranks import ALONE, Ranks, deal, own_part, whole
from learner.update.steps import totals_of

SIZES = st.lists(st.integers(1, 1000), max_size=40)


@given(SIZES, st.integers(1, 8))
def test_everything_is_dealt_once_and_no_rank_has_much_more_than_another(sizes, count):
    dealt = deal(sizes, count)
    assert len(dealt) == count
    assert sorted(place for places in dealt for place in places) == list(range(len(sizes)))
    assert all(places == sorted(places) for places in dealt)
    held = [sum(sizes[place] for place in places) for places in dealt]
    assert max(held) - min(held) <= max(sizes, default=0)


def test_the_largest_is_dealt_first_and_one_rank_keeps_the_order():
    assert deal([3, 3, 2, 2, 2], 2) == [[0, 2, 4], [1, 3]]
    assert deal([3, 3, 2, 2, 2], 1) == [[0, 1, 2, 3, 4]]
    assert deal([], 2) == [[], []]


def test_a_rank_alone_has_everything():
    tensor = torch.ones(2)
    assert Ranks(0, 1) == ALONE
    assert ALONE.gathered("mine") == ["mine"]
    assert own_part(tensor) is whole(tensor) is tensor


def test_a_row_of_nothing_has_a_gradient_of_zeros(make_tiny):
    model = make_tiny()[0]
    for share in (False, True):
        (batch,) = micro_batches([no_row()], 10, share=share)
        logprobs, entropy = action_logprobs(model, batch)
        assert (logprobs.tolist(), entropy.tolist()) == ([[0.0, 0.0]], [])
        logprobs.sum().backward()
        gradients = [parameter.grad for parameter in model.parameters()]
        assert all(gradient is not None and not gradient.any() for gradient in gradients)
        model.zero_grad()
    assert micro_batches([], 10, share=True) == []


def test_a_unit_counts_what_it_shares_once():
    rows = [no_row(), no_row()]
    rows[1].input_ids[1] = 5
    assert unit_tokens(rows, share=False) == 4
    assert unit_tokens(rows, share=True) == 3


def test_the_totals_of_rows_are_those_of_their_mask():
    rows = [no_row(), no_row()]
    rows[1].action_mask[1] = True
    rows[1].stream[1] = 2
    nobody, judge = Totals(0, 0, 0), Totals(1, 1, 1)
    assert totals_of(rows) == Totals(2, 1, 1, (nobody, judge))


def test_rows_of_nothing_change_no_figure_of_a_step(make_tiny):
    """What ranks with fewer rows do in the passes that others need."""
    model = make_tiny()[0]
    before = [parameter.clone() for parameter in model.parameters()]
    metrics = Learner(model, LearnerConfig(warmup_steps=0)).step([no_row()])
    assert metrics["loss"] == metrics["grad_norm"] == 0
    assert not {"entropy_mean", "ratio_max", "mismatch_mean", "mismatch_kl"} & metrics.keys()
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
