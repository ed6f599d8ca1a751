import pytest
from hypothesis import given
from hypothesis import strategies as st

from learner import stream_advantages

VALUES = st.one_of(st.none(), st.integers(-20, 20).map(lambda number: number / 10))
BATCHES = st.lists(st.tuples(VALUES, st.sampled_from("abc")), max_size=24)
ANY_BASELINE = st.sampled_from(["group", "rloo", "rae", "none"])
ANY_SCALE = st.sampled_from(["group", "batch", "none"])


def split(batch):
    return [value for value, _ in batch], [key for _, key in batch]


def close(left, right):
    assert [value is None for value in left] == [value is None for value in right]
    assert [value for value in left if value is not None] == pytest.approx(
        [value for value in right if value is not None], abs=1e-9
    )


@given(BATCHES, st.sampled_from(["group", "rloo"]), ANY_SCALE)
def test_advantages_sum_to_zero_in_every_group(batch, baseline, scale):
    values, groups = split(batch)
    advantages = stream_advantages(values, groups, baseline=baseline, scale=scale)
    for key in set(groups):
        chosen = [a for a, group in zip(advantages, groups, strict=True) if group == key and a is not None]
        assert sum(chosen) == pytest.approx(0, abs=1e-9)


@given(BATCHES, st.sampled_from(["group", "rloo"]), ANY_SCALE, st.sampled_from([-3.0, 0.5, 7.0]))
def test_shifting_all_rewards_changes_nothing(batch, baseline, scale, shift):
    values, groups = split(batch)
    shifted = [None if value is None else value + shift for value in values]
    close(
        stream_advantages(values, groups, baseline=baseline, scale=scale),
        stream_advantages(shifted, groups, baseline=baseline, scale=scale),
    )


@given(st.data(), BATCHES, st.sampled_from(["group", "rloo", "none"]), ANY_SCALE)
def test_permuting_the_batch_permutes_the_advantages(data, batch, baseline, scale):
    values, groups = split(batch)
    order = data.draw(st.permutations(range(len(batch))))
    advantages = stream_advantages(values, groups, baseline=baseline, scale=scale)
    permuted = stream_advantages(
        [values[i] for i in order], [groups[i] for i in order], baseline=baseline, scale=scale
    )
    close([advantages[i] for i in order], permuted)


@given(BATCHES, ANY_SCALE)
def test_rloo_is_the_group_baseline_stretched(batch, scale):
    values, groups = split(batch)
    by_group = stream_advantages(values, groups, baseline="group", scale=scale)
    by_rloo = stream_advantages(values, groups, baseline="rloo", scale=scale)
    sizes = {key: sum(v is not None for v, group in batch if group == key) for key in set(groups)}
    stretched = [
        None if a is None else a * sizes[key] / (sizes[key] - 1)
        for a, key in zip(by_group, groups, strict=True)
    ]
    close(by_rloo, stretched)


@given(BATCHES)
def test_better_rewards_get_better_advantages_within_a_group(batch):
    values, groups = split(batch)
    advantages = stream_advantages(values, groups, baseline="group", scale="group")
    known = [
        (key, value, a)
        for value, key, a in zip(values, groups, advantages, strict=True)
        if value is not None and a is not None
    ]
    for key, value, advantage in known:
        for other_key, other_value, other in known:
            if key == other_key and value < other_value:
                assert advantage < other


@given(BATCHES, ANY_BASELINE, ANY_SCALE)
def test_values_of_none_might_as_well_not_be_there(batch, baseline, scale):
    values, groups = split(batch)
    present = [place for place, value in enumerate(values) if value is not None]
    advantages = stream_advantages(values, groups, baseline=baseline, scale=scale)
    alone = stream_advantages(
        [values[i] for i in present], [groups[i] for i in present], baseline=baseline, scale=scale
    )
    assert [advantages[i] for i in present] == alone
    assert all(a is None for a, value in zip(advantages, values, strict=True) if value is None)
