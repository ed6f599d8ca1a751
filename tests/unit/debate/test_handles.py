from collections import Counter

import pytest

from debate import DebateConfig, Problem
from debate.prompting.seating import DIGITS, LETTERS, draw_handles, seat_debate, show_orders


def test_labels_are_a_letter_and_a_digit_that_look_like_nothing_else():
    assert not set("IOBSZ") & set(LETTERS)
    assert not set("01") & set(DIGITS)
    for seed in range(50):
        for label in draw_handles(7, seed):
            assert label[0] in LETTERS
            assert label[1:] in DIGITS


def test_no_letter_twice_in_a_debate_up_to_21_agents():
    for seed in range(50):
        labels = draw_handles(21, seed)
        assert len({label[0] for label in labels}) == 21


def test_seeds_decide():
    assert draw_handles(5, 11) == draw_handles(5, 11)
    assert len({draw_handles(5, seed) for seed in range(40)}) == 40


def test_labels_of_the_question_are_avoided():
    everything_but_one = " ".join(letter + digit for letter in LETTERS for digit in DIGITS if digit != "7")
    assert all(label[1] == "7" for label in draw_handles(7, 3, avoid=everything_but_one.lower()))
    all_taken = " ".join(letter + digit for letter in LETTERS for digit in DIGITS)
    assert len(set(draw_handles(7, 3, avoid=all_taken))) == 7


def test_own_labels_fall_on_every_seat_over_debates():
    config = DebateConfig(handles=("K7", "Q2", "M4"))
    seen = Counter(seat_debate(Problem("p", "?"), config, seed).handles for seed in range(600))
    assert len(seen) == 6
    assert min(seen.values()) > 60  # 100 expected


def test_spellings_of_one_label_count_once():
    assert sorted(draw_handles(2, 1, pool=("k7", "K7", "Q2"))) == ["Q2", "k7"]


@pytest.mark.parametrize("label", ["K7>Q2", "", " K7", "a:b", "<b>", "K7\n"])
def test_a_label_that_could_be_read_as_something_else_is_refused(label):
    with pytest.raises(ValueError, match=r"debate\.handles: .* must be made of letters and digits"):
        draw_handles(1, 1, pool=(label, "Q2"))


def test_one_order_for_the_debate_or_one_for_each_viewer():
    assert len(set(show_orders(6, 4, order="per_debate"))) == 1
    assert len(set(show_orders(6, 4, order="per_viewer"))) == 6
    for order in show_orders(6, 4, order="per_viewer"):
        assert sorted(order) == [0, 1, 2, 3, 4, 5]
