from hypothesis import given
from hypothesis import strategies as st

from debate.stops import clipped

TEXTS = st.text("Qa:\n", max_size=30)
STOPS = st.lists(st.text("Qa:\n", min_size=1, max_size=3), max_size=3)


def test_the_first_stop_string_cuts_and_is_cut_off_itself():
    text = "It is 18.\n\n\nQuestion: 4? Q: 5?"
    assert clipped(text, ("Q:", "Question:")) == "It is 18.\n\n\n"
    assert clipped(text, ("Q:", "Question:", "\n\n\n")) == "It is 18."
    assert clipped(text, ("Problem:",)) == clipped(text, ()) == text


def test_nothing_is_cut_within_thinking_and_all_of_it_may_be_thinking():
    text = "<think>Q: is it 4?</think>4 Q: 5"
    assert clipped(text, ("Q:",), start=26) == "<think>Q: is it 4?</think>4 "
    assert clipped(text, ("Q:",), start=len(text)) == text


@given(TEXTS, STOPS, st.integers(0, 30))
def test_what_is_left_is_a_beginning_without_any_of_them(text, stops, start):
    cut = clipped(text, stops, start=start)
    assert text.startswith(cut)
    assert all(stop not in cut[start:] for stop in stops)
    assert len(cut) >= min(start, len(text))
    assert clipped(cut, stops, start=start) == cut
