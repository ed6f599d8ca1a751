import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from debate.ramps import Share, read_ramp, value_at, values_of
from debate.settings import Settings


class Mixed(Settings):
    share: Share = 0.5
    name: str = "plain"


def test_points_are_joined_by_straight_lines_and_constant_outside():
    ramp = read_ramp([[2, 1.0], [4, 0.0], [8, 0.4]])
    assert [value_at(ramp, step) for step in range(10)] == pytest.approx(
        [1.0, 1.0, 1.0, 0.5, 0.0, 0.1, 0.2, 0.3, 0.4, 0.4]
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "needs a number, or points"),
        (float("nan"), "should be a finite number"),
        ([[9, 1], [3, 0.5]], "the steps of points must ascend, got 3 after 9"),
        ([[0, 1, 2]], "a point must have a step and a value"),
        ([0, 1], "a point must have a step and a value"),
        (-0.1, "should be greater than or equal to 0, got -0.1"),
    ],
)
def test_what_is_no_ramp_is_refused_in_one_line(given: object, message: str):
    with pytest.raises(ValidationError) as caught:
        Mixed.model_validate({"share": given})
    assert len(caught.value.errors()) == 1
    assert message in caught.value.errors()[0]["msg"]


@given(
    st.lists(st.tuples(st.integers(0, 500), st.floats(0, 1)), min_size=1, unique_by=lambda point: point[0]),
    st.integers(0, 600),
)
def test_a_value_lies_between_those_of_the_points_and_points_have_their_own(
    points: list[tuple[int, float]], step: int
):
    ramp = read_ramp(sorted(points))
    values = values_of(ramp)
    assert min(values) - 1e-12 <= value_at(ramp, step) <= max(values) + 1e-12
    assert all(value_at(ramp, at) == value for at, value in points)
